import { usage } from '../../base/errors.ts'
import { formatMicros, isInterval, parseMicros } from '../../base/time.ts'
import { type Engine, type Row } from '../../lake/store/engine.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import { openQuery } from '../../query/lake.ts'
import { type Door, optionAt } from '../../query/note-texts.ts'
import { price, priced } from '../../query/points.ts'
import { runCancellable, type RunDeps } from '../../query/run.ts'
import {
  type ComparedColumn,
  type LakeNames,
  mapColumns,
  metricNamed,
  type SeriesDimensions,
  type TableMapping,
} from './column-roles.ts'
import { findColumnsByValue } from './columns-by-value.ts'
import { MatchingCells } from './interval-sweep.ts'
import {
  CellList,
  type ClockInterval,
  findAnswer,
  findKnowledge,
  type KeyHistory,
  type KnowledgeClock,
  type TableCell,
} from './knowledge-intervals.ts'
import type { DatingOptions, TableKind } from './options.ts'
import {
  type ColumnSeries,
  describeFields,
  type KeyedBy,
  readRecords,
  readRenamedSeries,
  readSeries,
  type RecordField,
  seriesKey,
  type SeriesRequest,
} from './stored-values.ts'
import { type ReadColumn, TableFile } from './table-file.ts'
import { type CellValue, listRoundings, matcherOf, type Rounding } from './value-matcher.ts'

/** Half-open range of times, ISO text; null if it has no beginning or no end. */
export interface TimeRange {
  /** First time of the range. */
  readonly from: string | null
  /** End of the range, exclusive. */
  readonly until: string | null
}

/** Column of the table that was compared. */
export interface DatedColumn {
  /** Name of the column; in a table with a metric in each row, the path of the metric. */
  readonly column: string
  /** Path of the metric, with `#/pointer` for a component; null for a field of the registry. */
  readonly metric: string | null
  /** Field of the registry; null for a metric. */
  readonly field: string | null
  /** Interval of the points; null for a field of the registry. */
  readonly interval: string | null
  /** Currency of the series; null if it has none. */
  readonly currency: string | null
  /** Exchange of the series; null if it has none. */
  readonly exchange: string | null
  /** Network of the series; null if it has none. */
  readonly network: string | null
  /** What the metric or field was found by: `option`, `name` or `values`. */
  readonly by: ComparedColumn['by']
  /** How its numbers were rounded; null if they were not. */
  readonly rounding: Rounding | null
  /** Number of cells that were compared. */
  readonly cells: number
  /** Ranges of `as_of` in which the lake answers every cell of the column. */
  readonly as_of: readonly TimeRange[]
  /** Ranges of `observed_as_of` likewise. */
  readonly observed_as_of: readonly TimeRange[]
}

/** Cell that the lake answers differently. */
export interface ContradictedCell {
  /** Row of the table, counted from 1 behind the header. */
  readonly row: number
  readonly column: string
  /** Asset, or id of the record. */
  readonly asset: string | null
  /** Time in the row; null if it has none. */
  readonly time: string | null
  /** Value in the table. */
  readonly value: CellValue
  /** What the lake answers; null is NULL, or no answer if `is_listed` is false. */
  readonly answer: CellValue
  /** Whether the lake has an answer for the row at all. */
  readonly is_listed: boolean
  /** Ranges of `as_of` in which the lake answers the value of the cell. */
  readonly as_of: readonly TimeRange[]
  /** Ranges of `observed_as_of` likewise. */
  readonly observed_as_of: readonly TimeRange[]
}

/** Cells of a table that contradict one time. */
export interface Contradiction {
  /** Option that the time belongs to. */
  readonly axis: 'as_of' | 'observed_as_of'
  /** The time, ISO text; null if it lies before everything that the lake knows. */
  readonly at: string | null
  /** Whether the caller claimed this time. If not, it is the one at which the most cells match. */
  readonly claimed: boolean
  /** Number of cells that contradict it. */
  readonly cells: number
  /** The first of them, in the order of rows and columns. */
  readonly first: readonly ContradictedCell[]
}

/** What is known about the time of a table. */
export interface DatedTable {
  /**
   * `dated`: there are times at which the lake answers the whole table. `contradicted`: not at the claimed one. `mixed`:
   * each column has such times, but no time is common to all. `unmatched`: a column has none.
   */
  readonly verdict: 'dated' | 'contradicted' | 'mixed' | 'unmatched'
  /** Kind of the table: `panel`, `points`, `vintages` or `universe`. */
  readonly kind: TableKind
  /** Number of rows of the table. */
  readonly rows: number
  /** Number of cells that were compared. */
  readonly cells: number
  /** Columns that say what a row is about. */
  readonly mapping: Pick<TableMapping, 'time' | 'asset' | 'record' | 'resource'>
  /** Ranges of `as_of`, with everything that the lake contains now, in which the lake answers every cell. */
  readonly as_of: readonly TimeRange[]
  /** Ranges of `observed_as_of`, without an `as_of`, in which the lake answers every cell. */
  readonly observed_as_of: readonly TimeRange[]
  /** Columns that were compared. */
  readonly columns: readonly DatedColumn[]
  /** Columns that were not compared, each with the reason. */
  readonly ignored: TableMapping['ignored']
  /** Null if nothing contradicts. */
  readonly contradiction: Contradiction | null
}

/** Table whose time is looked for. */
export interface DatingInput {
  /** Path of a CSV or Parquet file. */
  readonly path: string
  /** Name of the file in errors. */
  readonly subject: string
  readonly options: DatingOptions
  /** Interface in whose words errors name options. Default: the command line. */
  readonly door?: Door
}

/** Contradicting cells that are shown. */
const mostShown = 20

/** Finds the states of knowledge in which the lake of a folder answers the values of a table. */
export async function dateFile(input: DatingInput, run: RunDeps, memoryLimit?: string): Promise<DatedTable> {
  using engine = await openQuery(run.folder, { memoryLimit })
  return await dateTable(engine, input, run)
}

/** Runs work on the session, which a signal cancels. */
type Reading = <T>(work: () => Promise<T>) => Promise<T>

/** Finds the states of knowledge in which a lake answers the values of a table. */
export async function dateTable(engine: Engine, input: DatingInput, run: RunDeps): Promise<DatedTable> {
  const reading: Reading = async (work) =>
    await runCancellable(engine, 'the values of the table', { ...run, generated: true }, work)
  const { door = 'terminal' } = input
  using file = await TableFile.open(input.path, input.subject)
  const lake = await reading(async () => await readLakeFacts(engine))
  const outcomes: Outcome[] = []
  for (const guessed of mapColumns(file.columns, lake.names, { ...input.options, door })) {
    const mapping = await reading(async () => await findColumnsByValue(engine, file, guessed, input.options))
    const outcome = await dateMapped({ engine, reading, file, lake, mapping, input })
    if (outcome !== undefined) outcomes.push(outcome)
  }
  const best = outcomes.toSorted((a, b) => b.fit - a.fit)[0]
  if (best !== undefined) return best.table
  const [metrics, ts, t] = ['metrics', 'ts', 't'].map((name) => optionAt(door, name))
  const next = `name them with ${metrics}, and the time with ${ts} or ${t}`
  throw usage(input.subject, { expected: 'columns that the lake has values for', got: listNames(file), next })
}

function listNames({ columns }: TableFile): string {
  return columns.map(({ name }) => name).join(', ') || 'no columns'
}

/** Defaults and vintages of a metric. */
interface MetricFacts extends Row {
  readonly metric: string
  readonly revisable: boolean
  readonly interval: string | null
  readonly has_days: boolean
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
}

/** Names and defaults of a lake. */
interface LakeFacts {
  readonly names: LakeNames
  readonly metrics: ReadonlyMap<string, MetricFacts>
}

async function readLakeFacts(engine: Engine): Promise<LakeFacts> {
  const rows = await engine.rows<MetricFacts>(
    `SELECT metric, metric IN (SELECT metric FROM vintages) AS revisable, default_interval AS "interval",
  list_contains(intervals, '24h') AS has_days, default_currency AS currency, default_exchange AS exchange,
  default_network AS network
FROM endpoints ORDER BY metric`,
  )
  const metrics = new Map(rows.map((row) => [row.metric, row]))
  const supply = metrics.get(priced)
  if (supply !== undefined)
    metrics.set(price, { ...supply, metric: price, currency: null, exchange: null, network: null })
  const universe = (await columnsOf(engine, 'universe')).map(({ name }) => name)
  const fields = await engine.rows<{ resource: string; field: string }>(
    `SELECT table_name AS resource, column_name AS field FROM duckdb_columns()
WHERE NOT internal AND schema_name = 'history' ORDER BY table_name, column_index`,
  )
  const resources = new Map(
    [...Map.groupBy(fields, ({ resource }) => resource)].map(([name, own]) => [name, own.map(({ field }) => field)]),
  )
  return { names: { metrics: [...metrics.keys()], universe, resources }, metrics }
}

/** A mapping to try, and what it is tried with. */
interface Attempt {
  readonly engine: Engine
  readonly reading: Reading
  readonly file: TableFile
  readonly lake: LakeFacts
  readonly mapping: TableMapping
  readonly input: DatingInput
}

/** Result of one mapping. */
interface Outcome {
  readonly table: DatedTable
  /** Share of the cells that match at the best time; above 1 if all do. */
  readonly fit: number
}

/** Cells of one column, by the key of the lake's values. */
interface ColumnCells {
  readonly about: ComparedColumn
  /** Name of the column in answers. */
  readonly label: string
  readonly series: ColumnSeries | null
  readonly field: RecordField | null
  /** Place among the columns. */
  readonly place: number
  readonly byKey: Map<string, CellList>
  readonly assets: Set<string>
  /** Last instant at which a value of the column may become known, microseconds. */
  knownBy: number
  cells: number
}

/** Rows and cells of a table. */
interface TableCells {
  readonly rows: number
  readonly columns: readonly ColumnCells[]
  /** Asset or id, and time, of each row. */
  readonly labels: readonly RowLabel[]
  /** Metrics in rows that the lake does not have. */
  readonly unknownMetrics: ReadonlySet<string>
}

/** Asset or id, and time in microseconds, of a row. */

interface RowLabel {
  readonly asset: string | null
  readonly time: number | null
}

/** Everything that the lake ever knew for the keys of a column. */
interface ColumnHistories {
  readonly byKey: ReadonlyMap<string, KeyHistory>
  /** History of a key that the lake does not have. */
  readonly unknown: KeyHistory
}

/** Column with the states of knowledge that were found. */
interface SearchedColumn {
  readonly cells: ColumnCells
  readonly rounding: Rounding | null
  readonly matching: Readonly<Record<KnowledgeClock, MatchingCells>>
  /** Reads the histories again; those of all columns together would need much memory. */
  readonly histories: () => Promise<ColumnHistories>
}

async function dateMapped({ engine, reading, file, lake, mapping, input }: Attempt): Promise<Outcome | undefined> {
  const { options } = input
  const fields = mapping.resource === null ? [] : await describeFields(engine, mapping.resource)
  if (mapping.long === null && mapping.compared.length === 0) return undefined
  const table = await readCells(file, mapping, { lake, fields, options })
  const compared = table.columns.filter(({ cells }) => cells > 0)
  if (compared.length === 0) return undefined
  const searched = await searchColumns(compared, { engine, reading, mapping, lake, fields, options })
  return await judge(searched, table, mapping, options)
}

/** What cells are read with. */
interface CellContext {
  readonly lake: LakeFacts
  readonly fields: readonly RecordField[]
  readonly options: DatingOptions
}

/** Values of a row that say what its cells are about. */
type RowRole =
  | 'at'
  | 'asset'
  | 'record'
  | 'metric'
  | 'interval'
  | 'currency'
  | 'exchange'
  | 'network'
  | 'availableAt'
  | 'value'

/** Columns of those values. */
function roleColumns({
  time,
  asset,
  record,
  long,
}: TableMapping): readonly (ReadColumn & { readonly role: RowRole })[] {
  const columns: readonly { readonly role: RowRole; readonly name: string | null; readonly as: ReadColumn['as'] }[] = [
    { role: 'at', name: time, as: 'time' },
    { role: 'asset', name: asset, as: 'text' },
    { role: 'record', name: record, as: 'text' },
    { role: 'metric', name: long?.metric ?? null, as: 'text' },
    { role: 'interval', name: long?.interval ?? null, as: 'text' },
    { role: 'currency', name: long?.currency ?? null, as: 'text' },
    { role: 'exchange', name: long?.exchange ?? null, as: 'text' },
    { role: 'network', name: long?.network ?? null, as: 'text' },
    { role: 'availableAt', name: long?.availableAt ?? null, as: 'time' },
    { role: 'value', name: long?.value ?? null, as: 'number' },
  ]
  return columns.flatMap(({ name, ...rest }) => (name === null ? [] : [{ ...rest, name }]))
}

async function readCells(file: TableFile, mapping: TableMapping, context: CellContext): Promise<TableCells> {
  const { kind, time, long, compared, oneAsset } = mapping
  const { fields, options } = context
  const roles = roleColumns(mapping)
  const values = compared.map(({ column, field }): ReadColumn => {
    const as = field === null ? 'number' : (fields.find(({ name }) => name === field)?.as ?? 'text')
    return { name: column, as }
  })
  const isDecided = kind === 'panel' || (kind === 'universe' && time !== null)
  const latency = (options.latency ?? 0) * 1_000_000
  const maxAge = kind === 'panel' && options.maxAge !== undefined ? options.maxAge * 1_000_000 : Infinity
  const columns = new CellColumns(mapping, context)
  const labels: RowLabel[] = []
  for await (const read of file.rows([...roles, ...values])) {
    const given = Object.fromEntries(roles.map(({ role }, n) => [role, read[n] ?? null])) as Partial<
      Record<RowRole, CellValue>
    >
    const row = labels.length + 1
    const instant = typeof given.at === 'number' ? given.at : null
    const asset = textOf(given.asset) ?? oneAsset
    const record = textOf(given.record)
    labels.push({ asset: record ?? asset, time: instant })
    const decidedAt = isDecided ? (instant ?? -Infinity) : Infinity
    const valueLimits = { at: decidedAt - (isDecided ? latency : 0), staleBefore: decidedAt - maxAge }
    const staleBefore = maxAge === Infinity || instant === null ? -Infinity : valueLimits.staleBefore
    // With this option a NULL may also mean that the decision was unresolved then.
    const provesNothing = (value: CellValue): boolean =>
      kind === 'panel' && options.unresolved === 'null' && value === null
    const place = { t: instant ?? Number.NaN, availableAt: Number(given.availableAt ?? Number.NaN) }
    if (long !== null) {
      const column = columns.ofRow(given)
      if (column !== undefined && !provesNothing(given.value ?? null))
        columns.add(column, asset, place, { row, ...valueLimits, staleBefore, value: given.value ?? null })
    }
    for (const [n, about] of compared.entries()) {
      const value = read[roles.length + n] ?? null
      if (about.field === null && !provesNothing(value))
        columns.add(columns.of(about), about.asset ?? asset, place, { row, ...valueLimits, staleBefore, value })
      else if (about.field !== null && record !== null)
        columns.add(columns.of(about), record, place, { row, at: decidedAt, staleBefore: -Infinity, value })
    }
  }
  return { rows: labels.length, columns: columns.all, labels, unknownMetrics: columns.unknownMetrics }
}

function textOf(value: CellValue | undefined): string | null {
  return value === undefined || value === null ? null : String(value)
}

/** Place of a cell in a series: start of its interval, and time from which its vintage was known, microseconds. */
interface CellPlace {
  readonly t: number
  readonly availableAt: number
}

/** Collects the cells of each column. */
class CellColumns {
  readonly all: ColumnCells[] = []
  /** Metrics in rows that the lake does not have. */
  readonly unknownMetrics = new Set<string>()
  readonly #byName = new Map<string, ColumnCells>()
  readonly #mapping: TableMapping
  readonly #context: CellContext
  readonly #keyedBy: KeyedBy

  constructor(mapping: TableMapping, context: CellContext) {
    this.#mapping = mapping
    this.#context = context
    this.#keyedBy = keyedByOf(mapping.kind)
  }

  add(column: ColumnCells, asset: string | null, { t, availableAt }: CellPlace, cell: TableCell): void {
    const keyedBy = column.series === null ? 'series' : this.#keyedBy
    const key = seriesKey(asset ?? '', t, availableAt, keyedBy)
    let cells = column.byKey.get(key)
    if (cells === undefined) column.byKey.set(key, (cells = new CellList()))
    cells.add(cell)
    if (asset !== null) column.assets.add(asset)
    column.knownBy = Math.max(column.knownBy, cell.at)
    column.cells++
  }

  of(about: ComparedColumn): ColumnCells {
    const { column, metric, field } = about
    const known = this.#byName.get(column)
    if (known !== undefined) return known
    const series = metric === null ? null : seriesOf(metric, about.dimensions, this.#context)
    const own = this.#context.fields.find(({ name }) => name === field) ?? null
    return this.#new(column, { about, label: column, series, field: own })
  }

  /** Returns the column of a row that names its metric; undefined if the lake does not have it. */
  ofRow(given: Partial<Record<RowRole, CellValue>>): ColumnCells | undefined {
    const { long } = this.#mapping
    const metric = textOf(given.metric)
    if (long === null || metric === null) return undefined
    const name = JSON.stringify([metric, given.interval, given.currency, given.exchange, given.network])
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const { names } = this.#context.lake
    const path = metricNamed(metric, names.metrics)
    if (path === null) {
      this.unknownMetrics.add(metric)
      return undefined
    }
    const dimensions = {
      ...(long.interval !== null && { interval: textOf(given.interval) }),
      ...(long.currency !== null && { currency: textOf(given.currency) }),
      ...(long.exchange !== null && { exchange: textOf(given.exchange) }),
      ...(long.network !== null && { network: textOf(given.network) }),
    }
    const series = seriesOf(path, dimensions, this.#context)
    const shown = [metric, ...Object.values(dimensions).flatMap((value) => value ?? [])]
    const about = { column: long.value, metric: path, field: null, asset: null, by: 'name', dimensions } as const
    return this.#new(name, { about, label: shown.join(' '), series, field: null })
  }

  #new(name: string, about: Pick<ColumnCells, 'about' | 'label' | 'series' | 'field'>): ColumnCells {
    const place = this.all.length
    const made = { ...about, place, byKey: new Map(), assets: new Set<string>(), knownBy: -Infinity, cells: 0 }
    this.all.push(made)
    this.#byName.set(name, made)
    return made
  }
}

function keyedByOf(kind: TableKind): KeyedBy {
  return kind === 'points' ? 'point' : kind === 'vintages' ? 'vintage' : 'series'
}

/** Builds the series of a metric: dimensions of the row or column first, then those of the options, then the defaults. */
function seriesOf(metric: string, own: SeriesDimensions, { lake, options }: CellContext): ColumnSeries {
  const [path = '', pointer] = metric.split('#')
  const facts = lake.metrics.get(path)
  const chosen = (name: 'currency' | 'exchange' | 'network'): string | null => {
    if (own[name] !== undefined) return own[name]
    const standard = facts?.[name] ?? null
    return standard === null ? null : (options[name] ?? standard)
  }
  const usual = facts?.has_days === false ? facts.interval : '24h'
  const interval = own.interval ?? options.interval ?? usual ?? '24h'
  return {
    metric: path,
    pointer: pointer ?? options.component ?? null,
    interval: isInterval(interval) ? interval : '24h',
    currency: chosen('currency'),
    exchange: chosen('exchange'),
    network: chosen('network'),
  }
}

/** What columns are searched with. */
interface SearchContext extends CellContext {
  readonly engine: Engine
  readonly reading: Reading
  readonly mapping: TableMapping
}

/** Finds for each cell the states of knowledge in which the lake answers it. */
async function searchColumns(columns: readonly ColumnCells[], context: SearchContext): Promise<SearchedColumn[]> {
  const { engine, reading, mapping } = context
  const { resource } = mapping
  const searched: SearchedColumn[] = []
  const records = columns.filter(({ field }) => field !== null)
  const ids = new Set(records.flatMap(({ assets }) => [...assets]))
  const fields = records.flatMap(({ field }) => field ?? [])
  const states =
    resource === null || ids.size === 0
      ? []
      : await reading(async () => await readRecords(engine, { resource, ids: [...ids], fields }))
  for (const column of columns) {
    const { series } = column
    const unknown: KeyHistory = { values: [], isNullBefore: isNullBefore(column, mapping) }
    const histories = async (): Promise<ColumnHistories> => {
      const byKey =
        series === null
          ? states[records.indexOf(column)]
          : await reading(async () => await readColumn(engine, requestOf(column, series, context), context))
      return { byKey: byKey ?? new Map<string, KeyHistory>(), unknown }
    }
    searched.push({ cells: column, histories, ...searchColumn(column, await histories()) })
  }
  return searched
}

/** Reads the histories of a column of series. A panel that follows renames has others of the assets that were renamed. */
async function readColumn(
  engine: Engine,
  request: SeriesRequest,
  { mapping, options }: SearchContext,
): Promise<ReadonlyMap<string, KeyHistory>> {
  const stored = await readSeries(engine, request)
  if (options.followRenames !== true || mapping.kind !== 'panel') return stored
  return new Map([...stored, ...(await readRenamedSeries(engine, request))])
}

/** Whether the lake answers NULL for a cell before anything is known; a row of points or records is then not there. */
function isNullBefore({ series }: ColumnCells, { kind, long }: TableMapping): boolean {
  return series !== null && (kind === 'panel' || kind === 'universe' || long === null)
}

function requestOf(
  column: ColumnCells,
  series: ColumnSeries,
  { lake, mapping, options }: SearchContext,
): SeriesRequest {
  return {
    series,
    assets: [...column.assets],
    knownBy: column.knownBy,
    isRevisable: lake.metrics.get(series.metric)?.revisable ?? false,
    isFirstVintage: options.vintage === 'first' && mapping.kind !== 'vintages',
    skipNulls: options.skipNulls ?? false,
    keyedBy: keyedByOf(mapping.kind),
    isNullBefore: isNullBefore(column, mapping),
  }
}

/** Searches a column with each way in which its numbers may be rounded, until all cells match at some time. */
function searchColumn(cells: ColumnCells, { byKey, unknown }: ColumnHistories): RoundedSearch {
  const roundings = cells.series === null ? [null] : listRoundings(() => numbersOf(cells))
  let best: (RoundedSearch & { readonly most: number }) | undefined
  for (const rounding of roundings) {
    const matcher = matcherOf(rounding)
    const matching = { availableAt: new MatchingCells(), observedAt: new MatchingCells() }
    for (const [key, own] of cells.byKey)
      findKnowledge(byKey.get(key) ?? unknown, own, matcher, {
        availableAt: (_, from, until) => matching.availableAt.add(from, until),
        observedAt: (_, from, until) => matching.observedAt.add(from, until),
      })
    const most = Math.max(...clocks.map((clock) => matching[clock].best().matching))
    if (best === undefined || most > best.most) best = { rounding, matching, most }
    if (most === cells.cells) break
  }
  if (best === undefined) throw new RangeError('a column without a way to compare it')
  const { rounding, matching } = best
  return { rounding, matching }
}

/** Search with the way of rounding with which the most cells match at one time. */
type RoundedSearch = Pick<SearchedColumn, 'rounding' | 'matching'>

function* numbersOf({ byKey }: ColumnCells): Generator<number> {
  for (const cells of byKey.values())
    for (let n = 0; n < cells.length; n++) {
      const value = cells.value(n)
      if (typeof value === 'number') yield value
    }
}

const clocks: readonly KnowledgeClock[] = ['availableAt', 'observedAt']

/** Judges what was found, and explains the first contradictions. */
async function judge(
  searched: readonly SearchedColumn[],
  { rows, labels, unknownMetrics }: TableCells,
  mapping: TableMapping,
  options: DatingOptions,
): Promise<Outcome> {
  const cells = searched.reduce((sum, { cells: own }) => sum + own.cells, 0)
  const whole = {
    availableAt: MatchingCells.joined(searched.map(({ matching }) => matching.availableAt)),
    observedAt: MatchingCells.joined(searched.map(({ matching }) => matching.observedAt)),
  }
  const ranges = {
    availableAt: whole.availableAt.rangesOf(cells),
    observedAt: whole.observedAt.rangesOf(cells),
  }
  const columns = searched.map(datedColumn)
  const isDated = ranges.availableAt.length + ranges.observedAt.length > 0
  const claims = [
    { clock: 'availableAt', text: options.claimed },
    { clock: 'observedAt', text: options.claimedObserved },
  ] as const
  const refuted = claims.flatMap(({ clock, text }) => {
    const moment = text === undefined ? undefined : parseMicros(text)
    return moment === undefined || isWithin(ranges[clock], moment) ? [] : [{ clock, moment, claimed: true }]
  })[0]
  const best = { availableAt: whole.availableAt.best(), observedAt: whole.observedAt.best() }
  const clock = best.observedAt.matching > best.availableAt.matching ? 'observedAt' : 'availableAt'
  const contradicted = refuted ?? (isDated ? undefined : { clock, moment: best[clock].at, claimed: false })
  const contradiction = contradicted === undefined ? null : await findContradiction(searched, labels, contradicted)
  const hasOwn = columns.every((column) => column.as_of.length > 0 || column.observed_as_of.length > 0)
  const { kind, time, asset, record, resource } = mapping
  const table: DatedTable = {
    verdict: isDated ? (refuted === undefined ? 'dated' : 'contradicted') : hasOwn ? 'mixed' : 'unmatched',
    kind,
    rows,
    cells,
    mapping: { time, asset, record, resource },
    as_of: ranges.availableAt.map(timeRange),
    observed_as_of: ranges.observedAt.map(timeRange),
    columns,
    ignored: [
      ...mapping.ignored,
      ...[...unknownMetrics].map((column) => ({ column, reason: 'no metric of the lake' })),
    ],
    contradiction,
  }
  return { table, fit: best[clock].matching / cells + (isDated ? 1 : 0) }
}

function isWithin(ranges: readonly ClockInterval[], moment: number): boolean {
  return ranges.some(({ from, until }) => from <= moment && moment < until)
}

function datedColumn({ cells, rounding, matching }: SearchedColumn): DatedColumn {
  const { about, label, series } = cells
  return {
    column: label,
    metric: about.metric,
    field: about.field,
    interval: series?.interval ?? null,
    currency: series?.currency ?? null,
    exchange: series?.exchange ?? null,
    network: series?.network ?? null,
    by: about.by,
    rounding,
    cells: cells.cells,
    as_of: matching.availableAt.rangesOf(cells.cells).map(timeRange),
    observed_as_of: matching.observedAt.rangesOf(cells.cells).map(timeRange),
  }
}

/** State of knowledge that cells contradict. */
interface ContradictedState {
  readonly clock: KnowledgeClock
  readonly moment: number
  readonly claimed: boolean
}

/** Finds the cells that contradict a state of knowledge: their number, and the first of them. */
async function findContradiction(
  searched: readonly SearchedColumn[],
  labels: readonly RowLabel[],
  { clock, moment, claimed }: ContradictedState,
): Promise<Contradiction> {
  let first: ContradictingCell[] = []
  let count = 0
  for (const column of searched) {
    const { byKey, unknown } = await column.histories()
    const matcher = matcherOf(column.rounding)
    for (const [key, cells] of column.cells.byKey) {
      const history = byKey.get(key) ?? unknown
      const matching = new Uint8Array(cells.length)
      findKnowledge(history, cells, matcher, {
        [clock]: (n: number, from: number, until: number) => {
          if (from <= moment && moment < until) matching[n] = 1
        },
      })
      for (let n = 0; n < cells.length; n++) {
        if (matching[n] === 1) continue
        count++
        first.push({ column, history, cell: cells.cell(n) })
        if (first.length > 1000) first = firstShown(first)
      }
    }
  }
  const axis = clock === 'availableAt' ? 'as_of' : 'observed_as_of'
  const shown = firstShown(first).map((cell) => explainCell(cell, labels, clock, moment))
  return { axis, at: timeText(moment), claimed, cells: count, first: shown }
}

/** Keeps the cells that are shown: the first ones in the order of rows and columns. */
function firstShown(cells: readonly ContradictingCell[]): ContradictingCell[] {
  return cells
    .toSorted((a, b) => a.cell.row - b.cell.row || a.column.cells.place - b.column.cells.place)
    .slice(0, mostShown)
}

function explainCell(
  { column, history, cell }: ContradictingCell,
  labels: readonly RowLabel[],
  clock: KnowledgeClock,
  moment: number,
): ContradictedCell {
  const { asset = null, time = null } = labels[cell.row - 1] ?? {}
  const answer = findAnswer(history, cell, clock, moment)
  const only = new CellList()
  only.add(cell)
  const rangesOf = (own: KnowledgeClock): readonly TimeRange[] => {
    const matching = new MatchingCells()
    const found = (_: number, from: number, until: number): void => matching.add(from, until)
    findKnowledge(history, only, matcherOf(column.rounding), { [own]: found })
    return matching.rangesOf(1).map(timeRange)
  }
  return {
    row: cell.row,
    column: column.cells.label,
    asset: column.cells.about.asset ?? asset,
    time: time === null ? null : timeText(time),
    value: cell.value,
    answer: answer ?? null,
    is_listed: answer !== undefined,
    as_of: rangesOf('availableAt'),
    observed_as_of: rangesOf('observedAt'),
  }
}

/** Cell that contradicts a time, with its column and the history of its key. */
interface ContradictingCell {
  readonly column: SearchedColumn
  readonly history: KeyHistory
  readonly cell: TableCell
}

function timeRange({ from, until }: ClockInterval): TimeRange {
  return { from: timeText(from), until: timeText(until) }
}

function timeText(moment: number): string | null {
  return Number.isFinite(moment) ? formatMicros(moment) : null
}
