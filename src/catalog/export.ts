import { intervals as allIntervals } from '../base/time.ts'
import type { Rule } from './availability.ts'
import { type Catalogue, dimensions, type Endpoint, standardRule } from './catalogue.ts'
import { describeRule, lagOf } from './rule-kinds.ts'
import { seriesId } from './series.ts'

/** Returns the whole catalogue with every value set spelled out, for scripts, which depend on the names. */
export function exportCatalogue(catalogue: Catalogue) {
  return [...catalogue.endpoints.values()].map(exportEndpoint)
}

function exportEndpoint(endpoint: Endpoint) {
  const ownIntervals = endpoint.intervals.length === 0 ? allIntervals : endpoint.intervals
  return {
    path: endpoint.path,
    ...parametersOf(endpoint),
    availability: exportRule(standardRule(endpoint)),
    // Every rule of every interval, including those with dates.
    availability_by_interval: Object.fromEntries(
      ownIntervals.map((interval) => [interval, endpoint.rules[interval].map(exportRule)]),
    ),
    about: endpoint.about,
    params: endpoint.params,
    default: endpoint.defaults,
    tolerance: endpoint.tolerance,
    overlap: endpoint.overlap,
    revisable: endpoint.revisable,
    extra: endpoint.extra,
  }
}

/** Returns the parameters of an endpoint in the form in which listings state them. */
export function parametersOf(endpoint: Endpoint) {
  const { intervals, currencies, exchanges, networks, since, until, format, timestampFormat } = endpoint
  return { intervals, currencies, exchanges, networks, since, until, format, timestamp_format: timestampFormat }
}

function exportRule(rule: Rule) {
  const lag = lagOf(rule)
  return {
    rule: describeRule(rule),
    ...(lag === null ? {} : { lag_seconds: lag }),
    basis: rule.basis,
    ...(rule.quote === null ? {} : { quote: rule.quote }),
    ...(rule.reason === null ? {} : { reason: rule.reason }),
    ...(rule.until === null ? {} : { until: rule.until }),
  }
}

/** Builds an example request, without a key. */
export function exampleRequest(catalogue: Catalogue, endpoint: Endpoint): string {
  const { wire } = catalogue
  const keys = wire.queryKeys
  const query = new URLSearchParams({ [keys.asset]: 'BTC' })
  if (endpoint.since) query.set(keys.since, String(Date.UTC(2024, 0, 1) / 1000))
  if (endpoint.until) query.set(keys.until, String(Date.UTC(2024, 1, 1) / 1000))
  for (const { singular } of dimensions) {
    const value = endpoint.defaults[singular]
    if (value !== null) query.set(keys[singular], value)
  }
  for (const [key, value] of Object.entries(endpoint.params)) query.set(key, value)
  return `GET {base}${wire.metricsPrefix}${endpoint.ask}?${query.toString()}`
}

/** Builds an example of a series id of the endpoint. */
export function exampleSeries(endpoint: Endpoint): string {
  return seriesId({ metric: endpoint.path, asset: 'BTC', ...endpoint.defaults, params: endpoint.params })
}
