import { onGridSql, stepSql } from '../../base/intervals-sql.ts'
import type { ConversionContext, Staged } from './conversion-types.ts'
import type { Lexed } from './lexer.ts'
import { intervalSql, rowsAsNumbers, statement } from './sql.ts'
import type { Interval } from '../../base/time.ts'
import type { Engine } from '../../lake/store/engine.ts'

/** The staging of one batch: the facts known so far, shared by the ways of reading. */
export interface Loading {
  readonly engine: Engine
  readonly circumstances: ConversionContext
  /** Intervals of the series, by body. */
  readonly intervals: readonly Interval[]
  /** Bodies in which each point may occur once for each time that its source states. */
  readonly dated?: readonly number[]
  /** The spool files, by body. */
  readonly files: readonly string[]
  /** Facts about the bodies' tokens, if they are known. */
  readonly lexed: readonly (Lexed | undefined)[]
  /** Beginning of the paths of temporary files. */
  readonly temporary: string
  readonly staged: Map<number, Staged>
  readonly poison: Map<number, string>
  /** Copies in which `-0` is spelled `-0.0`, by body. */
  readonly copies: Map<number, string>
}

/**
 * SQL of the start of the interval that a row's `mark` names, and whether it lies on the grid of the row's `interval`.
 */
export function gridOf({ circumstances, intervals }: Pick<Loading, 'circumstances' | 'intervals'>): {
  start: string
  on_grid: string
} {
  const { timestamp, weekStart } = circumstances
  const interval = intervalSql(intervals)
  const start = timestamp === 'interval_end' ? stepSql('mark', interval, -1) : 'mark'
  return { start, on_grid: onGridSql('mark', interval, weekStart) }
}

type StatsRow = Readonly<
  Record<'body' | 'points' | 'told' | 'unsound' | 'minus_zeros' | 'back' | 'forth' | 'runs' | 'first' | 'last', number>
>

/** Counts over the staged points of each body. */
export async function statsOf({ engine }: Loading, source: string): Promise<Map<number, Staged>> {
  const rows = await rowsAsNumbers<StatsRow>(engine, statement('body_stats', { source }))
  return new Map(
    rows.map(({ body, unsound, minus_zeros, back, forth, runs, ...counts }) => {
      const doubled = (back > 0 && forth > 0) || runs > 1
      const judged = { sound: unsound === 0, minusZero: minus_zeros > 0, doubled, rising: back === 0 && runs === 1 }
      return [body, { ...counts, ...judged }]
    }),
  )
}

/** Deletes bodies from a table. */
export async function forget(engine: Engine, table: string, bodies: readonly number[]): Promise<void> {
  if (bodies.length > 0) await engine.run(`DELETE FROM ${table} WHERE body IN (${bodies.join(', ')})`)
}

/**
 * SQL of the columns early, low and high over the points of one body, from SQL of `computed` (microseconds), `close`
 * and `floor` (seconds).
 */
export function clocksSql(computed: string, close: string, floor: string): string {
  const lag = `${computed} - ${close} * 1000000`
  return `count(*) FILTER (WHERE ${computed} < ${floor} * 1000000) AS early, min(${lag}) AS low, max(${lag}) AS high`
}

/** SQL of a body's number, from its position in the list of files that one statement reads. */
export function bodySql(bodies: readonly number[]): string {
  const inOrder = bodies.every((body, i) => body === i)
  return inOrder
    ? 'CAST(file_index AS INTEGER)'
    : `([${bodies.join(', ')}]::INTEGER[])[CAST(file_index AS INTEGER) + 1]`
}
