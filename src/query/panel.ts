import { usage } from '../errors.ts'
import { type Engine, quote, quoteList, quoteName } from '../lake/engine.ts'
import { instant, type Moment } from './lake.ts'
import { refusal } from './refusal.ts'
import type { RunDeps } from './run.ts'

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
      readonly assets: readonly string[]
    }

/** One decision: at `ts` something about `asset` is decided; its further fields come back beside the answer. */
export interface Decision {
  readonly asset: string | null
  readonly ts: Moment | null
  readonly [field: string]: string | number | boolean | null | Date
}

/** What the caller of a program asks for; `decisions` may also be a calendar. */
export interface Panel extends Omit<PanelSpec, 'decisions'> {
  readonly decisions: readonly Decision[] | Extract<Decisions, { kind: 'calendar' }>
}

/** What stands in a panel: a column for each metric and field. */
export interface PanelSpec {
  readonly decisions: Decisions
  /** Paths, each with a JSON pointer behind `#` where one leaf of an object is meant. */
  readonly metrics: readonly string[]
  readonly interval: string
  /** Of each metric; `v` alone is named like the metric, the others `metric.field`. */
  readonly fields?: readonly PanelField[]
  readonly latencySeconds?: number | undefined
  readonly maxAgeSeconds?: number | undefined
  readonly currency?: string | undefined
  readonly exchange?: string | undefined
  readonly network?: string | undefined
}

/** What can be told of the point behind a cell of a panel. */
export const panelFields = ['v', 'o', 't', 'available_at', 'age'] as const
export type PanelField = (typeof panelFields)[number]

/** The statements behind a panel: the first makes the table of decisions, the second is the query. */
export interface PanelSql {
  readonly decisions: string
  readonly query: string
}

/** The SQL of a panel; it runs as it is in any DuckDB session on the lake. */
export function panelSql(spec: PanelSpec): PanelSql {
  const { metrics, fields = ['v'] } = spec
  if (metrics.length === 0) throw usage('--metrics', { expected: 'paths of metrics, by comma', got: 'nothing' })
  const twice = metrics.find((metric, i) => metrics.indexOf(metric) !== i)
  if (twice !== undefined) throw usage('--metrics', { expected: 'each metric once', got: twice })
  const cells = metrics.flatMap((metric) =>
    fields.map((field) => {
      const name = field === 'v' ? metric : `${metric}.${field}`
      return `    any_value(${field}) FILTER (WHERE metric = ${quote(metric)}) AS ${quoteName(name)}`
    }),
  )
  const named = ['currency', 'exchange', 'network'] as const
  const options = [
    ...named.flatMap((name) => (spec[name] === undefined ? [] : [`${name} := ${quote(spec[name])}`])),
    ...(spec.maxAgeSeconds === undefined ? [] : [`max_age := ${seconds(spec.maxAgeSeconds)}`]),
    ...(spec.latencySeconds === undefined ? [] : [`latency := ${seconds(spec.latencySeconds)}`]),
  ]
  const given = ['asked', quoteList(metrics), quote(spec.interval), ...options].join(', ')
  const query = [
    'WITH asked AS MATERIALIZED (SELECT decision, asset, ts FROM decisions),',
    'wide AS (',
    '  SELECT decision,',
    cells.join(',\n'),
    `  FROM pit_long(${given})`,
    '  GROUP BY decision',
    ')',
    'SELECT decisions.* EXCLUDE (decision), wide.* EXCLUDE (decision)',
    'FROM decisions JOIN wide USING (decision)',
    'ORDER BY decision',
  ].join('\n')
  return { decisions: `CREATE OR REPLACE TEMP TABLE decisions AS\n${source(spec.decisions)}`, query }
}

function seconds(count: number): string {
  return `to_seconds(${count})`
}

function source(decisions: Decisions): string {
  if (decisions.kind === 'file') {
    return `SELECT row_number() OVER () AS decision,
  * REPLACE (CAST(asset AS VARCHAR) AS asset, ${instant('ts')} AS ts)
FROM ${reader(decisions.path)}`
  }
  if (decisions.kind === 'list') {
    const shape = JSON.stringify([decisions.types])
    return `SELECT row_number() OVER () AS decision, * REPLACE (${instant('ts')} AS ts)
FROM (SELECT unnest(from_json(${quote(decisions.text)}, ${quote(shape)}), max_depth := 2))`
  }
  const { since, until, step, assets } = decisions
  return `SELECT row_number() OVER (ORDER BY ts, asset) AS decision, asset, ts
FROM calendar(${quote(since)}, ${quote(until)}, CAST(${quote(step)} AS INTERVAL)) CROSS JOIN (SELECT unnest(${quoteList(assets)}) AS asset)`
}

/** Decisions given as records, each field with one type for all of them. */
export function decisionsFromList(given: Panel['decisions']): Decisions {
  if (!isList(given)) return given
  const types: Record<string, string> = { asset: 'VARCHAR', ts: 'VARCHAR' }
  for (const one of given) {
    for (const [name, value] of Object.entries(one)) {
      const seen = typeOf(name, value)
      if (seen !== undefined) types[name] = (types[name] ?? seen) === seen ? seen : 'VARCHAR'
    }
  }
  // What is null in all of them.
  for (const name of given.flatMap((one) => Object.keys(one))) types[name] ??= 'VARCHAR'
  if (Object.hasOwn(types, 'decision')) {
    throw usage('panel', { expected: 'no field named decision', got: 'one', next: 'rename it' })
  }
  return { kind: 'list', text: JSON.stringify(given), types }
}

function isList(given: Panel['decisions']): given is readonly Decision[] {
  return Array.isArray(given)
}

function typeOf(name: string, value: Decision[string]): string | undefined {
  if (value === null || name === 'asset' || name === 'ts') return undefined
  if (value instanceof Date) return 'TIMESTAMPTZ'
  return typeof value === 'number' ? 'DOUBLE' : typeof value === 'boolean' ? 'BOOLEAN' : 'VARCHAR'
}

/** In a CSV file `ts` and `asset` are read as the texts that they are: no guess about zones. */
function reader(path: string): string {
  return /\.(?:parquet|parq|pq)$/i.test(path)
    ? `read_parquet(${quote(path)})`
    : `read_csv(${quote(path)}, header = true, types = {'asset': 'VARCHAR', 'ts': 'VARCHAR'})`
}

/** Makes the table of decisions in a session that is not locked yet; says what the file lacks. */
export async function bringDecisions(engine: Engine, spec: PanelSpec, deps: RunDeps): Promise<void> {
  const { decisions } = spec
  const sql = panelSql(spec).decisions
  try {
    if (decisions.kind === 'file') await checkFile(engine, decisions.path)
    await engine.run(sql)
  } catch (cause) {
    throw refusal(cause, { statement: sql, script: sql, offset: 0, folder: deps.folder })
  }
}

async function checkFile(engine: Engine, path: string): Promise<void> {
  const plain = /\.(?:parquet|parq|pq)$/i.test(path)
    ? `read_parquet(${quote(path)})`
    : `read_csv(${quote(path)}, header = true)`
  const rows = await engine.rows<{ column_name: string }>(`DESCRIBE FROM ${plain}`)
  const names = rows.map((row) => row.column_name)
  const missing = ['asset', 'ts'].filter((name) => !names.some((other) => other.toLowerCase() === name))
  if (missing.length > 0) {
    throw usage(`--decisions ${path}`, { expected: 'columns asset and ts', got: names.join(', ') || 'none' })
  }
  if (names.some((name) => name.toLowerCase() === 'decision')) {
    throw usage(`--decisions ${path}`, { expected: 'no column named decision', got: 'one', next: 'rename it' })
  }
}
