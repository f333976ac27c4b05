// @module-tag full
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { sha256File } from '../../src/lake/ledger/commit.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { folderAt } from '../../src/maintenance/publish/destination.ts'
import { copyLake } from '../../src/maintenance/publish/lake-copy.ts'
import { publishLake } from '../../src/maintenance/publish/lake.ts'
import { s3At } from '../../src/maintenance/publish/s3.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { grow, mergeAndVacuum, pullDeps, wholeVersion } from '../helpers/mirrors.ts'
import { stepsOf } from '../helpers/mortal-steps.ts'
import { standIn, webTo } from '../helpers/s3.ts'
import { isFullTier, sample } from '../helpers/tiers.ts'

/** What a lake is: its journal, marker and runs with their digests, and the files of its newest version. */
async function lakeOf(root: string): Promise<readonly string[]> {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
  const own = paths.filter((path) => /^(?:journal|stamps|runs|lake\.json)/.test(path) && !path.includes('/.tmp-'))
  using ledger = await Ledger.inMemory(root)
  const all = [...own, ...liveFiles(ledger).map(({ path }) => path)].toSorted()
  return await Promise.all(all.map(async (path) => `${path} ${await sha256File(join(root, path))}`))
}

/** A lake of some versions, and the same after a merge, a vacuum, a folded journal and more. */
async function twoStates(folder: string): Promise<readonly [string, string]> {
  const before = join(folder, 'before')
  const after = join(folder, 'after')
  await grow(before, 0, 3)
  cpSync(before, after, { recursive: true })
  await grow(after, 3, 2)
  {
    using ledger = await Ledger.open(after)
    await writeCheckpoint(realDisk, ledger)
  }
  await mergeAndVacuum(after)
  await grow(after, 6, 1)
  return [before, after]
}

describe('L3: kill -9 around a copy', () => {
  test.each(['publish', 'pull'])(
    '%s leaves a whole version at every step, and the same after the same command again',
    (how) =>
      inFolder(async (folder) => {
        const [before, after] = await twoStates(folder)
        const undisturbed = join(folder, 'undisturbed')
        const first = (await stepsOf(how, before, undisturbed, 0)) ?? 0
        const base = join(folder, 'base')
        cpSync(undisturbed, base, { recursive: true })
        const second = (await stepsOf(how, after, undisturbed, 0)) ?? 0
        expect(Math.min(first, second)).toBeGreaterThan(15)
        const onTheWay = (root: string): string[] =>
          readdirSync(root, { recursive: true })
            .map(String)
            .filter((path) => path.includes('.tmp-'))
        const expected = await lakeOf(undisturbed)
        const last = await wholeVersion(undisturbed)
        const deaths = [0.5].map((share) => [before, Math.round(first * share)] as const)
        const later = sample([0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 2).map(
          (share) => [after, Math.round(second * share)] as const,
        )
        for (const [n, [source, at]] of [...deaths, ...later].entries()) {
          const target = join(folder, `target-${n}`)
          if (source === after) cpSync(base, target, { recursive: true })
          expect(await stepsOf(how, source, target, at)).toBeNull()
          expect(source === after ? [3, last] : [0, 1, 2, 3]).toContain(await wholeVersion(target))
          await stepsOf(how, after, target, 0)
          expect(await lakeOf(target)).toEqual(expected)
          if (how === 'pull') expect(onTheWay(target)).toEqual([])
        }
      }),
  )
})

test('a copy to a bucket and from it, cut at any request, is whole for readers and the same when run again', async ({
  root: folder,
}) => {
  await using there = await standIn()
  const [before, after] = await twoStates(folder)
  const web = webTo(there.url)
  let run = 0
  const publish = async (root: string): Promise<unknown> => {
    using ledger = await Ledger.open(root)
    const { version } = ledger.head()
    return await publishLake(
      { root, to: s3At('s3://lake/team', web), version, run: `r${++run}`, scratch: join(folder, `s${run}`) },
      pullDeps(),
    )
  }
  const read = async (to = join(folder, `read-${++run}`)): Promise<string> => {
    const input = { from: s3At('s3://lake/team/lake', web), to: folderAt(to, { disk: realDisk, mark: 'm' }) }
    await copyLake({ ...input, mirrorOf: () => 'bucket', scratch: `${to}-s`, near: true }, pullDeps())
    return to
  }
  await publish(before)
  const base = new Map(there.objects)
  const from = there.heard.length
  await publish(after)
  const requests = there.heard.length - from
  const expected = new Map(there.objects)
  const last = await wholeVersion(await read())
  for (let cut = 1; cut < requests; cut += isFullTier ? 3 : 7) {
    there.objects.clear()
    for (const [key, body] of base) there.objects.set(key, body)
    const begun = there.heard.length
    there.fault = () => (there.heard.length - begun > cut ? (cut % 2 === 1 ? 'cut-after' : 'cut-before') : undefined)
    await expect(publish(after)).rejects.toThrow('run the same command again')
    there.fault = () => undefined
    expect([3, last]).toContain(await wholeVersion(await read()))
    await publish(after)
    expect(new Map(there.objects)).toEqual(expected)
  }
  expect(requests).toBeGreaterThan(12)
  const target = await read()
  const again = there.heard.length
  await read(target)
  const gets = there.heard.slice(again).filter(({ method, key }) => method === 'GET' && key !== '')
  expect(gets.map(({ key }) => key)).toEqual([`team/lake/journal/${String(last).padStart(10, '0')}.json.gz`])
  expect(there.heard.filter(({ method, key }) => method === 'GET' && key.includes('/points/')).length).toBeGreaterThan(
    3,
  )
})
