import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto'

/*
 * Signed notes and checkpoints of C2SP (signed-note, tlog-checkpoint): a text, an empty line, and a line for each
 * signature: a dash, the name of the key, and in base64 the four bytes of the key's id before the signature. Keys are
 * Ed25519.
 */

/**
 * A note as in its file: `text` ends with a line feed; `bytes` are four bytes of key id and the signature, in base64.
 */
export interface SignedNote {
  readonly text: string
  readonly signatures: readonly { readonly name: string; readonly bytes: string }[]
}

/** A checkpoint of the log named `origin`: its number of leaves and their root, in hex. */
export interface Checkpoint {
  readonly origin: string
  readonly size: number
  readonly root: string
}

/** A key of 32 bytes that signs; without a secret (`secret` null) it only verifies signatures. */
export interface NoteKey {
  readonly name: string
  readonly open: Buffer
  readonly secret: KeyObject | null
}

/** The kinds of signatures: of a log, and of a witness, who adds the time at which it saw the note. */
const log = 1
const witness = 4
const der = { secret: '302e020100300506032b657004220420', open: '302a300506032b6570032100' }
const derOf = (kind: keyof typeof der, bytes: Buffer): Buffer => Buffer.concat([Buffer.from(der[kind], 'hex'), bytes])
const secretKey = (seed: Buffer): KeyObject =>
  createPrivateKey({ key: derOf('secret', seed), format: 'der', type: 'pkcs8' })
const openOf = (key: KeyObject): Buffer => createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(12)
const withKind = (bytes: Buffer): string => Buffer.concat([Buffer.from([log]), bytes]).toString('base64')

/** Returns the four bytes by which a signature identifies its key, in hex. */
function keyId(name: string, kind: number, open: Buffer): string {
  return hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([kind]), open])).slice(0, 8)
}

/** Formats a signing key from its 32 random bytes: one line, to be stored in secret. */
export function secretText(name: string, seed: Buffer): string {
  return `PRIVATE+KEY+${name}+${keyId(name, log, openOf(secretKey(seed)))}+${withKind(seed)}\n`
}

/** Formats the key with which others verify signatures. */
export function publicText({ name, open }: NoteKey): string {
  return `${name}+${keyId(name, log, open)}+${withKind(open)}`
}

/** Parses a key from either text; undefined if it is not one, or of a kind other than Ed25519. */
export function readKey(text: string): NoteKey | undefined {
  const form = /^(PRIVATE\+KEY\+)?([!-*,-~]+)\+([0-9a-f]{8})\+([\w+/=]+)$/
  const [, isSecret, name = '', id, encoded = ''] = form.exec(text.trim()) ?? []
  const bytes = Buffer.from(encoded, 'base64')
  const keyBytes = bytes.subarray(1)
  if (keyBytes.length !== 32 || withKind(keyBytes) !== encoded) return undefined
  const secret = isSecret === undefined ? null : secretKey(keyBytes)
  const open = secret === null ? keyBytes : openOf(secret)
  return keyId(name, log, open) === id ? { name, open, secret } : undefined
}

/** Signs a text with a key. */
export function signedNote({ name, open, secret }: NoteKey, text: string): SignedNote {
  if (secret === null) throw new RangeError('a public key signs nothing')
  const bytes = Buffer.concat([Buffer.from(keyId(name, log, open), 'hex'), sign(null, Buffer.from(text), secret)])
  return { text, signatures: [{ name, bytes: bytes.toString('base64') }] }
}

/** Whether a note has a valid signature of a key, as a log or (with the time at which it saw the note) as a witness. */
export function isSigned({ text, signatures }: SignedNote, { name, open }: NoteKey): boolean {
  const key = createPublicKey({ key: derOf('open', open), format: 'der', type: 'spki' })
  return signatures.some((signature) => {
    const bytes = Buffer.from(signature.bytes, 'base64')
    const hasKeyId = (kind: number): boolean =>
      signature.name === name && bytes.toString('hex', 0, 4) === keyId(name, kind, open)
    if (hasKeyId(log)) return verify(null, Buffer.from(text), key, bytes.subarray(4))
    if (!hasKeyId(witness) || bytes.length !== 76) return false
    const seen = `cosignature/v1\ntime ${bytes.readBigUInt64BE(4)}\n${text}`
    return verify(null, Buffer.from(seen), key, bytes.subarray(12))
  })
}

/** Formats the note as the text of its file. */
export function signedText({ text, signatures }: SignedNote): string {
  return `${text}\n${signatures.map(({ name, bytes }) => `— ${name} ${bytes}\n`).join('')}`
}

/** Parses the text of a note's file; undefined if it is not a note. */
export function readSigned(file: string): SignedNote | undefined {
  const at = file.lastIndexOf('\n\n')
  const found = [...file.slice(at + 2).matchAll(/^— ([!-*,-~]+) ([\w+/]+={0,2})$/gm)]
  const signatures = found.map(([, name = '', bytes = '']) => ({ name, bytes }))
  const note = { text: file.slice(0, at + 1), signatures }
  return at < 0 || signedText(note) !== file ? undefined : note
}

/** Formats a checkpoint. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${Buffer.from(root, 'hex').toString('base64')}\n`
}

/** Parses a text as a checkpoint; undefined if it is not one. */
export function checkpointOf(text: string): Checkpoint | undefined {
  const [, origin = '', size = '', encodedRoot = ''] = /^([^\n]+)\n(0|[1-9]\d{0,8})\n([\w+/]{43}=)\n/.exec(text) ?? []
  const root = Buffer.from(encodedRoot, 'base64').toString('hex')
  return origin === '' ? undefined : { origin, size: Number(size), root }
}
