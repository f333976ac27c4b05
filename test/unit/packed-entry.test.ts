import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { longestEntry, packEntry, unpackEntry } from '../../src/lake/ledger/packed-entry.ts'
import { entryFile, inLake } from '../../src/lake/store/layout.ts'
import { checkJournal } from '../../src/maintenance/upkeep/damage-journal.ts'
import { commitDeps, draftOf } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'

/** A journal of two entries; `path` is the file of the last. */
async function withJournal(work: (root: string, path: string) => Promise<void>): Promise<void> {
  await inFolder(async (root) => {
    {
      using ledger = await Ledger.open(root)
      for (let n = 0; n < 2; n++) await commit(ledger, draftOf(root, n), commitDeps())
    }
    await work(root, inLake(root, entryFile(2)))
  })
}

/** A gzip file that begins as those of entries do. */
function compressed(text: string | Buffer): Buffer {
  const bytes = gzipSync(text, { level: 1 })
  bytes.set([0, 0xff], 8)
  return bytes
}

test('an entry is a gzip file that zcat reads, and its digest is that of the text inside', () =>
  withJournal(async (root, path) => {
    const text = execFileSync('gzip', ['-cd', path], { encoding: 'utf8' })
    const [, digest, rest] = /^\{"sha256":"([0-9a-f]{64})",(.*)\n$/s.exec(text) ?? []
    expect(hash('sha256', `{${rest}`)).toBe(digest)
    expect((await readEntry(root, 2)).digest).toBe(digest)
  }))

test('an entry that was compressed by a different program is the same entry once its file begins alike', () =>
  withJournal(async (root, path) => {
    const sealed = await readEntry(root, 2)
    const text = execFileSync('gzip', ['-cd', path])
    const other = gzipSync(text, { level: 0 })
    other.set([0, 0xff], 8)
    expect(other.equals(readFileSync(path))).toBe(false)
    writeFileSync(path, other)
    expect(await readEntry(root, 2)).toEqual(sealed)
  }))

test('every cut and every changed byte of an entry is found', () =>
  withJournal(async (root, path) => {
    const name = entryFile(2)
    const whole = readFileSync(path)
    const sealed = await readEntry(root, 2)
    for (let at = 0; at < whole.length; at++) {
      const flipped = whole.with(at, (whole[at] ?? 0) ^ 0xff)
      for (const bytes of [whole.subarray(0, at), Buffer.from(flipped)])
        expect(() => unpackEntry(bytes, name), `${at}`).toThrow(/^journal entry .* is damaged/)
    }
    expect(sealed.entry.version).toBe(2)
  }))

const damages: readonly (readonly [string, (whole: Buffer) => Uint8Array, string])[] = [
  ['emptied', () => new Uint8Array(), 'found an empty file'],
  ['not compressed', () => Buffer.from('{"sha256":"'), 'found something else'],
  ['cut', (whole) => whole.subarray(0, whole.length - 9), 'found bytes that do not match its checksum'],
  ['followed by bytes', (whole) => Buffer.concat([whole, Buffer.of(0)]), 'found bytes that do not match its checksum'],
  [
    'followed by a second document',
    (whole) => Buffer.concat([whole, compressed('')]),
    'found bytes that do not match its checksum',
  ],
  [
    'compressed over a changed text',
    (whole) => compressed(Buffer.from(unpackEntry(whole, 'e').replace('fetch', 'fitch'))),
    'found bytes that do not match its checksum',
  ],
  [
    'a small file that decompresses to too much',
    () => compressed(Buffer.alloc(longestEntry + 1)),
    `found more than ${longestEntry} bytes`,
  ],
]

test.each(damages)('an entry that is %s is damage that names its file', (_, harm, found) =>
  withJournal(async (root, path) => {
    writeFileSync(path, harm(readFileSync(path)))
    expect((await checkJournal(root)).findings).toEqual([
      expect.objectContaining({ kind: 'entry_torn', path: entryFile(2), found }),
    ])
  }),
)

test('a file that is larger than any entry is damage, and is not read', () =>
  withJournal(async (root, path) => {
    truncateSync(path, longestEntry + 1)
    await expect(readEntry(root, 2)).rejects.toThrow(`got a file of more than ${longestEntry} bytes`)
  }))

test('an entry too large to be read back is refused before it is written', () => {
  expect(() => packEntry('x'.repeat(longestEntry + 1), 'e')).toThrow(`expected at most ${longestEntry} bytes`)
})
