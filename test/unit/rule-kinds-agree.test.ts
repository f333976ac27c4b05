import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ruleKinds } from '../../src/catalog/rule-kinds.ts'
import { endSql, startSql } from '../../src/base/intervals-sql.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { day, end, floor, type Instant, type Interval, intervals, step, weekdays } from '../../src/base/time.ts'

let engine: Engine
beforeAll(async () => (engine = await Engine.open(':memory:', { threads: 1 })))
afterAll(() => engine.close())

type RuleName = keyof typeof ruleKinds
const names = Object.keys(ruleKinds) as readonly RuleName[]

/**
 * Seconds that rules of every kind may count: none, a minute, whole days with and without a time of day, up to a year.
 */
const counts = fc.oneof(
  fc.constantFrom(0, 1, 60, day - 1, day, day + 1, 366 * day),
  fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 1439 })).map(([days, m]) => days * day + m * 60),
)
const instants = fc.integer({ min: -1_000_000_000, max: 4_000_000_000 })
const weekStarts = fc.constantFrom(...weekdays)

/** An instant anywhere, or a second before, at or after that from which a point of some interval is knowable. */
const moments = (kind: RuleName) =>
  fc
    .tuple(instants, counts, weekStarts, fc.option(fc.constantFrom(...intervals)), fc.integer({ min: -1, max: 1 }))
    .map(([instant, seconds, weekStart, edge, off]) => {
      if (edge === null) return { at: instant, seconds, weekStart }
      const t = floor(instant, edge, weekStart)
      return { at: ruleKinds[kind].at(t, end(t, edge), seconds) + off, seconds, weekStart }
    })

const bigint = (at: number): string => `CAST(${at} AS BIGINT)`

/** First start of an interval that is not knowable at an instant: each start is tried, from one on that is knowable. */
function firstUndue(kind: RuleName, at: Instant, seconds: number, interval: Interval, first: Instant): Instant {
  const knownAt = (t: Instant): Instant => ruleKinds[kind].at(t, end(t, interval), seconds)
  let t = step(first, interval, -1)
  expect(knownAt(t)).toBeLessThanOrEqual(at)
  while (knownAt(t) <= at) t = end(t, interval)
  return t
}

test.each(names)('a rule of kind %s dates a point in SQL as in TypeScript', async (kind) => {
  await fc.assert(
    fc.asyncProperty(instants, counts, weekStarts, async (at, seconds, weekStart) => {
      const cells = intervals.map((interval) => {
        const t = bigint(floor(at, interval, weekStart))
        return `CAST(${ruleKinds[kind].sql(t, endSql(t, interval), String(seconds))} AS BIGINT) AS "${interval}"`
      })
      const dated = intervals.map((interval) => {
        const t = floor(at, interval, weekStart)
        return [interval, BigInt(ruleKinds[kind].at(t, end(t, interval), seconds))]
      })
      expect(await engine.rows(`SELECT ${cells.join(', ')}`)).toEqual([Object.fromEntries(dated)])
    }),
    { numRuns: 40 },
  )
})

test.each(names)('the first undue start of kind %s is the first that is dated after the instant', async (kind) => {
  await fc.assert(
    fc.asyncProperty(moments(kind), async ({ at, seconds, weekStart }) => {
      const cells = intervals.map((interval) => {
        const start = (instant: string): string => startSql(instant, interval, { weekStart })
        const ceil = (instant: string): string => startSql(`(${instant} - 1)`, interval, { weekStart, back: '-1' })
        const undue = ruleKinds[kind].undue(bigint(at), String(seconds), start, ceil)
        return `CAST(${undue} AS BIGINT) AS "${interval}"`
      })
      const first = intervals.map((interval) => {
        const early = floor(at - seconds - 2 * day, interval, weekStart)
        return [interval, BigInt(firstUndue(kind, at, seconds, interval, early))]
      })
      expect(await engine.rows(`SELECT ${cells.join(', ')}`)).toEqual([Object.fromEntries(first)])
    }),
    { numRuns: 40 },
  )
})
