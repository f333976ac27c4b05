import world from './world.json' with { type: 'json' }
import type { Endpoint } from '../../catalog/catalogue.ts'
import { ceil, day, end, floor, hour, type Interval, minute } from '../../base/time.ts'
import { dateAt, type WorldAsset } from './assets.ts'
import { type Bodies, bodiesOf, nullBody, type PointBody } from './values.ts'
import { familyOf } from './families.ts'
import { type AssetMarket, marketOf } from './market.ts'
import { type Curve, hashAt, hashText, mix, octave, unit } from './noise.ts'

/** Identity of a series of the sandbox; dimensions that the endpoint does not take are null. */
export interface WorldSeries {
  readonly endpoint: Endpoint
  readonly asset: string
  readonly interval: Interval | null
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
  readonly seed: number
}

/** Point of the truth: `body` are the keys next to `t`, in order; instants are whole Unix seconds. */
interface WorldPoint {
  readonly t: number
  readonly body: PointBody
  readonly computedAt: number
  /** Time from which the API shows it. */
  readonly visibleAt: number
  /** Set for an estimate, which may change: then the API shows no `computed_at`. */
  readonly revised?: true
}

/** Inputs of the points of one series. */
interface SeriesSource {
  readonly interval: Interval
  /** The first interval start of its history, Unix seconds. */
  readonly start: number
  readonly bodies: Bodies
  readonly publication: Publication
  /** The seed of its points' hashes. */
  readonly points: number
  /** Whether its values are estimates, which are revised. */
  readonly revised: boolean
}

/** About 0.2 % of the points are missing for good, about 0.3 % are null. */
const gapShare = 0.002
const nullShare = 0.003

/** Computes the truth at `t`; undefined off the grid, before history, in a gap, or if the asset has no such metric. */
export function worldPoint(series: WorldSeries, t: number): WorldPoint | undefined {
  const source = sourceOf(series)
  if (!source || t < source.start || floor(t, source.interval) !== t) return undefined
  return pointAt(source, t, end(t, source.interval), Infinity)
}

/**
 * Yields the points of `[since, until)` that the API shows at `now`, ascending; the same ones as `worldPoint` returns.
 */
export function* worldPoints(series: WorldSeries, since: number, until: number, now: number): Iterable<WorldPoint> {
  const source = sourceOf(series)
  if (!source) return
  const { interval } = source
  const stop = Math.min(until, now)
  let t = ceil(Math.max(Math.floor(since), source.start), interval)
  while (t < stop) {
    const close = end(t, interval)
    const point = pointAt(source, t, close, now)
    if (point !== undefined && point.visibleAt <= now) yield point
    t = close
  }
}

/** Computes the first interval start of the series; undefined if the asset has no such metric. */
export const worldStart = (series: WorldSeries): number | undefined => sourceOf(series)?.start

/** Whether the endpoint knows the asset at all. */
export function assetHas(path: string, asset: WorldAsset): boolean {
  const { families, ids } = familyOf(path)
  if (ids && !ids.includes(asset.id)) return false
  return !families || families.includes(asset.family)
}

function pointAt(source: SeriesSource, t: number, close: number, now: number): WorldPoint | undefined {
  const hash = hashAt(source.points, t)
  const luck = unit(hash)
  if (luck < gapShare) return undefined
  let body = source.bodies(t, close)
  if (luck > 1 - nullShare) body = nullBody(body)
  const computedAt = source.publication(t, close, hash)
  const shown = { t, computedAt, visibleAt: computedAt }
  return source.revised
    ? { ...shown, body: estimateAt(body, hash, now - computedAt), revised: true }
    : { ...shown, body }
}

/**
 * Revisions of an estimate, in days after it was first published, and how far it may then still be from the last value.
 */
const estimates = [
  { from: 0, to: 0, off: 0.9 },
  { from: 25, to: 35, off: 0.3 },
  { from: 80, to: 100, off: 0 },
] as const

/**
 * Computes the published value of a number so many seconds after the first one: to a tenth, low at first more often
 * than high.
 */
function estimateAt(body: PointBody, hash: number, age: number): PointBody {
  const { v } = body
  if (typeof v !== 'number') return body
  const stage = estimates.filter(({ from, to }, k) => age >= (from + (to - from) * unit(mix(hash ^ (k + 11)))) * day)
  const k = Math.max(1, stage.length)
  const off = (estimates[k - 1]?.off ?? 0) * (unit(mix(hash ^ (k * 7919))) - 0.7)
  return { v: Math.round((v + off) * 10) / 10 }
}

const sources = new WeakMap<WorldSeries, SeriesSource | 'none'>()

function sourceOf(series: WorldSeries): SeriesSource | undefined {
  let source = sources.get(series)
  if (source === undefined) {
    source = makeSource(series) ?? 'none'
    sources.set(series, source)
  }
  return source === 'none' ? undefined : source
}

function makeSource(series: WorldSeries): SeriesSource | undefined {
  const { endpoint, seed } = series
  const market = marketOf(series.asset, seed)
  if (!market || !assetHas(endpoint.ask, market.asset)) return undefined
  const family = familyOf(endpoint.ask)
  const interval = series.interval ?? '24h'
  const params = Object.entries(endpoint.params).map(([key, value]) => `${key}=${value}`)
  const about = [family.key ?? endpoint.ask, ...params]
  const key = `${about.join('?')}/${series.asset}`
  const place = `${series.exchange ?? ''}/${series.network ?? ''}`
  const identity = hashText(
    `${endpoint.ask}?${params.join('&')}/${series.asset}/${interval}/${series.currency}/${place}`,
    seed,
  )
  const ground = {
    family,
    market,
    seed,
    key,
    share: shareOf(series, market),
    shift: shiftOf(series, key),
    usd: series.currency === 'usd',
  }
  const starts = [market.born, dateAt(family.since ?? '1970-01-01'), placeStart(series)]
  return {
    interval,
    start: ceil(Math.max(...starts), interval),
    bodies: bodiesOf(ground),
    publication: publicationOf(endpoint.ask, interval, identity),
    points: mix(identity),
    revised: family.revised === true,
  }
}

/** Share of the activity and first day of each network; an unlisted one is small and late. */
const networks = new Map((world.networks as [string, number, string][]).map(([name, ...facts]) => [name, facts]))

/**
 * Families with a chain of their own: their coins live on the default network; only few of them are wrapped elsewhere.
 */
const native = new Set(['bitcoin', 'utxo', 'chain'])

function networkShare(name: string, { asset }: AssetMarket): number {
  const share = networks.get(name)?.[0] ?? 2
  return name === 'eth' && native.has(asset.family) ? share * 25 : share
}

/** Computes the part of the whole that belongs to the series' exchange or network; `aggregated` is the whole. */
function shareOf({ endpoint, exchange, network, seed }: WorldSeries, market: AssetMarket): Curve {
  let part = 1
  if (network !== null && network !== 'aggregated') {
    const all = endpoint.networks.filter((name) => name !== 'aggregated').map((name) => networkShare(name, market))
    part *= networkShare(network, market) / all.reduce((sum, share) => sum + share, 0)
  }
  if (exchange !== null && exchange !== 'aggregated' && endpoint.exchanges.includes('aggregated')) {
    const all = endpoint.exchanges.filter((name) => name !== 'aggregated')
    const ranks = all.map((_, rank) => Math.pow(0.75, rank))
    part *= (ranks[all.indexOf(exchange)] ?? 0.01) / ranks.reduce((sum, share) => sum + share, 0)
  }
  if (part === 1) return () => 1
  const wobble = octave(hashText(`share/${exchange}/${network}/${market.asset.id}`, seed), 45 * day)
  return (at) => part * (1 + 0.08 * wobble(at))
}

/** Exchanges that quote the same surface differ by a little. */
function shiftOf({ exchange, seed }: WorldSeries, key: string): Curve {
  if (exchange === null || exchange === 'aggregated') return () => 0
  const wave = octave(hashText(`shift/${exchange}/${key}`, seed), 12 * day)
  return (at) => 0.05 * wave(at)
}

/** Computes the first day of an exchange or a network: exchanges open four months after one another. */
function placeStart({ endpoint, exchange, network }: WorldSeries): number {
  const opened = network === null || network === 'aggregated' ? 0 : dateAt(networks.get(network)?.[1] ?? '2024-01-01')
  if (exchange === null || exchange === 'aggregated') return opened
  const rank = Math.max(0, endpoint.exchanges.indexOf(exchange))
  return Math.max(opened, Date.UTC(2019, 4 * rank, 1) / 1000)
}

/**
 * Time when a metric's points are computed: some seconds after the interval's end, or at a clock time some days after
 * `t`.
 */
interface Timing {
  readonly match: RegExp
  /** Seconds of the day, for clock times; else counted from the end of the interval. */
  readonly clock?: number
  readonly from: number
  readonly to: number
}

const entityBased = { from: 10 * minute, to: 115 * minute }
const labelled = { from: 15 * minute, to: 100 * minute }

const timings: readonly Timing[] = [
  { match: /^(signals\/altcoin_index|market\/btc_dominance)_pit$/, clock: 10 * hour + 15 * minute, from: 0, to: 120 },
  { match: /^signals\/btc_sharpe_signal_pit$/, clock: 4 * hour, from: 0, to: 120 },
  { match: /^signals\/btc_bss_(indicator_|goldilocks_pit)/, clock: 4 * hour, from: 3 * minute, to: 95 * minute },
  { match: /^(signals|entities|distribution)\//, ...entityBased },
  { match: /^(addresses|indicators)\/accumulation_/, ...entityBased },
  { match: /coinjoin/, ...entityBased },
  { match: /^breakdowns\/|^addresses\/(loss|profit)_count/, ...labelled },
  { match: /^(bridges|protocols)\/|_bridges_|_defi_/, ...labelled },
  { match: /cost_basis_distribution/, from: hour, to: 5 * hour },
  { match: /marketcap_altcoins|apac_/, from: 5 * hour, to: 11 * hour },
  // Two slow ones: later than a cautious guess of half an hour, so that such a guess can be contradicted.
  { match: /^indicators\/asol_/, from: 22 * minute, to: 45 * minute },
  { match: /contract_calls_internal/, from: 12 * minute, to: 38 * minute },
]

const usual = { from: 2 * minute, to: 10 * minute }
const usualShort = { from: 90, to: 14 * minute }

/** Metrics that were published before most others; the rest began between 2021 and the middle of 2023. */
const early = /^(supply\/current|addresses\/(active_count|non_zero)|blockchain\/|options\/|derivatives\/)/
const earlyLaunch = Date.UTC(2019, 2, 1) / 1000
const firstLaunch = Date.UTC(2021, 0, 1) / 1000
const launchSpan = 900

/**
 * Computes the instant (Unix seconds) from which a metric is published; its earlier history was computed in one batch
 * then.
 */
export function launchOf(path: string): number {
  const hash = hashText(`launch/${path}`)
  if (early.test(path)) return earlyLaunch + (hash % 240) * day + 9 * hour
  return firstLaunch + (hash % launchSpan) * day + 9 * hour
}

/** Function from `(t, end of its interval, hash of the point)` to the whole second at which the point is computed. */
type Publication = (t: number, close: number, hash: number) => number

const lateShare = 0.01

/**
 * Builds the publication of a series; never before the interval's end nor before a clock time, about 1 % hours to days
 * late.
 */
export function publicationOf(path: string, interval: Interval, series: number): Publication {
  const timing = timings.find((row) => row.match.test(path)) ?? {
    ...(interval === '10m' ? usualShort : usual),
    clock: undefined,
  }
  const { clock, from } = timing
  const span = timing.to - from + 1
  const launch = launchOf(path)
  const batch = launch + (series % (6 * hour))
  return (t, close, hash) => {
    const base = clock === undefined ? close : Math.max(close, Math.floor(t / day) * day + day + clock)
    const delay = mix(hash ^ 0x27d4eb2f)
    let at = base + from + Math.floor(unit(delay) * span)
    const late = mix(delay ^ 0x165667b1)
    // An hour to five days, short delays more often.
    if (unit(late) < lateShare) at += Math.floor(hour * Math.pow(120, unit(mix(late))))
    return at < launch ? Math.max(batch, base) : at
  }
}
