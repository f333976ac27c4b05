import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openQuery } from '../../src/query/lake.ts'
import { type Panel, specOf } from '../../src/query/panel.ts'
import { judgeQuestion } from '../../src/query/question.ts'
import { type Format, formats, writeFile } from '../../src/query/write.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { outFile } from '../../src/lake/store/output.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { sample } from '../helpers/tiers.ts'
import { nested, plain, point, supply, threeDays } from '../helpers/lakes/three-days.ts'
import { scratch } from '../helpers/scratch.ts'

const home = scratch('blocks')
let root = ''
let remove = async (): Promise<void> => undefined
beforeAll(async () => {
  ;({ root, remove } = await threeDays((day) => [point(plain, day, day === 3 ? {} : { v: day })]))
})
afterAll(async () => {
  await remove()
})

/**
 * Decisions without order, some twice, some without an instant or an asset that is known, with a column of their own.
 */
const decisions = Array.from({ length: 4_000 }, (_, n) => ({
  asset: n % 7 === 0 ? 'ETH' : n % 11 === 0 ? null : 'BTC',
  ts: n % 13 === 0 ? null : new Date(Date.UTC(2024, 2, 1) + ((n * 7919) % 6_000) * 61_003).toISOString(),
  n: n - 0.5,
}))
const others = [...catalogue.endpoints.values()]
  .filter(({ intervals, path }) => intervals.includes('24h') && ![supply, plain, nested].includes(path))
  .map(({ path }) => path)
const metrics = [...others.slice(0, 9), supply, `${nested}#/a/b`, ...others.slice(9, 18), plain, nested]

/** The bytes of a panel's answer, and how many tables were made for it. */
async function answerOf(panel: Panel, format: Format, memoryLimit: string) {
  const engine = await openQuery(root, { memoryLimit, threads: 2 })
  const deps = { folder: root, sleep: setTimeout }
  const { ready, sql, notes, doubts, drop } = await judgeQuestion({ panel: specOf(panel) }, engine, deps)
  const path = join(home, `${memoryLimit}.${format}`)
  const options = { format, width: 100_000, rows: Infinity, by: 'asset' }
  const written = await writeFile({ engine, ready, options, deps }, outFile(path, null), path)
  const tables = async (): Promise<number> =>
    (await engine.rows('SELECT 1 FROM duckdb_tables() WHERE temporary')).length
  const told = { written, sql, notes, doubts: await doubts(written), columns: ready.columns.map(String) }
  const made = await tables()
  await drop()
  const left = await tables()
  engine.close()
  return { path, made, left, told }
}

// The scarce one holds no panel of this size at once, and yet the notes about it.
const ample = '4GB'
const scarce = '80MB'

describe('a panel that does not fit into memory', () => {
  test.each(sample(formats, 2))('is the same to the last byte when it is made in blocks: %s', async (format) => {
    const panel = { decisions, metrics, fields: ['v', 't'] as const, latency: '1m' }
    const whole = await answerOf(panel, format, ample)
    const blocks = await answerOf(panel, format, scarce)
    expect([whole.made, whole.left, blocks.left]).toEqual([1, 0, 0])
    expect(blocks.made).toBeGreaterThan(3)
    expect(blocks.told).toEqual(whole.told)
    expect(whole.told.written.rows).toBe(decisions.length)
    if (format !== 'parquet') expect(readFileSync(blocks.path).equals(readFileSync(whole.path))).toBe(true)
    else {
      using engine = await Engine.open()
      const rows = async ({ path }: { path: string }) =>
        await engine.rows(
          `SELECT md5(string_agg(CAST(r AS VARCHAR), '\n')) AS md5, typeof(any_value(r)) AS type FROM '${path}' AS r`,
        )
      expect(await rows(blocks)).toEqual(await rows(whole))
    }
  })

  test('also where the decisions of one metric alone do not: they stand in the order of their grid', async () => {
    const calendar = { since: '2024-03-01', until: '2024-04-01', step: '1m' }
    const panel = { calendar, assets: ['ETH', 'BTC'], metrics: [supply, plain] }
    const whole = await answerOf(panel, 'csv', ample)
    const blocks = await answerOf(panel, 'csv', scarce)
    expect([whole.made, blocks.made]).toEqual([1, 4])
    expect(blocks.told.written.rows).toBe(2 * 31 * 1440)
    expect(readFileSync(blocks.path).equals(readFileSync(whole.path))).toBe(true)
  })
})
