import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Disk } from '../../src/lake/store/disk.ts'
import { type Rig, storedPoints, withRig } from '../helpers/fetching.ts'
import { stepping } from '../helpers/stepping.ts'
import { makeFolder } from '../helpers/folders.ts'

const now = Date.UTC(2026, 2, 4, 12) / 1000
const since = now - 400 * 86_400
const small = { assets: ['BTC'], paths: ['blockchain/*', 'supply/current_pit'], since }
const large = { ...small, assets: ['BTC', 'ETH'], intervals: ['1h'] }

const folder = makeFolder('full')
const mount = (options: string): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]).status === 0
const mounts = process.platform === 'linux' && mount('size=1m')
if (mounts) spawnSync('umount', [folder])
rmSync(folder, { recursive: true, force: true })

/** A folder on a file system of its own, so small that the lake does not fit. */
async function onSmallDisk(work: (root: string, size: (size: string) => void) => Promise<void>): Promise<void> {
  const root = makeFolder('full')
  const change = (options: string): void => {
    const done = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', root])
    if (done.status !== 0) throw new Error(done.stderr.toString())
  }
  change('size=4m')
  try {
    await work(root, (options) => change(`remount,${options}`))
  } finally {
    spawnSync('umount', [root])
    rmSync(root, { recursive: true, force: true })
  }
}

/** The real disk until it has moved so many files, then one that fails with this code. */
function failingDisk(code: string, moves: number): Disk {
  let moved = 0
  return stepping((_, kind, path) => {
    if (!['move', 'write', 'append'].includes(kind)) return
    if (moved >= moves) throw Object.assign(new Error(`${code}: test, '${path}'`), { code, path })
    if (kind === 'move') moved++
  })
}

/** The failure is told in these words, and then the same fetch works. */
async function failThenFetch(rig: Rig, broken: Promise<unknown>, words: RegExp): Promise<void> {
  await expect(broken).rejects.toThrow(words)
  await rig.fetch(small)
}

/** A real file system that fills, gets room, and is mounted read-only at last. */
async function fill(rig: Rig): Promise<void> {
  await onSmallDisk(async (root, size) => {
    await rig.fetch({ ...small, paths: ['supply/current_pit'] }, { data: root })
    const before = await storedPoints(root)
    await expect(rig.fetch(large, { data: root })).rejects.toThrow(/ENOSPC.*make room/)
    size('size=200m')
    const kept = new Set(await storedPoints(root))
    expect(before.filter((line) => !kept.has(line))).toEqual([])
    await rig.fetch(large, { data: root })
    await rig.fetch(small, { data: root })
    expect(await storedPoints(root)).toEqual([...rig.truth(large), ...rig.truth(small)].toSorted())
    size('ro')
    rig.clock.now += 2 * 86_400
    await expect(rig.fetch(large, { data: root })).rejects.toThrow(/read-only/)
    const another = rig.fetch(small, { data: join(root, 'a', 'new-lake') })
    await expect(another).rejects.toMatchObject({ kind: 'incomplete', message: expect.stringContaining('EROFS') })
  })
}

/** Where nothing may be mounted the disk is played. */
async function playFull(rig: Rig): Promise<void> {
  const disk = failingDisk('ENOSPC', 2)
  await failThenFetch(rig, rig.fetch(small, { deps: { disk } }), /ENOSPC: no space left.*make room/)
}

test(`a disk that fills (${mounts ? 'a tmpfs of 4 MB' : 'played: nothing may be mounted here'}): a clear error, and nothing is lost`, async () =>
  withRig(now, async (rig) => {
    await (mounts ? fill(rig) : playFull(rig))
    await rig.fetch(small)
    expect(await rig.stored()).toEqual(rig.truth(small))
  }))

test.each([
  ['EACCES', /permission denied.*give this user the right/],
  ['EIO', /input\/output error/],
])('a disk that says %s in the middle of a commit: a clear error, and nothing is lost', async (code, words) =>
  withRig(now, async (rig) => {
    await failThenFetch(rig, rig.fetch(small, { deps: { disk: failingDisk(code, 1) } }), words)
    expect(await rig.stored()).toEqual(rig.truth(small))
  }),
)

test('a lake whose folder vanishes gives a clear error, and the same command makes a new lake', async () =>
  withRig(now, async (rig) => {
    let answers = 0
    const onEvent = (event: { kind: string }): void => {
      if (event.kind === 'answered' && ++answers === 5) rmSync(rig.root, { recursive: true, force: true })
    }
    await failThenFetch(rig, rig.fetch(small, { deps: { onEvent } }), /ENOENT.*run the same command again/)
    expect(await rig.stored()).toEqual(rig.truth(small))
  }))

test('of several writers at once one works, the others name it, and in the end each point is stored once', async () =>
  withRig(now, async (rig) => {
    const parts = small.paths.map((path) => ({ ...small, paths: [path] }))
    let waiting = parts
    for (let round = 0; round < 5 && waiting.length > 0; round++) {
      const done = await Promise.allSettled(waiting.map(async (part) => await rig.fetch(part)))
      for (const result of done)
        if (result.status === 'rejected')
          // Between taking the lock and saying so lies an instant.
          expect(String(result.reason)).toMatch(
            /another metrics job is at work.*(pitlake fetch|has not said its name yet)/,
          )
      expect(done.filter(({ status }) => status === 'fulfilled')).not.toHaveLength(0)
      waiting = waiting.filter((_, i) => done[i]?.status === 'rejected')
    }
    expect(await rig.stored()).toEqual(rig.truth(small))
  }))
