// @module-tag full
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { exitCode } from '../../src/base/errors.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import { pitlake } from '../helpers/command.ts'
import { onePoint as point, publishTo, unlike } from '../helpers/delta.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { scratch } from '../helpers/scratch.ts'

const home = scratch('publish')
let data = ''
let out = ''
const version = (at: string, t: string) => ({ at, points: [point(t)] })

beforeAll(async () => {
  data = join(home, 'data')
  out = join(home, 'out')
  await makeLake(data, [version('2024-05-01T00:00:00Z', '2024-03-01')])
})
beforeEach(() => rmSync(out, { recursive: true, force: true }))

const run = async (dest: string, ...more: string[]) =>
  await pitlake(home, ['publish', dest, '--data', data, ...more], {})

const standing = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name} ${readFileSync(join(entry.parentPath, entry.name)).length}`)
    .toSorted()

/** The one line with which the command ends with 2, without having written anything. */
async function refusal(dest = out): Promise<string> {
  const before = standing(home).filter((line) => !line.includes('/data/'))
  const { code, message, out: printed } = await run(dest)
  expect([code, message.split('\n').length, printed]).toEqual([2, 1, ''])
  expect(standing(home).filter((line) => !line.includes('/data/'))).toEqual(before)
  return message
}

test('publish writes to a folder next to the lake and reports it; a second run has nothing to do', async () => {
  const first = await run('out', '--json')
  expect(first).toMatchObject({ code: 0, notes: '' })
  expect(JSON.parse(first.out)).toMatchObject({
    destination: out,
    version: 1,
    tables: { points: { delta_version: 0, files_added: 1, files_removed: 0 } },
  })
  expect(await unlike(data, out)).toEqual([])
  expect((await run('out')).out).toMatch(/already has version 1/)
  expect((await run('out', '--vacuum')).out).toMatch(/^0 files, .* would be freed; run it with --yes; kept: /)
})

test('an unknown scheme, an empty name and a folder of the lake are refused as destinations', async () => {
  expect(await refusal('gs://bucket/x')).toMatch(/expected a folder or s3:\/\/bucket\/prefix, got the scheme gs/)
  expect(await refusal('')).toMatch(/expected a folder or s3:\/\/bucket\/prefix, got nothing/)
  expect(await refusal(join(data, 'published'))).toMatch(/expected a folder outside the lake/)
  expect(await refusal(data)).toMatch(/expected a folder outside the lake/)
  expect(readdirSync(data)).not.toContain('published')
})

test('publish leaves tables and files of third parties alone', async () => {
  const log = join(out, 'series/_delta_log')
  mkdirSync(log, { recursive: true })
  const metaData = { id: 'x', format: { provider: 'parquet', options: {} }, schemaString: '{}', partitionColumns: [] }
  const lines = [{ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData }]
  writeFileSync(join(log, '00000000000000000000.json'), lines.map((line) => JSON.stringify(line)).join('\n'))
  expect(await refusal()).toMatch(/table .*series: expected one of the lake [0-9a-f]+, got a table of somebody else/)
  rmSync(out, { recursive: true })
  mkdirSync(join(out, 'points'), { recursive: true })
  writeFileSync(join(out, 'points/mine.parquet'), 'mine')
  expect(await refusal()).toMatch(/points\/mine.parquet, a file of somebody else/)
  rmSync(out, { recursive: true })
  mkdirSync(join(out, '_delta_log'), { recursive: true })
  writeFileSync(join(out, '_delta_log/00000000000000000000.json'), '{}')
  expect(await refusal()).toMatch(/_delta_log.*a file of somebody else/)
})

test('a destination on which there is no room ends with 6, and the same command goes on', async () => {
  let writes = 0
  const disk: Disk = {
    ...realDisk,
    write: async (path, text) => {
      if (++writes === 3) throw Object.assign(new Error('full'), { code: 'ENOSPC', path })
      await realDisk.write(path, text)
    },
  }
  const failed: unknown = await publishTo(data, out, { disk }).catch((error: unknown) => error)
  const words = /^[^\n]*no space left on the disk; make room, then run the same command again[^\n]*$/
  expect([exitCode(failed), String(failed)]).toEqual([6, expect.stringMatching(words)])
  await publishTo(data, out)
  expect(await unlike(data, out)).toEqual([])
})
