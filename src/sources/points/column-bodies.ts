import { floor, type Interval, step } from '../../base/time.ts'
import { appendDoubles, type DoubleRows } from '../../lake/store/double-rows.ts'
import type { Engine } from '../../lake/store/engine.ts'
import type { ConversionContext, Staged } from './conversion-types.ts'
import type { PointColumns } from './point-columns.ts'

/**
 * Smallest integer from which on a double cannot represent every integer; only the text of a larger one shows whether
 * it is exact.
 */
export const beyondDouble: number = 2 ** 53
/** Seconds from which on a timestamp must be meant in a finer unit. */
const longest = 1e11

/** A body whose points are columns and valid. */
export interface ColumnBody {
  /** Position of the body. */
  readonly body: number
  readonly staged: Staged
  readonly columns: PointColumns
  /** Starts of the intervals of the points, seconds. */
  readonly starts: Float64Array
}

/** The facts that say which interval a `t` names. */
export interface GridOfBody extends Pick<ConversionContext, 'timestamp' | 'weekStart'> {
  readonly interval: Interval
}

/** Judges the points of a body; null if one of them is not valid as it is. */
export function judgeColumns(body: number, columns: PointColumns, grid: GridOfBody): ColumnBody | null {
  const starts = startsOf(columns, grid)
  if (starts === null || !areValid(columns)) return null
  let back = false
  let forth = false
  let first = starts[0] ?? 0
  let last = first
  for (let row = 1; row < starts.length; row++) {
    const start = starts[row] as number
    const before = starts[row - 1] as number
    if (start <= before) back = true
    if (start >= before) forth = true
    if (start < first) first = start
    if (start > last) last = start
  }
  const { told, minusZero } = countsOf(columns)
  const order = { doubled: back && forth, rising: !back }
  return {
    body,
    columns,
    starts,
    staged: { points: columns.rows, told, sound: true, minusZero, ...order, first, last },
  }
}

/** Returns the starts of the intervals that the `t` of a body name; null if one is not on the grid. */
function startsOf({ t: sent }: PointColumns, { interval, timestamp, weekStart }: GridOfBody): Float64Array | null {
  for (const t of sent)
    if (!(Math.abs(t) < longest && Number.isInteger(t) && floor(t, interval, weekStart) === t)) return null
  return timestamp === 'interval_end' ? sent.map((t) => step(t, interval, -1)) : sent
}

function areValid({ v, computed }: PointColumns): boolean {
  for (const value of v) if (Math.abs(value) >= beyondDouble) return false
  if (computed !== null) for (const at of computed) if (at < 0 || at >= longest) return false
  return true
}

function countsOf({ v, computed }: PointColumns): Pick<Staged, 'told' | 'minusZero'> {
  let minusZero = false
  for (const value of v) if (Object.is(value, -0)) minusZero = true
  let told = 0
  if (computed !== null) for (const at of computed) if (!Number.isNaN(at)) told++
  return { told, minusZero }
}

/** Number of columns of `typed_points` that are numbers. */
const numberColumns = 4

/** Adds the points of bodies to the table `typed_points`, which may have a column for objects and arrays. */
export async function appendColumns(engine: Engine, bodies: readonly ColumnBody[], withNested: boolean): Promise<void> {
  await appendDoubles(engine, 'typed_points', withNested ? numberColumns + 1 : numberColumns, rowsOf(bodies))
}

/** The columns body, t, v, computed (microseconds) and nothing in o. */
function* rowsOf(bodies: readonly ColumnBody[]): Generator<DoubleRows> {
  // Each block is added before the next one is made, so that one array does for all.
  const micros = new Float64Array(Math.max(...bodies.map(({ columns }) => columns.rows)))
  for (const { body, starts, columns } of bodies) {
    const { rows, v, computed } = columns
    if (computed !== null)
      for (let row = 0; row < rows; row++) micros[row] = Math.round((computed[row] as number) * 1e6)
    yield { rows, columns: [body, starts, v, computed === null ? null : micros, null] }
  }
}
