// @module-tag full
import { expect, test } from 'vitest'
import { argueFromPlan } from '../../src/trust/lookahead/proof/prove.ts'
import { labelOf, openShadow, tableLabels } from '../../src/trust/lookahead/proof/tables.ts'
import { type Engine, quoteName } from '../../src/lake/store/engine.ts'
import { columnsOf } from '../../src/lake/store/parquet.ts'
import { arrivals, type EveryViewLake, metrics, withEveryView } from '../helpers/lakes/every-view.ts'
import { withViews } from '../helpers/views.ts'

/*
 * What a proof from the plan assumes of the lake's own views and macros, held against the real ones on a lake that has
 * something in each: of no row more is known than its label says.
 */

const cuts = Number(process.env['PITLAKE_LABEL_CUTS'] ?? 2)

/** Something of the lake, what the proof assumes of it, and the rows of it that it is about. */
interface Assumed {
  readonly name: string
  readonly from: string
  readonly label: NonNullable<ReturnType<typeof labelOf>>
}

const decisions = `(SELECT ts, asset FROM calendar('2026-02-01', '2026-03-20', '17 hours'), (VALUES ('BTC'), ('ETH')) AS a (asset))`
const joins: Readonly<Record<string, string>> = {
  pit_join: `pit_join('asked', '${metrics.supply}', '24h', max_age := '9 days')`,
  pit_window: `pit_window('asked', '${metrics.plain}', '24h', 3)`,
  revised: `pit_join('asked', '${metrics.revised}', '24h', vintage := 'first')`,
  pit_window_revised: `pit_window('asked', '${metrics.revised}', '24h', 3)`,
  pit_long: `pit_long('asked', ['${metrics.supply}', '${metrics.plain}', 'price_usd'], '24h', latency := '2 hours')`,
}
const universes = [
  `pit_universe('asked')`,
  `pit_universe('asked', status <> 'closed' AND (issuer_status = 'active' OR len(list_filter(deployments, lambda d: d.status = 'active')) > 0) AND first_seen <= valid_from)`,
]
const still = `(FROM points WHERE metric <> '${metrics.revised}')`
const coarse = `resample('${metrics.everyInterval}', '10m', '1h')`

async function assumed(lake: Engine): Promise<readonly Assumed[]> {
  const histories = await lake.rows<{ name: string }>(
    `SELECT view_name AS name FROM duckdb_views() WHERE schema_name = 'history' ORDER BY 1`,
  )
  const views = Object.entries(tableLabels).filter(([name]) => !name.startsWith('proof_'))
  return [
    // A revised point is known at no instant: the proof says so where a lake has any.
    ...views.map(([name, label]) => ({ name, from: name === 'points' ? still : name, label })),
    ...histories.map(({ name }) => ({
      name: `history.${name}`,
      from: `history.${quoteName(name)}`,
      label: labelOf('history', name) ?? { clock: null },
    })),
    { name: 'resample', from: coarse, label: tableLabels['proof_coarse'] ?? { clock: null } },
  ]
}

/**
 * The rows that a label calls known at an instant, as they are told: the end of a version as far as it is told by then.
 */
function knownAt({ from, label }: Assumed, columns: readonly string[], at: string): string {
  const { clock, until = [], later = [], guard } = label
  const told = columns.flatMap((name) => {
    if (later.includes(name)) return []
    const own = quoteName(name)
    return [until.includes(name) ? `CASE WHEN ${own} <= ${at} THEN ${own} END AS ${own}` : own]
  })
  const where = [clock === null ? 'true' : `${clock} <= ${at}`, guard ?? 'true']
  return `SELECT ${told.join(', ')} FROM ${from} WHERE ${where.join(' AND ')}`
}

/** Rows that differ between the whole lake and the lake cut at an instant. */
async function differing(lake: Engine, at: string, sql: string): Promise<number> {
  const asked = (table: string): string => `CREATE OR REPLACE TEMP TABLE ${table} AS ${sql}`
  await lake.run(asked('whole'))
  await lake.run(`SET VARIABLE as_of = ${at}`)
  await lake.run(asked('cut'))
  await lake.run('SET VARIABLE as_of = NULL')
  const [row] = await lake.rows(
    `SELECT count(*) AS n FROM ((FROM whole EXCEPT ALL FROM cut) UNION ALL (FROM cut EXCEPT ALL FROM whole))`,
  )
  return Number(row?.['n'])
}

function instants(lake: EveryViewLake): readonly string[] {
  const all = arrivals(lake)
  const polls = lake.commits.slice(2, 2 + cuts)
  const drawn = Array.from({ length: cuts }, (_, n) => all[Math.floor(((n + 0.5) / cuts) * all.length)] ?? 0)
  return [...polls, ...polls.map((at) => at - 1), ...drawn].map((at) => `make_timestamptz(${at}::BIGINT)`)
}

async function labelsHold(full: EveryViewLake, lake: Engine): Promise<void> {
  const all = await assumed(lake)
  expect(all.length).toBeGreaterThan(12)
  for (const one of all) {
    const columns = (await columnsOf(lake, one.from)).map(({ name }) => name)
    const nulls = (one.label.present ?? []).map((name) => `${quoteName(name)} IS NULL`)
    const [row] = await lake.rows(
      `SELECT count(*) AS n, count(*) FILTER (${nulls.join(' OR ') || 'false'}) AS nulls FROM ${one.from}`,
    )
    if (one.name !== 'registry_findings') expect(Number(row?.['n']), one.name).toBeGreaterThan(0)
    expect(Number(row?.['nulls']), one.name).toBe(0)
    for (const at of instants(full))
      expect(await differing(lake, at, knownAt(one, columns, at)), `${one.name} as of ${at}`).toBe(0)
  }
}

async function joinsHold(full: EveryViewLake, lake: Engine): Promise<void> {
  for (const [name, from] of Object.entries(joins)) {
    const [row] = await lake.rows(`SELECT count(v) AS n, count(*) FILTER (available_at > ts) AS early FROM ${from}`)
    expect([Number(row?.['n']) > 0, Number(row?.['early'])], name).toEqual([true, 0])
    for (const at of instants(full))
      expect(await differing(lake, at, `SELECT * FROM ${from} WHERE ts <= ${at}`), `${name} as of ${at}`).toBe(0)
  }
  const start = `(SELECT known_since FROM registry_start)`
  for (const universe of universes) {
    const [met] = await lake.rows(`SELECT count(*) AS n, count(*) FILTER (valid_from > ts) AS early FROM ${universe}`)
    expect([Number(met?.['n']) > 0, Number(met?.['early'])]).toEqual([true, 0])
    for (const at of instants(full)) {
      const upTo = `SELECT * FROM ${universe} WHERE ts <= ${at}`
      expect(await differing(lake, at, `${upTo} AND ts >= ${start}`), at).toBe(0)
      await lake.run('SET VARIABLE registry_backfill = true')
      expect(await differing(lake, at, upTo), `backfilled as of ${at}`).toBe(0)
      await lake.run('SET VARIABLE registry_backfill = NULL')
    }
  }
}

async function macrosAgree(full: EveryViewLake, lake: Engine): Promise<void> {
  using shadow = await openShadow(lake)
  await shadow.run(`CREATE OR REPLACE TEMP VIEW asked AS ${decisions}`)
  for (const from of [...Object.values(joins), ...universes, coarse, `calendar('2026-02-01', '2026-03-01', '1 day')`]) {
    const real = await columnsOf(lake, from)
    const own = await columnsOf(shadow, from)
    expect(
      own.map(({ name }) => name),
      from,
    ).toEqual(real.map(({ name }) => name))
    const instant = (type: string): boolean => /^(?:TIMESTAMP|DATE)/.test(type)
    expect(
      own.map(({ type }) => instant(type)),
      from,
    ).toEqual(real.map(({ type }) => instant(type)))
  }
  const days = `SELECT * FROM calendar('2026-02-01', '2026-03-01', '1 day')`
  for (const at of instants(full)) expect(await differing(lake, at, days)).toBe(0)
}

async function revisedToldApart(full: EveryViewLake, lake: Engine): Promise<void> {
  const proved = async (from: string): Promise<boolean> => {
    const sql = `SELECT ts, v FROM calendar('2026-02-01', '2026-03-20', '1 day') JOIN ${from} AS p ON p.available_at <= ts`
    return (await argueFromPlan(lake, { sql, ts: 'ts', labels: [] })).proved
  }
  expect([await proved('points'), await proved('vintages')]).toEqual([false, true])
  const own = `SELECT v FROM points WHERE metric = '${metrics.revised}' AND available_at <= `
  let leaks = 0
  for (const at of instants(full)) leaks += await differing(lake, at, own + at)
  expect(leaks).toBeGreaterThan(0)
}

test('labels, joins and columns of real views and macros are as the proof assumes', async () => {
  await withEveryView(7, null, async (full) => {
    await withViews(full.root, async (lake) => {
      await lake.run(`CREATE OR REPLACE TEMP VIEW asked AS ${decisions}`)
      expect(instants(full).length).toBeGreaterThanOrEqual(3 * cuts)
      await labelsHold(full, lake)
      await joinsHold(full, lake)
      await macrosAgree(full, lake)
      await revisedToldApart(full, lake)
    })
  })
})
