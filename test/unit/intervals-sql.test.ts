import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  countSql,
  endSql,
  fitsSql,
  lengthSql,
  micros,
  onGridSql,
  startSql,
  stepSql,
} from '../../src/base/intervals-sql.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { count, floor, type Interval, intervals, step, weekdayAt, weekdays } from '../../src/base/time.ts'

let engine: Engine
beforeAll(async () => (engine = await Engine.open(':memory:', { threads: 1 })))
afterAll(() => engine.close())

const instants = fc.integer({ min: -3_000_000_000, max: 7_000_000_000 })

/** The expressions for a name that is known while the text is made, and for one that a column holds, in both ticks. */
const forms = (interval: Interval) =>
  [
    ['named', interval, 1],
    ['column', 'i', 1],
    ['named', interval, micros],
    ['column', 'i', micros],
  ] as const

test('starts, ends, steps and counts are those of TypeScript, whatever the form, the ticks and the first day', async () => {
  const property = fc.asyncProperty(
    fc.constantFrom<Interval>(...intervals),
    fc.constantFrom(...weekdays),
    fc.integer({ min: -40, max: 40 }),
    fc.array(instants, { minLength: 1, maxLength: 8 }),
    async (interval, weekStart, n, moments) => {
      for (const [, name, ticks] of forms(interval)) {
        const rows = await engine.rows(
          `SELECT ${startSql('x', name, { weekStart, ticks })} AS start,
            ${startSql('x', name, { weekStart, ticks, back: String(n) })} AS back,
            ${stepSql('t', name, n, ticks)} AS stepped, ${stepSql('t', name, 'n', ticks)} AS by_column,
            ${endSql('t', name, ticks)} AS close, ${countSql('t', stepSql('t', name, 7, ticks), name, ticks)} AS seven
           FROM (SELECT unnest([${moments.map((at) => at * ticks).join(', ')}]::BIGINT[]) AS x,
             unnest([${moments.map((at) => floor(at, interval, weekStart) * ticks).join(', ')}]::BIGINT[]) AS t,
             '${interval}' AS i, ${n} AS n)`,
        )
        expect(rows).toEqual(
          moments.map((at) => {
            const t = floor(at, interval, weekStart)
            const big = (value: number): bigint => BigInt(value) * BigInt(ticks)
            const stepped = big(step(t, interval, n))
            const back = big(step(t, interval, -n))
            return { start: big(t), back, stepped, by_column: stepped, close: big(step(t, interval, 1)), seven: 7n }
          }),
        )
      }
    },
  )
  await fc.assert(property, { numRuns: 60 })
})

test('the grid is the same in SQL as in TypeScript, also for weeks that begin on Sunday', async () => {
  for (const interval of intervals) {
    const moments = fc.sample(instants, 60).flatMap((at) => [at, floor(at, interval), floor(at, interval) + 3600])
    for (const [, name] of forms(interval)) {
      const rows = await engine.rows(
        `SELECT ${onGridSql('t', name)} AS g FROM (SELECT unnest([${moments.join(', ')}]::BIGINT[]) AS t, '${interval}' AS i)`,
      )
      expect(rows.map((row) => row['g'])).toEqual(moments.map((t) => floor(t, interval) === t))
    }
  }
  const sunday = Date.UTC(2024, 2, 3) / 1000
  const rows = await engine.rows(
    `SELECT ${onGridSql(String(sunday), '1w', 'sunday')} AS a, ${onGridSql(String(sunday), '1w')} AS b`,
  )
  expect(rows).toEqual([{ a: true, b: false }])
  expect(weekdayAt(sunday)).toBe('sunday')
  expect(weekdays.map((day) => weekdayAt(floor(sunday, '1w', day)))).toEqual(weekdays)
})

test('an interval that the table does not have is an error, never a month of 28 days', async () => {
  for (const sql of [
    lengthSql('i'),
    endSql('0', 'i'),
    startSql('0', 'i'),
    onGridSql('0', 'i'),
    countSql('0', '86400', 'i'),
  ])
    for (const interval of [`'4h'`, 'NULL', `''`])
      await expect(engine.rows(`SELECT ${sql} FROM (SELECT ${interval} AS i)`)).rejects.toThrow(/no interval/)
})

test('lengths are given in seconds or microseconds, and weeks begin on Monday unless configured', async () => {
  for (const [i, seconds] of [600, 3600, 86_400, 7 * 86_400, 28 * 86_400, 90 * 86_400].entries())
    for (const ticks of [1, micros])
      expect(await engine.rows(`SELECT ${lengthSql(intervals[i] ?? '', ticks)}::BIGINT AS n`)).toEqual([
        { n: BigInt(seconds * ticks) },
      ])
  const monday = Date.UTC(2024, 1, 26) / 1000
  const [row] = await engine.rows(`SELECT ${startSql(String(monday + 86_400), '1w')}::BIGINT AS start`)
  expect(row).toEqual({ start: BigInt(monday) })
})

test('each interval divides exactly the intervals that hold a whole number of it', async () => {
  const told = [
    ['10m', '1h', '24h', '1w', '1month', '3month'],
    ['1h', '24h', '1w', '1month', '3month'],
    ['24h', '1w', '1month', '3month'],
    ['1month', '3month'],
  ].flatMap(([part = '', ...wholes]) => wholes.map((whole) => `${part} ${whole}`))
  for (const part of [...intervals, '4h'])
    for (const whole of [...intervals, '4h']) {
      const [row] = await engine.rows(`SELECT ${fitsSql(`'${part}'`, `'${whole}'`)} AS fits`)
      expect([part, whole, row?.['fits']]).toEqual([part, whole, told.includes(`${part} ${whole}`)])
    }
})

test('counting weeks follows their first day', () => {
  const sunday = Date.UTC(2024, 2, 3) / 1000
  const week = 7 * 86_400
  expect(count(sunday, sunday + week, '1w', 'sunday')).toBe(1)
  expect(count(sunday, sunday + 1, '1w', 'sunday')).toBe(1)
  expect(count(sunday, sunday + 1, '1w')).toBe(0)
})
