import { quote, quoteList } from '../../lake/store/engine.ts'
import type { Interval } from '../../base/time.ts'
import { parquet } from '../../lake/store/parquet.ts'
import type { FileEntry, Json } from '../../lake/ledger/entry.ts'
import { inLake } from '../../lake/store/layout.ts'

/*
 * Points are stored in two levels of files: a partition's own (metric and interval in their path), and recent ones with
 * the small portions of commits, all metrics together (metric and interval as their first columns). A point is in one
 * file only. The journal lists recent files without metric and interval; their `meta.shares` lists their partitions.
 */

/** Number of points from which on a portion of a partition gets a file of its own. */
export const portionRows = 8192

/** Rows of a row group of a recent file: a question about one metric reads one or two. */
export const recentGroup = 32_768

/** The contents of a points file for one partition, as counts. */
export interface Share {
  readonly metric: string
  readonly interval: Interval
  readonly rows: number
  /** The smallest `available_at` minus end of the interval, microseconds; null if unknown. */
  readonly min_lag: number | null
}

/** Whether a file is a recent one. */
export function isRecent({ table, metric }: Pick<FileEntry, 'table' | 'metric'>): boolean {
  return table === 'points' && metric === null
}

/** Returns the contents of a points file for each partition. */
export function sharesOf(file: Pick<FileEntry, 'metric' | 'interval' | 'rows' | 'meta'>): Share[] {
  const { metric, interval, rows, meta } = file
  const lag = meta['min_lag']
  const min_lag = typeof lag === 'number' ? lag : null
  if (metric !== null && interval !== null) return [{ metric, interval, rows, min_lag }]
  const shares = (meta['shares'] ?? {}) as Readonly<Record<string, Readonly<Record<Interval, [number, number]>>>>
  return Object.entries(shares).flatMap(([name, sharesOfMetric]) =>
    Object.entries(sharesOfMetric).map(([each, [count, least]]) => ({
      metric: name,
      interval: each as Interval,
      rows: count,
      min_lag: least,
    })),
  )
}

/** Converts shares to their form in the meta of a recent file. */
export function sharesMeta(shares: readonly Share[]): Json {
  const meta: Record<string, Record<string, Json>> = {}
  for (const { metric, interval, rows, min_lag } of shares)
    meta[metric] = { ...meta[metric], [interval]: [rows, min_lag ?? 0] }
  return meta
}

/** A partition with the files that contain points of it. */
export interface Partition<T> {
  readonly metric: string
  readonly interval: Interval
  readonly files: readonly T[]
  readonly recent: readonly T[]
}

/** Groups points files by the partitions of which they contain points, by `metric interval`. */
export function partitionsOf<T extends FileEntry>(files: readonly T[]): Map<string, Partition<T>> {
  const found = new Map<string, { metric: string; interval: Interval; files: T[]; recent: T[] }>()
  for (const file of files)
    for (const { metric, interval } of sharesOf(file)) {
      const key = `${metric} ${interval}`
      const partition = found.get(key) ?? { metric, interval, files: [], recent: [] }
      found.set(key, partition)
      ;(isRecent(file) ? partition.recent : partition.files).push(file)
    }
  return found
}

const columns =
  'asset, currency, exchange, network, t, available_at, observed_at, v, o, basis, extra, computed_at, ' +
  'available_rule_at, params'

/** SQL of the points of a partition, for FROM, with the columns of its own files. There must be a file. */
export function partitionSql(
  root: string,
  { files: partitionFiles, recent, ...partition }: Partition<FileEntry>,
): string {
  const paths = (files: readonly FileEntry[]): string[] => files.map(({ path }) => inLake(root, path))
  return levelsSql(paths(partitionFiles), paths(recent), partition)
}

/** SQL of the points in files of both levels, by their absolute paths; limited to the partition in the recent ones. */
function levelsSql(
  partition: readonly string[],
  recent: readonly string[],
  { metric, interval }: Pick<Partition<unknown>, 'metric' | 'interval'>,
): string {
  const wanted = `metric = ${quote(metric)} AND "interval" = ${quote(interval)}`
  const levels = [
    ...(partition.length === 0 ? [] : [`SELECT ${columns} FROM ${parquet(partition)}`]),
    ...(recent.length === 0 ? [] : [`SELECT ${columns} FROM ${parquet(recent)} WHERE ${wanted}`]),
  ]
  if (levels.length === 0) throw new RangeError(`no file holds points of ${metric} ${interval}`)
  return `(${levels.join(' UNION ALL ')})`
}

/**
 * SQL of the rows of points files with metric and interval, for FROM; files of a partition have these only in their
 * names.
 */
export function namedSql(
  files: readonly (Pick<FileEntry, 'path' | 'metric'> & { readonly interval: string | null })[],
  columns = '*',
): string {
  const recent = files.filter(({ metric }) => metric === null)
  const placedFiles = files.filter(({ metric }) => metric !== null)
  const nth = (texts: readonly (string | null)[]): string =>
    new Set(texts).size === 1
      ? quote(texts[0] ?? '')
      : `(${quoteList(texts.map((text) => text ?? ''))})[CAST(file_index AS INTEGER) + 1]`
  const rows = (some: typeof files, metric: string, interval: string, rest: string): string[] => {
    const paths = some.map(({ path }) => path)
    return paths.length === 0
      ? []
      : [`SELECT ${metric} AS metric, ${interval} AS "interval", ${rest} FROM ${parquet(paths)}`]
  }
  const levels = [
    ...rows(
      placedFiles,
      nth(placedFiles.map((file) => file.metric)),
      nth(placedFiles.map((file) => file.interval)),
      columns,
    ),
    ...rows(recent, 'metric', '"interval"', columns === '*' ? '* EXCLUDE (metric, "interval")' : columns),
  ]
  return `(${levels.join(' UNION ALL BY NAME ')})`
}

/**
 * Points files store equal timestamps once, to save space: `computed_at` is NULL if it equals the `available_at` of a
 * point with basis `provider`, and `available_rule_at` is NULL if it equals `available_at`.
 */

/**
 * SQL of the time at which the provider computed a stored point; NULL if the provider does not report it. `of` names
 * the relation.
 */
export function computedSql(of = ''): string {
  const from = of === '' ? '' : `${of}.`
  return `coalesce(${from}computed_at, CASE WHEN ${from}basis = 'provider' THEN ${from}available_at END)`
}

/** SQL of the time from which a stored point counts as known if the rule dates backfilled points. */
export function ruledSql(of = ''): string {
  const from = of === '' ? '' : `${of}.`
  return `coalesce(${from}available_rule_at, ${from}available_at)`
}
