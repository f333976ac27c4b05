import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRedactor, redact, redactBytes, shortestKey, withoutHalfKey } from '../../src/base/secrets.ts'
import { base64, each, jsonEscape, leaks, percentEscape } from '../helpers/spellings.ts'

type RedactionKind = Parameters<typeof createRedactor>[1]

const key = 'sk-Zq7/+"ta%l=='
const other = 'registry.???>>>~~~_Key_0987654321'
const keys = [key, other]

const ways = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 7 })
const spelling = fc.oneof(
  ways.map((w) => (secret: string) => each(secret, w, jsonEscape)),
  ways.map((w) => (secret: string) => each(secret, w, percentEscape)),
  fc.tuple(ways, ways).map(
    ([w, v]) =>
      (secret: string) =>
        each(each(secret, w, percentEscape), v, jsonEscape),
  ),
  fc.tuple(fc.integer({ min: 0, max: 2 }), fc.boolean(), ways).map(
    ([before, url, w]) =>
      (secret: string) =>
        each(base64(before, secret, url), w, jsonEscape),
  ),
  fc.constant((secret: string) => secret),
)
const filler = fc.string({ unit: fc.constantFrom('a', '1', ' ', '\\n', '\\"', '\\\\', '%', '%41', 'é', 'sk-Zq', '{}') })

/** The text through a redactor in pieces of these sizes. */
function inPieces(text: string, sizes: readonly number[], kind: RedactionKind, secrets: readonly string[] = keys) {
  const bytes = Buffer.from(text)
  const redactor = createRedactor(secrets, kind)
  const parts: Buffer[] = []
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes[n % sizes.length] ?? 1
    // A copy: what a stream hands over is not kept whole beside it.
    parts.push(Buffer.from(redactor.push(Buffer.from(bytes.subarray(at, at + size)))))
    at += size
  }
  return Buffer.concat([...parts, redactor.end()]).toString()
}

describe('every form of a key', () => {
  test('is replaced wherever it is cut between chunks, and nothing else is touched', () => {
    const part = fc.tuple(filler, spelling, fc.constantFrom(key, other), filler)
    const sizes = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), sizes, fc.nat(600), (parts, cuts, pad) => {
        const text = parts.map(([a, spell, secret, b]) => `["${a}${spell(secret)}${b}"]`).join(' '.repeat(pad))
        const clean = inPieces(text, cuts, 'data')
        expect(leaks(clean, key) || leaks(clean, other)).toBe(false)
        expect(clean).toBe(redactBytes(Buffer.from(text), keys, 'data').toString())
        const counted = clean.split('[key]').length - 1
        expect(counted).toBe(parts.length)
      }),
      { numRuns: 400 },
    )
  })

  test('a text without a key stays unchanged', () => {
    fc.assert(
      fc.property(filler, fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 }), (text, sizes) => {
        expect(inPieces(text, sizes, 'data')).toBe(text)
      }),
    )
    const body = JSON.stringify(
      Array.from({ length: 30_000 }, (_, i) => ({ t: i * 600, v: Math.sin(i), 'a\\"b': '/%41' })),
    )
    expect(inPieces(body, [65_536], 'data')).toBe(body)
  })

  test('an escape is never parted: what only looks like the rest of one is no key', () => {
    const text = `"${'-'.repeat(30)}\\\\u0073${key.slice(1).replaceAll('"', '\\"')}${' '.repeat(900)}"`
    expect(leaks(text, key)).toBe(false)
    for (let size = 300; size < text.length; size++) expect(inPieces(text, [size, 10_000], 'data', [key])).toBe(text)
  })

  test('a body of nothing but escapes is read in time that grows with its length', () => {
    const body = `"${'\\u0073\\u006b%2d\\\\'.repeat(60_000)}${each(key, [1], jsonEscape)}"`
    expect(leaks(inPieces(body, [65_536], 'data'), key)).toBe(false)
  })
})

describe('a key of digits', () => {
  const digits = '1234567890'
  const redacted = (text: string, kind: RedactionKind): string[] =>
    [[1], [7, 3], [10_000]].map((sizes) => inPieces(text, sizes, kind, [digits]))

  test('is replaced inside strings and left alone in numbers', () => {
    const body = `[{"t":1234567890,"v":-11234567890.5},{"a \\" ${digits}":"x${digits}y","v":1234567890e1}]`
    const clean = `[{"t":1234567890,"v":-11234567890.5},{"a \\" [key]":"x[key]y","v":1234567890e1}]`
    for (const out of redacted(body, 'data')) expect(out).toBe(clean)
    for (const out of redacted(`  ${body}`, 'data')) expect(out).toBe(`  ${clean}`)
  })

  test('a key of digits is replaced everywhere in text that is no JSON, and in words', () => {
    for (const out of redacted(`<p>your key 1234567890 is bad</p>`, 'data')) expect(out).not.toContain(digits)
    for (const out of redacted(`{"key":1234567890}`, 'text')) expect(out).toBe('{"key":[key]}')
    expect(redact(`{"code":1234567890}`, [digits])).toBe('{"code":[key]}')
  })
})

test('the shortest key that there may be is replaced in data, a shorter one in words alone', () => {
  const shortest = 'k'.repeat(shortestKey)
  const shorter = 'q'.repeat(shortestKey - 1)
  const text = `{"a":"${shortest}","b":"${shorter}"}`
  expect(redactBytes(Buffer.from(text), [shortest, shorter], 'data').toString()).toBe(`{"a":"[key]","b":"${shorter}"}`)
  expect(inPieces(text, [3], 'data', [shortest, shorter])).toBe(`{"a":"[key]","b":"${shorter}"}`)
  expect(redact(text, [shortest, shorter])).toBe('{"a":"[key]","b":"[key]"}')
})

test('a value in the place of a key is never shown, under whatever name', () => {
  for (const name of ['key', 'api_key', 'api-key', 'apikey', 'token', 'TOKEN'])
    for (const before of ['https://x.example/a?', 'https://x.example/a?b=1&', 'a;'])
      expect(redact(`GET ${before}${name}=s3cret&c=2 failed`)).toBe(`GET ${before}${name}=[key]&c=2 failed`)
  for (const head of ['X-Api-Key: ', 'authorization: Bearer ', '"authorization":"', "x-api-key' = '"])
    expect(redact(`${head}s3cret, c`)).toBe(`${head}[key], c`)
  expect(redact('?monkey=a&tokens=b&kept=c')).toBe('?monkey=a&tokens=b&kept=c')
})

test('a text that ends inside a key does not show the half, in whatever form', () => {
  for (const spell of [
    (half: string) => half,
    (half: string) => each(half, [1, 0, 2], jsonEscape),
    (half: string) => each(half, [0, 1], percentEscape),
  ])
    for (let size = 4; size < key.length; size++) {
      const words = withoutHalfKey(`refused: ${spell(key.slice(0, size))}`, keys)
      expect('refused: '.startsWith(words) || words === 'refused: ').toBe(true)
    }
  const half = base64(1, key, false).slice(2, 14)
  expect(withoutHalfKey(`got ${half}`, keys)).toBe('got ')
  expect(withoutHalfKey('an ordinary end', keys)).toBe('an ordinary end')
})
