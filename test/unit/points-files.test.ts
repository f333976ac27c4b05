import { dirname } from 'node:path'
import { mkdirSync } from 'node:fs'
import { expect } from 'vitest'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import type { FileEntry } from '../../src/lake/ledger/entry.ts'
import { inLake, pointsFile, recentFile } from '../../src/lake/store/layout.ts'
import { isRecent, partitionSql, partitionsOf, sharesMeta, sharesOf } from '../../src/sources/points/files.ts'
import { bodyAt } from '../../src/sources/points/conversion-types.ts'
import type { Interval } from '../../src/base/time.ts'
import { test } from '../helpers/lake-test.ts'

const columns = `NULL::VARCHAR AS currency, NULL::VARCHAR AS exchange, NULL::VARCHAR AS network, now() AS t, now() AS available_at,
  now() AS observed_at, NULL::VARCHAR AS o, 'assumed' AS basis, NULL::VARCHAR AS extra, NULL::TIMESTAMPTZ AS computed_at,
  NULL::TIMESTAMPTZ AS available_rule_at, NULL::VARCHAR AS params`

function entry(path: string, of: [string, Interval] | null, rows: number, meta: FileEntry['meta']): FileEntry {
  const frame = { table: 'points', label: '', bytes: 1, min_t: 0, max_t: 0, digest: null, sha256: '' }
  return { ...frame, path, metric: of?.[0] ?? null, interval: of?.[1] ?? null, rows, meta }
}

const shares = [
  { metric: 'a/x', interval: '24h', rows: 1, min_lag: 5 },
  { metric: 'a/x', interval: '1h', rows: 1, min_lag: 0 },
  { metric: "b/it's", interval: '24h', rows: 2, min_lag: 7 },
] as const

test('shares are read back from the meta of a recent file, and a partition file is one share', () => {
  const recent = entry(recentFile('r'), null, 4, { shares: sharesMeta(shares), min_lag: 0 })
  expect([isRecent(recent), sharesOf(recent)]).toEqual([true, shares])
  const own = entry(pointsFile('a/x', '24h', 'o'), ['a/x', '24h'], 9, { min_lag: 3 })
  expect([isRecent(own), sharesOf(own)]).toEqual([false, [{ metric: 'a/x', interval: '24h', rows: 9, min_lag: 3 }]])
  expect(sharesOf({ ...own, meta: {} })[0]?.min_lag).toBeNull()
  expect(isRecent({ ...recent, table: 'metric_assets' })).toBe(false)
  const parts = partitionsOf([own, recent])
  expect([...parts.keys()]).toEqual(['a/x 24h', 'a/x 1h', "b/it's 24h"])
  expect(parts.get('a/x 24h')).toMatchObject({ files: [own], recent: [recent] })
  expect(parts.get('a/x 1h')).toMatchObject({ files: [], recent: [recent] })
})

test('a partition is read from both levels, and nothing of another one', async ({ root }) => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const write = async (path: string, rows: string): Promise<void> => {
    mkdirSync(dirname(inLake(root, path)), { recursive: true })
    await engine.run(`COPY (SELECT *, ${columns} FROM ${rows}) TO ${quote(inLake(root, path))} (FORMAT parquet)`)
  }
  const own = entry(pointsFile('a/x', '24h', 'o'), ['a/x', '24h'], 1, {})
  const recent = entry(recentFile('r'), null, 4, { shares: sharesMeta(shares) })
  await write(own.path, `(VALUES ('BTC', 1.0)) q(asset, v)`)
  await write(
    recent.path,
    `(VALUES ('a/x', '24h', 'BTC', 2.0), ('a/x', '1h', 'BTC', 3.0), ('b/it''s', '24h', 'BTC', 4.0), ('b/it''s', '24h', 'ETH', 5.0))
       q(metric, "interval", asset, v)`,
  )
  const read = async (key: string): Promise<unknown[]> => {
    const part = partitionsOf([own, recent]).get(key)
    if (part === undefined) throw new Error(key)
    const rows = await engine.rows(`SELECT CAST(v AS INTEGER) AS v FROM ${partitionSql(root, part)} ORDER BY v`)
    return rows.map(({ v }) => v)
  }
  expect(await read('a/x 24h')).toEqual([1, 2])
  expect(await read('a/x 1h')).toEqual([3])
  expect(await read("b/it's 24h")).toEqual([4, 5])
})

test('a position without a body is an error, never an empty name', () => {
  expect(() => bodyAt([], 0)).toThrow('no body stands at 0')
})
