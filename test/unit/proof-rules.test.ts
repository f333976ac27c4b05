import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Argument, argueFromPlan } from '../../src/query/proof/prove.ts'
import type { Engine } from '../../src/store/engine.ts'
import { bareLake } from '../helpers/bare-lake.ts'

let lake: Engine
beforeAll(async () => {
  lake = await bareLake()
})
afterAll(() => lake.close())

const grid = `WITH d AS (SELECT ts, asset FROM calendar('2024-02-01', '2024-10-01', INTERVAL 1 DAY), (VALUES ('BTC'), ('ETH')) a (asset)),
  j AS (FROM pit_join('d', 'm', '24h')),
  n AS (SELECT ts, CASE WHEN v > 1 THEN asset END AS asset, v FROM j)`

async function argued(sql: string, labels: readonly string[] = []): Promise<Argument> {
  return await argueFromPlan(lake, {
    sql: /^(?:SELECT|FROM) .*\b[djn]\b/s.test(sql) ? `${grid} ${sql}` : sql,
    ts: 'ts',
    labels,
  })
}

/** A rule, a query that it proves, its twin that looks ahead, and what is said to stand in the way there. */
const rules: readonly (readonly [rule: string, honest: string, leak: string, obstacle: RegExp])[] = [
  [
    'a dated view',
    'SELECT available_at AS ts, v FROM points',
    'SELECT t AS ts, v FROM points',
    /known at available_at/,
  ],
  [
    'a version',
    'SELECT valid_from AS ts, status FROM history.products',
    'SELECT valid_from AS ts, valid_to FROM history.products',
    /next version/,
  ],
  [
    'what ended a version',
    'SELECT valid_from AS ts, op FROM history.products',
    'SELECT valid_from AS ts, closed_by FROM history.products',
    /next version/,
  ],
  ['a state', 'SELECT ts, metric FROM d, endpoints', 'SELECT ts, status FROM d, products', /state as it is now/],
  [
    'events',
    'SELECT polled_at AS ts, op FROM registry_events',
    `SELECT polled_at - INTERVAL 1 HOUR AS ts, op FROM registry_events`,
    /polled_at/,
  ],
  [
    'whole coarse points',
    `SELECT available_at AS ts, v FROM resample('m', '24h', '1w') WHERE complete`,
    `SELECT available_at AS ts, v FROM resample('m', '24h', '1w')`,
    /lacks parts/,
  ],
  [
    'coarse points that are joined',
    `SELECT d.ts, r.v FROM d JOIN resample('m', '24h', '1w') r ON r.available_at <= d.ts WHERE r.complete`,
    `SELECT d.ts, r.v FROM d JOIN resample('m', '24h', '1w') r ON r.available_at <= d.ts WHERE NOT r.complete`,
    /lacks parts/,
  ],
  [
    'a later instant',
    'SELECT available_at + INTERVAL 1 DAY AS ts, v FROM points',
    'SELECT available_at - INTERVAL 1 DAY AS ts, v FROM points',
    /available_at/,
  ],
  [
    'a distance as text',
    `SELECT available_at + INTERVAL '2 hours' AS ts, v FROM points`,
    `SELECT available_at + INTERVAL '-2 hours' AS ts, v FROM points`,
    /available_at/,
  ],
  [
    'a negative distance',
    'SELECT available_at - to_days(-1) AS ts, v FROM points',
    'SELECT available_at + to_days(-1) AS ts, v FROM points',
    /available_at/,
  ],
  [
    'the next midnight',
    `SELECT date_trunc('day', available_at) + INTERVAL 1 DAY AS ts FROM points`,
    `SELECT date_trunc('day', available_at) AS ts FROM points`,
    /available_at/,
  ],
  [
    'the next hour, not of a day',
    `SELECT date_trunc('hour', available_at) + to_hours(1) AS ts FROM points`,
    `SELECT date_trunc('day', available_at) + to_hours(1) AS ts FROM points`,
    /available_at/,
  ],
  [
    'a date',
    'SELECT CAST(available_at AS DATE) + 1 AS ts FROM points',
    'SELECT CAST(available_at AS DATE) AS ts FROM points',
    /available_at/,
  ],
  [
    'a zone-less instant',
    `SELECT timezone('UTC', available_at) AS ts FROM points`,
    `SELECT timezone('Asia/Tokyo', available_at) AS ts FROM points`,
    /available_at/,
  ],
  [
    'the later of two',
    `SELECT greatest(available_at, t) AS ts FROM points`,
    `SELECT least(available_at, t) AS ts FROM points`,
    /available_at/,
  ],
  [
    'the later of two that may be NULL',
    `SELECT greatest(available_at, observed_at) AS ts FROM points`,
    `SELECT greatest(t, observed_at) AS ts FROM points WHERE available_at <= observed_at OR v > 1`,
    /available_at/,
  ],
  [
    'an instant that is never NULL',
    `SELECT coalesce(available_at, t) AS ts FROM points`,
    `SELECT coalesce(observed_at, available_at) AS ts FROM points`,
    /available_at/,
  ],
  [
    'CASE',
    'SELECT ts, CASE WHEN v > 1 THEN v END AS v FROM j',
    'SELECT available_at AS ts, CASE WHEN v > 1 THEN (SELECT max(v) FROM points) END AS v FROM points',
    /aggregate without/,
  ],
  [
    'a filter',
    'SELECT ts, v FROM j WHERE v > 2',
    'SELECT ts, v FROM j WHERE v > (SELECT avg(v) FROM points)',
    /aggregate without/,
  ],
  [
    'a condition between',
    'SELECT d.ts, p.v FROM d JOIN points p ON p.available_at BETWEEN d.ts - INTERVAL 3 DAY AND d.ts',
    'SELECT d.ts, p.v FROM d JOIN points p ON p.t BETWEEN d.ts - INTERVAL 3 DAY AND d.ts',
    /available_at/,
  ],
  [
    'a condition that is not sure',
    'SELECT d.ts, p.v FROM d JOIN points p ON p.available_at <= d.ts AND p.v > 1',
    'SELECT d.ts, p.v FROM d JOIN points p ON p.available_at <= d.ts OR p.v > 1',
    /available_at/,
  ],
  [
    'an inner join',
    'SELECT d.ts, p.v FROM d JOIN points p ON p.asset = d.asset AND p.available_at <= d.ts',
    'SELECT d.ts, p.v FROM d JOIN points p ON p.asset = d.asset AND p.t <= d.ts',
    /available_at/,
  ],
  [
    'an outer join',
    'SELECT d.ts, p.v FROM d LEFT JOIN points p ON p.asset = d.asset AND p.available_at < d.ts',
    'SELECT d.ts, 1 AS one FROM d LEFT JOIN points p ON p.asset = d.asset AND p.t = d.ts',
    /match may come later/,
  ],
  [
    'a right join',
    'SELECT d.ts, p.v FROM points p RIGHT JOIN d ON p.available_at <= d.ts',
    'SELECT p.available_at AS ts, d.asset FROM d LEFT JOIN points p ON p.available_at > d.ts',
    /match may come later/,
  ],
  [
    'rows of both sides',
    'SELECT coalesce(d.ts, e.ts) AS ts FROM d FULL JOIN d AS e ON e.ts = d.ts',
    'SELECT coalesce(d.ts, p.available_at) AS ts FROM d FULL JOIN points p ON p.available_at = d.ts',
    /both are always known/,
  ],
  [
    'absence in a filter',
    'SELECT d.ts FROM d ANTI JOIN points p ON p.available_at <= d.ts',
    'SELECT d.ts FROM d ANTI JOIN points p ON p.asset = d.asset',
    /match may come later/,
  ],
  [
    'EXISTS',
    'SELECT ts FROM d WHERE NOT EXISTS (FROM points p WHERE p.available_at <= d.ts)',
    'SELECT ts FROM d WHERE EXISTS (FROM points p WHERE p.t <= d.ts)',
    /match may come later/,
  ],
  [
    'IN',
    'SELECT ts FROM d WHERE asset IN (SELECT asset FROM points p WHERE p.available_at <= d.ts)',
    'SELECT ts FROM d WHERE asset IN (SELECT asset FROM points)',
    /match may come later/,
  ],
  [
    'NOT IN with NULLs',
    'SELECT ts FROM d WHERE ts NOT IN (SELECT available_at FROM points)',
    'SELECT ts FROM d WHERE (ts, asset) NOT IN (SELECT available_at, basis FROM points)',
    /a NULL on one side/,
  ],
  [
    'ASOF',
    'SELECT d.ts, p.v FROM d ASOF JOIN points p ON p.asset = d.asset AND d.ts >= p.available_at',
    'SELECT d.ts, p.v FROM d ASOF JOIN points p ON p.asset = d.asset AND d.ts >= p.t',
    /match may come later/,
  ],
  [
    'ASOF the other way',
    'SELECT d.ts, p.v FROM d ASOF LEFT JOIN points p ON p.asset = d.asset AND d.ts > p.available_at',
    'SELECT d.ts, p.v FROM d ASOF LEFT JOIN points p ON p.asset = d.asset AND d.ts <= p.available_at',
    /match may come later/,
  ],
  [
    'a version that stands',
    'SELECT ts, status FROM d JOIN history.products h ON h.valid_from <= d.ts AND d.ts < h.valid_to',
    'SELECT ts, status FROM d JOIN history.products h ON d.ts < h.valid_to',
    /valid_from/,
  ],
  [
    'whether a version stands',
    'SELECT ts, ts < valid_to AS stands FROM d JOIN history.products h ON h.valid_from <= d.ts',
    `SELECT ts, valid_to = 'infinity' AS stands FROM d JOIN history.products h ON h.valid_from <= d.ts AND ts < '2025-01-01'`,
    /known at infinity/,
  ],
  [
    'a correlated subquery',
    'SELECT ts, (SELECT max(v) FROM points p WHERE p.available_at <= d.ts) AS v FROM d',
    'SELECT ts, (SELECT max(v) FROM points p WHERE p.asset = d.asset) AS v FROM d',
    /GROUP BY|group may become known later/,
  ],
  [
    'a lateral join',
    'SELECT ts, l.v FROM d, LATERAL (SELECT v FROM points p WHERE p.available_at <= d.ts ORDER BY t DESC LIMIT 1) l',
    'SELECT ts, l.v FROM d, LATERAL (SELECT v FROM points p WHERE p.asset = d.asset ORDER BY t DESC LIMIT 1) l',
    /looks at rows|may come later/,
  ],
  [
    'what was known by a date',
    `SELECT ts, m FROM d, (SELECT max(v) AS m FROM points WHERE available_at <= '2024-01-01') WHERE ts >= '2024-01-01'`,
    `SELECT ts, m FROM d, (SELECT max(v) AS m FROM points WHERE available_at <= '2024-06-01') WHERE ts >= '2024-01-01'`,
    /group may become known later/,
  ],
  [
    'a date that holds nothing',
    `SELECT ts FROM d WHERE ts >= '2024-01-01'`,
    `SELECT TIMESTAMPTZ '2020-01-01' AS ts, n FROM (SELECT count(*) AS n FROM points WHERE available_at >= '2030-01-01' AND available_at <= '2010-01-01'), d WHERE ts > '2000-01-01'`,
    /group may become known later/,
  ],
  [
    'GROUP BY',
    'SELECT ts, max(v) AS v FROM j GROUP BY ts',
    'SELECT asset, max(ts) AS ts, max(v) AS v FROM points, LATERAL (SELECT available_at AS ts) GROUP BY asset',
    /no key bounds/,
  ],
  [
    'a key that is rounded',
    `SELECT date_trunc('day', available_at) + INTERVAL 1 DAY AS ts, sum(v) AS v FROM points GROUP BY ALL`,
    `SELECT date_trunc('day', available_at) AS ts, sum(v) AS v FROM points GROUP BY ALL`,
    /no key bounds/,
  ],
  [
    'an aggregate beside its group',
    "SELECT ts, sum(v) FILTER (asset = 'BTC') AS v FROM j GROUP BY ts",
    'SELECT ts, sum(l) AS v FROM (SELECT ts, lead(v) OVER (PARTITION BY asset ORDER BY ts) AS l FROM j) GROUP BY ts',
    /known after its own/,
  ],
  [
    'several sets of groups',
    'SELECT ts, asset, max(v) AS v FROM j GROUP BY ts, asset',
    'SELECT ts, asset, max(v) AS v FROM j GROUP BY ROLLUP (ts, asset)',
    /several at once/,
  ],
  [
    'DISTINCT',
    'SELECT DISTINCT available_at AS ts FROM points',
    "SELECT CAST('2024-01-01' AS TIMESTAMPTZ) AS ts, a AS asset FROM (SELECT DISTINCT asset AS a FROM points), d",
    /no key bounds/,
  ],
  [
    'DISTINCT ON',
    'SELECT DISTINCT ON (ts) ts, asset FROM j ORDER BY ts, asset',
    'SELECT DISTINCT ON (asset) available_at AS ts, asset FROM points ORDER BY asset, available_at DESC',
    /no key bounds/,
  ],
  [
    'LIMIT',
    'SELECT available_at AS ts FROM points ORDER BY available_at LIMIT 9',
    'SELECT available_at AS ts FROM points ORDER BY available_at DESC LIMIT 9',
    /take the place/,
  ],
  [
    'LIMIT by another order',
    'SELECT available_at AS ts FROM points ORDER BY available_at, v LIMIT 9 OFFSET 2',
    'SELECT available_at AS ts FROM points ORDER BY v, available_at LIMIT 9',
    /take the place/,
  ],
  [
    'LIMIT of a share',
    'SELECT ts FROM d LIMIT 10',
    'SELECT available_at AS ts FROM points ORDER BY available_at LIMIT 10%',
    /take the place/,
  ],
  [
    'LIMIT and rows without an instant',
    'SELECT observed_at AS ts FROM points WHERE available_at <= observed_at ORDER BY observed_at LIMIT 9',
    "SELECT least(observed_at, TIMESTAMPTZ '2030-01-01') AS ts FROM points ORDER BY available_at LIMIT 9",
    /available_at/,
  ],
  [
    'a trailing window',
    'SELECT ts, avg(v) OVER (PARTITION BY asset ORDER BY ts ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS v FROM j',
    'SELECT ts, avg(v) OVER (PARTITION BY asset ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS v FROM j',
    /known after its own/,
  ],
  [
    'a default frame',
    'SELECT ts, sum(v) OVER (ORDER BY ts) AS v FROM j',
    'SELECT available_at AS ts, sum(v) OVER () AS v FROM points',
    /known after its own/,
  ],
  [
    'an order that bounds',
    'SELECT available_at AS ts, sum(v) OVER (ORDER BY available_at) AS v FROM points',
    'SELECT available_at AS ts, sum(v) OVER (ORDER BY t) AS v FROM points',
    /may come later than it/,
  ],
  [
    'an order with NULLs',
    'SELECT ts, sum(v) OVER (ORDER BY available_at, v) AS v FROM (SELECT *, available_at AS ts FROM points)',
    'SELECT available_at AS ts, sum(v) OVER (ORDER BY nullif(available_at, t) NULLS FIRST) AS v FROM points',
    /known after its own|may come later/,
  ],
  [
    'a reversed order',
    'SELECT ts, sum(v) OVER (PARTITION BY ts ORDER BY v DESC) AS v FROM j',
    'SELECT available_at AS ts, sum(v) OVER (ORDER BY available_at DESC) AS v FROM points',
    /known after its own/,
  ],
  [
    'lag',
    'SELECT ts, lag(v, 2, 0) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j',
    'SELECT ts, lead(v, 2, 0) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j',
    /known after its own/,
  ],
  [
    'a lag that is none',
    'SELECT ts, lag(v, 0) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j',
    'SELECT ts, lag(v, -1) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j',
    /known after its own/,
  ],
  [
    'a lag that is computed',
    'SELECT ts, lag(v, 1 + 0) OVER (PARTITION BY ts ORDER BY asset) AS v FROM j',
    'SELECT ts, lag(v, CAST(v AS INTEGER)) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j',
    /known after its own/,
  ],
  [
    'a rank among those of an instant',
    'SELECT ts, rank() OVER (PARTITION BY ts ORDER BY v DESC) AS r FROM j',
    'SELECT ts, ntile(5) OVER (PARTITION BY asset ORDER BY ts) AS r FROM j',
    /known after its own/,
  ],
  [
    'a range',
    'SELECT ts, sum(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND INTERVAL 1 DAY PRECEDING) AS v FROM j',
    'SELECT ts, sum(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS v FROM j',
    /known after its own/,
  ],
  [
    'a frame of fewer rows',
    'SELECT ts, sum(v) OVER (ORDER BY ts, asset ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS v FROM j',
    'SELECT ts, sum(v) OVER (ORDER BY ts, asset ROWS BETWEEN 3 PRECEDING AND -2 PRECEDING) AS v FROM j',
    /known after its own/,
  ],
  [
    'QUALIFY',
    'SELECT available_at AS ts, asset FROM points QUALIFY row_number() OVER (PARTITION BY asset ORDER BY available_at) = 1',
    'SELECT available_at AS ts, asset FROM points QUALIFY row_number() OVER (PARTITION BY asset ORDER BY available_at DESC) = 1',
    /known after its own/,
  ],
  [
    'UNION ALL',
    'SELECT ts, 1 AS x FROM d UNION ALL SELECT available_at, v FROM points',
    'SELECT ts, 1 AS x FROM d UNION ALL SELECT t, v FROM points',
    /no column of a side bounds/,
  ],
  [
    'UNION by name',
    'SELECT 1 AS x, ts FROM d UNION ALL BY NAME SELECT available_at AS ts, v AS x FROM points',
    'SELECT t AS x, ts FROM d, points UNION ALL BY NAME SELECT available_at AS ts, t AS x FROM points',
    /available_at/,
  ],
  [
    'EXCEPT',
    'SELECT ts, asset FROM d EXCEPT SELECT available_at, asset FROM points',
    'SELECT asset, ts FROM d EXCEPT ALL SELECT asset, t FROM points',
    /no column of a side bounds/,
  ],
  [
    'INTERSECT',
    'SELECT ts FROM d INTERSECT SELECT available_at FROM points',
    'SELECT ts FROM d INTERSECT SELECT t FROM points',
    /no column of a side bounds/,
  ],
  [
    'unnest',
    'SELECT ts, unnest([v, 1]) AS v FROM j',
    'SELECT ts, unnest((SELECT list(v ORDER BY t) FROM points)) AS v FROM d',
    /aggregate without/,
  ],
  [
    'a CTE that is read twice',
    'SELECT a.ts, b.v FROM j AS a JOIN j AS b ON b.ts <= a.ts',
    'SELECT a.ts, b.v FROM j AS a JOIN j AS b ON b.ts > a.ts AND b.v > a.v JOIN points p ON p.available_at <= b.ts',
    /another ts/,
  ],
  [
    'a lambda',
    'SELECT ts, list_transform([v], lambda x: x + 1) AS v FROM j',
    'SELECT ts, list_transform([v], lambda x: x + random()) AS v FROM j',
    /random\(\)/,
  ],
  ['a function', 'SELECT ts, round(v, 2) AS v FROM j', 'SELECT ts, v, now() AS n FROM j', /now\(\)/],
  [
    'a setting',
    `SELECT ts, strftime(ts, '%H') AS v FROM j`,
    `SELECT ts, current_setting('TimeZone') AS v FROM j`,
    /current_setting\(\)/,
  ],
  ['a variable', 'SELECT ts, 1 AS v FROM j', `SELECT ts, getvariable('as_of') AS v FROM j`, /getvariable\(\)/],
  ['a sample', 'SELECT ts FROM j', 'SELECT ts FROM j USING SAMPLE 10%', /SAMPLE/],
  [
    'recursion',
    "WITH c AS (SELECT ts FROM calendar('2024-01-01', '2024-02-01')) SELECT ts FROM c",
    `WITH RECURSIVE c AS (SELECT TIMESTAMPTZ '2024-01-01' AS ts UNION ALL SELECT ts + INTERVAL 1 DAY FROM c WHERE ts < '2024-02-01') SELECT ts FROM c`,
    /RECURSIVE/,
  ],
  ['the version of the lake', `SELECT ts, 'v' AS v FROM d`, 'SELECT ts, lake_version() AS v FROM d', /lake_info/],
]

describe('a rule of the proof from the plan', () => {
  test.for(rules)('%s', async ([, honest, leak, obstacle]) => {
    const right = await argued(honest)
    expect(right.unproved).toBeNull()
    expect(right).toMatchObject({
      proved: true,
      chain: expect.arrayContaining([expect.stringMatching(/^the result: /)]),
    })
    const wrong = await argued(leak)
    expect(wrong.proved, wrong.chain.join('\n')).toBe(false)
    expect(`${wrong.unproved?.what ?? ''}: ${wrong.unproved?.why ?? ''}`).toMatch(obstacle)
  })

  test('labels may look ahead, what is beside them may not', async () => {
    const sql = 'SELECT ts, v, lead(v) OVER (PARTITION BY asset ORDER BY ts) AS reward FROM j'
    expect((await argued(sql)).proved).toBe(false)
    expect((await argued(sql, ['reward'])).proved).toBe(true)
    expect((await argued(`SELECT ts, reward + v AS v, reward FROM (${grid} ${sql})`, ['reward'])).proved).toBe(false)
  })

  test.for([
    ['SELECT ts FROM nowhere', /nowhere/],
    ['SELECT ts, nothing FROM points', /nothing|ts/],
    ['SELECT available_at AS ts FROM points WHERE v > $1', /parameter/],
    ["SELECT ts FROM read_parquet('x.parquet')", /read_parquet/],
    ["SELECT ts FROM 'x.parquet'", /plan of the query/],
    ['SELECT 1 AS a', /ts: no column/],
    ["SELECT 'x' AS ts", /not an instant/],
    ['CREATE TABLE x AS SELECT 1', /not one SELECT/],
    ['SELECT ts FROM', /not one SELECT/],
    ['SELECT available_at AS ts, rowid FROM points', /rowid/],
  ] as const)('nothing is proved of %s', async ([sql, why]) => {
    const { proved, unproved } = await argueFromPlan(lake, { sql, ts: 'ts', labels: [] })
    expect(proved).toBe(false)
    expect(`${unproved?.what ?? ''}: ${unproved?.why ?? ''}`).toMatch(why)
  })
})
