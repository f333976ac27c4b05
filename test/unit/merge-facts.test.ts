import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type FileEntry, layoutNumber, remakeHint } from '../../src/lake/ledger/entry.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { encodingLike, markOf, type replacement } from '../../src/maintenance/upkeep/rewrite.ts'
import { inSession, mergedFile, readBack, refuseFilesOfOtherLayouts } from '../../src/maintenance/upkeep/merge-files.ts'
import { test } from '../helpers/lake-test.ts'
import { day, start } from '../helpers/lakes/top-ups.ts'
import { partOf } from '../helpers/part-of.ts'

test('files that take the place of others carry their facts, and bounds that are read back where there are any', async ({
  root,
}) => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const out = join(root, 'out.parquet')
  await engine.run(
    `COPY (SELECT 'BTC' AS asset, NULL::VARCHAR AS currency, currency AS exchange, currency AS network, currency AS params,
         make_timestamptz(${start * 1e6}) + n * INTERVAL 1 DAY AS t, t + INTERVAL 26 HOUR + n * INTERVAL 1 HOUR AS available_at,
         t AS observed_at, 1.0::DOUBLE AS v, currency AS o, 'stated' AS basis, currency AS extra, t AS computed_at, t AS available_rule_at
       FROM range(3) r(n)) TO ${quote(out)} (FORMAT parquet)`,
  )
  const held = { path: 'x', label: '', bytes: 1, sha256: '', digest: null, rows: 1, metric: null, interval: null }
  const facts = async (files: readonly Partial<FileEntry>[]): Promise<Parameters<typeof replacement>[3]> => {
    const all = files.map((file) => ({ ...held, min_t: null, max_t: null, meta: {}, ...file }) as FileEntry)
    const columns = [{ name: 't', type: 'TIMESTAMP WITH TIME ZONE' }]
    return { ...mergedFile(all, await readBack(engine, out, columns, all), 'v1/0'), digest: '7' }
  }
  const hour = 3600
  const us = 1_000_000
  const known = { min_available: (start + 26 * hour) * us, max_available: (start + 2 * day + 28 * hour) * us }
  const range = { min_t: start, max_t: start + 2 * day }
  const points = { table: 'points', metric: 'm/x', interval: '24h' } as const
  // A lag that none of the files told is that of the rows.
  expect(await facts([points, { ...points, meta: { dated_at: 5 } }])).toEqual({
    rows: 3,
    digest: '7',
    ...range,
    meta: { dated_at: 5, encoding: 'v1/0', ...known, min_lag: 2 * hour * us },
  })
  const sooner = await facts([{ ...points, table: 'redated', meta: { min_lag: hour * us } }, points])
  expect(sooner).toMatchObject({ ...range, meta: { ...known, min_lag: hour * us } })
  const none = { rows: 3, digest: '7', meta: { encoding: 'v1/0' } }
  expect(await facts([{ table: 'history.issuers' }])).toEqual({ ...none, min_t: null, max_t: null })
  const recent = { ...points, metric: null, interval: null }
  const told = [
    { ...recent, min_t: 5, max_t: 9 },
    { ...recent, min_t: 4, max_t: 6 },
  ]
  expect(await facts(told)).toEqual({ ...none, min_t: 4, max_t: 9 })
})

test('a merged file is compressed like the largest of its sources, if that was written for good', () => {
  const like = (mark: string | number | undefined, minusZero: boolean, hard: boolean) => {
    const files = [
      partOf<FileEntry>({ rows: 5, meta: {} }),
      partOf<FileEntry>({ rows: 9000, meta: { encoding: mark } }),
    ]
    const { encoding, mark: kept } = encodingLike(files, { minusZero, rows: 9005 }, hard)
    return [encoding.dictionary, encoding.level, kept]
  }
  expect(like('v2/1000', false, false)).toEqual([1000, 9, 'v2/1000'])
  // What is less dense than it was is written anew by the next compact.
  expect(like('v2/1000/16', false, false)).toEqual([1000, 9, null])
  expect(like('v2/1000/16', false, true)).toEqual([1000, 16, 'v2/1000/16'])
  expect(like('v2/1000/16', true, true)).toEqual([0, 9, null])
  for (const none of [7, undefined]) expect(like(none, false, true)).toEqual([1000, 9, null])
  expect(['v1/0', 7, undefined].map((encoding) => markOf(partOf<FileEntry>({ meta: { encoding } })))).toEqual([
    'v1/0',
    null,
    null,
  ])
})

test('files whose footer names a different layout, or none that can be read, are refused', async ({ root }) => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const write = async (name: string, schema?: string): Promise<string> => {
    const metadata = schema === undefined ? '' : `, KV_METADATA {pitlake_schema: ${quote(schema)}, other: '99'}`
    await engine.run(`COPY (SELECT 1 AS a) TO ${quote(join(root, name))} (FORMAT parquet${metadata})`)
    return join(root, name)
  }
  const known = await Promise.all([write('none'), write('own', String(layoutNumber))])
  await refuseFilesOfOtherLayouts(engine, known)
  const newer = 'this file was written by a newer pitlake: update the program'
  for (const [schema, next] of [
    [String(layoutNumber + 1), newer],
    [String(layoutNumber - 1), remakeHint],
    ['1.x', newer],
    ['', newer],
  ] as const) {
    const path = await write('other', schema)
    await expect(refuseFilesOfOtherLayouts(engine, [...known, path])).rejects.toMatchObject({
      kind: 'usage',
      complaints: [{ subject: path, got: schema, next }],
    })
  }
})

test('files that do not fit onto the disk are reported as such and do not stay', async ({ root }) => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const out = join(root, 'half.parquet')
  const ends = async (words: string): Promise<void> => {
    writeFileSync(out, 'half')
    await inSession(engine, [out], async () => await Promise.reject(new Error(words)))
  }
  for (const words of ['IO Error: No space left on device', 'IO Error: Disk quota exceeded'])
    await expect(ends(words)).rejects.toThrow(/no space left.*merging|merging.*no space left/is)
  await expect(ends('IO Error: something else')).rejects.toThrow('something else')
  expect(existsSync(out)).toBe(false)
})
