// @module-tag full
// @module-tag slow
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { rulesOf } from '../../src/sources/points/datings.ts'
import { storedVersions } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { explainChange, type Explained } from '../../src/trust/results/explain-change.ts'
import { stamp } from '../../src/trust/results/stamp.ts'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { pitlake } from '../helpers/command.ts'
import { withLag } from '../helpers/lags.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { sample } from '../helpers/tiers.ts'
import { lateMetric as metric, thirtyProducts } from '../helpers/lakes/late-days-and-products.ts'
import { makeLake, seriesOf } from '../helpers/lakes/make-lake.ts'
import { makeViews, multiset, withViews } from '../helpers/views.ts'
import type { LakeCommit, PointRow } from '../helpers/lakes/lake-recipe.ts'
import { scratch } from '../helpers/scratch.ts'

const run = { sleep: async () => await Promise.resolve() }
const program = 'pitlake test'
const supply = 'supply/current_pit'
const day = 86_400_000
const at = (days: number, minutes = 0): string =>
  new Date(Date.UTC(2024, 0, 1) + days * day + minutes * 60_000).toISOString()

function point(asset: string, n: number, about: Partial<PointRow> = {}): PointRow {
  const own = catalogue.endpoints.get(about.metric ?? metric)?.defaults
  const { currency = null, exchange = null, network = null } = own ?? {}
  const v = 1000 + n + (asset === 'ETH' ? 500 : 0)
  return {
    metric,
    asset,
    interval: '24h',
    currency,
    exchange,
    network,
    t: at(n),
    available_at: at(n + 1, 10),
    v,
    ...about,
  }
}

const range = (from: number, until: number): number[] => Array.from({ length: until - from }, (_, n) => from + n)
const joined = (
  asset: string,
  hours: number,
): string => `WITH d AS (SELECT '${asset}' AS asset, ts + INTERVAL ${hours} MINUTE AS ts
  FROM calendar('2024-01-15', '2024-01-25', '1 day')) SELECT ts, v FROM pit_join('d', '${metric}', '24h') ORDER BY ts`

/** Queries of which each is touched by one commit alone. */
const queries = {
  late: joined('ETH', 0),
  redated: joined('BTC', 30),
  three: `SELECT asset, sum(v) AS total FROM points WHERE metric = '${metric}' AND t BETWEEN '2024-01-26' AND '2024-01-30' GROUP BY ALL ORDER BY ALL`,
  own: `-- reads as it likes
SET VARIABLE observed_as_of = '2030-01-01';
CREATE TEMP TABLE mine AS SELECT * FROM points WHERE metric = '${metric}' AND asset = 'ETH' AND t < '2024-01-22';
SELECT count(*) AS n FROM mine`,
  registry: `SELECT product_id, status FROM universe ORDER BY product_id`,
  ledger: `SELECT count(*) AS n FROM violations`,
  untouched: `SELECT sum(v) AS total FROM points WHERE metric = '${metric}' AND asset = 'BTC'`,
  currency: `WITH d AS (SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-03-01' AS ts) SELECT ts, v FROM pit_join('d', '${supply}', '24h')`,
} as const
type Name = keyof typeof queries

const home = scratch('explain')
let root: string
let clock = Date.UTC(2025, 5, 1)
/** The versions that the named steps made. */
const made = new Map<string, number>()

const tick = (): string => new Date((clock += 3_600_000)).toISOString()
const file = (name: Name): string => join(home, `${name}.parquet`)

async function head(): Promise<number> {
  using ledger = await Ledger.openToRead(root)
  return ledger.head().version
}

async function commitStep(step: Omit<LakeCommit, 'at'>, name?: string): Promise<void> {
  await makeLake(root, [{ at: tick(), ...step }])
  if (name !== undefined) made.set(name, await head())
}

async function noise(count: number): Promise<void> {
  for (const n of range(0, count))
    await commitStep({ points: [point('BTC', 100 + made.size * 10 + n, { metric: supply })] })
}

async function stampAll(): Promise<void> {
  for (const [name, query] of Object.entries(queries))
    await stamp({ root, catalogue, query, out: file(name as Name), variables: {} }, run, commitDeps())
}

function world() {
  clock += 3_600_000
  const deps = rewriteDeps()
  deps.clock.now = clock / 1000
  return deps
}

beforeAll(async () => {
  root = join(home, 'lake')
  const tables = thirtyProducts()
  const steps = (tables['history.products'] ?? []).map((step) => ({
    ...step,
    record: JSON.stringify({ id: step['id'], status: step['status'] }),
  }))
  const missing = (asset: string, n: number): boolean => asset === 'ETH' && (n === 20 || (n >= 25 && n <= 27))
  const first = ['BTC', 'ETH'].flatMap((asset) =>
    range(0, 40).flatMap((n) => (missing(asset, n) ? [] : [point(asset, n)])),
  )
  const both = ['native', 'usd'].map((currency, n) => point('BTC', 50, { metric: supply, currency, v: n }))
  await commitStep({ points: [...first, ...both], rules: rulesOf(catalogue) })
  await commitStep({ tables: { ...tables, 'history.products': steps } })
  await stampAll()
  await noise(3)
  await commitStep(
    { points: [point('ETH', 20, { available_at: at(21, 360), basis: 'observed' }), point('SOL', 20)] },
    'late',
  )
  await noise(2)
  await compact(root, world())
  await commitStep({ points: range(25, 28).flatMap((n) => [point('ETH', n), point('SOL', n)]) }, 'three')
  const offered = {
    series: seriesOf([point('BTC', 0)])[0]?.id ?? '',
    t: Date.parse(at(3)) / 1000,
    kind: 'changed',
    offered: '7',
    stored: '1003',
    stored_at: null,
    offered_at: 1,
    request: null,
  }
  await commitStep({ violations: [offered] }, 'rewritten')
  await noise(1)
  await redate(root, withLag(metric, 7200), world())
  made.set('redated', await head())
  await noise(2)
  const [product] = thirtyProducts()['history.products'] ?? []
  const changed = {
    ...product,
    id: 'p1',
    at: tick(),
    op: 'updated',
    status: 'retired',
    record: '{"id":"p1","status":"retired"}',
  }
  const fresh = { ...product, id: 'p77', at: changed.at, op: 'created', record: '{"id":"p77"}' }
  await commitStep({ tables: { 'history.products': [changed, fresh] } }, 'registry')
  await noise(2)
  const deps = world()
  await makeViews(root)
  const freed = await vacuum(
    { root, keepSeconds: 0, really: true },
    { ...deps, buildViews: async () => await makeViews(root) },
  )
  if (freed.data.files === 0) throw new Error('nothing was vacuumed')
  await makeViews(root)
}, 300_000)

/** What was asked before: each answer is looked at from several sides. */
const asked = new Map<string, Promise<Explained>>()

async function explain(name: Name, to: string | null = null): Promise<Explained> {
  const key = `${name} ${to ?? ''}`
  const answer = asked.get(key) ?? explainFresh(name, to)
  asked.set(key, answer)
  return await answer
}

async function explainFresh(name: Name, to: string | null): Promise<Explained> {
  return await explainChange({ root, from: file(name), to, program }, run)
}

/** What every version tells, through views that know nothing of stamps: the version and the rows. */
async function everyVersion(query: string): Promise<{ version: number; rows: string }[]> {
  using ledger = await Ledger.openToRead(root)
  return await withViews(root, async (engine) => {
    const told: { version: number; rows: string }[] = []
    for (const { version, committed_at } of storedVersions(ledger)) {
      await engine.run(`SET VARIABLE observed_as_of = make_timestamptz(${committed_at})`)
      told.push({ version, rows: JSON.stringify(multiset(await engine.rows(query))) })
    }
    return told
  })
}

const known = (points: Explained['points']): unknown[] =>
  points.map(({ asset, t, from, to }) => [asset, t.slice(0, 10), from?.available_at ?? null, to?.available_at ?? null])

describe('why a result changed', () => {
  test.each(sample(['late', 'redated', 'three', 'registry'] as const, 4))(
    '%s: explain finds the one commit in few runs, as trying every version does',
    async (name) => {
      const found = await explain(name)
      const told = await everyVersion(queries[name])
      const start = told.find(({ version }) => version === found.from.version)?.rows
      const { version = 0 } = found.commit ?? {}
      expect(found).toMatchObject({ verdict: 'explained', reason: null, text: null, minimal: true, notes: [] })
      expect(version).toBe(made.get(name))
      expect(
        told
          .filter((one) => one.version < version && one.version >= found.from.version)
          .every(({ rows }) => rows === start),
      ).toBe(true)
      expect(told.find((one) => one.version === version)?.rows).not.toBe(start)
      expect(found.runs).toBeLessThanOrEqual(Math.ceil(Math.log2(found.versions)) + 2)
      expect(found.commit).toMatchObject({ further: false, rules: name === 'redated' ? [metric] : [] })
    },
  )

  test('explain-change names the one point that makes the row, with its arrival', async () => {
    const found = await explain('late')
    expect(found.row).toEqual({ row: 9, column: 'v', from: '1519.0', to: '1520.0' })
    const [one, ...more] = found.points
    expect(more).toEqual([])
    expect(one).toMatchObject({ metric, asset: 'ETH', interval: '24h', t: '2024-01-21T00:00:00.000000Z', from: null })
    expect(one?.to).toMatchObject({ v: 1520, available_at: '2024-01-22T06:00:00.000000Z', basis: 'observed' })
    expect(Date.parse(one?.to?.observed_at ?? '') * 1000).toBe(found.commit?.committed_at)
  })

  test('explain-change names one redated point of a row, and every point of a sum', async () => {
    const redated = await explain('redated')
    expect(redated.row).toEqual({ row: 1, column: 'v', from: '1013.0', to: '1012.0' })
    expect(known(redated.points)).toEqual([
      ['BTC', '2024-01-14', '2024-01-15T00:10:00.000000Z', '2024-01-15T02:00:00.000000Z'],
    ])
    const three = await explain('three')
    expect(known(three.points).map((point) => (point as string[]).slice(0, 2))).toEqual([
      ['ETH', '2024-01-26'],
      ['ETH', '2024-01-27'],
      ['ETH', '2024-01-28'],
    ])
  })

  test('explain-change names a registry record with its changed field', async () => {
    const { records, points, row } = await explain('registry')
    expect(row).toMatchObject({ column: 'status', from: 'active', to: 'retired' })
    expect(points).toEqual([])
    expect(records).toMatchObject([
      {
        table: 'history.products',
        id: 'p1',
        what: 'updated',
        fields: [{ field: 'status', from: 'active', to: 'retired' }],
      },
    ])
  })

  test('a query that sets observed_as_of and makes tables sees no more than each version', async () => {
    const found = await explain('own')
    expect([found.commit?.version, found.row?.from, found.row?.to]).toEqual([made.get('late'), '20', '21'])
    expect(known(found.points)).toHaveLength(1)
  })

  test('a difference that no point makes is reported with its commit; equal results take few runs', async () => {
    const ledger = await explain('ledger')
    expect(ledger).toMatchObject({
      verdict: 'explained',
      commit: { version: made.get('rewritten') },
      points: [],
      records: [],
    })
    expect(ledger.notes).toHaveLength(1)
    const same = await explain('untouched')
    expect(same).toMatchObject({ verdict: 'same', commit: null, row: null, text: null })
    expect(same.runs).toBe(2)
  })

  test('two stamped results are compared in either order, two different queries are not', async () => {
    const out = join(home, 'late-b.parquet')
    await stamp({ root, catalogue, query: queries.late, out, variables: {} }, run, commitDeps())
    const [there, back] = [
      await explain('late', out),
      await explainChange({ root, from: out, to: file('late'), program }, run),
    ]
    expect([there.commit?.version, back.commit?.version, back.from.file]).toEqual([
      made.get('late'),
      made.get('late'),
      file('late'),
    ])
    const again = await explainChange({ root, from: out, to: out, program }, run)
    expect(again).toMatchObject({ verdict: 'same', runs: 0 })
    const other = await explain('late', file('three'))
    expect(other).toMatchObject({ verdict: 'other query', runs: 0, commit: null })
    expect(other.reason).toMatch(/^the queries differ in line 1: /)
  })

  test('explain-change prints the point, the commit and both values, and exits with 0', async () => {
    const { code, out, message } = await pitlake(home, ['explain-change', file('late'), '--data', root])
    expect([code, message]).toEqual([0, ''])
    const lines = out.split('\n').filter((line) => !line.startsWith('note: '))
    expect(lines[0]).toMatch(/^version 2 and now, version \d+: explained, \d runs? over \d+ commits?$/)
    expect(lines[1]).toMatch(new RegExp(`^version ${made.get('late')} changed it: fetch, 2025-06-01T\\d\\d:00:00Z, `))
    expect(lines[2]).toBe('row 9, v: 1519.0 -> 1520.0')
    expect(lines[3]).toBe('caused by these, none of which can be left out')
    expect(lines[4]).toMatch(
      /^ {2}addresses\/active_count_pit ETH 24h .*t=2024-01-21T00:00:00\.000000Z: not there -> 1520 known 2024-01-22T06:00:00\.000000Z \(observed\), came 2025-/,
    )
  })

  test('explain-change names a changed catalogue instead of a commit', async () => {
    const endpoint = catalogue.endpoints.get(supply)
    if (endpoint === undefined) throw new Error(supply)
    const usd = { ...endpoint, defaults: { ...endpoint.defaults, currency: 'usd' } }
    await makeViews(root, { catalogue: { ...catalogue, endpoints: new Map([...catalogue.endpoints, [supply, usd]]) } })
    try {
      const { verdict, text, commit } = await explain('currency')
      expect({ verdict, commit }).toEqual({ verdict: 'explained', commit: null })
      expect(text?.objects).toEqual(['pit_join'])
      expect(text?.catalogue).toContainEqual({ path: supply, field: 'default_currency', from: 'native', to: 'usd' })
    } finally {
      await makeViews(root)
    }
  })

  test('explain names exactly the metrics and assets of a commit that make the row, in few runs', async () => {
    const own = join(home, 'wide')
    const daily = [...catalogue.endpoints.values()].filter(({ intervals }) => intervals.includes('24h')).slice(0, 12)
    const day = (n: number): PointRow[] =>
      range(0, 8).flatMap((a) => daily.map(({ path }, m) => point(`A${a}`, n, { metric: path, v: n + a + m })))
    const query = `SELECT t, count(*) AS n, sum(v) AS total FROM points WHERE asset = 'A3' GROUP BY t ORDER BY t`
    await makeLake(own, [{ at: at(100), points: day(1) }])
    await makeViews(own)
    const from = join(home, 'wide.parquet')
    await stamp({ root: own, catalogue, query, out: from, variables: {} }, run, commitDeps())
    await makeLake(own, [{ at: at(101), points: day(2) }])
    await makeViews(own)
    const { points, minimal } = await explainChange({ root: own, from, to: null, program, tries: 120 }, run)
    expect(minimal).toBe(true)
    expect(points.map(({ metric: name, asset, t }) => `${name} ${asset} ${t}`).toSorted()).toEqual(
      daily.map(({ path }) => `${path} A3 2024-01-03T00:00:00.000000Z`).toSorted(),
    )
  })
})
