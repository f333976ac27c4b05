import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { randomOf } from '../helpers/random.ts'
import { withJoins } from '../helpers/joins.ts'
import {
  commits,
  decisionsFor,
  iso,
  type OraclePoint,
  oraclePoint,
  type Question,
  stories,
} from '../helpers/pit-oracle.ts'
import { rounds } from '../helpers/tiers.ts'
import { micros } from '../helpers/instants.ts'
import { decide, pointText, pointsKnownTo, rowText, vintagesOf } from '../helpers/vintage-oracle.ts'

/* The joins over points of which each may have several vintages, by the definition of what was known when. */

const metric = 'addresses/min_1_count_pit'
const other = 'indicators/sopr_adjusted_pit'

const questions: readonly Question[] = [
  {},
  { latency: 86_400_000_000 },
  { skipNulls: true },
  { asOf: Date.UTC(2024, 2, 5) * 1000 },
  { observedAsOf: micros(commits[0]), maxAge: 5 * 86_400_000_000 },
]

async function hold(engine: Engine, points: readonly OraclePoint[], interval: string, seed: number): Promise<void> {
  for (const [n, question] of questions.entries()) {
    const decisions = decisionsFor(points, [1, 64, 65, 300][(n + seed) % 4] ?? 1, seed + n)
    await decide(engine, decisions)
    const instant = (at: number | undefined) => (at === undefined ? 'NULL' : `'${iso(at)}'`)
    const { asOf, observedAsOf, latency, maxAge = Infinity, skipNulls = false } = question
    await engine.run(`SET VARIABLE as_of = ${instant(asOf)}; SET VARIABLE observed_as_of = ${instant(observedAsOf)}`)
    const span = (us: number | undefined) => (us === undefined || us === Infinity ? 'NULL' : `to_microseconds(${us})`)
    const vintage = (n + seed) % 2 === 0 ? 'last' : 'first'
    const options = `max_age := ${span(maxAge)}, latency := ${span(latency)}, skip_nulls := ${skipNulls}, vintage := '${vintage}'`
    const all = decisions.map((one) => pointsKnownTo(points, one, question, vintage === 'first'))
    const fresh = (own: readonly OraclePoint[], ts: number | null) => own.filter((p) => (ts ?? 0) - p.end <= maxAge)
    const newest = all.map((own, i) => pointText(fresh(own.slice(0, 1), decisions[i]?.[1] ?? null)[0]))
    const join = await engine.rows(`FROM pit_join('d', '${metric}', '${interval}', ${options}) ORDER BY id`)
    expect(join.map(rowText)).toEqual(newest)
    const long = `FROM pit_long('d', ['${metric}', '${other}'], '${interval}', ${options}) WHERE metric = '${metric}' ORDER BY id`
    expect((await engine.rows(long)).map(rowText)).toEqual(newest)
    const window = await engine.rows(`FROM pit_window('d', '${metric}', '${interval}', 3, ${options}) ORDER BY id, nth`)
    const last = all.flatMap((own, i) => {
      const kept = fresh(own.slice(0, 3), decisions[i]?.[1] ?? null).map(pointText)
      return kept.length === 0 ? [pointText(undefined)] : kept
    })
    expect(window.map(rowText)).toEqual(last)
  }
}

for (const interval of ['1h', '24h', '1month'] as const)
  test(`joins over vintages answer as the definition does, ${interval}`, async () => {
    await fc.assert(
      fc.asyncProperty(stories(metric, interval), stories(other, '24h'), fc.nat(), async (story, still, seed) => {
        const held = vintagesOf(story, randomOf(seed))
        const points = held.map(({ row, at }) => oraclePoint(row, micros(at)))
        const plain = [...still.early, ...still.late].map((row) => ({ ...row, interval, observed_at: commits[0] }))
        const rows = [...held.map(({ row, at }) => ({ ...row, observed_at: at })), ...plain]
        await withJoins(rows, async (engine) => await hold(engine, points, interval, seed), { revisable: [metric] })
      }),
      { numRuns: rounds('PITLAKE_JOINS', 1, 4), endOnFailure: true },
    )
    expect.hasAssertions()
  })

test('a vintage that reaches the lake after a later one takes nothing of it: by its instant, not by its commit', async () => {
  const row = { metric, asset: 'BTC', interval: '24h', t: '2024-03-01T00:00:00Z' } as const
  const told = [
    { ...row, available_at: '2024-03-05T00:00:00Z', observed_at: commits[0], v: 3 },
    { ...row, available_at: '2024-03-02T00:00:00Z', observed_at: commits[0], v: 1 },
    { ...row, available_at: '2024-03-03T00:00:00Z', observed_at: commits[1], v: 2 },
  ]
  const weeks = `SELECT v FROM resample('${metric}', '24h', '1w', 'sum', min_parts := 1)`
  const seen = async (engine: Engine) => (await engine.rows<{ v: number }>(weeks)).map(({ v }) => v)
  await withJoins(
    told,
    async (engine) => {
      expect(await seen(engine)).toEqual([3])
      await engine.run(`SET VARIABLE observed_as_of = '${commits[0]}'`)
      expect(await seen(engine)).toEqual([3])
      await engine.run(`RESET VARIABLE observed_as_of; SET VARIABLE as_of = '2024-03-04T00:00:00Z'`)
      expect(await seen(engine)).toEqual([2])
      await engine.run(`SET VARIABLE as_of = '2024-03-02T12:00:00Z'`)
      expect(await seen(engine)).toEqual([1])
    },
    { revisable: [metric] },
  )
})

test('without a registry to follow, follow_renames counts each revised point once', async () => {
  const row = { metric, asset: 'BTC', interval: '24h', t: '2024-03-01T00:00:00Z', observed_at: commits[0] } as const
  const vintages = [
    { ...row, available_at: '2024-03-02T00:00:00Z', v: 1 },
    { ...row, available_at: '2024-03-03T00:00:00Z', v: 2 },
  ]
  await withJoins(
    vintages,
    async (engine) => {
      const weeks = `FROM resample('${metric}', '24h', '1w', 'sum', min_parts := 1, follow_renames := true)`
      expect(await engine.rows(`SELECT parts, v ${weeks}`)).toEqual([{ parts: 1n, v: 2 }])
    },
    { revisable: [metric] },
  )
})
