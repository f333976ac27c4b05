// @module-tag full
import { existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { vacuumPublished } from '../../src/maintenance/publish/vacuum.ts'
import { destinationOf } from '../../src/maintenance/publish/s3.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { deltaFiles, deltaVersion, publishTo } from '../helpers/delta.ts'
import { day, metrics, rewriteDeps, topUps } from '../helpers/lakes/top-ups.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { writing } from '../helpers/ledgers.ts'
import { freshFolder } from '../helpers/scratch.ts'

let home = ''
let root = ''
let out = ''
freshFolder('vacuum', (path) => (home = path))
beforeEach(() => {
  root = join(home, 'lake')
  out = join(home, 'out')
})

const deps = rewriteDeps()

async function ask(keepSeconds: number, really: boolean): ReturnType<typeof vacuumPublished> {
  const to = destinationOf(out, { disk: realDisk, mark: 'v' })
  return await vacuumPublished({ root, catalogue, to, keepSeconds, really }, deps)
}

const there = (): string[] =>
  readdirSync(out, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:parquet|json)$|\.tmp-/.test(name))
    .toSorted()

test('vacuum says first, keeps every version that was the newest within the time, and frees the rest', async () => {
  const points = join(out, 'points')
  const ledger = await Ledger.open(root)
  for (let n = 0; n < 12; n++) {
    deps.clock.now += day
    await topUps(ledger, deps, [{ metric: metrics[0], since: n * 2, days: 2 }])
    await publishTo(root, out, { nowMicros: deps.nowMicros })
  }
  ledger.close()
  expect(deltaVersion(points)).toBe(11)
  const before = there()
  const files = (version: number): string[] => [...deltaFiles(points, version).keys()]
  const first = files(0)
  const tenth = files(9)
  const last = files(11)

  expect((await ask(30 * day, false)).files).toBe(0)
  // The version of two days ago was the newest until yesterday.
  const dry = await ask(1.5 * day, false)
  expect(dry.files).toBeGreaterThan(0)
  expect(there()).toEqual(before)
  const done = await ask(1.5 * day, true)
  expect(done).toEqual({ ...dry, dry_run: false })
  expect(there()).toEqual(before.filter((name) => !done.paths.includes(name)))
  // The checkpoint of version 9 was old enough: of the log nothing before it is read any more.
  expect(done.paths.filter((path) => path.startsWith('points/_delta_log/')).length).toBe(9)
  expect(first.filter(existsSync)).toEqual([])
  expect(tenth.filter(existsSync)).toEqual(tenth)
  expect(last.filter(existsSync)).toEqual(last)
  expect((await ask(1.5 * day, true)).files).toBe(0)

  // The log of what is gone is gone, and what stands there is read and goes on.
  deps.clock.now += 20 * day
  expect((await ask(0, true)).files).toBeGreaterThan(0)
  expect((await publishTo(root, out, { nowMicros: deps.nowMicros })).tables).toEqual({})
  expect(last.filter(existsSync)).toEqual(last)
})

test('files of a killed publisher are removed after a day, files of third parties stay', async () => {
  await writing(root, async (ledger) => await topUps(ledger, deps, [{ metric: metrics[0], since: 0, days: 2 }]))
  const { lake } = await publishTo(root, out, { nowMicros: deps.nowMicros })
  const own = `${lake.slice(0, 8)}-0000000001-left-1.parquet`
  const left = [`points/several/${own}`, `points/several/.tmp-a-1`, 'points/_delta_log/.tmp-a-2']
  const strange = ['points/several/mine.parquet', 'points/notes.txt', own]
  for (const path of [...left, ...strange]) writeFileSync(join(out, path), 'x')
  const age = (seconds: number): void => {
    for (const path of [...left, ...strange])
      utimesSync(join(out, path), deps.clock.now - seconds, deps.clock.now - seconds)
  }
  age(day / 2)
  expect((await ask(0, true)).files).toBe(0)
  age(2 * day)
  expect((await ask(0, true)).paths.toSorted()).toEqual(left.toSorted())
  expect(left.filter((path) => existsSync(join(out, path)))).toEqual([])
  expect(strange.filter((path) => !existsSync(join(out, path)))).toEqual([])
})
