import { usage } from '../base/errors.ts'
import { parseDuration } from '../base/time.ts'
import { quote, quoteList, quoteName } from '../lake/store/engine.ts'
import { type JoinOptions, pointsOptions } from './options.ts'
import {
  type DecisionsSql,
  key,
  optionsSql,
  type Panel,
  type PanelSpec,
  refuseAdded,
  specOf,
  tableSql,
} from './panel.ts'
import { gridSql } from './panel-calendar.ts'
import { readOptions } from './read-options.ts'

/** Decisions and metric of a join. */
export interface Join extends JoinOptions, Pick<Panel, 'decisions'> {
  /** Path of the metric. `path#/pointer` selects a component of object values. */
  readonly metric: string
}

/** Decisions, metric and number of points of `window`. */
export interface Windowed extends Join {
  /**
   * Number of points for each decision, 1 or more; or a span such as `90 days` or `12h`: then the points whose interval
   * ended less than that before `ts`.
   */
  readonly n: number | string
}

/** Grid of decision times, UTC. */
export interface Calendar {
  /** First time of the grid. */
  readonly since: string
  /** End of the grid, exclusive. */
  readonly until: string
  /**
   * Distance between two times, such as `1 day`, `15 minutes` or `1 month`; or an exchange such as `XNYS`: its closes; or
   * a local time: `daily at 09:30 America/New_York`.
   */
  readonly step: string
  /** Assets. With them the grid has a row for each time and asset. */
  readonly assets?: readonly string[]
}

const joinedColumns = ['t', 'available_at', 'v', 'o', 'age']

/** Converts a join to the spec of a panel of one metric. */
export function joinSpec({ metric, ...rest }: Join): PanelSpec {
  return specOf({ ...rest, metrics: [metric] })
}

/** Builds the SQL of `pit_join`, or of `pit_window` if the points are counted, over a table of that name. */
export function joinCallSql(spec: PanelSpec, n: number | string | undefined, table: string): DecisionsSql {
  const { metrics, interval, decisions } = spec
  const added = n === undefined ? joinedColumns : [...joinedColumns, 'nth']
  if (decisions.kind === 'list') refuseAdded('decisions', 'join', Object.keys(decisions.types), added)
  const sizes = n === undefined ? [] : [windowSizeSql(n)]
  const callArguments = ['asked', quote(metrics[0]?.metric ?? ''), quote(interval), ...sizes, ...optionsSql(spec)].join(
    ', ',
  )
  const query = [
    `WITH asked AS MATERIALIZED (SELECT ${key}, asset, ts FROM ${quoteName(table)}),`,
    `told AS (SELECT ${key}, ${added.join(', ')} FROM ` +
      `${n === undefined ? 'pit_join' : 'pit_window'}(${callArguments}))`,
    `SELECT own.* EXCLUDE (${key}), told.* EXCLUDE (${key})`,
    `FROM ${quoteName(table)} AS own JOIN told USING (${key})`,
    `ORDER BY ${key}${n === undefined ? '' : ', nth'}`,
  ].join('\n')
  return { decisions: tableSql(spec, table), query }
}

/** Formats the size of a window as SQL: a number of points, or a span. */
function windowSizeSql(n: number | string): string {
  const seconds = typeof n === 'string' ? (parseDuration(n) ?? 0) : 0
  if (seconds > 0) return `to_seconds(${seconds})`
  if (typeof n === 'number' && Number.isInteger(n) && n >= 1) return String(n)
  throw usage('window: n', { expected: 'how many points, 1 or more, or a span such as 90d', got: JSON.stringify(n) })
}

/** Formats assets as an SQL list; an empty list is refused, as in a query for points. */
function assetsSql(given: readonly string[]): string {
  const { assets = [] } = readOptions({ assets: pointsOptions.assets }, { assets: given }, 'typescript')
  return quoteList(assets)
}

/** Builds the query for a calendar. */
export function calendarSql({ since, until, step, assets }: Calendar): string {
  const instants = gridSql('calendar', { since, until, step })
  if (assets === undefined) return `SELECT ts FROM ${instants} ORDER BY ts`
  return (
    `SELECT asset, ts FROM ${instants} CROSS JOIN (SELECT unnest(${assetsSql(assets)}) AS asset) ORDER BY ` +
    'ts, asset'
  )
}

/** Metric, intervals and aggregate of `resample`. */
export interface Resample {
  /** Path of the metric. `path#/pointer` selects a component of object values. */
  readonly metric: string
  /** Interval of the finer points, such as `24h`. */
  readonly fromInterval: string
  /** Interval of the answer, such as `1w`. */
  readonly toInterval: string
  /**
   * Aggregate: `mean` (default), `sum`, `median`, `min`, `max`, `first` or `last`. With `ohlc` the answer has the columns
   * `open, high, low, close` instead of `v`.
   */
  readonly agg?: string
  /** Assets. Default: all. */
  readonly assets?: readonly string[]
  /** Dimension of the series. Default: all. */
  readonly currency?: string
  /** Dimension of the series. Default: all. */
  readonly exchange?: string
  /** Dimension of the series. Default: all. */
  readonly network?: string
  /** JSON pointer to a number in object values. You can also write `path#/pointer` as the metric. */
  readonly component?: string
  /** Ignores parts whose value is null. Default: a null part makes `v` NULL. */
  readonly skipNulls?: boolean
  /** Number of parts with a value that is enough for `v`. Default: all. */
  readonly minParts?: number
  /** First `t` of the answer. */
  readonly since?: string
  /** End of the range of `t`, exclusive. */
  readonly until?: string
  /** Also uses points of the predecessors and successors of the asset, after a rename or migration. */
  readonly followRenames?: boolean
}

/** Builds the query for a resampled metric. */
export function resampleSql({ metric, fromInterval, toInterval, agg = 'mean', assets, ...options }: Resample): string {
  const { skipNulls = false, followRenames = false, minParts, ...texts } = options
  if (minParts !== undefined && (!Number.isInteger(minParts) || minParts < 1))
    throw usage('resample: minParts', { expected: 'a number of parts, 1 or more', got: String(minParts) })
  const isBars = agg === 'ohlc'
  const names = ['currency', 'exchange', 'network', 'component', 'since', 'until'] as const
  const callArguments = [
    ...[metric, fromInterval, toInterval, ...(isBars ? [] : [agg])].map(quote),
    ...names.flatMap((name) => (texts[name] === undefined ? [] : [`${name} := ${quote(texts[name])}`])),
    ...(skipNulls ? ['skip_nulls := true'] : []),
    ...(followRenames ? ['follow_renames := true'] : []),
    ...(minParts === undefined ? [] : [`min_parts := ${minParts}`]),
  ]
  const wanted = assets === undefined ? '' : ` WHERE asset IN (SELECT unnest(${assetsSql(assets)}))`
  const call = `${isBars ? 'bars' : 'resample'}(${callArguments.join(', ')})`
  return `SELECT * FROM ${call}${wanted} ORDER BY asset, currency, exchange, network, t`
}

/** Builds the query for every version ever known of the records of a registry resource. */
export function historySql(resource: string): string {
  if (!/^[a-z_]+$/.test(resource))
    throw usage('history', { expected: 'a resource of the registry, such as products', got: JSON.stringify(resource) })
  return `SELECT * FROM history.${quoteName(resource)} ORDER BY id, valid_from`
}

/** The query for the catalogue. */
export const metricsSql = 'SELECT * FROM endpoints ORDER BY metric'

/** Query for one row: the lake and its version, its contents, and what is wrong with it. */
export const statusSql = `SELECT lake, version, committed_at, provider, synthetic, folder,
  (SELECT count(*) FROM series) AS series,
  (SELECT CAST(coalesce(sum(points), 0) AS BIGINT) FROM series) AS points,
  (SELECT max(last_available_at) FROM series) AS last_available_at,
  (SELECT count(*) FROM coverage WHERE state = 'failed') AS failed_windows,
  (SELECT count(*) FROM gaps) AS gaps,
  (SELECT count(DISTINCT incident) + count(*) FILTER (WHERE incident IS NULL) FROM violations WHERE status = 'open')
    AS violations,
  (SELECT min(known_since) FROM registry_start) AS registry_since
FROM lake_info`
