// @module-tag full
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { openWrittenLake, type WrittenLake } from '../helpers/lakes/written-by-commands.ts'
import { scratch } from '../helpers/scratch.ts'

/** Its name is a pattern that matches the other folder, in which every file is damaged. */
const folder = "[a]*c'd"
const matched = "a and c'd"

const scene = scratch('pattern-folders')
let written: WrittenLake
beforeAll(async () => (written = await openWrittenLake()))
afterAll(async () => await written[Symbol.asyncDispose]())

/** Copies all lakes into a folder of that name, and makes their views. */
async function copyInto(name: string): Promise<string> {
  const home = join(scene, name)
  cpSync(written.home, home, { recursive: true })
  for (const data of ['data', 'owned', 'followed'])
    expect(await pitlake(home, ['views', '--data', data])).toMatchObject({ code: 0 })
  return home
}

/** Puts damaged copies of all files where the pattern finds them. */
function plantMatches(home: string): void {
  const other = join(scene, matched)
  rmSync(other, { recursive: true, force: true })
  cpSync(home, other, { recursive: true })
  for (const entry of readdirSync(other, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) writeFileSync(join(entry.parentPath, entry.name), 'damaged')
}

test('a folder whose name is a pattern is read and written like any other', { timeout: 300_000 }, async () => {
  written.begin()
  const [plain, odd] = [await copyInto('plain'), await copyInto(folder)]
  const environment = written.environment('sound')
  for (const line of [
    'sql -f sum.sql',
    'replay r.parquet',
    'stamp sum.sql --out again.parquet',
    'import more.csv --as y --available end --data owned',
    'fetch',
    'verify',
    'registry sync --data followed',
    'registry status --data followed',
    'compact --data owned',
    'compact',
    'compact --data followed',
    'publish tables',
    'publish more --data followed',
    'doctor',
    'doctor --data followed',
  ]) {
    plantMatches(odd)
    const plainly = await pitlake(plain, line.split(' '), environment)
    const oddly = await pitlake(odd, line.split(' '), environment)
    expect.soft([line, plainly.code, plainly.message]).toEqual([line, 0, ''])
    expect.soft([line, oddly.code, oddly.message]).toEqual([line, 0, ''])
  }
})
