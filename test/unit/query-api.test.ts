import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Lake, openLake, rows } from '../../src/index.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

const { root: folder } = lakeOfFile(hundredFetchedDays)
let lake: Lake
beforeAll(async () => {
  lake = await openLake(folder)
})
afterAll(async () => {
  await lake.close()
})

/** A column of every type: its name and type in Arrow, its value in SQL, and as a row of JavaScript has it. */
const kinds: readonly (readonly [field: string, sql: string, value: unknown])[] = [
  ['bool Bool', 'true', true],
  ['tiny Int8', '-7::TINYINT', -7],
  ['big Int64', '9007199254740993', 9_007_199_254_740_993n],
  ['unsigned Uint64', '18446744073709551615::UBIGINT', 18_446_744_073_709_551_615n],
  ['wide Decimal[38e0]', '-170141183460469231731::HUGEINT', -170_141_183_460_469_231_731n],
  ['price Decimal[9e+2]', '-1.05::DECIMAL(9,2)', '-1.05'],
  ['fine Decimal[30e+20]', '0.05::DECIMAL(30,20)', '0.05000000000000000000'],
  ['single Float32', '1.25::FLOAT', 1.25],
  ['double Float64', "'-0.0'::DOUBLE", -0],
  ['text Utf8', "'a longer text than twelve'", 'a longer text than twelve'],
  ['blob Binary', String.raw`'\xAA\x00'::BLOB`, Uint8Array.of(0xaa, 0)],
  ['day Date32<DAY>', "DATE '1969-12-31'", new Date('1969-12-31')],
  ['hour Time64<MICROSECOND>', "TIME '10:00:00.000001'", 36_000_000_001n],
  ['at Timestamp<MICROSECOND, UTC>', "TIMESTAMPTZ '2024-03-01 00:00:00.001999Z'", new Date('2024-03-01T00:00:00.001Z')],
  ['plain Timestamp<MICROSECOND>', 'make_timestamp(1000)', new Date(1)],
  ['open Timestamp<MICROSECOND, UTC>', "TIMESTAMPTZ 'infinity'", null],
  ['end Date32<DAY>', "DATE 'infinity'", null],
  ['list List<Int32>', '[1, NULL]', [1, null]],
  ['texts List<Utf8>', "['a', NULL, 'bc']", ['a', null, 'bc']],
  ['nested List<List<Date32<DAY>>>', "[[DATE '2024-01-01']]", [[new Date('2024-01-01')]]],
  [
    'struct Struct<{a:Int32, b:List<Timestamp<MICROSECOND>>}>',
    "{'a': 1, 'b': [TIMESTAMP '2024-01-02']}",
    { a: 1, b: [new Date('2024-01-02')] },
  ],
  ['map Map<{key:Utf8, value:Decimal[4e+1]}>', "MAP {'k': 2.5::DECIMAL(4,1)}", { k: '2.5' }],
  ['pair FixedSizeList[2]<Int32>', '[1, 2]::INTEGER[2]', [1, 2]],
  ['enum Utf8', "'x'::ENUM('x', 'y')", 'x'],
  ['doc Utf8', `'{"a":1}'::JSON`, '{"a":1}'],
  ['span Utf8', "INTERVAL '1 month'", '1 month'],
]

describe('values come as typed Arrow columns, and as rows', () => {
  test('values of every kind and NULL come as typed Arrow columns and as rows', async () => {
    const values = kinds.map(([, sql]) => sql).join(', ')
    const names = kinds.map(([field]) => `"${field.split(' ')[0]}"`)
    const nulls = kinds.map(() => 'NULL').join(', ')
    const table = await lake.sql(`SELECT * FROM (VALUES (${values}), (${nulls})) AS t(${names.join(', ')})`)
    expect(table.schema.fields.map((field) => `${field.name} ${field.type}`)).toEqual(kinds.map(([field]) => field))
    const [first, second, ...more] = rows(table)
    expect(Object.values(first ?? {})).toEqual(kinds.map(([, , value]) => value))
    expect([new Set(Object.values(second ?? {})), more]).toEqual([new Set([null]), []])
    expect(names.map((_, n) => table.getChildAt(n)?.nullCount)).toEqual(names.map(() => 1))
    const raw = table.getChild('at')?.data[0]?.values as BigInt64Array
    expect(raw[0]).toBe(BigInt(Date.UTC(2024, 2, 1)) * 1000n + 1999n)
  })

  test('many batches agree with SQL, nested values across chunks too', async () => {
    const sql = `SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE i / 2 END AS v, 'asset number ' || (i // 1000) AS s,
 CASE WHEN i % 5 = 0 THEN NULL ELSE range(i % 4) END AS l, CASE WHEN i % 3 = 0 THEN NULL ELSE {'a': i} END AS st FROM range(140000) AS r(i)`
    const table = await lake.sql(sql)
    expect([table.numRows, table.batches.length]).toEqual([140_000, 3])
    for (const i of [0, 1, 7, 2047, 2048, 65_535, 67_584, 139_999]) {
      const row = table.get(i)
      expect([row?.i, row?.v, row?.s]).toEqual([
        BigInt(i),
        i % 7 === 0 ? null : i * 0.5,
        `asset number ${Math.floor(i / 1000)}`,
      ])
      expect(row?.l === null ? null : [...(row?.l as Iterable<bigint>)].map(Number)).toEqual(
        i % 5 === 0 ? null : Array.from({ length: i % 4 }, (_, k) => k),
      )
      expect(row?.st === null ? null : (row?.st as { a: bigint }).a).toBe(i % 3 === 0 ? null : BigInt(i))
    }
    let sum = 0n
    for (const value of table.getChild('i') ?? []) sum += value as bigint
    expect(sum).toBe(9_799_930_000n)
  })

  test('an answer without rows keeps its types, and repeated names stay apart', async () => {
    const none = await lake.sql('SELECT 1 AS a, NULL::TIMESTAMPTZ AS b LIMIT 0')
    expect([none.numRows, String(none.schema.fields[1]?.type)]).toEqual([0, 'Timestamp<MICROSECOND, UTC>'])
    expect((await lake.sql('SELECT 1 AS a, 2 AS a')).get(0)?.toJSON()).toEqual({ a: 1, a_1: 2 })
  })
})

test('resample answers what its macro answers, for the assets and options that are given', async () => {
  const [series] = rows<{ metric: string; asset: string }>(
    await lake.sql(`SELECT metric, asset FROM series WHERE "interval" = '24h' AND points > 0 ORDER BY ALL LIMIT 1`),
  )
  const { metric = '', asset = '' } = series ?? {}
  const question = { metric, fromInterval: '24h', toInterval: '1month', agg: 'sum', assets: [asset], minParts: 1 }
  const answer = rows(await lake.resample({ ...question, since: '2024-01-01' }))
  const sql = `FROM resample($1, '24h', '1month', 'sum', min_parts := 1, since := '2024-01-01') WHERE asset = $2 ORDER BY ALL`
  expect(answer.length).toBeGreaterThan(0)
  expect(answer).toEqual(expect.arrayContaining(rows(await lake.sql(sql, [metric, asset]))))
  await expect(lake.resample({ ...question, minParts: 0 })).rejects.toThrow(
    /resample: minParts: expected a number of parts/,
  )
  const pasted = lake.resample({ ...question, component: "') FROM points --" })
  await expect(pasted).rejects.toThrow(/a component is a JSON pointer: it begins with/)
})

test('an empty list of assets is refused, in a query for points, a calendar and a resampling', async () => {
  const words = /^assets: expected names, at least one, got \[\]$/
  await expect(lake.points({ assets: [] })).rejects.toThrow(words)
  await expect(lake.calendar({ since: '2024-01-01', until: '2024-01-02', step: '1d', assets: [] })).rejects.toThrow(
    words,
  )
  const resampling = { metric: 'supply/current_pit', fromInterval: '24h', toInterval: '1month', assets: [] }
  await expect(lake.resample(resampling)).rejects.toThrow(words)
})

test('a universe at another instant leaves the as_of of the lake as it was', async () => {
  const own = await openLake(folder, { asOf: '2024-02-01' })
  const asOf = async (): Promise<unknown> =>
    (await own.sql("SELECT CAST(getvariable('as_of') AS VARCHAR) AS held")).get(0)?.['held']
  expect(await asOf()).toBe('2024-02-01')
  await own.universe('2024-01-31')
  expect(await asOf()).toBe('2024-02-01')
  await expect(own.universe('never')).rejects.toThrow(/^at: expected an instant such as/)
  expect(await asOf()).toBe('2024-02-01')
  await own.close()
})

describe('panel, points, universe', () => {
  const metrics = ['supply/current_pit', 'indicators/one']
  test('decisions come back once each and in order, with what was knowable', async () => {
    const decisions = [
      { asset: 'ETH', ts: '2024-01-05T00:10:00Z', size: 1.5, why: null },
      { asset: 'BTC', ts: '2024-01-03 00:09:59', size: 2, why: 'a' },
      { asset: 'BTC', ts: '2024-01-03 00:09:59', size: 2, why: 'a' },
      { asset: null, ts: null, size: null, why: 'b' },
    ]
    const panel = await lake.panel({ decisions, metrics, interval: '24h', fields: ['v', 't'] })
    expect(panel.schema.fields.map(({ name }) => name)).toEqual([
      'asset',
      'ts',
      'size',
      'why',
      ...metrics.flatMap((metric) => [metric, `${metric}.t`]),
    ])
    const rows = panel.toArray().map((row) => Object.values(row.toJSON()))
    const day = (n: number): number => Date.UTC(2024, 0, n)
    const btc = ['BTC', Date.UTC(2024, 0, 3, 0, 9, 59), 2, 'a', 1000, day(1), 2000, day(1)]
    expect(rows).toEqual([
      ['ETH', Date.UTC(2024, 0, 5, 0, 10), 1.5, null, null, day(4), null, day(4)],
      btc,
      btc,
      [null, null, null, 'b', null, null, null, null],
    ])
    const latency = await lake.panel({ decisions: decisions.slice(0, 1), metrics, interval: '24h', latencySeconds: 1 })
    expect(latency.get(0)?.['indicators/one']).toBe(2002)
    const calendar = {
      kind: 'calendar',
      since: '2024-01-02',
      until: '2024-01-04',
      step: '1 day',
      assets: ['BTC', 'ETH'],
    } as const
    const grid = await lake.panel({ decisions: calendar, metrics: ['indicators/one'], interval: '24h' })
    expect(grid.toArray().map((row) => `${row.asset} ${row['indicators/one']}`)).toEqual([
      'BTC null',
      'ETH null',
      'BTC 2000',
      'ETH 2000',
    ])
  })

  test('mistakes in panel, points and universe are named with the argument', async () => {
    await expect(lake.panel({ decisions: [], metrics: [], interval: '24h' })).rejects.toThrow(
      /^metrics: expected paths/,
    )
    await expect(lake.panel({ decisions: [], metrics: ['a', 'a'], interval: '24h' })).rejects.toThrow(
      /each metric once/,
    )
    const bad = [{ asset: 'BTC', ts: 'soon' }]
    await expect(lake.panel({ decisions: bad, metrics, interval: '24h' })).rejects.toThrow(/soon/)
    await expect(lake.points({ metrics: [] })).rejects.toThrow(/at least one/)
  })

  test('the as_of of one call does not stay', async () => {
    expect((await lake.universe('2024-01-31T23:59:59.999999Z')).numRows).toBe(0)
    expect((await lake.universe()).numRows).toBe(20)
    expect((await lake.universe('2024-02-01')).get(0)).toMatchObject({ product_id: 'p0', assumed: false })
    await expect(lake.universe('never')).rejects.toThrow(/^at: expected an instant such as/)
    expect((await lake.universe()).numRows).toBe(20)
    expect((await lake.sql(`SELECT getvariable('as_of') AS a`)).get(0)?.a).toBeNull()
  })

  test('calls at once are answered in turn; an aborted one does not harm the others', async () => {
    const stop = new AbortController()
    const endless = lake.sql('SELECT count(*) FROM range(100000000000) a, range(1000) b', undefined, {
      signal: stop.signal,
    })
    const after = lake.sql('SELECT 1 AS a')
    setTimeout(() => stop.abort(), 100)
    await expect(endless).rejects.toMatchObject({ kind: 'stopped' })
    expect((await after).get(0)?.a).toBe(1)
  })
})

test('rows have the type that the caller says', async () => {
  const found = rows<{ asset: string; n: bigint }>(await lake.sql(`SELECT 'BTC' AS asset, 2::BIGINT AS n`))
  expect(found.map(({ asset, n }) => asset.repeat(Number(n)))).toEqual(['BTCBTC'])
  expect(rows(await lake.sql('SELECT 1 AS a WHERE false'))).toEqual([])
})

test('a closed lake is said, at every call', async () => {
  const own = await openLake(folder)
  await own.close()
  const panel = { decisions: [{ asset: 'BTC', ts: '2024-01-01' }], metrics: ['price_usd'] }
  const calls = [
    own.sql('SELECT 1'),
    own.metrics(),
    own.version(),
    own.refresh(),
    own.universe('now'),
    own.panel(panel),
  ]
  for (const ended of await Promise.allSettled(calls))
    expect(ended).toMatchObject({
      reason: {
        name: 'LakeError',
        kind: 'usage',
        message: 'lake: expected an open one, got a closed one; openLake opens it',
      },
    })
  await own.close()
})

test('the entry of the package passes on all that the library has', async () => {
  const entry = readFileSync(new URL('../../scripts/library.cjs', import.meta.url), 'utf8')
  const passed = [...entry.matchAll(/^exports\.(\w+) = library\.(\w+)$/gm)].map(([, name, from]) => `${name} ${from}`)
  const names = Object.keys(await import('../../src/index.ts'))
  expect(new Set(passed)).toEqual(new Set(names.map((name) => `${name} ${name}`)))
})
