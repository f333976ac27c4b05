import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { availableAt, type Rule } from '../../src/catalog/availability.ts'
import {
  ceil,
  count,
  day,
  end,
  floor,
  formatDuration,
  type Interval,
  intervals,
  longestSeconds,
  measureOf,
  parseDuration,
  instantOf,
  parseHeaderDate,
  parseInstant,
  parseMicros,
  phaseOf,
  shortestSeconds,
  step,
  weekdayAt,
  weekdays,
} from '../../src/base/time.ts'
import { startAfter, startAt } from '../helpers/time-twin.ts'

const at = (text: string) => parseInstant(text) ?? Number.NaN

const farAway = fc.integer({ min: Date.UTC(1, 0, 1) / 1000, max: Date.UTC(9999, 0, 1) / 1000 })
const anyInterval = fc.constantFrom<Interval>(...intervals)

test('floor agrees with the calendar, far past and future included', () => {
  fc.assert(
    fc.property(farAway, anyInterval, (instant, interval) => {
      const start = floor(instant, interval)
      expect(start).toBe(startAt(instant, interval))
      expect(floor(start, interval)).toBe(start)
      expect(start <= instant && instant < end(start, interval)).toBe(true)
      expect(floor(end(start, interval) - 1, interval)).toBe(start)
      expect(ceil(instant, interval)).toBe(start === instant ? start : end(start, interval))
    }),
    { numRuns: 2000 },
  )
})

test('count is the number of steps', () => {
  fc.assert(
    fc.property(
      farAway,
      anyInterval,
      fc.integer({ min: -40, max: 400 }),
      fc.nat(3000),
      (instant, interval, n, shift) => {
        const first = floor(instant, interval)
        expect(step(first, interval, n)).toBe(startAfter(first, interval, n))
        expect(count(first, step(first, interval, n), interval)).toBe(Math.max(0, n))
        let brute = 0
        for (let t = ceil(instant, interval); t < instant + shift * 60; t = end(t, interval)) brute++
        expect(count(instant, instant + shift * 60, interval)).toBe(brute)
      },
    ),
  )
})

test('the length of months is given as longest and shortest, all other lengths exactly', () => {
  expect(intervals.map(longestSeconds)).toEqual([600, 3600, day, 7 * day, 31 * day, 92 * day])
  expect(intervals.map(shortestSeconds)).toEqual([600, 3600, day, 7 * day, 28 * day, 90 * day])
})

test('Python and the page know the intervals of this table, and where each ends', async () => {
  const text = readFileSync(new URL('../../python/pitlake/text.py', import.meta.url), 'utf8')
  const told = ['SECONDS', 'MONTHS'].map((name) => new RegExp(`^${name} = (\\{.*\\})$`, 'm').exec(text)?.[1] ?? '')
  const lengths = told.map((one): unknown => JSON.parse(one.replaceAll(/(?<=\d)_/g, '')))
  const own = (unit: 'seconds' | 'months') =>
    intervals.map((interval): [string, number] => [interval, measureOf(interval)[unit]]).filter(([, n]) => n > 0)
  expect(lengths).toEqual([Object.fromEntries(own('seconds')), Object.fromEntries(own('months'))])
  const url = new URL('../../src/interfaces/page/shared/questions.js', import.meta.url).href
  const page = (await import(url)) as {
    readonly endOf: (t: number, interval: string) => number
    readonly lengthOf: (interval: string) => number
  }
  for (const interval of intervals) {
    expect(page.lengthOf(interval)).toBe(longestSeconds(interval) * 1000)
    for (let n = 0; n < 8; n++) {
      const t = step(floor(Date.UTC(2023, 7, 20) / 1000, interval), interval, n)
      expect(page.endOf(t * 1000, interval), `${interval} ${n}`).toBe(end(t, interval) * 1000)
    }
  }
})

test('weeks begin on Monday unless another day is given, and say on which', () => {
  expect(phaseOf('1w')).toBe(at('1970-01-05'))
  expect(phaseOf('24h', 'sunday')).toBe(0)
  for (const [n, weekday] of weekdays.entries()) {
    const start = at('2024-02-26') + n * day
    expect(floor(start + 3 * day, '1w', weekday)).toBe(start)
    expect(weekdayAt(start)).toBe(weekday)
    expect(weekdayAt(start + day - 1)).toBe(weekday)
    expect(weekdayAt(start - 60 * 52 * 7 * day)).toBe(weekday)
  }
})

test.each([
  ['2024-03-01', 1709251200],
  ['2024-03-01T00:00:00Z', 1709251200],
  ['2024-03-01 00:00', 1709251200],
  ['2024-03-01T05:30:00+05:30', 1709251200],
  ['2024-03-01T05:30:00+0530', 1709251200],
  ['1709251200', 1709251200],
  [' 1709251200 ', 1709251200],
  ['\t2024-03-01 ', 1709251200],
  ['2024-03-01T00:00:00 Z', 1709251200],
  ['2024-03-01T00:00   +00:00', 1709251200],
  ['2024-02-29T18:30:00-05:30', 1709251200],
  ['-86400', -86_400],
  ['2024-03-01T00:00:00+24:00', undefined],
  ['2024-03-01T00:00:00Zulu', undefined],
  ['on 2024-03-01', undefined],
  ['2024-03-01 at noon', undefined],
  ['2024-03-01X00:00', undefined],
  ['2024', undefined],
  ['20240301', undefined],
  ['2024-02-30', undefined],
  ['2023-02-29', undefined],
  ['yesterday', undefined],
  ['2024-13-01', undefined],
  ['2024-03-01T25:00:00Z', undefined],
  ['', undefined],
])('%s is read as %s', (text, expected) => expect(parseInstant(text)).toBe(expected))

test.each([
  ['2024-03-01T00:00:00.25Z', 1_709_251_200_250_000],
  ['2024-03-01T05:30:00.1234567+0530', 1_709_251_200_123_456],
  ['2024-03-01t00:00:00z', 1_709_251_200_000_000],
  ['2024-03-01 00:00', 1_709_251_200_000_000],
  ['2024-03-01', 1_709_251_200_000_000],
  [' 2024-03-01 ', 1_709_251_200_000_000],
  ['2024-03-01T00:00:01.000001+00:00', 1_709_251_201_000_001],
  ['1969-12-31T23:59:59.5Z', -500_000],
  ['9999-12-31T23:59:59Z', 253_402_300_799_000_000],
  ['1709251200', undefined],
  ['2024-02-30T00:00:00Z', undefined],
  ['2024-03-01T24:00:01Z', undefined],
  ['Fri, 01 Mar 2024 00:00:00 GMT', undefined],
  ['', undefined],
])('%s is read to the microsecond as %s', (text, expected) => {
  expect(parseMicros(text)).toBe(expected)
  if (expected === undefined) expect(() => instantOf(text)).toThrow(RangeError)
  else expect(instantOf(text)).toBe(expected / 1_000_000)
})

test.each([
  ['Fri, 01 Mar 2024 00:00:00 GMT', 1_709_251_200_000],
  ['Friday, 01-Mar-24 00:00:00 GMT', 1_709_251_200_000],
  ['Fri Mar  1 00:00:00 2024', 1_709_251_200_000],
  ['Fri, 01 Mar 2024 01:00:00 +0100', 1_709_251_200_000],
  ['2024-03-01T00:00:00', 1_709_251_200_000],
  ['2024-03-01T00:00:00.000001Z', 1_709_251_201_000],
  ['1709251200', 1_709_251_200_000],
  [' 2024-03-01T00:00:00Z ', 1_709_251_200_000],
  ['soon', undefined],
  ['2024-3-1 Z', undefined],
  ['1.5', undefined],
])('the header date %s is read as %s, whatever the zone of this machine', (text, expected) => {
  expect(parseHeaderDate(text)).toBe(expected)
})

test.each([
  [0, '0s'],
  [59, '59s'],
  [60, '1m'],
  [61, '61s'],
  [90 * 60, '90m'],
  [3600, '1h'],
  [26 * 3600, '26h'],
  [day, '1d'],
  [7 * day, '7d'],
])('%s seconds are shown as %s', (seconds, text) => expect(formatDuration(seconds)).toBe(text))

test('durations are read with their unit, weeks too, and never rounded; 0 needs none', () => {
  expect([' 90s ', '2 m', '1h', '3d', '1w', '0', '0s'].map(parseDuration)).toEqual([
    90,
    120,
    3600,
    3 * day,
    7 * day,
    0,
    0,
  ])
  expect(['90 seconds', '1 minute', '2 hours', '1day', '2 weeks'].map(parseDuration)).toEqual([
    90,
    60,
    7200,
    day,
    14 * day,
  ])
  for (const text of ['90', '15 ', '1 month', '2 minute s', '00', '', 's'])
    expect(parseDuration(text), text).toBeUndefined()
  expect(parseDuration('9007199254740993')).toBeUndefined()
  expect(parseDuration('5m or so')).toBeUndefined()
})

test('durations are parsed back from their text', () => {
  fc.assert(fc.property(fc.nat(10_000_000), (seconds) => parseDuration(formatDuration(seconds)) === seconds))
  for (const text of ['', '-5m', '1.5h', '5 parsecs', 'm']) expect(parseDuration(text)).toBeUndefined()
})

const frame = { basis: 'assumed', quote: null, reason: 'test', until: null, trust: 'provider' } as const
const lag = (seconds: number): Rule[] => [{ ...frame, kind: 'lag', seconds }]

test('availability: lags, clock times, calendar ends', () => {
  expect(availableAt(lag(600), at('2024-03-01'), '24h')).toBe(at('2024-03-02T00:10:00Z'))
  expect(availableAt(lag(0), at('2024-02-01'), '1month')).toBe(at('2024-03-01'))
  expect(availableAt(lag(0), at('2024-12-30'), '1w')).toBe(at('2025-01-06'))
  expect(availableAt(lag(1200), at('2024-03-01T11:50:00Z'), '10m')).toBe(at('2024-03-01T12:20:00Z'))
  const clock: Rule[] = [{ ...frame, kind: 'clock', minuteOfDay: 615, days: 1 }]
  expect(availableAt(clock, at('2024-02-29'), '24h')).toBe(at('2024-03-01T10:15:00Z'))
  expect(availableAt(clock, at('2024-02-01'), '1month')).toBe(at('2024-03-01'))
  const dated: Rule[] = [{ ...frame, kind: 'lag', seconds: 60, until: at('2024-01-01') }, ...lag(600)]
  expect(availableAt(dated, at('2023-12-31'), '24h')).toBe(at('2024-01-01T00:01:00Z'))
  expect(availableAt(dated, at('2024-01-01'), '24h')).toBe(at('2024-01-02T00:10:00Z'))
})
