import { columnsOf } from '../store/parquet.ts'
import { usage } from '../errors.ts'
import { intervals, isInterval, parseDuration } from '../time.ts'
import { Engine, quote, quoteList, quoteName } from '../store/engine.ts'
import { literalPath } from '../views/relations.ts'
import { utcSql } from '../views/template.ts'
import { carry } from './carry.ts'
import type { Moment } from './lake.ts'
import { checkMembers, memberColumns, membersSql } from './panel-members.ts'
import { type Cell, wideSql } from './panel-wide.ts'
import { refusal } from './refusal.ts'
import { guarded, runScript, type RunDeps } from './run.ts'

/** Where the decisions of a panel come from. */
export type Decisions =
  | { readonly kind: 'file'; readonly path: string }
  /** A JSON array of objects, and the SQL type of each of their fields. */
  | { readonly kind: 'list'; readonly text: string; readonly types: Readonly<Record<string, string>> }
  | {
      readonly kind: 'calendar'
      readonly since: string
      readonly until: string
      /** As DuckDB spells an interval: `1 day`, `1 month`, `15 minutes`. */
      readonly step: string
      /** Left out where a universe says of which assets there are decisions. */
      readonly assets?: readonly string[]
    }

/** An instant at which something is decided; its further fields come back beside the answer. */
export interface Instant {
  readonly ts: Moment | null
  readonly [field: string]: string | number | boolean | null | Date
}

/** One decision: at `ts` something about `asset` is decided. */
export interface Decision extends Instant {
  readonly asset: string | null
}

/** What the caller of a program asks for; `decisions` may also be a calendar, or instants where there is a universe. */
export interface Panel extends Omit<PanelSpec, 'decisions' | 'interval'> {
  readonly decisions: readonly Decision[] | readonly Instant[] | Extract<Decisions, { kind: 'calendar' }>
  /** Of the metrics; 24h where none is named. */
  readonly interval?: string | undefined
  /** The time needed to act: `15m`, `1d`. */
  readonly latency?: string | undefined
  /** Answers older than this become null: `3d`. */
  readonly maxAge?: string | undefined
}

/** What stands in a panel: a column for each metric and field. */
export interface PanelSpec {
  readonly decisions: Decisions
  /** A condition on the columns of the view `universe`: each instant is decided about the products that met it then. */
  readonly universe?: string | undefined
  /** Paths, each with a JSON pointer behind `#` where one leaf of an object is meant. */
  readonly metrics: readonly string[]
  readonly interval: string
  /** Of each metric; `v` alone is named like the metric, the others `metric.field`. */
  readonly fields?: readonly PanelField[] | undefined
  readonly latencySeconds?: number | undefined
  readonly maxAgeSeconds?: number | undefined
  readonly currency?: string | undefined
  readonly exchange?: string | undefined
  readonly network?: string | undefined
  /** JSON pointer into object values, for the metrics that name none of their own. */
  readonly component?: string | undefined
  /** Points whose value is null do not count; otherwise a null is the latest knowledge. */
  readonly skipNulls?: boolean | undefined
}

/** What can be told of the point behind a cell of a panel. */
export const panelFields = ['v', 'o', 't', 'available_at', 'age'] as const
export type PanelField = (typeof panelFields)[number]

/** The options of the joins. */
export type JoinOptions = Omit<PanelSpec, 'decisions' | 'universe' | 'metrics' | 'interval' | 'fields'>

/** The statements behind a panel: the first makes the table of decisions, the second is the query. */
export interface PanelSql {
  readonly decisions: string
  readonly query: string
}

/** Numbers the decisions; names that begin like this are taken by the joins. */
export const key = '_pit_decision'

/** The SQL of a panel over a table of that name; it runs as it is in any DuckDB session on the lake. */
export function panelSql(spec: PanelSpec, table = 'decisions'): PanelSql {
  const { metrics } = spec
  if (metrics.length === 0) throw usage('--metrics', { expected: 'paths of metrics, by comma', got: 'nothing' })
  const twice = metrics.find((metric, i) => metrics.indexOf(metric) !== i)
  if (twice !== undefined) throw usage('--metrics', { expected: 'each metric once', got: twice })
  if (!isInterval(spec.interval))
    throw usage('interval', { expected: intervals.join(', '), got: JSON.stringify(spec.interval) })
  if (spec.decisions.kind === 'list') checkNames('panel', Object.keys(spec.decisions.types), spec)
  const given = ['asked', quoteList(metrics), quote(spec.interval), ...optionsSql(spec)].join(', ')
  const decisions = quoteName(table)
  const query = [
    `WITH asked AS MATERIALIZED (SELECT ${key}, asset, ts FROM ${decisions}),`,
    wideSql(cellsOf(spec), metrics, `pit_long(${given})`, key),
    `SELECT own.* EXCLUDE (${key}), wide.* EXCLUDE (${key}, ts)`,
    `FROM ${decisions} AS own JOIN wide ON wide.${key} = own.${key} AND wide.ts IS NOT DISTINCT FROM own.ts`,
    `ORDER BY own.${key}`,
  ].join('\n')
  return { decisions: tableSql(spec, table), query }
}

/** The statement that makes the table of the decisions. */
export function tableSql(spec: Pick<PanelSpec, 'decisions' | 'universe'>, table: string): string {
  return `CREATE OR REPLACE TEMP TABLE ${quoteName(table)} AS\n${decidedSql(spec, source(spec))}`
}

/** What is said to a join beside metric and interval. */
export function optionsSql(spec: JoinOptions): readonly string[] {
  const named = ['currency', 'exchange', 'network', 'component'] as const
  return [
    ...named.flatMap((name) => (spec[name] === undefined ? [] : [`${name} := ${quote(spec[name])}`])),
    ...(spec.maxAgeSeconds === undefined ? [] : [`max_age := ${seconds(spec.maxAgeSeconds)}`]),
    ...(spec.latencySeconds === undefined ? [] : [`latency := ${seconds(spec.latencySeconds)}`]),
    ...(spec.skipNulls === true ? ['skip_nulls := true'] : []),
  ]
}

/** The decisions that a relation of them stands for: itself, or what its instants are about. */
function decidedSql({ universe }: Pick<PanelSpec, 'universe'>, moments: string): string {
  return universe === undefined ? moments : membersSql(moments, universe, key)
}

/** The columns that a panel adds. */
function cellsOf({ metrics, fields = ['v'] }: PanelSpec): Cell[] {
  return metrics.flatMap((metric) =>
    fields.map((field) => ({ metric, field, name: field === 'v' ? metric : `${metric}.${field}` })),
  )
}

/** The columns of the decisions come back beside those of the panel: no name may stand twice. */
function checkNames(where: string, names: readonly string[], spec: PanelSpec): void {
  const members = spec.universe === undefined ? [] : memberColumns
  refuseAdded(where, names, [...members, ...cellsOf(spec).map(({ name }) => name)])
}

/** Refuses decisions with a column that is added to them. */
export function refuseAdded(where: string, names: readonly string[], columns: readonly string[]): void {
  const added = new Set([...columns.map((name) => name.toLowerCase()), key])
  const clash = names.find((name) => added.has(name.toLowerCase()))
  if (clash === undefined) return
  const expected = `decisions without a column that the ${where === 'panel' || where.startsWith('--') ? 'panel' : 'join'} adds`
  throw usage(where, { expected, got: clash, next: 'rename it' })
}

function seconds(count: number): string {
  return `to_seconds(${count})`
}

/** The decisions as they were given; where there is a universe they name no assets. */
function source({ decisions, universe }: Pick<PanelSpec, 'decisions' | 'universe'>): string {
  if (decisions.kind === 'file') {
    const asset = universe === undefined ? 'CAST(asset AS VARCHAR) AS asset, ' : ''
    return `SELECT row_number() OVER () AS ${key},
  * REPLACE (${asset}${utcSql('ts')} AS ts)
FROM ${reader(decisions.path, keysOf(universe))}`
  }
  if (decisions.kind === 'list') {
    const shape = JSON.stringify([decisions.types])
    return `SELECT row_number() OVER () AS ${key}, * REPLACE (${utcSql('ts')} AS ts)
FROM (SELECT unnest(from_json(${quote(decisions.text)}, ${quote(shape)}), max_depth := 2))`
  }
  const { since, until, step, assets } = decisions
  const instants = `calendar(${quote(since)}, ${quote(until)}, CAST(${quote(step)} AS INTERVAL))`
  if (universe !== undefined) {
    if (assets !== undefined) throw usage('panel', { expected: 'assets or a universe', got: 'both' })
    return `SELECT row_number() OVER (ORDER BY ts) AS ${key}, ts FROM ${instants}`
  }
  if (assets === undefined) throw usage('panel', { expected: 'assets or a universe', got: 'neither' })
  return `SELECT row_number() OVER (ORDER BY ts, asset) AS ${key}, asset, ts
FROM ${instants} CROSS JOIN (SELECT unnest(${quoteList(assets)}) AS asset)`
}

/** The columns by which decisions are found. */
function keysOf(universe: string | undefined): readonly string[] {
  return universe === undefined ? ['asset', 'ts'] : ['ts']
}

/** A panel that a program asks for, as the command line would say it. */
export function specOf({ latency, maxAge, decisions, interval = '24h', ...rest }: Panel): PanelSpec {
  return {
    ...rest,
    interval,
    decisions: isList(decisions) ? decisionsFromList(decisions, keysOf(rest.universe)) : decisions,
    latencySeconds: timeOf('latency', latency) ?? rest.latencySeconds,
    maxAgeSeconds: timeOf('maxAge', maxAge) ?? rest.maxAgeSeconds,
  }
}

function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const seconds = parseDuration(text)
  if (seconds === undefined) throw usage(name, { expected: 'a time such as 15m or 2d', got: JSON.stringify(text) })
  return seconds
}

/** Decisions given as records, each field with one type for all of them. */
function decisionsFromList(given: readonly Instant[], keys: readonly string[]): Decisions {
  const types = Object.create(null) as Record<string, string>
  for (const name of keys) types[name] = 'VARCHAR'
  for (const one of given) {
    for (const [name, value] of Object.entries(one)) {
      const seen = typeOf(name, value)
      if (seen !== undefined) types[name] = (types[name] ?? seen) === seen ? seen : 'VARCHAR'
    }
  }
  // What is null in all of them.
  for (const name of given.flatMap((one) => Object.keys(one))) types[name] ??= 'VARCHAR'
  return { kind: 'list', text: JSON.stringify(given), types }
}

function isList(given: Panel['decisions']): given is readonly Instant[] {
  return Array.isArray(given)
}

function typeOf(name: string, value: Decision[string]): string | undefined {
  if (value === null || name === 'asset' || name === 'ts') return undefined
  if (value instanceof Date) return 'TIMESTAMPTZ'
  return typeof value === 'number' ? 'DOUBLE' : typeof value === 'boolean' ? 'BOOLEAN' : 'VARCHAR'
}

/** In a CSV file the keys are read as the texts that they are, where they are there: no guess about zones. */
function reader(path: string, texts: readonly string[] = []): string {
  const file = `${quote(literalPath(path))}, hive_partitioning = false`
  const types = texts.map((name) => `${quote(name)}: 'VARCHAR'`).join(', ')
  return /\.(?:parquet|parq|pq)$/i.test(path)
    ? `read_parquet(${file})`
    : `read_csv(${file}, header = true${types && `, types = {${types}}`})`
}

/** Makes the table of decisions in a session; a file is read by an engine that runs nothing else. Says what it lacks. */
export async function bringDecisions(engine: Engine, spec: PanelSpec, deps: RunDeps): Promise<void> {
  const { decisions } = spec
  if (decisions.kind === 'file') await bringFile(engine, decisions.path, spec, deps)
  await checkDecisions(engine, spec, deps)
  const made = decidedSql(spec, broughtSql(spec))
  if (decisions.kind === 'file' && spec.universe === undefined) return
  const { text } = await runScript(engine, `CREATE OR REPLACE TEMP TABLE decisions AS\n${made}`, {
    ...deps,
    generated: true,
  })
  await guarded(engine, text, deps, async () => engine.run(text))
}

/** Refuses what a universe cannot answer; needs a file's rows to be there. */
export async function checkDecisions(engine: Engine, spec: PanelSpec, deps: RunDeps): Promise<void> {
  if (spec.universe !== undefined) await checkMembers(engine, broughtSql(spec), spec.universe, deps)
}

/** The table in which the rows of a file stand. */
const brought = 'decisions'

/** The decisions as they were given, where this session sees them. */
function broughtSql(spec: PanelSpec): string {
  return spec.decisions.kind === 'file' ? `FROM ${brought}` : source(spec)
}

async function bringFile(engine: Engine, path: string, spec: PanelSpec, deps: RunDeps): Promise<void> {
  const sql = source(spec)
  using own = await Engine.open(':memory:', { privateSpill: true })
  try {
    await checkFile(own, path, spec)
    await carry(own, sql, engine, brought)
  } catch (cause) {
    throw refusal(cause, { statement: sql, script: sql, offset: 0, folder: deps.folder })
  }
}

async function checkFile(engine: Engine, path: string, spec: PanelSpec): Promise<void> {
  const names = (await columnsOf(engine, reader(path))).map(({ name }) => name)
  const keys = keysOf(spec.universe)
  const missing = keys.filter((name) => !names.some((other) => other.toLowerCase() === name))
  if (missing.length > 0) {
    throw usage(`--decisions ${path}`, { expected: `columns ${keys.join(' and ')}`, got: names.join(', ') || 'none' })
  }
  checkNames(`--decisions ${path}`, names, spec)
}
