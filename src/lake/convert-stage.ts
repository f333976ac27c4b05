import { floorSql } from '../catalog/availability-sql.ts'
import { endSql, stepSql } from '../intervals-sql.ts'
import type { Lexed } from './body-lexer.ts'
import type { ConvertJob } from './convert-job.ts'
import { statement } from './convert-sql.ts'
import type { Engine, Row } from './engine.ts'

/** What one body holds once it is staged. */
export interface Staged {
  readonly points: number
  /** How many have a computed_at. */
  readonly told: number
  /** Whether all values and instants are what they should be. */
  readonly sound: boolean
  /** Whether any value is -0.0. */
  readonly minusZero: boolean
  readonly disorder: boolean
  readonly first: number
  readonly last: number
}

/** How the `computed_at` of a body lies to the end of the interval. */
export interface Clocks {
  readonly told: number
  /** How many lie before the end of the interval or a stated instant. */
  readonly early: number
  /** `computed_at` minus the end, microseconds: the smallest and the largest. */
  readonly low: number
  readonly high: number
  /** The first `t`. */
  readonly first: number
}

/** The outcome of staging, by position of the body in the list. */
export interface Loaded {
  readonly staged: ReadonlyMap<number, Staged>
  readonly poison: ReadonlyMap<number, string>
}

/** The staging of one batch: what is known so far, shared by the ways of reading. */
export interface Loading {
  readonly engine: Engine
  readonly job: ConvertJob
  readonly files: readonly string[]
  readonly staged: Map<number, Staged>
  readonly poison: Map<number, string>
  readonly lexed: Map<number, Lexed>
  /** Copies in which `-0` is spelled `-0.0`, by body. */
  readonly copies: Map<number, string>
}

/** The start of the interval, from the grid point that was sent as `mark`. */
export function startSql(job: ConvertJob): string {
  return job.timestamp === 'interval_end' ? stepSql('mark', job.interval, -1) : 'mark'
}

type StatsRow = {
  readonly [name in 'points' | 'told' | 'unsound' | 'minus_zeros' | 'disorder' | 'first' | 'last']: bigint
} & { readonly body: number }

/** Counts over the staged points of each body. */
export async function statsOf({ engine }: Loading, source: string): Promise<Map<number, Staged>> {
  const rows = await engine.rows<StatsRow>(statement('stats', { source }))
  return new Map(
    rows.map((row) => [
      row.body,
      {
        points: Number(row.points),
        told: Number(row.told),
        sound: row.unsound === 0n,
        minusZero: row.minus_zeros > 0n,
        disorder: row.disorder > 0n,
        first: Number(row.first),
        last: Number(row.last),
      },
    ]),
  )
}

/** Takes bodies out of a table again. */
export async function forget(engine: Engine, table: string, bodies: readonly number[]): Promise<void> {
  if (bodies.length > 0) await engine.run(`DELETE FROM ${table} WHERE body IN (${bodies.join(', ')})`)
}

const staged = { t: 't', computed: 'computed' }

/** SQL of the columns early, low and high over points of one body; zeros where `columns` is null. */
export function clocksSql({ rules, interval }: ConvertJob, columns: typeof staged | null = staged): string {
  if (columns === null) return '0::BIGINT AS early, 0::BIGINT AS low, 0::BIGINT AS high'
  const { t, computed } = columns
  const lag = `${computed} - ${endSql(t, interval)} * 1000000`
  const early = `count(*) FILTER (WHERE ${computed} < ${floorSql(rules, t, interval)} * 1000000)`
  return `${early} AS early, min(${lag}) AS low, max(${lag}) AS high`
}

/** The row's columns as numbers. */
export function clocksOf(row: Row): Clocks {
  const number = (name: string): number => Number(row[name] ?? 0)
  return {
    told: number('told'),
    early: number('early'),
    low: number('low'),
    high: number('high'),
    first: number('first'),
  }
}

/** The body's number from its position in the list of files that one statement reads. */
export function bodySql(bodies: readonly number[]): string {
  const inOrder = bodies.every((body, i) => body === i)
  return inOrder
    ? 'CAST(file_index AS INTEGER)'
    : `([${bodies.join(', ')}]::INTEGER[])[CAST(file_index AS INTEGER) + 1]`
}
