import { type Interval, intervals } from '../time.ts'
import { describeRule, type Rule } from './availability.ts'
import type { Catalogue, Endpoint } from './catalogue.ts'
import { seriesId } from './series.ts'

/** An availability rule as scripts read it. */
export interface ExportedRule {
  readonly rule: string
  readonly lag_seconds?: number
  readonly basis: Rule['basis']
  readonly quote?: string
  readonly reason?: string
  readonly until?: number
}

/** One endpoint as scripts read it; names are relied on. */
export interface ExportedEndpoint {
  readonly path: string
  readonly intervals: readonly Interval[]
  readonly currencies: readonly string[]
  readonly exchanges: readonly string[]
  readonly networks: readonly string[]
  readonly since: boolean
  readonly until: boolean
  readonly format: boolean
  readonly timestamp_format: boolean
  readonly availability: ExportedRule
  /** Every rule of every interval, those with dates included. */
  readonly availability_by_interval: Readonly<Record<string, readonly ExportedRule[]>>
  readonly about: string
  readonly params: Readonly<Record<string, string>>
  readonly default: Endpoint['defaults']
  readonly tolerance: number | null
  readonly overlap: Endpoint['overlap']
  readonly extra: Readonly<Record<string, unknown>>
}

/** The whole catalogue with every value set spelled out. */
export function exportCatalogue(catalogue: Catalogue): ExportedEndpoint[] {
  return [...catalogue.endpoints.values()].map(exportEndpoint)
}

function exportEndpoint(endpoint: Endpoint): ExportedEndpoint {
  const own = endpoint.intervals.length === 0 ? intervals : endpoint.intervals
  const standard = endpoint.rules[endpoint.defaults.interval ?? '24h'].at(-1)
  if (!standard) throw new RangeError(`${endpoint.path} has no availability rule`)
  return {
    path: endpoint.path,
    intervals: endpoint.intervals,
    currencies: endpoint.currencies,
    exchanges: endpoint.exchanges,
    networks: endpoint.networks,
    since: endpoint.since,
    until: endpoint.until,
    format: endpoint.format,
    timestamp_format: endpoint.timestampFormat,
    availability: exportRule(standard),
    availability_by_interval: Object.fromEntries(
      own.map((interval) => [interval, endpoint.rules[interval].map(exportRule)]),
    ),
    about: endpoint.about,
    params: endpoint.params,
    default: endpoint.defaults,
    tolerance: endpoint.tolerance,
    overlap: endpoint.overlap,
    extra: endpoint.extra,
  }
}

function exportRule(rule: Rule): ExportedRule {
  return {
    rule: describeRule(rule),
    ...(rule.kind === 'lag' ? { lag_seconds: rule.seconds } : {}),
    basis: rule.basis,
    ...(rule.quote === null ? {} : { quote: rule.quote }),
    ...(rule.reason === null ? {} : { reason: rule.reason }),
    ...(rule.until === null ? {} : { until: rule.until }),
  }
}

/** An example request without a key. */
export function exampleRequest(catalogue: Catalogue, endpoint: Endpoint): string {
  const { wire } = catalogue
  const keys = wire.queryKeys
  const query = new URLSearchParams({ [keys.asset]: 'BTC' })
  const { interval, currency, exchange, network } = endpoint.defaults
  if (endpoint.since) query.set(keys.since, String(Date.UTC(2024, 0, 1) / 1000))
  if (endpoint.until) query.set(keys.until, String(Date.UTC(2024, 1, 1) / 1000))
  for (const [key, value] of [
    [keys.interval, interval],
    [keys.currency, currency],
    [keys.exchange, exchange],
    [keys.network, network],
  ] as const) {
    if (value !== null) query.set(key, value)
  }
  for (const [key, value] of Object.entries(endpoint.params)) query.set(key, value)
  return `GET {base}${wire.metricsPrefix}${endpoint.ask}?${query.toString()}`
}

/** An example of a series id of the endpoint. */
export function exampleSeries(endpoint: Endpoint): string {
  return seriesId({ metric: endpoint.path, asset: 'BTC', ...endpoint.defaults, params: endpoint.params })
}
