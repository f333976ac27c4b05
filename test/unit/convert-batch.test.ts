import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { convert } from '../../src/sources/points/convert.ts'
import type { Body, ConvertPart, ConvertResult } from '../../src/sources/points/conversion-types.ts'
import { type Engine, quote, type Row } from '../../src/lake/store/engine.ts'
import { day, type Interval, step } from '../../src/base/time.ts'
import { codecsOf } from '../helpers/codecs.ts'
import { at, Converting, lag600, micros, nextMorning, series, t1 } from '../helpers/converting.ts'

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

/** A partition that gets these bodies. */
function part(n: number, bodies: readonly Body[], over: Partial<ConvertPart> = {}): ConvertPart {
  const out = join(made.folder, `part${n}-${Math.random()}.parquet`)
  return { metric: `m${n}`, interval: '24h', rules: [lag600], overlap: 'exact', bodies, existing: [], out, ...over }
}

/** Converts a batch, each portion into a file of its own unless said. */
async function batch(
  parts: readonly ConvertPart[],
  { engine = made.engine, portion = 1, recents = [], ...more }: Over = {},
): Promise<ConvertResult & { readonly out: string }> {
  const out = join(made.folder, `recent-${Math.random()}.parquet`)
  const recent = { existing: recents.map((path) => ({ path, min_t: null, max_t: null })), out }
  const frame = { timestamp: 'interval_start', observedAt: BigInt(micros('2030-01-01')), metadata: {} } as const
  return { ...(await convert(engine, { parts, recent, portion, ...frame, ...more })), out }
}

interface Over {
  readonly engine?: Engine
  readonly portion?: number
  /** The recent files that are there. */
  readonly recents?: readonly string[]
}

const rowsOf = async ({ out }: ConvertPart): Promise<Row[]> => await made.stored(out)

test('partitions of one batch keep their rules, intervals, values and clocks apart', async () => {
  const starts: readonly [Interval, number][] = [
    ['24h', t1],
    ['1month', at('2024-02-01')],
    ['1w', at('2024-02-26')],
    ['10m', t1],
  ]
  const parts = await Promise.all(
    starts.map(async ([interval, t], n) => {
      const two = `[{"t":${t},"v":${n}},{"t":${step(t, interval, 1)},"v":${n}.5}]`
      const nested = `[{"t":${t},"o":{"a":${n}}}]`
      const own = { series: series('ETH', { interval }) }
      return part(n, [await made.body(two), await made.body(nested, own)], {
        interval,
        rules: n === 0 ? [nextMorning] : [{ ...lag600, seconds: n, basis: n === 1 ? 'override' : 'assumed' }],
      })
    }),
  )
  const { files, bodies, violations } = await batch(parts)
  expect(files.map((file) => file?.rows)).toEqual([3, 3, 3, 3])
  expect(bodies.map(({ added, missing }) => [added, missing.length])).toEqual(
    starts.flatMap(() => [
      [2, 1],
      [1, 1],
    ]),
  )
  expect(violations).toEqual([])
  for (const [n, [interval, t]] of starts.entries()) {
    const rows = await rowsOf(parts[n] as ConvertPart)
    expect(rows.map(({ asset, v, o }) => [asset, v, o])).toEqual([
      ['BTC', n, null],
      ['BTC', n + 0.5, null],
      ['ETH', null, `{"a":${n}}`],
    ])
    const first = n === 0 ? at('2024-03-02T10:15') : step(t, interval, 1) + n
    expect(rows[0]).toMatchObject({
      available_at: BigInt(first) * 1_000_000n,
      basis: ['stated', 'override', 'assumed', 'assumed'][n],
    })
    expect(files[n]).toMatchObject({ min_t: t, min_lag: n === 0 ? 36_900_000_000 : n * 1_000_000 })
  }
})

test('each partition of a batch is compared with files of that partition only', async () => {
  const first = part(0, [await made.body(`[{"t":${t1},"v":1}]`)])
  const other = part(1, [await made.body(`[{"t":${t1},"v":2}]`)])
  await batch([first, other])
  const existing = ({ out }: ConvertPart) => [{ path: out, min_t: t1, max_t: t1 }]
  const again = [
    part(0, [await made.body(`[{"t":${t1},"v":2}]`)], { existing: existing(first) }),
    part(1, [await made.body(`[{"t":${t1},"v":2},{"t":${t1 + day},"v":3}]`)], { existing: existing(other) }),
  ]
  const { files, violations, bodies } = await batch(again)
  expect(violations.map(({ stored, offered, request }) => [stored, offered, request])).toEqual([
    ['1.0', '2.0', again[0]?.bodies[0]?.request],
  ])
  expect(files.map((file) => file?.rows)).toEqual([undefined, 1])
  expect(bodies.map(({ added }) => added)).toEqual([0, 1])
})

test('a file whose points all lie elsewhere is not opened', async () => {
  const gone = [{ path: join(made.folder, 'gone.parquet'), min_t: t1 + 5 * day, max_t: t1 + 9 * day }]
  const inside = await made.body(`[{"t":${t1},"v":1}]`, { since: t1, until: t1 + 5 * day })
  expect((await batch([part(0, [inside], { existing: gone })])).files[0]?.rows).toBe(1)
  const beyond = await made.body(`[{"t":${t1},"v":1},{"t":${t1 + 5 * day},"v":1}]`, { since: t1, until: t1 + 2 * day })
  await expect(batch([part(0, [beyond], { existing: gone })])).rejects.toThrow('gone.parquet')
})

test('long bodies of one partition are converted next to short ones of others', async () => {
  const long = `[${Array.from({ length: 30_000 }, (_, i) => `{"t":${t1 - (30_000 - i) * 600},"v":${i}.25,"pad":null}`).join(',')}]`
  const plain = long.replaceAll(',"pad":null', '')
  const parts = [
    part(0, [await made.body(`[{"t":${t1},"v":1}]`)]),
    part(1, [await made.body(plain)], { interval: '10m' }),
    part(2, [await made.body(`[{"t":${t1},"v":1},{"t":${t1},"v":2}]`)]),
  ]
  const { files, bodies } = await batch(parts)
  expect(files.map((file) => file?.rows ?? null)).toEqual([1, 30_000, null])
  expect(bodies.map(({ state, added }) => [state, added])).toEqual([
    ['ok', 1],
    ['ok', 30_000],
    ['poison', 0],
  ])
})

/** An engine whose sessions write down what they are asked to run. */
function listening(told: string[]): Engine {
  const listen = (engine: Engine): Engine =>
    new Proxy(engine, {
      get: (target, name) => {
        const held: unknown = Reflect.get(target, name, target)
        if (name === 'session') return async () => listen(await target.session())
        if (typeof held !== 'function') return held
        return (...given: unknown[]): unknown => {
          if (name === 'run' || name === 'rows') told.push(String(given[0]))
          return held.apply(target, given)
        }
      },
    })
  return listen(made.engine)
}

test('a file that cannot be written fails the batch, and no file of the others is left', async () => {
  const text = JSON.stringify([0, 1, 2].map((n) => ({ t: t1 + n * day, v: n })))
  const parts = await Promise.all([0, 1, 2, 3].map(async (n) => part(n, [await made.body(text)])))
  const unwritable = parts.map((one, n) =>
    n === 1 ? { ...one, out: join(made.folder, 'no such folder/x.parquet') } : one,
  )
  await expect(batch(unwritable)).rejects.toThrow('no such folder')
  expect(unwritable.filter(({ out }) => existsSync(out))).toEqual([])
})

test('a recent file says of metrics just what it holds, so that questions about others skip it', async () => {
  const points = JSON.stringify([0, 1].map((n) => ({ t: t1 + n * day, v: n })))
  const parts = await Promise.all([points, points, '[]'].map(async (text, n) => part(n, [await made.body(text)])))
  const { out } = await batch(parts, { portion: 9 })
  const groups = await made.engine.rows(`SELECT stats_min_value AS low, stats_max_value AS high
    FROM parquet_metadata(${quote(out)}) WHERE path_in_schema = 'metric'`)
  expect(groups).toEqual([{ low: 'm0', high: 'm1' }])
})

/** Values of every shape that bodies have, by the number of the day. */
const shapes: readonly ((n: number) => object)[] = [
  (n) => ({ v: n + 0.5 }),
  (n) => ({ v: n + 0.5, computed_at: t1 + (n + 2) * day }),
  (n) => ({ o: { a: n } }),
  (n) => ({ v: [n, n] }),
  (n) => ({ high: n, low: n }),
  (n) => ({ v: n, more: 'text' }),
]

/**
 * The statements of a top-up: of each series a held point, compared, and a new one, in both levels; `each` partitions
 * of every shape.
 */
async function statementsOf(each: number, assets: readonly string[] = ['BTC']): Promise<string[]> {
  const count = each * shapes.length
  const asked = { since: t1, until: t1 + 3 * day }
  const partsWith = async (days: readonly number[]): Promise<ConvertPart[]> =>
    await Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const points = days.map((d) => ({ t: t1 + d * day, ...shapes[n % shapes.length]?.(d) }))
        const text = JSON.stringify(points)
        const bodies = assets.map(async (asset) => await made.body(text, { ...asked, series: series(asset) }))
        return part(n, await Promise.all(bodies))
      }),
    )
  const before = await partsWith([0])
  await batch(before)
  const second = await batch(await partsWith([1]), { portion: 999 })
  const told: string[] = []
  const parts = (await partsWith([0, 1, 2])).map((one, n) => {
    const path = before[n]?.out ?? ''
    return { ...one, rules: [{ ...lag600, seconds: n }], existing: [{ path, min_t: t1, max_t: t1 }] }
  })
  const result = await batch(parts, { engine: listening(told), portion: 999, recents: [second.out] })
  expect(result.bodies.map(({ added }) => added)).toEqual(parts.flatMap(() => assets.map(() => 1)))
  const rows = count * assets.length
  expect(result).toMatchObject({ violations: [], findings: [], files: parts.map(() => null), recent: { rows } })
  return told
}

test('a batch takes as many statements for one partition of each shape as for nineteen, for one series as for five', async () => {
  const one = await statementsOf(1)
  expect(one.length).toBeGreaterThan(5)
  expect(one.length).toBeLessThan(36)
  expect(await statementsOf(19)).toHaveLength(one.length)
  expect(await statementsOf(1, ['BTC', 'ETH', 'SOL', 'USDC', 'XRP'])).toHaveLength(one.length)
})

test('small portions of all partitions come into one file, sorted, each with its share', async () => {
  const text = (n: number): string => JSON.stringify([0, 1].map((i) => ({ t: t1 + i * day, v: n === 1 ? -0 : n + i })))
  const parts = await Promise.all(
    [0, 1, 2].map(async (n) => {
      const eth = await made.body(text(n).replaceAll('"v":0', '"v":-0.0'), { series: series('ETH') })
      return part(n, [await made.body(text(n)), eth], { rules: [{ ...lag600, seconds: 60 * (n + 1) }] })
    }),
  )
  const { files, recent, out } = await batch(parts, { portion: 5 })
  expect(files).toEqual([null, null, null])
  expect(recent?.shares).toEqual(
    [0, 1, 2].map((n) => ({ metric: `m${n}`, interval: '24h', rows: 4, min_lag: 60_000_000 * (n + 1) })),
  )
  expect(recent).toMatchObject({ rows: 12, min_t: t1, max_t: t1 + day, min_lag: 60_000_000 })
  const rows = await made.engine.rows(
    `SELECT concat_ws(' ', metric, "interval", asset, epoch(t)::BIGINT) AS name, v FROM read_parquet(${quote(out)})`,
  )
  const names = [0, 1, 2].flatMap((n) =>
    ['BTC', 'ETH'].flatMap((asset) => [0, 1].map((d) => `m${n} 24h ${asset} ${t1 + d * day}`)),
  )
  expect(rows.map((row) => row['name'])).toEqual(names)
  expect(rows.filter((row) => Object.is(row['v'], -0))).toHaveLength(3)
  const alone = await Promise.all(parts.map(async (one) => await batch([one])))
  expect(recent?.digest).toBe(String(alone.reduce((sum, one) => sum + BigInt(one.files[0]?.digest ?? 0), 0n)))
})

test('the recent file is written to be opened fast, however many rows it holds', async () => {
  const many = JSON.stringify(Array.from({ length: 1500 }, (_, i) => ({ t: t1 + i * day, v: i })))
  const parts = [part(0, [await made.body(many)]), part(1, [await made.body(many)])]
  const { recent, out } = await batch(parts, { portion: 1501 })
  expect(recent?.rows).toBe(3000)
  expect(await codecsOf(made.engine, out)).toEqual(['SNAPPY'])
})

test('large portions get a file apart from the recent one', async () => {
  const many = JSON.stringify(Array.from({ length: 40 }, (_, i) => ({ t: t1 + i * day, v: i })))
  const parts = [
    part(0, [await made.body(many)]),
    part(1, [await made.body(`[{"t":${t1},"v":1}]`)]),
    part(2, [await made.body('[]')]),
  ]
  const { files, recent, out } = await batch(parts, { portion: 40 })
  expect(files.map((file) => file?.rows ?? null)).toEqual([40, null, null])
  expect(recent?.shares.map(({ metric, rows }) => [metric, rows])).toEqual([['m1', 1]])
  expect(existsSync(parts[1]?.out ?? '')).toBe(false)
  expect((await made.engine.rows(`SELECT metric FROM read_parquet(${quote(out)})`)).length).toBe(1)
  const none = await batch([part(2, [await made.body('[]')])])
  expect([none.recent, existsSync(none.out)]).toEqual([null, false])
})

test('bodies are compared with the rows of their partition in recent files', async () => {
  const held = [part(0, [await made.body(`[{"t":${t1},"v":1}]`)]), part(1, [await made.body(`[{"t":${t1},"v":7}]`)])]
  const { out } = await batch(held, { portion: 9 })
  const offered = `[{"t":${t1},"v":2},{"t":${t1 + day},"v":3}]`
  const over = { portion: 9, recents: [out] }
  const again = await batch([part(0, [await made.body(offered)])], over)
  expect(again.violations.map(({ stored, offered: other }) => [stored, other])).toEqual([['1.0', '2.0']])
  expect(again.bodies[0]).toMatchObject({ added: 1, addedFirst: t1 + day })
  const [weekly, other] = [
    part(0, [await made.body(offered.replaceAll(String(t1), String(t1)))], { interval: '1h' }),
    part(3, [await made.body(offered)]),
  ]
  const apart = await batch([weekly, other], over)
  expect([apart.violations, apart.bodies.map(({ added }) => added)]).toEqual([[], [2, 2]])
})
