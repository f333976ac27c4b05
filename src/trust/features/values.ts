import type { FeatureVersion, Unrequested } from '../../catalog/features.ts'
import { type LakeError, usage } from '../../base/errors.ts'
import { onGridSql } from '../../base/intervals-sql.ts'
import { namedMetrics } from '../lookahead/knowledge-states.ts'
import { featurePrefix } from '../../sources/points/own-rows.ts'
import { setMoment } from '../../query/lake.ts'
import { runCancellable, type RunDeps, runScript } from '../../query/run.ts'
import { statementsOf } from '../../query/statements.ts'
import { nodesOf, treesOf } from '../../query/parse-tree.ts'
import { type Engine, isSameName, quote, quoteList, quoteName } from '../../lake/store/engine.ts'
import {
  ceil,
  day,
  formatInstant,
  type Instant,
  type Interval,
  intervals,
  longestSeconds,
  step,
  type Weekday,
} from '../../base/time.ts'
import { bringGrid } from './grid.ts'

/** Timestamps of a grid for which a feature is to be computed, both ends included. */
export interface Due {
  readonly feature: FeatureVersion
  readonly from: Instant
  readonly to: Instant
  readonly weekStart: Weekday
}

/** Instants that are due, and how they are computed. */
export interface DueValues extends Due {
  /**
   * Whether the plan proves that no row looks ahead: one run then computes all instants, otherwise each has its own
   * run.
   */
  readonly proved: boolean
}

/** Computed values of a feature in a table of the session. */
export interface FeatureValues {
  /** Name of the table. */
  readonly table: string
  /** The column with the value, or several columns that become an object. */
  readonly values: readonly string[]
  /** The columns that name the series of a row: asset, currency, exchange. */
  readonly keys: readonly string[]
}

const table = 'feature_values'
const keys = ['asset', 'currency', 'exchange']

/** Returns the key that SQL takes a column for, whatever the case of its name. */
function keyOfColumn(column: string): string | undefined {
  return keys.find((key) => isSameName(key, column))
}

/**
 * Computes the due values into a table of the session, which may have an earlier state of knowledge. Each is the result
 * of the query if nothing after its own instant is known. If the plan proves that nothing later matters one run
 * computes them all; else there is one for each instant.
 */
export async function valuesOf(
  session: Engine,
  { feature, from, to, weekStart, proved }: DueValues,
  run: RunDeps,
): Promise<FeatureValues> {
  const { sql, latency } = feature
  await bringGrid(session, feature, to)
  const { columns } = await readFeatureQuery(session, sql, run)
  const values = valueColumns(columns.map(({ name }) => name))
  const featureColumns = columns.flatMap(({ name, type }) => {
    const key = keyOfColumn(name)
    if (key !== undefined) return [`CAST(${quoteName(name)} AS VARCHAR) AS ${key}`]
    return values.includes(name) ? [`${storedValueSql(quoteName(name), String(type))} AS ${quoteName(name)}`] : []
  })
  const at = 'CAST(ts AS TIMESTAMPTZ)'
  const knownSql = `make_timestamptz(epoch_us(${at}) + ${latency * 1e6})`
  const rows = `SELECT ${featureColumns.join(', ')}, ${at} AS ts, ${knownSql} AS known FROM (${sql}\n) AS told`
  const within = `epoch_us(ts) > ${step(from, feature.grid, -1) * 1e6} AND epoch_us(ts) <= ${to * 1e6}`
  const instants = `(${rows}) AS feature WHERE ${within}`
  const off = `NOT ${onGridSql('epoch_us(ts) // 1000000', feature.grid, weekStart)} OR epoch_us(ts) % 1000000 <> 0`
  const [stray] = await session.rows<{ ts: string | null }>(`SELECT min(ts) AS ts FROM ${instants} AND (${off})`)
  if (stray?.ts)
    throw usage('ts', {
      expected: `instants on the grid of ${feature.grid}`,
      got: stray.ts,
      next: 'correct sql or grid',
    })
  await runCancellable(session, sql, run, async () => {
    await session.run(`CREATE OR REPLACE TEMP TABLE ${table} AS FROM ${instants}${proved ? '' : ' AND false'}`)
    for (let ts = from; !proved && ts <= to; ts = step(ts, feature.grid, 1)) {
      await setMoment(session, 'as_of', formatInstant(ts))
      await session.run(`INSERT INTO ${table} FROM (${rows}) WHERE epoch_us(ts) = ${ts * 1e6}`)
    }
  })
  await setMoment(session, 'as_of')
  return { table, values, keys: columns.flatMap(({ name }) => keyOfColumn(name) ?? []) }
}

/** A clock that is called without brackets. */
const clockWord = /^(?:current_(?:date|time(?:stamp)?)|localtime(?:stamp)?)$/i

/** Reads the one SELECT of a feature, with its columns. Its result depends on the lake alone, not on when it runs. */
export async function readFeatureQuery(session: Engine, sql: string, run: RunDeps) {
  const refusal = (got: string): LakeError => usage('sql', { expected: 'one SELECT', got })
  // A script would run up to its last statement before it is refused.
  if (statementsOf(sql).length > 1) throw refusal('several statements')
  const ready = await runScript(session, sql, run)
  if (ready.kind !== 'SELECT') throw refusal(ready.kind)
  const names = ready.columns.map(({ name }) => name)
  if (!names.some((name) => isSameName(name, 'ts')))
    throw usage('sql', { expected: 'a column ts with the instant of each row', got: names.join(', ') })
  const readNames = [...nodesOf(await treesOf(session, sql))].flatMap(
    ({ function_name: called, column_names: column }) => {
      if (typeof called === 'string') return [called.toLowerCase()]
      return Array.isArray(column) && clockWord.test(column.join('.')) ? ['now'] : []
    },
  )
  const [moving] = await session.rows<{ name: string }>(
    `SELECT function_name AS name FROM system.main.duckdb_functions()
     WHERE stability <> 'CONSISTENT' AND function_name <> 'error'
       AND list_contains(${quoteList(readNames)}::VARCHAR[], function_name)`,
  )
  if (moving !== undefined)
    throw usage('sql', { expected: 'functions that give the same at any time', got: moving.name, next: 'name grid' })
  return ready
}

/** Finds the columns of the value: `v` or `value`, else all that is no key. */
function valueColumns(names: readonly string[]): readonly string[] {
  const rest = names.filter((name) => !isSameName(name, 'ts') && keyOfColumn(name) === undefined)
  const [named] = ['v', 'value'].flatMap((candidate) => rest.find((name) => isSameName(name, candidate)) ?? [])
  if (rest.length === 0) throw usage('sql', { expected: 'a column with the value', got: names.join(', ') })
  return named === undefined ? rest : [named]
}

/** Builds the SQL of a value as it is stored: null if it is no number. */
function storedValueSql(column: string, type: string): string {
  if (type === 'BOOLEAN') return `CAST(${column} AS INTEGER)`
  return /^(?:DOUBLE|FLOAT)$/.test(type) ? `CASE WHEN isfinite(${column}) THEN ${column} END` : column
}

/** Time that a value waits for a requested point that is missing; a point missing for longer is a gap. */
const patience = 2 * day

/** A series that a feature reads and that is not resolved at a timestamp of the grid. */
interface WaitingPoint {
  readonly at: Instant
  readonly metric: string
  /** Asset; null if nothing of the metric is resolved. */
  readonly asset: string | null
}

/** SQL of the windows that a provider has answered. */
const resolved = `state IN ('covered', 'empty', 'unsupported')`

/** The series that a feature reads, by the words of its query. */
interface SeriesRead {
  /** Metrics that it names; none if it reads those of all points. */
  readonly named: readonly string[]
  /** SQL of which rows of `coverage` and `series` it reads, whatever their asset. */
  readonly isRead: string
  /** SQL of whether an asset is one that it names. */
  readonly isNamed: string
}

/** Lists the series that a feature reads, without `dated`: user data that state when they were known. */
async function findSeriesRead(
  session: Engine,
  { sql, assets = [] }: FeatureVersion,
  dated: readonly string[],
): Promise<SeriesRead> {
  // A name that only begins another one is not read.
  const isWhole = (metric: string): boolean => !sql.includes(metric) || new RegExp(`\\b${metric}(?![\\w/])`).test(sql)
  const all = (await namedMetrics(session, sql)).filter(isWhole)
  const any = all.length === 0 && /\b(?:points|components|vintages)\b/i.test(sql)
  const text = quote([sql, ...assets.map((asset) => quote(asset))].join(' '))
  const named = all.filter((metric) => !dated.includes(metric))
  const metrics = any
    ? `NOT starts_with(metric, ${quote(featurePrefix)}) AND NOT list_contains(${quoteList(dated)}::VARCHAR[], metric)`
    : `list_contains(${quoteList(named)}::VARCHAR[], metric)`
  const says = intervals.some((interval) => sql.includes(interval))
  const isRead = says && !any ? `(${metrics} AND contains(${text}, "interval"))` : `(${metrics})`
  return { named, isRead, isNamed: `contains(${text}, concat(chr(39), asset, chr(39)))` }
}

/**
 * Finds the first instant of the grid at which something that a feature reads has not been requested and resolved; null
 * for none.
 */
export async function waitsFor(
  session: Engine,
  due: Due,
  now: Instant,
  dated: readonly string[],
): Promise<WaitingPoint | null> {
  const { feature, from, to, weekStart } = due
  const { grid } = feature
  const { named, isRead, isNamed } = await findSeriesRead(session, feature, dated)
  const knownMetrics = await session.rows<{ metric: string }>(
    `SELECT DISTINCT metric FROM coverage WHERE ${isRead} AND ${resolved}
     UNION SELECT metric FROM series WHERE ${isRead} AND points > 0`,
  )
  const unknown = named.find((metric) => !knownMetrics.some((row) => row.metric === metric))
  if (unknown !== undefined) return { at: from, metric: unknown, asset: null }
  const earliest = Math.max(from, now - Math.max(patience, 3 * longestSeconds(grid)))
  const open: WaitingPoint[] = []
  const wait = (since: Instant, until: Instant | null, { metric, asset }: Omit<WaitingPoint, 'at'>): void => {
    const at = ceil(since, grid, weekStart)
    if (at <= to && (until === null || at < until)) open.push({ at, metric, asset })
  }
  const reads = await session.rows<{ interval: Interval; metrics: string[]; assets: boolean }>(
    `SELECT "interval", list(DISTINCT metric) AS metrics, bool_or(${isNamed}) AS assets FROM coverage
     WHERE ${isRead} GROUP BY ALL`,
  )
  for (const { interval, metrics, assets: only } of reads) {
    // Assets that the text names; all where it names none.
    const chosen = only ? isNamed : 'true'
    const holes = await session.rows<SeriesHole>(
      `SELECT -(-epoch_us(since) // 1000000) AS since, epoch_us(until) // 1000000 AS until, metric, asset
       FROM unresolved(${quoteList(metrics)}, ${quote(interval)}) WHERE ${chosen}`,
    )
    for (const { since, until, ...series } of holes)
      wait(Math.max(Number(since), earliest), until === null ? null : Number(until), series)
    // Planned and not requested, or without a usable answer: that is no gap, however long it lasts.
    const unanswered = await session.rows<SeriesHole>(
      `SELECT epoch_us(since) // 1000000 AS since, epoch_us(until) // 1000000 AS until, metric, asset FROM coverage
       WHERE list_contains(${quoteList(metrics)}, metric) AND "interval" = ${quote(interval)}
         AND state IN ('not requested', 'failed') AND ${chosen}`,
    )
    for (const { since, until, ...series } of unanswered) {
      const ends = [since, until ?? since].map((at) => step(Number(at), interval, 1))
      wait(Math.max(ends[0] ?? from, from), (ends[1] ?? from) + longestSeconds(grid), series)
    }
  }
  return open.toSorted((a, b) => a.at - b.at)[0] ?? null
}

type SeriesHole = {
  readonly since: bigint
  readonly until: bigint | null
  readonly metric: string
  readonly asset: string
}

/**
 * Lists the series that a feature reads and that were not requested, each with the time from which on it is resolved.
 */
export async function unrequestedBy(
  session: Engine,
  feature: FeatureVersion,
  dated: readonly string[],
): Promise<Unrequested[]> {
  const { named, isRead, isNamed } = await findSeriesRead(session, feature, dated)
  const earlier = await session.rows<{ metric: string; interval: Interval; asset: string | null; before: bigint }>(
    `SELECT metric, "interval", CASE WHEN ${isNamed} THEN asset END AS asset, epoch_us(min(since)) // 1000000 AS before
     FROM coverage WHERE ${isRead} AND NOT starts_with(metric, ${quote(featurePrefix)}) AND ${resolved}
       GROUP BY ALL ORDER BY ALL`,
  )
  const answered = earlier.map((row) => ({ ...row, before: Number(row.before) }))
  const some = answered.some(({ asset }) => asset !== null)
  const lacking = (feature.assets ?? []).flatMap((asset) =>
    named
      .filter(
        (metric) =>
          !metric.startsWith(featurePrefix) && !answered.some((row) => row.metric === metric && row.asset === asset),
      )
      .map((metric) => ({ metric, interval: null, asset, before: null })),
  )
  return [...answered.filter(({ asset }) => !some || asset !== null), ...lacking]
}
