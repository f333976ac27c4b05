import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  measureMemory,
  prepareHoles,
  runHoles,
  strayInstants,
  suspectStates,
  unmovedStates,
} from '../../src/trust/lookahead/masked-intervals.ts'
import {
  chooseStates,
  instantsOf,
  numberStates,
  rowlessInstants,
  type States,
} from '../../src/trust/lookahead/knowledge-states.ts'
import { hiddenWorld, querySubject, seesWorlds } from '../../src/trust/lookahead/world.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { betweenEdges } from '../../src/query/views/template.ts'
import { seeded } from '../helpers/random.ts'
import { temporaryFolder } from '../helpers/folders.ts'

/*
 * Which decisions of a query stand on the same knowledge, and where a proof looks for a leak: with few points by hand,
 * since over a whole lake a bad choice still finds most leaks.
 */

let session: Engine
beforeEach(async () => {
  session = await Engine.open(':memory:', { threads: 1 })
  await session.run(`SET TimeZone = 'UTC'; SET VARIABLE proof_hidden = NULL;
    CREATE TABLE endpoints (metric VARCHAR); INSERT INTO endpoints VALUES ('m/a'), ('m/b');
    CREATE TABLE stored (metric VARCHAR, asset VARCHAR, "interval" VARCHAR, currency VARCHAR, exchange VARCHAR,
      network VARCHAR, t TIMESTAMPTZ, available_at TIMESTAMPTZ, v DOUBLE, o VARCHAR);
    CREATE VIEW points AS FROM stored WHERE getvariable('proof_hidden') IS NULL
      OR len(list_filter(CAST(getvariable('proof_hidden') AS BIGINT[]), lambda edge: edge < epoch_us(available_at))) % 2 = 0`)
})
afterEach(() => session.close())

interface Point {
  readonly metric?: string
  readonly asset?: string
  readonly interval?: string
  readonly currency?: string
  readonly exchange?: string
  readonly network?: string
  readonly t?: string
  readonly available: string
  readonly v?: number | null
  readonly o?: string
}

async function store(points: readonly Point[]): Promise<void> {
  if (points.length === 0) return
  const rows = points.map(({ metric = 'm/a', asset = 'BTC', interval = '24h', t, available, v = 1, ...own }) =>
    [metric, asset, interval, own.currency, own.exchange, own.network, t ?? available, available, v, own.o]
      .map((one) => (one === undefined || one === null ? 'NULL' : `'${one}'`))
      .join(', '),
  )
  await session.run(`INSERT INTO stored VALUES ${rows.map((row) => `(${row})`).join(', ')}`)
}

/** The result of a query, as far as its instants are concerned. */
async function decide(instants: readonly (string | null)[]): Promise<void> {
  const rows = instants.map((at) => (at === null ? '(NULL)' : `('${at}')`))
  await session.run(`CREATE OR REPLACE TEMP TABLE proof_full AS
    SELECT CAST(ts AS TIMESTAMPTZ) AS ts FROM (VALUES ${rows.join(', ')}) AS d (ts)`)
}

const exactly = (h: number): string => hour(h).replace('Z', '.000000Z')
const before = (h: number): string => hour(h - 1).replace(':00:00Z', ':59:59.999999Z')
const hour = (h: number): string => `2024-03-01T${String(h).padStart(2, '0')}:00:00Z`

describe('states', () => {
  test('instants between two arrivals of the named series are one state, and an arrival counts at its instant', async () => {
    await store([...[10, 12, 12, 15].map((h) => ({ available: hour(h) })), { metric: 'm/b', available: hour(13) }])
    await decide([hour(9), hour(10), hour(11), hour(12), hour(14), hour(14), null, hour(15), hour(16)])
    expect(await numberStates(querySubject(session, `FROM points WHERE metric = 'm/a'`), 'ts')).toMatchObject({
      count: 4,
      polls: null,
    })
    const rows = await session.rows('SELECT instant, n, last FROM proof_state ORDER BY instant')
    const states = [
      [9, 0, before(10)],
      [10, 1, before(12)],
      [11, 1, before(12)],
      [12, 2, before(15)],
      [14, 2, before(15)],
      [15, 3, exactly(16)],
      [16, 3, exactly(16)],
    ] as const
    // A row that the next arrival takes away would stand up to right before it.
    expect(rows.map(({ instant, n, last }) => [instant, Number(n), last])).toEqual(
      states.map(([at, n, last]) => [exactly(at), n, last]),
    )
    expect(await instantsOf(session, [2, 1])).toEqual([before(12), before(15)])
    // Where no metric is named, all are.
    expect(await numberStates(querySubject(session, 'FROM points'), 'ts')).toMatchObject({ count: 5, polls: null })
  })

  test('without rows only the end of a known range is tried, also before the first arrival and after the last row', async () => {
    await store([2, 4, 6, 8, 10, 12].map((h) => ({ available: hour(h) })))
    await store([{ available: '2024-03-01T06:00:01Z' }])
    await decide([hour(3), hour(8), hour(9)])
    await numberStates(querySubject(session, 'FROM points'), 'ts')
    // A second between two arrivals is not worth a run.
    const every = await rowlessInstants(session, 9)
    const two = await rowlessInstants(session, 2)
    expect(every).toEqual({ tried: [2, 6, 8, 12].map(before), all: 4 })
    expect(two).toEqual({ tried: [2, 12].map(before), all: 4 })
    expect(await rowlessInstants(session, 0)).toEqual({ tried: [], all: 4 })
  })

  test('of very many arrivals those around the rows give the same states, and no other end is tried', async () => {
    const random = seeded(7)
    const second = (most: number): string =>
      new Date(Date.UTC(2024, 2, 1) + Math.floor(random() * most) * 1000).toISOString()
    for (let round = 0; round < 20; round++) {
      await session.run('DELETE FROM stored')
      await store(Array.from({ length: 40 }, () => ({ available: second(round % 2 === 0 ? 86_400 : 60) })))
      await decide(Array.from({ length: 6 }, () => second(round % 2 === 0 ? 86_400 : 60)))
      const found = async (most?: number) => {
        const { count } = await numberStates(querySubject(session, 'FROM points'), 'ts', most)
        const rows = await session.rows('SELECT instant, n, last FROM proof_state ORDER BY instant')
        const kept = await session.rows('FROM proof_moment')
        return { told: { count, rows }, rowless: (await rowlessInstants(session, 99)).tried, kept: kept.length }
      }
      const whole = await found()
      // Right before an arrival, and no row since the one before that.
      const empty = await session.rows<{ last: string }>(`SELECT DISTINCT until - INTERVAL 1 MICROSECOND AS last FROM (
          SELECT a.available_at AS until, max(b.available_at) AS since FROM stored a LEFT JOIN stored b ON b.available_at < a.available_at GROUP BY 1)
        WHERE NOT EXISTS (FROM proof_full WHERE ts < until AND (since IS NULL OR ts >= since))`)
      for (const most of [1, 8, 39]) {
        const few = await found(most)
        expect(few.told).toEqual(whole.told)
        expect(few.kept).toBeLessThanOrEqual(whole.kept + Math.ceil(most / 4) + 1)
        expect(empty.map(({ last }) => last)).toEqual(expect.arrayContaining([...few.rowless]))
      }
    }
  })

  test('arrivals of an interval that every scan filters out do not count', async () => {
    await store([hour(10), hour(12)].map((available) => ({ available })))
    await store([hour(9), hour(11), hour(13)].map((available) => ({ available, interval: '1h' })))
    await decide([8, 9, 10, 11, 12, 13, 14].map(hour))
    using place = temporaryFolder('states')
    const folder = place.path
    await session.run(`COPY stored TO '${folder}/whole.parquet';
      COPY stored TO '${folder}/parts' (FORMAT parquet, PARTITION_BY ("interval"))`)
    for (const [from, typed] of [['whole.parquet'], ['parts/*/*.parquet', ', hive_types = {"interval": VARCHAR}']]) {
      await session.run(`CREATE OR REPLACE VIEW points AS FROM read_parquet('${folder}/${from}'${typed ?? ''})`)
      const states = async (sql: string): Promise<number> =>
        (await numberStates(querySubject(session, sql), 'ts')).count
      expect(await states(`SELECT v FROM points WHERE metric = 'm/a' AND "interval" = '24h'`), from).toBe(3)
      expect(await states(`SELECT v FROM points WHERE metric = 'm/a'`), from).toBe(6)
      const both = `SELECT a.v FROM points a, points b WHERE a.metric = 'm/a' AND a."interval" = '24h' AND b."interval" = '1h'`
      expect(await states(both), from).toBe(6)
    }
  })

  test('each instant is a state apart, in order, if the registry is read', async () => {
    await store([{ available: hour(10) }])
    await session.run(`CREATE SCHEMA history; CREATE SCHEMA other;
      CREATE VIEW history.products AS SELECT TIMESTAMPTZ '2024-03-01 11:00:00+00' AS valid_from;
      CREATE VIEW history.issuers AS SELECT TIMESTAMPTZ '2024-03-01 13:00:00+00' AS valid_from;
      CREATE VIEW other.venues AS SELECT TIMESTAMPTZ '2024-03-01 14:00:00+00' AS valid_from;
      CREATE VIEW universe AS SELECT getvariable('registry_backfill') AS assumed;
      CREATE MACRO pit_universe(x) AS TABLE SELECT getvariable('registry_backfill') AS assumed, x AS x;
      CREATE VIEW metric_assets AS SELECT getvariable('registry_backfill') AS assumed`)
    await decide([hour(12), hour(9), hour(10), null, hour(12), hour(15)])
    const every =
      'SELECT valid_from AS moment FROM history."issuers" UNION SELECT valid_from AS moment FROM history."products"'
    for (const sql of ['FROM universe', `FROM pit_universe(1)`])
      expect(await numberStates(querySubject(session, sql), 'ts')).toMatchObject({ count: 4, polls: every })
    const rows = await session.rows('SELECT instant, n, last FROM proof_state ORDER BY instant')
    expect(rows.map(({ n }) => Number(n))).toEqual([0, 1, 2, 3])
    // No point is read: the polls at 11 and 13, and the next decision, end what is known at one.
    expect(rows.map(({ last }) => last)).toEqual([before(10), before(11), before(13), exactly(15)])
    expect(await numberStates(querySubject(session, 'FROM history.products'), 'ts')).toMatchObject({
      polls: 'SELECT valid_from AS moment FROM history."products"',
    })
    for (const sql of ['FROM points', 'WITH products AS (FROM points) FROM products'])
      expect(await numberStates(querySubject(session, sql), 'ts')).toMatchObject({ polls: null })
  })
})

/**
 * A hundred instants on a day and on the next but one, in between a single one, the fifty-first; at each a point
 * arrives. Evenly chosen are those that three divides, so that a place of `3k + 2` and the one before it are chosen for
 * their own sake.
 */
async function hundred(middle: string, besides: Readonly<Record<number, Point>> = {}) {
  const day = Date.parse(`${middle}T12:00:00Z`)
  const places = Array.from({ length: 100 }, (_, n) => {
    const by = n === 50 ? 0 : (n < 50 ? -86_400_000 : 86_400_000) + n * 60_000
    return new Date(day + by).toISOString()
  })
  await decide(places)
  await store(places.flatMap((available, n) => (besides[n] ? [] : [{ available }])))
  await store(Object.entries(besides).map(([n, point]) => ({ ...point, available: places[Number(n)] ?? '' })))
  return { places, states: await numberStates(querySubject(session, `FROM points WHERE metric = 'm/a'`), 'ts') }
}

const chosen = async (states: States, order: 'even' | 'days' = 'even'): Promise<readonly number[]> =>
  await chooseStates(session, states, 34, order)

describe('choice', () => {
  const plain = '2024-05-07'

  test('without special points the last state and evenly spread ones are chosen, or all of few', async () => {
    const { states } = await hundred(plain)
    const found = await chosen(states)
    expect(found).toHaveLength(34)
    expect(found).toEqual(Array.from({ length: 34 }, (_, n) => 3 * n))
    expect(await chooseStates(session, states, 100, 'even')).toEqual(Array.from({ length: 100 }, (_, n) => n))
    expect(await chooseStates(session, states, 1, 'even')).toEqual([99])
  })

  test.each(['2024-05-09', '2024-06-15', '2024-05-28'])(
    'the middle of weeks and months and their end: %s',
    async (day) => {
      const { states } = await hundred(day)
      expect(await chosen(states)).toEqual(expect.arrayContaining([49, 50, 99]))
    },
  )

  test('a state in which a point without any value arrives is chosen with the one before; an object is a value', async () => {
    const { states } = await hundred(plain, { 20: { available: '', v: null }, 65: { available: '', v: null, o: '{}' } })
    const found = await chosen(states)
    expect(found).toEqual(expect.arrayContaining([19, 20]))
    expect([found.includes(64), found.includes(65)]).toEqual([false, false])
  })

  test('states before the first arrival are not chosen', async () => {
    const { states } = await hundred(plain, { 0: { available: '', v: null } })
    expect((await chosen(states))[0]).toBe(0)
  })

  test('a state in which a point arrives after a newer one of its series is chosen', async () => {
    const old = '2020-01-01T00:00:00Z'
    const others = ['asset', 'interval', 'currency', 'exchange', 'network'].map((name) => ({ [name]: 'other' }))
    const of = Object.fromEntries(
      others.map((own, n) => [[53, 62, 71, 80, 89][n] ?? 0, { ...own, t: old, available: '' }]),
    )
    const tied = ['2024-05-08T18:00:00Z', '2024-05-08T17:00:00Z']
    const { states } = await hundred(plain, { ...of, 35: { t: old, available: '' } })
    // Two that come together are in the order of what they are about.
    await store(tied.map((t) => ({ asset: 'tied', t, available: '2024-05-08T13:50:00Z' })))
    expect(await chosen(states)).toEqual(expect.arrayContaining([34, 35]))
  })

  test('states at polls of the registry are chosen at their exact instants', async () => {
    const { places, states } = await hundred(plain)
    const polls = [20, 80].map((n) => `SELECT TIMESTAMPTZ '${places[n]}' AS moment`).join(' UNION ')
    expect(await chosen({ ...states, polls })).toEqual(expect.arrayContaining([19, 20, 79, 80]))
  })

  test('states are chosen so that every day of the month and its end occur', async () => {
    const days = Array.from({ length: 366 }, (_, n) => new Date(Date.UTC(2024, 0, 1 + n)).toISOString())
    await decide(days)
    await store(days.map((available) => ({ available })))
    const states = await numberStates(querySubject(session, 'FROM points'), 'ts')
    const found = await chooseStates(session, states, 60, 'days')
    const dates = found.map((n) => new Date(Date.UTC(2024, 0, 1 + n)))
    const isLast = (date: Date): boolean => new Date(date.getTime() + 86_400_000).getUTCDate() === 1
    const told = new Set(dates.map((date) => (isLast(date) ? 'end' : date.getUTCDate())))
    expect(told).toEqual(new Set(['end', ...Array.from({ length: 30 }, (_, n) => n + 1)]))
  })
})

/** Forty hourly decisions, each by the points that arrived by then. */
async function forty(value: string): Promise<Parameters<typeof prepareHoles>[0]> {
  const hours = Array.from({ length: 40 }, (_, n) => new Date(Date.UTC(2024, 2, 1, n)).toISOString())
  await store(hours.map((available, n) => ({ available, v: n + 1 })))
  await session.run(`CREATE TABLE d AS SELECT unnest([${hours.map((at) => `TIMESTAMPTZ '${at}'`).join(', ')}]) AS ts`)
  const query = `SELECT d.ts, (SELECT ${value} AS v FROM points AS p WHERE p.available_at <= d.ts) AS v FROM d`
  await session.run(`CREATE TEMP TABLE proof_full AS ${query}`)
  await numberStates(querySubject(session, query), 'ts')
  const columns = ['ts', 'v'].map((name) => ({ name, type: '', label: false, ts: name === 'ts' }))
  const probe = { subject: querySubject(session, query), columns, at: 'ts' }
  await prepareHoles(probe)
  return probe
}

async function moved(): Promise<readonly (readonly number[])[]> {
  const rows = await session.rows('SELECT run, n, p FROM proof_moved ORDER BY run, n')
  return rows.map(({ run, n, p }) => [Number(run), Number(n), Number(p)])
}

describe('holes', () => {
  const lastThree = 'sum(p.v) FILTER (p.available_at > d.ts - INTERVAL 3 HOUR)'

  test('views without proof_hidden report that nothing can be hidden', async () => {
    expect(await seesWorlds(session)).toEqual({ hidden: true, changed: false })
    using other = await Engine.open()
    await other.run('CREATE VIEW points AS SELECT 1 AS v')
    expect(await seesWorlds(other)).toEqual({ hidden: false, changed: false })
  })

  test('an honest query moves behind each hole for as long as it remembers, and nowhere else', async () => {
    const probe = await forty(lastThree)
    await runHoles(probe, { every: 10, run: 4, world: hiddenWorld })
    expect(await moved()).toEqual([4, 14, 24, 34].flatMap((at) => [1, 2, 3].map((p) => [4, at + p, p])))
    await prepareHoles(probe)
    await runHoles(probe, { every: 10, run: 9, world: hiddenWorld })
    expect(await moved()).toEqual([9, 19, 29].flatMap((at) => [1, 2, 3].map((p) => [9, at + p, p])))
    expect(await session.rows(`SELECT getvariable('proof_hidden') AS hidden`)).toEqual([{ hidden: null }])
    await prepareHoles(probe)
    expect(await measureMemory(probe, 40, hiddenWorld)).toBe(3)
    expect(await moved()).toEqual([1, 2, 3].map((p) => [20, 20 + p, p]))
  })

  test('a query that looks a step ahead changes right before a hole, even if a row disappears or appears', async () => {
    const ahead = `max(p.v) + coalesce((SELECT max(v) FROM points AS q WHERE d.ts = '2024-03-01 14:00:00+00'
      AND q.available_at = d.ts + INTERVAL 1 HOUR), 0)`
    const probe = await forty(ahead)
    for (const run of [3, 4]) await runHoles(probe, { every: 10, run, world: hiddenWorld })
    expect((await moved()).filter(([, , p]) => p === 0)).toEqual([[4, 14, 0]])
    expect([...(await unmovedStates(session, 16))]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15])
    expect(await suspectStates(session, 40, 5)).toEqual([14])
  })

  test('rows that exist only while points are hidden are reported in whatever state', async () => {
    const probe = await forty('max(p.v)')
    const sql = `${probe.subject.text} WHERE NOT EXISTS (FROM points AS p WHERE p.available_at = d.ts + INTERVAL 1 HOUR)`
    await session.run(`CREATE OR REPLACE TEMP TABLE proof_full AS ${sql}`)
    const other = { ...probe, subject: querySubject(session, sql) }
    await numberStates(other.subject, 'ts')
    await prepareHoles(other)
    await runHoles(other, { every: 2, run: 1, world: hiddenWorld })
    expect(await strayInstants(session)).toEqual([])
    await runHoles(other, { every: 2, run: 0, world: () => ({ proof_hidden: `[${Date.UTC(2024, 2, 1, 5) * 1000}]` }) })
    expect((await strayInstants(session))[0]).toBe(exactly(5))
  })

  test('suspects: right before a hole first, then the rarest, then those farthest behind; what most do is no reason', async () => {
    await prepareHoles(await forty(lastThree))
    const rows = [
      // Of twenty states every third moves one behind a hole, as an honest query does; what follows it remembers.
      ...[0, 3, 6, 9, 12, 15].map((n) => [0, n + 1, 1]),
      // Two behind a hole without the one before; one of them twice; remembered ones are no start.
      [1, 3, 2],
      [2, 10, 2],
      [2, 11, 3],
      // Alone of their kind, far behind; and one right before a hole, of which there are more.
      [1, 9, 8],
      [4, 9, 4],
      [1, 7, 6],
      [1, 18, 5],
      [2, 16, 0],
      [1, 5, 0],
      [3, 19, 0],
      [3, 1, 0],
      [4, 2, 0],
      [4, 12, 0],
    ]
    await session.run(`INSERT INTO proof_moved VALUES ${rows.map((row) => `(${row.join(', ')})`).join(', ')}`)
    const found = await suspectStates(session, 20, 20)
    expect(found).toEqual([1, 2, 5, 12, 16, 19, 9, 7, 18, 3, 10])
    expect(await suspectStates(session, 20, 3)).toEqual([1, 2, 5])
    expect([...(await unmovedStates(session, 6))]).toEqual([0, 3, 4])
  })
})

test('whatever stands at an edge is before it: by halves as by counting, for every number of edges', async () => {
  const behind = betweenEdges('edges', 'make_timestamptz(CAST(moment AS BIGINT))')
  for (const n of [...Array(18).keys(), 334]) {
    const edges = Array.from({ length: n }, (_, i) => 1_700_000_000_000_000 + 7 * i * i)
    const instants = [...new Set([1_600_000_000_000_000, ...edges.flatMap((edge) => [edge - 1, edge, edge + 1])])]
    const odd = instants.map((at) => edges.filter((edge) => edge < at).length % 2 === 1)
    await session.run(`SET VARIABLE edges = '[${edges.join(', ')}]'`)
    const values = [...instants, 'NULL'].map((at) => `(${at})`).join(', ')
    const rows = await session.rows(`SELECT ${behind} AS told FROM (VALUES ${values}) AS v (moment)`)
    expect(
      rows.map(({ told }) => told),
      `${n} edges`,
    ).toEqual([...odd, false])
  }
})
