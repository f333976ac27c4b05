// @module-tag full
// @module-tag slow
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import type { Disk } from '../../src/lake/store/disk.ts'
import { deltaFiles, deltaRows, deltaVersion, onePoint as point, publishTo, unlike } from '../helpers/delta.ts'
import { stepsOf } from '../helpers/mortal-steps.ts'
import { sample } from '../helpers/tiers.ts'
import { stepping } from '../helpers/stepping.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { freshFolder } from '../helpers/scratch.ts'

let home = ''
let root = ''
freshFolder('publish', (path) => (home = path))
beforeEach(async () => {
  root = join(home, 'lake')
  await makeLake(root, [{ at: '2024-05-01T00:00:00Z', points: [point('2024-03-01'), point('2024-03-02')] }])
})

const moreDays = async (): Promise<void> =>
  await makeLake(root, [{ at: '2024-06-01T00:00:00Z', points: [point('2024-03-03')] }])

/** Whatever was going on: each table that a reader finds is whole, and what `versions` tells of can be opened. */
async function expectReadable(out: string): Promise<void> {
  const tables = existsSync(out) ? readdirSync(out).filter((name) => isTable(join(out, name))) : []
  for (const name of tables) await expectWhole(join(out, name))
  const told = tables.includes('versions') ? await deltaRows(join(out, 'versions')) : []
  for (const { table_name: name, delta_version: version } of told)
    await expectWhole(join(out, name as string), Number(version))
}

/** A version of a table, the newest if none is named, is there with as many rows as its log says. */
async function expectWhole(folder: string, version = deltaVersion(folder)): Promise<void> {
  expect(deltaVersion(folder)).toBeGreaterThanOrEqual(version)
  const files = [...deltaFiles(folder, version).values()]
  const rows = files.reduce((sum, { stats }) => sum + Number(/"numRecords":(\d+)/.exec(stats)?.[1]), 0)
  expect(await deltaRows(folder, version)).toHaveLength(rows)
}

const isTable = (folder: string): boolean =>
  existsSync(join(folder, '_delta_log')) &&
  readdirSync(join(folder, '_delta_log')).some((name) => name.endsWith('0.json'))

test('a lake that was begun and holds no version yet has nothing to publish: nothing is written', async () => {
  const begun = join(home, 'begun')
  const out = join(home, 'out')
  const ledger = await Ledger.open(begun)
  ledger.close()
  await expect(publishTo(begun, out)).rejects.toThrow('a lake with at least one version')
  expect(existsSync(out)).toBe(false)
})

test('kill -9 of a first publish: what is there can be read, and the same command again makes the same tables', async () => {
  const lake = join(home, 'copy')
  cpSync(root, lake, { recursive: true })
  const steps = (await stepsOf('tables', lake, join(home, 'undisturbed'), 0)) ?? 0
  rmSync(lake, { recursive: true })
  expect(steps).toBeGreaterThan(50)
  for (const part of sample([0.3, 0.45, 0.6, 0.8, 0.95], 2)) {
    const out = join(home, `out-${part}`)
    cpSync(root, lake, { recursive: true })
    expect(await stepsOf('tables', lake, out, Math.floor(steps * part))).toBeNull()
    await expectReadable(out)
    await stepsOf('tables', lake, out, 0)
    expect(await unlike(lake, out)).toEqual([])
    await expectReadable(out)
    rmSync(lake, { recursive: true })
  }
})

/** A disk that is gone from its n-th step on. */
function dying(at: number): { disk: Disk; steps: () => number } {
  let taken = 0
  const disk = stepping((step) => {
    taken = step
    if (step >= at) throw new Error(`gone before step ${step}`)
  })
  return { disk, steps: () => taken }
}

test('whatever step the destination fails at, the old version or the new one stands there', async () => {
  const before = join(home, 'before')
  await publishTo(root, before)
  await moreDays()
  const whole = dying(Number.POSITIVE_INFINITY)
  const out = join(home, 'out')
  cpSync(before, out, { recursive: true })
  await publishTo(root, out, { disk: whole.disk })
  expect(whole.steps()).toBeGreaterThan(20)
  // All kinds of steps of one table, then some of the others.
  for (const step of sample([2, 4, 5, 6, 7, Math.floor(whole.steps() / 2), whole.steps() - 2], 3)) {
    rmSync(out, { recursive: true })
    cpSync(before, out, { recursive: true })
    await expect(publishTo(root, out, { disk: dying(step).disk, mark: `s${step}` })).rejects.toThrow(/gone before/)
    await expectReadable(out)
    expect([2, 3]).toContain((await deltaRows(join(out, 'points'))).length)
    await publishTo(root, out, { mark: `t${step}` })
    expect(await unlike(root, out)).toEqual([])
  }
})

test('of two publishers of copies of a lake the loser gets an error and leaves no file', async () => {
  await publishTo(root, join(home, 'out'))
  await moreDays()
  const copy = join(home, 'copy')
  cpSync(root, copy, { recursive: true })
  const out = join(home, 'out')
  let raced = false
  const losing = publishTo(root, out, {
    mark: 'loser',
    through: (to) => ({
      ...to,
      // The other one commits the whole of it while the first is between its data file and its commit.
      create: async (path, body) => {
        if (!raced) {
          raced = true
          await publishTo(copy, out, { mark: 'winner' })
        }
        return await to.create(path, body)
      },
    }),
  })
  await expect(losing).rejects.toMatchObject({ kind: 'busy' })
  await expect(losing).rejects.toThrow(/run the same command again/)
  await expectReadable(out)
  expect(await unlike(root, out)).toEqual([])
  const files = readdirSync(join(out, 'points'), { recursive: true, encoding: 'utf8' })
  const data = files.filter((name) => name.endsWith('.parquet') && !name.includes('_delta_log'))
  const named = new Set([0, 1].flatMap((version) => [...deltaFiles(join(out, 'points'), version).keys()]))
  expect(data.map((name) => join(out, 'points', name)).toSorted()).toEqual([...named].toSorted())
  expect((await publishTo(root, out)).tables).toEqual({})
})

test('a second publisher of the same lake does not wait: it ends and names the first', async () => {
  const out = join(home, 'out')
  let refused: unknown
  await publishTo(root, out, {
    through: (to) => ({
      ...to,
      put: async (path, file) => {
        refused ??= await publishTo(root, out).catch((error: unknown) => error)
        await to.put(path, file)
      },
    }),
  })
  expect(refused).toMatchObject({ kind: 'busy' })
  expect(await unlike(root, out)).toEqual([])
})

/** Every file that the logs of the published tables name. */
const namedFiles = (out: string): readonly string[] =>
  readdirSync(out)
    .filter((name) => isTable(join(out, name)))
    .flatMap((name) => [...deltaFiles(join(out, name)).keys()])

test('published files that are gone, cut or changed are written again, each table as it was', async () => {
  const out = join(home, 'out')
  await publishTo(root, out)
  await moreDays()
  await publishTo(root, out, { mark: 'second', portions: { few: 1, large: 2 } })
  expect(await publishTo(root, out, { mark: 'third' })).toMatchObject({ tables: {}, lost: { missing: 0, changed: 0 } })
  const named = namedFiles(out)
  expect(named.length).toBeGreaterThan(4)
  for (const [n, file] of named.entries())
    if (n % 3 === 0) rmSync(file)
    else if (n % 3 === 1) truncateSync(file, 40)
  const missing = named.filter((_, n) => n % 3 < 2).length
  expect(await publishTo(root, out, { mark: 'mended' })).toMatchObject({ lost: { missing, changed: 0 } })
  expect(await unlike(root, out)).toEqual([])
  await expectReadable(out)
  expect(namedFiles(out).filter((file) => !existsSync(file))).toEqual([])
  expect((await publishTo(root, out, { mark: 'again' })).tables).toEqual({})
})

test('published files with changed bytes are found by reading only, and written again', async () => {
  const out = join(home, 'out')
  await publishTo(root, out)
  const [file = ''] = [...deltaFiles(join(out, 'points')).keys()]
  const bytes = readFileSync(file)
  bytes[20] = (bytes[20] ?? 0) ^ 1
  writeFileSync(file, bytes)
  expect((await publishTo(root, out, { mark: 'blind' })).tables).toEqual({})
  const read = await publishTo(root, out, { mark: 'reading', verify: true })
  expect(read).toMatchObject({
    lost: { missing: 0, changed: 1 },
    tables: { points: { files_added: 1, files_removed: 1 } },
  })
  expect(await unlike(root, out)).toEqual([])
  expect((await publishTo(root, out, { mark: 'again', verify: true })).lost).toEqual({ missing: 0, changed: 0 })
})

test('a file of `versions` that vanishes while it is read refuses the publish, and its history stays', async () => {
  const out = join(home, 'out')
  await publishTo(root, out)
  await moreDays()
  const before = await deltaRows(join(out, 'versions'))
  const vanishing = publishTo(root, out, {
    mark: 'vanishing',
    through: (to) => ({
      ...to,
      get: async (path, file) => !path.startsWith('versions/') && (await to.get(path, file)),
    }),
  })
  await expect(vanishing).rejects.toMatchObject({
    kind: 'incomplete',
    message: expect.stringContaining('no such file'),
  })
  expect(await deltaRows(join(out, 'versions'))).toEqual(before)
  await publishTo(root, out, { mark: 'honest' })
  expect(await unlike(root, out)).toEqual([])
})

test('a destination that loses files is refused before its log names them', async () => {
  const out = join(home, 'out')
  await publishTo(root, out)
  await moreDays()
  const before = namedFiles(out)
  let puts = 0
  const lying = publishTo(root, out, {
    mark: 'lying',
    through: (to) => ({ ...to, put: async (path, file) => (puts++ === 0 ? undefined : await to.put(path, file)) }),
  })
  await expect(lying).rejects.toMatchObject({ kind: 'incomplete', message: expect.stringContaining('that it took') })
  expect(namedFiles(out)).toEqual(before)
  await publishTo(root, out, { mark: 'honest' })
  expect(await unlike(root, out)).toEqual([])
})
