import { loadCatalogue } from '../../src/catalog/load.ts'
import { expand, type Wanted } from '../../src/catalog/series.ts'
import { LakeError } from '../../src/base/errors.ts'
import type { WindowAnswer } from '../../src/lake/ledger/entry.ts'
import { day, end, floor, formatInstant, type Instant, type Interval, step } from '../../src/base/time.ts'
import type { LearntArrivals } from '../../src/maintenance/watch/next-points.ts'
import type { WatchJobs } from '../../src/maintenance/watch/jobs.ts'
import { watch } from '../../src/maintenance/watch/watch.ts'
import { cataloguedRule } from '../helpers/hand-rules.ts'
import { endOf, ruleInstant, spellOf, startAfter, startAt } from '../helpers/time-twin.ts'

type WatchEvent = Parameters<Parameters<typeof watch>[2]['log']>[0]

type Look = Awaited<ReturnType<WatchJobs['look']>>

const catalogue = loadCatalogue()
/** A Tuesday at noon, when every simulated watch begins. */
export const begin = Date.UTC(2026, 1, 10, 12) / 1000
const learnt: LearntArrivals = { observations: 500, lag: { early: 100, usual: 250, late: 580 } }

/** One request to the provider for one series. */
interface Poll {
  readonly id: string
  readonly at: Instant
  readonly brought: number
}

/** A provider and a lake as plain data, by the same rules as the real ones; its clock is moved by whoever waits. */
export class Place implements WatchJobs {
  now = begin
  version = 1
  tidiedVersion = 1
  credits = 0
  creditsOn = 0
  readonly polls: Poll[] = []
  readonly vain: Poll[] = []
  readonly syncs: Instant[] = []
  readonly actions: Instant[] = []
  /** When each point was first seen, by `series t`. */
  readonly seen = new Map<string, Instant>()
  readonly rows = new Map<string, { reached: Instant; tail: WindowAnswer | null }>()
  readonly price: (one: Wanted) => number
  readonly publishes: (one: Wanted, t: Instant) => Instant
  readonly wanted: readonly Wanted[]
  lag: LearntArrivals | undefined = learnt
  /** What stands in the way now. */
  readonly broken = new Set<string>()
  /** Series that are refused, and since when. */
  readonly refused = new Map<string, Instant>()
  fault: (now: Instant) => 'unreachable' | 'silent' | 'quota' | 'busy' | null = () => null

  constructor(wanted: readonly Wanted[], publishes: Place['publishes'], price: Place['price'] = () => 1) {
    this.wanted = wanted
    this.publishes = publishes
    this.price = price
    for (const { series } of wanted)
      this.rows.set(series.id, { reached: floor(begin - day, series.interval ?? '24h'), tail: null })
  }

  async look(dayBegin: Instant): Promise<Look> {
    const held = new Map(
      this.wanted.map(({ series, endpoint }) => {
        const { reached, tail } = this.rows.get(series.id) ?? { reached: 0, tail: null }
        const stored: WindowAnswer = {
          since: 0,
          until: reached,
          state: 'covered',
          reason: null,
          asked_at: reached,
          request: null,
        }
        const answers = tail === null ? [stored] : [stored, tail]
        return [series.id, { metric: endpoint.path, points: 9, answers, settled: null }]
      }),
    )
    const spentToday = this.creditsOn === dayBegin ? this.credits : 0
    const { version, wanted, tidiedVersion: viewsVersion } = this
    return {
      version,
      digest: null,
      wanted,
      held,
      registryPolled: this.syncs.at(-1) ?? null,
      viewsVersion,
      spentToday,
      watchesRegistry: true,
    }
  }

  async lags(): Promise<ReadonlyMap<string, LearntArrivals>> {
    const { lag } = this
    return new Map(lag ? this.wanted.map((one) => [`${one.endpoint.path} ${one.series.interval}`, lag]) : [])
  }

  #stands(): Awaited<ReturnType<WatchJobs['sync']>> | null {
    this.actions.push(this.now)
    const fault = this.fault(this.now)
    if (fault === null) return null
    if (fault === 'busy') throw new LakeError('busy', { subject: 'another job', next: 'wait' })
    const error = new LakeError('incomplete', { subject: `the provider says ${fault}`, next: 'wait' })
    const resumeAt = fault === 'quota' ? Math.floor(this.now / day) * day + day : null
    return {
      version: this.version,
      requests: 1,
      brought: 0,
      cut: fault !== 'silent',
      inVain: fault === 'silent',
      resumeAt,
      error,
    }
  }

  async fetch(series: ReadonlySet<string>, credits: number | null): Promise<Awaited<ReturnType<WatchJobs['sync']>>> {
    const stopped = this.#stands()
    for (const id of series) if (stopped !== null) this.vain.push({ id, at: this.now, brought: 0 })
    if (stopped !== null) return stopped
    if ([...series].every((id) => this.broken.has(id)))
      return { version: this.version, requests: 1, brought: 0, cut: false, inVain: true, resumeAt: null, error: null }
    let brought = 0
    let requests = 0
    for (const one of this.wanted.filter(({ series: { id } }) => series.has(id) && !this.broken.has(id))) {
      const today = Math.floor(this.now / day) * day
      if (this.creditsOn !== today) [this.creditsOn, this.credits] = [today, 0]
      if (credits !== null && requests + this.price(one) > credits) continue
      this.credits += this.price(one)
      requests += this.price(one)
      brought += this.#answer(one)
    }
    if (brought > 0) this.version++
    this.now += 2
    return { version: this.version, requests, brought, cut: false, inVain: false, resumeAt: null, error: null }
  }

  #answer(one: Wanted): number {
    const { series, endpoint } = one
    const interval = series.interval ?? '24h'
    let { reached } = this.rows.get(series.id) ?? { reached: 0 }
    let brought = 0
    const since = this.refused.get(series.id)
    if (since !== undefined) {
      const reason = `refused since ${formatInstant(since)}: 400: no`
      const window = { since: reached, until: Math.max(reached + 1, dueUntil(endpoint.path, interval, this.now)) }
      const tail = { ...window, state: 'failed', reason, asked_at: this.now, request: null } as const
      this.rows.set(series.id, { reached, tail })
      this.polls.push({ id: series.id, at: this.now, brought })
      return 0
    }
    for (let t = this.#oldest(series.id, reached, interval); end(t, interval) <= this.now; t = step(t, interval, 1)) {
      if (this.publishes(one, t) > this.now || this.seen.has(`${series.id} ${t}`)) continue
      this.seen.set(`${series.id} ${t}`, this.now)
      reached = Math.max(reached, end(t, interval))
      brought++
    }
    const settled = dueUntil(endpoint.path, interval, this.now)
    const missing = { state: 'covered', reason: 'pending', asked_at: this.now, request: null } as const
    this.rows.set(series.id, {
      reached,
      tail: settled > reached ? { since: reached, until: settled, ...missing } : null,
    })
    this.polls.push({ id: series.id, at: this.now, brought })
    return brought
  }

  /** Holes ride along: what is missing before the newest point is asked for with it. */
  #oldest(id: string, reached: Instant, interval: Interval): Instant {
    let t = step(reached, interval, -60)
    while (t < reached && (t < begin - day || this.seen.has(`${id} ${t}`))) t = step(t, interval, 1)
    return t
  }

  async sync(): Promise<Awaited<ReturnType<WatchJobs['sync']>>> {
    const stopped = this.#stands()
    if (stopped !== null) return stopped
    this.syncs.push(this.now)
    return { version: this.version, requests: 1, brought: 0, cut: false, inVain: false, resumeAt: null, error: null }
  }

  async tidy(): Promise<number> {
    this.actions.push(this.now)
    this.tidiedVersion = this.version
    this.now += 3
    return this.version
  }

  async watch(until: Instant, more: { creditsPerDay?: number; onWait?: () => void } = {}): Promise<WatchEvent[]> {
    const events: WatchEvent[] = []
    const stop = new AbortController()
    await watch(
      {
        weekStart: 'monday',
        price: ({ series, endpoint }) => this.price({ series, endpoint, since: null, until: null }),
        creditsPerDay: more.creditsPerDay ?? null,
      },
      this,
      {
        now: () => this.now * 1000,
        sleep: async (ms) => {
          this.now += ms / 1000
          more.onWait?.()
          if (this.now >= until) stop.abort()
        },
        signal: stop.signal,
        log: (event) => void events.push(event),
      },
    )
    return events
  }
}

/** The end of the newest interval whose point is due by the rule. */
function dueUntil(path: string, named: Interval, now: Instant): Instant {
  const interval = spellOf(named)
  const rule = cataloguedRule(path, interval)
  let t = startAt(now, interval)
  while (ruleInstant([rule], t, interval) > now) t = startAfter(t, interval, -1)
  return endOf(t, interval)
}

/** A series of each interval. */
export function series(...intervals: readonly Interval[]): Wanted[] {
  return intervals.flatMap((interval) => {
    const [first] = expand(catalogue, [
      { assets: ['BTC'], paths: ['addresses/active_count_pit'], intervals: [interval] },
    ])
    return first ? [first] : []
  })
}

/** 100 to 579 seconds after the interval, by a number drawn from the point. */
const lagOf = ({ series: { id } }: Wanted, t: Instant): number => 100 + (((t / 600 + id.length) * 7919) % 480)
/** When points are published where nothing is amiss. */
export const usual = (one: Wanted, t: Instant): Instant => end(t, one.series.interval ?? '24h') + lagOf(one, t)
