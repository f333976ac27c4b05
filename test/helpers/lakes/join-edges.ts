import { writeFileSync } from 'node:fs'
import { end, type Interval, step } from '../../../src/base/time.ts'
import { iso } from '../pit-oracle.ts'
import { micros } from '../instants.ts'
import type { LakeCommit, PointRow } from './lake-recipe.ts'

/*
 * The lake that readers are asked about, with everything that makes a join wrong: ties, also of instants that only meet
 * when they are rounded to milliseconds, points later than their successors, history that came 200 days later, nulls,
 * several currencies, exchanges and a network, months and weeks, a registry with removals. In three commits.
 */

/** A series of which points are made. */
interface Series {
  readonly metric: string
  readonly interval: Interval
  readonly asset: string
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
}

/** A question that every engine is asked; the options are those of pit_join, durations in seconds. */
interface Ask {
  readonly metric: string
  readonly interval: Interval
  readonly options: Readonly<Record<string, string | number | boolean>>
}

const supply = 'supply/current_pit'
const plain = 'indicators/sopr_adjusted_pit'
const futures = 'derivatives/futures_open_interest_cash_margin_sum_pit'
const network = 'addresses/active_count_pit'
const assets = ['BTC', 'ETH', 'A', 'B_C']

const kinds: readonly (readonly [string, Interval, Partial<Series>, number])[] = [
  [supply, '24h', { currency: 'native' }, 120],
  [supply, '24h', { currency: 'usd' }, 300],
  [plain, '24h', {}, 300],
  [plain, '1h', {}, 200],
  [plain, '10m', {}, 200],
  [plain, '1w', {}, 60],
  [plain, '1month', {}, 30],
  [futures, '24h', { currency: 'native', exchange: 'aggregated' }, 60],
  [futures, '24h', { currency: 'usd', exchange: 'aggregated' }, 60],
  [futures, '24h', { currency: 'usd', exchange: 'exchange_2' }, 120],
  [network, '24h', { network: 'eth' }, 120],
]

const starts: Readonly<Partial<Record<Interval, string>>> = {
  '10m': '2024-02-28T12:00:00Z',
  '1h': '2024-02-25T00:00:00Z',
  '24h': '2023-11-20T00:00:00Z',
  '1w': '2023-11-20T00:00:00Z',
  '1month': '2023-01-01T00:00:00Z',
}

const commits = ['2031-01-01T00:00:00.000Z', '2031-02-01T00:00:00.001Z', '2031-03-01T00:00:00.500Z'] as const

/** What is asked; each with its own decisions. */
const asksOf = (arrival: string): readonly Ask[] => [
  { metric: supply, interval: '24h', options: { currency: 'usd' } },
  { metric: supply, interval: '24h', options: {} },
  { metric: supply, interval: '24h', options: { currency: 'usd', latency: 900 } },
  { metric: supply, interval: '24h', options: { currency: 'usd', max_age: 172_800 } },
  { metric: supply, interval: '24h', options: { currency: 'usd', skip_nulls: true } },
  { metric: supply, interval: '24h', options: { currency: 'usd', backfill: 'rule' } },
  { metric: plain, interval: '24h', options: { as_of: arrival } },
  { metric: plain, interval: '24h', options: { observed_as_of: commits[1] } },
  { metric: plain, interval: '1h', options: { latency: 0.0005 } },
  { metric: plain, interval: '10m', options: { max_age: 1800.000001 } },
  { metric: plain, interval: '1w', options: { max_age: 864_000 } },
  { metric: plain, interval: '1month', options: { max_age: 3_456_000, backfill: 'rule' } },
  { metric: futures, interval: '24h', options: { currency: 'usd', exchange: 'exchange_2' } },
  { metric: futures, interval: '24h', options: {} },
  { metric: network, interval: '24h', options: { currency: 'usd' } },
  {
    metric: plain,
    interval: '24h',
    options: {
      as_of: '2024-09-01T12:00:00.000Z',
      observed_as_of: commits[0],
      backfill: 'rule',
      latency: 3600,
      max_age: 259_200,
      skip_nulls: true,
    },
  },
]

/** What was put in and what is asked; instants in Unix microseconds, asset and instant of each decision. */
export function joinEdgeFacts(decisionsEach: number) {
  const points = joinEdgeStages.flat().flatMap(({ at, points: own = [] }) =>
    own.map(({ t, available_at, available_rule_at = available_at, interval, ...rest }) => ({
      ...rest,
      interval,
      t: micros(t),
      end: end(micros(t) / 1e6, interval) * 1e6,
      observed_at: micros(at),
      available_at: micros(available_at),
      available_rule_at: micros(available_rule_at),
    })),
  )
  const events = joinEdgeStages
    .flat()
    .flatMap(({ at, tables = {} }) =>
      Object.entries(tables).flatMap(([table, rows]) => rows.map((row) => ({ at: micros(at), table, ...row }))),
    )
  const asks = asksOf(arrivalBefore('2024-07-10')).map((ask, n) => ({
    ...ask,
    decisions: decisionsOf(ask, decisionsEach, n + 1),
  }))
  return { points, events, asks, commits: commits.map(micros) }
}

/** Writes it for those that answer without any of our code. */
export function writeJoinEdgeFacts(path: string, decisionsEach: number): void {
  writeFileSync(path, JSON.stringify(joinEdgeFacts(decisionsEach)))
}

/**
 * When the newest point that arrived before an instant did so, rounded up to a millisecond: an edge that a cut must
 * hold.
 */
function arrivalBefore(text: string): string {
  const known = joinEdgeStages
    .flatMap((steps) => steps.flatMap(({ points = [] }) => points))
    .filter((point) => point.metric === plain && point.interval === '24h' && micros(point.available_at) < micros(text))
    .toSorted((a, b) => micros(b.t) - micros(a.t))
  return new Date(Math.ceil(micros(known[0]?.available_at ?? text) / 1000)).toISOString()
}

function makeStages(): LakeCommit[][] {
  const random = chance(7)
  const points: { readonly row: PointRow; readonly stage: number }[] = []
  for (const [metric, interval, own, count] of kinds)
    for (const asset of assets) {
      const series = { metric, interval, asset, currency: null, exchange: null, network: null, ...own }
      for (const row of pointsOf(series, count, random)) points.push({ row, stage: [0, 0, 0, 1, 2][random(5)] ?? 0 })
    }
  const registry = pollsOf(random)
  return commits.map((at, n) => [
    ...(n === 0 ? registry : []),
    { at, points: points.filter(({ stage }) => stage === n).map(({ row }) => row) },
  ])
}

/** Whole numbers below a bound, the same in every run. */
function chance(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Of a second's microseconds those at the edges of a millisecond, several of which are rounded up to the same one. */
const edges = [0, 1, 499, 500, 501, 999, 1000, 1001, 1499, 1500, 1501]

function pointsOf(series: Series, count: number, random: (below: number) => number): PointRow[] {
  const first = micros(starts[series.interval] ?? '') / 1e6
  const rows: PointRow[] = []
  for (let n = 0; n < count; n++) {
    if (random(12) === 0) continue
    const t = step(first, series.interval, n)
    const rule = end(t, series.interval) * 1e6 + 600_000_000 + (edges[random(edges.length)] ?? 0)
    const length = end(t, series.interval) - t
    const backfilled = n < count / 6
    // Some wait for their successors and come with them, some come a little after, some days later.
    const late = [0, 0, 0, 0, 0, 1, 2, 3][random(8)] ?? 0
    const odd = random(10) === 0 ? random(length * 1_000_000) : 0
    const available = backfilled ? rule + 200 * 86_400_000_000 : rule + late * length * 1_000_000 + odd
    const kind = random(9)
    rows.push({
      ...series,
      t: iso(t * 1e6),
      available_at: iso(available),
      available_rule_at: iso(backfilled ? rule : available),
      basis: backfilled ? 'provider' : 'assumed',
      v: kind < 2 ? null : (random(2_000_001) - 1_000_000) / 7,
      o: kind === 1 ? `{"n":${n}}` : null,
    })
  }
  return rows
}

/** Decisions of every point at, just before and just after its arrival, at edges of ages, at midnights, and nowhere. */
function decisionsOf(ask: Ask, count: number, seed: number): (readonly [string | null, number | null])[] {
  const random = chance(seed * 7919)
  const own = joinEdgeStages
    .flat()
    .flatMap(({ points = [] }) => points)
    .filter(({ metric, interval }) => metric === ask.metric && interval === ask.interval)
  const shifts = [-1500, -1000, -501, -500, -499, -1, 0, 1, 499, 500, 501, 999, 1000, 1001, 1500]
  const option = (name: string): number => Math.round(Number(ask.options[name] ?? 0) * 1e6)
  return Array.from({ length: count }, () => {
    const point = own[random(own.length)]
    const kind = random(20)
    if (point === undefined || kind === 0) return [null, micros('2024-03-01')] as const
    if (kind === 1) return [random(2) === 0 ? 'nobody' : point.asset, null] as const
    const shift = (shifts[random(shifts.length)] ?? 0) + option('latency')
    if (kind < 11) return [point.asset, micros(point.available_at) + shift] as const
    if (kind < 14) return [point.asset, micros(point.available_rule_at ?? point.available_at) + shift] as const
    const until = end(micros(point.t) / 1e6, point.interval) * 1e6 + option('max_age')
    if (kind < 17) return [point.asset, until + (random(3) - 1)] as const
    return [point.asset, micros(point.t) + random(400) * 86_400_000_000] as const
  })
}

const product = (n: number, more: object): object => ({
  symbol: `P${n}`,
  issuer_id: `i${n % 5}`,
  asset_id: `a${n % 7}`,
  ...more,
})
const pollAt = (poll: number): string => iso(micros('2024-11-01T06:00:00.123Z') + poll * 133_200_001_000)

/** Fourteen polls of forty products: retirements, removals, returns, and issuers and assets that change their names. */
function pollsOf(random: (below: number) => number): LakeCommit[] {
  const there = new Set<string>()
  const row = (id: string, op: string, more: object): Readonly<Record<string, unknown>> => {
    there.add(id)
    return { id, op, closed_by: null, inferred: false, record: '{}', ...more }
  }
  const gone = (id: string): Readonly<Record<string, unknown>> => {
    there.delete(id)
    return { id, op: null, closed_by: 'deleted', inferred: false, record: null }
  }
  return Array.from({ length: 14 }, (_, poll): LakeCommit => {
    const named = (id: string, more: object): readonly Readonly<Record<string, unknown>>[] => {
      if (poll > 0 && random(6) > 0) return []
      if (there.has(id) && random(8) === 0) return [gone(id)]
      return [row(id, poll === 0 ? 'snapshot' : 'updated', { name: `${id} of poll ${poll}`, ...more })]
    }
    const status = ['active', 'inactive'][random(2)]
    const tables = {
      'history.products': Array.from({ length: 40 }, (_p, n) => named(`p${n}`, product(n, { status }))).flat(),
      'history.issuers': Array.from({ length: 5 }, (_i, n) => named(`i${n}`, { status, jurisdiction: 'LI' })).flat(),
      'history.assets': Array.from({ length: 7 }, (_a, n) =>
        named(`a${n}`, { asset_class: 'stocks', ticker: `T${poll}` }),
      ).flat(),
    }
    const snapshots = [{ snapshot_date: '2024-11-01', resource: 'products', base: 'b', rows: 40 }]
    return { at: pollAt(poll), tables: { ...tables, ...(poll === 0 && { snapshots }) } }
  })
}

/** The commits of the lake, in the three stages after each of which it is published. */
export const joinEdgeStages: readonly (readonly LakeCommit[])[] = makeStages()
