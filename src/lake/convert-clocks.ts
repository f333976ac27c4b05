import { floorSql } from '../catalog/availability-sql.ts'
import { endSql } from '../intervals-sql.ts'
import { longestSeconds } from '../time.ts'
import type { ConvertJob } from './convert-job.ts'
import { type Clocks, clocksOf, clocksSql } from './convert-stage.ts'
import type { Ordered } from './convert-order.ts'
import { statement } from './convert-sql.ts'
import type { Engine } from './engine.ts'
import type { Finding } from './entry.ts'

/**
 * What the provider's `computed_at` contradicts, on the points in `fresh`: `before_end`, `before_stated`, and `convention`,
 * once a body, where all its instants fit the other meaning of `t`; it then stands for that body's `before_end` too.
 */
export async function findClocks(session: Engine, job: ConvertJob, ordered: readonly Ordered[]): Promise<Finding[]> {
  const fragments = { end: endSql('t', job.interval), floor: floorSql(job.rules, 't', job.interval) }
  const at = Number(job.observedAt)
  const findings: Finding[] = []
  const mistaken = new Set<number>()
  let early = 0
  for (const [body, clocks] of await clocksOfFresh(session, job)) {
    if (contradictsConvention(clocks, job)) {
      mistaken.add(body)
      const detail = {
        timestamp: job.timestamp,
        points: clocks.told,
        lowest: clocks.low,
        highest: clocks.high,
      }
      findings.push({ series: seriesOf(ordered, body), t: clocks.first, kind: 'convention', detail, at })
    } else early += clocks.early
  }
  if (early === 0) return findings
  for (const row of await session.rows(statement('findings', fragments))) {
    const body = Number(row['body'])
    if (mistaken.has(body)) continue
    const kind = row['early'] === true ? 'before_end' : 'before_stated'
    const detail = { computed_at: Number(row['computed']), end: Number(row['close']), floor: Number(row['stated']) }
    findings.push({ series: seriesOf(ordered, body), t: Number(row['t']), kind, detail, at })
  }
  return findings
}

/** The clocks of the new points, by body. */
async function clocksOfFresh(session: Engine, job: ConvertJob): Promise<Map<number, Clocks>> {
  const rows = await session.rows(statement('clocks', { clocks: clocksSql(job) }))
  return new Map(rows.map((row) => [Number(row['body']), clocksOf(row)]))
}

const enough = 3

/**
 * Whether the clocks of a body fit the other meaning of `t` only. Interval starts are computed about one interval after `t`. If every one of at least three comes within half an
 * interval of `t`, then `t` was an end. Interval ends are computed soon after `t`; if every one comes one to two
 * intervals after it, `t` was a start.
 */
export function contradictsConvention({ told, low, high }: Clocks, job: ConvertJob): boolean {
  const size = longestSeconds(job.interval) * 1_000_000
  if (told < enough) return false
  return job.timestamp === 'interval_start' ? high < -size / 2 : low >= size && high < 2 * size
}

function seriesOf(ordered: readonly Ordered[], body: number): string {
  return ordered[body]?.body.series.id ?? ''
}
