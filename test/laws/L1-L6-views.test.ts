import fc from 'fast-check'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Engine, quoteList } from '../../src/store/engine.ts'
import type { Interval } from '../../src/time.ts'
import { inFolder } from '../helpers/lakes.ts'
import {
  makeLake,
  makeViews,
  micros,
  multiset,
  type PointRow,
  type Step,
  withBareViews,
  withViews,
} from '../helpers/views.ts'

/** Views of the ledger obey only observed_as_of; the others are the data views. */
const ledgerViews = ['coverage', 'gaps', 'violations', 'clock_findings', 'requests', 'runs', 'versions']
const timeless = ['lake_info', 'endpoints']

const day = 86_400_000_000
const zero = micros('2024-01-01')
const instant = (at: number): string => {
  const text = new Date(Math.floor(at / 1000)).toISOString()
  return text.replace('Z', `${String(at % 1000).padStart(3, '0')}Z`)
}

/** A point of one of a few series, often late, sometimes backfilled; instants collide on purpose. */
const points = fc
  .record({
    series: fc.constantFrom(
      { metric: 'supply/current_pit', currency: 'usd' },
      { metric: 'supply/current_pit', currency: 'native' },
      { metric: 'm/o', currency: null },
    ),
    asset: fc.constantFrom('BTC', 'ETH'),
    interval: fc.constantFrom<Interval>('24h', '1month'),
    slot: fc.integer({ min: 0, max: 5 }),
    late: fc.constantFrom(0, 0, 0, 1, 40, 41, 400),
    backfilled: fc.boolean(),
    v: fc.constantFrom(0, 1, 2.5, -3, null),
    o: fc.constantFrom('{"a":1,"b":null}', '{"a":{"x/y":[1,null,"t"]}}', '[1,[2]]', '{}'),
    step: fc.integer({ min: 0, max: 3 }),
  })
  .map(({ series, asset, interval, slot, late, backfilled, v, o, step }) => {
    const t = interval === '24h' ? zero + slot * day : Date.UTC(2024, slot, 1) * 1000
    const end = interval === '24h' ? t + day : Date.UTC(2024, slot + 1, 1) * 1000
    const rule = end + 600_000_000
    const object = series.metric === 'm/o'
    const row: PointRow = {
      ...series,
      asset,
      interval,
      t: instant(t),
      available_at: instant(rule + late * day),
      available_rule_at: instant(backfilled ? rule : rule + late * day),
      v: object ? null : v,
      o: object ? o : null,
      basis: late === 0 ? 'assumed' : 'provider',
    }
    return { row, step }
  })

const key = ({ row }: { row: PointRow }): string => [row.metric, row.currency, row.asset, row.interval, row.t].join(' ')
const lakes = fc.uniqueArray(points, { selector: key, minLength: 8, maxLength: 40 })
const commitAt = (step: number): number => zero + (10 + step * 50) * day + step

const listed = (id: string, step: number): Readonly<Record<string, unknown>> => ({
  id,
  symbol: `${id}${step}`,
  addresses: null,
  record: '{}',
})

function stepsOf(all: readonly { row: PointRow; step: number }[], until: number): Step[] {
  const times = [0, 1, 2, 3].filter((step) => commitAt(step) <= until)
  return times.map((step) => {
    const rows = all.filter((point) => point.step === step).map(({ row }) => row)
    const request = `r${step}`
    const series = { id: 'm/z|X|24h||||', metric: 'm/z', asset: 'X', interval: '24h', settled: '24h' } as const
    const asked_at = Math.floor(commitAt(step) / 1_000_000) - 1
    const window = { series: series.id, since: step * 86_400, until: (step + 2) * 86_400, asked_at, request }
    return {
      at: instant(commitAt(step)),
      points: rows,
      tables: {
        metric_assets: [listed('BTC', step), ...(step === 2 ? [listed('ETH', step)] : [])],
        ...(step === 0 && { snapshots: [{ snapshot_date: '2024-01-11', resource: 'products', base: 'b', rows: 2 }] }),
        'history.products': productsOf(step),
      },
      draft: {
        series: [{ ...series, currency: null, exchange: null, network: null, params: {} }],
        coverage: [{ ...window, state: 'covered' as const, reason: step % 2 === 0 ? 'gap' : null }],
        violations: [
          {
            series: series.id,
            t: step,
            kind: 'value',
            stored: '1',
            offered: '2',
            stored_at: 1,
            offered_at: 2,
            request,
          },
        ],
        findings: [{ series: series.id, t: step, kind: 'before_end', detail: null, at: 1 }],
        requests: [requestRow(request, asked_at * 1_000_000)],
      },
    }
  })
}

/** Two products, one that changes its symbol, is deleted and stays away. */
function productsOf(step: number): Readonly<Record<string, unknown>>[] {
  const row = { closed_by: null, inferred: false, record: '{}', op: step === 0 ? 'snapshot' : 'updated' }
  const changing = { ...row, id: 'p1', symbol: step === 1 ? 'BTC0' : 'BTC3' }
  if (step === 0) return [changing, { ...row, id: 'p2', symbol: 'ETH2' }]
  return step === 2 ? [{ ...changing, op: null, closed_by: 'deleted', record: null }] : [changing]
}

function requestRow(id: string, asked_at: number) {
  const none = {
    series: null,
    since: null,
    until: null,
    points: null,
    bytes: null,
    credits: null,
    seconds: null,
    detail: null,
  }
  const api = 'metrics' as const
  return { ...none, id, run: 'run', api, path: '/p', query: {}, status: 200, outcome: 'body', attempts: 1, asked_at }
}

async function readViews(engine: Engine, names: readonly string[]): Promise<Record<string, string[]>> {
  const rows: Record<string, string[]> = {}
  for (const name of names) {
    const hidden = name === '"versions"' ? ' EXCLUDE (digest)' : ''
    rows[name] = multiset(await engine.rows(`SELECT *${hidden} FROM ${name}`))
  }
  return rows
}

async function viewNames(engine: Engine, left: readonly string[]): Promise<string[]> {
  const rows = await engine.rows<{ name: string }>(
    `SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || '"' || view_name || '"' AS name
     FROM duckdb_views() WHERE NOT internal AND NOT list_contains(${quoteList(left)}, view_name) ORDER BY 1`,
  )
  return rows.map((row) => row.name)
}

/** How many instants a run cuts lakes at, six a lake; more by the environment. */
const instants = Number(process.env['PITLAKE_CUTS'] ?? 12)
const perLake = Math.min(6, instants)

test('TIME 52: as_of = T answers like a lake that holds only what was knowable by T', async () => {
  await fc.assert(
    fc.asyncProperty(
      lakes,
      fc.array(fc.nat(), { minLength: perLake, maxLength: perLake }),
      fc.boolean(),
      async (all, picks, rule) => {
        const known = ({ row }: { row: PointRow }): number =>
          micros((rule && row.available_rule_at) || row.available_at)
        const moments = all.flatMap((point) => [known(point) - 1, known(point), known(point) + 1])
        await inFolder(async (root) => {
          const whole = join(root, 'whole')
          await makeLake(whole, stepsOf(all, Number.POSITIVE_INFINITY))
          await makeViews(whole)
          for (const [index, pick] of picks.entries()) {
            const at = moments[pick % moments.length] ?? 0
            const cut = join(root, `cut-${index}`)
            const steps = stepsOf(
              all.filter((point) => known(point) <= at),
              Number.POSITIVE_INFINITY,
            )
            // The listing of assets is known from the poll that brought it.
            await makeLake(
              cut,
              steps.map((step) => (micros(step.at) <= at ? step : { ...step, tables: {} })),
            )
            const backfill = `SET VARIABLE backfill = '${rule ? 'rule' : 'strict'}'`
            const [seen, expected] = [
              await withViews(whole, async (engine) => {
                await engine.run(`${backfill}; SET VARIABLE as_of = '${instant(at)}'`)
                return await readViews(engine, await viewNames(engine, [...ledgerViews, ...timeless]))
              }),
              await withBareViews(cut, whole, async (engine) => {
                await engine.run(backfill)
                return await readViews(engine, await viewNames(engine, [...ledgerViews, ...timeless]))
              }),
            ]
            expect(seen).toEqual(expected)
          }
        })
      },
    ),
    { numRuns: Math.ceil(instants / perLake), endOnFailure: true },
  )
}, 600_000)

test('TIME 53: observed_as_of = T answers what the newest version committed by T held', async () => {
  await fc.assert(
    fc.asyncProperty(
      lakes,
      fc.integer({ min: 0, max: 3 }),
      fc.constantFrom(0, 1, 1_000_000),
      async (all, step, later) => {
        const at = commitAt(step) + later
        await inFolder(async (root) => {
          const [whole, then] = [join(root, 'whole'), join(root, 'then')]
          await makeLake(whole, stepsOf(all, Number.POSITIVE_INFINITY))
          await makeLake(then, stepsOf(all, at))
          await makeViews(whole)
          await makeViews(then)
          const seen = await withViews(whole, async (engine) => {
            await engine.run(`SET VARIABLE observed_as_of = '${instant(at)}'`)
            return await readViews(engine, await viewNames(engine, timeless))
          })
          const expected = await withViews(
            then,
            async (engine) => await readViews(engine, await viewNames(engine, timeless)),
          )
          expect(seen).toEqual(expected)
        })
      },
    ),
    { numRuns: 2, endOnFailure: true },
  )
}, 600_000)
