import { afterAll, beforeAll, expect, test } from 'vitest'
import { backfillAfter, type Rule } from '../../src/catalog/availability.ts'
import { day } from '../../src/base/time.ts'
import { codecsOf } from '../helpers/codecs.ts'
import { at, convert, Converting, daily, lag600, micros, nextMorning, series, t1 } from '../helpers/converting.ts'

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

test('a point is dated by its rule and stored with the identity of its series', async () => {
  const task = made.job([
    await made.body(`[{"t":${t1},"v":100}]`, {
      series: series('$x.1', { currency: 'usd', network: 'eth', params: { b: '2', a: '1' } }),
    }),
  ])
  const { file, findings } = await convert(made.engine, task)
  expect(findings).toEqual([])
  const available = BigInt(micros('2024-03-02T00:10:00'))
  expect(await made.stored(task.out)).toEqual([
    {
      asset: '$x.1',
      currency: 'usd',
      exchange: null,
      network: 'eth',
      t: BigInt(micros('2024-03-01')),
      available_at: available,
      observed_at: task.observedAt,
      v: 100,
      o: null,
      basis: 'assumed',
      extra: null,
      computed_at: null,
      available_rule_at: available,
      params: '{"a":"1","b":"2"}',
    },
  ])
  expect(file).toMatchObject({ rows: 1, min_t: t1, max_t: t1, min_lag: 600_000_000, min_available: Number(available) })
  const footer = await made.engine.rows(
    `SELECT decode(value) AS v FROM parquet_kv_metadata('${task.out.replaceAll("'", "''")}')`,
  )
  expect(footer).toEqual([{ v: "it's" }])
})

test('TIME 10: computed_at is stored, clamped to the end and to a stated instant, and reported', async () => {
  const told = [at('2024-03-02T11:00'), at('2024-03-02T23:00'), at('2024-03-04T05:00')]
  const content = JSON.stringify(told.map((computed_at, i) => ({ t: t1 + i * day, v: i, computed_at })))
  const task = made.job([await made.body(content)], { rules: [nextMorning] })
  const { findings } = await convert(made.engine, task)
  const rows = await made.stored(task.out)
  expect(rows.map((row) => [row['available_at'], row['computed_at'], row['basis']])).toEqual([
    [BigInt(micros('2024-03-02T11:00')), BigInt(micros('2024-03-02T11:00')), 'provider'],
    [BigInt(micros('2024-03-03T10:15')), BigInt(micros('2024-03-02T23:00')), 'provider'],
    [BigInt(micros('2024-03-04T10:15')), BigInt(micros('2024-03-04T05:00')), 'provider'],
  ])
  expect(findings.map((f) => [f.t, f.kind])).toEqual([
    [t1 + day, 'before_end'],
    [t1 + 2 * day, 'before_stated'],
  ])
  expect(findings[0]?.detail).toEqual({
    computed_at: micros('2024-03-02T23:00'),
    end: t1 + 2 * day,
    floor: at('2024-03-03T10:15'),
  })
})

test('a backfilled point keeps both instants, a merely late one does not', async () => {
  const t2020 = at('2020-01-01')
  const rows = (
    await made.values(
      JSON.stringify([
        { t: t2020, v: 1, computed_at: at('2023-06-01') },
        { t: at('2023-05-20'), v: 2, computed_at: at('2023-06-01') },
      ]),
    )
  ).rows
  expect(rows.map((row) => [row['available_at'], row['available_rule_at'], row['basis']])).toEqual([
    [BigInt(micros('2023-06-01')), BigInt(micros('2020-01-02T00:10')), 'provider'],
    [BigInt(micros('2023-06-01')), BigInt(micros('2023-06-01')), 'provider'],
  ])
})

test('a point is backfilled from the first microsecond beyond the threshold on', async () => {
  const due = t1 + day + 600
  const threshold = backfillAfter('24h')
  const { rows } = await made.values(
    `[{"t":${t1},"v":1,"computed_at":${due + threshold}},{"t":${t1 + day},"v":2,"computed_at":${due + day + threshold}.000001}]`,
  )
  expect(rows.map((row) => row['available_rule_at'])).toEqual([
    BigInt(due + threshold) * 1_000_000n,
    BigInt(due + day) * 1_000_000n,
  ])
})

test('a trusted rule wins over computed_at, a dated rule holds until its date', async () => {
  const early: Rule = { ...lag600, until: t1 + day, seconds: 60, basis: 'override', trust: 'rule' }
  const { rows } = await made.values(
    JSON.stringify([
      { t: t1, v: 1, computed_at: t1 + 3 * day },
      { t: t1 + day, v: 1, computed_at: t1 + 3 * day },
    ]),
    { rules: [early, lag600] },
  )
  expect(rows.map((row) => [row['available_at'], row['basis']])).toEqual([
    [BigInt(t1 + day + 60) * 1_000_000n, 'override'],
    [BigInt(t1 + 3 * day) * 1_000_000n, 'provider'],
  ])
})

test('interval ends become starts, months by the calendar', async () => {
  const content = `[{"t":${at('2024-03-01')},"v":1},{"t":${at('2024-04-01')},"v":2}]`
  const { rows } = await made.values(content, { interval: '1month', timestamp: 'interval_end' })
  expect(rows.map((row) => [row['t'], row['available_at']])).toEqual([
    [BigInt(micros('2024-02-01')), BigInt(micros('2024-03-01T00:10'))],
    [BigInt(micros('2024-03-01')), BigInt(micros('2024-04-01T00:10'))],
  ])
})

test('a computed_at that fits the opposite convention is reported once', async () => {
  const soon = JSON.stringify([0, 1, 2, 3].map((i) => ({ t: t1 + i * day, v: i, computed_at: t1 + i * day + 300 })))
  const started = await convert(made.engine, made.job([await made.body(soon)]))
  expect(started.findings.map((f) => [f.kind, f.t])).toEqual([['convention', t1]])
  const ended = await convert(made.engine, made.job([await made.body(soon)], { timestamp: 'interval_end' }))
  expect(ended.findings).toEqual([])
  const later = JSON.stringify(
    [0, 1, 2, 3].map((i) => ({ t: t1 + i * day, v: i, computed_at: t1 + (i + 1) * day + 300 })),
  )
  expect((await convert(made.engine, made.job([await made.body(later)]))).findings).toEqual([])
  const mistaken = await convert(made.engine, made.job([await made.body(later)], { timestamp: 'interval_end' }))
  expect(mistaken.findings.map((f) => f.kind)).toEqual(['convention'])
})

test('TIME 33: an unfinished interval and one before its stated instant are not stored', async () => {
  const content = JSON.stringify(daily(3))
  const horizon = at('2024-03-03T09:00')
  const over = { since: t1, until: t1 + 9 * day, horizon, askedAt: horizon }
  const assumed = await convert(made.engine, made.job([await made.body(content, over)]))
  expect(assumed.bodies[0]).toMatchObject({ points: 3, added: 2, last: t1 + day, missing: [] })
  const stated = await convert(made.engine, made.job([await made.body(content, over)], { rules: [nextMorning] }))
  expect(stated.bodies[0]).toMatchObject({ points: 3, added: 1, last: t1, missing: [] })
})

test('a point that an earlier answer lacked is late', async () => {
  const content = JSON.stringify(
    [0, 1, 2].map((i) => ({ t: t1 + i * day, v: i, ...(i === 2 ? { computed_at: t1 + 3 * day + 5 } : {}) })),
  )
  const prior = [{ since: t1, until: t1 + 9 * day, askedAt: at('2024-03-03T00:10:00') }]
  const task = made.job([await made.body(content, { prior })])
  await convert(made.engine, task)
  const rows = await made.stored(task.out)
  expect(rows.map((row) => row['basis'])).toEqual(['observed', 'assumed', 'provider'])
  expect(rows[0]?.['available_at']).toBe(task.observedAt)
  expect(rows[0]?.['available_rule_at']).toBe(task.observedAt)
  expect(rows[1]?.['available_at']).toBe(BigInt(micros('2024-03-03T00:10')))
})

test('a few rows are written to open fast, many to be small', async () => {
  const codecs = async (points: number): Promise<unknown> => {
    const rows = Array.from({ length: points }, (_, i) => `{"t":${t1 - i * 86_400},"v":${i}.5}`).toReversed()
    const task = made.job([await made.body(`[${rows.join(',')}]`, { since: t1 - points * 86_400, until: t1 + 86_400 })])
    expect((await convert(made.engine, task)).file?.rows).toBe(points)
    return await codecsOf(made.engine, task.out)
  }
  expect(await codecs(3)).toEqual(['SNAPPY'])
  expect(await codecs(2500)).toEqual(['ZSTD'])
})

test('a point of more than a megabyte is stored whole', async () => {
  const long = JSON.stringify({ text: 'x'.repeat(1_500_000) })
  const { only, rows } = await made.values(`[{"t":${t1},"o":${long}},{"t":${t1 + 86_400},"o":{"a":1}}]`)
  expect(only).toMatchObject({ points: 2, reason: null })
  expect(rows.map((row) => row['o'])).toEqual([long, '{"a":1}'])
})
