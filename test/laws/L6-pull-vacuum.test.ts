// @module-tag full
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { folderAt } from '../../src/maintenance/publish/destination.ts'
import { copyLake } from '../../src/maintenance/publish/lake-copy.ts'
import { publishLake } from '../../src/maintenance/publish/lake.ts'
import { vacuumPublished } from '../../src/maintenance/publish/vacuum.ts'
import { replay, stamp } from '../../src/trust/results/stamp.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { pinnedSince } from '../../src/lake/store/lock.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { expectMirror } from '../helpers/expect-mirror.ts'
import { grow, mergeAndVacuum, pullDeps, pulled } from '../helpers/mirrors.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

describe('vacuum during a pull', () => {
  test('keeps what is being copied, and lets go of it afterwards', async ({ root: folder }) => {
    const source = join(folder, 'lake')
    const mirror = join(folder, 'mirror')
    await grow(source, 0, 5)
    let taken: readonly string[] | undefined
    let since: number | undefined
    const sleep = async (): Promise<void> => undefined
    let vacuumed: Promise<void> | undefined
    const onFile = (): void => {
      vacuumed ??= (async () => {
        since = await pinnedSince(source)
        taken = await mergeAndVacuum(source)
      })()
    }
    expect(await pulled(mirror, source, { onFile, sleep, nowMicros: () => 1 })).toMatchObject({ version: 5, files: 5 })
    await vacuumed
    expect(since).toBe(1)
    expect(taken).toEqual([])
    expect(await pinnedSince(source)).toBeUndefined()
    expect((await mergeAndVacuum(source)).length).toBeGreaterThan(4)
    await pulled(mirror, source)
    await expectMirror(mirror, source)
  })

  test('if vacuum cannot be held back, the pull starts again with the files that the lake has by then', async ({
    root: folder,
  }) => {
    const source = join(folder, 'lake')
    const mirror = join(folder, 'mirror')
    await grow(source, 0, 5)
    const from = folderAt(source, { disk: realDisk, mark: 'r' })
    let vacuumed: Promise<unknown> | undefined
    const moving = {
      ...from,
      get: async (path: string, file: string) => {
        if (path.startsWith('points/')) await (vacuumed ??= mergeAndVacuum(source))
        return await from.get(path, file)
      },
    }
    const to = folderAt(mirror, { disk: realDisk, mark: 'w' })
    const input = { from: moving, to, mirrorOf: () => 'here', scratch: join(folder, 'scratch'), near: true }
    const done = await copyLake(input, { signal: new AbortController().signal })
    expect(done.version).toBeGreaterThan(5)
    await pulled(mirror, source)
    await expectMirror(mirror, source)
  })
})

test('vacuum of a destination takes what its lake/ needs no longer, and keeps what is young or stamped', async ({
  root: folder,
}) => {
  const source = join(folder, 'lake')
  const out = join(folder, 'out')
  const result = join(folder, 'r.parquet')
  const to = folderAt(out, { disk: realDisk, mark: 'm' })
  let run = 0
  const publish = async (): Promise<unknown> => {
    using ledger = await Ledger.open(source)
    const what = {
      root: source,
      to,
      version: ledger.head().version,
      run: `r${++run}`,
      scratch: join(folder, `s${run}`),
    }
    return await publishLake(what, pullDeps())
  }
  const free = async (keepSeconds: number): Promise<readonly string[]> => {
    const deps = rewriteDeps({ nowMicros: () => Date.now() * 1000 + 60_000_000 })
    return (await vacuumPublished({ root: source, catalogue, to, keepSeconds, really: true }, deps)).paths
  }
  await grow(source, 0, 2)
  const query = 'SELECT count(*) AS n FROM points'
  await stamp(
    { root: source, catalogue, query, out: result, variables: {} },
    { sleep: async () => undefined },
    commitDeps(),
  )
  await grow(source, 2, 4)
  await publish()
  await mergeAndVacuum(source)
  await publish()
  expect(await free(1e9)).toEqual([])
  const gone = await free(0)
  expect(gone.length).toBeGreaterThan(2)
  expect(gone.every((path) => path.startsWith('lake/points/'))).toBe(true)
  expect(await free(0)).toEqual([])
  await publish()
  await pulled(join(folder, 'mirror'), out)
  await expectMirror(join(folder, 'mirror'), source)
  expect(await replay(join(folder, 'mirror'), result, { sleep: async () => undefined }, 'pitlake test')).toMatchObject({
    same: true,
  })
})
