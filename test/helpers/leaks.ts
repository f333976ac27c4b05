import { goldenQueries } from './golden-queries.ts'
import { lateMetric } from './lakes/late-days-and-products.ts'
import { noisyMetric, objectMetric, risingMetric } from './lakes/noise-and-rising-supply.ts'

/*
 * Queries with a planted leak, a kind each: most look no further ahead than the next point. What each of them leaks, in
 * words, and what it turns on. Beside them queries that look like them and are honest.
 */

const metric = noisyMetric
const priced = risingMetric
const whole = objectMetric

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

const fragments = { days75, daily, d, q, most, j, up, own, byTime, frame, rare, metric, priced, whole }
const read = (kind: string) =>
  goldenQueries(`leaks/${kind}`, fragments).map(({ what, queries: [sql = ''] }) => [what, sql] as const)

/** All leaks. */
export const leaks: readonly Leak[] = [
  ...read('values').map(([what, sql]): Leak => [what, sql, ['values']]),
  ...[...read('existence'), ...read('absence')].map(([what, sql]): Leak => [what, sql, ['existence']]),
  ...read('registry').map(([what, sql]): Leak => [what, sql, ['registry']]),
]

/** Honest queries of the same forms. */
export const honest = ['honest', 'known'].flatMap(read)

const lateGrid = `WITH d AS (FROM (SELECT ts, asset FROM calendar('2024-02-01', '2024-10-01', INTERVAL 1 DAY), (VALUES ('BTC'), ('ETH')) a(asset)))`

/** Fragments of the queries over the lake `lateDaysAndProducts`. */
export const lateFragments = {
  onGrid: lateGrid,
  daily: `(SELECT * FROM points WHERE metric = '${lateMetric}' AND "interval" = '24h')`,
  lateMetric,
}

/** Leaks of the lake `lateDaysAndProducts`: what each does, its text, and the words that its report must hold. */
export const lateLeaks = goldenQueries('lookahead/leaks', lateFragments).map(
  ({ what, queries: [sql = ''], note }) => [what, onLateGrid(sql), new RegExp(note)] as const,
)

/** A query over the decisions `d`, or `m` an hour later, with these before it. */
function onLateGrid(sql: string): string {
  if (!/pit_join\([dm],/.test(sql) || sql.startsWith('WITH')) return sql
  const moved = sql.includes('pit_join(m,') ? ', m AS (SELECT ts + INTERVAL 1 HOUR AS ts, asset FROM d)' : ''
  return `${lateGrid}${moved} ${sql}`
}
