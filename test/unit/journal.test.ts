import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { realDisk } from '../../src/lake/store/disk.ts'
import { canonical, decodeEntry, encodeEntry, type Entry, layoutNumber } from '../../src/lake/ledger/entry.ts'
import { appendEntry, asideDigest, entriesAfter, listJournal } from '../../src/lake/ledger/journal.ts'
import { entryFile, inLake } from '../../src/lake/store/layout.ts'
import { appendFacts, readFacts } from '../../src/lake/ledger/run-facts.ts'
import { inFolder } from '../helpers/folders.ts'
import { writeEntryText } from '../helpers/entries.ts'

function entry(version: number, previous: string | null, more: Record<string, unknown> = {}): Entry {
  const lists = { series: [], progress: [], coverage: [], violations: [], findings: [], requests: [], verified: [] }
  const about = {
    schema_version: layoutNumber,
    lake: 'l',
    version,
    previous,
    committed_at: version,
    program: 'p',
    job: 'fetch',
  }
  const rest = { run: null, provider: { synthetic: true }, files: { add: [], remove: [], drop: [] }, root: '' }
  return { ...about, ...rest, ...lists, rules: null, state: {}, ...more }
}

async function write(root: string, count: number): Promise<void> {
  let previous: string | null = null
  for (let version = 1; version <= count; version++) {
    const digest = await appendEntry(realDisk, root, entry(version, previous), 'x')
    expect(digest).not.toBe(false)
    previous = digest as string
  }
}

async function read(root: string): Promise<number[]> {
  const versions: number[] = []
  for await (const sealed of entriesAfter(root, 0, null)) versions.push(sealed.entry.version)
  return versions
}

describe('an entry', () => {
  it('comes back whole, with keys of a later program', () => {
    const whole = entry(1, null, { tomorrow: { a: [1, 'ü\u2028\n'] } })
    const { text, digest } = encodeEntry(whole)
    expect(JSON.parse(text)).toMatchObject({ sha256: digest, version: 1 })
    expect(decodeEntry(text, 'e')).toEqual({ entry: whole, digest })
  })
  it('shows every cut and every changed byte', () => {
    const { text } = encodeEntry(entry(1, null))
    for (let at = 0; at < text.length - 1; at++) {
      expect(() => decodeEntry(text.slice(0, at), 'e')).toThrow(/damaged/)
      const flipped = text.slice(0, at) + (text[at] === 'x' ? 'y' : 'x') + text.slice(at + 1)
      expect(() => decodeEntry(flipped, 'e')).toThrow(/damaged/)
    }
  })
  it('an entry that lacks a field is refused, even if the field may have any value', () => {
    const finding = { series: 's', t: 1, kind: 'before_end', at: 1 }
    for (const detail of [null, 0, 'x', [1], {}])
      expect(() =>
        decodeEntry(encodeEntry(entry(1, null, { findings: [{ ...finding, detail }] })).text, 'e'),
      ).not.toThrow()
    expect(() => decodeEntry(encodeEntry(entry(1, null, { findings: [finding] })).text, 'e')).toThrow(/detail: nothing/)
  })
  it('says the same of equal values, in whatever order they have their keys', () => {
    expect(canonical({ b: [{ d: 1, c: null }], a: 'x' })).toBe('{"a":"x","b":[{"c":null,"d":1}]}')
    expect(canonical({ a: 'x', b: [{ c: null, d: 1 }] })).toBe('{"a":"x","b":[{"c":null,"d":1}]}')
    expect(canonical([2, 1])).toBe('[2,1]')
  })
  it.each([0, 1, layoutNumber - 1])('an entry of the unreleased layout %s is refused in one line', (layout) => {
    const { text } = encodeEntry(entry(1, null, { schema_version: layout, program: 'pitlake 9.9.9' }))
    const message =
      /^journal entry e: expected layout \d+, got \d; made by an unreleased version of pitlake: fetch the data again into an empty folder \(pitlake fetch --data FOLDER\)$/
    expect(() => decodeEntry(text, 'e')).toThrow(message)
  })
  it('an entry of a newer program is refused with advice', () => {
    const { text } = encodeEntry(entry(1, null, { schema_version: layoutNumber + 1 }))
    expect(() => decodeEntry(text, 'e')).toThrow(/a newer pitlake: update pitlake$/)
    const told = (program: string): string =>
      encodeEntry(entry(1, null, { schema_version: layoutNumber + 1, program })).text
    expect(() => decodeEntry(told('pitlake 3.1.0'), 'e')).toThrow(
      /by a newer pitlake \(pitlake 3\.1\.0\): update pitlake$/,
    )
    // Nobody types a text of somebody's journal into a shell.
    expect(() => decodeEntry(told('pitlake 3.1.0; rm -r'), 'e')).toThrow(/a newer pitlake: update pitlake$/)
  })
})

describe('the journal', () => {
  it('is a chain in which every entry names the one before', () =>
    inFolder(async (root) => {
      await write(root, 4)
      expect(await read(root)).toEqual([1, 2, 3, 4])
      const other = encodeEntry(entry(2, 'f'.repeat(64)))
      writeEntryText(inLake(root, entryFile(2)), other.text)
      await expect(read(root)).rejects.toThrow(/does not follow/)
    }))
  it('finds a missing and a torn entry', () =>
    inFolder(async (root) => {
      await write(root, 3)
      truncateSync(inLake(root, entryFile(3)), 40)
      await expect(read(root)).rejects.toMatchObject({ kind: 'integrity' })
      rmSync(inLake(root, entryFile(2)))
      await expect(read(root)).rejects.toThrow(/cannot be read/)
    }))
  it('gives a version to one writer only, and the loser leaves nothing', () =>
    inFolder(async (root) => {
      const writers = Array.from({ length: 8 }, (_, n) => appendEntry(realDisk, root, entry(1, null), `w${n}`))
      const results = await Promise.all(writers)
      expect(results.filter((digest) => digest !== false)).toHaveLength(1)
      expect(readdirSync(inLake(root, 'journal'))).toEqual(['0000000001.json.gz'])
      expect(await listJournal(root)).toMatchObject({ entries: [1], checkpoints: [] })
    }))
})

it('knows the digest of an entry that was set aside, of several the last, and of no other file', () =>
  inFolder(async (root) => {
    expect(await asideDigest(root, 3)).toBeNull()
    mkdirSync(inLake(root, 'journal/aside'), { recursive: true })
    const first = '0a'.repeat(32)
    const last = 'f1'.repeat(32)
    for (const name of [`0000000003-${last}`, `0000000003-${first}`, `0000000004-${first}`, `0000000003-${last}x`, '3'])
      writeFileSync(inLake(root, `journal/aside/${name}.json.gz`), '')
    expect([await asideDigest(root, 3), await asideDigest(root, 4)]).toEqual([last, first])
    expect(await asideDigest(root, 5)).toBeNull()
  }))

describe('run lines', () => {
  it('survive a cut: the torn line is passed over, later ones count', () =>
    inFolder(async (root) => {
      const line = (after: number) => ({ after, run: { id: 'r' } })
      await appendFacts(realDisk, root, 'r', [line(1), line(2)])
      const path = inLake(root, 'runs/r.jsonl')
      truncateSync(path, readFileSync(path).length - 5)
      expect((await readFacts(root, () => 0)).map((placed) => placed.line.after)).toEqual([1])
      await appendFacts(realDisk, root, 'r', [line(3)])
      const lines = await readFacts(root, () => 0)
      expect(lines.map((placed) => placed.line.after)).toEqual([1, 3])
      expect(await readFacts(root, () => lines.at(-1)?.end ?? 0)).toEqual([])
    }))
})
