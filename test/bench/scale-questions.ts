import { quote, quoteList } from '../../src/lake/store/engine.ts'
import { big, paths, rangeOf, until } from './scale-lake.ts'

/** What the bench knows of a lake that it asks. */
export interface Place {
  readonly root: string
  /** A copy whose files of points are the same files, to be changed. */
  readonly copy: string
  readonly points: number
  /** A folder for results. */
  readonly out: string
}

/** One question that a command answers, or the step of a build. */
interface Commanded {
  readonly name: string
  readonly ours: (place: Place) => readonly string[]
}

/**
 * One that every engine can be asked: of ours over the views, of bare DuckDB over `p`; others have it under its name.
 */
export interface Asked {
  readonly name: string
  readonly sql: (place: Place) => string
  readonly bare: (place: Place) => string
  /** What is known at an instant alone: the middle of the range. */
  readonly past?: true
}

export type Question = Commanded | Asked

/** The session variable of a question, as text. */
export function asOf({ past }: Asked, place: Place): string | undefined {
  return past === undefined ? undefined : instant(middle(place))
}

const wide = Array.from({ length: 10 }, (_, n) => `A0${n}`)
const micros = (seconds: number): string => `make_timestamptz(${seconds * 1_000_000}::BIGINT)`
const instant = (seconds: number): string => new Date(seconds * 1000).toISOString()
const middle = ({ points }: Place): number => Math.floor((rangeOf(points).since + until) / 2)

/** Rows, values and their sum in hundredths: the same at every engine, in whatever order it adds. */
const summed = (sql: string): string =>
  `SELECT count(*)::BIGINT AS rows, count(v)::BIGINT AS known, coalesce(sum(round(v * 100)::BIGINT), 0)::VARCHAR AS cents FROM (${sql})`
const command = (sql: string) => {
  return ({ root }: Place): readonly string[] => ['sql', '--data', root, '--format', 'json', sql]
}

const latest = 'SELECT metric, asset, "interval", max(t) AS t, arg_max(v, t) AS v FROM'

/** Decisions spread over all assets and the whole range, each at an instant of its own. */
function decisions({ points }: Place, count: number, assets: number): string {
  const { since } = rangeOf(points)
  const at = `(${since} + i * 7919 * 1000003 % ${until - since}) * 1000000`
  return `SELECT i AS id, 'A' || lpad((i % ${assets})::VARCHAR, 2, '0') AS asset, make_timestamptz(${at}) AS ts FROM range(${count}) AS r(i)`
}

/** The exact rule without help: what was overtaken before it came is no answer. */
function strict(place: Place, count: number, assets: number, of: string): string {
  return `WITH d AS MATERIALIZED (${decisions(place, count, assets)}), k AS (SELECT metric, asset, available_at, v FROM p WHERE ${of}
    WINDOW w AS (PARTITION BY metric, asset ORDER BY available_at, t)
    QUALIFY t >= max(t) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AND lead(available_at) OVER w IS DISTINCT FROM available_at)
    SELECT d.*, k.v FROM (SELECT * FROM d, (SELECT DISTINCT metric FROM k)) AS d
    ASOF LEFT JOIN k ON d.metric = k.metric AND d.asset = k.asset AND d.ts >= k.available_at`
}

const joined = (place: Place, count: number, assets: number, call: string): string =>
  `WITH d AS MATERIALIZED (${decisions(place, count, assets)}) ${summed(`FROM ${call}`)}`
const year = micros(until - 365 * 86_400)
const fetched = (hours: number, tens: number) => {
  return ({ copy, points }: Place) => ['scale-lake', copy, String(points), String(hours), String(tens)]
}

/** What can be asked of others, too. */
export const shared: readonly Asked[] = [
  {
    name: 'count',
    sql: () => 'SELECT count(*)::BIGINT AS rows FROM points',
    bare: () => 'SELECT count(*)::BIGINT AS rows FROM p',
  },
  {
    name: 'latest of all series',
    sql: () => summed(`${latest} points GROUP BY ALL`),
    bare: () => summed(`${latest} p GROUP BY ALL`),
  },
  {
    name: 'latest as of the middle',
    sql: () => summed(`${latest} points GROUP BY ALL`),
    bare: (place) => summed(`${latest} p WHERE available_at <= ${micros(middle(place))} GROUP BY ALL`),
    past: true,
  },
  {
    name: 'pit_join of a million decisions',
    sql: (place) => joined(place, 1_000_000, 76, `pit_join('d', ${quote(big)}, '10m')`),
    bare: (place) => summed(strict(place, 1_000_000, 76, `metric = ${quote(big)} AND "interval" = '10m'`)),
  },
  {
    name: 'pit_long, 10,000 decisions × 62',
    sql: (place) => joined(place, 10_000, 21, `pit_long('d', ${quoteList(paths)}, '1h')`),
    bare: (place) => summed(strict(place, 10_000, 21, `"interval" = '1h'`)),
  },
  {
    name: 'resample of a year',
    sql: () => summed(`FROM resample(${quote(big)}, '10m', '1h', 'sum', since := ${year})`),
    bare: () =>
      summed(`SELECT asset, time_bucket(INTERVAL 1 HOUR, t) AS t, CASE WHEN count(v) = 6 THEN sum(v) END AS v FROM p
        WHERE metric = ${quote(big)} AND "interval" = '10m' AND t >= ${year} GROUP BY ALL`),
  },
]

/** What is asked of a lake, in this order: the last ones change the copy. */
export const questions: readonly Question[] = [
  { name: 'open', ours: command('SELECT 1 AS one') },
  ...shared,
  {
    name: 'panel, days × 10 assets × 62',
    ours: ({ root, points, out }) => {
      const days = `${instant(rangeOf(points).since)},${instant(until)},1d`
      const what = ['--assets', wide.join(','), '--metrics', paths.join(','), '--interval', '1h']
      return ['panel', '--data', root, '--calendar', days, ...what, '--out', `${out}/panel.parquet`]
    },
  },
  {
    name: 'universe at 1,000 instants',
    ours: command(
      `WITH d AS (SELECT ${micros(until + 400 * 86_400)} + to_hours(i::INTEGER) AS ts FROM range(1000) AS r(i)) SELECT count(*)::BIGINT AS rows FROM pit_universe('d')`,
    ),
  },
  { name: 'status', ours: ({ root }) => ['status', '--data', root, '--json'] },
  {
    name: 'lookahead at 20 cut-offs',
    ours: ({ root, out }) => [
      'lookahead',
      `${out}/query.sql`,
      '--cutoffs',
      '20',
      '--timeout',
      '850',
      '--data',
      root,
      '--json',
    ],
  },
  { name: 'verify of all files', ours: ({ root }) => ['doctor', '--data', root, '--json'] },
  { name: 'top-up of a point a series', ours: fetched(3600, 600) },
  { name: 'top-up with nothing new', ours: fetched(3600, 600) },
  { name: 'publish', ours: ({ copy, out }) => ['publish', `${out}/tables`, '--data', copy, '--json'] },
  { name: 'top-up of a day', ours: fetched(86_400, 86_400) },
  { name: 'publish a day more', ours: ({ copy, out }) => ['publish', `${out}/tables`, '--data', copy, '--json'] },
  { name: 'backup', ours: ({ copy, out }) => ['backup', `${out}/backup`, '--data', copy, '--json'] },
  { name: 'compact', ours: ({ copy }) => ['compact', '--data', copy, '--json'] },
]

/** The query whose proof is asked for. */
export function provedQuery(place: Place): string {
  return `WITH d AS (${decisions(place, 1000, 21)}) SELECT id, asset, ts, v FROM pit_join('d', ${quote(big)}, '10m')`
}
