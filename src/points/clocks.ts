import { longestSeconds } from '../time.ts'
import type { PartJob } from './conversion.ts'
import { type Clocks, clocksOf, clocksSql } from './stage.ts'
import { bodyAt, type Ordered } from './order.ts'
import { statement } from './sql.ts'
import type { Engine } from '../store/engine.ts'
import type { Finding, Json } from '../ledger/entry.ts'

/**
 * What the provider's `computed_at` contradicts, on the points in `fresh`: `before_end`, `before_stated`, and `convention`,
 * once a body, where all its instants fit the other meaning of `t`; it then stands for that body's `before_end` too.
 */
export async function findClocks(session: Engine, ordered: readonly Ordered[]): Promise<Finding[]> {
  const findings: Finding[] = []
  const mistaken = new Set<number>()
  let early = 0
  const told = (position: number, t: number, kind: string, detail: Json): void => {
    const { body, part } = bodyAt(ordered, position)
    findings.push({ series: body.series.id, t, kind, detail, at: Number(part.observedAt) })
  }
  for (const [position, clocks] of await clocksOfFresh(session)) {
    const { part } = bodyAt(ordered, position)
    if (contradictsConvention(clocks, part)) {
      mistaken.add(position)
      const { told: points, low: lowest, high: highest } = clocks
      told(position, clocks.first, 'convention', { timestamp: part.timestamp, points, lowest, highest })
    } else early += clocks.early
  }
  if (early === 0) return findings
  for (const row of await session.rows(statement('findings'))) {
    const position = Number(row['body'])
    if (mistaken.has(position)) continue
    const kind = row['early'] === true ? 'before_end' : 'before_stated'
    const detail = { computed_at: Number(row['computed']), end: Number(row['close']), floor: Number(row['floor']) }
    told(position, Number(row['t']), kind, detail)
  }
  return findings
}

/** The clocks of the new points, by body. */
async function clocksOfFresh(session: Engine): Promise<Map<number, Clocks>> {
  const rows = await session.rows(statement('clocks', { clocks: clocksSql('computed', 'close', 'floor') }))
  return new Map(rows.map((row) => [Number(row['body']), clocksOf(row)]))
}

const enough = 3

/**
 * Whether the clocks of a body fit the other meaning of `t` only. Interval starts are computed about one interval after `t`. If every one of at least three comes within half an
 * interval of `t`, then `t` was an end. Interval ends are computed soon after `t`; if every one comes one to two
 * intervals after it, `t` was a start.
 */
export function contradictsConvention({ told, low, high }: Clocks, { interval, timestamp }: PartJob): boolean {
  const size = longestSeconds(interval) * 1_000_000
  if (told < enough) return false
  return timestamp === 'interval_start' ? high < -size / 2 : low >= size && high < 2 * size
}
