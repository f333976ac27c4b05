import { afterAll, beforeAll, expect, test } from 'vitest'
import { day } from '../../src/base/time.ts'
import { at, convert, Converting, lag600, micros, t1 } from '../helpers/converting.ts'
import { randomOf } from '../helpers/random.ts'
import { rounds } from '../helpers/tiers.ts'

/* Vintages that their source dates: what is stored of them, against what was said, by definition. */

let made: Converting
beforeAll(async () => {
  made = await Converting.open()
})
afterAll(() => made.close())

/** What a source says of a day: its value as JSON, and the date of that. */
interface Vintage {
  readonly t: number
  readonly value: string
  readonly dated: number
}

/** A row of the lake: from when on it is known, and since when it is stored, microseconds. */
interface StoredVintage {
  readonly t: number
  readonly value: string
  readonly available: number
  readonly observed: number
}

/** Imports one after the other, one a day from June on: what each stored, and how many contradictions it met. */
async function importAll(answers: readonly (readonly Vintage[])[]) {
  const existing: string[] = []
  const all: { stored: StoredVintage[]; violations: number }[] = []
  for (const [n, vintages] of answers.entries()) {
    const commit = at('2024-06-01') + n * day
    const points = vintages.map(({ t, value, dated }) => `{"t":${t},"v":${value},"computed_at":${dated}}`)
    const body = await made.body(`[${points.join(',')}]`, { askedAt: commit, horizon: commit })
    const over = { revisable: 'told', existing: [...existing], observedAt: BigInt(commit) * 1_000_000n } as const
    const task = made.job([body], { ...over, rules: [lag600] })
    const { file, violations } = await convert(made.engine, task)
    const rows = file === null ? [] : await made.stored(task.out)
    if (file !== null) existing.push(task.out)
    const text = (v: unknown): string => (Object.is(v, -0) ? '-0' : JSON.stringify(v))
    const stored = rows.map(({ t, v, o, available_at: available, observed_at: observed }) => ({
      t: Number(t) / 1e6,
      value: typeof o === 'string' ? o : text(v),
      available: Number(available),
      observed: Number(observed),
    }))
    all.push({ stored, violations: violations.length })
  }
  return all
}

test.each([
  ['numbers', '1', '2'],
  ['objects', '{"open":1,"close":2}', '{"open":1,"close":3}'],
  ['nested objects', '{"a":{"b":[1,{"c":null}]}}', '{"a":{"b":[1,{"c":0}]}}'],
  ['lists', '[1,2]', '[2,1]'],
  ['a number and an object', '1', '{"a":1}'],
  ['a number that is withdrawn', '1', 'null'],
  ['an object that is withdrawn', '{"a":1}', 'null'],
  ['a value that comes after none', 'null', '1'],
  ['zeros of both signs', '0', '-0'],
])('dated vintages of %s are stored once each, in whatever order they come', async (_, first, other) => {
  const whole = [first, other, first].map((value, n) => ({ t: t1, value, dated: t1 + (4 + n) * day }))
  const [, two, three] = whole as [Vintage, Vintage, Vintage]
  for (const few of [[three, two], [two]]) {
    const imports = await importAll([few, whole])
    expect(imports.map(({ violations }) => violations)).toEqual([0, 0])
    const known = imports.flatMap(({ stored }) => stored).map(({ value, available }) => `${available} ${value}`)
    expect(known.toSorted()).toEqual(whole.map(({ value, dated }) => `${dated * 1e6} ${value}`))
  }
})

test('a value that contradicts a dated one is a violation, and hides no vintage behind it', async () => {
  const vintage = (value: string, after: number): Vintage => ({ t: t1, value, dated: t1 + after * day })
  const [, again] = await importAll([
    [vintage('1', 4)],
    [vintage('2', 4), vintage('1', 5), vintage('2', 6), vintage('2', 7)],
  ])
  expect(again?.violations).toBe(1)
  expect(again?.stored).toMatchObject([{ value: '2', available: micros('2024-03-07') }])
})

test('of values dated before the end of their interval the last one is known at that end, even if it arrives later', async () => {
  const early = (value: string, hour: number): Vintage => ({ t: t1, value, dated: t1 + hour * 3600 })
  const [one, two, three] = await importAll([
    [early('1', 4), early('2', 6), early('3', 5), early('2', 3)],
    [early('4', 7), early('5', 2)],
    [early('4', 7), early('2', 6), early('5', 2)],
  ])
  expect(one?.stored).toMatchObject([{ value: '2', available: micros('2024-03-02') }])
  expect(two?.stored).toMatchObject([{ value: '4', available: micros('2024-03-02') }])
  expect(three).toEqual({ stored: [], violations: 0 })
})

/**
 * The value that is known of a day by what was said: of its dates by then the last, of each date what was said first.
 */
function valueSaid(said: readonly Vintage[], t: number, known: number): string | undefined {
  const first = said.filter((one, n) => said.findIndex((o) => o.t === one.t && o.dated === one.dated) === n)
  const due = first.filter((one) => one.t === t && Math.max(one.dated, t + day) * 1e6 <= known)
  return due.toSorted((a, b) => a.dated - b.dated).at(-1)?.value
}

/**
 * Whether a value differs from the one that was known right before it, and the last of those that are known from its
 * instant on.
 */
function isChange(said: readonly Vintage[], { t, value, dated }: Vintage): boolean {
  const stands = Math.max(dated, t + day)
  const isOvertaken = said.some((one) => one.t === t && one.dated > dated && one.dated <= stands)
  return !isOvertaken && valueSaid(said, t, stands * 1e6 - 1) !== value
}

/** The same by what is stored. */
function valueStored(stored: readonly StoredVintage[], t: number, known: number): string | undefined {
  const own = stored.filter((row) => row.t === t && row.available <= known)
  return own.toSorted((a, b) => a.available - b.available || a.observed - b.observed).at(-1)?.value
}

const seeds = rounds('PITLAKE_DATED', 4, 20)

test('grown files of dated vintages, backdated and contradicting ones among them, are known as they were said', async () => {
  const values = ['1', '2', 'null', '{"a":1}', '{"a":2}', '[1]']
  for (let seed = 0; seed < seeds; seed++) {
    const random = randomOf(seed)
    const draw = (most: number): number => Math.floor(random() * most)
    const answers: Vintage[][] = []
    const said: Vintage[] = []
    // What only repeated the value before it is not stored: nothing tells that it is rewritten.
    const changes = new Set<Vintage>()
    const contradictions: number[] = []
    for (let n = 0; n < 4; n++) {
      const more: Vintage[] = []
      const spoilt: Vintage[] = []
      for (let k = 0; k < 8; k++) {
        const t = t1 + draw(2) * day
        const one = { t, value: values[draw(values.length)] ?? '', dated: t + (draw(10) * day) / 4 }
        const before = [...said, ...more].find((o) => o.t === t && o.dated === one.dated)
        if (before === undefined) more.push(one)
        else if (
          changes.has(before) &&
          before.value !== one.value &&
          !spoilt.some((o) => o.t === t && o.dated === one.dated)
        )
          spoilt.push(one)
      }
      const kept = said.filter((one) => !spoilt.some(({ t, dated }) => one.t === t && one.dated === dated))
      contradictions.push(spoilt.length)
      answers.push([...kept, ...spoilt, ...more].toSorted(() => random() - 0.5))
      said.push(...more)
      for (const one of said)
        if (!spoilt.some(({ t, dated }) => one.t === t && one.dated === dated) && isChange(said, one)) changes.add(one)
    }
    const imports = await importAll([...answers, answers.at(-1) ?? []])
    expect(imports.pop(), 'the same file again').toEqual({ stored: [], violations: contradictions.at(-1) })
    let upTo: Vintage[] = []
    const stored: StoredVintage[] = []
    for (const [n, one] of imports.entries()) {
      upTo = [...upTo, ...(answers[n] ?? [])]
      stored.push(...one.stored)
      expect(new Set(stored.map(({ t, available, observed }) => `${t} ${available} ${observed}`)).size).toBe(
        stored.length,
      )
      for (const t of [t1, t1 + day])
        for (let known = t; known < t + 12 * day; known += day / 4)
          expect(valueStored(stored, t, known * 1e6), `seed ${seed}, import ${n}`).toBe(valueSaid(upTo, t, known * 1e6))
      expect(one.violations, `seed ${seed}, import ${n}`).toBe(contradictions[n])
    }
  }
})
