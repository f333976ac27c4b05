import type { FeatureVersion } from '../../catalog/features.ts'
import { usage } from '../../base/errors.ts'
import { onGridSql } from '../../base/intervals-sql.ts'
import { namedMetrics } from '../lookahead/states.ts'
import { featurePrefix } from '../../sources/points/own-rows.ts'
import { setMoment } from '../../query/lake.ts'
import { guarded, type RunDeps, runScript } from '../../query/run.ts'
import { statementsOf } from '../../query/statements.ts'
import { nodesOf, treesOf } from '../../query/tree.ts'
import { type Engine, quote, quoteList, quoteName } from '../../lake/store/engine.ts'
import { ceil, day, formatInstant, type Instant, longestSeconds, step, type Weekday } from '../../base/time.ts'
import { bringGrid } from './grid.ts'

/** What of a feature is to be computed: the instants of its grid from one to another, both included. */
export interface Due {
  readonly feature: FeatureVersion
  readonly from: Instant
  readonly to: Instant
  readonly weekStart: Weekday
}

const table = 'feature_values'
const keys = ['asset', 'currency', 'exchange']

/**
 * Puts the values that are due into a table of the session, which may stand in an earlier state of knowledge. Each is what
 * the query gives when nothing after its own instant is known. Where the plan proves that nothing later matters one run
 * tells them all; else there is one for each instant.
 */
export async function valuesOf(
  session: Engine,
  { feature, from, to, weekStart, proved }: Due & { readonly proved: boolean },
  run: RunDeps,
) {
  const { sql, latency } = feature
  await bringGrid(session, feature, to)
  const { columns } = await selectOf(session, sql, run)
  const values = valuesAmong(columns.map(({ name }) => name))
  const own = columns.flatMap(({ name, type }) => {
    if (keys.includes(name)) return [`CAST(${quoteName(name)} AS VARCHAR) AS ${name}`]
    return values.includes(name) ? [`${finite(quoteName(name), String(type))} AS ${quoteName(name)}`] : []
  })
  const at = 'CAST(ts AS TIMESTAMPTZ)'
  const known = `make_timestamptz(epoch_us(${at}) + ${latency * 1e6})`
  const rows = `SELECT ${own.join(', ')}, ${at} AS ts, ${known} AS known FROM (${sql}\n) AS told`
  const within = `epoch_us(ts) > ${step(from, feature.grid, -1) * 1e6} AND epoch_us(ts) <= ${to * 1e6}`
  const instants = `(${rows}) AS feature WHERE ${within}`
  const off = `NOT ${onGridSql('epoch_us(ts) // 1000000', feature.grid, weekStart)} OR epoch_us(ts) % 1000000 <> 0`
  const [stray] = await session.rows<{ ts: string | null }>(`SELECT min(ts) AS ts FROM ${instants} AND (${off})`)
  if (stray?.ts)
    throw usage('ts', { expected: `instants on the grid of ${feature.grid}`, got: stray.ts, next: 'mend sql or grid' })
  await guarded(session, sql, run, async () => {
    await session.run(`CREATE OR REPLACE TEMP TABLE ${table} AS FROM ${instants}${proved ? '' : ' AND false'}`)
    for (let ts = from; !proved && ts <= to; ts = step(ts, feature.grid, 1)) {
      await setMoment(session, 'as_of', formatInstant(ts))
      await session.run(`INSERT INTO ${table} FROM (${rows}) WHERE epoch_us(ts) = ${ts * 1e6}`)
    }
  })
  await setMoment(session, 'as_of')
  /** One column with the value, or several that become an object, and those that tell of which series a row is. */
  return { table, values, keys: columns.map(({ name }) => name).filter((name) => keys.includes(name)) }
}

/** A clock that is called without brackets. */
const clockWord = /^(?:current_(?:date|time(?:stamp)?)|localtime(?:stamp)?)$/i

/** The one SELECT that a feature is, with its columns; what it gives turns on the lake alone, not on when it runs. */
export async function selectOf(session: Engine, sql: string, run: RunDeps) {
  const ready = await runScript(session, sql, run)
  if (ready.kind !== 'SELECT' || statementsOf(sql).length > 1)
    throw usage('sql', { expected: 'one SELECT', got: ready.kind === 'SELECT' ? 'several statements' : ready.kind })
  const names = ready.columns.map(({ name }) => name)
  if (!names.includes('ts'))
    throw usage('sql', { expected: 'a column ts with the instant of each row', got: names.join(', ') })
  const told = [...nodesOf(await treesOf(session, sql))].flatMap(({ function_name: called, column_names: column }) => {
    if (typeof called === 'string') return [called.toLowerCase()]
    return Array.isArray(column) && clockWord.test(column.join('.')) ? ['now'] : []
  })
  const [moving] = await session.rows<{ name: string }>(
    `SELECT function_name AS name FROM system.main.duckdb_functions()
     WHERE stability <> 'CONSISTENT' AND function_name <> 'error' AND list_contains(${quoteList(told)}::VARCHAR[], function_name)`,
  )
  if (moving !== undefined)
    throw usage('sql', { expected: 'functions that give the same at any time', got: moving.name, next: 'name grid' })
  return ready
}

/** Which columns are the value: `v` or `value`, else all that is no key. */
function valuesAmong(names: readonly string[]): readonly string[] {
  const rest = names.filter((name) => name !== 'ts' && !keys.includes(name))
  const [named] = ['v', 'value'].filter((name) => rest.includes(name))
  if (rest.length === 0) throw usage('sql', { expected: 'a column with the value', got: names.join(', ') })
  return named === undefined ? rest : [named]
}

/** A value as it is stored: what is no number is null. */
function finite(column: string, type: string): string {
  if (type === 'BOOLEAN') return `CAST(${column} AS INTEGER)`
  return /^(?:DOUBLE|FLOAT)$/.test(type) ? `CASE WHEN isfinite(${column}) THEN ${column} END` : column
}

/** So long a value waits for what it is made of: what is missing for longer is a gap. */
const patience = 2 * day

/** What a feature waits for: a series that it reads and that is not settled at an instant of the grid. */
interface Waiting {
  readonly at: Instant
  readonly metric: string
  readonly asset: string
}

/** The first instant of the grid at which something that a feature reads has not been asked for and answered; null for none. */
export async function waitsFor(session: Engine, due: Due, now: Instant, but: readonly string[]) {
  const { feature, from, to, weekStart } = due
  const { sql, grid, assets = [] } = feature
  // A name that only begins another one is not read.
  const isRead = (metric: string): boolean => !sql.includes(metric) || new RegExp(`\\b${metric}(?![\\w/])`).test(sql)
  const named = (await namedMetrics(session, sql)).filter(isRead)
  const any = named.length === 0 && /\b(?:points|components|vintages)\b/i.test(sql)
  const metrics = any
    ? `SELECT metric FROM coverage WHERE NOT starts_with(metric, ${quote(featurePrefix)})`
    : `SELECT unnest(${quoteList(named)})`
  const enough = Math.max(from, now - Math.max(patience, 3 * longestSeconds(grid)))
  const text = quote([sql, ...assets.map((asset) => quote(asset))].join(' '))
  const isNamed = (asset: string): string => `contains(${text}, concat(chr(39), ${asset}, chr(39)))`
  const asked = await session.rows<{ interval: string; metrics: string[]; assets: boolean }>(
    `SELECT "interval", list(DISTINCT metric) AS metrics, bool_or(${isNamed('asset')}) AS assets FROM coverage
     WHERE metric IN (${metrics}) AND NOT list_contains(${quoteList(but)}::VARCHAR[], metric)
       AND (${any} OR contains(${text}, "interval")) GROUP BY ALL`,
  )
  const open: Waiting[] = []
  for (const { interval, metrics: own, assets: only } of asked) {
    // Assets that the text names; all where it names none.
    const holes = await session.rows<{ since: bigint; until: bigint | null; metric: string; asset: string }>(
      `SELECT -(-epoch_us(since) // 1000000) AS since, epoch_us(until) // 1000000 AS until, metric, asset
       FROM unsettled(${quoteList(own)}, ${quote(interval)}) WHERE ${only ? isNamed('asset') : 'true'}`,
    )
    for (const { since, until, metric, asset } of holes) {
      const at = ceil(Math.max(Number(since), enough), grid, weekStart)
      if (at <= to && (until === null || at < Number(until))) open.push({ at, metric, asset })
    }
  }
  return open.toSorted((a, b) => a.at - b.at)[0] ?? null
}
