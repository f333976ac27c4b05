import { randomBytes } from 'node:crypto'
import { relative, resolve } from 'node:path'
import { usage } from '../../base/errors.ts'
import { attach, headNote, headOf, originOf, storeHead } from '../../trust/heads/head.ts'
import { recordedHeadFiles } from '../../trust/heads/stored.ts'
import { type Preregistration, preregister } from '../../trust/heads/preregister.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { type NoteKey, publicText, readKey, secretText, signedText } from '../../base/merkle/note.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { isThere, realPath, writePrivate } from '../../lake/store/files.ts'
import { outFile } from '../../lake/store/output.ts'
import { several } from '../../base/figures.ts'
import { readGiven } from '../cli/context.ts'
import { keyGiven, keyOption, keyVariable } from './head-check.ts'
import { tellHead } from './hooks.ts'
import { answering, type Call } from '../cli/spec.ts'
import { lakeWorld, openedLake } from '../cli/world.ts'

export const keygenCommand = answering({
  options: {
    '--out FILE': `file to write the key to, outside of the lake (default: the file that ${keyVariable} names)`,
    '--name NAME': 'name of the key (default: the log of the lake)',
  },
  details: `Anyone who has the file can sign heads of the lake. Only its owner can read it, and keygen never overwrites a file. keygen prints
the public key. Give it to everyone who checks your heads or certificates: their checkers take it as --key.`,
  answer: async ({ options, settings: { data }, cwd, env, stderr }) => {
    const { out = env[keyVariable] ?? '' } = options
    if (out === '') throw usage('--out', { expected: 'the file of the key', got: 'nothing' })
    const path = resolve(cwd, out)
    outFile(path, data).discard()
    if (!relative(realPath(data), path).startsWith('..'))
      throw usage('--out', { expected: 'a file outside the lake', got: path })
    if (isThere(path)) throw usage('--out', { expected: 'a new file', got: path, next: 'a key is never written over' })
    using ledger = isBegun(data) ? await Ledger.openToRead(data) : undefined
    const name = options.name ?? originOf(ledger?.head().lake ?? 'new')
    const text = secretText(name, randomBytes(32))
    const key = readKey(text)
    if (key === undefined) throw usage('--name', { expected: 'a name without spaces and +', got: name })
    await writePrivate(path, text)
    if (ledger !== undefined && recordedHeadFiles(ledger).size > 0)
      stderr('note: heads of this lake have the signature of an earlier key: to check them you need both public keys\n')
    const document = { name, file: path, public: publicText(key) }
    return { document, words: () => `${document.public}\n` }
  },
})

export const headCommand = answering({
  options: {
    ...keyOption,
    '--attach FILE': 'store a file about a stored head: a note with more signatures, or a time stamp (RFC 3161)',
  },
  details: `A head is a text of about 200 bytes over every version that the lake ever had (C2SP signed-note and tlog-checkpoint, Ed25519).
Put it where you cannot change it later, such as a tag, a mail or a witness. pitlake verify --head compares the lake with it.
Without a key, head prints it unsigned and does not store it under heads/. docs/explanation/proof.md describes what a head proves.`,
  answer: async (call) => {
    await openedLake(call)
    const { options, settings, cwd } = call
    if (options.attach === undefined) return await headMade(call, await keyGiven(call, options.key))
    using ledger = await Ledger.openToRead(settings.data)
    const document = await attach(ledger, resolve(cwd, options.attach), lakeWorld(call, 'head'))
    const { path, signatures, check } = document
    const standing = check === null ? `bears ${signatures.join(', ')}` : `is kept:\n${check}`
    return { document, words: () => `${path} ${standing}\n` }
  },
})

/** Computes the head of a lake, and stores it if there is a key to sign it. */
export async function headMade(call: Call, key: NoteKey | undefined) {
  const { data } = call.settings
  using ledger = await Ledger.openToRead(data)
  const head = headOf(ledger)
  const note = headNote(head, key)
  const file = note.signatures.length === 0 ? null : await storeHead(ledger, note, lakeWorld(call, 'head'))
  const document = { ...head, version: ledger.head().version, note: signedText(note), file }
  if (file !== null) await tellHead(call, document)
  return { document, words: () => document.note }
}

export const preregisterCommand = answering({
  viewsAfter: true,
  args: { '<file...>': 'queries, as they will be stamped, one in each file; `-`: standard input' },
  details: `preregister makes one version that records the SHA-256 of the text of each query. Do this before you see any result.
A certificate shows how many queries the lake has recorded, and whether its own query is one of them. The lake does not
store the texts.

Example: pitlake preregister momentum.sql
Example: pitlake preregister tries/*.sql`,
  answer: async (call) => {
    await openedLake(call)
    const texts = call.args.map((file) => readGiven(call, file, 'a file with a query'))
    const document = await preregisterTexts(call, texts)
    const { queries, count } = document
    const lines = queries.map(({ sha256, version }) => `recorded in version ${version}: ${sha256}\n`)
    const total = `the lake has ${several(count, 'preregistered query', 'preregistered queries')}\n`
    return { document, words: () => [...lines, total].join('') }
  },
})

/** Records queries in the lake of a call. */
export async function preregisterTexts(call: Call, texts: readonly string[]): Promise<Preregistration> {
  using ledger = await Ledger.open(call.settings.data)
  return await preregister(ledger, texts, lakeWorld(call, 'preregister'))
}
