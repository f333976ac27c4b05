import { day } from '../../time.ts'
import { familyOf } from './families.ts'
import { hashAt, hashText, octaves, unit } from './noise.ts'
import { coinDigits, type Ground, type Scalar, scalarOf, usdDigits } from './values.ts'

/** The keys of a point beside `t`, in order. */
export type PointBody = Readonly<Record<string, unknown>>

/** The body of the interval `[t, close)`. */
export type Bodies = (t: number, close: number) => PointBody

const noShare = (): number => 1
/** About 0.4 % of the leaves of nested values are null. */
const nullLeaves = 0.004

/** The bodies of a series: a scalar in `v`, or what its family nests. */
export function bodiesOf(ground: Ground): Bodies {
  const { family } = ground
  if (family.kind === 'heatmap') return heatmap(ground)
  if (family.kind === 'quantiles') return quantiles(ground)
  if (family.form !== undefined && family.names !== undefined) return nested(ground, family.form, family.names)
  const scalar = scalarOf(family.part === undefined ? ground : { ...ground, key: partKey(ground.key, family.part) })
  return (t, close) => ({ v: scalar(t, close) })
}

/** The body that a null point of this series has. */
export function nullBody(body: PointBody): PointBody {
  const [key] = Object.keys(body)
  return key === 'o' ? { o: null } : { v: null }
}

function partKey(key: string, part: string): string {
  return `${key}/${part}`
}

const summed = new Set(['stock', 'flow', 'coins', 'coinFlow', 'difference'])

/** An object of named numbers: parts of a whole, shares that sum to a total, or a value each. */
function nested(ground: Ground, form: 'o' | 'v', names: readonly string[]): Bodies {
  const { family, seed, key } = ground
  const weights = names.map((_, i) => Math.pow(0.72, i))
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  const isSum = summed.has(family.kind)
  const parts: readonly Scalar[] = names.map((name, i) => {
    const share = isSum ? (at: number): number => (ground.share(at) * (weights[i] as number)) / whole : noShare
    if (family.of === undefined) return scalarOf({ ...ground, share, key: partKey(key, name) })
    return difference({ ...ground, share }, family.of, name)
  })
  const holes = names.map((name) => hashText(`hole/${partKey(key, name)}`, seed))
  const { total } = family
  return (t, close) => {
    const values = parts.map((part) => part(t, close))
    if (total !== undefined) normalise(values, weights, total)
    const named: Record<string, number | null> = {}
    for (let i = 0; i < names.length; i++) {
      const hole = unit(hashAt(holes[i] as number, t)) < nullLeaves
      named[names[i] as string] = hole ? null : (values[i] as number | null)
    }
    return form === 'o' ? { o: named } : { v: named }
  }
}

/** One component of a metric that is the difference of two others. */
function difference(ground: Ground, [plus, minus]: readonly [string, string], name: string): Scalar {
  const [more, less] = [plus, minus].map((path) => {
    const key = partKey(`${path}/${ground.market.asset.id}`, name)
    return scalarOf({ ...ground, family: familyOf(path), key })
  })
  return (t, close) => usdDigits((more?.(t, close) ?? 0) - (less?.(t, close) ?? 0))
}

function normalise(values: (number | null)[], weights: readonly number[], total: number): void {
  let sum = 0
  for (let i = 0; i < values.length; i++) sum += (values[i] ?? 0) * (weights[i] as number)
  for (let i = 0; i < values.length; i++) values[i] = (total * (values[i] ?? 0) * (weights[i] as number)) / sum
}

/** Levels of a heatmap are 13 % apart and the same on every day; each day shows those around its price. */
const gridStep = 0.12
const below = 17
const above = 6

/** Supply by cost basis: price levels and the coins at each, two lists beside `t`. */
function heatmap({ family, market, seed, key }: Ground): Bodies {
  const bump = octaves(hashText(key, seed), [
    [300 * day, 0.6],
    [70 * day, 0.4],
  ])
  return (_t, close) => {
    const at = Math.floor(Math.log(market.price(close)) / gridStep)
    const prices: number[] = []
    const partitions: number[] = []
    let sum = 0
    for (let k = at - below; k <= at + above; k++) {
      prices.push(Number(Math.exp(k * gridStep).toPrecision(7)))
      const distance = (k - at + 4 + 3 * bump(close)) / 6
      const density = Math.exp(-distance * distance) * (1.1 + bump(close + k * 1e7))
      partitions.push(density)
      sum += density
    }
    const factor = (market.supply(close) * family.level) / (sum || 1)
    return { prices, partitions: partitions.map((density) => coinDigits(density * factor)) }
  }
}

const quantileCount = 100

/** The realized prices below which 1 %, 2 % … 100 % of the supply were last moved: a rising list in `v`. */
function quantiles({ market, seed, key }: Ground): Bodies {
  const spread = octaves(hashText(key, seed), [
    [250 * day, 0.3],
    [60 * day, 0.15],
  ])
  return (_t, close) => {
    const price = market.price(close)
    const width = 3.4 + spread(close)
    const list: number[] = []
    for (let i = 1; i <= quantileCount; i++) {
      const x = i / quantileCount
      list.push(usdDigits(price * Math.exp(width * (x - 0.78) * (1.4 - 0.6 * x))))
    }
    return { v: list }
  }
}
