import { formatInstant } from '../base/time.ts'

/** A point as it is sent: `t`, its value keys, and `computed_at` where the form has it. */
export type WirePoint = { t: number } & Record<string, unknown>

const chunkSize = 64 * 1024

/** Streams the points as a JSON array or as CSV, made only as fast as they are read. */
export function streamPoints(
  points: Iterable<WirePoint>,
  { csv, humanized }: { readonly csv: boolean; readonly humanized: boolean },
): ReadableStream<Uint8Array> {
  const time = humanized ? formatInstant : String
  return textStream(csv ? csvOf(points, time) : jsonOf(points, humanized ? (t) => `"${formatInstant(t)}"` : String))
}

/** Streams text in chunks of about 64 KiB, each made when it is read. */
export function textStream(pieces: Generator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        let text = ''
        let done: boolean | undefined = false
        while (text.length < chunkSize && done !== true) {
          const next = pieces.next()
          done = next.done
          if (next.done !== true) text += next.value
        }
        if (text !== '') controller.enqueue(encoder.encode(text))
        if (done === true) controller.close()
      },
      cancel: () => void pieces.return(undefined),
    },
    { highWaterMark: 0 },
  )
}

function* jsonOf(points: Iterable<WirePoint>, time: (t: number) => string): Generator<string> {
  let before = '['
  for (const point of points) {
    let text = `${before}{"t":${time(point.t)}`
    for (const key in point) {
      if (key === 't' || point[key] === undefined) continue
      text += `,"${plainKey.test(key) ? key : JSON.stringify(key).slice(1, -1)}":${json(point[key])}`
    }
    yield `${text}}`
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

const plainKey = /^[a-z_]+$/

/** Formats a number as the shortest text that reads back as the same double. */
function json(value: unknown): string {
  if (typeof value === 'number' && Number.isFinite(value)) return Object.is(value, -0) ? '-0' : String(value)
  return JSON.stringify(value)
}

function* csvOf(points: Iterable<WirePoint>, time: (t: number) => string): Generator<string> {
  yield 'timestamp,value\n'
  for (const point of points) yield `${time(point.t)},${cell(point)}\n`
}

/** Formats the value cell: a number as it is, nothing for null, everything nested as quoted JSON text. */
function cell(point: WirePoint): string {
  const { t: _, computed_at: __, ...rest } = point
  const keys = Object.keys(rest)
  const value = keys.length === 1 && (keys[0] === 'v' || keys[0] === 'o') ? rest[keys[0]] : rest
  if (value === null) return ''
  return typeof value === 'number' ? json(value) : `"${JSON.stringify(value).replaceAll('"', '""')}"`
}
