import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { outFile, putOut } from '../../src/lake/store/output.ts'
import { freshFolder } from '../helpers/scratch.ts'

let home = ''
let lake = ''
freshFolder('output', (path) => (home = path))
beforeEach(() => {
  lake = join(home, 'data')
  for (const folder of ['journal', 'points/metric=a/interval=24h', 'exports', 'notes'])
    mkdirSync(join(lake, folder), { recursive: true })
  for (const name of ['ledger.sqlite', 'journal/0000000001.json.gz']) writeFileSync(join(lake, name), 'the lake')
})

const owned = [
  'journal/0000000001.json.gz',
  'Journal/new.html',
  'points/metric=a/interval=24h/x.parquet',
  'exports/x.csv',
  'journal',
  'runs',
  'spool',
  'ledger.sqlite',
  'ledger.sqlite-wal',
  'lake.json',
  'lake.sql',
  'LAKE.duckdb',
]

test('an output never replaces or joins files of a lake, this one or a second one', async () => {
  for (const folder of [lake, null, join(home, 'elsewhere')])
    for (const name of owned) {
      if (name === 'journal') continue
      mkdirSync(join(lake, 'Journal'), { recursive: true })
      await expect(putOut(join(lake, name), 'x', folder, '--html')).rejects.toThrow(/--html: expected a file outside/)
    }
  await expect(putOut(join(lake, 'journal'), 'x', lake, '--html')).rejects.toThrow(/got the folder/)
  expect(() => outFile(join(home, 'no', 'x.csv'), lake)).toThrow(/a folder that exists/)
  // A folder that is the lake though nothing in it says so.
  expect(() => outFile(join(home, 'lake.duckdb'), home)).toThrow(/expected a file outside the lake/)
  expect(readFileSync(join(lake, 'journal/0000000001.json.gz'), 'utf8')).toBe('the lake')
  expect(readdirSync(lake).toSorted()).toEqual(['Journal', 'exports', 'journal', 'ledger.sqlite', 'notes', 'points'])
})

test('an output next to the files of a lake is written, also in a foreign folder and through a linked lake', async () => {
  symlinkSync(lake, join(home, 'link'))
  await putOut(join(lake, 'status.html'), 'a', lake, '--html')
  await putOut(join(lake, 'notes/journal.html'), 'b', lake, '--html')
  await putOut(join(home, 'link/again.html'), 'c', join(home, 'link'), '--html')
  expect(readFileSync(join(lake, 'status.html'), 'utf8')).toBe('a')
  expect(readFileSync(join(lake, 'notes/journal.html'), 'utf8')).toBe('b')
  expect(readFileSync(join(lake, 'again.html'), 'utf8')).toBe('c')
  await expect(putOut(join(home, 'link/journal/x'), 'c', join(home, 'link'), '--html')).rejects.toThrow(/outside/)
})

test('an output follows no planted link: at its name, at temporary names or as a second name of a file', async () => {
  const entry = join(lake, 'journal/0000000001.json.gz')
  symlinkSync(entry, join(home, 'page.html'))
  symlinkSync('nowhere.html', join(home, 'dangling.html'))
  for (const name of ['page.html', 'dangling.html'])
    await expect(putOut(join(home, name), 'x', lake, '--html')).rejects.toThrow(/got the link/)
  symlinkSync(entry, join(home, 'other.html.tmp'))
  await putOut(join(home, 'other.html'), 'x', lake, '--html')
  linkSync(entry, join(home, 'hard.html'))
  await putOut(join(home, 'hard.html'), 'x', lake, '--html')
  expect(readFileSync(entry, 'utf8')).toBe('the lake')
  symlinkSync(join(lake, 'journal'), join(home, 'folder'))
  await expect(putOut(join(home, 'folder/x.html'), 'x', null, '--html')).rejects.toThrow(/outside the lake/)
  expect(readdirSync(home).filter((name) => name.endsWith('.part'))).toEqual([])
})

test('a device is written as it is', async () => {
  await putOut('/dev/null', 'x', lake, '--html')
  expect(outFile('/dev/stdout', lake).path).toBe('/dev/stdout')
})
