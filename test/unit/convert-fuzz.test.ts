import { afterAll, beforeAll, expect, test } from 'vitest'
import { convert, Converting, lag600, series } from '../helpers/converting.ts'
import { rounds } from '../helpers/tiers.ts'
import { seeded } from '../helpers/random.ts'

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

const seed = Number(process.env['PITLAKE_FUZZ_SEED'] ?? 20_240_301)
const perBatch = 12
const batches = Math.ceil(rounds('PITLAKE_FUZZ', 120, 400) / perBatch)
const hour = 3600

type Point = Readonly<Record<string, unknown>>
interface Expected {
  readonly state: 'ok' | 'empty' | 'poison'
  readonly rows: readonly { t: number; v: unknown; o: unknown; extra: unknown; computed: number | null }[]
}

class Maker {
  readonly random: () => number
  constructor(start: number) {
    this.random = seeded(start)
  }
  chance(p: number): boolean {
    return this.random() < p
  }
  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.random() * list.length)] as T
  }
  /** The bits of a double chosen at random, spelled in one of many ways. */
  number(): string {
    const view = new DataView(new ArrayBuffer(8))
    view.setUint32(0, Math.floor(this.random() * 2 ** 32))
    view.setUint32(4, Math.floor(this.random() * 2 ** 32))
    const wild = view.getFloat64(0)
    if (this.chance(0.3) && Number.isFinite(wild)) return this.chance(0.5) ? String(wild) : wild.toExponential(17)
    if (this.chance(0.1))
      return this.pick([
        '-0.0',
        '5e-324',
        '1.7976931348623157e308',
        '9007199254740993',
        '-0',
        '0',
        '1',
        '1e0',
        '1E+2',
        '2e-400',
      ])
    if (this.chance(0.1))
      return String(BigInt(Math.floor(this.random() * 2 ** 53)) * BigInt(Math.floor(1 + this.random() * 1e9)))
    return this.chance(0.5) ? String(Math.floor(this.random() * 1000)) : (this.random() * 1e6).toFixed(6)
  }
  nested(depth: number): string {
    if (depth === 0 || this.chance(0.5))
      return this.pick([this.number(), 'null', '"a"', 'true', '"12.5"', '"}{,\\"["', '"é"'])
    const parts = Array.from(
      { length: Math.floor(this.random() * 4) },
      (_, i) => [`"k${i}"`, this.nested(depth - 1)] as const,
    )
    return this.chance(0.5)
      ? `[${parts.map(([, v]) => v).join(',')}]`
      : `{${parts.map(([k, v]) => `${k}: ${v}`).join(',')}}`
  }
  object(): string {
    return this.chance(0.5) ? `{"a":${this.nested(2)},"b":${this.number()}}` : `[${this.nested(2)}]`
  }
  body(): string {
    const shape = this.pick(['v', 'v', 'v', 'vc', 'vc', 'o', 'vo', 'extra', 'lone', 'several', 'null'])
    const size = this.pick([0, 1, 2, 5, 60])
    const space = this.chance(0.2) ? ' \n' : ''
    let t = 1_700_000_000 - (1_700_000_000 % hour)
    const points = Array.from({ length: size }, () => {
      t += hour * this.pick([1, 1, 1, 1, 2])
      const keys = [`"t":${space}${t}`, ...this.values(shape, t)]
      return `{${(this.chance(0.1) ? keys.toReversed() : keys).join(`,${space}`)}}`
    })
    if (size > 1 && this.chance(0.1)) points.push(points[0] ?? '')
    if (size > 1 && this.chance(0.1)) points.reverse()
    return this.spoil(`${space}[${points.join(`${space},`)}]${space}`)
  }
  values(shape: string, t: number): string[] {
    const told = `"computed_at":${t + hour + Math.floor(this.random() * 900)}`
    if (shape === 'o') return [`"o":${this.object()}`]
    if (shape === 'lone') return [`"bands":${this.object()}`]
    if (shape === 'several') return [`"prices":${this.object()}`, `"n":${this.number()}`]
    if (shape === 'vo') return [this.chance(0.5) ? `"v":${this.object()}` : `"v":${this.number()}`]
    if (shape === 'null') return [`"v":${this.chance(0.3) ? 'null' : this.number()}`]
    const value = [`"v":${this.number()}`]
    if (shape === 'vc' && this.chance(0.9)) value.push(told)
    if (shape === 'extra' && this.chance(0.5)) value.push(`"x":${this.nested(2)}`)
    return value
  }
  /** Leaves most bodies as they are; breaks some by a planted fault or by random bytes. */
  spoil(text: string): string {
    if (this.chance(0.25)) {
      const [from, to] = this.pick([
        [/"v":\S/, '"v":"7"'],
        [/"v":[^,}]+/, '"v":true'],
        [/"v":[^,}]+/, '"v":"12"'],
        [/"v":[^,}]+/, '"v":NaN'],
        [/"v":[^,}]+/, '"v":1e999'],
        [/"t":\s*(\d+)/, '"t":"$1"'],
        [/"t":\s*(\d+)/, '"t":$1.5'],
        [/"t":\s*(\d+)/, '"t":$1.0'],
        [/"t":\s*(\d+)/, '"t":$1000'],
        [/"t":\s*(\d+)/, '"t":1$1'],
        [/"t":\s*\d+,?/, ''],
        [/\}/, ',}'],
        [/\]\s*$/, ''],
        [/$/, ']'],
      ] as const)
      return text.replace(from, to)
    }
    if (!this.chance(0.25) || text.length === 0) return text
    const at = Math.floor(this.random() * text.length)
    const cut = this.pick([0, 1, 1, 3])
    return (
      text.slice(0, at) +
      this.pick(['', '', ',', '"', '0', '-', '{', 'null', 'x', '.', 'e', ' ']) +
      text.slice(at + cut)
    )
  }
}

const scalar = (value: unknown): boolean => value === null || typeof value === 'number'
const nested = (value: unknown): boolean => typeof value === 'object' && value !== null

function everyNumberIsFinite(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  return !nested(value) || Object.values(value as object).every(everyNumberIsFinite)
}

const lostText = Symbol('text of a number')

/** Remembers beside a point the text of a `v` that is an integer which a double prints otherwise. */
function remembering(this: object, key: string, value: unknown, { source = '' }: { source?: string } = {}): unknown {
  const digits = (number: string): string => number.replaceAll(/^-|\.|e.*$/g, '').replace(/0+$/, '')
  const whole = key === 'v' && /^-?\d+$/.test(source) && Math.abs(Number(source)) >= 2 ** 53
  if (whole && digits(source) !== digits(Number(source).toExponential())) Reflect.set(this, lostText, Number(source))
  return value
}

/** What a reader that parses each body with JSON.parse would store; undefined where JSON.parse cannot tell. */
function oracle(text: string): Expected | undefined {
  const poison: Expected = { state: 'poison', rows: [] }
  let parsed: unknown
  try {
    parsed = JSON.parse(text, remembering)
  } catch {
    return poison
  }
  if (!Array.isArray(parsed) || !parsed.every((p) => nested(p) && !Array.isArray(p)) || !everyNumberIsFinite(parsed))
    return poison
  if (hasKeyTwice(text, parsed)) return undefined
  const points = parsed as Point[]
  const valued = points.some((p) => 'v' in p || 'o' in p)
  const others = (p: Point): string[] => Object.keys(p).filter((key) => !['t', 'v', 'o', 'computed_at'].includes(key))
  const keys = new Set(points.flatMap(others))
  const [lone] = keys
  const isLone =
    keys.size === 1 && points.every((p) => nested(p[lone ?? ''] ?? {})) && points.some((p) => nested(p[lone ?? '']))
  const rows = new Map<number, Expected['rows'][number]>()
  for (const p of points) {
    const { t, v = null, o = null, computed_at: told = null } = p
    if (
      typeof t !== 'number' ||
      t % hour !== 0 ||
      Math.abs(t) >= 1e11 ||
      !(scalar(v) || nested(v)) ||
      (o !== null && !nested(o))
    )
      return poison
    if (told !== null && !(typeof told === 'number' && told >= 0 && told < 1e11)) return poison
    if (valued ? !('v' in p) && !('o' in p) : others(p).length === 0) return poison
    const rest = Object.fromEntries(others(p).map((key) => [key, p[key]]))
    if (nested(v) && o !== null) rest['o'] = o
    const beyond: unknown = Reflect.get(p, lostText)
    if (beyond !== undefined) rest['v'] = beyond
    const bundle = Object.keys(rest).length === 0 ? null : rest
    const row = {
      t,
      v: nested(v) ? null : v,
      o: nested(v) ? v : valued ? o : isLone ? (p[lone ?? ''] ?? null) : bundle,
      extra: valued ? bundle : null,
      computed: told === null ? null : Math.round(told * 1e6),
    }
    const twin = rows.get(t)
    if (twin && !same(twin, row)) return poison
    rows.set(t, row)
  }
  return { state: points.length === 0 ? 'empty' : 'ok', rows: [...rows.values()].toSorted((a, b) => a.t - b.t) }
}

function same(a: unknown, b: unknown): boolean {
  if (!nested(a) || !nested(b)) return Object.is(a, b)
  const x = a as Readonly<Record<string, unknown>>
  const y = b as Readonly<Record<string, unknown>>
  if (Array.isArray(a) !== Array.isArray(b) || Object.keys(x).length !== Object.keys(y).length) return false
  return Object.keys(x).every((key) => key in y && same(x[key], y[key]))
}

/** JSON.parse keeps the last of two equal keys: then there are more colons than keys. */
function hasKeyTwice(text: string, parsed: unknown): boolean {
  const colons = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').split(':').length - 1
  const count = (value: unknown): number =>
    nested(value)
      ? Object.values(value as object).reduce(
          (sum: number, v) => sum + count(v),
          Array.isArray(value) ? 0 : Object.keys(value as object).length,
        )
      : 0
  return colons !== count(parsed)
}

test(`${batches * perBatch} random bodies are stored as JSON.parse reads them, or not at all`, {
  timeout: 3_600_000,
}, async () => {
  const maker = new Maker(seed)
  const seen = { ok: 0, empty: 0, poison: 0, skipped: 0 }
  for (let batch = 0; batch < batches; batch++) {
    const texts = Array.from({ length: perBatch }, () => maker.body())
    const bodies = await Promise.all(
      texts.map(
        async (text, i) => await made.body(text, { series: series(`A${i}`, { interval: '1h' }), horizon: 1e11 }),
      ),
    )
    const task = made.job(bodies, { interval: '1h', rules: [{ ...lag600, seconds: 60 }] })
    const result = await convert(made.engine, task)
    const rows = result.file === null ? [] : await made.stored(task.out)
    for (const [i, text] of texts.entries()) {
      const wanted = oracle(text)
      const verdict = result.bodies[i]
      const context = `seed ${seed} batch ${batch} body ${i}: ${verdict?.state} ${verdict?.reason}\n${text.slice(0, 2000)}`
      if (wanted === undefined) {
        seen.skipped++
        continue
      }
      expect(verdict?.state, context).toBe(wanted.state)
      seen[wanted.state]++
      const stored = rows
        .filter((row) => row['asset'] === bodies[i]?.series.asset)
        .map((row) => ({
          t: Number(row['t']) / 1e6,
          v: row['v'],
          o: row['o'] === null ? null : JSON.parse(row['o'] as string),
          extra: row['extra'] === null ? null : JSON.parse(row['extra'] as string),
          computed: row['computed_at'] === null ? null : Number(row['computed_at']),
        }))
      expect(stored, context).toEqual(wanted.rows)
    }
  }
  expect(seen.ok).toBeGreaterThan(batches * perBatch * 0.4)
  expect(seen.poison).toBeGreaterThan(batches * perBatch * 0.1)
  expect(seen.empty).toBeGreaterThan(0)
  expect(seen.skipped).toBeLessThan(batches * perBatch * 0.05)
})
