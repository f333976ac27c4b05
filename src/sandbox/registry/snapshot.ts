import { allRecords } from './lists.ts'
import { type RegistryView, type Table, tables } from './state.ts'

/** How a snapshot is laid out, and where its deployments stand. */
export interface SnapshotForm {
  readonly layout: 'plain' | 'data' | 'next_cursor'
  readonly embedded: 'both' | 'array' | 'products'
  readonly cursor: string
  readonly as_of: string
}

const chunkSize = 1 << 16

/** The body of a snapshot, written as it is read: one array a table, then the cursor and `as_of`. */
export function snapshotBody(view: RegistryView, form: SnapshotForm): ReadableStream<Uint8Array> {
  const pieces = snapshotPieces(view, form)
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>({
    type: 'bytes',
    pull(controller) {
      let text = ''
      let done = false
      while (text.length < chunkSize && !done) {
        const piece = pieces.next()
        if (piece.done) done = true
        else text += piece.value
      }
      if (text) controller.enqueue(encoder.encode(text))
      if (done) controller.close()
    },
  })
}

function* snapshotPieces(view: RegistryView, form: SnapshotForm): Generator<string> {
  const shown = (Object.keys(tables) as Table[]).filter(
    (table) => table !== 'deployments' || form.embedded !== 'products',
  )
  yield form.layout === 'data' ? '{"data":{' : '{'
  for (const [index, table] of shown.entries()) {
    yield `${index > 0 ? ',' : ''}"${table}":[`
    let comma = ''
    for (const record of allRecords(view, table, form.embedded !== 'array')) {
      yield comma + JSON.stringify(record)
      comma = ','
    }
    yield ']'
  }
  const key = form.layout === 'next_cursor' ? 'next_cursor' : 'cursor'
  yield `${form.layout === 'data' ? '}' : ''},"${key}":${JSON.stringify(form.cursor)},"as_of":"${form.as_of}"}`
}
