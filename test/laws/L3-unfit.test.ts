import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { exitCode, type LakeError } from '../../src/base/errors.ts'
import { priceOf } from '../../src/sources/metrics/plan.ts'
import { commit, type Draft } from '../../src/lake/ledger/commit.ts'
import { decodeEntry, encodeEntry, type Entry, seal } from '../../src/lake/ledger/entry.ts'
import { loadCoverage, storedState, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { entryFile, inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { withProvider } from '../helpers/provider.ts'
import { commitDeps, coverageRow, draftOf, dump, seriesRow } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { writing } from '../helpers/ledgers.ts'
import { examined } from '../helpers/looking.ts'
import { entryText, writeEntryText } from '../helpers/entries.ts'
import { partOf } from '../helpers/part-of.ts'

const look = async (root: string, changes: Parameters<typeof examined>[2] = {}): ReturnType<typeof examined> =>
  await examined(root, Date.now() / 1000, changes)

const damages = (found: Awaited<ReturnType<typeof look>>): string[] =>
  found.findings.filter(({ kind }) => kind !== 'views_missing').map(({ kind }) => kind)

/** Writes an entry as a program did that checked nothing. */
async function appendUnchecked(root: string, changes: object): Promise<string> {
  const ledger = await Ledger.open(root)
  const { version, digest } = ledger.head()
  const { entry } = await readEntry(root, version)
  ledger.close()
  const next = { ...entry, version: version + 1, previous: digest, committed_at: entry.committed_at + 1 }
  const nothing = { files: { add: [], remove: [], drop: [] }, series: [], progress: [], coverage: [], state: {} }
  const sealed = seal(JSON.stringify({ ...next, ...nothing, ...changes }))
  writeEntryText(inLake(root, entryFile(version + 1)), sealed.text)
  return sealed.digest
}

async function lakeOf(root: string, commits: number): Promise<Ledger> {
  const ledger = await Ledger.open(root)
  for (let n = 0; n < commits; n++) await commit(ledger, draftOf(root, n), commitDeps())
  return ledger
}

describe('never commit what cannot be read back', () => {
  // Casts: code without types, or a bug, can hand over what the types of a draft rule out.
  const unfit: readonly (readonly [string, Partial<Draft>])[] = [
    ['a price that is a function', { requests: [{ credits: Object } as never] }],
    ['a whole number that is none', { coverage: [coverageRow(0, 9e6 + 0.5, 1e7)] }],
    ['no number', { coverage: [coverageRow(0, Number.NaN, 1e7)] }],
    ['a state of nobody', { coverage: [coverageRow(0, 0, 86_400, { state: 'perhaps' as never })] }],
    ['a series that nobody named', { coverage: [coverageRow(77, 0, 86_400)] }],
    ['an asset that is an object', { series: [seriesRow(9, { asset: {} as never })] }],
    ['a value the index cannot hold', { progress: [{ series: seriesRow(0).id, points: 1e30, first_t: 0, last_t: 0 }] }],
  ]
  test.each(unfit)('%s: refused before anything becomes visible', (_, more) =>
    inFolder(async (root) => {
      const ledger = await lakeOf(root, 2)
      const before = dump(ledger)
      const files = readdirSync(root, { recursive: true }).filter((name) => !String(name).startsWith('spool'))
      const failed = commit(ledger, { ...draftOf(root, 2), ...more }, commitDeps())
      await expect(failed).rejects.toBeInstanceOf(Error)
      expect(dump(ledger)).toEqual(before)
      const after = readdirSync(root, { recursive: true }).filter((name) => !String(name).startsWith('spool'))
      expect(after.filter((name) => !files.includes(name))).toEqual([])
      expect(await commit(ledger, draftOf(root, 2), commitDeps())).toMatchObject({ made: true, version: 3 })
      ledger.close()
      expect(damages(await look(root))).toEqual([])
    }),
  )

  test('names of the prototype are names like others, in the plan, the entry and the index', async () => {
    expect(priceOf({ BTC: 1, '*': 3 }, 'constructor')).toBe(3)
    expect(priceOf({ BTC: 1, '*': 3 }, '__proto__')).toBe(3)
    expect(priceOf({ BTC: 1 }, 'toString')).toBe(1)
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'BTC']
    const t = 1_709_164_800
    await withProvider(t + 4 * 86_400, async ({ answer, fetch, root }) => {
      answer((path) =>
        path === '/v1/assets' || path.endsWith('assets')
          ? names.map((id) => ({ id, symbol: id, ...JSON.parse(`{"${id}": 1}`) }))
          : [0, 1, 2].map((n) => ({ t: t + n * 86_400, v: n + 1 })),
      )
      const selection = { assets: ['*'], paths: ['addresses/active_count_pit'], intervals: ['24h' as const], since: t }
      const done = await fetch(selection)
      expect(done.points_added).toBe(3 * names.length)
      const ledger = await Ledger.open(root)
      const assets = ledger
        .statement('SELECT DISTINCT asset FROM series')
        .all()
        .map((row) => row['asset'])
      expect(assets.map(String).toSorted()).toEqual(names.toSorted())
      expect(ledger.statement('SELECT count(*) AS n FROM requests WHERE credits IS NULL').get()?.['n']).toBe(0)
      ledger.close()
      expect((await fetch(selection)).points_added).toBe(0)
      expect(damages(await look(root))).toEqual([])
    })
  })

  test('keys of the prototype in state and detail come back as they were', async ({ root }) => {
    const ledger = await lakeOf(root, 1)
    const state = JSON.parse('{"__proto__": {"a": 1}, "constructor": "b"}') as Record<string, never>
    await commit(ledger, { ...draftOf(root, 1), state }, commitDeps())
    expect([storedState(ledger, '__proto__'), storedState(ledger, 'constructor')]).toEqual([{ a: 1 }, 'b'])
    expect(
      (await commit(ledger, { job: 'x', run: 'r', provider: draftOf(root, 1).provider, state }, commitDeps())).made,
    ).toBe(false)
    ledger.close()
  })

  test('half a surrogate in any text is read back as it was written', () => {
    const reason = 'half \ud83d, whole 😀, words \\ud83d, \\\\\ud83d'
    const entryWith = (words: string): Entry => partOf<Entry>({ coverage: [coverageRow(0, 0, 1, { reason: words })] })
    const { text } = encodeEntry(entryWith(reason))
    expect(JSON.parse(text)).toMatchObject({ coverage: [{ reason: reason.toWellFormed() }] })
    expect(encodeEntry(entryWith(reason.toWellFormed())).text).toBe(text)
  })
})

describe('an entry is checked when it is read', () => {
  const wrong: readonly (readonly [string, object, string])[] = [
    ['a list that is none', { coverage: {} }, 'coverage: no list'],
    ['a text that is none', { series: [{ ...seriesRow(1), asset: 7 }] }, 'series: [0] asset: no text'],
    ['a missing key', { state: undefined }, 'state: no object'],
    ['a key that only the prototype has', { rules: { digest: 'd' } }, 'rules: rules: nothing'],
  ]
  test.each(wrong)('an entry with %s is named when it is read', (_, changes, words) =>
    inFolder(async (root) => {
      ;(await lakeOf(root, 1)).close()
      const { entry } = await readEntry(root, 1)
      const { text } = seal(JSON.stringify({ ...entry, ...changes }))
      expect(() => decodeEntry(text, 'e')).toThrow(words)
    }),
  )
})

describe('a last entry that cannot be applied', () => {
  test.each([
    ['a price that is an object', { requests: [{ id: 'r', credits: {} }] }],
    ['a series that nobody named', { coverage: [coverageRow(77, 0, 86_400)] }],
    ['a file that is listed twice', { files: { add: [], remove: [], drop: [7] } }],
  ])('%s: every command reports it, doctor sets it aside, and the next commit gets its number', (_, changes) =>
    inFolder(async (root) => {
      ;(await lakeOf(root, 3)).close()
      const digest = await appendUnchecked(root, changes)
      const opened = await Ledger.open(root).catch((error: unknown) => error)
      expect([exitCode(opened), (opened as LakeError).message]).toEqual([4, expect.stringContaining('pitlake doctor')])
      const found = await look(root)
      expect(damages(found)).toEqual(['entry_unfit'])
      expect(found.findings[0]?.remedy).toContain('--repair')
      const mended = await look(root, { repair: true })
      expect(damages(mended)).toEqual([])
      expect(mended.version).toBe(3)
      const aside = `journal/aside/0000000004-${digest}.json.gz`
      expect(entryText(inLake(root, aside)).length).toBeGreaterThan(100)
      const ledger = await Ledger.open(root)
      await commit(ledger, draftOf(root, 3), commitDeps())
      await commit(ledger, draftOf(root, 4), commitDeps())
      expect((await readEntry(root, 4)).entry.replaces).toBe(digest)
      expect((await readEntry(root, 5)).entry.replaces).toBeUndefined()
      expect(loadCoverage(ledger).size).toBeGreaterThan(0)
      ledger.close()
      expect(existsSync(inLake(root, aside))).toBe(true)
      rmSync(inLake(root, 'ledger.sqlite'))
      expect(damages(await look(root, { rebuildLedger: true }))).toEqual([])
    }),
  )

  test('only such a one: a sound entry, one in the middle, and torn bytes stay where they are', async ({ root }) => {
    ;(await lakeOf(root, 3)).close()
    await look(root, { repair: true })
    expect(existsSync(inLake(root, 'journal/aside'))).toBe(false)
    const path = inLake(root, entryFile(3))
    writeEntryText(path, entryText(path).replace('fetch', 'fitch'))
    rmSync(inLake(root, 'ledger.sqlite'))
    await look(root, { repair: true })
    expect(existsSync(inLake(root, 'journal/aside'))).toBe(false)
  })
})

test('a folder in place of an entry is ignored by readers, and reported and moved by doctor', async ({ root }) => {
  const ledger = await lakeOf(root, 2)
  for (const name of ['0000000099.json.gz', '0000000003.json.gz', '0000000002.checkpoint.jsonl'])
    mkdirSync(join(root, 'journal', name, 'inner'), { recursive: true })
  writeFileSync(join(root, 'journal/0000000099.json.gz/mine.txt'), 'mine')
  ledger.close()
  expect(damages(await look(root))).toEqual(['entry_stray', 'entry_stray', 'entry_stray'])
  await writing(root, (again) => expect(liveFiles(again)).toHaveLength(2))
  const mended = await look(root, { repair: true })
  expect(damages(mended)).toEqual([])
  expect(mended.mended.filter((text) => text.includes('aside'))).toHaveLength(3)
  const kept = readdirSync(join(root, 'journal/aside'), { recursive: true }).filter((name) =>
    String(name).endsWith('mine.txt'),
  )
  expect(kept).toHaveLength(1)
  using after = await Ledger.open(root)
  expect((await commit(after, draftOf(root, 2), commitDeps())).version).toBe(3)
})
