// @module-tag full
import {
  appendFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLake } from '../../src/index.ts'
import { pitlake } from '../helpers/command.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'
import { temporaryFolder } from '../helpers/folders.ts'

const supply = 'supply/current_pit'
const point = (metric: string, v: number): PointRow => ({
  metric,
  asset: 'BTC',
  interval: '24h',
  t: '2024-03-01',
  available_at: '2024-03-02T00:10:00Z',
  currency: metric === supply ? 'native' : null,
  v,
})

async function withLake(work: (root: string) => Promise<void>): Promise<void> {
  using rootFolder = temporaryFolder('changed')
  const root = rootFolder.path
  const points = [point(supply, 1), point('indicators/sopr_adjusted_pit', 2)]
  await makeLake(root, [{ at: '2024-04-01T12:00:00Z', points }])
  await makeViews(root)
  await work(root)
}

test('a file of another size than was committed is refused before anything is answered', async () =>
  withLake(async (root) => {
    using out = temporaryFolder('changed-out')
    const query = `SELECT v FROM points WHERE metric = '${supply}'`
    const asked = ['sql', query, '--data', root, '--out', join(out.path, 'v.csv')]
    expect(await pitlake(out.path, asked)).toMatchObject({ code: 0, message: '' })
    const [file = ''] = globSync('points/**/*.parquet', { cwd: root }).filter((path) => path.includes('sopr'))
    appendFileSync(join(root, file), '\n')
    const words = /sopr_adjusted.*expected the \d+ bytes that were committed, got \d+ bytes.*doctor/s
    expect(await pitlake(root, asked)).toMatchObject({ code: 4, message: expect.stringMatching(words) })
    await expect(openLake(root)).rejects.toThrow(words)
    // One that is missing is named by whoever reads it.
    rmSync(join(root, file))
    expect(await pitlake(out.path, asked)).toMatchObject({
      code: 4,
      message: expect.stringContaining('sopr_adjusted'),
    })
  }))

/** Turns one byte in the middle of a file, and sets its times back. */
function turn(file: string): void {
  const { atime, mtime } = statSync(file)
  const bytes = readFileSync(file)
  const at = Math.floor(bytes.length / 2)
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(file, bytes)
  utimesSync(file, atime, mtime)
}

const one = async (root: string): Promise<unknown> => {
  const lake = await openLake(root)
  try {
    return (await lake.sql('SELECT 1 AS one')).get(0)?.one
  } finally {
    await lake.close()
  }
}

test('a changed byte at equal size is refused by every query, and a file that was only touched is read', async () =>
  withLake(async (root) => {
    const [file = ''] = globSync('points/**/*.parquet', { cwd: root }).filter((path) => path.includes('sopr'))
    utimesSync(join(root, file), new Date(), new Date())
    expect(await one(root)).toBe(1)
    turn(join(root, file))
    await expect(one(root)).rejects.toThrow(/sopr_adjusted.*expected the bytes that were committed.*pitlake doctor/)
    // Views that are made anew take no such file for proved.
    await makeViews(root)
    await expect(one(root)).rejects.toThrow(/sopr_adjusted/)
    turn(join(root, file))
    expect(await one(root)).toBe(1)
  }))

test('exports of the views are checked like data: existence, size and bytes', async () =>
  withLake(async (root) => {
    const [name = ''] = globSync('exports/coverage-*.parquet', { cwd: root })
    turn(join(root, name))
    await expect(one(root)).rejects.toThrow(/exports\/coverage-.*pitlake views/)
    rmSync(join(root, name))
    await expect(one(root)).rejects.toThrow(/exports\/coverage-.*got no such file.*pitlake views/)
    await makeViews(root)
    expect(await one(root)).toBe(1)
  }))

test('a file that was proved where it stands is not read again on opening', async () =>
  withLake(async (root) => {
    const [file = ''] = globSync('points/**/*.parquet', { cwd: root }).filter((path) => path.includes('sopr'))
    const notes = join(root, 'exports/proved.json')
    const told = JSON.parse(readFileSync(notes, 'utf8')) as Record<string, unknown>
    const names = [...globSync('points/**/*.parquet', { cwd: root }), ...globSync('exports/*.parquet', { cwd: root })]
    expect(Object.keys(told).toSorted()).toEqual(names.toSorted())
    turn(join(root, file))
    const { ino, size, mtimeMs, ctimeMs } = statSync(join(root, file))
    writeFileSync(notes, JSON.stringify({ ...told, [file]: `${ino} ${size} ${mtimeMs} ${ctimeMs}` }))
    expect(await one(root)).toBe(1)
    // A note that cannot be read proves nothing.
    writeFileSync(notes, '{')
    await expect(one(root)).rejects.toThrow(/sopr_adjusted/)
  }))

test('only files made by pitlake are removed from the folder of exports, and none through a link', async () =>
  withLake(async (root) => {
    const old = new Date(Date.parse('2024-03-01'))
    const own = 'runs-0123456789abcdef-0000000001-0123456789abcdef.parquet'
    for (const name of ['notes.txt', 'coverage.parquet', own]) {
      writeFileSync(join(root, 'exports', name), 'mine')
      utimesSync(join(root, 'exports', name), old, old)
    }
    await makeViews(root, { force: true })
    expect(['notes.txt', 'coverage.parquet', own].map((name) => existsSync(join(root, 'exports', name)))).toEqual([
      true,
      true,
      false,
    ])
    const elsewhere = `${root}-elsewhere`
    mkdirSync(elsewhere)
    writeFileSync(join(elsewhere, own), 'mine')
    utimesSync(join(elsewhere, own), old, old)
    rmSync(join(root, 'exports'), { recursive: true })
    symlinkSync(elsewhere, join(root, 'exports'))
    await makeViews(root, { force: true })
    expect(existsSync(join(elsewhere, own))).toBe(true)
    rmSync(elsewhere, { recursive: true })
  }))
