import { refuseMirror } from '../../lake/store/marker.ts'
import { type HeadDeps, recordHeadFile } from './stored.ts'
import { hash } from 'node:crypto'
import { usage } from '../../base/errors.ts'
import { storedState } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { checkedValue } from '../../lake/ledger/index-rows.ts'
import { shape, text, wholeNumber } from '../../base/value-checks.ts'
import { logHashes } from '../../lake/ledger/log.ts'
import {
  type Checkpoint,
  checkpointOf,
  checkpointText,
  type NoteKey,
  readKey,
  readSigned,
  type SignedNote,
  signedNote,
  signedText,
} from '../../base/merkle/note.ts'
import { treeRoot } from '../../base/merkle/tree.ts'
import { makeFolder, namesIn, realDisk } from '../../lake/store/disk.ts'
import { isThere, readBytes, textOf } from '../../lake/store/files.ts'
import { headFile, inLake, places } from '../../lake/store/layout.ts'

const logShape = shape({ number: wholeNumber, origin: text, size: wholeNumber, root: text })

/** Log that was begun anew, and the head at which the log before it was left. */
interface LogStart {
  /** Number of the log, from 2. */
  readonly number: number
  /** Origin, size and root of the log before it. */
  readonly origin: string
  readonly size: number
  readonly root: string
}

/** Reads the start of the log; undefined for the first log of a lake. */
export function storedLog(ledger: Ledger): LogStart | undefined {
  const value = storedState(ledger, 'log')
  return value === undefined ? undefined : checkedValue(logShape, value, 'log')
}

/** Returns the name of a lake's log; a head names it, and so do its keys unless they have another name. */
export function originOf(lake: string, number = 1): string {
  return `pitlake/${lake}${number === 1 ? '' : `/${number}`}`
}

/** Computes the head of the log of the lake's current state. */
export function headOf(ledger: Ledger): Checkpoint {
  const { lake } = ledger.head()
  const leaves = logHashes(ledger)
  if (lake !== null)
    return { origin: originOf(lake, storedLog(ledger)?.number), size: leaves.length, root: treeRoot(leaves) }
  throw usage(`lake ${ledger.root}`, { expected: 'a lake with at least one version', next: 'run pitlake fetch' })
}

/** Formats the head as a note, signed if there is a secret key. */
export function headNote(head: Checkpoint, key: NoteKey | undefined): SignedNote {
  const text = checkpointText(head)
  return key?.secret ? signedNote(key, text) : { text, signatures: [] }
}

/** A stored head of the log. */
export interface KeptHead {
  /** The signed note that contains the head. */
  readonly note: SignedNote
  /** Origin, size and root of the log, as the note states them. */
  readonly head: Checkpoint
}

/** A head in the lake. */
export interface StoredHead extends KeptHead {
  /** Reply of a time-stamp authority (RFC 3161); null if the head has no time stamp. */
  readonly reply: Buffer | null
}

/** Reads a head from the text of its file; undefined if the text is not a head. */
export function keptHead(file: string): KeptHead | undefined {
  const note = readSigned(file)
  const head = note && checkpointOf(note.text)
  return note && head && { note, head }
}

/** Returns the file of the time stamp of a head with so many entries. */
const timeStampFile = (size: number): string => headFile(size).replace(/txt$/, 'tsr')

/** Reads the stored heads of the lake, ascending, each with its time stamp (RFC 3161), if it has one. */
export async function storedHeads(root: string): Promise<StoredHead[]> {
  const names = (await namesIn(inLake(root, places.heads))).filter((name) => /^\d+\.txt$/.test(name)).toSorted()
  const files = names.map(async (name) => {
    const storedHead = keptHead((await textOf(inLake(root, `${places.heads}/${name}`))) ?? '')
    const stamp = inLake(root, timeStampFile(storedHead?.head.size ?? 0))
    return storedHead === undefined ? [] : [{ ...storedHead, reply: isThere(stamp) ? await readBytes(stamp) : null }]
  })
  return (await Promise.all(files)).flat()
}

/** Keeps a head in the lake, with the signatures that were attached to it before; gives its place. */
export async function storeHead(
  ledger: Ledger,
  { text: noteText, signatures }: SignedNote,
  deps: HeadDeps,
): Promise<string> {
  const { root } = ledger
  await refuseMirror(root)
  const path = headFile(checkpointOf(noteText)?.size ?? 0)
  const before = readSigned((await textOf(inLake(root, path))) ?? '')
  const all = before?.text === noteText ? [...before.signatures, ...signatures] : signatures
  const each = [...new Map(all.map((signature) => [`${signature.name} ${signature.bytes}`, signature])).values()]
  await makeFolder(realDisk, inLake(root, places.heads))
  const temporary = inLake(root, `${places.heads}/.tmp-${path.split('/').at(-1)}`)
  await realDisk.write(temporary, signedText({ text: noteText, signatures: each }))
  await realDisk.move(temporary, inLake(root, path))
  await recordHeadFile(ledger, path, deps)
  return path
}

/** Outcome of attaching a file to a head. */
export interface AttachedFile {
  /** Path of the stored file, relative to the lake. */
  readonly path: string
  /** Names of the keys that signed; empty for a time stamp. */
  readonly signatures: readonly string[]
  /** Command that proves a time stamp; null for signatures. */
  readonly check: string | null
}

/**
 * Attaches third-party evidence to a stored head: lines of signatures, or a time stamp (RFC 3161) of its text or of its
 * file as it was printed, stored next to it; `check` is the command that proves the time stamp.
 */
export async function attach(ledger: Ledger, file: string, deps: HeadDeps): Promise<AttachedFile> {
  const { root } = ledger
  await refuseMirror(root)
  const bytes = await readBytes(file)
  const note = readSigned(bytes.toString('utf8'))
  for (const { note: ownNote } of await storedHeads(root)) {
    if (ownNote.text === note?.text)
      return {
        path: await storeHead(ledger, note, deps),
        signatures: note.signatures.map(({ name }) => name),
        check: null,
      }
    const forms = [ownNote.text, signedText({ ...ownNote, signatures: ownNote.signatures.slice(0, 1) })]
    const digest = forms
      .map((form) => hash('sha256', form))
      .find((digest) => bytes.includes(Buffer.from(digest, 'hex')))
    if (digest === undefined) continue
    const path = timeStampFile(checkpointOf(ownNote.text)?.size ?? 0)
    await realDisk.write(inLake(root, path), bytes)
    await recordHeadFile(ledger, path, deps)
    const check = `openssl ts -verify -digest ${digest} -in ${inLake(root, path)} -CAfile CA.pem`
    return { path, signatures: [], check }
  }
  throw usage('--attach', {
    expected: 'signatures, or a time stamp (RFC 3161), of a head that the lake keeps',
    got: file,
    next: 'sign a head that `pitlake head` printed for this lake',
  })
}

/** Advice for a lost key file: only a copy of the same key goes on with the line of trust. */
export const lostKeyAdvice =
  'put the file back from a backup; a new key (pitlake keygen) begins a new line of trust, and everyone who ' +
  'checks heads of this lake needs its public half'

/** Reads a key from its text, or from the file of that name. */
export async function keyFrom(keyText: string, file: string): Promise<NoteKey> {
  const key = readKey(keyText) ?? readKey((await textOf(file)) ?? '')
  if (key !== undefined) return key
  throw usage('--key', {
    expected: 'a key of pitlake keygen, or its file',
    got: isThere(file) ? `${file}, which holds none` : `no file ${file}`,
    next: lostKeyAdvice,
  })
}
