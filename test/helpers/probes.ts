import type { Engine } from '../../src/lake/store/engine.ts'
import { metrics } from './lakes/every-view.ts'

/*
 * What the laws of knowledge ask of a lake: all of every view that its database has, and each macro with all its
 * options. What a database has and nobody asks about is an error, so that a new view or macro gets its rows and its
 * question.
 */

/** One question: a statement, and the SQL that counts its rows that say something. */
export interface Probe {
  readonly name: string
  readonly sql: string
  readonly count: string
  /** At every so many cuts it is asked. */
  readonly turn: number
  /** How much later than the instant of the cut a decision is that knows as much. */
  readonly latency: number
}

/** Views of the ledger obey only observed_as_of; the others are the data views. */
export const ledgerViews: readonly string[] = 'coverage gaps violations clock_findings requests runs versions'.split(
  ' ',
)
const timeless = [
  'lake_info',
  'endpoints',
  'calendar',
  'sessions',
  'lake_version',
  'lake_digest',
  'nearest',
  'nearest_paths',
  'question_asked',
  // They tell of decisions what `coverage` and `unresolved` tell, which are probed.
  'question_reach',
  'question_unresolved',
]

const { everyInterval, supply, nested, plain, exchanges, revised, bars, derived } = metrics
const intervals = ['10m', '1h', '24h', '1w', '1month'] as const
const quarter = `INTERVAL '15 minutes'`
const late = { sql: `latency := ${quarter}`, micros: 900_000_000 }

/** Metric, interval and options of a join, as they stand behind the decisions. */
const joined: readonly string[] = [
  ...intervals.map((interval) => `'${everyInterval}', '${interval}'`),
  ...['24h', '1w', '1month'].map((interval) => `'price_usd', '${interval}'`),
  `'${everyInterval}', '24h', network := 'sol'`,
  `'${supply}', '24h', currency := 'usd'`,
  `'${exchanges}', '24h', exchange := 'exchange_1', currency := 'usd'`,
  `'${exchanges}', '24h'`,
  `'${nested}', '24h', component := '/a'`,
  `'${nested}#/a', '24h', skip_nulls := true`,
  `'${nested}', '24h', max_age := INTERVAL '2 days'`,
  `'${plain}', '24h', max_age := INTERVAL '1 day', skip_nulls := true`,
  `'${plain}', '24h', skip_nulls := true`,
  `'${plain}', '24h', ${late.sql}`,
  `'${everyInterval}', '10m', ${late.sql}, max_age := INTERVAL '1 hour'`,
  `'price_usd', '24h', ${late.sql}, skip_nulls := true`,
  `'${plain}', '24h', unresolved := 'null'`,
  `'price_usd', '24h', unresolved := 'null'`,
  `'${revised}', '24h'`,
  `'${revised}', '24h', skip_nulls := true`,
  `'${revised}', '24h', vintage := 'first'`,
  `'${revised}', '24h', ${late.sql}, vintage := 'first', skip_nulls := true`,
  `'${revised}', '24h', unresolved := 'null'`,
  `'${plain}', '24h', follow_renames := true, unresolved := 'null'`,
  `'${revised}', '24h', follow_renames := true`,
  `'${plain}', '24h', back := '3 days'`,
  `'${revised}', '24h', back := '2 days', skip_nulls := true, ${late.sql}`,
  `'price_usd', '1w', back := '2 weeks', follow_renames := true, unresolved := 'null'`,
  `'${bars}', '24h'`,
  `'${bars}#/open', '24h'`,
  `'${bars}', '24h', component := '/open', ${late.sql}`,
  `'${derived}', '24h'`,
  `'${derived}', '24h', network := 'v1', skip_nulls := true, ${late.sql}`,
]
const lists = [
  `['${everyInterval}', '${supply}', 'price_usd'], '24h'`,
  `['${everyInterval}', '${supply}', 'price_usd'], '1w', currency := 'usd'`,
  `['${nested}#/a', '${plain}', '${nested}'], '24h', max_age := INTERVAL '3 days'`,
  `['${nested}', '${nested}#/a/x~1y/0'], '24h', component := '/c/0/d'`,
  `['${everyInterval}', '${exchanges}'], '24h', network := 'sol', exchange := 'exchange_1'`,
  `['${plain}', '${supply}'], '24h', skip_nulls := true, ${late.sql}`,
  `['${plain}', 'price_usd'], '24h', unresolved := 'null'`,
  `['${revised}', '${plain}'], '24h', ${late.sql}`,
  `['${plain}', '${revised}'], '24h', vintage := 'first', skip_nulls := true`,
  `['${plain}', 'price_usd'], '24h', follow_renames := true`,
  `['${revised}', '${plain}', 'price_usd'], '24h', back := '36 hours', max_age := INTERVAL '3 days'`,
  `['${bars}#/close', '${bars}#/open', '${plain}'], '24h'`,
  `['${derived}', '${bars}', '${revised}'], '24h', unresolved := 'null'`,
]
const aggregates = ['sum', 'mean', 'avg', 'min', 'max', 'median', 'first', 'last']
const coarser = intervals.flatMap((from, n) => intervals.slice(n + 1).map((to) => [from, to] as const))
const resampled: readonly string[] = [
  ...coarser
    .filter(([from, to]) => !(from === '1w' && to === '1month'))
    .map(([from, to], n) => {
      const parts = to === '1month' || `${from} ${to}` === '10m 1w' ? ', min_parts := 1' : ''
      return `'${everyInterval}', '${from}', '${to}', '${aggregates[n % aggregates.length]}'${parts}`
    }),
  ...aggregates.map((agg) => `'${everyInterval}', '24h', '1w', '${agg}'`),
  `'${supply}', '24h', '1w', 'sum', currency := 'usd'`,
  `'${exchanges}', '24h', '1w', exchange := 'exchange_1'`,
  `'${everyInterval}', '24h', '1w', 'last', network := 'sol', min_parts := 1`,
  `'${nested}', '24h', '1w', component := '/a', skip_nulls := true, min_parts := 1`,
  `'price_usd', '24h', '1w', 'max', skip_nulls := true, min_parts := 1`,
  `'${revised}', '24h', '1w', 'sum', skip_nulls := true, min_parts := 1`,
  `'${derived}', '24h', '1w', 'sum'`,
  `'${bars}', '24h', '1w', component := '/close', skip_nulls := true, min_parts := 1`,
  `'${plain}', '24h', '1w', 'sum', skip_nulls := true, min_parts := 1, follow_renames := true`,
  `'${revised}', '24h', '1w', skip_nulls := true, min_parts := 1, follow_renames := true`,
  `'${everyInterval}', '24h', '1w', 'sum', min_parts := 1, since := '2000-01-03', until := '2100-03-05'`,
]

const everything = { interval: ['24h'], currency: [], exchange: [], network: [], defaults: true, everywhere: true }
const wondered = [everyInterval, supply, nested, plain, 'price_usd', 'supply/curent_pit'].flatMap((name) => [
  { name, ...everything, asset: [], since: '2100-01-01T00:00:00Z' },
  { name, ...everything, asset: ['btc'], component: '/a/x' },
])
const notes = [
  { metrics: wondered, texts: ['btc', 'BTC', 'no/path'] },
  { metrics: [{ name: '*', ...everything, asset: [], times: true }] },
  { tables: ['products'], empty: true },
  { tables: ['pit_universe'], as_of: '2024-03-01T00:00:00Z' },
]

/** What is asked of each macro, its name to the arguments; `{d}` is the relation of the decisions. */
const macros: Readonly<Record<string, readonly string[]>> = {
  pit_join: joined.map((options) => `'{d}', ${options}`),
  pit_long: lists.map((options) => `'{d}', ${options}`),
  pit_window: joined.flatMap((options) =>
    ['4', `'4 days'`].map((size) => `'{d}', ${options.replace(/^('[^']*', '[^']*')/, `$1, ${size}`)}`),
  ),
  pit_universe: [`'{d}'`, `'{d}', issuer_status = 'active' AND len(deployments) < 3`],
  pit_registry: [`'{d}'`],
  resample: resampled,
  bars: resampled.map((options) => options.replace(/^('[^']*', '[^']*', '[^']*'), '[^']*'/, '$1')),
  revisions: [`'${revised}'`],
  unresolved: [`['${plain}', '${supply}', 'price_usd'], '24h'`],
  question_notes: notes.map((asked) => `'${JSON.stringify(asked)}'`),
}

/** Everything that is asked of the database of an open lake, by the instant of knowledge. */
export async function probesOf(engine: Engine, left: readonly string[]): Promise<Probe[]> {
  const views = await engine.rows<{ schema: string; name: string }>(
    `SELECT schema_name AS schema, view_name AS name FROM duckdb_views() WHERE NOT internal ORDER BY ALL`,
  )
  const functions = await engine.rows<{ name: string }>(
    `SELECT DISTINCT function_name AS name FROM duckdb_functions() WHERE NOT internal ORDER BY ALL`,
  )
  const skipped = new Set([...timeless, ...left])
  const repeated = new Set(views.filter(({ schema }) => schema === 'history').map(({ name }) => name))
  const ofViews = views
    .filter(({ name }) => !skipped.has(name))
    .map(({ schema, name }) => {
      const relation = schema === 'main' ? `"${name}"` : `${schema}."${name}"`
      return { ...probe(relation, `FROM ${relation}`, '*'), turn: repeated.has(name) ? 6 : 2 }
    })
  const ofBases = ['mapping', 'address', 'symbol'].map((basis) =>
    probe(`links by ${basis}`, `FROM links WHERE basis = '${basis}'`, '*'),
  )
  return [
    ...ofViews,
    ...ofBases.map((one) => ({ ...one, turn: 8 })),
    ...functions
      .map(({ name }) => name)
      .filter((name) => !skipped.has(name))
      .flatMap((name) => {
        const asked = macros[name]
        if (asked === undefined) throw new Error(`nobody asks ${name}: test/helpers/probes.ts`)
        const coarse = { resample: 'r.v', bars: 'r.close' }[name]
        const answers = coarse ?? (/^pit_(?!universe|registry)/.test(name) ? 'r.t' : '*')
        return asked.map((options) => {
          const call = `${name}(${options})`
          return { ...probe(call, name === 'question_notes' ? ofNothing(call) : `FROM ${call}`, answers), turn: 24 }
        })
      }),
  ]
}

/**
 * Of a metric without points a note says what to do, or with an `as_of` that none was known: both are that there is
 * nothing.
 */
function ofNothing(notes: string): string {
  return `SELECT * EXCLUDE (code, words),
    CASE WHEN code IN ('nothing-held', 'unknown-then') THEN 'nothing' ELSE concat_ws(': ', code, words) END AS told FROM ${notes}`
}

function probe(name: string, sql: string, count: string): Omit<Probe, 'turn'> {
  return { name, sql, count, latency: sql.includes(late.sql) ? late.micros : 0 }
}

/**
 * What is asked of a lake that knows more than the instant allows, and must then not say more: `{at}` is the instant.
 */
export function boundedOf(probes: readonly Probe[]): Probe[] {
  // What is settled by now is not what was settled then: with `unresolved` only knowledge at the instant answers alike.
  const decided = probes.filter(({ sql }) => sql.includes('{d}') && !sql.includes('unresolved :='))
  const dated = ['points', 'components', 'price_usd', 'vintages'].map((name) => {
    // A revised point gives way to its next vintage, which only knowledge at the instant takes back.
    const others = name === 'points' ? ` AND metric <> '${revised}'` : ''
    return `FROM ${name} WHERE available_at <= {at}${others}`
  })
  const complete = resampled.filter((options) => !options.includes('min_parts'))
  const made = complete.map((options) => `FROM resample(${options}) WHERE available_at <= {at} AND complete`)
  return [...decided, ...[...dated, ...made].map((sql) => ({ ...probe(sql, sql, '*'), turn: 24 }))]
}

/** An answer: how many rows say something, and a digest of the multiset of all. */
export interface Told {
  readonly rows: number
  readonly digest: string
}

/** Answers all of these in one statement. */
export async function tell(engine: Engine, probes: readonly Probe[], fill: (probe: Probe) => string): Promise<Told[]> {
  const parts = probes.map(
    (one, n) =>
      `SELECT ${n} AS n, count(${one.count}) AS "rows", CAST(coalesce(sum(CAST(hash(r) AS HUGEINT)), 0) AS VARCHAR) AS digest FROM (${fill(one)}) AS r`,
  )
  const rows = await engine.rows<{ n: number; rows: bigint; digest: string }>(parts.join('\nUNION ALL\n'))
  const told = rows.toSorted((a, b) => a.n - b.n)
  return told.map((row) => ({ rows: Number(row.rows), digest: row.digest }))
}
