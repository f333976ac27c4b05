import { hash } from 'node:crypto'
import { usage } from '../errors.ts'
import { heldState } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { maybe, shape, text, whole } from '../ledger/shape.ts'
import { heldLeaves } from '../ledger/state-tree.ts'
import { proven } from '../ledger/row.ts'
import {
  type Checkpoint,
  checkpointOf,
  checkpointText,
  isSigned,
  keyOf,
  type NoteKey,
  noteText,
  readSigned,
  type SignedNote,
  signText,
} from '../merkle/note.ts'
import { rootOf } from '../merkle/tree.ts'
import { type Disk, makeFolder, namesIn, realDisk } from '../store/disk.ts'
import { readBytes, textOf } from '../store/files.ts'
import { headFile, inLake, places } from '../store/layout.ts'

const logShape = shape({ number: whole, origin: text, size: whole, root: text, note: maybe(text) })

/** The state that says that a log was begun anew, and with which head the one before was left. */
export const logKey = 'log'

/** What was said of a log that was begun anew; undefined for the first one. */
export function heldLog(ledger: Ledger) {
  const value = heldState(ledger, logKey)
  return value === undefined ? undefined : proven(logShape, value, logKey)
}

/** The name of a lake's log; a head names it, and so do its keys unless they are named otherwise. */
export function originOf(lake: string, number = 1): string {
  return `pitlake/${lake}${number === 1 ? '' : `/${number}`}`
}

/** The head of the log as the lake stands. */
export function headOf(ledger: Ledger): Checkpoint {
  const { lake } = ledger.head()
  if (lake === null)
    throw usage(`lake ${ledger.root}`, { expected: 'a lake with at least one version', next: 'run pitlake fetch' })
  const leaves = heldLeaves(ledger)
  return { origin: originOf(lake, heldLog(ledger)?.number), size: leaves.length, root: rootOf(leaves) }
}

/** The head as a note, signed where there is a key. */
export function headNote(head: Checkpoint, key: NoteKey | undefined): SignedNote {
  const told = checkpointText(head)
  return { text: told, signatures: key === undefined ? [] : [signText(key, told)] }
}

/** A head that was kept, and what it says. */
export interface KeptHead {
  readonly note: SignedNote
  readonly head: Checkpoint
}

/** Takes a kept head apart; `name` is where it was found. */
export function readHead(file: string, name: string): KeptHead {
  const note = readSigned(file)
  const head = note && checkpointOf(note.text)
  if (note && head) return { note, head }
  throw usage(name, { expected: 'a head as pitlake head prints it', got: 'another text' })
}

/** The heads that the lake keeps, ascending; what is none of its own is left out. */
export async function storedHeads(root: string): Promise<KeptHead[]> {
  const found: KeptHead[] = []
  for (const name of (await namesIn(inLake(root, places.heads))).toSorted()) {
    const note = readSigned((await textOf(inLake(root, `${places.heads}/${name}`))) ?? '')
    const head = note && checkpointOf(note.text)
    if (note && head && headFile(head.size).endsWith(`/${name}`)) found.push({ note, head })
  }
  return found
}

/** Keeps a head in the lake, with the signatures that were attached to it before. */
export async function storeHead(
  root: string,
  { text: told, signatures }: SignedNote,
  disk: Disk = realDisk,
): Promise<string> {
  const head = checkpointOf(told)
  const path = headFile(head?.size ?? 0)
  const before = readSigned((await textOf(inLake(root, path))) ?? '')
  const all = before?.text === told ? [...before.signatures, ...signatures] : signatures
  const each = new Map(all.map((one) => [`${one.name} ${one.bytes}`, one]))
  await makeFolder(disk, inLake(root, places.heads))
  const temporary = inLake(root, `${places.heads}/.tmp-${head?.size}`)
  await disk.write(temporary, noteText({ text: told, signatures: [...each.values()] }))
  await disk.move(temporary, inLake(root, path))
  return path
}

/** What was attached to a head: signatures of witnesses, or a time stamp (RFC 3161) beside it, and how that is checked. */
export interface Attached {
  readonly path: string
  readonly signatures: readonly string[]
  readonly check: string | null
}

/** Attaches what others say of a head that the lake keeps, or of its newest one: lines of signatures, or a time stamp. */
export async function attach(
  root: string,
  file: string,
  current: SignedNote,
  disk: Disk = realDisk,
): Promise<Attached> {
  const bytes = await readBytes(file)
  const note = readSigned(bytes.toString('utf8'))
  const kept = [...(await storedHeads(root)).map((one) => one.note), current].toReversed()
  if (note) {
    const own = kept.find((one) => one.text === note.text)
    if (own === undefined)
      throw usage(file, { expected: 'a signed head of this lake', got: 'a note of something else' })
    const path = await storeHead(root, { text: own.text, signatures: [...own.signatures, ...note.signatures] }, disk)
    return { path, signatures: note.signatures.map(({ name }) => name), check: null }
  }
  // What was stamped is the text without signatures: who signs later changes nothing of it.
  const own = kept.find((one) => bytes.includes(Buffer.from(hash('sha256', one.text), 'hex')))
  if (own === undefined)
    throw usage(file, { expected: 'signature lines, or a time stamp (RFC 3161) of the text of a head', got: 'neither' })
  const path = (await storeHead(root, own, disk)).replace(/txt$/, 'tsr')
  await disk.write(inLake(root, path), bytes)
  const check = `openssl ts -verify -digest ${hash('sha256', own.text)} -in ${inLake(root, path)} -CAfile CA.pem`
  return { path, signatures: [], check }
}

/** A key from its text, or from the file of that name. */
export async function keyFrom(given: string, place: (name: string) => string): Promise<NoteKey> {
  const key = keyOf(given.trim()) ?? keyOf(((await textOf(place(given))) ?? '').trim())
  if (key !== undefined) return key
  throw usage('--key', { expected: 'a key of pitlake key new, or its file', got: 'none', next: 'run pitlake key new' })
}

/** Whether a kept head bears the signature of a key; undefined where none was named. */
export function signedBy({ note }: KeptHead, key: NoteKey | undefined): boolean | undefined {
  return key === undefined ? undefined : isSigned(note, key)
}
