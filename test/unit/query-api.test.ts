import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Lake, openLake, rows } from '../../src/index.ts'
import { makeQueryLake } from '../helpers/query-lake.ts'

let folder = ''
let remove = async (): Promise<void> => undefined
let lake: Lake
beforeAll(async () => {
  ;({ folder, remove } = await makeQueryLake())
  lake = await openLake(folder)
})
afterAll(async () => {
  await lake.close()
  await remove()
})

describe('values come as typed Arrow columns', () => {
  test('every kind, and NULL', async () => {
    const table = await lake.sql(`SELECT * FROM (VALUES
 (true, -7::TINYINT, 9007199254740993, 18446744073709551615::UBIGINT, -170141183460469231731::HUGEINT, -1.50::DECIMAL(9,2), 1.25::FLOAT, '-0.0'::DOUBLE,
  'a longer text than twelve', '\\xAA\\x00'::BLOB, DATE '1969-12-31', TIME '10:00:00.000001', make_timestamptz(-1), make_timestamp(1), [1, NULL], ['a', NULL, 'bc'], {'a': 1, 'b': ['x']},
  MAP {'k': 2}, [1, 2]::INTEGER[2], 'x'::ENUM('x', 'y'), '{"a":1}'::JSON, INTERVAL '1 month'),
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL))
 AS t(bool, tiny, big, unsigned, wide, price, single, double, text, blob, day, hour, "at", plain, list, texts, struct, map, pair, enum, doc, span)`)
    expect(table.schema.fields.map((field) => `${field.name} ${field.type}`)).toEqual([
      'bool Bool',
      'tiny Int8',
      'big Int64',
      'unsigned Uint64',
      'wide Decimal[38e0]',
      'price Decimal[9e+2]',
      'single Float32',
      'double Float64',
      'text Utf8',
      'blob Binary',
      'day Date32<DAY>',
      'hour Time64<MICROSECOND>',
      'at Timestamp<MICROSECOND, UTC>',
      'plain Timestamp<MICROSECOND>',
      'list List<Int32>',
      'texts List<Utf8>',
      'struct Struct<{a:Int32, b:List<Utf8>}>',
      'map Map<{key:Utf8, value:Int32}>',
      'pair FixedSizeList[2]<Int32>',
      'enum Utf8',
      'doc Utf8',
      'span Utf8',
    ])
    const row = table.get(0)
    expect([
      row?.bool,
      row?.tiny,
      row?.big,
      row?.unsigned,
      row?.single,
      row?.double,
      row?.text,
      row?.enum,
      row?.doc,
      row?.span,
    ]).toEqual([
      true,
      -7,
      9_007_199_254_740_993n,
      18_446_744_073_709_551_615n,
      1.25,
      -0,
      'a longer text than twelve',
      'x',
      '{"a":1}',
      '1 month',
    ])
    expect([String(row?.wide), String(row?.price)]).toEqual(['-170141183460469231731', '-150'])
    expect([...(row?.blob as Uint8Array)]).toEqual([0xaa, 0])
    expect(row?.day).toBe(-86_400_000)
    expect(row?.hour).toBe(36_000_000_001n)
    const raw = (name: string): unknown => (table.getChild(name)?.data[0]?.values as BigInt64Array)[0]
    expect([raw('at'), raw('plain')]).toEqual([-1n, 1n])
    for (const part of [
      '"list": [1,null]',
      '"texts": ["a",null,"bc"]',
      '"struct": {"a":1,"b":["x"]}',
      '"map": {"k":2}',
      '"pair": [1,2]',
    ]) {
      expect(String(row)).toContain(part)
    }
    expect(Object.values(table.get(1)?.toJSON() ?? {}).every((value) => value === null)).toBe(true)
    expect(table.schema.fields.map(({ name }) => table.getChild(name)?.nullCount)).toEqual(
      table.schema.fields.map(() => 1),
    )
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

  test('an instant without end', async () => {
    const table = await lake.sql("SELECT TIMESTAMPTZ 'infinity' AS a, DATE 'infinity' AS b")
    expect(rows(table)).toEqual([{ a: null, b: null }])
  })

  test('no rows keep their types; names that are there twice', async () => {
    const none = await lake.sql('SELECT 1 AS a, NULL::TIMESTAMPTZ AS b LIMIT 0')
    expect([none.numRows, String(none.schema.fields[1]?.type)]).toEqual([0, 'Timestamp<MICROSECOND, UTC>'])
    expect((await lake.sql('SELECT 1 AS a, 2 AS a')).get(0)?.toJSON()).toEqual({ a: 1, a_1: 2 })
  })
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

  test('mistakes are told', async () => {
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
