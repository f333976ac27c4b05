import type { Catalogue } from '../../../src/catalog/catalogue.ts'
import type { Link } from '../../../src/catalog/schema.ts'
import { seriesId } from '../../../src/catalog/series.ts'
import type { Interval } from '../../../src/base/time.ts'
import type { RegistryDeps } from '../../../src/sources/registry/run.ts'
import { later } from '../calendar.ts'
import { requestRow } from './drafts.ts'
import { type RegistryRig, withRegistryRig } from '../registry-rig.ts'
import { catalogue as builtIn } from '../sandbox-client.ts'
import { SmallRegistry } from '../small-registry.ts'
import { randomOf } from '../random.ts'
import { isoOf, micros } from '../instants.ts'
import { makeLake } from './make-lake.ts'
import { makeViews } from '../views.ts'
import type { LakeCommit, PointRow } from './lake-recipe.ts'

/*
 * A lake with rows in every view, on both sides of most instants: points that come on time, late, together and long
 * after their interval, of every kind of value and dimension; a registry polled by its own jobs, with records that
 * change, go and come back; links of every basis; and what the ledger tells. Two months of 2026, drawn from a seed.
 */

/** A lake, what it was made of, and when. */
export interface EveryViewLake {
  readonly root: string
  readonly points: readonly PointRow[]
  /** The instant of each commit, in microseconds. */
  readonly commits: readonly number[]
}

const link: Link = { metricAsset: '', productId: null, chainId: null, address: null, from: null, until: null }

/** The built-in catalogue with two links of the kinds that a file can tell. */
export const catalogue: Catalogue = {
  ...builtIn,
  links: [
    {
      ...link,
      metricAsset: 'MAP',
      productId: 'p3',
      from: Date.UTC(2026, 1, 1) / 1000,
      until: Date.UTC(2026, 6) / 1000,
    },
    { ...link, metricAsset: 'HAND', chainId: 'solana', address: 'CaseMatters' },
  ],
}

const at = (day: number, hour = 0): number => Date.UTC(2026, 1, day, hour) * 1000
const hour = 3_600_000_000
const day = 24 * hour

interface Shape extends Pick<PointRow, 'metric' | 'interval' | 'currency' | 'exchange' | 'network'> {
  readonly assets: readonly string[]
  readonly first: number
  readonly slots: number
  readonly objects?: boolean
}

/** Metrics of the names below, as the joins are asked for them. */
export const metrics = {
  everyInterval: 'addresses/min_1_count_pit',
  supply: 'supply/current_pit',
  nested: 'indicators/cost_basis_distribution_quantiles_pit',
  plain: 'indicators/sopr_adjusted_pit',
  exchanges: 'derivatives/futures_open_interest_cash_margin_sum_pit',
  revised: 'blockchain/block_count_pit',
  bars: 'own/bars',
  derived: 'feature/level',
} as const

const both = ['BTC', 'ETH']
const shapes: readonly Shape[] = [
  { metric: metrics.everyInterval, interval: '10m', network: 'eth', assets: both, first: at(25), slots: 250 },
  { metric: metrics.everyInterval, interval: '1h', network: 'eth', assets: both, first: at(16), slots: 264 },
  { metric: metrics.everyInterval, interval: '24h', network: 'eth', assets: both, first: at(-3), slots: 50 },
  { metric: metrics.everyInterval, interval: '24h', network: 'sol', assets: ['BTC'], first: at(3), slots: 40 },
  { metric: metrics.everyInterval, interval: '1w', network: 'eth', assets: both, first: at(-6), slots: 8 },
  { metric: metrics.everyInterval, interval: '1month', network: 'eth', assets: both, first: at(-30), slots: 3 },
  { metric: metrics.plain, interval: '24h', assets: ['BTC', 'ETH', 'ONDO'], first: at(1), slots: 40 },
  { metric: metrics.nested, interval: '24h', assets: both, first: at(2), slots: 40, objects: true },
  ...['usd', 'native'].flatMap((currency): Shape[] => [
    { metric: metrics.supply, interval: '24h', currency, assets: [...both, 'TOK'], first: at(1), slots: 40 },
    { metric: metrics.supply, interval: '1w', currency, assets: both, first: at(-6), slots: 8 },
    { metric: metrics.supply, interval: '1month', currency, assets: both, first: at(-30), slots: 3 },
    ...['aggregated', 'exchange_1'].map((exchange): Shape => {
      const place = { metric: metrics.exchanges, interval: '24h', first: at(4), slots: 38 } as const
      return { ...place, currency, exchange, assets: ['BTC'] }
    }),
  ]),
]

/**
 * How long after its end a point is known: mostly soon, else late, together with others, or later than its successors.
 */
function delayOf(random: () => number, interval: Interval, whole: boolean): number {
  const kind = random()
  const much = random()
  if (kind < 0.72) return 600_000_000 + (interval === '24h' ? Math.floor(much * 3) * 60_000_000 : 0)
  if (kind < 0.82) return 0
  if (kind < 0.9) return interval === '10m' ? Math.floor(much * 20) * 600_000_000 : Math.ceil(much * 12) * hour
  return whole ? 4 * hour + 1 : Math.ceil(much * 6) * day + 1
}

const values = ['{"a":1,"b":null}', '{"a":{"x/y":[1,null,"t"]}}', '[1,[2]]', '{"a":-2.5,"c":[{"d":4}]}']

function pointsOf(shape: Shape, random: () => number): PointRow[] {
  const { assets, first, slots, objects = false, ...series } = shape
  return assets.flatMap((asset) =>
    Array.from({ length: slots }, (_, n): PointRow[] => {
      const t = later(first, shape.interval, n)
      const end = later(t, shape.interval)
      const lost = random() < 0.02
      const backfilled = random() < 0.06
      const value = random()
      // One asset has every part that a coarser interval is made of.
      const whole = asset === 'BTC' && series.network === 'eth'
      const known = end + delayOf(random, shape.interval, whole)
      if (lost && !whole) return []
      const number = value < 0.06 && !whole ? null : Math.floor(value * 2000 - 700) / 4
      return [
        {
          ...series,
          asset,
          t: isoOf(t),
          available_at: isoOf(backfilled && !whole ? known + 12 * day : known),
          available_rule_at: isoOf(known),
          v: objects ? null : number,
          o: objects && value > 0.08 ? (values[Math.floor(value * 97) % values.length] ?? null) : null,
          basis: ['assumed', 'provider', 'stated', 'observed'][Math.floor(value * 31) % 4] ?? 'assumed',
          ...(value > 0.7 && { extra: `{"flag":${n}}` }),
        },
      ]
    }).flat(),
  )
}

/** Points of a revisable series: some have further values, which come days later. */
function revisedPoints(random: () => number): PointRow[] {
  const shape: Shape = { metric: metrics.revised, interval: '24h', assets: both, first: at(2), slots: 36 }
  return pointsOf(shape, random).flatMap((point) => {
    const more = Array.from({ length: Math.floor(random() * 3) }, (_, n): PointRow => {
      const known = isoOf(micros(point.available_at) + (n + 1) * day + Math.floor(random() * 12) * hour)
      const { available_rule_at: _rule, extra: _extra, ...rest } = point
      return { ...rest, available_at: known, v: random() < 0.1 ? null : Math.floor(random() * 50), basis: 'observed' }
    })
    return [point, ...more]
  })
}

/** How bars of somebody's own are mapped: their `open` is known when they begin. */
const barsRow = {
  mapping: { components: ['open', 'close'], available: 'open=start,close=end+1h' },
  files: [],
  intervals: ['24h' as const],
  currencies: [],
  exchanges: [],
  networks: [],
}

/** Those bars: most are known by the rule, some came late, and then as a whole. */
function barPoints(random: () => number): PointRow[] {
  return both.flatMap((asset) =>
    Array.from({ length: 38 }, (_, n): PointRow => {
      const t = at(2 + n)
      const late = random() < 0.15
      const close = random() < 0.1 ? 'null' : String(Math.floor(random() * 90) / 4)
      const known = isoOf(t + day + hour + (late ? Math.ceil(random() * 60) * hour : 0))
      const o = `{"open":${Math.floor(random() * 90) / 4},"close":${close}}`
      const own = { metric: metrics.bars, asset, interval: '24h' as const, t: isoOf(t), v: null, o }
      return { ...own, available_at: known, available_rule_at: known, basis: late ? 'observed' : 'stated' }
    }),
  )
}

/** A feature's points tell themselves when they were known; its version is the network. */
const derivedRow = {
  ...barsRow,
  mapping: { network: '=v1', timestamp: 'interval_end', available: 'end+900s', available_at: 'known' },
  networks: ['v1'],
}

/** Each point of it is known a quarter of an hour after its instant, whenever it was computed. */
function derivedPoints(random: () => number): PointRow[] {
  const place = { metric: metrics.derived, interval: '24h', network: 'v1', assets: both } as const
  const known = ({ t }: PointRow): string => isoOf(micros(t) + day + 900_000_000)
  const points = pointsOf({ ...place, first: at(2), slots: 38 }, random)
  return points.map(({ available_rule_at: _rule, ...one }) => ({ ...one, available_at: known(one), basis: 'provider' }))
}

const listed = (id: string, symbol: string, addresses: object | null = null) => ({
  id,
  symbol,
  addresses: addresses === null ? null : JSON.stringify(addresses),
  record: JSON.stringify({ id, symbol }),
})

const listings = [
  [listed('BTC', 'BTC'), listed('ETH', 'weth'), listed('MAP', 'MAP'), listed('HAND', 'HAND')],
  [listed('ETH', 'steth'), listed('TOK', 'TOK', [{ chain_id: 'eip155:1', address: '0xAB' }])],
  [listed('BTC', 'TBTC'), listed('ONDO', 'ONDO')],
]

/** What one commit of the metrics API brings beside points, all of it told by the number of the commit. */
function stepOf(number: number, when: number, points: readonly PointRow[]): LakeCommit {
  const series = { metric: metrics.plain, asset: 'BTC', interval: '24h', settled: '24h' } as const
  const row = { ...series, currency: null, exchange: null, network: null, params: {} }
  const id = seriesId({ ...row })
  const asked_at = Math.floor(when / 1_000_000) - 1
  const request = `r${number}`
  const window = { series: id, since: number * 86_400, until: (number + 2) * 86_400, asked_at, request }
  const violation = { series: id, t: number * 86_400, kind: 'value', stored: '1', offered: `${number + 2}` }
  return {
    at: isoOf(when),
    points,
    tables: { metric_assets: listings[number] ?? [] },
    series: [{ ...row, id }],
    coverage: [{ ...window, state: 'covered' as const, reason: number % 2 === 0 ? 'gap' : null }],
    violations: [{ ...violation, stored_at: asked_at, offered_at: asked_at, request }],
    state: {
      revisable: [metrics.revised],
      [metrics.bars]: barsRow,
      [metrics.derived]: derivedRow,
      step: `${number}`,
    },
    findings: [{ series: id, t: number * 86_400, kind: 'before_end', detail: { number }, at: asked_at }],
    requests: [requestRow(request, { run: `run-${number}`, asked_at: asked_at * 1_000_000 })],
  }
}

const document = (n: number) => ({ title: `Document ${n}`, url: `https://example.com/${n}` })
const listing = (n: number) => ({ venue: `v${n % 3}`, pair: `T${n}/USD` })

/** The registry as its first poll finds it. */
function firstWorld(): SmallRegistry {
  const registry = new SmallRegistry({ assets: 'asset', venues: 'venue', derivatives: 'derivative' })
  const { world } = registry
  const symbols = ['btc', 'WETH', 'ONDO', 'P3', 'tok', 'STETH', 'TBTC', 'SAME']
  for (const [n, symbol] of symbols.entries())
    world.put('products', `p${n}`, {
      name: `Token ${n}`,
      symbol,
      status: 'active',
      issuer_id: `i${n}`,
      asset_id: `a${n % 4}`,
      documents: [document(n)],
      listings: [listing(n)],
    })
  for (let n = 0; n < 4; n++)
    world.put('assets', `a${n}`, { name: `Asset ${n}`, asset_class: 'stocks', ticker: `T${n}` })
  for (let n = 0; n < 3; n++) {
    world.put('venues', `v${n}`, { name: `Venue ${n}`, venue_type: 'cex', listings: [listing(n)] })
    world.put('derivatives', `x${n}`, { symbol: `X${n}-PERP` })
    world.put('issuers', `i${n}`, {
      name: `Issuer ${n}`,
      status: 'active',
      custodian: 'not disclosed',
      documents: [document(n)],
    })
  }
  deploy(registry, 'd4', { product_id: 'p4', chain_id: '1', address: '0xab' })
  deploy(registry, 'd5', { product_id: 'p5', chain_id: 'solana', address: 'CaseMatters' })
  return registry
}

function deploy(registry: SmallRegistry, id: string, more: Readonly<Record<string, string>>): void {
  const row = { status: 'active', verification_status: 'verified', provenance: [{ kind: 'explorer', n: 1 }] }
  registry.world.put('deployments', id, { ...row, ...more })
}

/** What happens in the registry before each of its polls: every table changes, grows and shrinks somewhere. */
const events: readonly ((registry: SmallRegistry) => void)[] = [
  () => undefined,
  (registry) => {
    const { world } = registry
    world.put('products', 'p7', {
      name: 'Token 7',
      symbol: 'BTC',
      status: 'inactive',
      issuer_id: 'i1',
      listings: [listing(9)],
    })
    world.put('products', 'p2', null)
    world.put('issuers', 'i1', { name: 'Issuer One', status: 'inactive', jurisdiction: 'CH', documents: [document(9)] })
    world.put('assets', 'a3', { name: 'Asset 3', asset_class: 'credit', ticker: 'NEW' })
    world.put('venues', 'v1', null)
    world.put('derivatives', 'x1', { symbol: 'X1-FUT' })
    deploy(registry, 'd4', { product_id: 'p4', chain_id: '1', address: '0xab', status: 'deprecated' })
  },
  (registry) => {
    registry.world.put('products', 'p9', {
      name: 'Token 9',
      symbol: 'eth',
      status: 'active',
      issuer_id: 'i2',
      asset_id: 'a1',
    })
    registry.world.put('derivatives', 'x2', null)
    registry.world.put('venues', 'v0', {
      name: 'Venue Zero',
      venue_type: 'perp-dex',
      listings: [listing(8), listing(7)],
    })
  },
  (registry) => {
    registry.world.put('issuers', 'i2', null)
    registry.world.put('assets', 'a0', { name: 'Asset Zero', asset_class: 'stocks', ticker: 'T0', rating: 'AA' })
  },
  ({ world }) => {
    world.put('products', 'p2', { name: 'Token 2', symbol: 'ONDO', status: 'active', issuer_id: 'i3', issuer_rank: 4 })
    world.put('products', 'p3', { name: 'Token 3', symbol: 'P3', status: 'inactive', issuer_id: 'i3', asset_id: 'a3' })
    world.put('deployments', 'd5', null)
  },
  (registry) => {
    deploy(registry, 'd9', { product_id: 'p5', chain_id: 'solana', address: 'CaseMatters' })
    registry.world.put('assets', 'a2', null)
    registry.world.put('venues', 'v1', { name: 'Venue 1', venue_type: 'cex', listings: [listing(1)], opened: '2026' })
  },
  (registry) => {
    registry.world.put('products', 'p0', { name: 'Token Zero', symbol: 'btc', status: 'inactive', issuer_id: 'i0' })
    registry.world.put('derivatives', 'x3', { symbol: 'X3-PERP', size: 3 })
    registry.world.put('issuers', 'i3', { name: 'Issuer 3', listings: [listing(3)] })
    registry.world.put('deployments', 'd4', null)
  },
]

type Commit = (rig: RegistryRig, deps: Partial<RegistryDeps>) => Promise<unknown>

/** Runs the work on a lake of its own. `onCommit` is told of every version as soon as it is there. */
export async function withEveryView(
  seed: number,
  onCommit: ((root: string, committed: number) => Promise<void>) | null,
  work: (lake: EveryViewLake) => Promise<void>,
  { bars = true }: { readonly bars?: boolean } = {},
): Promise<void> {
  const random = randomOf(seed)
  const own = shapes.flatMap((shape) => pointsOf(shape, random))
  const points = [
    ...own,
    ...revisedPoints(randomOf(seed + 7000)),
    ...(bars ? [...barPoints(randomOf(seed + 9000)), ...derivedPoints(randomOf(seed + 11_000))] : []),
  ]
  const parts = Map.groupBy(points, () => Math.floor(random() * 3))
  const registry = firstWorld()
  const commits: number[] = []
  const step =
    (number: number): Commit =>
    async ({ root, clock }) =>
      await makeLake(root, [stepOf(number, nowOf(clock), parts.get(number) ?? [])])
  const poll =
    (number: number, kind: 'sync' | 'snapshot'): Commit =>
    async (rig, deps) => {
      events[number]?.(registry)
      return await rig[kind]({ deps, acceptShrink: true })
    }
  /** When, by day of February and hour: two snapshots on one day, of different states. */
  const plan: readonly (readonly [number, number, Commit])[] = [
    [8, 6, step(0)],
    [12, 12, poll(0, 'sync')],
    [19, 5, step(1)],
    [20, 9, poll(1, 'sync')],
    [20, 18, poll(2, 'snapshot')],
    [20, 22, poll(3, 'snapshot')],
    [26, 9, poll(4, 'sync')],
    [37, 3, poll(5, 'snapshot')],
    [41, 7, step(2)],
    [43, 23, poll(6, 'sync')],
  ]
  const provider = { instead: (request: Request) => synthetic(registry.answer(request)) }
  await withRegistryRig(
    at(1) / 1_000_000,
    async (rig) => {
      const nowMicros = (): number => nowOf(rig.clock)
      for (const [dayOf, hourOf, take] of plan) {
        rig.clock.now = at(dayOf, hourOf) / 1_000_000
        await take(rig, { nowMicros })
        commits.push(nowMicros())
        await onCommit?.(rig.root, nowMicros())
      }
      await makeViews(rig.root, { catalogue })
      await work({ root: rig.root, points, commits })
    },
    provider,
  )
}

/** When a job commits: an hour after it began, so that whatever it asked was asked before. */
function nowOf(clock: { readonly now: number }): number {
  return (clock.now + 3600) * 1_000_000 + 123_457
}

function synthetic(answer: Response): Response {
  answer.headers.set('x-pitlake-sandbox', '1')
  return answer
}

/** Every instant at which something of the lake became known, in order. */
export function arrivals({ points, commits }: EveryViewLake): number[] {
  const all = points.flatMap((point) => [point.available_at, point.available_rule_at ?? point.available_at])
  return [...new Set([...all.map(micros), ...commits])].toSorted((a, b) => a - b)
}
