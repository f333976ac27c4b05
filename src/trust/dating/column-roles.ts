import { usage } from '../../base/errors.ts'
import { didYouMean, nearPaths } from '../../base/suggestion.ts'
import { type Door, optionAt } from '../../query/note-texts.ts'
import type { DatingOptions, TableKind } from './options.ts'
import type { FileColumn } from './table-file.ts'

/** Names of the lake that columns of a table may refer to. */
export interface LakeNames {
  /** Paths of metrics. */
  readonly metrics: readonly string[]
  /** Columns of the view `universe`. */
  readonly universe: readonly string[]
  /** Columns of each registry resource, by the name of the resource. */
  readonly resources: ReadonlyMap<string, readonly string[]>
}

/** Interval and dimensions of a series, as far as a table names them. Null: the series has none. */
export interface SeriesDimensions {
  readonly interval?: string | null
  readonly currency?: string | null
  readonly exchange?: string | null
  readonly network?: string | null
}

/** Column of a table whose values are compared with the lake. */
export interface ComparedColumn {
  readonly column: string
  /** Path of the metric, with `#/pointer` for a component; null if the column is a field of the registry. */
  readonly metric: string | null
  /** Field of the registry; null if the column is a metric. */
  readonly field: string | null
  /** Asset of the column, if its name is one; null if the rows name the asset. */
  readonly asset: string | null
  /** What the metric or field was found by. */
  readonly by: 'option' | 'name' | 'values'
  /** Dimensions of the series, as far as the values or rows showed them. */
  readonly dimensions: SeriesDimensions
}

/** Column of a table that is not compared. */
export interface IgnoredColumn {
  /** Name of the column. */
  readonly column: string
  /** Reason, in words. */
  readonly reason: string
}

/** What each column of a table is. */
export interface TableMapping {
  readonly kind: TableKind
  /** Column with the time of each row: of the decision, or the start of the interval; null if there is none. */
  readonly time: string | null
  /** Column with the asset; null if there is none. */
  readonly asset: string | null
  /** The one asset of a table without such a column; null if there is none. */
  readonly oneAsset: string | null
  /** Column with the id of a registry record; null if there is none. */
  readonly record: string | null
  /** The view that the records are of: `universe`, or a resource such as `issuers`; null if there are none. */
  readonly resource: string | null
  /** Columns of a table with a metric in each row; null for any other table. */
  readonly long: LongColumns | null
  readonly compared: readonly ComparedColumn[]
  readonly ignored: readonly IgnoredColumn[]
}

/** Columns of a table with a metric in each row. */
export interface LongColumns {
  readonly metric: string
  readonly value: string
  readonly interval: string | null
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
  readonly availableAt: string | null
}

const decisionNames = ['ts', 'decision', 'decision_ts', 'decided_at']
const periodNames = ['t', 'period_start', 'interval_start', 'start']
const otherTimeNames = ['timestamp', 'datetime', 'date', 'time', 'day']
const assetNames = ['asset', 'ticker', 'coin', 'token', 'symbol']
const indexNames = /^(?:|index|column0|unnamed: 0|__index_level_0__|level_0)$/i
/** Columns of joins and views about the point behind a value. */
const pointFields = ['available_at', 'observed_at', 'age', 'basis', 'o', 'extra', 'computed_at', 'ordinal', 'nth']

/** Options of a caller, and the interface in whose words errors name them. */
interface NamedOptions extends DatingOptions {
  readonly door: Door
}

/** Guesses what each column is, as far as the options do not say it. Columns without a known name stay open. */
export function mapColumns(columns: readonly FileColumn[], names: LakeNames, options: NamedOptions): TableMapping[] {
  const table = new NamedColumns(columns, options)
  const metric = table.find(['metric', 'path'])
  const value = table.find(['value', 'v'], options.value, 'value')
  const long =
    metric === null || value === null
      ? null
      : {
          metric,
          value,
          interval: table.find(['interval']),
          currency: table.find(['currency']),
          exchange: table.find(['exchange']),
          network: table.find(['network']),
          availableAt: table.find(['available_at', 'vintage']),
        }
  const decision = table.find(decisionNames, options.ts, 'ts')
  const period = table.find(periodNames, options.t, 't')
  const time = decision ?? period ?? table.find(otherTimeNames)
  const record = table.find(['product_id']) ?? (time === null ? table.find(['id']) : null)
  // Symbols and tickers of a table of records are fields.
  const asset = table.findAsset(record === null ? assetNames : ['asset'])
  const kinds = kindsOf(options.kind, { table, long, decision, period, record, asset })
  return kinds.flatMap((kind) => {
    const used = kind === 'points' || kind === 'vintages' ? (period ?? time) : time
    if (used === null && kind !== 'universe') return []
    return finishMapping({ kind, time: used, table, long, asset, record }, names, options)
  })
}

/** Facts from which the kind of a table follows. */
interface KindFacts {
  readonly table: NamedColumns
  readonly long: LongColumns | null
  readonly decision: string | null
  readonly period: string | null
  readonly record: string | null
  readonly asset: AssetColumn
}

/** Lists the kinds that a table may have; several if its columns leave it open whether a time is that of a decision. */
function kindsOf(
  given: TableKind | undefined,
  { table, long, decision, period, record, asset }: KindFacts,
): readonly TableKind[] {
  if (given !== undefined) return [given]
  if (record !== null && long === null && asset.column === null) return ['universe']
  if (long !== null && table.find(['ordinal', 'vintage']) !== null) return ['vintages']
  // A join in rows has both: the decision, and the start of the interval that it was answered with.
  if (long !== null && decision !== null) return period === null ? ['points', 'panel'] : ['panel']
  if (decision !== null) return ['panel']
  return period === null ? ['panel', 'points'] : ['points']
}

/** Column with the asset, or the one asset of a table. */
interface AssetColumn {
  readonly column: string | null
  readonly one: string | null
}

/** Columns of a table by their names. */
class NamedColumns {
  readonly all: readonly FileColumn[]
  readonly #options: NamedOptions

  constructor(all: readonly FileColumn[], options: NamedOptions) {
    this.all = all
    this.#options = options
  }

  /** Returns the column that an option names, else the first with one of the usual names; null if there is none. */
  find(usual: readonly string[], given?: string, option = ''): string | null {
    if (given !== undefined) {
      const named = this.named(given)
      if (named !== null) return named
      const expected = `a column of the table: ${this.all.map(({ name }) => name).join(', ')}`
      throw usage(optionAt(this.#options.door, option), { expected, got: given })
    }
    for (const name of usual) {
      const found = this.named(name)
      if (found !== null) return found
    }
    return null
  }

  findAsset(usual: readonly string[]): AssetColumn {
    const { asset } = this.#options
    if (asset === undefined) return { column: this.find(usual), one: null }
    const column = this.named(asset)
    return column === null ? { column: null, one: asset } : { column, one: null }
  }

  named(name: string): string | null {
    const lower = name.toLowerCase()
    return this.all.find((column) => column.name.toLowerCase() === lower)?.name ?? null
  }
}

/** Parts of a mapping that are known. */
interface MappedRoles {
  readonly kind: TableKind
  readonly time: string | null
  readonly table: NamedColumns
  readonly long: LongColumns | null
  readonly asset: AssetColumn
  readonly record: string | null
}

function finishMapping(
  { kind, time, table, long, asset, record }: MappedRoles,
  names: LakeNames,
  options: NamedOptions,
): TableMapping {
  const { metrics: given = [] } = options
  const isUniverse = kind === 'universe'
  const resource = record === null ? null : resourceOf(record, table, names)
  const fields = new Set(resource === 'universe' ? names.universe : (names.resources.get(resource ?? '') ?? []))
  const longNames: readonly (string | null)[] = long === null ? [] : Object.values<string | null>({ ...long })
  const taken = new Set([time, asset.column, record, ...longNames])
  const dimensions: SeriesDimensions = {}
  const compared: ComparedColumn[] = []
  const ignored: IgnoredColumn[] = []
  const byOption = new Map(given.map(({ name, metric }) => [name.toLowerCase(), metric]))
  // One path without a column: the columns are assets.
  const [only] = given
  const pivot = given.length === 1 && only !== undefined && table.named(only.name) === null ? only.metric : null
  for (const { name: column } of table.all) {
    if (taken.has(column)) continue
    const lower = column.toLowerCase()
    const metric = byOption.get(lower) ?? (long === null && !isUniverse ? metricNamed(column, names.metrics) : null)
    const field = record !== null && fields.has(lower) && lower !== 'id' ? lower : null
    if (metric !== null && (long === null || byOption.has(lower))) {
      const by = byOption.has(lower) ? 'option' : 'name'
      compared.push({
        column,
        metric: checkedMetric(metric, names.metrics, options.door),
        field: null,
        asset: null,
        by,
        dimensions,
      })
    } else if (field !== null) compared.push({ column, metric: null, field, asset: null, by: 'name', dimensions })
    else if (pointFields.includes(lower) || /\.(?:o|t|available_at|age)$/.test(lower))
      ignored.push({ column, reason: 'about the point, not a value' })
    else if (indexNames.test(column)) ignored.push({ column, reason: 'number of the row' })
    else if (pivot !== null && asset.column === null)
      compared.push({
        column,
        metric: checkedMetric(pivot, names.metrics, options.door),
        field: null,
        asset: column,
        by: 'option',
        dimensions,
      })
    else ignored.push({ column, reason: unknownReason })
  }
  const { column: assetColumn, one: oneAsset } = asset
  return { kind, time, asset: assetColumn, oneAsset, record, resource, long, compared, ignored }
}

/** Reason of a column whose name is not known; its values may show what it is. */
export const unknownReason = 'neither a metric nor a field of the registry'

/** Chooses the view that has the most columns of a table of records. */
function resourceOf(record: string, table: NamedColumns, names: LakeNames): string {
  if (record.toLowerCase() === 'product_id') return 'universe'
  const columns = new Set(table.all.map(({ name }) => name.toLowerCase()))
  let best = { name: '', common: -1 }
  for (const [name, fields] of names.resources) {
    const common = fields.filter((field) => columns.has(field)).length
    if (common > best.common) best = { name, common }
  }
  return best.name
}

function checkedMetric(metric: string, metrics: readonly string[], door: Door): string {
  const [path = ''] = metric.split('#')
  if (metrics.includes(path)) return metric
  const next = didYouMean(nearPaths(path, metrics), 'the view endpoints lists them')
  throw usage(optionAt(door, 'metrics'), { expected: 'a metric of the catalogue', got: path, next })
}

/** Finds the metric that a column is named after; null if there is none, or more than one. */
export function metricNamed(column: string, metrics: readonly string[]): string | null {
  const [path = '', pointer] = column.split('#')
  const suffix = pointer === undefined ? '' : `#${pointer}`
  const forms: readonly ((metric: string) => string)[] = [
    (metric) => metric,
    plainName,
    (metric) => plainName(metric.replace(/_pit$/, '')),
    (metric) => plainName(metric.split('/').at(-1) ?? ''),
    (metric) => plainName((metric.split('/').at(-1) ?? '').replace(/_pit$/, '')),
  ]
  for (const [n, form] of forms.entries()) {
    const own = n === 0 ? path : plainName(path)
    const found = metrics.filter((metric) => form(metric) === own)
    if (found.length === 1) return `${found[0]}${suffix}`
    if (found.length > 1) return null
  }
  return null
}

function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')
}
