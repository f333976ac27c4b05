import { usage } from '../errors.ts'
import { quote } from '../lake/engine.ts'
import { instant, type Moment } from './lake.ts'

/** Which points; what is left out is not restricted. */
export interface PointsFilter {
  readonly metrics?: string | readonly string[] | undefined
  readonly assets?: string | readonly string[] | undefined
  readonly interval?: string | undefined
  readonly currency?: string | undefined
  readonly exchange?: string | undefined
  readonly network?: string | undefined
  /** First `t`. */
  readonly since?: Moment | undefined
  /** End of the range of `t`, exclusive. */
  readonly until?: Moment | undefined
}

/** The query for points, sorted by series and t. */
export function pointsSql(filter: PointsFilter): string {
  const conditions: string[] = []
  const among = (column: string, values: string | readonly string[] | undefined): void => {
    if (values === undefined) return
    const list = typeof values === 'string' ? [values] : values
    if (list.length === 0) throw usage(`points: ${column}`, { expected: 'at least one', got: 'an empty list' })
    conditions.push(`${column} IN (${list.map(quote).join(', ')})`)
  }
  among('metric', filter.metrics)
  among('asset', filter.assets)
  for (const name of ['interval', 'currency', 'exchange', 'network'] as const) among(`"${name}"`, filter[name])
  const bound = (sign: '>=' | '<', at: Moment | undefined): void => {
    if (at === undefined) return
    conditions.push(`t ${sign} ${instant(quote(at instanceof Date ? at.toISOString() : at))}`)
  }
  bound('>=', filter.since)
  bound('<', filter.until)
  const where = conditions.length === 0 ? '' : `\nWHERE ${conditions.join('\n  AND ')}`
  const order = 'metric, asset, "interval", currency, exchange, network, t'
  return `SELECT * FROM points${where}\nORDER BY ${order}`
}
