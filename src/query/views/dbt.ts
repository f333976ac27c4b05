import { ruleFor } from '../../catalog/availability.ts'
import { type Catalogue, type Endpoint, isOwn } from '../../catalog/catalogue.ts'
import { countedSeconds, describeRule, ruleKinds } from '../../catalog/rule-kinds.ts'
import type { Wanted } from '../../catalog/series.ts'
import { clockFindingKinds } from '../../lake/ledger/entry.ts'
import { toleranceOf } from '../../sources/metrics/plan.ts'
import { quote, Engine } from '../../lake/store/engine.ts'
import { day, hour, type Interval, intervals, longestSeconds, minute, unshownInterval } from '../../base/time.ts'
import { resolve } from 'node:path'
import { compile } from './compile.ts'

/**
 * Facts that are true for every row of a view: columns that are never null, the unique one, and the possible values.
 */
interface Facts {
  readonly filled: readonly string[]
  readonly unique?: string
  readonly values?: Readonly<Record<string, readonly string[]>>
  /** Column with the time at which a row arrived. */
  readonly loaded?: string
}

const bases = ['provider', 'stated', 'assumed', 'override', 'observed', 'backfilled']
const dated = { interval: intervals, basis: bases }
const point = ['metric', 'asset', 'interval', 't', 'available_at', 'observed_at', 'basis']
const window = ['metric', 'asset', 'since', 'until', 'state']

/** Facts by view; those of the registry's tables stand in `factsOf`. */
const facts: Readonly<Record<string, Facts>> = {
  lake_info: { filled: ['version', 'committed_at', 'synthetic', 'folder', 'state'] },
  points: { filled: point, values: dated, loaded: 'observed_at' },
  components: { filled: [...point, 'component'], values: dated, loaded: 'observed_at' },
  series: {
    filled: ['metric', 'asset', 'interval', 'first_t', 'last_t', 'points', 'gaps', 'last_available_at'],
    values: { interval: intervals },
  },
  price_usd: { filled: point, values: dated, loaded: 'observed_at' },
  endpoints: {
    filled: ['metric', 'about', 'rule', 'basis', 'rules'],
    unique: 'metric',
    values: { basis: ['stated', 'assumed', 'override'] },
  },
  metric_assets: { filled: ['id', 'record', 'first_seen', 'changed_at', 'assumed'], unique: 'id' },
  links: {
    filled: ['metric_asset', 'basis', 'ambiguous', 'valid_from', 'valid_to', 'assumed'],
    values: { basis: ['mapping', 'address', 'symbol'] },
  },
  coverage: {
    filled: window,
    values: { state: ['covered', 'empty', 'unsupported', 'failed', 'not requested'] },
    loaded: 'asked_at',
  },
  gaps: { filled: [...window, 'missing'], values: { state: ['covered', 'failed', 'unsupported'] } },
  violations: { filled: ['metric', 'asset', 't', 'kind', 'offered_at'], loaded: 'offered_at' },
  clock_findings: {
    filled: ['metric', 'asset', 't', 'kind', 'found_at'],
    values: { kind: clockFindingKinds },
    loaded: 'found_at',
  },
  requests: {
    filled: ['id', 'api', 'asked_at'],
    unique: 'id',
    values: { api: ['metrics', 'registry'] },
    loaded: 'asked_at',
  },
  runs: { filled: ['id', 'job', 'started_at'], unique: 'id', loaded: 'started_at' },
  versions: { filled: ['version', 'committed_at', 'digest'], unique: 'version', loaded: 'committed_at' },
  registry_start: { filled: ['known_since', 'snapshot_date', 'source'], values: { source: ['snapshot', 'lists'] } },
  schema_changes: { filled: ['resource', 'path', 'first_seen'], loaded: 'first_seen' },
  registry_findings: { filled: ['found_at', 'kind'], loaded: 'found_at' },
  registry_events: { filled: ['polled_at', 'position', 'event'], loaded: 'polled_at' },
  universe: { filled: ['product_id', 'valid_from', 'first_seen', 'deployments', 'assumed'], unique: 'product_id' },
}

function factsOf({ schema, name }: DescribedView): Facts {
  if (schema === 'history') return { filled: ['id', 'valid_from', 'valid_to', 'op', 'record'], loaded: 'valid_from' }
  if (schema === 'snapshots') return { filled: ['snapshot_date', 'id', 'record', 'observed_at'], loaded: 'observed_at' }
  return facts[name] ?? { filled: ['id', 'record', 'valid_from', 'assumed'], unique: 'id', loaded: 'valid_from' }
}

/** The database under which a dbt profile attaches `lake.duckdb`. */
const database = 'lake'

/**
 * Builds the sources of a dbt project (`sources.yml`, version 2, for dbt 1.10 and later) over the lake's views: each
 * view with its columns and what is true of them, and each endpoint and interval of `wanted` as a table of its own,
 * whose freshness is that of its availability rule; user data, too, whose times of arrival no rule states.
 */
export async function dbtSources(catalogue: Catalogue, wantedSeries: readonly Wanted[]) {
  const schemas = Map.groupBy(await describeViews(catalogue), ({ schema }) => schema)
  const sources = endpointTables(
    wantedSeries.flatMap(({ endpoint, series }) => (isOwn(endpoint) ? [] : [[endpoint, series.interval]])),
  )
  const userEndpoints = [...catalogue.endpoints.values()].filter(isOwn)
  const endpoints = [
    ...sources,
    ...endpointTables(userEndpoints.flatMap((endpoint) => endpoint.intervals.map((interval) => [endpoint, interval]))),
  ]
  const finest = sources.toSorted((a, b) => a.due - b.due)[0]
  const views = [...schemas].map(([schema, viewsOfSchema]) => ({
    name: schema === 'main' ? database : `${database}_${schema}`,
    description: about[schema] ?? '',
    database,
    schema,
    loader: 'pitlake',
    tables: viewsOfSchema.map((view) => viewTable(view, view.name === 'points' ? finest : undefined)),
  }))
  const source = {
    name: `${database}_endpoints`,
    description: about['endpoints'],
    database,
    schema: 'main',
    loader: 'pitlake',
    tables: endpoints.map(({ table }) => table),
  }
  return { version: 2, sources: endpoints.length === 0 ? views : [...views, source] }
}

const about: Readonly<Record<string, string>> = {
  main:
    'What is knowable now; SET VARIABLE as_of in the pre-hook of a model moves every view back to what was ' +
    'knowable then.',
  history: 'Every version ever known of each record of the registry.',
  snapshots: 'The registry as its dated snapshots showed it.',
  endpoints:
    'The points of one endpoint and interval each. Fresh as long as no point is due by the availability rule ' +
    'that is not there, of any asset; an error when it is overdue for longer than the endpoint is waited for.',
}

function viewTable(view: DescribedView, fresh: EndpointTable | undefined) {
  const { filled, unique, values = {}, loaded } = factsOf(view)
  const columns = view.columns.map((column) =>
    columnOf(column, [
      ...(filled.includes(column.name) ? ['not_null'] : []),
      ...(unique === column.name ? ['unique'] : []),
      ...[values[column.name] ?? []].filter((list) => list.length > 0).map(accepted),
    ]),
  )
  const config = { ...(loaded === undefined ? {} : { loaded_at_field: loaded }), ...(fresh && freshnessOf(fresh)) }
  return { name: view.name, description: view.about, ...(loaded === undefined ? {} : { config }), columns }
}

function accepted(values: readonly string[]) {
  return { accepted_values: { arguments: { values } } }
}

function columnOf({ name, type, about: description }: DescribedColumn, tests: readonly unknown[]) {
  const described = { name, description, data_type: type, quote: true }
  return tests.length === 0 ? described : { ...described, data_tests: tests }
}

/** One endpoint and interval as a table of a dbt source. */
interface EndpointTable {
  /** Seconds between a `t` and the instant at which the next point is expected. */
  readonly due: number
  /** Seconds between a `t` and the instant at which the next point is overdue. */
  readonly overdue: number
  /** Entry of `tables` in `sources.yml`. */
  readonly table: DbtTable
}

/** An entry of `tables` in `sources.yml`. */
interface DbtTable {
  readonly name: string
  readonly description: string
  readonly config: DbtConfig
}

/** The `config` of a dbt table. */
interface DbtConfig extends Partial<DbtFreshness> {
  /** Column by which dbt measures freshness. */
  readonly loaded_at_field: string
  /** The SELECT that dbt-duckdb reads in place of the table. */
  readonly meta: { readonly external_location: string }
}

/** Ages of the newest row at which dbt warns and fails. */
interface DbtFreshness {
  readonly freshness: { readonly warn_after: DbtSpan; readonly error_after: DbtSpan }
}

/** A length of time as dbt spells it. */
interface DbtSpan {
  readonly count: number
  readonly period: 'day' | 'hour' | 'minute'
}

/** Builds one table for each endpoint and interval, in their order. */
function endpointTables(all: readonly (readonly [Endpoint, Interval | null])[]): EndpointTable[] {
  const found = new Map<string, EndpointTable>()
  for (const [endpoint, interval] of all) {
    const plain = [endpoint.path, ...(interval === null ? [] : [interval])].join('__')
    const name = plain.replaceAll('/', '__').replaceAll(/\W/g, '_').toLowerCase()
    if (!found.has(name)) found.set(name, endpointTable(name, endpoint, interval))
  }
  return [...found.values()]
}

function endpointTable(name: string, endpoint: Endpoint, interval: Interval | null): EndpointTable {
  const unit = interval ?? unshownInterval
  const rule = ruleFor(endpoint.rules[unit], Number.POSITIVE_INFINITY)
  const length = longestSeconds(unit)
  // The newest t is one interval before that of the next point, which is due by its rule.
  const due = length + ruleKinds[rule.kind].at(0, length, countedSeconds(rule))
  const overdue = due + toleranceOf(endpoint, unit)
  const ofInterval = interval === null ? '' : ` AND "interval" = ${quote(interval)}`
  const rows = `(SELECT * FROM ${database}.main.points WHERE metric = ${quote(endpoint.path)}${ofInterval})`
  const config = {
    loaded_at_field: 't',
    ...(isOwn(endpoint) ? {} : freshnessOf({ due, overdue })),
    // The adapter replaces text in braces.
    meta: { external_location: rows.replaceAll(/[{}]/g, '$&$&') },
  }
  const description = `${endpoint.about} Available: ${describeRule(rule)} (${rule.basis}).`
  return { due, overdue, table: { name, description, config } }
}

function freshnessOf({ due, overdue }: Pick<EndpointTable, 'due' | 'overdue'>): DbtFreshness {
  return { freshness: { warn_after: spanOf(due), error_after: spanOf(overdue) } }
}

/** Formats a span in the largest unit of dbt that it is a whole number of; rounded up to minutes. */
function spanOf(seconds: number): DbtSpan {
  const units = [
    ['day', day],
    ['hour', hour],
    ['minute', minute],
  ] as const
  const [period, unit] = units.find(([, size]) => seconds % size === 0) ?? ['minute', minute]
  return { count: Math.ceil(seconds / unit), period }
}

/** A view of the lake with its description. */
interface DescribedView {
  readonly schema: string
  readonly name: string
  /** Description from the file of the view. */
  readonly about: string
  readonly columns: readonly DescribedColumn[]
}

/** A column of a described view. */
interface DescribedColumn {
  readonly name: string
  /** DuckDB type. */
  readonly type: string
  /** Description; empty if there is none. */
  readonly about: string
}

/** Describes every view that a lake of this catalogue has, in the order in which they are made; needs no lake. */
async function describeViews(catalogue: Catalogue): Promise<DescribedView[]> {
  const head = { lake: null, version: 0, schema: 0, digest: null, committed_at: 0, provider: null }
  const nothing = {
    root: resolve('/'),
    head,
    catalogue,
    files: [],
    earlier: [],
    exports: null,
    weekStart: 'monday',
  } as const
  using engine = await Engine.open(':memory:', { threads: 1 })
  const { objects } = compile(nothing)
  for (const { sql } of objects) await engine.run(sql)
  const rows = await engine.rows<{ view: string; about: string; name: string; type: string; told: string }>(
    `SELECT CASE views.schema_name WHEN 'main' THEN '' ELSE views.schema_name || '.' END || view_name AS view,
       coalesce(views.comment, '') AS about, column_name AS name, data_type AS type, coalesce(columns.comment, '') AS told
     FROM duckdb_views() AS views
     JOIN duckdb_columns() AS columns ON columns.schema_name = views.schema_name AND columns.table_name = view_name
     WHERE NOT views.internal ORDER BY column_index`,
  )
  const columns = Map.groupBy(rows, ({ view }) => view)
  return objects.flatMap(({ name: view, kind }) => {
    if (kind !== 'view') return []
    const viewColumns = columns.get(view) ?? []
    const [name = '', schema = 'main'] = view.split('.').toReversed()
    const described = viewColumns.map((column) => ({ name: column.name, type: column.type, about: column.told }))
    return [{ schema, name, about: viewColumns[0]?.about ?? '', columns: described }]
  })
}
