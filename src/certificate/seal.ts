import { hash } from 'node:crypto'
import { type NoteKey, signedNote, signedText } from '../merkle/note.ts'

/**
 * A certificate as a file: one JSON object, a key a line, whose last key is its signature: a signed note over the SHA-256
 * of all bytes before that key. No byte of it is free.
 */
export function sealed(certificate: object, key: NoteKey): string {
  const lines = Object.entries(certificate).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  const body = `{\n${lines.join(',\n')}`
  const note = signedNote(key, `pitlake certificate\nsha256 ${hash('sha256', body)}\n`)
  return `${body},\n"signature": ${JSON.stringify(signedText(note))}\n}\n`
}
