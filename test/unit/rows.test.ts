import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Lake, openLake, rows } from '../../src/index.ts'
import { makeQueryLake } from '../helpers/query-lake.ts'

let remove = async (): Promise<void> => undefined
let lake: Lake
beforeAll(async () => {
  const made = await makeQueryLake()
  ;({ remove } = made)
  lake = await openLake(made.folder)
})
afterAll(async () => {
  await lake.close()
  await remove()
})

test('every kind of value, and NULL', async () => {
  const table = await lake.sql(`SELECT * FROM (VALUES
 (true, -7::TINYINT, 9007199254740993, -170141183460469231731::HUGEINT, -1.05::DECIMAL(9,2), 0.05::DECIMAL(30,20), 1.25,
  'text', DATE '1969-12-31', TIMESTAMPTZ '2024-03-01 00:00:00.001999Z', TIMESTAMPTZ 'infinity', [1, NULL], [[DATE '2024-01-01']],
  {'a': 1, 'b': [TIMESTAMP '2024-01-02']}, MAP {'k': 2.5::DECIMAL(4,1)}, [1, 2]::INTEGER[2], INTERVAL '1 month'),
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL))
 AS t(bool, tiny, big, wide, price, fine, double, text, day, "at", open, list, nested, struct, map, pair, span)`)
  const [first, second, ...more] = rows(table)
  expect(more).toEqual([])
  expect(first).toEqual({
    bool: true,
    tiny: -7,
    big: 9007199254740993n,
    wide: -170141183460469231731n,
    price: '-1.05',
    fine: '0.05000000000000000000',
    double: '1.25',
    text: 'text',
    day: new Date('1969-12-31'),
    at: new Date('2024-03-01T00:00:00.001Z'),
    open: null,
    list: [1, null],
    nested: [[new Date('2024-01-01')]],
    struct: { a: 1, b: [new Date('2024-01-02')] },
    map: { k: '2.5' },
    pair: [1, 2],
    span: '1 month',
  })
  expect(new Set(Object.values(second ?? {}))).toEqual(new Set([null]))
})

test('rows have the type that the caller says', async () => {
  const found = rows<{ asset: string; n: bigint }>(await lake.sql(`SELECT 'BTC' AS asset, 2::BIGINT AS n`))
  expect(found.map(({ asset, n }) => asset.repeat(Number(n)))).toEqual(['BTCBTC'])
  expect(rows(await lake.sql('SELECT 1 AS a WHERE false'))).toEqual([])
})

test('a closed lake is said, at every call', async () => {
  const own = await openLake(lake.folder)
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
