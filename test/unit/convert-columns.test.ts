import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Body } from '../../src/sources/points/conversion-types.ts'
import { lexBody } from '../../src/sources/points/lexer.ts'
import { convert, Converting, lag600, series } from '../helpers/converting.ts'
import { seeded } from '../helpers/random.ts'
import { rounds } from '../helpers/tiers.ts'

// Points of numbers are read as columns. Reading value by value is the twin: it must give the same verdicts and bits.

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

const hour = 3600
const begin = 1_700_000_000 - (1_700_000_000 % hour)
const perBatch = 40
const batches = Math.ceil(rounds('PITLAKE_FUZZ', 400, 4000) / perBatch)

/** Spellings of numbers, and of what is none. */
const spellings = [
  '-0',
  '-0.0',
  '-0e5',
  '0',
  '0.0',
  '01',
  '-',
  '-01',
  '1.',
  '.5',
  '+1',
  '1e5',
  '1E+5',
  '1e',
  '1e+',
  '1e400',
  '-1e400',
  '1e-400',
  '5e-324',
  '2.4703282292062327e-324',
  '1.7976931348623157e308',
  '1.7976931348623159e308',
  '9007199254740991',
  '9007199254740992',
  '9007199254740993',
  '-9007199254740993',
  '9007199254740991.5',
  '4503599627370497.5',
  '18014398509481985',
  '123456789012345678901234567890',
  '0.1234567890123456789012345',
  '1'.repeat(301),
  `0.${'1'.repeat(301)}`,
  `0.${'1'.repeat(513)}`,
  'null',
  'nul',
  'nullx',
  'true',
  '"1"',
  '[]',
  '{}',
  '{"a":1}',
  'NaN',
  'Infinity',
  '1_0',
  '1 2',
  '١',
  '',
]
const keys = [
  '"t"',
  '"v"',
  '"computed_at"',
  '"computed_ax"',
  '"o"',
  '"T"',
  '"t "',
  '"\\u0074"',
  '"x"',
  't',
  '"v',
  'v"',
  '""',
  '"é"',
]
const signs = [
  ' ',
  '\n',
  '\t',
  '\r',
  '\f',
  '\u00a0',
  ',',
  ':',
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  '-',
  '0',
  'e',
  '.',
  '\u0000',
  'é',
]

class Bodies {
  readonly random: () => number
  constructor(seed: number) {
    this.random = seeded(seed)
  }
  below(n: number): number {
    return Math.floor(this.random() * n)
  }
  pick<T>(list: readonly T[]): T {
    const item = list[this.below(list.length)]
    if (item === undefined) throw new Error('nothing to pick')
    return item
  }
  value(): string {
    const kind = this.below(8)
    if (kind === 0) return String(this.below(1000))
    if (kind === 1) return 'null'
    if (kind === 2) return (this.random() * 1e6).toFixed(this.below(20))
    if (kind === 3) return `-${this.random() * 10 ** (this.below(30) - 15)}`
    if (kind === 4) return this.pick(['-0', '5e-324', '1e-9', '0.30000000000000004', '4503599627370496.5', '1E3'])
    return String(this.random() * 1e5)
  }
  /** A body of points of numbers, most often sound, else with one fault somewhere. */
  body(): string {
    const space = this.random() < 0.3 ? this.pick([' ', '\n  ', '\r\n', '\t']) : ''
    const told = this.pick(['never', 'always', 'sometimes'])
    let t = begin
    const points = Array.from({ length: this.pick([1, 2, 3, 30]) }, () => {
      t += hour * this.pick([1, 1, 1, 2])
      const pairs = [`"t"${space}:${space}${t}`, `"v":${space}${this.value()}`]
      const at = this.random() < 0.1 ? 'null' : String(t + hour + this.random() * 900)
      if (told === 'always' || (told === 'sometimes' && this.random() < 0.5)) pairs.push(`"computed_at":${at}`)
      if (this.random() < 0.2) pairs.reverse()
      return `{${space}${pairs.join(`${space},${space}`)}${space}}`
    })
    if (this.random() < 0.1) points.push(this.pick(points))
    if (this.random() < 0.1) points.reverse()
    const body = `${space}[${points.join(`${space},${space}`)}]${space}`
    return this.random() < 0.5 ? body : this.spoil(body)
  }
  spoil(body: string): string {
    const at = this.below(body.length)
    const kind = this.below(5)
    if (kind === 0) return body.slice(0, at) + this.pick(signs) + body.slice(at)
    if (kind === 1) return body.slice(0, at) + body.slice(at + 1)
    if (kind === 2) return body.slice(0, at)
    const parts = body.split(kind === 3 ? /("[a-z_]+")/ : /(-?\d[\d.e+-]*|null)/)
    const place = 2 * this.below((parts.length - 1) / 2) + 1
    parts[place] = this.pick(kind === 3 ? keys : spellings)
    return parts.join('')
  }
}

/** Converts bodies as they are, or value by value. */
async function converted(bodies: readonly Body[], byValue: boolean) {
  const read: Body[] = []
  for (const body of bodies) {
    const lexed = await lexBody(body.file)
    read.push(byValue ? { ...body, lexed: { ...lexed, columns: null } } : body)
  }
  const task = made.job(read, { interval: '1h', rules: [{ ...lag600, seconds: 60 }] })
  const result = await convert(made.engine, task)
  return { result, rows: result.file === null ? [] : await made.stored(task.out) }
}

/** Value of a spelling as JSON and a double have it; undefined if it is no JSON, or beyond a double. */
function finiteValue(spelling: string): number | undefined {
  try {
    const value: unknown = JSON.parse(spelling)
    return typeof value === 'number' && Number.isFinite(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Spellings that begin like a number and are short enough for one. */
const likeNumbers = spellings.filter((spelling) => /^[-+.\d]/.test(spelling) && spelling.length <= 512)

test.for(['t', 'v', 'computed_at'] as const)('a number in %s is the double of its JSON, or no column', async (key) => {
  for (const spelling of likeNumbers) {
    const point = Object.entries({ t: '1', v: '2', computed_at: '3', [key]: spelling })
    const text = `[{${point.map(([name, number]) => `"${name}":${number}`).join(',')}}]`
    const { file } = await made.body(text, { series: series('A', { interval: '1h' }) })
    const { problem, columns } = await lexBody(file)
    const value = finiteValue(spelling)
    // What is no JSON is never read as a column; some of it only the engine's own parser refuses later.
    if (value === undefined) expect([spelling, columns]).toEqual([spelling, null])
    else expect([spelling, problem]).toEqual([spelling, null])
    const column = { t: columns?.t, v: columns?.v, computed_at: columns?.computed }[key]
    if (column) expect([spelling, column[0]]).toEqual([spelling, value])
  }
})

test(`${batches * perBatch} random bodies of numbers give the same points and verdicts as columns and value by value`, {
  timeout: 3_600_000,
}, async () => {
  const maker = new Bodies(Number(process.env['PITLAKE_FUZZ_SEED'] ?? 20_261_129))
  const seen = { columns: 0, ok: 0, poison: 0 }
  for (let batch = 0; batch < batches; batch++) {
    const texts = Array.from({ length: perBatch }, () => maker.body())
    const bodies = await Promise.all(
      texts.map(async (text, i) => {
        const asset = `A${String(i).padStart(2, '0')}`
        return await made.body(text, { series: series(asset, { interval: '1h' }), horizon: 1e11 })
      }),
    )
    for (const body of bodies) if ((await lexBody(body.file)).columns !== null) seen.columns++
    const ours = await converted(bodies, false)
    const twin = await converted(bodies, true)
    for (const [i, text] of texts.entries()) {
      expect(ours.result.bodies[i], `${batch}.${i}: ${text.slice(0, 1000)}`).toEqual(twin.result.bodies[i])
      if (ours.result.bodies[i]?.state === 'ok') seen.ok++
      else seen.poison++
    }
    expect(ours.rows).toEqual(twin.rows)
    expect(ours.result.file).toEqual(twin.result.file)
  }
  expect(seen.columns).toBeGreaterThan(batches * perBatch * 0.4)
  expect(seen.ok).toBeGreaterThan(batches * perBatch * 0.4)
  expect(seen.poison).toBeGreaterThan(batches * perBatch * 0.1)
})

test.each(['interval_start', 'interval_end'] as const)(
  'months, weeks and fixed intervals on and off the grid of %s give the same points and verdicts both ways',
  async (timestamp) => {
    const day = 86_400
    const times = [0, day, 4 * day, 31 * day, 59 * day, 90 * day, 181 * day, -day, 1_709_251_200, 1_709_251_201, 1e11]
    for (const interval of ['10m', '24h', '1w', '1month', '3month'] as const) {
      const bodies = await Promise.all(
        times.map(async (t, i) => {
          const named = series(`A${String(i).padStart(2, '0')}`, { interval })
          return await made.body(`[{"t":${t},"v":1}]`, { series: named, horizon: 1e12 })
        }),
      )
      const both = []
      for (const columns of [true, false]) {
        const read: Body[] = []
        for (const body of bodies) {
          const lexed = await lexBody(body.file)
          expect(lexed.columns).not.toBeNull()
          read.push(columns ? body : { ...body, lexed: { ...lexed, columns: null } })
        }
        const task = made.job(read, { interval, timestamp, weekStart: 'sunday', rules: [lag600] })
        const { file, bodies: results } = await convert(made.engine, task)
        both.push({ file, results })
      }
      expect(both[0]?.results.some(({ state }) => state === 'ok')).toBe(true)
      expect(both[0]).toEqual(both[1])
    }
  },
)

test('neighbours that are read in different ways stand in the order of their series', async () => {
  const kinds = [
    { sent: '"v":1.5', stored: [1.5, null, null] },
    { sent: '"o":{"a":1}', stored: [null, '{"a":1}', null] },
    { sent: '"v":[1]', stored: [null, '[1]', null] },
    { sent: '"v":2,"x":3', stored: [2, null, '{"x":3}'] },
    { sent: '"v":null', stored: [null, null, null] },
  ]
  for (const count of [10, 140]) {
    const bodies = await Promise.all(
      Array.from({ length: count }, async (_, i) => {
        const points = [0, 1].map((n) => `{"t":${begin + n * hour},${kinds[i % kinds.length]?.sent}}`)
        const named = series(`A${String(i).padStart(3, '0')}`, { interval: '1h' })
        return await made.body(`[${points.join(',')}]`, { series: named })
      }),
    )
    const task = made.job(bodies, { interval: '1h' })
    const { bodies: results } = await convert(made.engine, task)
    expect(results.every(({ state, added }) => state === 'ok' && added === 2)).toBe(true)
    const rows = await made.stored(task.out)
    const order = rows.map(({ asset, t }) =>
      JSON.stringify([asset, t], (_, cell: unknown) => (typeof cell === 'bigint' ? String(cell) : cell)),
    )
    expect(order).toEqual(order.toSorted())
    const stored = Array.from({ length: count }, (_, i) => kinds[i % kinds.length]?.stored)
    expect(rows.map(({ v, o, extra }) => [v, o, extra])).toEqual(stored.flatMap((row) => [row, row]))
  }
})
