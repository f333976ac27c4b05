import { requireFileError } from '../lake/store/file-errors.ts'
import { decompressionSql, proveWhole } from '../lake/store/compressed-files.ts'
import { columnsOf } from '../lake/store/parquet.ts'
import { usage } from '../base/errors.ts'
import { fileColumn } from '../sources/user-files/files.ts'
import { readUserTable } from '../sources/user-files/user-table.ts'
import { Engine, quote, quoteList, quoteName, quotePath } from '../lake/store/engine.ts'
import { utcSql } from './views/template.ts'
import { carry } from './row-comparison.ts'
import { type Door, optionAt } from './note-texts.ts'
import {
  type Decision,
  decisionOptions,
  gridOptions,
  type Instant,
  type JoinOptions,
  type joinOptions,
  knowledgeOptions,
  panelOptions,
  type ReadOptions,
  type PanelField,
  type UniverseColumn,
} from './options.ts'
import { type CalendarGrid, gridSql } from './panel-calendar.ts'
import { readOption, readOptions } from './read-options.ts'
import { refusal, unreadInstant } from './refusal.ts'
import { judgeCondition } from './universe-condition.ts'
import { runCancellable, type RunDeps, runScript } from './run.ts'

/** Source of the decisions of a panel. */
type Decisions =
  | DecisionsFile
  /** A JSON array of objects, and the SQL type of each of their fields. */
  | { readonly kind: 'list'; readonly text: string; readonly types: Readonly<Record<string, string>> }
  | CalendarDecisions

/** Decisions in a CSV or Parquet file. */
interface DecisionsFile {
  readonly kind: 'file'
  readonly path: string
  /** Types of the columns of a CSV file that are not text (`readDecisionTypes`); without them all are text. */
  readonly types?: ReadonlyMap<string, string>
}

/** Decisions on a grid of instants. */
interface CalendarDecisions extends CalendarGrid {
  /** Assets with a decision at each instant; absent if a universe names the assets. */
  readonly assets?: readonly string[]
}

/** Decisions and metrics of a panel. */
export interface Panel extends JoinOptions {
  /** Decisions with `asset` and `ts`; with `universe` only `ts`. */
  readonly decisions?: readonly Decision[] | readonly Instant[] | CalendarDecisions
  /** Grid of decisions in place of `decisions`; needs `assets` or `universe`. */
  readonly calendar?: { readonly since: string; readonly until: string; readonly step: string } | undefined
  /** Assets of the grid. */
  readonly assets?: string | readonly string[] | undefined
  /**
   * Condition on the columns of the view `universe`, such as `status = 'active'`. Each `ts` then has a row for every
   * product that met the condition at that time.
   */
  readonly universe?: string | undefined
  /**
   * Paths of metrics, or an object that names the columns: `{ price: 'price_usd' }`. `path#/pointer` selects a
   * component.
   */
  readonly metrics: readonly string[] | Readonly<Record<string, string>>
  /**
   * Columns of the view `universe`, such as `status` or `chains`, as known at each `ts`: of each product of `universe`,
   * else of the product to which the asset was linked then. NULL if there was none.
   */
  readonly with?: readonly UniverseColumn[] | undefined
  /** Fields of each point: `v`, `o`, `t`, `available_at`, `age`. Default: `v`. */
  readonly fields?: readonly PanelField[] | undefined
  /** Latency in seconds, in place of `latency`. */
  readonly latencySeconds?: number | undefined
  /** Maximum age in seconds, in place of `maxAge`. */
  readonly maxAgeSeconds?: number | undefined
}

/** Panel as requested, from any interface. */
export type PanelSpec = ReadOptions<typeof panelOptions> & { readonly decisions: Decisions; readonly interval: string }

/** Fields of a panel from which its decisions are made. */
type DecisionSpec = Pick<PanelSpec, 'decisions' | 'universe' | 'with'>

/** The two statements of a question about decisions. */
export interface DecisionsSql {
  /** Creates the table of the decisions. */
  readonly decisions: string
  /** SQL that reads that table and returns the answer. */
  readonly query: string
}

/** Numbers the decisions; names that begin like this are taken by the joins. */
export const key = '_pit_decision'

/** Builds the SQL of a panel over a table of that name; it runs as it is in any DuckDB session on the lake. */
export function panelSql(spec: PanelSpec, table = 'decisions'): DecisionsSql {
  if (spec.decisions.kind === 'list') checkNames('decisions', Object.keys(spec.decisions.types), spec)
  const decisions = quoteName(table)
  const query = [
    askedSql(spec, table),
    `SELECT own.* EXCLUDE (${key}), wide.* EXCLUDE (${key}, ts)`,
    `FROM ${decisions} AS own JOIN wide ON wide.${key} = own.${key} AND wide.ts IS NOT DISTINCT FROM own.ts`,
    `ORDER BY own.${key}`,
  ].join('\n')
  return { decisions: tableSql(spec, table), query }
}

/**
 * Builds the SQL of the columns that a panel adds, for some of its decisions, in their order: `first` to `last` by
 * number.
 */
export function partSql(spec: PanelSpec, table: string, first: number, last: number): string {
  return [
    askedSql(spec, table, ` WHERE ${key} BETWEEN ${first} AND ${last}`),
    `SELECT * EXCLUDE (${key}, ts) FROM wide ORDER BY ${key}`,
  ].join('\n')
}

/** Builds the CTE `wide` of a panel, and what it needs. */
function askedSql(spec: PanelSpec, table: string, where = ''): string {
  const metrics = [...new Set(spec.metrics.map(({ metric }) => metric))]
  const callArguments = ['asked', quoteList(metrics), quote(spec.interval), ...optionsSql(spec)].join(', ')
  return [
    `WITH asked AS MATERIALIZED (SELECT ${key}, asset, ts FROM ${quoteName(table)}${where}),`,
    wideSql(cellsOf(spec), metrics, `pit_long(${callArguments})`, key),
  ].join('\n')
}

/** Builds the statement that makes the table of the decisions. */
export function tableSql(spec: DecisionSpec, table: string): string {
  return `CREATE OR REPLACE TEMP TABLE ${quoteName(table)} AS\n${decidedSql(spec, source(spec))}`
}

/** Formats the options of a join other than metric and interval. */
export function optionsSql(spec: ReadOptions<typeof joinOptions>): readonly string[] {
  const named = ['currency', 'exchange', 'network', 'component', 'unresolved', 'vintage', 'back'] as const
  return [
    ...named.flatMap((name) => (spec[name] === undefined ? [] : [`${name} := ${quote(spec[name])}`])),
    ...(spec.maxAge === undefined ? [] : [`max_age := to_seconds(${spec.maxAge})`]),
    ...(spec.latency === undefined ? [] : [`latency := to_seconds(${spec.latency})`]),
    ...(spec.skipNulls === true ? ['skip_nulls := true'] : []),
    ...(spec.followRenames === true ? ['follow_renames := true'] : []),
  ]
}

/**
 * Builds the SQL of the decisions that a relation stands for: the relation itself, or the members of a universe at its
 * instants; with columns of the registry.
 */
function decidedSql(spec: DecisionSpec, moments: string): string {
  const decided = spec.universe === undefined ? moments : membersSql(moments, spec.universe, key)
  const columns = registryColumns(spec)
  return columns.length === 0 ? decided : withRegistrySql(decided, columns, spec.universe !== undefined)
}

/** Lists the columns of the registry that are added to decisions; members of a universe have some of them anyway. */
export function registryColumns({
  with: columns = [],
  universe,
}: Pick<PanelSpec, 'with' | 'universe'>): readonly string[] {
  const members = universe === undefined ? [] : memberColumns
  return [...new Set<string>(columns)].filter((name) => !members.includes(name))
}

/**
 * Decisions with columns of the registry: of the product of each row, else of the product that its asset was linked to.
 */
function withRegistrySql(decided: string, columns: readonly string[], members: boolean): string {
  const product = members ? ', product_id AS _pit_product' : ''
  return `WITH _pit_decided AS MATERIALIZED (${decided}),
_pit_listed AS (SELECT ${key} AS _pit_number, asset, ts${product} FROM _pit_decided)
SELECT decided.*, ${columns.map((name) => `known.${name}`).join(', ')}
FROM _pit_decided AS decided
JOIN pit_registry('_pit_listed'${members ? ', product := _pit_product' : ''}) AS known ON known._pit_number = decided.${key}`
}

/** One column that a panel adds. */
interface PanelCell {
  /** Path of the metric, with a `#/pointer` if one component is requested. */
  readonly metric: string
  /** The field of the point that the column contains. */
  readonly field: PanelField
  /** Name of the column. */
  readonly name: string
}

/** Lists the columns that a panel adds. */
function cellsOf({ metrics, fields = ['v'] }: Pick<PanelSpec, 'metrics' | 'fields'>): PanelCell[] {
  return metrics.flatMap(({ name, metric }) =>
    fields.map((field) => ({ metric, field, name: field === 'v' ? name : `${name}.${field}` })),
  )
}

/** Refuses duplicate names: the columns of the decisions are returned alongside those of the panel. */
function checkNames(subject: string, names: readonly string[], spec: PanelSpec): void {
  const members = spec.universe === undefined ? [] : memberColumns
  const cells = cellsOf(spec).map(({ name }) => name)
  refuseAdded(subject, 'panel', names, [...members, ...registryColumns(spec), ...cells])
}

/** Refuses decisions with a column that is added to them. */
export function refuseAdded(
  subject: string,
  what: 'panel' | 'join',
  names: readonly string[],
  columns: readonly string[],
): void {
  const added = new Set([...columns.map((name) => name.toLowerCase()), key])
  const clash = names.find((name) => added.has(name.toLowerCase()))
  if (clash === undefined) return
  throw usage(subject, { expected: `decisions without a column that the ${what} adds`, got: clash, next: 'rename it' })
}

/** Builds the SQL that reads the decisions as given; with a universe they name no assets. */
function source({ decisions, universe }: Pick<PanelSpec, 'decisions' | 'universe'>): string {
  if (decisions.kind === 'file') {
    const asset = universe === undefined ? 'CAST(asset AS VARCHAR) AS asset, ' : ''
    return `SELECT row_number() OVER () AS ${key},
  * REPLACE (${asset}${utcSql('ts')} AS ts)
FROM ${reader(decisions)}`
  }
  if (decisions.kind === 'list') {
    const shape = JSON.stringify([decisions.types])
    return `SELECT row_number() OVER () AS ${key}, * REPLACE (${utcSql('ts')} AS ts)
FROM (SELECT unnest(from_json(${quote(decisions.text)}, ${quote(shape)}), max_depth := 2))`
  }
  const { since, until, step, assets } = decisions
  const instants = gridSql('decisions', { since, until, step })
  if (universe !== undefined) {
    if (assets !== undefined) throw usage('panel', { expected: 'assets or a universe', got: 'both' })
    return `SELECT row_number() OVER (ORDER BY ts) AS ${key}, ts FROM ${instants}`
  }
  if (assets === undefined) throw usage('panel', { expected: 'assets or a universe', got: 'neither' })
  return `SELECT row_number() OVER (ORDER BY ts, asset) AS ${key}, asset, ts
FROM ${instants} CROSS JOIN (SELECT unnest(${quoteList(assets)}) AS asset)`
}

/** Lists the columns by which decisions are found. */
function keysOf(universe: string | undefined): readonly string[] {
  return universe === undefined ? ['asset', 'ts'] : ['ts']
}

/** Options of a panel, all of them. */
export const panelTable = { ...gridOptions, ...decisionOptions, ...panelOptions }

/**
 * Reads the panel that a caller requests, in the names of an interface. Its decisions are records or a grid among the
 * values, or `source`, which a program or a command line names in its own way.
 */
export function panelSpec(values: Readonly<Record<string, unknown>>, door: Door, source?: Decisions): PanelSpec {
  refuseEmpty(values, door, source)
  const { calendar, assets, decisions, interval = '24h', ...named } = readOptions(panelTable, values, door)
  const rest = { ...named, interval }
  const sources = [source, calendar, decisions].filter((choice) => choice !== undefined)
  if (sources.length !== 1)
    throw usage('panel', { expected: 'calendar or decisions', got: sources.length === 0 ? 'neither' : 'both' })
  const { universe } = rest
  checkColumns(rest, door)
  if (calendar === undefined) {
    if (assets !== undefined)
      throw usage(optionAt(door, 'assets'), {
        expected: 'a calendar with it',
        got: 'decisions, which name their own',
      })
    if (universe === undefined && decisions?.some(({ asset }) => asset === undefined) === true)
      throw usage(optionAt(door, 'decisions'), { expected: 'an asset in each, or a universe', got: 'one without' })
    return { ...rest, decisions: source ?? decisionsFromList(decisions ?? [], universe) }
  }
  if ((assets === undefined) === (universe === undefined)) {
    const expected = `one of ${optionAt(door, 'assets')} and ${optionAt(door, 'universe')} with it`
    throw usage(optionAt(door, 'calendar'), { expected, got: assets === undefined ? 'neither' : 'both' })
  }
  return { ...rest, decisions: { ...calendar, ...(assets && { assets }) } }
}

/** Refuses a metric whose column has the name of one of the registry, or of a member of the universe. */
function checkColumns(spec: Omit<PanelSpec, 'decisions'>, door: Door): void {
  const cells = new Set(cellsOf(spec).map(({ name }) => name.toLowerCase()))
  const members = spec.universe === undefined ? [] : memberColumns
  const clash = [...members, ...registryColumns(spec)].find((name) => cells.has(name))
  if (clash === undefined) return
  const next = 'name the column of the metric: column=path'
  const subject = optionAt(door, members.includes(clash) ? 'universe' : 'with')
  throw usage(subject, { expected: 'columns with other names than those of metrics', got: clash, next })
}

/** Refuses a panel without any option, and lists all that it needs. */
function refuseEmpty(
  { metrics, calendar, decisions }: Readonly<Record<string, unknown>>,
  door: Door,
  source?: Decisions,
) {
  if ([metrics, calendar, decisions, source].some((choice) => choice !== undefined)) return
  const at = (name: string): string => optionAt(door, name)
  throw usage('panel', {
    expected: `${at('metrics')}, with ${at('calendar')} and ${at('assets')}, or with ${at('decisions')}`,
    got: 'none of them',
  })
}

/** Builds the spec of a panel that a program requests. */
export function specOf({ decisions, latencySeconds, maxAgeSeconds, ...rest }: Panel): PanelSpec {
  const written = {
    ...rest,
    ...(latencySeconds !== undefined && { latency: `${latencySeconds}s` }),
    ...(maxAgeSeconds !== undefined && { maxAge: `${maxAgeSeconds}s` }),
  }
  if (decisions === undefined || !('kind' in decisions)) return panelSpec({ ...written, decisions }, 'typescript')
  const { since, until, step, assets } = decisions
  return panelSpec({ ...written, calendar: { since, until, step }, assets }, 'typescript')
}

/** Builds decisions from records; each field has one type in all of them. */
function decisionsFromList(instants: readonly Instant[], universe: string | undefined): Decisions {
  const types = Object.create(null) as Record<string, string>
  for (const name of keysOf(universe)) types[name] = 'VARCHAR'
  for (const instant of instants) {
    for (const [name, value] of Object.entries(instant)) {
      const seen = typeOf(name, value)
      if (seen !== undefined) types[name] = (types[name] ?? seen) === seen ? seen : 'VARCHAR'
    }
  }
  // Fields that are null in all of them.
  for (const name of instants.flatMap((instant) => Object.keys(instant))) types[name] ??= 'VARCHAR'
  return { kind: 'list', text: JSON.stringify(instants), types }
}

function typeOf(name: string, value: Decision[string]): string | undefined {
  if (value === null || name === 'asset' || name === 'ts') return undefined
  if (value instanceof Date) return 'TIMESTAMPTZ'
  return typeof value === 'number' ? 'DOUBLE' : typeof value === 'boolean' ? 'BOOLEAN' : 'VARCHAR'
}

/** Builds the SQL that reads a file. The columns of a CSV file are texts but for the given types: no date is guessed. */
function reader({ path, types = new Map() }: DecisionsFile): string {
  const file = `${quotePath(path)}, hive_partitioning = false`
  if (isParquet(path)) return `read_parquet(${file})`
  const typed = [...types].map(([name, type]) => `CAST(trim(${quoteName(name)}) AS ${type}) AS ${quoteName(name)}`)
  const read = `read_csv(${file}, header = true, all_varchar = true${decompressionSql(path)})`
  return typed.length === 0 ? read : `(SELECT * REPLACE (${typed.join(', ')}) FROM ${read})`
}

const isParquet = (path: string): boolean => /\.(?:parquet|parq|pq)$/i.test(path)

/**
 * Reads the types that the columns of a CSV file of decisions show, as in an import. The first row with a `ts` of no
 * known spelling is an error. Other panels are returned unchanged.
 */
export async function readDecisionTypes(spec: PanelSpec): Promise<PanelSpec> {
  const { decisions, universe } = spec
  if (decisions.kind !== 'file' || isParquet(decisions.path)) return spec
  const { path } = decisions
  using engine = await Engine.open(':memory:')
  try {
    await checkFile(engine, decisions, spec)
    const relation = `(SELECT *, ${quote(path)} AS ${fileColumn} FROM ${reader(decisions)})`
    const columns = (await columnsOf(engine, relation)).filter(({ name }) => name !== fileColumn)
    const files = [{ path, bytes: 0, changed: 0 }]
    const texts = universe === undefined ? ['asset'] : []
    const table = await readUserTable(engine, { format: 'csv', relation, columns, files }, { ts: 'decision' }, texts)
    return { ...spec, decisions: { ...decisions, types: table.shownTypes } }
  } catch (cause) {
    throw refusal(cause, { statement: '', script: '', offset: 0, folder: '' })
  }
}

/**
 * Makes the table of decisions in a session; a file is read by an engine that runs nothing else. Refuses what a
 * universe cannot answer.
 */
export async function bringDecisions(engine: Engine, spec: PanelSpec, table: string, deps: RunDeps): Promise<void> {
  const { decisions, universe } = spec
  const isFile = decisions.kind === 'file'
  if (isFile) await bringFile(engine, decisions, spec, table, deps)
  const relation = isFile ? `FROM ${quoteName(table)}` : source(spec)
  if (universe !== undefined) await checkMembers(engine, relation, universe, deps)
  else if (isFile && registryColumns(spec).length === 0) return
  const sql = `CREATE OR REPLACE TEMP TABLE ${quoteName(table)} AS\n${decidedSql(spec, relation)}`
  const { text } = await runScript(engine, sql, { ...deps, generated: true })
  await runCancellable(engine, text, deps, async () => engine.run(text))
}

async function bringFile(
  engine: Engine,
  decisions: DecisionsFile,
  spec: PanelSpec,
  table: string,
  deps: RunDeps,
): Promise<void> {
  const { path } = decisions
  const sql = source(spec)
  using reader = await Engine.open(':memory:')
  try {
    await checkFile(reader, decisions, spec)
    await carry(reader, sql, engine, table)
  } catch (cause) {
    const instant = unreadInstant(cause)
    if (instant !== undefined) readOption(knowledgeOptions.as_of, `--decisions ${path}`, instant)
    throw refusal(cause, { statement: sql, script: sql, offset: 0, folder: deps.folder })
  }
}

async function checkFile(engine: Engine, decisions: DecisionsFile, spec: PanelSpec): Promise<void> {
  const { path } = decisions
  const names = (await columnsOf(engine, reader(decisions))).map(({ name }) => name)
  const keys = keysOf(spec.universe)
  const missing = keys.filter((name) => !names.some((other) => other.toLowerCase() === name))
  if (missing.length > 0) {
    throw usage(`--decisions ${path}`, {
      expected: `columns ${keys.join(' and ')}`,
      got: names.join(', ') || 'none',
      next: 'rename the columns in the file',
    })
  }
  checkNames(`--decisions ${path}`, names, spec)
  await proveWhole(path).catch((cause: unknown) => {
    requireFileError(cause, `reading ${path}`)
    const got = cause instanceof Error ? cause.message : String(cause)
    throw usage(`--decisions ${path}`, { expected: 'a compressed file that is whole', got, cause })
  })
}

/** Maximum number of metrics distinguished in one step: each costs every row a comparison. */
const few = 16
const together = 8

/**
 * Builds the CTE `wide`, and what it needs: of answers, a row for each decision and metric, a row for each decision and
 * a column for each cell.
 */
function wideSql(cells: readonly PanelCell[], metrics: readonly string[], answers: string, key: string): string {
  // A decision has one instant: with it among the keys the plan shows that nothing of a group is known later.
  if (metrics.length <= few)
    return table(
      'wide',
      [key, 'ts'],
      cells.map(({ metric, field, name }) => cell(`metric = ${quote(metric)}`, field, quoteName(name))),
      answers,
    )
  const place = new Map(metrics.map((metric, n) => [metric, n]))
  const names = metrics.map((metric, n) => `(${quote(metric)}, ${n})`).join(', ')
  const fields = [...new Set(cells.map(({ field }) => field))]
  const parts = fields.flatMap((field) =>
    Array.from({ length: together }, (_, n) => cell(`place % ${together} = ${n}`, field, `${field}_${n}`)),
  )
  const whole = cells.map(({ metric, field, name }) => {
    const n = place.get(metric) ?? 0
    return cell(`part = ${Math.floor(n / together)}`, `${field}_${n % together}`, quoteName(name))
  })
  const named = `${answers} JOIN (VALUES ${names}) AS places (name, place) ON metric = name`
  return [
    table('parts', [key, 'ts', `place // ${together} AS part`], parts, named),
    table('wide', [key, 'ts'], whole, 'parts'),
  ].join(',\n')
}

/**
 * Builds the SQL of the one answer that meets a condition; not by FILTER, which makes rows of its own for each column.
 */
function cell(condition: string, field: string, name: string): string {
  return `max(CASE WHEN ${condition} THEN ${field} END) AS ${name}`
}

function table(name: string, keys: readonly string[], cells: readonly string[], from: string): string {
  const by = keys.map((_, n) => n + 1).join(', ')
  return [
    `${name} AS (`,
    `  SELECT ${keys.join(', ')},`,
    cells.map((cell) => `    ${cell}`).join(',\n'),
    `  FROM ${from}`,
    `  GROUP BY ${by}`,
    ')',
  ].join('\n')
}

/** The columns that the members of a universe add to decisions. */
const memberColumns: readonly string[] = [
  'asset',
  'product_id',
  'name',
  'symbol',
  'isin',
  'status',
  'issuer_id',
  'asset_id',
  'valid_from',
  'assumed',
]

/**
 * Builds the SQL of the decisions about a universe: at each moment of a relation its members, each with the metric
 * assets that it was linked to then. A member without any is included, too: that nothing is measured of it does not
 * make it disappear.
 */
export function membersSql(moments: string, condition: string, key: string): string {
  return `WITH _pit_moments AS (${moments}),
_pit_met AS (
  SELECT DISTINCT member.*, link.metric_asset
  FROM pit_universe('_pit_moments', (
${condition}
)) AS member
  LEFT JOIN links AS link
    ON link.product_id = member.product_id AND link.valid_from <= member.ts AND member.ts < link.valid_to
)
SELECT row_number() OVER (ORDER BY ${key}, product_id, metric_asset) AS ${key}, metric_asset AS asset,
  * EXCLUDE (${key}, metric_asset)
FROM _pit_met`
}

/** Refuses a condition that is none, and moments at which the registry was not known. */
async function checkMembers(engine: Engine, moments: string, condition: string, deps: RunDeps): Promise<void> {
  await judgeCondition(engine, condition, deps)
  const [row] = await engine.rows<{ first: string; start: string | null }>(
    `SELECT CAST(min(ts) AS VARCHAR) AS "first", (SELECT CAST(known_since AS VARCHAR) FROM registry_start) AS start
     FROM (${moments})
     HAVING NOT coalesce(CAST(getvariable('registry_backfill') AS BOOLEAN), false)
       AND NOT coalesce(min(ts) >= (SELECT known_since FROM registry_start), count(ts) = 0)`,
  )
  if (row === undefined) return
  const { first, start } = row
  const { door = 'terminal' } = deps
  throw usage(optionAt(door, 'universe'), {
    expected:
      start === null
        ? 'a registry: it is not known yet'
        : `instants from ${start} on, when the registry was first known`,
    got: first,
    next:
      start === null
        ? 'run `pitlake registry snapshot`'
        : `or use the first snapshot for earlier times: ${optionAt(door, 'registry_backfill', 'true')}`,
  })
}
