import { type Engine, quote, type Row } from '../../src/lake/store/engine.ts'
import { micros } from './instants.ts'
import type { PointRow } from './lakes/lake-recipe.ts'
import { commits, iso, knowable, type OraclePoint, type Question, type Story } from './pit-oracle.ts'

/** A point, and the commit that stored it. */
export interface CommittedPoint {
  readonly row: PointRow
  readonly at: (typeof commits)[number]
}

/** The points of a story, some of them told again: later, together with the next point, or at the very same instant. */
export function vintagesOf({ early, late }: Story, random: () => number): CommittedPoint[] {
  const held = [...early.map((row) => ({ row, at: commits[0] })), ...late.map((row) => ({ row, at: commits[1] }))]
  return held.flatMap(({ row, at }): CommittedPoint[] => {
    const again = Array.from({ length: Math.floor(random() * 3) }, (_, n): CommittedPoint => {
      const kind = random()
      const value = random()
      const after = kind < 0.2 ? 0 : kind < 0.7 ? Math.ceil(random() * 4) * 86_400_000_000 : Math.ceil(random() * 5e11)
      const available_at = iso(micros(row.available_at) + after)
      // At one instant only a later commit can tell another value.
      const when = after === 0 ? commits[1] : (commits[Math.floor(random() * 2)] ?? at)
      return { row: { ...row, available_at, v: value < 0.15 ? null : 2000 + n }, at: when }
    })
    const told = new Set([`${row.available_at} ${at}`])
    return [{ row, at }, ...again.filter((one) => told.size < told.add(`${one.row.available_at} ${one.at}`).size)]
  })
}

/** The newest points known for a decision, each as it was known then, or as it was told first. */
export function pointsKnownTo(
  points: readonly OraclePoint[],
  [asset, ts]: readonly [string | null, number | null],
  question: Question,
  first: boolean,
): OraclePoint[] {
  // A value that was withdrawn is none, also where nulls are skipped: they are left out behind the choice of the
  // vintage.
  const { skipNulls = false } = question
  const all = knowable(points, asset, ts, { ...question, skipNulls: first && skipNulls })
  const order = first ? all.toReversed() : all
  const each = new Map<number, OraclePoint>()
  for (const point of order) if (!each.has(point.t)) each.set(point.t, point)
  const chosen = [...each.values()].filter(({ v, o }) => !skipNulls || v !== null || o !== null)
  return chosen.toSorted((a, b) => b.t - a.t)
}

/** What a point says, as `rowText` tells it of a row. */
export const pointText = (point: OraclePoint | undefined): string =>
  JSON.stringify(point ? [iso(point.t), iso(point.available), point.v] : [null, null, null])
/** What a row says, without the columns of the caller. */
export const rowText = (row: Row): string =>
  JSON.stringify([row['t'] ?? null, row['available_at'] ?? null, row['v'] ?? null])

/** Makes the table `d` of the decisions. */
export async function decide(
  engine: Engine,
  decisions: readonly (readonly [string | null, number | null])[],
): Promise<void> {
  const text = (values: readonly (string | number | null)[]) => quote(values.map((value) => value ?? '').join(','))
  const assets = text(decisions.map(([asset]) => asset))
  const instants = text(decisions.map(([, ts]) => ts))
  await engine.run(`CREATE OR REPLACE TEMP TABLE d AS
    SELECT CAST(id AS INTEGER) AS id, nullif(asset, '') AS asset, make_timestamptz(CAST(nullif(us, '') AS BIGINT)) AS ts
    FROM (SELECT unnest(string_split(${assets}, ',')) AS asset, unnest(string_split(${instants}, ',')) AS us, unnest(range(${decisions.length})) AS id)`)
}
