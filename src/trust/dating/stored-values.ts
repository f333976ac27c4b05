import { end, type Interval } from '../../base/time.ts'
import { type Engine, quote, quoteList, quoteName } from '../../lake/store/engine.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import { price } from '../../query/points.ts'
import { compareStored, type KeyHistory, type StoredValue } from './knowledge-intervals.ts'
import { comparedAs, comparedSql, comparedValue, type ComparedAs } from './table-file.ts'

/** Series of a column: a metric with its dimensions, of any asset. */
export interface ColumnSeries {
  /** Path of the metric. */
  readonly metric: string
  /** JSON pointer of a component, such as `/open`; null for the whole value. */
  readonly pointer: string | null
  readonly interval: Interval
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
}

/** What has a history of its own. */
export type KeyedBy = 'series' | 'point' | 'vintage'

/**
 * Reads what a join that follows renames ever knew of the assets that were renamed, by `seriesKey`. The answer of such a
 * join changes only when a point or a succession becomes known, and it then stays the same for every later `as_of`. The
 * lake is therefore asked at each of these times, through its own join.
 */
export async function readRenamedSeries(engine: Engine, request: SeriesRequest): Promise<Map<string, KeyHistory>> {
  const { series, isNullBefore } = request
  const { chunks } = await engine.stream(renamedSql(request))
  const histories = new Map<string, StoredValue[]>()
  for await (const { rows, columns } of chunks) {
    for (let row = 0; row < rows; row++) {
      const [asset, ts, t, v] = columns.map((values) => values[row] ?? null)
      // There is no point before the first is known.
      if (typeof asset !== 'string' || t === null) continue
      const values = histories.get(asset) ?? []
      histories.set(asset, values)
      const knownAt = Number(ts)
      // The order of the answers counts, not that of their intervals: a later answer replaces an earlier one.
      const ended = endOf(Number(t), series.interval)
      const value = typeof v === 'number' ? v : null
      values.push({ t: values.length, end: ended, availableAt: knownAt, observedAt: -Infinity, value })
    }
  }
  return new Map([...histories].map(([key, values]) => [key, { values, isNullBefore, isOfOneClock: true }]))
}

function renamedSql({ series, assets, isRevisable, isFirstVintage, skipNulls }: SeriesRequest): string {
  const { metric, pointer, interval } = series
  const relation = metric === price ? price : isRevisable ? 'vintages' : 'points'
  const condition = metric === price ? 'true' : `p.metric = ${quote(metric)}`
  const options = [
    ...(['currency', 'exchange', 'network'] as const).flatMap((name) =>
      series[name] === null || metric === price ? [] : [`${name} := ${quote(series[name])}`],
    ),
    ...(skipNulls ? ['skip_nulls := true'] : []),
    ...(isFirstVintage ? ["vintage := 'first'"] : []),
    'follow_renames := true',
  ]
  const name = pointer === null ? metric : `${metric}#${pointer}`
  // A part of user data may be known before the whole.
  const parts =
    pointer === null || !metric.startsWith('own/')
      ? ''
      : `UNION SELECT available_at FROM components WHERE metric = ${quote(metric)} AND component = ${quote(pointer)}
    AND asset IN (SELECT asset FROM renamed)`
  return `WITH renamed AS (
  SELECT DISTINCT unnest([metric_asset, predecessor, successor]) AS asset FROM links
  WHERE predecessor <> metric_asset OR successor <> metric_asset
),
news AS (
  SELECT p.available_at AS ts FROM ${relation} AS p
  WHERE ${condition} AND p."interval" = ${quote(interval)} AND p.asset IN (SELECT asset FROM renamed)
  ${parts}
  UNION SELECT unnest([predecessor_at, successor_at, valid_from, valid_to]) FROM links
),
asked AS (
  SELECT renamed.asset, news.ts FROM renamed CROSS JOIN news
  WHERE isfinite(news.ts) AND renamed.asset IN (SELECT unnest(${quoteList(assets)}))
)
SELECT asset, CAST(epoch_us(ts) AS DOUBLE) AS ts, CAST(epoch_us(t) AS DOUBLE) AS t, v
FROM pit_join('asked', ${quote(name)}, ${quote(interval)}, ${options.join(', ')})
ORDER BY asset, ts`
}

/** Which values of series are read. */
export interface SeriesRequest {
  readonly series: ColumnSeries
  readonly assets: readonly string[]
  /** Values that become known later cannot be in the table, microseconds. Infinity: no limit. */
  readonly knownBy: number
  /** Whether values are those of a revisable series, each with its vintages. */
  readonly isRevisable: boolean
  /** Whether the first vintage of a point is its value, not the last. */
  readonly isFirstVintage: boolean
  readonly skipNulls: boolean
  /** What has a key of its own: each series, each of its points, or each vintage of a point. */
  readonly keyedBy: KeyedBy
  /** Whether the lake answers NULL before anything is known for a key. */
  readonly isNullBefore: boolean
}

/** Returns the key of a series, a point (`t`, microseconds) or a vintage (`availableAt`, too). */
export function seriesKey(asset: string, t: number, availableAt: number, keyedBy: KeyedBy): string {
  switch (keyedBy) {
    case 'series':
      return asset
    case 'point':
      return `${asset} ${t}`
    case 'vintage':
      return `${asset} ${t} ${availableAt}`
  }
}

/** Reads everything that the lake ever knew of some series, by `seriesKey`. */
export async function readSeries(engine: Engine, request: SeriesRequest): Promise<Map<string, KeyHistory>> {
  const { series, keyedBy, isNullBefore } = request
  const { chunks } = await engine.stream(seriesSql(request))
  const histories = new Map<string, StoredValue[]>()
  for await (const { rows, columns } of chunks) {
    for (let row = 0; row < rows; row++) {
      const [asset, t, availableAt, observedAt, v] = columns.map((values) => values[row] ?? null)
      const start = Number(t)
      const value: StoredValue = {
        t: start,
        end: endOf(start, series.interval),
        availableAt: Number(availableAt),
        observedAt: Number(observedAt),
        value: typeof v === 'number' ? v : null,
      }
      if (typeof asset !== 'string') continue
      const key = seriesKey(asset, start, value.availableAt, keyedBy)
      const values = histories.get(key)
      if (values === undefined) histories.set(key, [value])
      else values.push(value)
    }
  }
  return new Map([...histories].map(([key, values]) => [key, { values, isNullBefore }]))
}

/** Computes the end of the interval that begins at a time, microseconds. */
function endOf(start: number, interval: Interval): number {
  return end(start / 1_000_000, interval) * 1_000_000
}

function seriesSql({ series, assets, knownBy, isRevisable, isFirstVintage, skipNulls }: SeriesRequest): string {
  const { metric, pointer, interval } = series
  const isPrice = metric === price
  // The last known value is the answer: if the first vintage counts, it comes last.
  const order = isFirstVintage ? 'DESC' : 'ASC'
  const relation = isPrice ? price : isRevisable ? 'vintages' : 'points'
  // A part of user data may be known before the whole.
  const isPart = pointer !== null && metric.startsWith('own/') && !isRevisable
  const value = pointer === null ? 'p.v' : `TRY_CAST(json_extract_string(p.o, ${quote(pointer)}) AS DOUBLE)`
  const availableAt = isPart ? 'coalesce(part.available_at, p.available_at)' : 'p.available_at'
  const dimensions = isPrice
    ? []
    : (['currency', 'exchange', 'network'] as const).map((name) => {
        const wanted = series[name]
        return `p.${name} IS NOT DISTINCT FROM ${wanted === null ? 'NULL' : quote(wanted)}`
      })
  const parts = isPart
    ? `LEFT JOIN (
  SELECT asset, t, currency, exchange, network, available_at FROM components
  WHERE metric = ${quote(metric)} AND "interval" = ${quote(interval)} AND component = ${quote(pointer)}
) AS part ON part.asset = p.asset AND part.t = p.t AND part.currency IS NOT DISTINCT FROM p.currency
  AND part.exchange IS NOT DISTINCT FROM p.exchange AND part.network IS NOT DISTINCT FROM p.network`
    : ''
  const conditions = [
    `p.metric = ${quote(metric)}`,
    `p."interval" = ${quote(interval)}`,
    ...dimensions,
    `p.asset IN (SELECT unnest(${quoteList(assets)}))`,
    ...(knownBy < Infinity ? [`${availableAt} <= make_timestamptz(CAST(${knownBy} AS BIGINT))`] : []),
    ...(skipNulls ? [`${value} IS NOT NULL`] : []),
  ]
  return `SELECT p.asset, CAST(epoch_us(p.t) AS DOUBLE) AS t, CAST(epoch_us(${availableAt}) AS DOUBLE) AS available_at,
  CAST(epoch_us(p.observed_at) AS DOUBLE) AS observed_at, ${value} AS v
FROM ${relation} AS p ${parts}
WHERE ${conditions.join('\n  AND ')}
ORDER BY p.asset, t, available_at ${order}, observed_at ${order}`
}

/** Field of registry records, and how its values are compared. */
export interface RecordField {
  readonly name: string
  readonly as: ComparedAs
  readonly type: string
}

/** Describes fields of the view `universe`, or of a resource. */
export async function describeFields(engine: Engine, resource: string): Promise<readonly RecordField[]> {
  const view = resource === 'universe' ? 'universe' : `history.${quoteName(resource)}`
  const columns = await columnsOf(engine, view)
  return columns.map(({ name, type }) => ({ name, type, as: comparedAs(type) }))
}

/** Which fields of which records are read. */
export interface RecordRequest {
  readonly resource: string
  readonly ids: readonly string[]
  readonly fields: readonly RecordField[]
}

/** Reads all states of records ever known, by id, for each field. */
export async function readRecords(engine: Engine, request: RecordRequest): Promise<ReadonlyMap<string, KeyHistory>[]> {
  const { fields } = request
  const { chunks } = await engine.stream(request.resource === 'universe' ? universeSql(request) : resourceSql(request))
  const histories = fields.map(() => new Map<string, StoredValue[]>())
  for await (const { rows, columns } of chunks) {
    for (let row = 0; row < rows; row++) {
      const [id, at, isRemoved, ...values] = columns.map((column) => column[row] ?? null)
      const instant = Number(at)
      if (typeof id !== 'string') continue
      for (const [n, { as }] of fields.entries()) {
        const value = isRemoved === true ? undefined : comparedValue(values[n], as)
        const stored = { t: instant, end: instant, availableAt: instant, observedAt: instant, value }
        const list = histories[n]?.get(id)
        if (list === undefined) histories[n]?.set(id, [stored])
        else list.push(stored)
      }
    }
  }
  return histories.map(
    (own) =>
      new Map([...own].map(([id, values]) => [id, { values: values.toSorted(compareStored), isNullBefore: false }])),
  )
}

/** Builds the SQL of the states of a resource: each from its first poll on, and none from the poll that ended it. */
function resourceSql({ resource, ids, fields }: RecordRequest): string {
  const list = fields.map(({ name, type, as }) => `${comparedSql(quoteName(name), type, as)} AS ${quoteName(name)}`)
  return `WITH states AS (
  SELECT *, lead(valid_from) OVER (PARTITION BY id ORDER BY valid_from) AS next_from FROM history.${quoteName(resource)}
  WHERE id IN (SELECT unnest(${quoteList(ids)}))
)
SELECT id AS record_id, CAST(epoch_us(valid_from) AS DOUBLE) AS poll, false AS is_removed, ${list.join(', ')} FROM states
UNION ALL
SELECT id, CAST(epoch_us(valid_to) AS DOUBLE), true, ${fields.map(() => 'NULL').join(', ')} FROM states
WHERE isfinite(valid_to) AND next_from IS DISTINCT FROM valid_to`
}

/**
 * Builds the SQL of the states of products in the view `universe`: at each poll that changed the product, its issuer, its
 * asset or a contract of it.
 */
function universeSql({ ids, fields }: RecordRequest): string {
  const list = fields.map(({ name, type, as }) => comparedSql(`known.${quoteName(name)}`, type, as))
  return `WITH products AS (
  SELECT id, issuer_id, asset_id, valid_from, valid_to FROM history.products
  WHERE id IN (SELECT unnest(${quoteList(ids)}))
),
polls AS (
  SELECT id, unnest([valid_from, valid_to]) AS poll FROM products
  UNION
  SELECT p.id, unnest([d.valid_from, d.valid_to]) FROM products AS p JOIN history.deployments AS d ON d.product_id = p.id
  UNION
  SELECT p.id, unnest([i.valid_from, i.valid_to]) FROM products AS p JOIN history.issuers AS i ON i.id = p.issuer_id
  UNION
  SELECT p.id, unnest([a.valid_from, a.valid_to]) FROM products AS p JOIN history.assets AS a ON a.id = p.asset_id
),
record_polls AS MATERIALIZED (
  SELECT id AS record_id, CAST(NULL AS VARCHAR) AS asset, poll AS ts FROM polls WHERE isfinite(poll)
)
SELECT known.record_id, CAST(epoch_us(known.ts) AS DOUBLE) AS poll, known.product_id IS NULL AS is_removed, ${list.join(', ')}
FROM pit_registry('record_polls', product := record_id) AS known`
}
