import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeLake, makeViews, type PointRow, withViews } from '../helpers/views.ts'

const point = (more: Partial<PointRow> & { t: string }): PointRow => ({
  metric: 'm/x',
  asset: 'BTC',
  interval: '24h',
  available_at: '2024-06-01',
  v: 1,
  ...more,
})
const object = (asset: string, o: string): PointRow => point({ metric: 'm/o', asset, t: '2024-03-01', v: null, o })
const supply = (currency: string, t: string, v: number | null, available_at: string): PointRow =>
  point({
    metric: 'supply/current_pit',
    currency,
    t,
    v,
    available_at,
    basis: currency === 'usd' ? 'stated' : 'provider',
  })

let root = ''

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'pitlake-values-'))
  const deep = `${'['.repeat(63)}7${']'.repeat(63)}`
  await makeLake(root, [
    {
      at: '2024-07-01',
      points: [
        object('flat', '{"1w":0.5,"a/b":-1e-3,"c~d":null,"":9007199254740993}'),
        object('nested', '{"x":{"y":[1,{"z":null},"text",true,[]],"e":{}},"k":-0.0}'),
        object('list', '[3,null,[4.5,{"a.b\\"":5e-324}]]'),
        object('deep', deep),
        object('mixed', '{"p/q":[1,null,"[5",-2,[]],"a~b":[{"c~d":[3,[4]]},{"c~d":5}],"s":"{","n":null,"o":{"x/y":6}}'),
        object('listed', '[[1,2],["[",null,7],{"k":[8]},"{",9]'),
        object('same', '{"a":1,"a":2}'),
        object('empty', '{}'),
        supply('usd', '2024-03-01', 100, '2024-03-02 00:10'),
        supply('native', '2024-03-01', 4, '2024-03-02 00:20'),
        supply('usd', '2024-03-02', 100, '2024-03-03 00:10'),
        supply('native', '2024-03-02', 0, '2024-03-03 00:05'),
        supply('usd', '2024-03-03', null, '2024-03-04 00:10'),
        supply('native', '2024-03-03', 4, '2024-03-04 00:05'),
        supply('usd', '2024-03-04', 5, '2024-03-05 00:10'),
        ...['2024-03-09', '2024-03-10', '2024-03-11'].map((t) => point({ asset: 'spring', t })),
        ...['2024-11-02', '2024-11-03', '2024-11-04'].map((t) => point({ asset: 'autumn', t })),
        ...['2024-01-31T23:00', '2024-02-01T02:00'].map((t) => point({ asset: 'hours', interval: '1h', t })),
        ...['2023-12-25', '2024-01-01', '2024-01-15'].map((t) => point({ asset: 'weeks', interval: '1w', t })),
        ...['2023-11-01', '2024-02-01', '2024-03-01'].map((t) => point({ asset: 'months', interval: '1month', t })),
        point({ asset: 'dims', t: '2024-03-01', currency: 'usd' }),
        point({ asset: 'dims', t: '2024-03-01', currency: null }),
      ],
    },
  ])
  await makeViews(root)
}, 300_000)

afterAll(() => rmSync(root, { recursive: true, force: true }))

test.each([
  ['flat', { '/1w': 0.5, '/a~1b': -0.001, '/c~0d': null, '/': 9007199254740992 }],
  ['nested', { '/x/y/0': 1, '/x/y/1/z': null, '/k': -0 }],
  ['list', { '/0': 3, '/1': null, '/2/0': 4.5, '/2/1/a.b"': 5e-324 }],
  ['deep', { ['/0'.repeat(63)]: 7 }],
  [
    'mixed',
    {
      '/p~1q/0': 1,
      '/p~1q/1': null,
      '/p~1q/3': -2,
      '/a~0b/0/c~0d/0': 3,
      '/a~0b/0/c~0d/1/0': 4,
      '/a~0b/1/c~0d': 5,
      '/n': null,
      '/o/x~1y': 6,
    },
  ],
  ['listed', { '/0/0': 1, '/0/1': 2, '/1/1': null, '/1/2': 7, '/2/k/0': 8, '/4': 9 }],
  ['empty', {}],
])('components of %s: a row per numeric or null leaf', async (asset, leaves) => {
  const rows = await withViews(root, (engine) =>
    engine.rows(`SELECT component, v FROM components WHERE asset = '${asset}'`),
  )
  expect(Object.fromEntries(rows.map((row) => [row['component'], row['v']]))).toEqual(leaves)
  expect(rows).toHaveLength(Object.keys(leaves).length)
})

test('a pointer finds in the value what its component shows', async () => {
  const rows = await withViews(root, (engine) =>
    engine.rows(`SELECT component, c.v, TRY_CAST(json_extract(p.o, component) AS DOUBLE) AS found
      FROM components c JOIN points p USING (metric, asset, t) WHERE asset <> 'same' AND component <> '/'`),
  )
  expect(rows.length).toBeGreaterThan(8)
  for (const row of rows) expect(row['found']).toEqual(row['v'])
})

test('price_usd: both parts, the later of their instants, NULL where there is nothing to divide by', async () => {
  await withViews(root, async (engine) => {
    const sql = 'SELECT t::DATE::VARCHAR AS d, available_at, v, basis, currency FROM price_usd ORDER BY t'
    expect(await engine.rows(sql)).toEqual([
      { d: '2024-03-01', available_at: '2024-03-02T00:20:00.000000Z', v: 25, basis: 'provider', currency: null },
      { d: '2024-03-02', available_at: '2024-03-03T00:10:00.000000Z', v: null, basis: 'stated', currency: null },
      { d: '2024-03-03', available_at: '2024-03-04T00:10:00.000000Z', v: null, basis: 'stated', currency: null },
    ])
    await engine.run(`SET VARIABLE as_of = '2024-03-02 00:19:59'`)
    expect(await engine.rows(sql)).toEqual([])
  })
})

test.each([
  ['spring', 3, 0],
  ['autumn', 3, 0],
  ['hours', 2, 2],
  ['weeks', 3, 1],
  ['months', 3, 2],
])('series of %s: %d points, %d gaps, also over changes of summer time', async (asset, points, gaps) => {
  for (const zone of ['UTC', 'America/New_York']) {
    const rows = await withViews(root, async (engine) => {
      await engine.run(`SET TimeZone = '${zone}'`)
      return await engine.rows(
        `SELECT points::INTEGER AS points, gaps::INTEGER AS gaps FROM series WHERE asset = '${asset}'`,
      )
    })
    expect(rows).toEqual([{ points, gaps }])
  }
})

test('series: NULL dimensions are a series of their own, and as_of counts only what is known', async () => {
  await withViews(root, async (engine) => {
    const dims = await engine.rows(`SELECT currency FROM series WHERE asset = 'dims' ORDER BY currency`)
    expect(dims).toEqual([{ currency: 'usd' }, { currency: null }])
    await engine.run(`SET VARIABLE as_of = '2024-03-03 00:07'`)
    const sql = `SELECT currency, points::INTEGER AS points, last_available_at FROM series ORDER BY currency`
    expect(await engine.rows(sql)).toEqual([
      { currency: 'native', points: 2, last_available_at: '2024-03-03T00:05:00.000000Z' },
      { currency: 'usd', points: 1, last_available_at: '2024-03-02T00:10:00.000000Z' },
    ])
  })
})
