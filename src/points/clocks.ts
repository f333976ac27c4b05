import { longestSeconds } from '../time.ts'
import { bodyAt, type Ordered, type PartJob } from './conversion.ts'
import { type Clocks, clocksSql } from './stage.ts'
import { numbered, statement } from './sql.ts'
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
  const note = (position: number, t: number, kind: string, detail: Json): void => {
    const { body, part } = bodyAt(ordered, position)
    findings.push({ series: body.series.id, t, kind, detail, at: Number(part.observedAt) })
  }
  const fresh = statement('clocks', { clocks: clocksSql('computed', 'close', 'floor') })
  for (const { body: position, ...clocks } of await numbered<Clocks & { body: number }>(session, fresh)) {
    const { part } = bodyAt(ordered, position)
    if (contradictsConvention(clocks, part)) {
      mistaken.add(position)
      const { told: points, low: lowest, high: highest } = clocks
      note(position, clocks.first, 'convention', { timestamp: part.timestamp, points, lowest, highest })
    } else early += clocks.early
  }
  if (early === 0) return findings
  for (const { body, t, computed, close, floor, early: beforeEnd } of await numbered<Early>(
    session,
    statement('findings'),
  ))
    if (!mistaken.has(body))
      note(body, t, beforeEnd ? 'before_end' : 'before_stated', { computed_at: computed, end: close, floor })
  return findings
}

interface Early extends Readonly<Record<'body' | 't' | 'computed' | 'close' | 'floor', number>> {
  readonly early: boolean
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
