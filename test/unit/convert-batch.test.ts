import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { convert } from '../../src/lake/convert.ts'
import type { Body, ConvertPart, ConvertResult } from '../../src/lake/convert-job.ts'
import type { Engine, Row } from '../../src/lake/engine.ts'
import { day, type Interval, step } from '../../src/time.ts'
import { at, Converting, lag600, micros, nextMorning, series, t1 } from '../helpers/converting.ts'

let made: Converting
beforeAll(async () => {
  made = await Converting.open()
})
afterAll(() => made.close())

/** A partition that gets these bodies. */
function part(n: number, bodies: readonly Body[], over: Partial<ConvertPart> = {}): ConvertPart {
  const out = join(made.folder, `part${n}-${Math.random()}.parquet`)
  return { metric: `m${n}`, interval: '24h', rules: [lag600], overlap: 'exact', bodies, existing: [], out, ...over }
}

async function batch(parts: readonly ConvertPart[], engine: Engine = made.engine): Promise<ConvertResult> {
  return await convert(engine, {
    parts,
    timestamp: 'interval_start',
    observedAt: BigInt(micros('2030-01-01')),
    metadata: {},
  })
}

async function rowsOf({ out }: ConvertPart): Promise<Row[]> {
  return await made.stored(out)
}

test('partitions of one batch keep their own rules, intervals, values and clocks', async () => {
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

test('each partition is compared with its own files only', async () => {
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

test('a poisoned body harms nothing in its own partition nor in another', async () => {
  const good = `[{"t":${t1},"v":1.5}]`
  for (const bad of [
    '',
    `[{"t":${t1},"v":"x"}]`,
    `[{"t":${t1},"v":1,"v":2}]`,
    `[{"t":${t1},"v":1},{"t":${t1},"v":2}]`,
    `[{"t":${t1},"v":01}]`,
  ]) {
    const eth = { series: series('ETH') }
    const parts = [part(0, [await made.body(bad), await made.body(good, eth)]), part(1, [await made.body(good)])]
    const { files, bodies } = await batch(parts)
    expect(bodies.map(({ state }) => state)).toEqual(['poison', 'ok', 'ok'])
    expect(files.map((file) => file?.rows)).toEqual([1, 1])
  }
})

test('long bodies of one partition go beside the short ones of others', async () => {
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

/** The statements of a top-up: a held point, compared, and a new one for each of so many partitions. */
async function statementsOf(count: number): Promise<string[]> {
  const held = JSON.stringify([{ t: t1, v: 0.5 }])
  const grown = JSON.stringify([0, 1].map((n) => ({ t: t1 + n * day, v: n + 0.5 })))
  const asked = { since: t1, until: t1 + 2 * day }
  const partsWith = async (text: string): Promise<ConvertPart[]> =>
    await Promise.all(Array.from({ length: count }, async (_, n) => part(n, [await made.body(text, asked)])))
  const before = await partsWith(held)
  await batch(before)
  const told: string[] = []
  const parts = (await partsWith(grown)).map((one, n) => {
    const path = before[n]?.out ?? ''
    return { ...one, rules: [{ ...lag600, seconds: n }], existing: [{ path, min_t: t1, max_t: t1 }] }
  })
  const { bodies } = await batch(parts, listening(told))
  expect(bodies.map(({ added }) => added)).toEqual(parts.map(() => 1))
  return told.filter((text) => !parts.some(({ out }) => text.includes(out.slice(out.lastIndexOf('/')))))
}

test('a batch takes as many statements for one partition as for a hundred and twelve', async () => {
  const one = await statementsOf(1)
  expect(one.length).toBeGreaterThan(5)
  expect(one.length).toBeLessThan(25)
  expect(await statementsOf(112)).toHaveLength(one.length)
})
