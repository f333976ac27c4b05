import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { attach, headNote, keptHead, storedHeads, storeHead } from '../../src/trust/heads/head.ts'
import {
  isSigned,
  publicText,
  readKey,
  readSigned,
  secretText,
  signedNote,
  signedText,
} from '../../src/base/merkle/note.ts'
import { makeFolder } from '../helpers/folders.ts'

// The note that the Go package of the format documents.
const secret = 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz'
const open = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
const text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
const signature = 'x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM='
const note = `${text}\n— PeterNeumann ${signature}\n`

const keyIn = (told: string) => {
  const key = readKey(told)
  if (key === undefined) throw new Error(told)
  return key
}

test('notes are those of the format: keys, signatures and what stands in the file', () => {
  const key = keyIn(secret)
  expect(publicText(key)).toBe(open)
  expect(signedText(signedNote(key, text))).toBe(note)
  const read = readSigned(note)
  expect(read && isSigned(read, keyIn(open))).toBe(true)
  const other = readSigned(note.replace('answer', 'answe.'))
  expect(other && isSigned(other, keyIn(open))).toBe(false)
  for (const wrong of [`${note}x`, note.slice(0, -1), note.replace('— ', '- '), text, ''])
    expect(readSigned(wrong), wrong).toBeUndefined()
  // Another name, another id, another kind of key.
  for (const wrong of [open.replace('Peter', 'Petra'), open.replace('c74f', 'c75f'), open.replace('ARpc', 'AhpC'), 'x'])
    expect(readKey(wrong), wrong).toBeUndefined()
})

test('the Ed25519 of the checker in Python is that of RFC 8032', () => {
  const vectors = [
    [
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      '',
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    ],
    [
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      '72',
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ],
  ]
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const little = (hex: string): bigint =>
    BigInt(`0x${Buffer.from(Buffer.from(hex, 'hex').toReversed()).toString('hex')}`)
  const flipped = (hex: string): string => hex.replace(/^./, (sign) => (sign === '0' ? '1' : '0'))
  // The same signature with another s, which a sloppy checker takes.
  const loose = ([open = '', message = '', signed = '']: string[]): string[] => {
    const s = (little(signed.slice(64)) + order).toString(16).padStart(64, '0')
    return [open, message, signed.slice(0, 64) + Buffer.from(Buffer.from(s, 'hex').toReversed()).toString('hex')]
  }
  const [first = [], second = []] = vectors
  const bad = [
    ...vectors.map(loose),
    [first[0] ?? '', '72', first[2] ?? ''],
    [second[0] ?? '', '72', flipped(second[2] ?? '')],
  ]
  const program = `import sys, json, verify_certificate as v
print(json.dumps([v.is_signed(*map(bytes.fromhex, one)) for one in json.load(sys.stdin)]))`
  const cwd = new URL('../../docs/proof/', import.meta.url).pathname
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
  const input = JSON.stringify([...vectors, ...bad].map(([key, message, signed]) => [key, message, signed]))
  const { stdout } = spawnSync('python3', ['-c', program], { cwd, env, input, encoding: 'utf8' })
  expect(JSON.parse(stdout)).toEqual([true, true, false, false, false, false])
})

test('a witness and a time stamp of a head are stored next to it, anything else is refused', async () => {
  const root = makeFolder('note')
  try {
    mkdirSync(join(root, 'lake'))
    const lake = join(root, 'lake')
    const own = headNote({ origin: 'pitlake/x', size: 3, root: 'ab'.repeat(32) }, keyIn(secret))
    using ledger = await Ledger.open(lake)
    const deps = commitDeps()
    await storeHead(ledger, own, deps)
    const witness = keyIn(secretText('witness.example', Buffer.alloc(32, 3)))
    const cosigned = signedNote(witness, own.text)
    writeFileSync(join(root, 'back.txt'), signedText(cosigned))
    expect(await attach(ledger, join(root, 'back.txt'), deps)).toMatchObject({
      signatures: ['witness.example'],
      check: null,
    })
    const [kept] = await storedHeads(lake)
    expect(kept?.note.signatures.map(({ name }) => name)).toEqual(['PeterNeumann', 'witness.example'])
    expect(kept && isSigned(kept.note, witness) && isSigned(kept.note, keyIn(open))).toBe(true)
    expect(keptHead(readFileSync(join(lake, 'heads/0000000003.txt'), 'utf8'))?.head.size).toBe(3)
    const digest = createHash('sha256').update(signedText(own)).digest()
    writeFileSync(join(root, 'reply.tsr'), Buffer.concat([Buffer.from([0x30, 0x82]), digest, Buffer.from([1])]))
    const { check } = await attach(ledger, join(root, 'reply.tsr'), deps)
    expect(check).toBe(
      `openssl ts -verify -digest ${digest.toString('hex')} -in ${lake}/heads/0000000003.tsr -CAfile CA.pem`,
    )
    writeFileSync(join(root, 'foreign'), 'nothing of ours')
    await expect(attach(ledger, join(root, 'foreign'), deps)).rejects.toThrow('--attach')
  } finally {
    rmSync(root, { recursive: true })
  }
})
