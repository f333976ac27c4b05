import type { Engine } from '../store/engine.ts'
import type { HeldSeries } from '../ledger/held.ts'
import { spacingsOf } from '../points/spacing.ts'
import { type Ask, horizonOf } from './plan.ts'
import { ceil, type Instant, type Interval, longestSeconds, type Weekday } from '../time.ts'
import { type Answered, isBrought } from './answered.ts'
import { knownAt } from './settle.ts'

/** Answers whose interval is known, and those that contradict what is known. */
export interface Inferred {
  readonly batch: readonly Answered[]
  /** By request: why the body cannot belong to its series. */
  readonly refused: ReadonlyMap<string, string>
  /** By series: the interval that this batch was the first to show. */
  readonly shown: ReadonlyMap<string, Interval>
}

/**
 * Gives the answers of endpoints that take no interval the smallest spacing of their points. What is on record, or
 * stands in the lake under the provisional 24h already, stays: a body with wider points is then no part of the series.
 */
export async function inferIntervals(
  engine: () => Promise<Engine>,
  batch: readonly Answered[],
  held: ReadonlyMap<string, HeldSeries>,
  weekStart: Weekday,
): Promise<Inferred> {
  const refused = new Map<string, string>()
  const shown = new Map<string, Interval>()
  const placed: Answered[] = []
  const spacings = await spacingsIn(engine, batch)
  for (const answered of batch) {
    const seen = spacings.get(answered)
    if (seen === undefined || !isBrought(answered)) {
      placed.push(answered)
      continue
    }
    const { ask, body, request } = answered
    const { id } = ask.series
    const known = held.get(id)
    const fixed = known?.settled ?? shown.get(id) ?? ((known?.points ?? 0) > 0 ? ask.interval : null)
    if (fixed !== null && seen !== null && longestSeconds(seen) > longestSeconds(fixed))
      refused.set(request.id, `points ${seen} apart in a series of ${fixed}`)
    if (seen !== null && (fixed === null || fixed === seen)) shown.set(id, seen)
    placed.push({
      ...answered,
      ask: onGridOf(
        ask,
        fixed ?? seen ?? ask.interval,
        knownAt(Math.floor(request.asked_at / 1_000_000), body.date),
        weekStart,
      ),
    })
  }
  return { batch: placed, refused, shown }
}

/** By answer of an endpoint that takes no interval: the spacing of its points, null where they show none. */
async function spacingsIn(
  engine: () => Promise<Engine>,
  batch: readonly Answered[],
): Promise<ReadonlyMap<Answered, Interval | null>> {
  const open = batch.filter(isBrought).filter(({ ask }) => ask.endpoint.intervals.length === 0)
  if (open.length === 0) return new Map()
  const files = open.map(({ body }) => body.file)
  const spacings = await spacingsOf(await engine(), files)
  return new Map(open.map((one, i) => [one, spacings[i] ?? null]))
}

/** The same request in terms of another interval. */
function onGridOf(ask: Ask, interval: Interval, known: Instant, weekStart: Weekday): Ask {
  if (interval === ask.interval) return ask
  const { final } = horizonOf(ask.endpoint, interval, known, weekStart)
  const since = ceil(ask.settles.since, interval, weekStart)
  const until = Math.max(since, Math.min(ceil(ask.settles.until, interval, weekStart), final))
  return { ...ask, interval, settles: { since, until } }
}
