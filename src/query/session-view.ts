import type { Cell, Engine } from '../store/engine.ts'
import type { Filled } from './filled.ts'
import type { Ready } from './gate.ts'
import { guarded, type RunDeps } from './run.ts'
import { layResult, watched } from './write.ts'

/** A part of a result laid out for a screen. */
export interface Page {
  readonly lines: readonly string[]
  readonly rows: number
  /** Watches all pages until this one. */
  readonly filled: Filled
}

/** Rows that are laid out together: their widths agree, and more are fetched only when they are wanted. */
const pageRows = 500

/** Runs a statement and lays its result out part by part; the next part is computed when it is asked for. */
export async function* pages(engine: Engine, ready: Ready, width: number, deps: RunDeps): AsyncGenerator<Page> {
  const stream = await guarded(engine, ready.text, deps, async () => engine.stream(ready.text))
  const { names, types, chunks, filled } = watched(stream, undefined)
  const source = chunks[Symbol.asyncIterator]()
  let columns: Cell[][] = names.map(() => [])
  let rows = 0
  let shown = 0
  const page = (): Page => {
    const text = layResult(ready, names, types, columns, width)
    const made = { lines: text.split('\n').slice(0, -1), rows, filled }
    columns = names.map(() => [])
    shown += rows
    rows = 0
    return made
  }
  try {
    for (;;) {
      const next = await guarded(engine, ready.text, deps, async () => source.next())
      if (next.done === true) break
      const { value } = next
      for (let from = 0; from < value.rows; from += pageRows) {
        const count = Math.min(pageRows, value.rows - from)
        for (const [k, column] of columns.entries()) column.push(...(value.columns[k] ?? []).slice(from, from + count))
        rows += count
        if (rows >= pageRows) yield page()
      }
    }
    if (rows > 0 || shown === 0) yield page()
  } finally {
    // Whoever has seen enough leaves a statement behind that still runs.
    await source.return?.(undefined)
  }
}
