// @module-tag full
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { setAside } from '../../src/maintenance/upkeep/damage-journal.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { filesOnDisk, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { listJournal } from '../../src/lake/ledger/journal.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { replay, stamp } from '../../src/trust/results/stamp.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { checkpointFile, entryFile } from '../../src/lake/store/layout.ts'
import { filesIn } from '../helpers/key-search.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { examined, failure } from '../helpers/looking.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { expectMirror } from '../helpers/expect-mirror.ts'
import { grow, merge, mergeAndVacuum, pulled } from '../helpers/mirrors.ts'
import { withPreset } from '../helpers/lakes/written-by-jobs.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

/** What stands in a folder, with its bytes, but for locks and what views are made of. */
function tree(root: string): Record<string, string> {
  const left = filesIn(root).filter((path) => !/^(?:locks|spool)\/|^ledger\.sqlite/.test(path))
  return Object.fromEntries(left.map((path) => [path, readFileSync(join(root, path)).toString('base64')]))
}

describe('a mirror', () => {
  test('is the lake, grows by what is missing, and follows merges and vacuum', async ({ root: folder }) => {
    const source = join(folder, 'lake')
    const mirror = join(folder, 'mirror')
    await grow(source, 0, 3)
    const first = await pulled(mirror, source)
    expect(first).toMatchObject({ version: 3, before: 0, files: 3, entries: 3, rewritten: false, removed: 0 })
    await expectMirror(mirror, source)
    const before = tree(mirror)
    expect(await pulled(mirror, source)).toMatchObject({ version: 3, before: 3, files: 0, bytes: 0, entries: 0 })
    expect(tree(mirror)).toEqual(before)
    await grow(source, 3, 1)
    expect(await pulled(mirror, source)).toMatchObject({ version: 4, before: 3, files: 1, entries: 1 })
    expect((await mergeAndVacuum(source)).length).toBeGreaterThan(2)
    await pulled(mirror, source)
    await expectMirror(mirror, source)
    // What the views named meanwhile may be open somewhere: it goes with the next pull.
    expect(await pulled(mirror, source)).toMatchObject({ files: 0, entries: 0 })
    using ledger = await Ledger.open(mirror)
    const held = new Set(filesOnDisk(ledger).map(({ path }) => path))
    const stand = Object.keys(tree(mirror)).filter((path) => path.startsWith('points/'))
    expect(stand.filter((path) => !held.has(path))).toEqual([])
  })

  test('goes over what was folded: the checkpoint comes, older entries go', async ({ root: folder }) => {
    const source = join(folder, 'lake')
    const mirror = join(folder, 'mirror')
    await grow(source, 0, 2)
    await pulled(mirror, source)
    await grow(source, 2, 3)
    {
      using ledger = await Ledger.open(source)
      await writeCheckpoint(realDisk, ledger)
    }
    await mergeAndVacuum(source)
    await grow(source, 6, 1)
    expect((await listJournal(source)).entries[0]).toBeGreaterThan(3)
    const { version } = await pulled(mirror, source)
    // Files of the versions between are gone for ever: one checkpoint leads over them.
    expect(await listJournal(mirror)).toMatchObject({ entries: [version], checkpoints: [version] })
    await expectMirror(mirror, source)
    await grow(source, 7, 2)
    expect(await pulled(mirror, source)).toMatchObject({ before: version, version: version + 2, files: 2, entries: 2 })
    expect((await listJournal(mirror)).entries).toEqual([version, version + 1, version + 2])
    await expectMirror(mirror, source)
  })

  test('replays what was stamped where the lake is, also what vacuum keeps for it alone', async ({ root: folder }) => {
    const source = join(folder, 'lake')
    const mirror = join(folder, 'mirror')
    const out = join(folder, 'result.parquet')
    await grow(source, 0, 3)
    const run = { sleep: async () => await Promise.resolve() }
    const query = 'SELECT asset, sum(v) / 3 AS third FROM points GROUP BY ALL ORDER BY ALL'
    const made = await stamp({ root: source, catalogue, query, out, variables: {} }, run, commitDeps())
    await grow(source, 3, 3)
    await mergeAndVacuum(source)
    await grow(source, 6, 2)
    await merge(source)
    expect(await pulled(mirror, source)).toMatchObject({ stamps: 1 })
    rmSync(source, { recursive: true })
    expect(await replay(mirror, out, run, 'pitlake test')).toMatchObject({ same: true, version: made.version })
    expect((await examined(mirror, rewriteDeps().clock.now)).findings).toEqual([])
  })

  test('a mirror repairs lost files, a lost index and, with --thorough, changed bytes', async ({ root: folder }) => {
    const source = join(folder, 'lake')
    const mirror = join(folder, 'mirror')
    await grow(source, 0, 3)
    await pulled(mirror, source)
    using ledger = await Ledger.open(source)
    const [first, second] = liveFiles(ledger).map(({ path }) => join(mirror, path))
    rmSync(first ?? '')
    for (const name of readdirSync(mirror)) if (name.startsWith('ledger.sqlite')) rmSync(join(mirror, name))
    expect(await pulled(mirror, source)).toMatchObject({ files: 1 })
    const bytes = readFileSync(second ?? '')
    bytes[9] = (bytes[9] ?? 0) ^ 1
    writeFileSync(second ?? '', bytes)
    expect(await pulled(mirror, source)).toMatchObject({ files: 0 })
    expect(await pulled(mirror, source, {}, { thorough: true })).toMatchObject({ files: 1 })
    await expectMirror(mirror, source)
  })
})

test('a mirror of a mirror replays what was stamped in the lake', () =>
  withPreset('stamped', async (root, home) => {
    const first = join(home, 'first')
    const second = join(home, 'second')
    const copied = await pulled(first, root)
    expect(await pulled(second, first)).toMatchObject({ version: copied.version, files: copied.files })
    rmSync(root, { recursive: true })
    rmSync(first, { recursive: true })
    const run = { sleep: async () => await Promise.resolve() }
    for (const result of ['result.parquet', 'later.parquet'])
      expect(await replay(second, join(home, result), run, 'pitlake test')).toMatchObject({ same: true })
    using ledger = await Ledger.open(second)
    expect(ledger.head()).toMatchObject({ version: copied.version })
  }))

describe('what does not fit is refused and named, and nothing of it is taken over', () => {
  const damages: readonly [string, (source: string, file: string) => void, RegExp][] = [
    [
      'a torn file',
      (source, file) => truncateSync(join(source, file), 100),
      /points\/.*expected \d+ bytes, .*got 100 bytes/,
    ],
    ['an altered file', (source, file) => flip(join(source, file)), /points\/.*got SHA-256/],
    ['a file that is gone', (source, file) => rmSync(join(source, file)), /points\/.*got no such file/],
    [
      'a torn entry',
      (source) => truncateSync(join(source, entryFile(3)), 100),
      /journal\/0000000003\.json\.gz is damaged/,
    ],
    ['an altered entry', (source) => flip(join(source, entryFile(4))), /journal\/0000000004\.json\.gz is damaged/],
  ]

  test('torn, altered and lost files and entries', async ({ root: folder }) => {
    const source = join(folder, 'lake')
    const mirror = join(folder, 'mirror')
    await grow(source, 0, 2)
    await pulled(mirror, source)
    const before = tree(join(mirror, 'journal'))
    await grow(source, 2, 2)
    using ledger = await Ledger.open(source)
    const file = liveFiles(ledger).find(({ added_version }) => added_version === 4)?.path ?? ''
    for (const [name, damage, words] of damages) {
      const copy = join(folder, name)
      cpSync(source, copy, { recursive: true })
      damage(copy, file)
      const [code, message] = await failure(pulled(mirror, copy))
      expect([code, message]).toEqual([4, expect.stringMatching(words)])
      expect(message).toContain(copy)
      expect(tree(join(mirror, 'journal'))).toEqual(before)
    }
    await pulled(mirror, source)
    await expectMirror(mirror, source)
  })

  test('a pull refuses and names a damaged checkpoint, and takes no file of it', async ({ root: folder }) => {
    const source = join(folder, 'lake')
    const mirror = join(folder, 'mirror')
    await grow(source, 0, 2)
    using ledger = await Ledger.open(source)
    await writeCheckpoint(realDisk, ledger)
    const path = join(source, checkpointFile(2))
    truncateSync(path, readFileSync(path).length - 20)
    expect(await failure(pulled(mirror, source))).toEqual([
      4,
      expect.stringMatching(/checkpoint .*0000000002.* is damaged/),
    ])
    expect(existsSync(join(mirror, 'journal'))).toBe(false)
  })

  test('another history: a lake that went back, a copy that went on by itself, another lake', async ({
    root: folder,
  }) => {
    const [source, mirror, back, other] = ['lake', 'mirror', 'back', 'other'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
      string,
    ]
    await grow(source, 0, 2)
    cpSync(source, back, { recursive: true })
    await grow(source, 2, 1)
    await pulled(mirror, source)
    expect(await failure(pulled(mirror, back))).toEqual([
      4,
      expect.stringMatching(/version 3: .*got version 2 as the newest/),
    ])
    await grow(back, 3, 3)
    expect(await failure(pulled(mirror, back))).toEqual([
      4,
      expect.stringMatching(/version 3: expected the entry .*got another one/),
    ])
    {
      using ledger = await Ledger.open(back)
      await writeCheckpoint(realDisk, ledger)
    }
    await mergeAndVacuum(back)
    expect((await listJournal(back)).entries).not.toContain(3)
    expect(await failure(pulled(mirror, back))).toEqual([
      4,
      expect.stringMatching(/version 3: expected the entry .*got another one/),
    ])
    await grow(other, 0, 1)
    expect(await failure(pulled(mirror, other))).toEqual([2, expect.stringContaining('a mirror of lake')])
    await expectMirror(mirror, source)
  })

  test('a pull refuses a lake of its own, foreign files and a mirror within its source', async ({ root: folder }) => {
    const source = join(folder, 'lake')
    const own = join(folder, 'own')
    const stranger = join(folder, 'stranger')
    await grow(source, 0, 1)
    await grow(own, 0, 1)
    cpSync(join(source, 'points'), join(stranger, 'points'), { recursive: true })
    expect(await failure(pulled(own, source))).toEqual([2, expect.stringContaining('a lake of its own')])
    expect(await failure(pulled(stranger, source))).toEqual([4, expect.stringContaining('data without a journal')])
    expect(await failure(pulled(join(source, 'mirror'), source))).toEqual([
      2,
      expect.stringContaining('a folder apart'),
    ])
    expect(await failure(pulled(join(folder, 'm'), join(folder, 'nowhere')))).toEqual([
      2,
      expect.stringContaining('no lake in'),
    ])
    expect(existsSync(join(folder, 'm', 'lake.json'))).toBe(false)
    const signal = AbortSignal.abort()
    expect(await failure(pulled(join(folder, 'm'), source, { signal }))).toEqual([
      5,
      expect.stringContaining('an interrupt'),
    ])
  })
})

test('an entry that was set aside and replaced is replaced in the mirror, too', async ({ root: folder }) => {
  const source = join(folder, 'lake')
  const mirror = join(folder, 'mirror')
  await grow(source, 0, 3)
  await pulled(mirror, source)
  const digest =
    (await Ledger.open(source).then((ledger) => {
      using held = ledger
      return held.head().digest
    })) ?? ''
  await setAside(realDisk, source, { version: 3, digest, found: '' })
  ;(await Ledger.rebuild(source)).close()
  await grow(source, 7, 2)
  expect(await pulled(mirror, source)).toMatchObject({ before: 3, version: 4, rewritten: true, entries: 2 })
  await expectMirror(mirror, source)
})

function flip(path: string): void {
  const bytes = readFileSync(path)
  const at = bytes.length - 30
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(path, bytes)
}
