import type { Link } from '../../src/catalog/schema.ts'
import { randomOf } from '../helpers/random.ts'

/*
 * Random histories of names, and the plain definition of which series follows which: instant by instant, each time
 * looking only at what was known by then.
 */

/** Instants are hours since 2024-01-01. */
export type Hour = number
export const day = 24
export const polls: readonly Hour[] = Array.from({ length: 12 }, (_, n) => (n + 2) * day)

/** What a poll told of a record; null that it is gone. */
export interface Told<T> {
  readonly at: Hour
  readonly id: string
  readonly is: T | null
}
export interface Deployed {
  readonly product: string
  readonly chain: string
  readonly address: string
  readonly status: string | null
}
export interface Listed {
  readonly symbol: string | null
  readonly contracts: readonly (readonly [chain: string, address: string])[] | null
}
export interface Point {
  readonly metric: number
  readonly asset: string
  readonly t: Hour
  readonly available: Hour
  readonly v: number
}
export interface History {
  readonly products: readonly Told<string>[]
  readonly deployments: readonly Told<Deployed>[]
  readonly listings: readonly Told<Listed>[]
  readonly mapping: readonly Link[]
  readonly points: readonly Point[]
}

const seconds = (hour: Hour): number => Date.UTC(2024, 0, 1, hour) / 1000

/**
 * A history whose names begin with a text of their own. With `revisable` points of the second metric are told again.
 */
export function historyOf(seed: number, revisable: boolean): History {
  const usual = usualOf(seed, revisable)
  return seed % 8 > 5 ? movingOf(seed, usual) : usual
}

function usualOf(seed: number, revisable: boolean): History {
  const random = randomOf(seed)
  const own = (name: string): string => `h${seed}${name}`
  const among = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const pick = <T>(share: number, yes: T, no: T): T => (random() < share ? yes : no)
  const assets = ['A', 'B', 'C'].map(own)
  const told = <T>(ids: readonly string[], share: number, is: () => T | null): Told<T>[] =>
    ids.flatMap((id) => polls.flatMap((at, n) => (random() < (n === 0 ? 0.7 : share) ? [{ at, id, is: is() }] : [])))
  const contract = (): readonly [string, string] => [among(['eip155:1', '10']), own(among(['x', 'y', 'z']))]
  const products = ['p', 'q'].slice(0, pick(0.7, 1, 2)).map(own)
  const isListed = random() < 0.6
  const status = (): string | null => among(['active', 'active', 'active', null, 'deprecated', 'inactive'])
  return {
    products: told(products, 0.15, () => pick(0.1, null, pick(0.5, among(assets), among(assets).toLowerCase()))),
    deployments: told(['d', 'e', 'f'].map(own), 0.2, () => {
      const [chain, address] = contract()
      return pick(0.1, null, { product: among(products), chain, address, status: status() })
    }),
    listings: isListed
      ? told(assets, 0.06, () => ({
          symbol: pick(0.5, null, among(assets)),
          contracts: pick(0.6, [contract(), contract()].slice(0, pick(0.7, 1, 2)), null),
        }))
      : [],
    mapping: assets.flatMap((metricAsset) => {
      if (random() > 0.12) return []
      const [chainId, address] = contract()
      const target = pick<Pick<Link, 'productId' | 'chainId' | 'address'>>(
        0.6,
        { productId: among(products), chainId: null, address: null },
        { productId: null, chainId, address },
      )
      const from = pick(0.6, null, seconds(among(polls) + 5))
      return [{ metricAsset, ...target, from, until: pick(0.4, null, seconds(among(polls) + 100)) }]
    }),
    points: assets.flatMap((asset, n) =>
      [0, 1].flatMap((metric) => pointsOf(random, { asset, metric, v: n * 1000 + metric * 10_000, revisable })),
    ),
  }
}

/** One token with a contract for each asset, which come and are retired: on one chain, or another beside it. */
function movingOf(seed: number, usual: History): History {
  const random = randomOf(seed + 5000)
  const names = [...new Set(usual.points.map(({ asset }) => asset))]
  const product = `h${seed}p`
  const told = names.flatMap((id, n) => {
    const chain = random() < 0.6 ? '1' : '10'
    const address = `h${seed}x${n}`
    const begins = n === 0 ? 0 : Math.floor(random() * 6)
    const lives = 2 + Math.floor(random() * 6)
    const is = (status: string): Deployed => ({ product, chain, address, status })
    const at = polls[begins] ?? day
    const ends = polls[begins + lives]
    const deployments: Told<Deployed>[] = [{ at, id: `h${seed}d${n}`, is: is('active') }]
    if (ends !== undefined)
      deployments.push({ at: ends, id: `h${seed}d${n}`, is: random() < 0.3 ? null : is('deprecated') })
    const listed: Told<Listed> = { at: polls[0] ?? day, id, is: { symbol: null, contracts: [[chain, address]] } }
    return [{ deployments, listed }]
  })
  const products = [{ at: polls[0] ?? day, id: product, is: 'NONE' }]
  const deployments = told.flatMap((one) => one.deployments)
  const listings = told.map(({ listed }) => listed)
  return { ...usual, products, deployments, listings, mapping: [] }
}

function pointsOf(
  random: () => number,
  { asset, metric, v, revisable }: Readonly<{ asset: string; metric: number; v: number; revisable: boolean }>,
): Point[] {
  const first = random() < 0.4 ? Math.floor(random() * 9) : 0
  const last = random() < 0.3 ? 15 : first + Math.floor(random() * 15)
  return Array.from({ length: 15 }, (_, n) => n).flatMap((n): Point[] => {
    if (n < first || n > last || random() < 0.15) return []
    const late = random() < 0.2 ? Math.floor(random() * 200) : Math.floor(random() * 3)
    const point = { metric, asset, t: n * day, available: (n + 1) * day + late, v: v + n }
    if (!revisable || metric === 0 || random() > 0.3) return [point]
    return [point, { ...point, available: point.available + 1 + Math.floor(random() * 150), v: v + n + 0.5 }]
  })
}

/** A link that an asset has at an instant. */
interface Node {
  readonly asset: string
  readonly product: string
  readonly chain: string | null
  readonly contract: string | null
  readonly symbol: string | null
}
/** A succession: of which node by which, since when known, until when it stands. */
export interface Succession {
  readonly from: Node
  readonly to: Node
  readonly known: Hour
  undone: Hour
  readonly change: string
  readonly sure: boolean
  stitched: boolean
}

const chainOf = (id: string): string => id.toLowerCase().replace('eip155:', '')
const newest = <T>(list: readonly Told<T>[], id: string, at: Hour): Told<T> | undefined =>
  list.findLast((one) => one.id === id && one.at <= at)
const idsOf = <T>(list: readonly Told<T>[]): string[] => [...new Set(list.map(({ id }) => id))]

/** Which links there are at an instant, by what was known then. */
function nodesAt({ products, deployments, listings, mapping, points }: History, at: Hour): Node[] {
  const none = { chain: null, contract: null, symbol: null }
  const symbols = idsOf(products).flatMap((id) => {
    const symbol = newest(products, id, at)?.is
    return symbol ? [{ product: id, symbol: symbol.toLowerCase() }] : []
  })
  const contracts = idsOf(deployments).flatMap((id) => {
    const is = newest(deployments, id, at)?.is
    if (!is || is.status === 'deprecated' || is.status === 'inactive') return []
    return [{ product: is.product, chain: chainOf(is.chain), contract: is.address }]
  })
  const byContract = (asset: string, chain: string, address: string): Node[] =>
    contracts
      .filter((one) => one.chain === chainOf(chain) && one.contract === address)
      .map((one) => ({ ...none, asset, ...one }))
  const mapped = mapping.flatMap(({ metricAsset, productId, chainId, address, from, until }): Node[] => {
    if (seconds(at) < (from ?? -1e12) || seconds(at) >= (until ?? 1e12)) return []
    if (productId === null) return byContract(metricAsset, chainId ?? '', address ?? '')
    return newest(products, productId, at)?.is ? [{ ...none, asset: metricAsset, product: productId }] : []
  })
  const arrived = points.filter(({ available }) => available <= at).map(({ asset }) => asset)
  const assets = new Set([...listings.filter((one) => one.at <= at).map(({ id }) => id), ...arrived])
  for (const { metricAsset } of mapping) assets.delete(metricAsset)
  const found = [...assets].flatMap((asset): Node[] => {
    const listed = newest(listings, asset, at)?.is
    const carried = listed?.contracts ?? []
    if (carried.length > 0) return carried.flatMap(([chain, address]) => byContract(asset, chain, address))
    const symbol = (listed?.symbol ?? asset).toLowerCase()
    return symbols.filter((one) => one.symbol === symbol).map(({ product }) => ({ ...none, asset, product, symbol }))
  })
  return [...mapped, ...found]
}

const keyOf = (node: Node): string => JSON.stringify([node.asset, node.product, node.chain, node.contract, node.symbol])

/** Every instant at which something became known. */
export function instantsOf({ mapping, points }: History): Hour[] {
  const edges = mapping.flatMap(({ from, until }) => [from, until]).filter((at) => at !== null)
  const own = edges.map((at) => (at - seconds(0)) / 3600)
  return [...new Set([...polls, ...own, ...points.map(({ available }) => available)])].toSorted((a, b) => a - b)
}

/** All successions up to an instant, found in the order of time. */
export function successionsOf(history: History, until: Hour): Succession[] {
  const found: Succession[] = []
  const began = new Map<string, Hour>()
  let searching: { node: Node; since: Hour; ended: Hour; others: boolean; lived: boolean }[] = []
  let before: Node[] = []
  for (const at of instantsOf(history).filter((one) => one <= until)) {
    const nodes = [...new Map(nodesAt(history, at).map((node) => [keyOf(node), node])).values()]
    const there = new Set(nodes.map(keyOf))
    const fresh = nodes.filter((node) => !began.has(keyOf(node)))
    for (const node of before.filter((one) => !there.has(keyOf(one)))) {
      const others = before.some(({ asset, product }) => asset === node.asset && product !== node.product)
      searching.push({ node, since: began.get(keyOf(node)) ?? 0, ended: at, others, lived: false })
    }
    for (const key of began.keys()) if (!there.has(key)) began.delete(key)
    for (const node of fresh) began.set(keyOf(node), at)
    for (const one of found)
      if (fresh.some(({ asset }) => asset === one.from.asset)) one.undone = Math.min(one.undone, at)
    searching = searching.filter(({ node }) => !there.has(keyOf(node)))
    for (const one of searching) one.lived ||= nodes.some(({ asset }) => asset === one.node.asset)
    const now: Succession[] = []
    searching = searching.filter((one) => {
      const later = nodes.filter(
        (node) => node.product === one.node.product && (began.get(keyOf(node)) ?? 0) > one.since,
      )
      const near = later.filter(({ chain }) => chain !== null && chain === one.node.chain)
      const heirs = near.length > 0 ? near : later
      if (new Set(heirs.map(({ asset }) => asset)).size !== 1) return true
      const to = firstOf(heirs, began)
      const two = new Set(nodes.filter(({ asset }) => asset === to.asset).map(({ product }) => product)).size > 1
      const sure = one.node.asset !== to.asset && !one.lived && !one.others && !two
      now.push({
        from: one.node,
        to,
        known: at,
        undone: Infinity,
        change: changeOf(one.node, to),
        sure,
        stitched: false,
      })
      return false
    })
    found.push(...now)
    const standing = found.filter((one) => one.sure && one.undone > at)
    for (const one of now)
      one.stitched =
        one.sure &&
        !standing.some((other) => {
          const a = other.from.asset === one.from.asset
          const b = other.to.asset === one.to.asset
          return a !== b
        })
    before = nodes
  }
  return found
}

function firstOf(heirs: readonly Node[], began: ReadonlyMap<string, Hour>): Node {
  const order = (node: Node) => [
    began.get(keyOf(node)) ?? 0,
    node.chain ?? '~',
    node.contract ?? '~',
    node.symbol ?? '~',
  ]
  return heirs.toSorted((a, b) => {
    const one = order(a)
    const other = order(b)
    const n = one.findIndex((value, i) => value !== other[i])
    return n < 0 ? 0 : (one[n] ?? 0) < (other[n] ?? 0) ? -1 : 1
  })[0] as Node
}

function changeOf(from: Node, to: Node): string {
  if (from.chain !== null && to.chain !== null && from.chain !== to.chain) return 'chain'
  if (from.contract !== null && to.contract !== null && from.contract !== to.contract) return 'address'
  return from.symbol !== null && to.symbol !== null && from.symbol !== to.symbol ? 'symbol' : 'link'
}

/** A way from an asset to one that came of it, by what stands and is known. */
interface Way {
  readonly to: string
  readonly known: Hour
  readonly until: Hour
  readonly length: number
}

function waysFrom(asset: string, successions: readonly Succession[], via: readonly string[] = [asset]): Way[] {
  return successions
    .filter(({ from, to, stitched }) => stitched && from.asset === asset && !via.includes(to.asset))
    .flatMap(({ to, known, undone }) => {
      const further = waysFrom(to.asset, successions, [...via, to.asset])
      const longer = further.map((way) => ({
        ...way,
        known: Math.max(known, way.known),
        until: Math.min(undone, way.until),
        length: way.length + 1,
      }))
      return [{ to: to.asset, known, until: undone, length: 1 }, ...longer.filter((way) => way.known < way.until)]
    })
}

/** What an asset's stitched series of a metric told at an instant: newest first. */
export function stitchedAt(
  history: History,
  all: readonly Succession[],
  [metric, name, ts]: readonly [metric: number, name: string, ts: Hour],
): { readonly t: Hour; readonly available: Hour; readonly v: number }[] {
  const points = history.points.filter((point) => point.metric === metric)
  const names = [...new Set(history.points.map(({ asset }) => asset))]
  const instants = [...new Set([...points.map(({ available }) => available), ...all.map(({ known }) => known)])]
  const told = new Map<Hour, { member: string; since: Hour }>()
  for (const at of instants.filter((one) => one <= ts).toSorted((a, b) => a - b)) {
    const known = all.filter((one) => one.known <= at)
    const ways = (from: string): Way[] => waysFrom(from, known)
    const members = [
      { member: name, place: 0, until: Infinity },
      ...ways(name).map(({ to, until, length }) => ({ member: to, place: length, until })),
      ...names.flatMap((member) =>
        ways(member).flatMap(({ to, until, length }) => (to === name ? [{ member, place: -length, until }] : [])),
      ),
    ].toSorted((a, b) => b.place - a.place)
    for (const { member, until } of members) {
      const handed = ways(member).flatMap((way) => {
        const first = Math.min(...points.filter(({ asset }) => asset === way.to).map(({ available }) => available))
        return first <= at ? [{ since: Math.max(first, way.known), until: way.until }] : []
      })
      for (const { asset, t, available } of points) {
        if (asset !== member || available > at || t >= until || told.has(t)) continue
        if (handed.every((one) => t < one.since || t >= one.until)) told.set(t, { member, since: at })
      }
    }
  }
  return [...told]
    .map(([t, { member, since }]) => {
      const own = points.filter((one) => one.asset === member && one.t === t && one.available <= ts)
      const last = own.toSorted((a, b) => b.available - a.available)[0] as Point
      return { t, available: Math.max(last.available, since), v: last.v }
    })
    .toSorted((a, b) => b.t - a.t)
}
