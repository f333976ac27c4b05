import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Body, BodyResult } from '../../src/sources/points/conversion-types.ts'
import { day } from '../../src/base/time.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { convert, Converting, series, t1 } from '../helpers/converting.ts'

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

/**
 * Bodies of one batch, each between two good ones: whatever happens to those must not touch these. What is said of
 * each, in order.
 */
async function besides(contents: readonly (string | Buffer)[]): Promise<readonly BodyResult[]> {
  const bodies: Body[] = []
  for (const [n, content] of contents.entries())
    bodies.push(
      await made.body(`[{"t":${t1},"o":{"a":${n}}}]`, { series: series(`SOL${n}`) }),
      await made.body(content, { series: series(`BTC${n}`) }),
      await made.body(`[{"t":${t1},"v":${n}.5},{"t":${t1 + day},"v":-${n}.5}]`, { series: series(`ETH${n}`) }),
    )
  const task = made.job(bodies)
  const result = await convert(made.engine, task)
  const rows = Map.groupBy(await made.stored(task.out), (row) => row['asset'])
  const held = (asset: string): unknown[] => (rows.get(asset) ?? []).map(({ v, o }) => [v, o])
  return contents.map((_, n) => {
    const [before, verdict, behind] = result.bodies.slice(3 * n)
    if (verdict === undefined) throw new Error('no verdict')
    expect.soft(before).toMatchObject({ state: 'ok', added: 1 })
    expect.soft(behind).toMatchObject({ state: 'ok', added: 2, first: t1, last: t1 + day })
    expect.soft(held(`SOL${n}`)).toEqual([[null, `{"a":${n}}`]])
    expect.soft(held(`ETH${n}`).map(String)).toEqual([`${n}.5,`, `-${n}.5,`])
    expect.soft(held(`BTC${n}`)).toHaveLength(verdict.added)
    return verdict
  })
}

const noise = Buffer.alloc(50_000_000, 'noise\u0000')

type Case = readonly [name: string, content: string | Buffer, why: RegExp]

/** What the lexer finds has its own tests: of that a few are here. */
const cases: readonly Case[] = [
  ['another asset', `[{"t":${t1},"v":1,"asset":"ETH"}]`, /a point of another asset: "ETH"/],
  ['another metric', `[{"t":${t1},"v":1,"metric":"price"}]`, /a point of another metric: "price"/],
  ['an empty body', '', /empty body/],
  ['HTML', '<!doctype html><p>busy</p>', /HTML/],
  ['a byte order mark', `\ufeff[{"t":${t1},"v":1}]`, /no JSON/],
  ['no t', '[{"v":1}]', /t is missing/],
  ['no t in one', `[{"t":${t1},"v":1},{"v":2}]`, /t is missing/],
  ['t null', '[{"t":null,"v":1}]', /t is null/],
  ['t as text', '[{"t":"2024-03-01T00:00:00Z","v":1}]', /t is a text/],
  ['t as digits in text', `[{"t":"${t1}","v":1}]`, /t is a text/],
  ['t true', '[{"t":true,"v":1}]', /t is a boolean/],
  ['t as object', '[{"t":{"a":1},"v":1}]', /t is no number/],
  ['t with a fraction', `[{"t":${t1}.5,"v":1}]`, /t has a fraction/],
  ['t in milliseconds', `[{"t":${t1}000,"v":1}]`, /t is in milliseconds/],
  ['t beyond everything', '[{"t":123456789012345678901234567890,"v":1}]', /t is in milliseconds/],
  ['t off the grid', `[{"t":${t1 + 3600},"v":1}]`, /t is off the 24h grid/],
  ['v as text', `[{"t":${t1},"v":"12.5"}]`, /v is a text/],
  ['v as text in one', `[{"t":${t1},"v":1},{"t":${t1 + day},"v":"12.5"}]`, /v is a text/],
  ['v as text NaN', `[{"t":${t1},"v":"NaN"}]`, /v is a text/],
  ['v true', `[{"t":${t1},"v":true}]`, /v is a boolean/],
  ['v false in one', `[{"t":${t1},"v":2},{"t":${t1 + day},"v":false}]`, /v is a boolean/],
  ['v NaN', `[{"t":${t1},"v":NaN}]`, /NaN .* no JSON/],
  ['v 400 digits', `[{"t":${t1},"v":${'9'.repeat(400)}}]`, /beyond a double/],
  ['1e999 inside o', `[{"t":${t1},"o":{"a":-1e999}}]`, /beyond a double/],
  ['o as text', `[{"t":${t1},"o":"x"}]`, /o is neither/],
  ['o as number', `[{"t":${t1},"o":5}]`, /o is neither/],
  ['computed_at as text', `[{"t":${t1},"v":1,"computed_at":"${t1 + day}"}]`, /computed_at is no Unix time/],
  ['computed_at in milliseconds', `[{"t":${t1},"v":1,"computed_at":${t1 + day}000}]`, /computed_at is no Unix time/],
  ['neither v nor o', `[{"t":${t1},"v":1},{"t":${t1 + day}}]`, /neither v nor o/],
  ['only t', `[{"t":${t1}}]`, /without a value/],
  ['only t and computed_at', `[{"t":${t1},"computed_at":${t1 + day}}]`, /without a value/],
  ['an empty point', '[{}]', /t is missing/],
  ['a conflicting duplicate', `[{"t":${t1},"v":1},{"t":${t1},"v":2}]`, /two different points/],
  ['a conflicting duplicate of zeros', `[{"t":${t1},"v":0.0},{"t":${t1},"v":-0.0}]`, /two different points/],
  [
    'a conflicting duplicate far apart',
    `[{"t":${t1},"v":1},{"t":${t1 + day},"v":1},{"t":${t1},"v":3}]`,
    /two different/,
  ],
  ['a conflicting duplicate of objects', `[{"t":${t1},"o":{"a":1}},{"t":${t1},"o":{"a":2}}]`, /two different points/],
  ['a conflicting duplicate, one without extra', `[{"t":${t1},"v":1,"x":1},{"t":${t1},"v":1}]`, /two different points/],
  ['a conflicting duplicate, one null', `[{"t":${t1},"v":null},{"t":${t1},"o":{"a":1}}]`, /two different points/],
  ['a conflicting duplicate, told when', `[{"t":${t1},"v":1,"computed_at":${t1 + day}},{"t":${t1},"v":1}]`, /two diff/],
  ['a lone surrogate', `[{"t":${t1},"v":1,"x":"\\ud800"}]`, /surrogate/],
  ['a thousand brackets', '['.repeat(1000), /point that is an array/],
  ['50 MB of noise', noise, /no JSON/],
  [
    '50 MB inside a text',
    Buffer.concat([Buffer.from(`[{"t":${t1},"v":"`), Buffer.alloc(50_000_000, 'x'), Buffer.from('"}]')]),
    /more than 16 MB/,
  ],
]
/** Over these DuckDB gives up a statement, with all the bodies that it was to read. */
const unreadable: readonly Case[] = [
  ['a key twice', `[{"t":${t1},"v":1,"v":2}]`, /same key twice/],
  ['t twice', `[{"t":${t1},"t":${t1},"v":2}]`, /same key twice/],
  ['cut', `[{"t":${t1},"v":1},{"t":${t1 + day},"v"`, /breaks off/],
  ['a leading zero', `[{"t":${t1},"v":01}]`, /leading zero/],
]

test.each([
  ['that is read', cases],
  ['that is not', unreadable],
])('each poisoned body of one batch %s is left out with a reason', async (_name, cases) => {
  const verdicts = await besides(cases.map(([, content]) => content))
  for (const [n, [name, , why]] of cases.entries()) {
    const verdict = verdicts[n]
    expect.soft(verdict, name).toMatchObject({ state: 'poison', added: 0, points: 0, first: null, missing: [] })
    expect.soft(verdict?.reason, name).toMatch(why)
    expect.soft(verdict?.reason, name).not.toContain(made.folder)
    expect.soft(verdict?.reason?.length, name).toBeLessThan(350)
  }
})

const seven = '7'.repeat(50)
const word = `"${'x'.repeat(50)}"`
const long: readonly (readonly [said: string, key: string, value: string])[] = [
  ['t is a text', 't', word],
  ['t is no number', 't', `[${word}]`],
  ['t is in milliseconds or finer', 't', seven],
  ['v is a text', 'v', word],
  ['o is neither an object nor an array', 'o', word],
  ['computed_at is no Unix time in seconds', 'computed_at', word],
]
test('an error shows forty characters of the damaged text', async () => {
  const verdicts = await besides(
    long.map(([, key, value]) => {
      const point = { t: String(t1), ...(key !== 'o' && { v: '1' }), [key]: value }
      const pairs = Object.entries(point).map(([name, text]) => `"${name}":${text}`)
      return `[{${pairs.join(',')}}]`
    }),
  )
  for (const [n, [said, , value]] of long.entries()) {
    expect.soft(verdicts[n]?.reason).toContain(`${said}: ${value.slice(0, 40)}`)
    expect.soft(verdicts[n]?.reason).not.toContain(value.slice(0, 41))
  }
})

test('two poisoned bodies of one batch are left out both, whatever is wrong with each', async () => {
  const points = (more: object): string =>
    JSON.stringify([
      { t: t1, v: 1 },
      { t: t1 + day, v: 2, ...more },
    ])
  for (const wrong of [{ v: 'x' }, { t: t1 + day + 5 }, { t: 'soon' }, { computed_at: 'soon' }]) {
    const bodies = await Promise.all(
      [wrong, wrong, {}, wrong].map((more, n) => made.body(points(more), { series: series(`A${n}`) })),
    )
    const task = made.job(bodies)
    const result = await convert(made.engine, task)
    expect(result.bodies.map(({ state }) => state)).toEqual(['poison', 'poison', 'ok', 'poison'])
    expect((await made.stored(task.out)).map((row) => row['asset'])).toEqual(['A2', 'A2'])
  }
})

test('numbers alone, one of them missing', async () => {
  const alone = await made.body(`[{"t":${t1},"v":1},{"t":${t1 + day}},{"t":${t1 + 2 * day},"v":1}]`)
  const { file, bodies } = await convert(made.engine, made.job([alone]))
  expect(file).toBeNull()
  expect(bodies).toMatchObject([{ state: 'poison', reason: expect.stringMatching(/neither v nor o/) }])
})

test('an empty array is an answer', async () => {
  expect(await besides(['[]', ' [\n] '])).toMatchObject([
    { state: 'empty', reason: null, points: 0 },
    { state: 'empty' },
  ])
})

test('JSON nested 64 levels deep is accepted', async () => {
  const deep = `${'['.repeat(62)}1${']'.repeat(62)}`
  expect((await made.values(`[{"t":${t1},"o":${deep}}]`)).rows).toMatchObject([{ o: deep }])
})

describe('an error while bodies are read value by value', () => {
  /** Converts a body that is read by value, where DuckDB ends each such reading with these words. */
  const convertFailing = async (words: string): Promise<readonly BodyResult[]> => {
    const { run } = Engine.prototype
    const failing = vi.spyOn(Engine.prototype, 'run').mockImplementation(async function (this: Engine, sql, ...rest) {
      if (/^INSERT INTO (?:raw_values|typed_points)$/m.test(sql)) throw new Error(words)
      return await run.call(this, sql, ...rest)
    })
    try {
      const body = await made.body(`[{"t":${t1},"v":1,"note":"x"},{"t":${t1 + day},"o":{"a":1}}]`)
      return (await convert(made.engine, made.job([body]))).bodies
    } finally {
      failing.mockRestore()
    }
  }

  test.each([
    'Out of Memory Error: failed to allocate data of size 16.0 MiB',
    'IO Error: Could not write file "/spill": No space left on device',
    'IO Error: Cannot open file "/spool/body.json": Too many open files',
    'INTERRUPT Error: Interrupted!',
    'INTERNAL Error: Attempted to access index 3',
    'FATAL Error: Failed to read',
    'std::bad_alloc',
  ])('%s: ends the conversion, and blames no body', async (words) => {
    await expect(convertFailing(words)).rejects.toThrow(words)
  })

  test.each(['Invalid Input Error: Malformed JSON', 'Conversion Error: Could not convert'])(
    '%s: poisons the body',
    async (words) => {
      expect(await convertFailing(words)).toMatchObject([{ state: 'poison' }])
    },
  )
})
