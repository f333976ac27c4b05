// @module-tag full
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { backup } from '../../src/maintenance/publish/lake.ts'
import type { Destination } from '../../src/maintenance/publish/destination.ts'
import { destinationOf } from '../../src/maintenance/publish/s3.ts'
import { replay, stamp } from '../../src/trust/results/stamp.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { expectMirror } from '../helpers/expect-mirror.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { grow, merge, mergeAndVacuum, pullDeps, pulled } from '../helpers/mirrors.ts'
import { stepsOf } from '../helpers/mortal-steps.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { standIn, webTo } from '../helpers/s3.ts'
import { sample } from '../helpers/tiers.ts'

/** An hour from now: what stands at a destination is older than the backup that looks at it. */
const later = (): number => (Date.now() + 3_600_000) * 1000

async function keep(root: string, out: string, changes: { thorough?: boolean; to?: Destination; now?: number } = {}) {
  const to = changes.to ?? destinationOf(out, { disk: realDisk, mark: 'b' })
  const deps = pullDeps({ nowMicros: () => changes.now ?? later() })
  return await backup({ root, to, thorough: changes.thorough ?? false }, deps)
}

/** The lake as it is before the backup, whose own run the backup does not hold. */
async function keepWhole(root: string, out: string): Promise<string> {
  const frozen = `${root}-frozen`
  rmSync(frozen, { recursive: true, force: true })
  cpSync(root, frozen, { recursive: true })
  await keep(root, out)
  return frozen
}

const restored = async (root: string, source: string) => await pulled(root, source, {}, { own: true, thorough: true })

/** What `lake/` holds of points, by name. */
const pointsIn = (root: string): string[] =>
  readdirSync(join(root, 'points'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.parquet') || name.includes('.tmp-'))
    .toSorted()

const marker = (root: string): unknown => JSON.parse(readFileSync(join(root, 'lake.json'), 'utf8'))

test('a restored lake is the lake: it answers, replays and goes on', async ({ root: folder }) => {
  const [source, out, back, result] = ['lake', 'out', 'back', 'r.parquet'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
    string,
  ]
  await grow(source, 0, 3)
  const query = 'SELECT metric, count(*) AS n, sum(v) AS v FROM points GROUP BY ALL ORDER BY ALL'
  await stamp(
    { root: source, catalogue, query, out: result, variables: {} },
    { sleep: async () => undefined },
    commitDeps(),
  )
  await grow(source, 3, 2)
  const frozen = join(folder, 'frozen')
  cpSync(source, frozen, { recursive: true })
  const done = await keep(source, out)
  expect(done).toMatchObject({ version: 5, before: 0, entries: 5, stamps: 1, removed: 0 })
  expect(await restored(back, out)).toMatchObject({ version: 5, before: 0, files: done.files })
  await expectMirror(back, frozen)
  using ledger = await Ledger.open(source)
  const runs = ledger.statement("SELECT exit_code, actual FROM runs WHERE job = 'backup'").all()
  expect(runs).toMatchObject([
    { exit_code: 0, actual: expect.stringMatching(`"files":${done.files},"bytes":\\d\\d+`) as string },
  ])
  expect(marker(back)).toEqual(marker(source))
  expect(await replay(back, result, { sleep: async () => undefined }, 'pitlake test')).toMatchObject({ same: true })
  await grow(back, 5, 1)
  // What the restored one brings goes on in the same backup; what the lost one would bring now is another history.
  expect(await keep(back, out)).toMatchObject({ version: 6, before: 5, files: 1 })
  await grow(source, 6, 2)
  await expect(keep(source, out)).rejects.toThrow(/version 6.*that lake went back, or is another copy/s)
})

test('only what is missing travels, and what no version needs any more goes', async ({ root: folder }) => {
  const source = join(folder, 'lake')
  const out = join(folder, 'out')
  await grow(source, 0, 4)
  await keep(source, out)
  expect(await keep(source, out)).toMatchObject({ files: 0, bytes: 0, entries: 0, removed: 0 })
  await merge(source)
  writeFileSync(join(out, 'lake/points/.tmp-killed-1'), 'half')
  cpSync(source, join(folder, 'frozen'), { recursive: true })
  const { version, files, removed } = await keep(source, out)
  using ledger = await Ledger.open(source)
  expect(version).toBe(ledger.head().version)
  const live = liveFiles(ledger, { table: 'points' }).map(({ path }) => path.slice('points/'.length))
  expect(pointsIn(join(out, 'lake'))).toEqual(live.toSorted())
  expect([files, removed]).toEqual([live.length, 4 + 1])
  await restored(join(folder, 'back'), out)
  await expectMirror(join(folder, 'back'), join(folder, 'frozen'))
})

test('a backup during a commit, a merge and a vacuum has a whole version', async ({ root: folder }) => {
  const source = join(folder, 'lake')
  const out = join(folder, 'out')
  const before = join(folder, 'before')
  await grow(source, 0, 4)
  cpSync(source, before, { recursive: true })
  const to = destinationOf(out, { disk: realDisk, mark: 'b' })
  let meanwhile: Promise<void> | undefined
  let taken: readonly string[] | undefined
  const beside: Destination = {
    ...to,
    put: async (path, file) => {
      meanwhile ??= (async () => {
        await grow(source, 4, 1)
        taken = await mergeAndVacuum(source)
      })()
      await meanwhile
      await to.put(path, file)
    },
  }
  expect(await keep(source, out, { to: beside, now: 1 })).toMatchObject({ version: 4, files: 4 })
  expect(taken?.filter((path) => path.startsWith('points/'))).toEqual([])
  await restored(join(folder, 'back'), out)
  await expectMirror(join(folder, 'back'), before)
  const newer = await keepWhole(source, out)
  await restored(join(folder, 'newer'), out)
  await expectMirror(join(folder, 'newer'), newer)
})

test('damage is named, nothing of it becomes a lake, and a thorough backup mends it', async ({ root: folder }) => {
  const source = join(folder, 'lake')
  const out = join(folder, 'out')
  const back = join(folder, 'back')
  await grow(source, 0, 3)
  await keep(source, out)
  const torn = join(out, 'lake/points', pointsIn(join(out, 'lake'))[1] ?? '')
  const bytes = readFileSync(torn)
  bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1
  writeFileSync(torn, bytes)
  await expect(restored(back, out)).rejects.toMatchObject({
    kind: 'integrity',
    message: expect.stringContaining(torn.slice(join(out, 'lake/').length)) as string,
  })
  await expect(grow(back, 3, 1)).rejects.toThrow(/restore .* did not finish|a mirror of/)
  expect(await keep(source, out)).toMatchObject({ files: 0 })
  expect(await keep(source, out, { thorough: true })).toMatchObject({ files: 1 })
  const frozen = await keepWhole(source, out)
  expect(await restored(back, out)).toMatchObject({ version: 3 })
  await expectMirror(back, frozen)
  // The lake itself is damaged: its backup is not.
  const [path = ''] = pointsIn(source)
  truncateSync(join(source, 'points', path), 40)
  rmSync(join(out, 'lake/points', path))
  await expect(keep(source, out)).rejects.toMatchObject({
    kind: 'integrity',
    message: expect.stringContaining(path) as string,
  })
})

test('a lake is never restored over another, nor a backup written into the lake', async ({ root: folder }) => {
  const source = join(folder, 'lake')
  const other = join(folder, 'other')
  const out = join(folder, 'out')
  await grow(source, 0, 2)
  await grow(other, 0, 1)
  await keep(source, out)
  const before = pointsIn(other)
  await expect(restored(other, out)).rejects.toMatchObject({ kind: 'usage' })
  await expect(keep(other, out)).rejects.toThrow(/a mirror of the? ?lake|mirror of lake/)
  expect(pointsIn(other)).toEqual(before)
  for (const inside of [join(source, 'backup'), source, folder])
    await expect(keep(source, inside)).rejects.toThrow('a folder apart from the lake')
  mkdirSync(join(folder, 'empty'))
  await expect(restored(join(folder, 'new'), join(folder, 'empty'))).rejects.toThrow('no lake in')
  expect(existsSync(join(folder, 'new/lake.json'))).toBe(false)
  // A mirror of the lake may become it.
  await pulled(join(folder, 'mirror'), out)
  await restored(join(folder, 'mirror'), out)
  await grow(join(folder, 'mirror'), 2, 1)
})

test('a restore and a pull into one folder do not wait: the second ends and names the first', async ({
  root: folder,
}) => {
  const source = join(folder, 'lake')
  const back = join(folder, 'back')
  await grow(source, 0, 2)
  let second: Promise<unknown> | undefined
  const onFile = (): void => {
    second ??= pulled(back, source).then(
      () => 'let in',
      (error: unknown) => error,
    )
  }
  await pulled(back, source, { onFile }, { own: true, thorough: true })
  expect(await second).toMatchObject({ kind: 'busy' })
})

test('kill -9 of a backup or a restore through a bucket leaves a whole version', async ({ root: folder }) => {
  await using there = await standIn()
  const source = join(folder, 'lake')
  const back = join(folder, 'back')
  const web = webTo(there.url)
  const to = destinationOf('s3://lake/team', { disk: realDisk, mark: 'b', web })
  await grow(source, 0, 3)
  await keep(source, '', { to })
  await merge(source)
  cpSync(source, join(folder, 'frozen'), { recursive: true })
  const done: Awaited<ReturnType<typeof backup>> = await keep(source, '', { to })
  expect(done.removed).toBe(2)
  await pulled(back, 's3://lake/team', { web }, { own: true, thorough: true })
  await expectMirror(back, join(folder, 'frozen'))
})

describe('kill -9', () => {
  test('of a restore at any step leaves a mirror, and the same command makes the lake', async ({ root: folder }) => {
    const source = join(folder, 'lake')
    const out = join(folder, 'out')
    await grow(source, 0, 2)
    const frozen = await keepWhole(source, out)
    const steps = (await stepsOf('restore', out, join(folder, 'whole'), 0)) ?? 0
    expect(steps).toBeGreaterThan(20)
    for (const share of sample([0.7, 0.3, 0.95], 1)) {
      const target = join(folder, `back-${share}`)
      expect(await stepsOf('restore', out, target, Math.round(steps * share))).toBeNull()
      const said = existsSync(join(target, 'lake.json')) ? marker(target) : { mirror_of: 'nothing yet' }
      // It is a lake of its own only when all of it is there.
      if (said !== null && typeof said === 'object' && 'mirror_of' in said) await stepsOf('restore', out, target, 0)
      await expectMirror(target, frozen)
      expect(marker(target)).toEqual(marker(source))
    }
  })
})
