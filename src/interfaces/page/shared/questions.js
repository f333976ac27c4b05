/** The queries of the page. They need no document, because `pitlake serve --export` runs them for a folder, too. */

/** A text as a literal of SQL. */
export const quote = (text) => `'${String(text).replaceAll("'", "''")}'`
/** Milliseconds as an instant of SQL. */
export const isoOf = (ms) => new Date(ms).toISOString().replace('.000Z', 'Z')
const instant = (ms) => `'${isoOf(ms)}'::TIMESTAMPTZ`

export const dimensions = ['interval', 'currency', 'exchange', 'network']

/** The metrics in the lake, each with its assets, intervals and dimensions: by its coverage, else by its points. */
export async function metricsOf(rows, byCoverage) {
  const names = ['asset', ...dimensions]
  const lists = names.map((name) => `list_sort(list(DISTINCT "${name}")) AS "${name}"`)
  const defaults = dimensions.map((name) => `any_value(default_${name}) AS default_${name}`)
  defaults.push('coalesce(any_value(revisable), false) AS revisable')
  const metricsSql = (series) => `SELECT metric, ${[...lists, ...defaults].join(', ')}
FROM (SELECT DISTINCT metric, ${names.map((name) => `"${name}"`).join(', ')} FROM ${series})
LEFT JOIN endpoints USING (metric) GROUP BY metric ORDER BY metric`
  const covered = byCoverage ? await rows(metricsSql(`coverage WHERE state = 'covered'`), '') : []
  const metrics = covered.length > 0 ? covered : await rows(metricsSql('points'), '')
  const supply = metrics.find(({ metric }) => metric === 'supply/current_pit')
  if (!supply?.currency.includes('native') || !supply.currency.includes('usd')) return metrics
  return [{ ...supply, metric: 'price_usd', currency: [], default_currency: null, revisable: false }, ...metrics]
}

/** Exchanges whose sessions the catalogue lists, and the years for which it does. */
export const exchanges = { XAMS: 'Euronext Amsterdam', XETR: 'Xetra', XHKG: 'Hong Kong', XLON: 'London',
  XNAS: 'Nasdaq', XNYS: 'New York', XPAR: 'Euronext Paris', XTKS: 'Tokyo' }
export const sessionYears = [2000, 2030]
/** Intervals that may contain no close of a session. */
const sessionIntervals = ['10m', '1h', '24h']
export const hasSessions = ({ interval }) => sessionIntervals.includes(interval)

/** What a chart shows: the state, with defaults for its empty parts. Undefined if there is no metric. */
export function chosen(all, state) {
  const metric = all.find(({ metric: path }) => path === state.metric) ?? all[0]
  if (metric === undefined) return undefined
  const storedAssets = state.assets.split(',').filter((asset) => metric.asset.includes(asset))
  const assets = storedAssets.length > 0 ? storedAssets : metric.asset.slice(0, 3)
  const chosenValue = (name) =>
    [state[name], metric[`default_${name}`], metric[name][0]].find((value) => metric[name].includes(value)) ?? null
  const [interval, currency, exchange, network] = dimensions.map(chosenValue)
  const sessions = state.sessions in exchanges && hasSessions({ interval }) ? state.sessions : ''
  return { metric, assets, interval, currency, exchange, network, component: state.component, sessions }
}

/** The condition that a session of the chosen exchange closes in the interval of a point; empty without an exchange. */
function sessionsWhere({ sessions, interval }) {
  if (sessions === '') return []
  const length = `${lengthOf(interval) * 1000}`
  const [first, last] = sessionYears
  return [`t IN (SELECT make_timestamptz((epoch_us(closes_at) - 1) // ${length} * ${length})
  FROM sessions('${first}-01-01', '${last + 1}-01-01', ${quote(sessions)}))`]
}

/** The longest time between two sessions that close within a range. */
export function pauseSql({ sessions }, [since, until]) {
  const [from, to] = sessionYears.map((year, n) => Date.UTC(year + n, 0))
  const withinListedYears = (at) => instant(Math.min(to, Math.max(from, at)))
  return `SELECT max(epoch_ms(closes_at) - before) AS pause FROM (
  SELECT closes_at, lag(epoch_ms(closes_at)) OVER (ORDER BY closes_at) AS before
  FROM sessions(${withinListedYears(since)}, ${withinListedYears(until)}, ${quote(sessions)}))`
}

/** The conditions that select the chosen series of a relation, except for the metric. */
const seriesWhere = ({ assets, ...picked }) => [
  ...dimensions.map((name) => picked[name] === null ? `"${name}" IS NULL` : `"${name}" = ${quote(picked[name])}`),
  `asset IN (${assets.map(quote).join(', ')})`,
]

/** The relation with the chosen points, and their condition. */
export function relationOf(picked) {
  const { metric: { metric }, component } = picked
  const isPrice = metric === 'price_usd'
  const isComponent = component !== ''
  const where = [...seriesWhere(picked), isPrice ? 'true' : `metric = ${quote(metric)}`]
  if (isComponent) where.push(`component = ${quote(component)}`)
  where.push(...sessionsWhere(picked))
  return { from: isPrice ? 'price_usd' : isComponent ? 'components' : 'points', where: where.join(' AND ') }
}

/**
 * Points by columns of pixels, or of a part of them: count, extremes, first value, and all of the last point (`l`).
 * `beneath` counts values that a logarithmic axis cannot show, and `base` is the first value of an index.
 */
export function columnsSql(picked, [since, until], width, [from, to] = [since, until]) {
  const { from: relation, where } = relationOf(picked)
  return `SELECT asset, (epoch_ms(t) - ${since}) * ${width} // ${until - since} AS px, count(*) AS n,
  min(v) AS lo, max(v) AS hi, min(v) FILTER (v > 0) AS least, count(*) FILTER (v <= 0) AS beneath,
  arg_min({t: epoch_ms(t), v: v}, t) FILTER (v IS NOT NULL) AS base,
  arg_min_null(v, t) AS first, epoch_ms(min(t)) AS t0, epoch_ms(max(t)) AS t1,
  epoch_ms(min(available_at)) AS a0, epoch_ms(max(available_at)) AS a1,
  arg_max({t: t, v: v, available_at: available_at, observed_at: observed_at, basis: basis}, t) AS l
FROM ${relation} WHERE ${where} AND t >= ${instant(from)} AND t < ${instant(to)}
GROUP BY asset, px ORDER BY asset, px`
}

/** Lines of a picture of vintages, and its columns by the columns of pixels of its chart. */
export const heatLines = 24
export const heatWidth = (columns) => Math.floor(columns / 8)

/** The range of times at which the chosen vintages became known. */
export const vintageRangeSql = (picked) => `SELECT epoch_ms(min(available_at)) AS a0, epoch_ms(max(available_at)) + 1 AS a1
FROM vintages WHERE ${relationOf(picked).where}`

/** Vintages by cells of t and the time at which a value became known: their number, and all of the last one. */
export const vintagesSql = (picked, [since, until], [from, to], columns) => `SELECT asset,
  (epoch_ms(t) - ${since}) * ${heatWidth(columns)} // ${until - since} AS px,
  (epoch_ms(available_at) - ${from}) * ${heatLines} // ${to - from} AS line, count(*) AS n,
  arg_max({t: t, v: v, previous: previous, ordinal: ordinal, available_at: available_at, basis: basis},
    {a: available_at, t: t, n: ordinal}) AS l
FROM vintages WHERE ${relationOf(picked).where} AND t >= ${instant(since)} AND t < ${instant(until)}
GROUP BY asset, px, line ORDER BY asset, px, line`

/** The range of the chosen points, the range of times at which they became known, and the number of their values. */
export function extentSql(picked) {
  const { from, where } = relationOf(picked)
  return `SELECT epoch_ms(min(t)) AS t0, epoch_ms(max(t)) AS t1, epoch_ms(min(available_at)) AS a0,
  epoch_ms(max(available_at)) AS a1, count(v) AS value_count FROM ${from} WHERE ${where}`
}

/** A component of a metric whose values are objects. */
export const componentSql = ({ metric: { metric } }) =>
  `SELECT min(component) AS name FROM components WHERE metric = ${quote(metric)}`

/** The chosen points in a range. */
export function pointsSql(picked, [since, until]) {
  const { from, where } = relationOf(picked)
  return `SELECT asset, t, v, available_at, basis FROM ${from}
WHERE ${where}
  AND t >= ${instant(since)} AND t < ${instant(until)} ORDER BY asset, t`
}

/** The violations of the chosen series in a range. */
export const disputesSql = (picked, [since, until]) =>
  `SELECT asset, t, epoch_ms(t) AS at, kind, stored, offered, offered_at FROM violations
WHERE metric = ${quote(picked.metric.metric)} AND ${[...seriesWhere(picked), ...sessionsWhere(picked)].join(' AND ')}
  AND t >= ${instant(since)} AND t < ${instant(until)} ORDER BY t LIMIT 500`

const lengths = { '10m': 6e5, '1h': 36e5, '24h': 864e5, '1w': 6048e5, '1month': 26784e5, '3month': 79488e5 }
const months = { '1month': 1, '3month': 3 }
/** Milliseconds of an interval; months count as 31 days. */
export const lengthOf = (interval) => lengths[interval] ?? 0
/** End of the interval that begins at `t`, in milliseconds. */
export function endOf(t, interval) {
  const at = new Date(t)
  const more = months[interval]
  return more ? Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + more) : t + lengthOf(interval)
}

const productColumns = `product_id, name, symbol, asset_class, issuer_name AS issuer, issuer_status, jurisdiction,
  status, chains, first_seen`
/** The text of a product in which a search looks. */
const searchedText = `lower(concat_ws(' ', product_id, name, symbol, issuer_name, asset_class))`

/** A row for each product, with its chains as a list. The page itself filters them, so that a folder can do the same. */
export const productsSql = `SELECT ${productColumns}, ${searchedText} AS sought FROM universe ORDER BY product_id`

/** Facets of products: the label of each, its column in `productsSql` and its column in the view. */
export const facets = {
  status: ['status', 'status', 'status'],
  issuer: ['issuer', 'issuer', 'issuer_name'],
  issuer_status: ['issuer status', 'issuer_status', 'issuer_status'],
  class: ['asset class', 'asset_class', 'asset_class'],
  chain: ['chain', 'chains', 'chains'],
}
const valuesOf = (product, column) => [product[column]].flat().filter((value) => value !== null)

/** The products that fit the search and the chosen values of all facets, except for one facet. */
export function productsThat(products, state, exceptFacet = null) {
  const chosenFacets = Object.keys(facets).filter((name) => name !== exceptFacet && state[name] !== '')
  const text = state.search.toLowerCase()
  return products.filter((product) => product.sought.includes(text)
    && chosenFacets.every((name) => valuesOf(product, facets[name][1]).includes(state[name])))
}

/** The values of a facet among the products that fit all others, each with their number, the most frequent first. */
export function facetOf(products, state, name) {
  const counts = new Map()
  for (const product of productsThat(products, state, name))
    for (const value of new Set(valuesOf(product, facets[name][1]))) counts.set(value, (counts.get(value) ?? 0) + 1)
  // A chosen value is always listed, even if no product has it.
  if (state[name] !== '' && !counts.has(state[name])) counts.set(state[name], 0)
  return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
}

/** SQL of the products that fit the search and the facets. */
export function fittingSql(state) {
  const where = Object.keys(facets).filter((name) => state[name] !== '').map((name) => {
    const [, , column] = facets[name]
    const value = quote(state[name])
    return column === 'chains' ? `list_contains(chains, ${value})` : `${column} = ${value}`
  })
  if (state.search !== '') where.push(`contains(${searchedText}, ${quote(state.search.toLowerCase())})`)
  return `SELECT ${productColumns}
FROM universe${where.length === 0 ? '' : `\nWHERE ${where.join('\n  AND ')}`}
ORDER BY product_id`
}

export const registrySql = 'SELECT epoch_ms(min(valid_from)) AS a, epoch_ms(max(valid_from)) AS b FROM history.products'
export const historySql = (product) => `SELECT epoch_ms(valid_from) AS a,
  epoch_ms(if(isfinite(valid_to), valid_to, NULL)) AS b, valid_from, valid_to, status, name, op, closed_by, inferred, id
FROM history.products WHERE ${product === null ? 'true' : `id = ${quote(product)}`} ORDER BY valid_from`

/** The months of each metric: seconds of its windows that were requested, are covered, and failed. */
export const monthsSql = `SELECT metric, epoch_ms(month) AS at, sum(s) AS requested,
  coalesce(sum(s) FILTER (state = 'failed'), 0) AS failed,
  coalesce(sum(s) FILTER (state = 'empty' OR (state = 'covered' AND reason IS NULL)), 0) AS covered
FROM (SELECT *, epoch(least("until", month + INTERVAL 1 MONTH)) - epoch(greatest(since, month)) AS s
  FROM (SELECT *, unnest(generate_series(date_trunc('month', since), "until" - INTERVAL 1 MICROSECOND,
      INTERVAL 1 MONTH)) AS month FROM coverage WHERE state <> 'unsupported' AND since < "until"))
GROUP BY metric, month ORDER BY metric, month`

export const countsSql = `SELECT metric,
  count(DISTINCT (asset, "interval", currency, exchange, network)) AS series,
  count(*) FILTER (state = 'covered') AS covered, count(*) FILTER (state = 'failed') AS failed,
  count(*) FILTER (reason = 'pending') AS pending, coalesce(any_value(g.missing), 0) AS missing,
  coalesce(any_value(v.open), 0) AS violations, max("until") FILTER (state = 'covered') AS until
FROM coverage LEFT JOIN (SELECT metric, sum(missing) AS missing FROM gaps GROUP BY metric) AS g USING (metric)
LEFT JOIN (SELECT metric, count(*) AS open FROM violations WHERE status = 'open' GROUP BY metric) AS v USING (metric)
GROUP BY metric ORDER BY metric`

/** The as_of limit of the server. */
export const standingSql = `SELECT CAST(getvariable('as_of') AS VARCHAR) AS wall FROM lake_info`

/** The name under which an exported folder has the answer to a query at an instant: a hash of both. */
export function nameOf(sql, asOf) {
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  for (const sign of `${asOf}\n${sql}`) {
    a = Math.imul(a ^ sign.codePointAt(0), 2654435761)
    b = Math.imul(b ^ sign.codePointAt(0), 1597334677)
  }
  return ((b >>> 0) * 2 ** 21 + (a >>> 11)).toString(36)
}
