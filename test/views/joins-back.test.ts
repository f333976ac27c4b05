import { expect, test } from 'vitest'
import { type Engine, quote } from '../../src/lake/store/engine.ts'
import type { Interval } from '../../src/base/time.ts'
import { later, lengths } from '../helpers/calendar.ts'
import { micros } from '../helpers/instants.ts'
import { withJoins } from '../helpers/joins.ts'
import type { StoredPoint } from '../helpers/lakes/points-file.ts'
import {
  type CalendarSpan,
  commits,
  decisionsFor,
  earlierPoints,
  iso,
  type OraclePoint,
  oraclePoint,
  type Question,
} from '../helpers/pit-oracle.ts'
import { randomOf } from '../helpers/random.ts'
import { sample } from '../helpers/tiers.ts'
import { decide, pointsKnownTo, rowText, pointText } from '../helpers/vintage-oracle.ts'

/* The joins with `back`, by its definition: the newest point known, and of the same knowledge the point a span before. */

const metric = 'addresses/min_1_count_pit'
const other = 'indicators/sopr_adjusted_pit'
const dayLength = 86_400_000_000

/** Series of three assets with gaps of up to 200 intervals, points that come late, nulls, revisions. */
function sparsePoints(name: string, interval: Interval, random: () => number, revised: boolean): StoredPoint[] {
  const upTo = (most: number): number => Math.floor(random() * (most + 1))
  return ['A', 'B', 'B_C'].flatMap((asset) => {
    let t = later(Date.UTC(interval === '1w' ? 2024 : 2000, 0, 1) * 1000, interval, 0)
    return Array.from({ length: 45 }, (): StoredPoint[] => {
      const gap = random()
      t = later(t, interval, gap < 0.7 ? 1 : gap < 0.85 ? 1 + upTo(4) : 40 + upTo(160))
      const delay = random()
      const late = delay < 0.6 ? 0 : upTo(delay < 0.8 ? 6 : 400)
      let known = later(t, interval) + 60_000_000 + late * lengths[interval]
      return Array.from({ length: 1 + (revised ? upTo(2) : 0) }, (_, n) => {
        known += n * Math.ceil(random() * 40 * lengths[interval])
        return {
          metric: name,
          asset,
          interval,
          t: iso(t),
          available_at: iso(Math.floor(known)),
          observed_at: commits[upTo(1)] ?? commits[0],
          v: random() < 0.15 ? null : upTo(1000),
          network: name === metric ? 'eth' : null,
        }
      })
    }).flat()
  })
}

/** A span in SQL, and what it means. */
function spanOf(interval: Interval, random: () => number): readonly [sql: string, span: CalendarSpan] {
  const kind = random()
  const count = Math.floor(random() * 30)
  if (kind < 0.3) return [`'${count} months'`, { months: count, us: 0 }]
  if (kind < 0.4) return [`'${count} months 3 days'`, { months: count, us: 3 * dayLength }]
  if (kind < 0.5) return [`INTERVAL '${count} hours'`, { months: 0, us: count * 3_600_000_000 }]
  const us = Math.floor(random() * 250) * Math.floor(lengths[interval] / 1_000_000) * 1_000_000
  return [`to_microseconds(${us})`, { months: 0, us }]
}

const questions: readonly (Question & { readonly first?: true })[] = [
  {},
  { latency: dayLength, first: true },
  { skipNulls: true },
  { asOf: Date.UTC(2024, 2, 5) * 1000, maxAge: 3 * dayLength },
  { observedAsOf: micros(commits[0]) },
  { skipNulls: true, first: true, maxAge: 40 * dayLength },
]
const zones = ['UTC', 'Pacific/Kiritimati', 'America/New_York']
const sizes = [600, 64, 700, 65, 700, 1]

async function compareJoins(engine: Engine, points: readonly OraclePoint[], interval: Interval, random: () => number) {
  for (const [n, { first = false, ...question }] of questions.entries()) {
    const decisions = decisionsFor(points, sizes[n] ?? 1, n)
    await decide(engine, decisions)
    const [back, span] = spanOf(interval, random)
    await engine.run(`SET TimeZone = '${zones[n % zones.length]}'`)
    const { asOf, observedAsOf, latency, maxAge, skipNulls = false } = question
    const instant = (at: number | undefined) => (at === undefined ? 'NULL' : quote(iso(at)))
    await engine.run(`SET VARIABLE as_of = ${instant(asOf)}; SET VARIABLE observed_as_of = ${instant(observedAsOf)}`)
    const spanText = (us: number | undefined) => (us === undefined ? 'NULL' : `to_microseconds(${us})`)
    const options = `back := ${back}, max_age := ${spanText(maxAge)}, latency := ${spanText(latency)}, skip_nulls := ${skipNulls}, vintage := '${first ? 'first' : 'last'}'`
    const owed = decisions.map((decision) => {
      const { earlier, shift } = earlierPoints(pointsKnownTo(points, decision, question, first), span)
      const ts = decision[1] ?? 0
      return earlier.map((point) => ({ point, age: ts - point.end - shift }))
    })
    const fresh = ({ age }: { readonly age: number }): boolean => age <= (maxAge ?? Infinity)
    const newest = owed.map((own) => pointText(own.slice(0, 1).filter(fresh)[0]?.point))
    const join = await engine.rows(`FROM pit_join('d', '${metric}', '${interval}', ${options}) ORDER BY id`)
    expect(join.map(rowText)).toEqual(newest)
    const long = `FROM pit_long('d', ['${other}', '${metric}'], '${interval}', ${options}) WHERE metric = '${metric}' ORDER BY id`
    expect((await engine.rows(long)).map(rowText)).toEqual(newest)
    const windows = [
      ['3', (own: (typeof owed)[number]) => own.slice(0, 3)],
      [`'5 days'`, (own: (typeof owed)[number]) => own.filter(({ age }) => age < 5 * dayLength)],
    ] as const
    for (const [size, cut] of windows) {
      const rows = await engine.rows(
        `FROM pit_window('d', '${metric}', '${interval}', ${size}, ${options}) ORDER BY id, nth`,
      )
      const expected = owed.flatMap((own) => {
        const kept = cut(own).filter(fresh)
        return kept.length === 0 ? [pointText(undefined)] : kept.map(({ point }) => pointText(point))
      })
      expect(rows.map(rowText)).toEqual(expected)
    }
  }
}

const cases = (['10m', '1h', '24h', '1w', '1month', '3month'] as const).flatMap((interval) =>
  [false, true].map((revised) => ({ interval, revised })),
)

test.each(sample(cases, 5, cases.length))(
  'joins with back answer as the definition does: $interval, revised $revised',
  async (one) => {
    const { interval, revised } = one
    const random = randomOf(interval.length * 7 + Number(revised))
    const stored = sparsePoints(metric, interval, random, revised)
    const rest = sparsePoints(other, interval, random, false)
    const points = stored.map((row) => oraclePoint(row, micros(row.observed_at ?? commits[0])))
    await withJoins([...stored, ...rest], async (engine) => await compareJoins(engine, points, interval, random), {
      revisable: revised ? [metric] : [],
    })
    expect.hasAssertions()
  },
)

const dayMetric = { metric: other, asset: 'BTC', interval: '24h', observed_at: commits[0] } as const

/** Daily points, each known ten minutes after its end. */
const dailyPoints = (...days: readonly (readonly [day: string, v: number | null])[]): StoredPoint[] =>
  days.map(([day, v]) => {
    const t = `${day}T00:00:00Z`
    return { ...dayMetric, t, available_at: iso(micros(t) + dayLength + 600_000_000), v }
  })

const valueAt = async (engine: Engine, ts: string, options: string): Promise<unknown> => {
  const decision = `WITH d AS (SELECT 'BTC' AS asset, TIMESTAMPTZ '${ts}' AS ts)`
  const [row] = await engine.rows(`${decision} SELECT v FROM pit_join('d', '${other}', '24h', ${options})`)
  return row?.['v']
}

test('a point a span before has the value that was known at the decision, not the one known a span before', async () => {
  const revised = { ...dayMetric, t: '2024-03-01T00:00:00Z', available_at: '2024-03-20T00:00:00Z', v: 101 }
  await withJoins(
    [...dailyPoints(['2024-03-01', 100], ['2024-03-19', 119], ['2024-03-21', 121]), revised],
    async (engine) => {
      expect(await valueAt(engine, '2024-03-19T23:00:00Z', `back := '18 days'`)).toBe(null)
      expect(await valueAt(engine, '2024-03-20T01:00:00Z', `back := '18 days'`)).toBe(101)
      expect(await valueAt(engine, '2024-03-22T01:00:00Z', `back := '18 days'`)).toBe(101)
      expect(await valueAt(engine, '2024-03-22T01:00:00Z', `back := '18 days', vintage := 'first'`)).toBe(100)
    },
    { revisable: [other] },
  )
})

test('months are counted from the ends of intervals, and a missing day is the last of its month', async () => {
  const days = ['01-30', '01-31', '02-01', '02-27', '02-28', '02-29', '03-01', '03-29', '03-30', '03-31']
  await withJoins(dailyPoints(...days.map((day, n) => [`2024-${day}`, n] as const)), async (engine) => {
    const found = await Promise.all(
      ['2024-03-01', '2024-03-30', '2024-03-31', '2024-04-01'].map(
        async (end) => days[Number(await valueAt(engine, `${end}T01:00:00Z`, `back := '1 month'`))],
      ),
    )
    expect(found).toEqual(['01-31', '02-28', '02-28', '02-29'])
  })
})

test('max_age counts the age of the newest point and the gap behind the span', async () => {
  const days = [
    ['2024-03-01', 1],
    ['2024-03-04', 4],
    ['2024-03-13', 13],
  ] as const
  await withJoins(dailyPoints(...days), async (engine) => {
    const ask = async (maxAge: string) =>
      await valueAt(engine, '2024-03-14T12:00:00Z', `back := '10 days', max_age := '${maxAge}'`)
    expect(await ask('60 hours')).toBe(1)
    expect(await ask('59 hours')).toBe(null)
  })
})

test('with unresolved null a span that ends in a range without an answer gives NULL', async () => {
  const points = dailyPoints(['2024-03-01', 1], ['2024-03-02', 2], ['2024-03-09', 9], ['2024-03-10', 10])
  const windows = [
    ['2024-03-01', '2024-03-03'],
    ['2024-03-09', '2024-03-11'],
  ].map(([since = '', until = '']) => ({
    metric: other,
    asset: 'BTC',
    interval: '24h',
    currency: null,
    exchange: null,
    network: null,
    state: 'covered',
    reason: null,
    since: `${since}T00:00:00Z`,
    until: `${until}T00:00:00Z`,
  }))
  await withJoins(
    points,
    async (engine) => {
      const ask = async (back: string, unresolved: string) =>
        await valueAt(engine, '2024-03-11T01:00:00Z', `back := '${back}', unresolved := '${unresolved}'`)
      expect([await ask('5 days', 'value'), await ask('5 days', 'null')]).toEqual([2, null])
      expect([await ask('8 days', 'value'), await ask('8 days', 'null')]).toEqual([2, 2])
      expect([await ask('1 day', 'value'), await ask('1 day', 'null')]).toEqual([9, 9])
    },
    { coverage: windows, uncovered: [] },
  )
})

test.each([
  ["'-1 day'", 'back is negative'],
  ['90', 'back has no unit: 90'],
  ["'soon'", 'Could not convert'],
])('pit_join refuses back := %s', async (back, words) => {
  await withJoins(dailyPoints(['2024-03-01', 1]), async (engine) => {
    await expect(valueAt(engine, '2024-03-11T01:00:00Z', `back := ${back}`)).rejects.toThrow(words)
  })
})

test('back is NULL or zero: the newest point', async () => {
  await withJoins(dailyPoints(['2024-03-01', 1], ['2024-03-02', 2]), async (engine) => {
    for (const back of ['NULL', '0', "'0 days'"])
      expect(await valueAt(engine, '2024-03-11T01:00:00Z', `back := ${back}`)).toBe(2)
  })
})
