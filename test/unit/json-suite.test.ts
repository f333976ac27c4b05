import { afterAll, beforeAll, expect, test } from 'vitest'
import { convert, Converting, series, t1 } from '../helpers/converting.ts'
import { cases, code, spaces } from './json-cases.ts'
import { sample } from '../helpers/tiers.ts'

// Each way of reading bodies must judge as RFC 8259 does. The judge of the tests is JavaScript's own strict parser with
// a strict reading of UTF-8.

/** A fragment in a place of a body; as it is where it is no text. */
function within(before: string, fragment: string | Buffer, after: string): Buffer {
  return Buffer.concat([Buffer.from(before), Buffer.from(fragment as string), Buffer.from(after)])
}

/** What the RFC says of a body. */
function isJson(body: Buffer): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))
    return true
  } catch {
    return false
  }
}

const point = `{"t":${t1},`
/** Places in which values are read in different ways. */
const ways: Readonly<Record<string, (fragment: string | Buffer) => Buffer>> = {
  'nested, keys known': (fragment) => within(`[${point}"o":{"x":`, fragment, '}}]'),
  'nested, value by value': (fragment) => within(`[${point}"k":1,"o":{"x":`, fragment, '}}]'),
  'nested in v': (fragment) => within(`[${point}"v":[`, fragment, ']}]'),
  'alone in v': (fragment) => within(`[${point}"v":`, fragment, '}]'),
}

/** Whether `v` of the one point is a value that points may have. */
function hasValue(body: Buffer): boolean {
  const [{ v } = { v: null }] = JSON.parse(body.toString()) as { readonly v: unknown }[]
  return typeof v === 'number' || typeof v === 'object'
}

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

/** Converts bodies of one batch, each between two good ones, in all ways of batching; gives the verdict of each. */
async function verdicts(contents: readonly Buffer[]): Promise<(string | null)[]> {
  const good = Buffer.from(`[${point}"v":1.5}]`)
  const all = contents.flatMap((content) => [good, content]).concat([good])
  const bodies = await Promise.all(
    all.map(async (content, n) => await made.body(content, { series: series(`A${String(n).padStart(4, '0')}`) })),
  )
  const result = await convert(made.engine, made.job(bodies))
  const judged = result.bodies.map(({ state, reason }) => (state === 'poison' ? (reason ?? '') : null))
  expect(judged.filter((_, n) => n % 2 === 0).every((reason) => reason === null)).toBe(true)
  return judged.filter((_, n) => n % 2 === 1)
}

test('there are as many cases as a suite of this kind has', () => {
  expect(cases.length).toBeGreaterThanOrEqual(318)
  expect(new Set(cases.map(([name]) => name)).size).toBe(cases.length)
})

test.each(Object.entries(ways))('%s: what is no JSON is refused, what is JSON is read', async (way, bodyOf) => {
  const portion = 60
  const chosen = sample(
    Array.from({ length: Math.ceil(cases.length / portion) }, (_, n) => n),
    3,
  )
  const wrong: string[] = []
  for (const n of chosen) {
    // What is nested there is judged at another depth, and by the other ways.
    const some = cases
      .slice(n * portion, (n + 1) * portion)
      .filter(([, fragment]) => way !== 'alone in v' || !/^\s*[[{]/.test(String(fragment)))
    const contents = some.map(([, fragment]) => bodyOf(fragment))
    for (const [i, reason] of (await verdicts(contents)).entries()) {
      const [name = '', , refused] = some[i] ?? []
      const content = contents[i] ?? Buffer.alloc(0)
      const expected = refused === undefined && isJson(content) && (way !== 'alone in v' || hasValue(content))
      if (expected !== (reason === null)) wrong.push(`${name}: ${reason ?? 'read'}`)
    }
  }
  expect(wrong).toEqual([])
})

/** Bodies that are arrays of points of plain numbers, with a sign put between their tokens. */
const aroundPoints = ['@[]', '[@]', '[]@', '@[P]', '[@P]', '[P@]', '[P]@', '[P,@P]', '[P@,P]'] as const
const first = `${point}"v":1}`

test('white space that is none is refused around plain points and in empty answers, too', async () => {
  const all = spaces.flatMap((sign) => aroundPoints.map((place) => [sign, place] as const))
  const contents = all.map(([sign, place]) => {
    const second = first.replace(String(t1), String(t1 + 86_400))
    const text = place.replace('P', first).replace('P', second)
    return Buffer.from(text.replace('@', String.fromCharCode(sign)))
  })
  const wrong: string[] = []
  for (const [i, reason] of (await verdicts(contents)).entries()) {
    const [sign = 0, place = ''] = all[i] ?? []
    if (isJson(contents[i] ?? Buffer.alloc(0)) !== (reason === null))
      wrong.push(`${code(sign)} in ${place}: ${reason ?? 'read'}`)
  }
  expect(wrong).toEqual([])
})
