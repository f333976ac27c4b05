// @module-tag full
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test as plain, vi } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import type { Disk } from '../../src/lake/store/disk.ts'
import { mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { pitlake } from '../helpers/command.ts'
import { type Rig, storedPoints, withRig } from '../helpers/fetching.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { grow, mergeAndVacuum, wholeVersion } from '../helpers/mirrors.ts'
import { need } from '../helpers/needs.ts'
import { until } from '../helpers/processes.ts'
import { sample } from '../helpers/tiers.ts'
import { stepping } from '../helpers/stepping.ts'

const script = fileURLToPath(new URL('../../deploy/rsync-lake.sh', import.meta.url))
const day = 86_400
const now = Date.UTC(2026, 2, 4, 12) / 1000
const selection = { assets: ['BTC', 'ETH'], paths: ['supply/current_pit'], since: now - 30 * day }

/** Three fetches, each of some days more, and a merge of what they brought. */
async function lives(rig: Rig, disk: Disk): Promise<void> {
  for (const left of [20, 10, 0]) await rig.fetch({ ...selection, until: now - left * day }, { deps: { disk } })
  using ledger = await Ledger.open(rig.root)
  await mergeSmallFiles(ledger, rewriteDeps({ disk }))
}

/** A copy by the script, each rsync of which waits until it may go. */
interface Copying {
  /** What the next rsync is called with; undefined when the script has ended instead. */
  readonly waiting: () => Promise<string | undefined>
  /** Lets it run, and waits for its end; false when the script has ended instead. */
  readonly next: () => Promise<boolean>
  readonly ended: Promise<number | null>
}

/** Stands in front of rsync: says that it is there, waits for leave, says when it is done. */
const gate = (rsync: string): string => `#!/bin/sh
n=$$
echo "$@" > "$GATE/.asks-$n" && mv "$GATE/.asks-$n" "$GATE/asks-$n"
while [ ! -e "$GATE/go-$n" ]; do sleep 0.01; done
${rsync} "$@"
code=$?
: > "$GATE/done-$n"
exit $code
`

/** Copies as rsync does, without anything of it: what stands in where there is none. */
const standIn = `copied() { for last; do :; done; for one; do case $one in -*) ;; "$last") ;; *) mkdir -p "$last" && cp -a "$one" "$last" ;; esac; done; }; copied`

function copying(folder: string, rsync: string, program: string, argv: readonly string[]): Copying {
  mkdirSync(folder)
  writeFileSync(join(folder, 'rsync'), gate(rsync))
  chmodSync(join(folder, 'rsync'), 0o755)
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}`, GATE: folder }
  const child = spawn('/bin/sh', [program, ...argv], { stdio: ['ignore', 'ignore', 'inherit'], env })
  let over = false
  const ended = once(child, 'close').then(([code]) => {
    over = true
    return code as number | null
  })
  const of = (state: string): string[] =>
    readdirSync(folder).flatMap((name) => (name.startsWith(`${state}-`) ? [name.slice(state.length + 1)] : []))
  const asking = async (): Promise<string | undefined> => {
    const found = (): string | undefined => of('asks').find((id) => !of('go').includes(id))
    await until(() => over || found() !== undefined, 'the next rsync')
    return found()
  }
  const waiting = async (): Promise<string | undefined> => {
    const id = await asking()
    return id === undefined ? undefined : readFileSync(join(folder, `asks-${id}`), 'utf8')
  }
  const next = async (): Promise<boolean> => {
    const id = await asking()
    if (id === undefined) return false
    writeFileSync(join(folder, `go-${id}`), '')
    await until(() => of('done').includes(id), 'the end of an rsync')
    return true
  }
  return { waiting, next, ended }
}

/** How many steps the disk takes of the job. */
async function steps(): Promise<number> {
  let taken = 0
  await withRig(
    now,
    async (rig) =>
      await lives(
        rig,
        stepping(async () => void taken++),
      ),
  )
  return taken
}

/** Runs the job with a copy beside it that begins at a step and takes one rsync each so many; the copy's version. */
async function copiedAt(from: number, every: number, rsync: string): Promise<number> {
  let version = -1
  await withRig(now, async (rig) => {
    await inFolder(async (folder) => {
      const copy = join(folder, 'copy')
      mkdirSync(copy)
      const begin = (): Copying => copying(join(folder, 'gate'), rsync, script, [rig.root, copy])
      let work: Copying | undefined
      let taken = 0
      await lives(
        rig,
        stepping(async () => {
          if (++taken < from || (taken - from) % every !== 0) return
          work ??= begin()
          await work.next()
        }),
      )
      expect(taken).toBeGreaterThan(from)
      if (work === undefined) throw new Error('the copy never began')
      while (await work.next());
      expect(await work.ended).toBe(0)
      version = await wholeVersion(copy)
      if (version === 0) return
      const run = async (...argv: readonly string[]): Promise<number> =>
        (await pitlake(folder, [...argv, '--data', copy])).code
      expect(await run('doctor', '--rebuild-ledger', '--repair')).toBe(0)
      const held = new Set(await storedPoints(rig.root))
      const points = await storedPoints(copy)
      expect(points.length).toBeGreaterThan(10)
      expect(points.filter((point) => !held.has(point))).toEqual([])
      // The same command again brings the rest.
      const again = copying(join(folder, 'gate-again'), rsync, script, [rig.root, copy])
      while (await again.next());
      expect(await again.ended).toBe(0)
      expect(await wholeVersion(copy)).toBe(await wholeVersion(rig.root))
    })
  })
  return version
}

/** At which part of the job copies begin, and how many steps lie between two of their rsyncs. */
const moments = [
  [0.1, 2],
  [0.25, 1],
  [0.3, 5],
  [0.4, 3],
  [0.5, 8],
  [0.6, 1],
  [0.7, 4],
  [0.8, 2],
] as const

/** The real one where it is installed. */
const rsync = ['/usr/bin/rsync', '/usr/local/bin/rsync'].find((path) => existsSync(path)) ?? standIn

test('L3: an rsync copy during a fetch is a committed version at any step', async () => {
  const versions = new Set<number>()
  const all = await steps()
  expect(all).toBeGreaterThan(30)
  for (const [part, every] of sample(moments, 3, 3)) versions.add(await copiedAt(Math.round(part * all), every, rsync))
  expect(versions.size).toBeGreaterThan(1)
})

test.each([
  ['as the script has it', 'points', 'committed'],
  ['with the journal last', 'journal', 'lacks files'],
])('commits before the last rsync of a copy, %s', (_, last, expected) =>
  withRig(now, async (rig) => {
    await inFolder(async (folder) => {
      const copy = join(folder, 'copy')
      mkdirSync(copy)
      const lines = readFileSync(script, 'utf8').split('\n')
      expect(lines).toContain(`copy ${last}`)
      const program = join(folder, 'copy.sh')
      writeFileSync(program, [...lines.filter((line) => line !== `copy ${last}`), `copy ${last}`, ''].join('\n'))
      await rig.fetch({ ...selection, until: now - 20 * day })
      const first = await wholeVersion(rig.root)
      const work = copying(join(folder, 'gate'), rsync, program, [rig.root, copy])
      while ((await work.waiting())?.includes(`/${last}`) === false) await work.next()
      await rig.fetch(selection)
      while (await work.next());
      expect(await work.ended).toBe(0)
      if (expected === 'committed') expect(await wholeVersion(copy)).toBe(first)
      else await expect(wholeVersion(copy)).rejects.toThrow(/ENOENT/)
    })
  }),
)

test('a copy that goes on after a vacuum is the lake again, without what went', async ({ root: folder }) => {
  const root = join(folder, 'lake')
  const copy = join(folder, 'copy')
  const sent = async (n: number): Promise<void> => {
    const work = copying(join(folder, `gate-${n}`), rsync, script, [root, copy])
    while (await work.next());
    expect(await work.ended).toBe(0)
  }
  mkdirSync(copy)
  await grow(root, 0, 3)
  // What this lake has no need of, others have.
  const parts = ['stamps', 'journal', 'runs', 'archive', 'registry/raw', 'assets', 'points']
  for (const part of parts) {
    mkdirSync(join(root, part), { recursive: true })
    writeFileSync(join(root, part, 'one'), part)
  }
  await sent(1)
  await mergeAndVacuum(root)
  await grow(root, 3, 1)
  await sent(2)
  expect(await wholeVersion(copy)).toBe(await wholeVersion(root))
  const files = (lake: string): string[] =>
    parts.flatMap((part) =>
      readdirSync(join(lake, part), { recursive: true, encoding: 'utf8' }).map((name) => `${part}/${name}`),
    )
  expect(files(copy)).toContain('archive/one')
  expect(readFileSync(join(copy, 'lake.json'), 'utf8')).toBe(readFileSync(join(root, 'lake.json'), 'utf8'))
  if (rsync !== standIn) expect(files(copy).toSorted()).toEqual(files(root).toSorted())
})

plain('L3: a file system snapshot during a fetch is a committed version at any step', async (context) => {
  const mkfs = need(context, 'btrfs')
  await inFolder(async (folder) => {
    const image = join(folder, 'image')
    const mounted = join(folder, 'mounted')
    const sh = (line: string): void => {
      const { status, stderr } = spawnSync('/bin/sh', ['-c', line], { encoding: 'utf8' })
      expect([line, status, status === 0 ? '' : stderr]).toEqual([line, 0, ''])
    }
    mkdirSync(mounted)
    sh(`truncate -s 300M ${image} && ${mkfs} -q ${image} && mount -o loop ${image} ${mounted}`)
    try {
      sh(`btrfs -q subvolume create ${mounted}/now`)
      vi.stubEnv('TMPDIR', `${mounted}/now`)
      const snapshots: string[] = []
      let lake = ''
      await withRig(now, async (rig) => {
        lake = rig.root.slice(`${mounted}/now/`.length)
        let taken = 0
        const snap = async (): Promise<void> => {
          if (++taken % 4 !== 2) return
          const at = `${mounted}/${taken}`
          sh(`btrfs -q subvolume snapshot ${mounted}/now ${at}`)
          snapshots.push(at)
        }
        await lives(rig, stepping(snap))
      })
      const versions = new Set<number>()
      for (const at of sample(snapshots, 6, 6)) {
        const root = join(at, lake)
        const version = await wholeVersion(root)
        versions.add(version)
        if (version === 0) continue
        const { code, message } = await pitlake(folder, ['doctor', '--repair', '--data', root])
        expect([code, message]).toEqual([0, ''])
      }
      expect(versions.size).toBeGreaterThan(2)
    } finally {
      vi.unstubAllEnvs()
      sh(`umount ${mounted}`)
    }
  })
})
