import { hash } from 'node:crypto'
import { type NoteKey, noteText, signText } from '../merkle/note.ts'

/*
 * A certificate is one JSON object whose last key is its signature: a signed note over the SHA-256 of all bytes before
 * that key. Nothing is read twice, and no byte of it is free.
 */

/** What stands between a certificate and its signature. */
const tail = ',\n"signature": '

/** The text that is signed for a certificate without its signature. */
function sealText(body: string): string {
  return `pitlake certificate\nsha256 ${hash('sha256', body)}\n`
}

/** A certificate as a file: a key a line, then the signature. */
export function sealed(certificate: object, key: NoteKey): string {
  const lines = Object.entries(certificate).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  const body = `{\n${lines.join(',\n')}`
  const text = sealText(body)
  return `${body}${tail}${JSON.stringify(noteText({ text, signatures: [signText(key, text)] }))}\n}\n`
}
