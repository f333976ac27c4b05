import { expect, test } from 'vitest'
import type { Engine, Row } from '../../src/lake/store/engine.ts'
import {
  type ArchiveLake,
  knownAt,
  level,
  newestAt,
  rate,
  type Said,
  sorted,
  still,
  withArchives,
} from '../helpers/lakes/archives.ts'
import { randomOf } from '../helpers/random.ts'
import { iso } from '../helpers/pit-oracle.ts'
import { rounds } from '../helpers/tiers.ts'
import { withViews } from '../helpers/views.ts'

const lakes = Math.ceil(rounds('PITLAKE_ARCHIVES', 12, 24) / 200)
const size = { assets: Math.min(100, rounds('PITLAKE_ARCHIVES', 12, 24) / 2), versions: 4 }

const cells = (rows: readonly Row[], ...names: readonly string[]): string[] =>
  rows.map((row) => names.map((name) => (row[name] as string | null) ?? 'null').join(' '))
const us = (name: string): string => `epoch_us(${name}) AS ${name}`
const told = ({ metric, asset, t, at, v }: Said): string => `${metric} ${asset} ${t * 1e6} ${at} ${v}`

async function standAt(engine: Engine, asOf: number | null): Promise<void> {
  await engine.run(`SET VARIABLE as_of = ${asOf === null ? 'NULL' : `'${iso(asOf)}'`}`)
}

/** What `points`, `series`, `vintages` and `resample` say at an instant. */
async function holdViews(engine: Engine, { changes, assets }: ArchiveLake, asOf: number): Promise<void> {
  const known = knownAt(changes, asOf)
  const points = `SELECT metric, asset, ${us('t')}, ${us('available_at')}, v FROM points ORDER BY ALL`
  expect(cells(await engine.rows(points), 'metric', 'asset', 't', 'available_at', 'v')).toEqual(known.map(told))
  const counted = await engine.rows('SELECT metric, asset, points FROM series ORDER BY ALL')
  const counts = Map.groupBy(known, ({ metric, asset }) => `${metric} ${asset}`)
  expect(cells(counted, 'metric', 'asset', 'points')).toEqual([...counts].map(([key, own]) => `${key} ${own.length}`))
  const all = sorted(changes.filter(({ at, metric }) => at <= asOf && metric !== still))
  const rows = await engine.rows(
    `SELECT metric, asset, ${us('t')}, ${us('available_at')}, v, ordinal, previous, v - previous AS change, ${us('previous_available_at')}
     FROM vintages ORDER BY metric, asset, t, ordinal`,
  )
  const before = (one: Said, n: number): Said | undefined => {
    const last = all[n - 1]
    return last?.metric === one.metric && last.asset === one.asset && last.t === one.t ? last : undefined
  }
  let ordinal = 0
  const expected = all.map((one, n) => {
    const last = before(one, n)
    ordinal = last === undefined ? 1 : ordinal + 1
    const change = one.v === null || last === undefined || last.v === null ? null : one.v - last.v
    return `${told(one)} ${ordinal} ${last?.v ?? null} ${change} ${last?.at ?? null}`
  })
  const names = ['metric', 'asset', 't', 'available_at', 'v', 'ordinal', 'previous', 'change', 'previous_available_at']
  expect(cells(rows, ...names)).toEqual(expected)
  const sums = await engine.rows(
    `SELECT asset, sum(v) AS v, epoch_us(max(available_at)) AS at FROM resample('${rate}', '24h', '1w', 'sum', skip_nulls := true, min_parts := 1) GROUP BY asset ORDER BY asset`,
  )
  const weekly = assets.flatMap((asset) => {
    const own = known.filter((one) => one.metric === rate && one.asset === asset)
    const there = own.filter(({ v }) => v !== null)
    const sum = there.length === 0 ? null : there.reduce((total, { v }) => total + (v ?? 0), 0)
    return own.length === 0 ? [] : [`${asset} ${sum} ${Math.max(...own.map(({ at }) => at))}`]
  })
  expect(cells(sums, 'asset', 'v', 'at')).toEqual(weekly.toSorted())
}

type Decision = readonly [asset: string, ts: number]

async function decide(engine: Engine, decisions: readonly Decision[]): Promise<void> {
  const rows = decisions.map(([asset, ts], id) => `(${id}, '${asset}', make_timestamptz(${ts}::BIGINT))`)
  await engine.run(`CREATE OR REPLACE TEMP TABLE d AS SELECT * FROM (VALUES ${rows.join(', ')}) AS d (id, asset, ts)`)
}

const found = (point: Said | undefined): string =>
  point === undefined ? 'null null null' : `${point.t * 1e6} ${point.at} ${point.v}`
const columns = `${us('t')}, ${us('available_at')}, v`

/** What the joins say of decisions: each metric alone, both together, the last three points, the first vintages. */
async function holdJoins(
  engine: Engine,
  { changes }: ArchiveLake,
  decisions: readonly Decision[],
  cut: number,
): Promise<void> {
  await decide(engine, decisions)
  const owed = (metric: string, first: boolean): Said[][] =>
    decisions.map(([asset, ts]) => newestAt(changes, { metric, asset }, Math.min(ts, cut), first))
  for (const vintage of ['last', 'first'] as const) {
    const option = vintage === 'last' ? '' : `, vintage := 'first'`
    const rates = owed(rate, vintage === 'first')
    const levels = owed(level, vintage === 'first')
    const ask = async (sql: string): Promise<string[]> => cells(await engine.rows(sql), 't', 'available_at', 'v')
    const join = await ask(`SELECT ${columns} FROM pit_join('d', '${rate}', '24h'${option}) ORDER BY id`)
    expect(join).toEqual(rates.map(([newest]) => found(newest)))
    const long = `SELECT ${columns} FROM pit_long('d', ['${rate}', '${level}'], '24h'${option}) ORDER BY id, metric DESC`
    expect(await ask(long)).toEqual(rates.flatMap(([a], n) => [found(a), found(levels[n]?.[0])]))
    const window = `SELECT ${columns} FROM pit_window('d', '${level}', '24h', 3${option}) ORDER BY id, nth`
    const last = levels.flatMap((own) => (own.length === 0 ? [found(undefined)] : own.slice(0, 3).map(found)))
    expect(await ask(window)).toEqual(last)
  }
}

test(`every as-of, first, latest, difference and join over archives is right at each version and a microsecond next to it`, async () => {
  expect(lakes).toBeGreaterThan(0)
  for (let seed = 0; seed < lakes; seed++)
    await withArchives(seed, size, async (lake) => {
      const random = randomOf(seed + 1000)
      const [first = 0] = lake.versions
      const newest = lake.versions.at(-1) ?? 0
      const instants = lake.versions.flatMap((at) => [at - 1, at, at + 1])
      await withViews(lake.root, async (engine) => {
        const decisions = Array.from({ length: 60 }, (_, n): Decision => {
          const asset = lake.assets[Math.floor(random() * lake.assets.length)] ?? ''
          const near = instants[n % instants.length] ?? 0
          return [asset, n % 2 === 0 ? near : first + Math.floor(random() * (newest - first + 1e12))]
        })
        for (const asOf of instants) {
          await standAt(engine, asOf)
          await holdViews(engine, lake, asOf)
        }
        for (const cut of [Infinity, ...lake.versions.slice(1, 3)]) {
          await standAt(engine, cut === Infinity ? null : cut)
          await holdJoins(engine, lake, decisions, cut)
        }
      })
    })
})
