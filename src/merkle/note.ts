import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto'

/*
 * Signed notes and checkpoints of C2SP (signed-note, tlog-checkpoint): a text, an empty line, and a line for each
 * signature: a dash, the name of the key, and in base64 four bytes that tell the key before the signature. Keys are Ed25519.
 */

/** The kinds of signatures that are read: of a log, and of a witness, who adds when it saw the note. */
const kindOf = { log: 1, witness: 4 } as const

/** One signature of a note. */
export interface Signature {
  readonly name: string
  /** The key's four bytes and the signature, base64. */
  readonly bytes: string
}

/** A note as it stands in a file: `text` ends with a line feed. */
export interface SignedNote {
  readonly text: string
  readonly signatures: readonly Signature[]
}

/** What a checkpoint says: so many leaves of the log of this name, and their root, hex. */
export interface Checkpoint {
  readonly origin: string
  readonly size: number
  readonly root: string
}

/** A key that signs, or (`secret` null) one that only tells who signed. */
export interface NoteKey {
  readonly name: string
  /** 32 bytes. */
  readonly open: Buffer
  readonly secret: KeyObject | null
}

const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')
const spki = Buffer.from('302a300506032b6570032100', 'hex')
const nameForm = /^[^\s+\p{Cc}]+$/u

/** The four bytes by which a signature tells its key, hex. */
function keyId(name: string, kind: number, open: Buffer): string {
  const told = Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([kind]), open])
  return hash('sha256', told).slice(0, 8)
}

/** Whether a text may name a key. */
export function isKeyName(name: string): boolean {
  return nameForm.test(name)
}

/** The text of a key that signs, from its 32 bytes of chance: one line, to be kept secret. */
export function secretText(name: string, seed: Buffer): string {
  const open = openOf(createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: 'der', type: 'pkcs8' }))
  return `PRIVATE+KEY+${name}+${keyId(name, kindOf.log, open)}+${Buffer.concat([Buffer.from([kindOf.log]), seed]).toString('base64')}\n`
}

/** The text of the key that others check with. */
export function publicText({ name, open }: NoteKey): string {
  const bytes = Buffer.concat([Buffer.from([kindOf.log]), open])
  return `${name}+${keyId(name, kindOf.log, open)}+${bytes.toString('base64')}`
}

/** A key of either text; undefined where it is none, or of another kind than Ed25519. */
export function keyOf(text: string): NoteKey | undefined {
  const secret = text.startsWith('PRIVATE+KEY+')
  const [, name = '', id, told = ''] =
    /^([^\s+]+)\+([0-9a-f]{8})\+([\w+/=]+)\n?$/u.exec(text.replace('PRIVATE+KEY+', '')) ?? []
  const bytes = Buffer.from(told, 'base64')
  if (bytes.length !== 33 || bytes.toString('base64') !== told || bytes[0] !== kindOf.log) return undefined
  const own = bytes.subarray(1)
  const key = secret ? createPrivateKey({ key: Buffer.concat([pkcs8, own]), format: 'der', type: 'pkcs8' }) : null
  const open = key === null ? own : openOf(key)
  return keyId(name, kindOf.log, open) === id && isKeyName(name) ? { name, open, secret: key } : undefined
}

function openOf(secret: KeyObject): Buffer {
  return createPublicKey(secret).export({ format: 'der', type: 'spki' }).subarray(spki.length)
}

/** The signature of a key over a text. */
export function signText({ name, open, secret }: NoteKey, text: string): Signature {
  if (secret === null) throw new RangeError('a public key signs nothing')
  const id = Buffer.from(keyId(name, kindOf.log, open), 'hex')
  return { name, bytes: Buffer.concat([id, sign(null, Buffer.from(text), secret)]).toString('base64') }
}

/** Whether a note bears a sound signature of a key, as a log or (with when it saw it) as a witness. */
export function isSigned({ text, signatures }: SignedNote, { name, open }: NoteKey): boolean {
  const key = createPublicKey({ key: Buffer.concat([spki, open]), format: 'der', type: 'spki' })
  return signatures.some((one) => {
    const bytes = Buffer.from(one.bytes, 'base64')
    const own = (kind: number): boolean => one.name === name && bytes.toString('hex', 0, 4) === keyId(name, kind, open)
    if (own(kindOf.log)) return verify(null, Buffer.from(text), key, bytes.subarray(4))
    if (!own(kindOf.witness) || bytes.length !== 76) return false
    const seen = `cosignature/v1\ntime ${bytes.readBigUInt64BE(4)}\n${text}`
    return verify(null, Buffer.from(seen), key, bytes.subarray(12))
  })
}

/** The note as a file holds it. */
export function noteText({ text, signatures }: SignedNote): string {
  return `${text}\n${signatures.map(({ name, bytes }) => `— ${name} ${bytes}\n`).join('')}`
}

/** Takes a file apart; undefined where it is no note. */
export function readSigned(file: string): SignedNote | undefined {
  const at = file.lastIndexOf('\n\n')
  if (at < 0 || !file.endsWith('\n')) return undefined
  const found = file
    .slice(at + 2, -1)
    .split('\n')
    .map((line) => /^— ([^\s+]+) ([\w+/]+={0,2})$/u.exec(line))
  const signatures = found.flatMap((one) => (one === null ? [] : [{ name: one[1] ?? '', bytes: one[2] ?? '' }]))
  return signatures.length === found.length ? { text: file.slice(0, at + 1), signatures } : undefined
}

/** The text of a checkpoint. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${Buffer.from(root, 'hex').toString('base64')}\n`
}

/** What a text says as a checkpoint; undefined where it is none. */
export function checkpointOf(text: string): Checkpoint | undefined {
  const [, origin = '', size = '', told = ''] = /^([^\n]+)\n(0|[1-9]\d{0,14})\n([\w+/]{43}=)\n/.exec(text) ?? []
  const root = Buffer.from(told, 'base64')
  return origin === '' || root.toString('base64') !== told
    ? undefined
    : { origin, size: Number(size), root: root.toString('hex') }
}
