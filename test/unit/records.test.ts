import { expect, test } from 'vitest'
import { digestOfSum } from '../../src/lake/ledger/month-digests.ts'
import { monthSums } from '../../src/sources/points/month-sums.ts'
import { rowsSql } from '../../src/sources/points/sql.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { seeded } from '../helpers/random.ts'

const columns = `metric VARCHAR, interval VARCHAR, asset VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR, params VARCHAR,
  t BIGINT, available BIGINT, seen BIGINT, computed BIGINT, ruled BIGINT, v DOUBLE, zero BOOLEAN, o VARCHAR, extra VARCHAR, basis VARCHAR`

const bases = ['provider', 'observed', 'stated', 'assumed', 'override']

/** A point as it is drawn; times in microseconds. */
interface Drawn {
  readonly asset: string
  readonly currency: string | null
  readonly t: number
  readonly available: number
  readonly seen: number
  readonly computed: number | null
  readonly ruled: number | null
  readonly v: number | null
  readonly o: string | null
  readonly extra: string | null
  readonly basis: string
}

const second = 1_000_000
const begin = Date.UTC(2024, 0, 30) * 1000

/** Points of two series around the ends of two months, some of one instant, in whatever order. */
function drawn(random: () => number, many: number): Drawn[] {
  const pick = <T>(...all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  return Array.from({ length: many }, () => {
    const t = begin + Math.floor(random() * 40) * 86_400 * second
    const available = t + pick(0, 1, 999, 1000, 1001, 86_400 * second)
    return {
      asset: pick('A', 'ß'),
      currency: pick(null, 'usd'),
      t,
      available,
      seen: begin + 50 * 86_400 * second + pick(0, 1, 1000, 5 * second),
      computed: pick(null, null, available, available + 1, available + 2000),
      ruled: pick(null, null, available, available - 86_400 * second),
      v: pick(null, 1.5, -2e300, 1, 1.5, -0),
      o: pick(null, null, '{"a":"x x7"}', '[1]'),
      extra: pick(null, null, '{"ü":1}'),
      basis: pick(...bases),
    }
  })
}

function relation(points: readonly Drawn[]): string {
  const own = { metric: 'm/x', interval: '24h', exchange: null, network: null, params: null }
  const rows = rowsSql(
    columns.replaceAll(/\s+/g, ' '),
    // JSON does not tell -0.
    points.map((one) => ({ ...own, ...one, zero: Object.is(one.v, -0) })),
  )
  const at = (name: string): string => `make_timestamptz(${name})`
  return `(SELECT metric, interval, asset, currency, exchange, network, params, ${at('t')} AS t, ${at('available')} AS available_at,
    ${at('seen')} AS observed_at, ${at('computed')} AS computed_at, ${at('ruled')} AS available_rule_at,
    CASE WHEN zero THEN -0.0::DOUBLE ELSE v END AS v, o, extra, basis FROM (${rows}))`
}

/** Points of each series and month. */
function monthsOf(points: readonly Drawn[]): Map<string, Drawn[]> {
  return Map.groupBy(
    points,
    (one): string => `${one.asset} ${one.currency} ${new Date(one.t / 1000).toISOString().slice(0, 7)}`,
  )
}

/** Points and sum by series and month. */
async function sums(engine: Engine, points: readonly Drawn[], inOrder: boolean) {
  const all = await monthSums(engine, relation(points), inOrder)
  const months = all.flatMap(({ asset, currency, months: own }) =>
    [...own].map(([month, { points: n, digest }]) => [`${asset} ${currency} ${month}`, { n, digest }] as const),
  )
  return new Map<string, { readonly n: number; readonly digest: string }>(
    months.toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

test('the sum of a month adds up its points, in whatever order they come', async () => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  for (const [seed, many] of [1, 2, 7, 60, 3000].entries()) {
    const points = drawn(seeded(seed + 1), many)
    const sorted = points.toSorted(
      (a, b) => a.asset.localeCompare(b.asset) || `${a.currency}`.localeCompare(`${b.currency}`) || a.t - b.t,
    )
    const found = await sums(engine, points, false)
    const months = monthsOf(points)
    expect([...found.keys()]).toEqual([...months.keys()].toSorted())
    for (const [month, own] of many > 60 ? [] : months) {
      let total = 0n
      for (const one of own) total += BigInt(`0x${[...(await sums(engine, [one], true)).values()][0]?.digest}`)
      expect(found.get(month)).toEqual({ n: own.length, digest: digestOfSum(total) })
    }
    for (const [some, inOrder] of [
      [points, true],
      [sorted, true],
      [points.toReversed(), false],
    ] as const)
      expect(await sums(engine, some, inOrder)).toEqual(found)
    expect([...found.values()].reduce((sum, { n }) => sum + n, 0)).toBe(many)
  }
})

test('checksums add up and show each change of a point', async () => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const only = async (points: readonly Drawn[]): Promise<bigint> => {
    const [one] = [...(await sums(engine, points, true)).values()]
    return BigInt(`0x${one?.digest}`)
  }
  const point = {
    asset: 'A',
    currency: null,
    t: begin,
    available: begin + 1,
    seen: begin,
    computed: begin + 7000,
    ruled: begin + 9000,
  }
  const a: Drawn = { ...point, v: 1, o: '[1]', extra: '[2]', basis: 'observed' }
  const b = { ...a, t: begin + second }
  expect(await only([a, b])).toBe(BigInt(`0x${digestOfSum((await only([a])) + (await only([b])))}`))
  const changes: Partial<Drawn>[] = [
    { t: begin + second },
    { available: begin + 2 },
    { seen: begin + 1001 },
    { computed: null },
    { computed: begin + 9000 },
    { ruled: null },
    { v: null },
    { v: 1.0000000000000002 },
    { v: 0 },
    { v: -0 },
    { o: null },
    { o: '[2]', extra: '[1]' },
    { o: '[1] x3 [2]', extra: null },
    { basis: 'stated' },
    {},
  ]
  const told: bigint[] = []
  for (const change of changes) told.push(await only([{ ...a, ...change }]))
  expect(new Set(told).size).toBe(changes.length)
})
