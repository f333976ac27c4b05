import type { Defaults } from '../catalog/catalogue.ts'
import { usage } from '../base/errors.ts'
import { type Engine, quote, type Row } from '../lake/store/engine.ts'
import { utcSql } from './views/template.ts'
import type { Moment } from './options.ts'

/** Series and range of a query for points. */
export interface PointsFilter {
  /** Paths of metrics. Default: all. */
  readonly metrics?: string | readonly string[] | undefined
  /** Assets. Default: all. */
  readonly assets?: string | readonly string[] | undefined
  /** Interval of the points. Default: the catalogue's for each metric; `*` means all. */
  readonly interval?: string | undefined
  /** Dimension of the series. Default: the catalogue's for each metric; `*` means all. */
  readonly currency?: string | undefined
  /** Dimension of the series, as `currency`. */
  readonly exchange?: string | undefined
  /** Dimension of the series, as `currency`. */
  readonly network?: string | undefined
  /** First `t`. */
  readonly since?: Moment | undefined
  /** End of the range of `t`, exclusive. */
  readonly until?: Moment | undefined
}

/** The catalogue's defaults for one metric: they apply if a query names no interval, currency, exchange or network. */
export interface Standard extends Defaults {
  /** Path of the metric, or `price_usd`. */
  readonly metric: string
}

/** The view of prices, as a metric. */
export const price = 'price_usd'
/** Metric from which prices are computed. */
export const priced = 'supply/current_pit'
const named = ['interval', 'currency', 'exchange', 'network'] as const

/** Reads the catalogue's defaults, of prices too. */
export async function standardsOf(engine: Engine): Promise<readonly Standard[]> {
  const rows = await engine.rows<Standard & Row>(
    `SELECT metric, ${named.map((name) => `default_${name} AS "${name}"`).join(', ')} FROM endpoints ORDER BY metric`,
  )
  const prices = rows.filter(({ metric }) => metric === priced)
  return [
    ...rows,
    ...prices.map(({ interval }) => ({ metric: price, interval, currency: null, exchange: null, network: null })),
  ]
}

/** Lists the names of all metrics that a query may request. */
export async function metricsOf(engine: Engine): Promise<readonly string[]> {
  const rows = await engine.rows<{ metric: string }>('SELECT metric FROM endpoints ORDER BY 1')
  return [...rows.map(({ metric }) => metric), price]
}

/** Builds the query for points, sorted by series and t. */
export function pointsSql(filter: PointsFilter, standards: readonly Standard[]): string {
  const metrics = filter.metrics === undefined ? undefined : [filter.metrics].flat()
  const prices = metrics?.includes(price) === true
  if (prices && metrics.length > 1)
    throw usage('points: metrics', {
      expected: `${price} alone, or metrics of points`,
      got: 'both',
      next: 'query them one after the other',
    })
  const conditions = [
    seriesSql(filter, metrics, prices ? standards : standards.filter(({ metric }) => metric !== price)),
  ]
  if (filter.assets !== undefined) conditions.push(among('asset', [filter.assets].flat()))
  const bound = (sign: '>=' | '<', at: Moment | undefined): void => {
    if (at === undefined) return
    conditions.push(`t ${sign} ${utcSql(quote(at instanceof Date ? at.toISOString() : at))}`)
  }
  bound('>=', filter.since)
  bound('<', filter.until)
  const order = 'metric, asset, "interval", currency, exchange, network, t'
  return `SELECT * FROM ${prices ? price : 'points'}\nWHERE ${conditions.join('\n  AND ')}\nORDER BY ${order}`
}

/** Builds the SQL that selects series; metrics with the same defaults are queried together. */
function seriesSql(filter: PointsFilter, metrics: readonly string[] | undefined, standards: readonly Standard[]) {
  const byMetric = new Map(standards.map((standard) => [standard.metric, standard]))
  const dimensionTests = (metric: string | undefined): string =>
    named
      .flatMap((name) => {
        const value = filter[name] ?? (metric === undefined ? null : (byMetric.get(metric)?.[name] ?? null))
        return value === null || value === '*' ? [] : [`"${name}" = ${quote(value)}`]
      })
      .join(' AND ')
  const groups = [...Map.groupBy(metrics ?? [...byMetric.keys()], dimensionTests)].map(([rest, names]) =>
    [among('metric', names), ...(rest === '' ? [] : [rest])].join(' AND '),
  )
  if (metrics === undefined) {
    const rest = dimensionTests(undefined)
    const strange = byMetric.size === 0 ? 'true' : `metric NOT IN (${[...byMetric.keys()].map(quote).join(', ')})`
    groups.push(rest === '' ? strange : `${strange} AND ${rest}`)
  }
  return groups.length === 1 ? (groups[0] ?? 'true') : `(${groups.map((group) => `(${group})`).join(' OR ')})`
}

function among(column: string, values: readonly string[]): string {
  return `${column} IN (${values.map(quote).join(', ')})`
}
