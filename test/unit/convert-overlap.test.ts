import { existsSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { day } from '../../src/base/time.ts'
import { convert, type Converted, Converting, daily, series, t1 } from '../helpers/converting.ts'

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

async function seed(content: string): Promise<{ out: string; result: Converted }> {
  const task = made.job([await made.body(content)], { observedAt: 1_000_000n })
  return { out: task.out, result: await convert(made.engine, task) }
}
const three = daily(3)

test('an answer that repeats stored points adds no row, writes no file and reports no difference', async () => {
  const { out, result } = await seed(JSON.stringify(three))
  const task = made.job([await made.body(JSON.stringify(three))], { existing: [out] })
  const again = await convert(made.engine, task)
  expect(again).toMatchObject({ file: null, violations: [], findings: [] })
  expect(again.bodies[0]).toMatchObject({ state: 'ok', points: 3, added: 0, first: t1, last: t1 + 2 * day })
  expect(existsSync(task.out)).toBe(false)
  expect(result.file?.rows).toBe(3)
})

test('TIME 14: changed, vanished and filled values and a changed computed_at are reported with both values, never applied', async () => {
  const was = [
    { t: t1, v: 100, computed_at: t1 + day + 1 },
    { t: t1 + day, v: null },
    { t: t1 + 2 * day, v: 3 },
    { t: t1 + 3 * day, v: 0 },
    { t: t1 + 4 * day, o: { a: 1, b: [2] } },
    { t: t1 + 5 * day, o: { a: 1 } },
    { t: t1 + 6 * day, v: 7 },
  ]
  const { out } = await seed(JSON.stringify(was))
  const now = `[{"t":${t1},"v":100,"computed_at":${t1 + day + 2}},{"t":${t1 + day},"v":5},
    {"t":${t1 + 3 * day},"v":-0.0},{"t":${t1 + 4 * day},"o":{"b":[2.0],"a":1}},{"t":${t1 + 5 * day},"o":{"a":2}},
    {"t":${t1 + 6 * day},"v":null},{"t":${t1 + 7 * day},"v":8}]`
  const task = made.job([await made.body(now, { since: t1, until: t1 + 8 * day, request: 'again' })], {
    existing: [out],
  })
  const { violations, file, bodies } = await convert(made.engine, task)
  expect(violations.map((v) => [(v.t - t1) / day, v.kind, v.stored, v.offered])).toEqual([
    [0, 'computed_at_changed', `${t1 + day + 1}.0`, `${t1 + day + 2}.0`],
    [1, 'null_filled', 'null', '5.0'],
    [3, 'changed', '0.0', '-0.0'],
    [5, 'changed', '{"a":1}', '{"a":2}'],
    [6, 'changed', '7.0', 'null'],
    [2, 'vanished', '3.0', null],
  ])
  expect(violations[0]).toMatchObject({
    stored_at: 1_000_000,
    offered_at: Number(task.observedAt),
    request: 'again',
    series: series('BTC').id,
  })
  expect(file?.rows).toBe(1)
  expect(bodies[0]).toMatchObject({ added: 1, addedFirst: t1 + 7 * day, addedLast: t1 + 7 * day })
  expect(await made.stored(task.out)).toMatchObject([{ v: 8 }])
})

test('contradictions are reported body by body, each in the order of its points', async () => {
  const eth = { series: series('ETH') }
  const point = (n: number, v: number) => ({ t: t1 + n * day, v })
  const bodies = async (v: number) => [
    await made.body(JSON.stringify([point(1, v), point(3, v)])),
    await made.body(JSON.stringify([point(0, v), point(2, v)]), eth),
  ]
  const first = made.job(await bodies(1))
  await convert(made.engine, first)
  const { violations } = await convert(made.engine, made.job(await bodies(2), { existing: [first.out] }))
  expect(violations.map((v) => [v.series, (v.t - t1) / day, v.offered])).toEqual([
    ...[1, 3].map((n) => [series('BTC').id, n, '2.0']),
    ...[0, 2].map((n) => [series('ETH').id, n, '2.0']),
  ])
})

test('a point vanishes only inside the requested window, which includes its start and not its end', async () => {
  const eth = { series: series('ETH') }
  const whole = JSON.stringify(three)
  const first = made.job([await made.body(whole), await made.body(whole, eth)])
  await convert(made.engine, first)
  const again = async (since: number, until: number, ...left: readonly number[]) => {
    const some = JSON.stringify(left.map((n) => three[n]))
    const window = { since: t1 + since * day, until: t1 + until * day }
    // The other one brings them all, so that the whole is compared.
    const bodies = [await made.body(some, window), await made.body(whole, { ...eth, since: t1, until: t1 + 3 * day })]
    const { violations } = await convert(made.engine, made.job(bodies, { existing: [first.out] }))
    return violations.map((v) => [v.kind, v.series === eth.series.id, (v.t - t1) / day])
  }
  expect(await again(0, 2, 0, 1)).toEqual([])
  expect(await again(0, 2, 0)).toEqual([['vanished', false, 1]])
  expect(await again(1, 3, 2)).toEqual([['vanished', false, 1]])
  expect(await again(1, 2)).toEqual([['vanished', false, 1]])
  expect(await again(0, 3, 1)).toEqual([
    ['vanished', false, 0],
    ['vanished', false, 2],
  ])
})

test('an answer made before a point was held says nothing of it; clocks may differ by ten minutes', async () => {
  const stored = 2_000_000_000
  for (const [after, told] of [
    [0n, 1],
    [1n, 0],
  ] as const) {
    const task = made.job([await made.body(JSON.stringify(three))], { observedAt: BigInt(stored) * 1_000_000n + after })
    await convert(made.engine, task)
    const window = { since: t1, until: t1 + 3 * day, horizon: stored - 600 }
    const again = made.job([await made.body(JSON.stringify(three.slice(1)), window)], { existing: [task.out] })
    expect((await convert(made.engine, again)).violations).toHaveLength(told)
  }
})

test('without overlap, and for a range requested for the first time, no point is compared', async () => {
  const { out } = await seed(JSON.stringify(three))
  const rewritten = JSON.stringify(three.map((p) => ({ ...p, v: p.v + 1 })))
  const asked = { since: t1, until: t1 + 3 * day }
  for (const overlap of ['off', 'fixed_range'] as const) {
    const result = await convert(
      made.engine,
      made.job([await made.body(rewritten, asked)], { existing: [out], overlap }),
    )
    expect(result).toMatchObject({ violations: [], file: null })
  }
  const prior = [{ ...asked, askedAt: 5 }]
  const same = await convert(
    made.engine,
    made.job([await made.body(rewritten, { ...asked, prior })], { existing: [out], overlap: 'fixed_range' }),
  )
  expect(same.violations).toHaveLength(3)
})

test('an earlier answer without a point counts for its series only', async () => {
  const window = { since: t1, until: t1 + 3 * day }
  const first = t1 + 40 * day
  const second = t1 + 41 * day
  const content = JSON.stringify(three)
  const bodies = [
    await made.body(JSON.stringify(three.slice(0, 1)), { ...window, askedAt: first }),
    await made.body(content, { ...window, askedAt: second, series: series('ETH') }),
    await made.body(content, { ...window, askedAt: second }),
  ]
  const task = made.job(bodies, { overlap: 'off' })
  await convert(made.engine, task)
  const rows = await made.stored(task.out)
  expect(rows.map(({ asset, basis }) => [asset, basis])).toEqual([
    ['BTC', 'assumed'],
    ['BTC', 'observed'],
    ['BTC', 'observed'],
    ...three.map(() => ['ETH', 'assumed']),
  ])
})

test('an empty answer makes everything in its window vanish, a poisoned one nothing', async () => {
  const { out } = await seed(JSON.stringify(three))
  const asked = { since: t1 + day, until: t1 + 9 * day }
  const empty = await convert(made.engine, made.job([await made.body('[]', asked)], { existing: [out] }))
  expect(empty.violations.map((v) => [v.kind, (v.t - t1) / day])).toEqual([
    ['vanished', 1],
    ['vanished', 2],
  ])
  const broken = await convert(made.engine, made.job([await made.body('[{"t":1}', asked)], { existing: [out] }))
  expect(broken.violations).toEqual([])
})

test('points of different series, of different dimensions and of NULL are never compared', async () => {
  const { out } = await seed(JSON.stringify(three))
  const others = [
    series('BTC', { currency: 'usd' }),
    series('BTC', { network: 'x' }),
    series('BTC', { params: { a: '1' } }),
    series('ETH'),
  ]
  const bodies = await Promise.all(
    others.map((one) => made.body(JSON.stringify(three.map((p) => ({ ...p, v: 9 }))), { series: one })),
  )
  const result = await convert(made.engine, made.job(bodies, { existing: [out] }))
  expect(result.violations).toEqual([])
  expect(result.file?.rows).toBe(12)
})

test('of overlapping bodies in one batch the first wins, and the later contradiction is reported', async () => {
  const first = await made.body(JSON.stringify(three), { since: t1, until: t1 + 3 * day, askedAt: 5 })
  const later = await made.body(
    JSON.stringify([
      { t: t1 + day, v: 50 },
      { t: t1 + 3 * day, v: 3 },
    ]),
    { since: t1 + day, until: t1 + 4 * day },
  )
  const task = made.job([first, later])
  const { violations, bodies } = await convert(made.engine, task)
  expect(violations.map((v) => [v.kind, (v.t - t1) / day, v.stored, v.offered])).toEqual([
    ['changed', 1, '1.0', '50.0'],
    ['vanished', 2, '2.0', null],
  ])
  expect(bodies.map((b) => b.added)).toEqual([3, 1])
  expect((await made.stored(task.out)).map((row) => row['v'])).toEqual([0, 1, 2, 3])
})

test('points outside the window are compared, then dropped', async () => {
  const { out } = await seed(JSON.stringify(three))
  const wide = JSON.stringify([
    { t: t1, v: 77 },
    { t: t1 + 3 * day, v: 3 },
    { t: t1 + 4 * day, v: 4 },
  ])
  const task = made.job([await made.body(wide, { since: t1 + 3 * day, until: t1 + 4 * day })], { existing: [out] })
  const { violations, bodies } = await convert(made.engine, task)
  expect(violations.map((v) => v.offered)).toEqual(['77.0'])
  expect(bodies[0]).toMatchObject({ points: 3, added: 1, first: t1 + 3 * day, last: t1 + 3 * day })
})

test('a body is compared with points known before it, not with those of a later body', async () => {
  const beyond = await made.body(`[{"t":${t1},"v":1},{"t":${t1 + day},"v":9}]`, { since: t1, until: t1 + day })
  const asked = await made.body(`[{"t":${t1 + day},"v":5}]`, { since: t1 + day, until: t1 + 2 * day })
  const { violations, bodies } = await convert(made.engine, made.job([beyond, asked]))
  expect(violations).toEqual([])
  expect(bodies.map(({ added }) => added)).toEqual([1, 1])
  const turned = await convert(made.engine, made.job([asked, beyond]))
  expect(turned.violations.map(({ kind, stored, offered }) => [kind, stored, offered])).toEqual([
    ['changed', '5.0', '9.0'],
  ])
})
