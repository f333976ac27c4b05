import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { catalogue } from './sandbox-client.ts'
import { trustTables } from './trust-lake.ts'
import { makeLake, makeViews, type PointRow } from './views.ts'

/*
 * Queries with a planted leak, a kind each: most look no further ahead than the next point. What each of them leaks, in
 * words, and what it turns on. Beside them queries that look like them and are honest.
 */

const dayMs = 86_400_000
const start = Date.UTC(2024, 0, 1)
const days = 75
const metric = 'addresses/active_count_pit'
const priced = 'supply/current_pit'
const whole = 'market/price_usd_ohlc'
const iso = (ms: number): string => new Date(ms).toISOString()

function usual(of: string): Pick<PointRow, 'currency' | 'exchange' | 'network'> {
  const { currency = null, exchange = null, network = null } = catalogue.endpoints.get(of)?.defaults ?? {}
  return { currency, exchange, network }
}

/** Noise with missing values and late points; a supply and its value that only ever rise; an object. */
function points(): PointRow[] {
  return Array.from({ length: days }, (_, day): PointRow[] => {
    const t = start + day * dayMs
    const own = { interval: '24h' as const, t: iso(t), available_at: iso(t + dayMs + 600_000) }
    const late = { ...own, available_at: iso(t + dayMs + 600_000 + (day % 23 === 7 ? 2 * dayMs : 0)) }
    const noise = 1000 + ((day * 7919) % 97)
    return [
      ...['BTC', 'ETH'].map((asset, n): PointRow => {
        const v = day % 19 === 11 && n === 0 ? null : noise * (n + 1)
        return { ...late, ...usual(metric), metric, asset, v }
      }),
      { ...own, metric: priced, asset: 'BTC', currency: 'native', v: 100 + day },
      { ...own, metric: priced, asset: 'BTC', currency: 'usd', v: (100 + day) * (50 + day * 2) },
      { ...own, ...usual(whole), metric: whole, asset: 'BTC', o: JSON.stringify({ o: noise, c: noise + 3 }) },
      ...(day < 50 ? [{ ...own, ...usual(metric), metric, asset: 'OLD', v: noise }] : []),
    ]
  }).flat()
}

/** The lake of these queries: 75 days of 2024 and a registry; with its views. */
export async function makeLeakLake(): Promise<{ readonly root: string; readonly remove: () => void }> {
  const home = mkdtempSync(join(tmpdir(), 'pitlake-leaks-'))
  const root = join(home, 'lake')
  await makeLake(root, [{ at: '2024-12-01T00:00:00', points: points(), tables: trustTables() }])
  await makeViews(root)
  return { root, remove: () => rmSync(home, { recursive: true, force: true }) }
}

/** What a leak turns on. */
type Turns = 'values' | 'existence' | 'registry'

/** A query that leaks: what it does, its text, and what it turns on. */
export type Leak = readonly [what: string, sql: string, turns: readonly Turns[]]

const days75 = `SELECT ts, 'BTC' AS asset FROM calendar('2024-01-05', '2024-03-12', '1 day')`
const daily = `(SELECT * FROM points WHERE metric = '${metric}' AND asset = 'BTC')`
const d = `WITH d AS (${days75})`
const q = d.replace("'1 day'", "'6 hours'")
const most = `(FROM ${daily} WHERE dayofmonth(t) % 10 <> 1)`
const supply = `(SELECT * FROM points WHERE metric = '${priced}' AND currency = 'native')`
/** What was known last, a row a day, and the rising supply; plainly, since most of the time goes into the joins. */
const j = `${d}, j AS (SELECT d.ts, d.asset, p.v FROM d ASOF LEFT JOIN ${daily} p ON p.available_at <= d.ts)`
const up = `${d}, j AS (SELECT d.ts, d.asset, p.v FROM d ASOF LEFT JOIN ${supply} p ON p.available_at <= d.ts)`
const own = `LEFT JOIN ${daily} p ON p.t = d.ts`
const byTime = 'OVER (PARTITION BY asset ORDER BY ts)'
const frame = (rows: string): string => `OVER (PARTITION BY asset ORDER BY ts ${rows})`
const rare = `ts = '2024-02-14'`

const ofValues: readonly (readonly [what: string, sql: string])[] = [
  ['the value of the day itself', `${d} SELECT d.ts, p.v FROM d ${own}`],
  [
    'that on one day alone',
    `${j} SELECT j.ts, CASE WHEN j.${rare} THEN p.v ELSE j.v END AS v FROM j LEFT JOIN ${daily} p ON p.t = j.ts`,
  ],
  [
    'known a day later, taken now',
    `${d} SELECT d.ts, (SELECT arg_max(v, t) FROM ${daily} p WHERE p.available_at <= d.ts + INTERVAL 1 DAY) AS v FROM d`,
  ],
  ['ASOF on t', `${d} SELECT d.ts, p.v FROM d ASOF LEFT JOIN ${daily} p ON p.t <= d.ts`],
  ['lead', `${j} SELECT ts, lead(v) ${byTime} AS v FROM j`],
  ['lead on one day alone', `${j} SELECT ts, CASE WHEN ${rare} THEN lead(v) ${byTime} ELSE v END AS v FROM j`],
  ['lead where nothing is known', `${j} SELECT ts, coalesce(v, lead(v) ${byTime}) AS v FROM j`],
  ['lag by less than nothing', `${j} SELECT ts, lag(v, -1) ${byTime} AS v FROM j`],
  ['a centred mean', `${j} SELECT ts, avg(v) ${frame('ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING')} AS v FROM j`],
  [
    'a range of a day ahead',
    `${j} SELECT ts, max(v) ${frame('RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING')} AS v FROM j`,
  ],
  [
    'the last value of all',
    `${j} SELECT ts, last_value(v) ${frame('ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING')} AS v FROM j`,
  ],
  [
    'the second value from here',
    `${j} SELECT ts, nth_value(v, 2) ${frame('ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING')} AS v FROM j`,
  ],
  [
    'a line between the last and the next',
    `${j} SELECT ts, coalesce(v, (lag(v) ${byTime} + lead(v) ${byTime}) / 2) AS v FROM j`,
  ],
  ['the smaller of now and next, while all rise', `${up} SELECT ts, least(v, lead(v) ${byTime}) AS v FROM j`],
  [
    'that on one day alone',
    `${up} SELECT ts, CASE WHEN ${rare} THEN least(v, lead(v) ${byTime}) ELSE v END AS v FROM j`,
  ],
  ['the larger of now and next, of what only falls', `${up} SELECT ts, greatest(-v, lead(-v) ${byTime}) AS v FROM j`],
  [
    'a stop that the next day would have met',
    `${up} SELECT ts, coalesce(lead(v) ${byTime} < v * 0.9, false) AS stopped FROM j`,
  ],
  [
    'whether anything is ever higher than a million',
    `${j} SELECT ts, (SELECT max(v) > 1e6 FROM ${daily} p WHERE p.available_at > j.ts) IS TRUE AS hot FROM j`,
  ],
  ['the mean of the whole sample', `${j} SELECT ts, v - avg(v) OVER () AS v FROM j`],
  ['a z-score of the whole sample', `${j} SELECT ts, (v - avg(v) OVER ()) / stddev(v) OVER () AS v FROM j`],
  [
    'scaled between the smallest and the largest',
    `${j} SELECT ts, (v - min(v) OVER ()) / (max(v) OVER () - min(v) OVER ()) AS v FROM j`,
  ],
  ['quintiles of the whole sample', `${j} SELECT ts, ntile(5) OVER (ORDER BY v, ts) AS q FROM j`],
  ['a rank among all', `${j} SELECT ts, percent_rank() OVER (ORDER BY v) AS r FROM j`],
  ['outliers cut at quantiles of all', `${j} SELECT ts, least(v, quantile_cont(v, 0.9) OVER ()) AS v FROM j`],
  ['the median of all', `${j} SELECT ts, v / (SELECT median(v) FROM j) AS v FROM j`],
  [
    "the month's mean given to its days",
    `${j} SELECT ts, avg(v) OVER (PARTITION BY date_trunc('month', ts)) AS v FROM j`,
  ],
  ["the share of the week's sum", `${j} SELECT ts, v / sum(v) OVER (PARTITION BY date_trunc('week', ts)) AS v FROM j`],
  [
    "the week's highest day, marked",
    `${j} SELECT ts, v = max(v) OVER (PARTITION BY date_trunc('week', ts)) AS top FROM j`,
  ],
  ['the direction of the next step', `${j} SELECT ts, sign(lead(v) ${byTime} - v) AS side FROM j`],
  ['a sum from the end', `${j} SELECT ts, sum(v) OVER (ORDER BY ts DESC) AS v FROM j`],
  [
    'a slope fitted on everything',
    `${j} SELECT ts, v - (SELECT regr_slope(v, epoch(ts)) FROM j) * epoch(ts) AS v FROM j`,
  ],
  [
    'a correlation of everything',
    `${j} SELECT ts, v * (SELECT corr(v, n) FROM (SELECT v, lag(v) ${byTime} AS n FROM j)) AS v FROM j`,
  ],
  ['the day of the highest value', `${j} SELECT ts, ts < (SELECT arg_max(ts, v) FROM j) AS before FROM j`],
  ['the ten best days of all', `${j} SELECT ts, v FROM j ORDER BY v DESC NULLS LAST, ts LIMIT 10`],
  [
    'the best day of each month',
    `${j} SELECT ts, v FROM j QUALIFY row_number() OVER (PARTITION BY date_trunc('month', ts) ORDER BY v DESC, ts) = 1`,
  ],
  [
    'lows that were never undercut',
    `${j} SELECT ts, v FROM j WHERE NOT EXISTS (FROM j AS k WHERE k.ts > j.ts AND k.v < j.v)`,
  ],
  [
    'the price of the day itself',
    `${d} SELECT d.ts, p.v FROM d LEFT JOIN price_usd p ON p.t = d.ts AND p.asset = 'BTC'`,
  ],
  [
    'a part of the object of the day itself',
    `${d} SELECT d.ts, c.v FROM d LEFT JOIN components c ON c.t = d.ts AND c.component = '/c' AND c.metric = '${whole}'`,
  ],
  [
    'decisions moved by a day',
    `${d}, m AS (SELECT ts + INTERVAL 1 DAY AS ts, asset FROM d) SELECT ts - INTERVAL 1 DAY AS ts, v FROM pit_join('m', '${metric}', '24h')`,
  ],
  [
    'a window of values, moved by a day',
    `${d}, m AS (SELECT ts + INTERVAL 1 DAY AS ts, asset FROM d) SELECT ts - INTERVAL 1 DAY AS ts, avg(v ORDER BY place) AS v FROM pit_window('m', '${metric}', '24h', 3) GROUP BY ts`,
  ],
  [
    "the week's sum on its Monday",
    `${d} SELECT d.ts, r.v FROM d LEFT JOIN resample('${priced}', '24h', '1w', 'sum') r ON r.t = date_trunc('week', d.ts) AND r.asset = d.asset`,
  ],
  [
    'the next value, looked up',
    `${d} SELECT d.ts, (SELECT arg_min(v, t) FROM ${daily} p WHERE p.t >= d.ts) AS v FROM d`,
  ],
  [
    'everything in one list',
    `${j} SELECT ts, list_sum(list_transform((SELECT list(v ORDER BY ts) FROM j), lambda x: coalesce(x, 0))) AS s FROM j`,
  ],
]

const ofExistence: readonly (readonly [what: string, sql: string])[] = [
  ['a grid taken from points', `SELECT t AS ts, count(*) AS n FROM ${daily} GROUP BY ALL`],
  ['how many points there are', `${d} SELECT ts, (SELECT count(*) FROM ${daily}) AS n FROM d`],
  ['whether they are an even number', `${d} SELECT ts, (SELECT count(*) % 2 = 0 FROM ${daily}) AS even FROM d`],
  ['whether more is to come', `${d} SELECT d.ts, EXISTS (FROM ${daily} p WHERE p.t > d.ts) AS more FROM d`],
  [
    'assets of which something came much later',
    `SELECT c.ts, count(*) AS n FROM (${days75}) c, points p WHERE p.metric = '${metric}' AND p.asset IN
    (SELECT asset FROM points WHERE t > '2024-03-01' AND metric = '${metric}') AND p.available_at <= c.ts GROUP BY c.ts`,
  ],
  [
    'the last day of all',
    `${d} SELECT ts, ts = (SELECT max(date_trunc('day', available_at)) FROM ${daily}) AS last FROM d`,
  ],
  ['how late the point of the day will be', `${d} SELECT d.ts, p.available_at - p.t AS late FROM d ${own}`],
  [
    'how long a series is',
    `${d} SELECT ts, (SELECT points FROM series WHERE metric = '${metric}' AND asset = 'BTC') AS n FROM d`,
  ],
  [
    'days on which nothing comes',
    `${d} SELECT d.ts, 1 AS one FROM d ANTI JOIN ${daily} p ON p.available_at > d.ts AND p.available_at <= d.ts + INTERVAL 1 DAY`,
  ],
]

/** What is not there yet lets a row stand, apart or as it is: once it comes the row is gone, or one with others. */
const ofAbsence: readonly (readonly [what: string, sql: string])[] = [
  [
    'a condition on what is not known yet, behind a LEFT JOIN',
    `${q} SELECT d.ts, p.v FROM d LEFT JOIN ${daily} p ON p.t = date_trunc('day', d.ts) - INTERVAL 1 DAY
      WHERE p.available_at IS NULL OR p.available_at <= d.ts`,
  ],
  [
    'NOT EXISTS of the next point',
    `${d} SELECT ts, 1 AS one FROM d WHERE NOT EXISTS (FROM ${most} p WHERE p.t = d.ts)`,
  ],
  ['NOT IN the days of points', `${d} SELECT ts, 1 AS one FROM d WHERE ts NOT IN (SELECT t FROM ${most})`],
  [
    'LEFT JOIN without a match',
    `${d} SELECT d.ts, 1 AS one FROM d LEFT JOIN ${most} p ON p.t = d.ts WHERE p.t IS NULL`,
  ],
  [
    'COALESCE with when it will be known',
    `${q} SELECT d.ts, coalesce(p.available_at, d.ts) AS since FROM d LEFT JOIN ${daily} p ON p.t = date_trunc('day', d.ts)`,
  ],
  [
    'GREATEST of the row and what comes',
    `${q} SELECT greatest(d.ts, p.available_at) AS ts, count(*) AS n FROM d LEFT JOIN ${daily} p ON p.t = date_trunc('day', d.ts) GROUP BY 1`,
  ],
  [
    'DISTINCT instants, moved to what comes',
    `${q} SELECT DISTINCT coalesce(p.available_at, d.ts) AS ts, 1 AS one FROM d
      LEFT JOIN ${daily} p ON p.available_at > d.ts AND p.available_at <= d.ts + INTERVAL 1 DAY`,
  ],
  [
    'LIMIT of days without a point',
    `${d} SELECT ts, 1 AS one FROM d ANTI JOIN ${most} p ON p.t = d.ts ORDER BY ts LIMIT 3`,
  ],
  [
    'FULL JOIN on the day',
    `${d} SELECT coalesce(d.ts, p.t) AS ts, p.t IS NULL AS alone FROM d FULL JOIN ${daily} p ON p.t = d.ts`,
  ],
  [
    'GROUP BY the next arrival',
    `${q} SELECT min(ts) AS ts, count(*) AS n FROM (SELECT ts, (SELECT min(available_at) FROM ${daily} p WHERE p.available_at > d.ts) AS next FROM d) GROUP BY next`,
  ],
  [
    'a group without what a FILTER counts',
    `${q} SELECT d.ts, 1 AS one FROM d LEFT JOIN ${daily} p ON p.available_at <= d.ts + INTERVAL 12 HOUR GROUP BY d.ts
      HAVING count(*) FILTER (p.available_at > d.ts) = 0`,
  ],
  ['EXCEPT the days of points', `${d} SELECT ts, 1 AS one FROM d EXCEPT SELECT t, 1 FROM ${most}`],
]

const ofRegistry: readonly (readonly [what: string, sql: string])[] = [
  [
    'products that are there today',
    `SELECT c.ts, count(*) AS n FROM calendar('2024-02-01', '2024-08-01', '3 days') c, products p WHERE p.status = 'active' GROUP BY c.ts`,
  ],
  [
    'whether a product will ever go',
    `SELECT c.ts, count(*) FILTER (h.valid_to < TIMESTAMPTZ 'infinity') AS n FROM calendar('2024-02-01', '2024-08-01', '3 days') c
    JOIN history.products h ON h.valid_from <= c.ts GROUP BY c.ts`,
  ],
]

/** Honest queries that leave rows out, or put them together, by what was known. */
const byKnown: readonly (readonly [what: string, sql: string])[] = [
  [
    'a LEFT JOIN that holds back what is not known',
    `${q} SELECT d.ts, p.v FROM d LEFT JOIN ${daily} p ON p.t = date_trunc('day', d.ts) - INTERVAL 1 DAY AND p.available_at <= d.ts`,
  ],
  [
    'days after which nothing new is known',
    `${q} SELECT ts, 1 AS one FROM d WHERE NOT EXISTS (FROM ${daily} p WHERE p.available_at <= d.ts AND p.available_at > d.ts - INTERVAL 6 HOUR)`,
  ],
  [
    'the first decision after each arrival',
    `${q} SELECT min(ts) AS ts, known FROM (SELECT ts, (SELECT max(available_at) FROM ${daily} p WHERE p.available_at <= d.ts) AS known FROM d) GROUP BY known`,
  ],
  [
    'EXCEPT what was known to be without a value',
    `${q} SELECT ts, 1 AS one FROM d EXCEPT SELECT d.ts, 1 FROM d JOIN ${daily} p ON p.available_at <= d.ts AND p.v IS NULL AND p.t > d.ts - INTERVAL 3 DAY`,
  ],
]

/** All leaks. */
export const leaks: readonly Leak[] = [
  ...ofValues.map(([what, sql]): Leak => [what, sql, ['values']]),
  ...ofExistence.map(([what, sql]): Leak => [what, sql, ['existence']]),
  ...ofAbsence.map(([what, sql]): Leak => [what, sql, ['existence']]),
  ...ofRegistry.map(([what, sql]): Leak => [what, sql, ['registry']]),
]

/** Honest queries of the same forms. */
export const honest: readonly (readonly [what: string, sql: string])[] = [
  ['what was known', `${d} SELECT ts, asset, v FROM pit_join('d', '${metric}', '24h')`],
  ['the last value before this one', `${j} SELECT ts, lag(v) ${byTime} AS v FROM j`],
  [
    'known a day ago',
    `${d} SELECT d.ts, (SELECT arg_max(v, t) FROM ${daily} p WHERE p.available_at <= d.ts - INTERVAL 1 DAY) AS v FROM d`,
  ],
  ['ASOF on available_at', `${d} SELECT d.ts, p.v FROM d ASOF LEFT JOIN ${daily} p ON p.available_at <= d.ts`],
  [
    'a mean of the last three',
    `${j} SELECT ts, avg(v) ${frame('ROWS BETWEEN 2 PRECEDING AND CURRENT ROW')} AS v FROM j`,
  ],
  ['the smaller of now and before', `${up} SELECT ts, least(v, lag(v) ${byTime}) AS v FROM j`],
  ['the largest so far', `${j} SELECT ts, max(v) ${byTime} AS v FROM j`],
  ['a logarithm of a step', `${up} SELECT ts, ln(v / lag(v) ${byTime}) AS r FROM j`],
  [
    'a rank among the last twenty',
    `${j} SELECT ts, list_position(list_sort(list(v) ${frame('ROWS BETWEEN 19 PRECEDING AND CURRENT ROW')}), v) AS r FROM j`,
  ],
  [
    'how many points are known',
    `${d} SELECT d.ts, (SELECT count(*) FROM ${daily} p WHERE p.available_at <= d.ts) AS n FROM d`,
  ],
  ['a filter of a known value', `${j} SELECT ts, v FROM j WHERE v > 1040`],
  ['the price', `${d} SELECT ts, v FROM pit_join('d', 'price_usd', '24h')`],
  ['a part of an object', `${d} SELECT ts, v FROM pit_join('d', '${whole}#/c', '24h')`],
  [
    'the universe of each day',
    `WITH d AS (SELECT ts FROM calendar('2024-02-01', '2024-08-01', '3 days')) SELECT ts, count(*) AS n FROM pit_universe('d') GROUP BY ts`,
  ],
  ...byKnown,
]
