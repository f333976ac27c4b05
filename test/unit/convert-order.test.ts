import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { convert } from '../../src/sources/points/convert.ts'
import type { Body, ConvertPart } from '../../src/sources/points/conversion-types.ts'
import { quote } from '../../src/lake/store/engine.ts'
import { Converting, lag600, micros, series } from '../helpers/converting.ts'

const hour = 3600
const start = Date.UTC(2020, 0, 1) / 1000
const count = 6_000

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

/** Hours from the start on, asked for in two windows that lie apart, in any order of the points. */
async function bodiesOf(asset: string, turned: (points: string[]) => string[]): Promise<Body[]> {
  const half = (from: number): Promise<Body> => {
    const points = Array.from({ length: count / 2 }, (_, i) => `{"t":${start + (from + i) * hour},"v":${from + i}}`)
    const window = { since: start + from * hour, until: start + (from + count / 2) * hour }
    return made.body(`[${turned(points).join(',')}]`, { ...window, series: series(asset, { interval: '1h' }) })
  }
  return [await half(count / 2), await half(0)]
}

const frame = { timestamp: 'interval_start', observedAt: BigInt(micros('2030-01-01')), metadata: {} } as const

function partOf(bodies: readonly Body[], n: number): ConvertPart {
  const out = join(made.folder, `order-${Math.random()}.parquet`)
  return { metric: `m${n}`, interval: '1h', rules: [lag600], overlap: 'exact', bodies, existing: [], out }
}

test.each([
  ['as they rise', (points: string[]) => points],
  ['as they fall', (points: string[]) => points.toReversed()],
  ['in two heaps', (points: string[]) => [...points.slice(1000), ...points.slice(0, 1000)]],
  ['one of them twice', (points: string[]) => [...points, points[7] ?? '']],
])('L4: many points, %s, stand in the order of series and t, each once', async (_name, turned) => {
  const assets = Array.from({ length: 12 }, (_, n) => `A${String(n).padStart(2, '0')}`)
  const bodies = (await Promise.all(assets.toReversed().map((asset) => bodiesOf(asset, turned)))).flat()
  const halves = [bodies.slice(0, 12), bodies.slice(12)]
  const parts = halves.map(partOf)
  const recent = { existing: [], out: join(made.folder, `order-${Math.random()}.parquet`) }
  for (const portion of [1, Number.POSITIVE_INFINITY]) {
    const { files, recent: together } = await convert(made.engine, { parts, recent, portion, ...frame })
    const written = portion === 1 ? parts.map(({ out }) => out) : [recent.out]
    expect([...files.flatMap((file) => file?.rows ?? []), ...(together ? [together.rows] : [])]).toEqual(
      portion === 1 ? [6 * count, 6 * count] : [12 * count],
    )
    const rows = await made.engine.rows(
      `SELECT count(*) AS points, count(DISTINCT (asset, t)) AS moments, count(*) FILTER (WHERE v <> (epoch(t) - ${start}) / ${hour}) AS wrong,
         count(*) FILTER (WHERE (asset, t) <= before) AS back
       FROM (SELECT *, lag((asset, t)) OVER (ORDER BY file, file_row_number) AS before
         FROM (SELECT file_index AS file, * FROM read_parquet([${written.map(quote).join(', ')}], file_row_number = true, hive_partitioning = false)))`,
    )
    // The second partition begins anew.
    expect(rows).toEqual([{ points: 72_000n, moments: 72_000n, wrong: 0n, back: 1n }])
  }
})

/** The engine reads 2,048 rows at a time, and each of its threads 60 times as many. */
test.each([
  [1, 3],
  [63, 3],
  [22_880, 60],
])('L4: a partition whose first %i points end chunk %i of the engine begins with them', async (few, chunks) => {
  const begin = Date.UTC(2010, 0, 1) / 1000
  const body = (rows: number): Promise<Body> =>
    made.body(JSON.stringify(Array.from({ length: rows }, (_, i) => ({ t: begin + i * hour, v: i }))), {
      series: series('A', { interval: '1h' }),
    })
  const sizes = [chunks * 2048 - few, 24_000, 1000]
  const parts = (await Promise.all(sizes.map(body))).map((one, n) => partOf([one], n))
  const recent = { existing: [], out: join(made.folder, `order-${Math.random()}.parquet`) }
  for (const portion of [1, 24_001]) {
    const { files } = await convert(made.engine, { parts, recent, portion, ...frame })
    const small = sizes.filter((rows) => rows < portion)
    expect(files.map((file) => file?.rows)).toEqual(sizes.map((rows) => (rows < portion ? undefined : rows)))
    for (const out of small.length > 0 ? [recent.out] : parts.map((part) => part.out)) {
      const rows = await made.engine.rows(
        `SELECT v FROM (SELECT *, lag(v) OVER (ORDER BY file_row_number) AS before FROM read_parquet(${quote(out)}, file_row_number = true))
         WHERE v IS DISTINCT FROM before + 1`,
      )
      expect(rows).toEqual(Array.from({ length: Math.max(1, small.length) }, () => ({ v: 0 })))
    }
  }
})

test.each([
  ['as objects', '"v":{"a":1}'],
  ['value by value', '"v":1,"more":true'],
])('L4: a series that is read %s stands before the next one', async (_name, value) => {
  const texts = [value, '"v":1'].map((shown) =>
    Array.from({ length: 1200 }, (_, i) => `{"t":${start + i * hour},${shown}}`),
  )
  const bodies = await Promise.all(
    texts.map((points, n) => made.body(`[${points.join(',')}]`, { series: series(`A${n}`, { interval: '1h' }) })),
  )
  const part = partOf(bodies, 0)
  const recent = { existing: [], out: join(made.folder, `order-${Math.random()}.parquet`) }
  await convert(made.engine, { parts: [part], recent, portion: 1, ...frame })
  const rows = await made.engine.rows(
    `SELECT asset, min(file_row_number)::INTEGER AS first, count(*)::INTEGER AS points
     FROM read_parquet(${quote(part.out)}, file_row_number = true) GROUP BY asset ORDER BY asset`,
  )
  expect(rows).toEqual([
    { asset: 'A0', first: 0, points: 1200 },
    { asset: 'A1', first: 1200, points: 1200 },
  ])
})
