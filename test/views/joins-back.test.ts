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
const sizes = [600, 64, 700, 65, 700, 1]

async function compareJoins(engine: Engine, points: readonly OraclePoint[], interval: Interval, random: () => number) {
  for (const [n, { first = false, ...question }] of questions.entries()) {
    const decisions = decisionsFor(points, sizes[n] ?? 1, n)
    await decide(engine, decisions)
    const [back, span] = spanOf(interval, random)
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
  },
)
