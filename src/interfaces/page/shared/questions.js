/** What the page asks, as SQL: without a document, so that `pitlake serve --export` asks the same for a folder. */

/** A text as SQL writes it. */
export const quote = (text) => `'${String(text).replaceAll("'", "''")}'`
/** Milliseconds as an instant of SQL. */
export const isoOf = (ms) => new Date(ms).toISOString().replace('.000Z', 'Z')
const instant = (ms) => `'${isoOf(ms)}'::TIMESTAMPTZ`

export const dimensions = ['interval', 'currency', 'exchange', 'network']

/** The metrics that are held, each with its assets, intervals and dimensions: by the ledger, or by the points. */
export async function metricsOf(rows, ofLedger) {
  const names = ['asset', ...dimensions]
  const lists = names.map((name) => `list_sort(list(DISTINCT "${name}")) AS "${name}"`)
  const usual = dimensions.map((name) => `any_value(default_${name}) AS usual_${name}`)
  usual.push('coalesce(any_value(revisable), false) AS revisable')
  const from = (series) => `SELECT metric, ${[...lists, ...usual].join(', ')}
FROM (SELECT DISTINCT metric, ${names.map((name) => `"${name}"`).join(', ')} FROM ${series})
LEFT JOIN endpoints USING (metric) GROUP BY metric ORDER BY metric`
  const told = ofLedger ? await rows(from(`coverage WHERE state = 'covered'`), '') : []
  const held = told.length > 0 ? told : await rows(from('points'), '')
  const supply = held.find(({ metric }) => metric === 'supply/current_pit')
  if (!supply?.currency.includes('native') || !supply.currency.includes('usd')) return held
  return [{ ...supply, metric: 'price_usd', currency: [], usual_currency: null, revisable: false }, ...held]
}

/** Exchanges whose sessions the catalogue lists, and the years for which it does. */
export const exchanges = { XAMS: 'Euronext Amsterdam', XETR: 'Xetra', XHKG: 'Hong Kong', XLON: 'London',
  XNAS: 'Nasdaq', XNYS: 'New York', XPAR: 'Euronext Paris', XTKS: 'Tokyo' }
export const sessionYears = [2000, 2030]
/** Intervals of which only some hold the close of a session. */
const sessional = ['10m', '1h', '24h']
export const hasSessions = ({ interval }) => sessional.includes(interval)

/** What is drawn: the state, with what holds where it says nothing. */
export function chosen(all, state) {
  const metric = all.find((one) => one.metric === state.metric) ?? all[0]
  if (metric === undefined) return undefined
  const held = state.assets.split(',').filter((asset) => metric.asset.includes(asset))
  const assets = held.length > 0 ? held : metric.asset.slice(0, 3)
  const known = (name) =>
    [state[name], metric[`usual_${name}`], metric[name][0]].find((one) => metric[name].includes(one)) ?? null
  const [interval, currency, exchange, network] = dimensions.map(known)
  const sessions = state.sessions in exchanges && hasSessions({ interval }) ? state.sessions : ''
  return { metric, assets, interval, currency, exchange, network, component: state.component, sessions }
}

/** The condition that a session of the chosen exchange closes in the interval of a point; none without an exchange. */
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
  const [a, b] = [since, until].map((at) => instant(Math.min(to, Math.max(from, at))))
  return `SELECT max(epoch_ms(closes_at) - before) AS pause FROM (
  SELECT closes_at, lag(epoch_ms(closes_at)) OVER (ORDER BY closes_at) AS before
  FROM sessions(${a}, ${b}, ${quote(sessions)}))`
}

/** The points of what was chosen, as a relation and its condition. */
export function relationOf({ metric: { metric }, assets, component, ...picked }) {
  const [own, leaf] = [metric === 'price_usd', component !== '']
  const where = dimensions.map((name) =>
    picked[name] === null ? `"${name}" IS NULL` : `"${name}" = ${quote(picked[name])}`)
  where.push(`asset IN (${assets.map(quote).join(', ')})`, own ? 'true' : `metric = ${quote(metric)}`)
  if (leaf) where.push(`component = ${quote(component)}`)
  where.push(...sessionsWhere(picked))
  return { from: own ? 'price_usd' : leaf ? 'components' : 'points', where: where.join(' AND ') }
}

/** So many columns of pixels, or a part of them: what the points of each come to, its first and all of its last. */
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

/** So many lines has a picture of vintages, and so many columns in a chart of so many. */
export const heatLines = 24
export const heatWidth = (columns) => Math.floor(columns / 8)

/** When the vintages of what was chosen were told. */
export const toldSql = (picked) => `SELECT epoch_ms(min(available_at)) AS a0, epoch_ms(max(available_at)) + 1 AS a1
FROM vintages WHERE ${relationOf(picked).where}`

/** Cells of t × the instant at which a value was told: how many there are, and all about the last. */
export const vintagesSql = (picked, [since, until], [from, to], columns) => `SELECT asset,
  (epoch_ms(t) - ${since}) * ${heatWidth(columns)} // ${until - since} AS px,
  (epoch_ms(available_at) - ${from}) * ${heatLines} // ${to - from} AS line, count(*) AS n,
  arg_max({t: t, v: v, previous: previous, ordinal: ordinal, available_at: available_at, basis: basis},
    {a: available_at, t: t, n: ordinal}) AS l
FROM vintages WHERE ${relationOf(picked).where} AND t >= ${instant(since)} AND t < ${instant(until)}
GROUP BY asset, px, line ORDER BY asset, px, line`

/** From when to when there are points, and when they became known. */
export function extentSql(picked) {
  const { from, where } = relationOf(picked)
  return `SELECT epoch_ms(min(t)) AS t0, epoch_ms(max(t)) AS t1, epoch_ms(min(available_at)) AS a0,
  epoch_ms(max(available_at)) AS a1, count(v) AS held FROM ${from} WHERE ${where}`
}

/** A part of the values of a metric whose values are objects. */
export const componentSql = ({ metric: { metric } }) =>
  `SELECT min(component) AS name FROM components WHERE metric = ${quote(metric)}`

/** The points that are drawn within a range, one by one. */
export function pointsSql(picked, [since, until]) {
  const { from, where } = relationOf(picked)
  return `SELECT asset, t, v, available_at, basis FROM ${from}
WHERE ${where}
  AND t >= ${instant(since)} AND t < ${instant(until)} ORDER BY asset, t`
}

/** Violations within a range. */
export const disputesSql = ({ metric: { metric }, assets, interval, sessions }, [since, until]) =>
  `SELECT asset, t, epoch_ms(t) AS at, kind, stored, offered, offered_at FROM violations
WHERE metric = ${quote(metric)} AND asset IN (${assets.map(quote).join(', ')}) AND "interval" = ${quote(interval)}
  AND ${['true', ...sessionsWhere({ sessions, interval })].join(' AND ')}
  AND t >= ${instant(since)} AND t < ${instant(until)} ORDER BY t LIMIT 500`

const lengths = { '10m': 6e5, '1h': 36e5, '24h': 864e5, '1w': 6048e5, '1month': 26784e5, '3month': 79488e5 }
const months = { '1month': 1, '3month': 3 }
/** How long an interval is, about, and where the one that begins at `t` ends. */
export const lengthOf = (interval) => lengths[interval] ?? 0
export function endOf(t, interval) {
  const at = new Date(t)
  const more = months[interval]
  return more ? Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + more) : t + lengthOf(interval)
}

const productColumns = `product_id, name, symbol, asset_class, issuer_name AS issuer, issuer_status, jurisdiction,
  status, chains, first_seen`
/** What a search looks into. */
const sought = `lower(concat_ws(' ', product_id, name, symbol, issuer_name, asset_class))`

/** One row a product; its chains as a list. The page counts and picks among them, so that a folder does the same. */
export const productsSql = `SELECT ${productColumns}, ${sought} AS sought FROM universe ORDER BY product_id`

/** Facets of products: of each its words, its column here and that of the view. */
export const facets = {
  status: ['status', 'status', 'status'],
  issuer: ['issuer', 'issuer', 'issuer_name'],
  issuer_status: ['issuer status', 'issuer_status', 'issuer_status'],
  class: ['asset class', 'asset_class', 'asset_class'],
  chain: ['chain', 'chains', 'chains'],
}
const valuesOf = (product, column) => [product[column]].flat().filter((value) => value !== null)

/** The products that fit what is sought and every facet but one. */
export function productsThat(products, state, but = null) {
  const set = Object.keys(facets).filter((name) => name !== but && state[name] !== '')
  const text = state.search.toLowerCase()
  return products.filter((product) => product.sought.includes(text)
    && set.every((name) => valuesOf(product, facets[name][1]).includes(state[name])))
}

/** The values of a facet among the products that fit all others, each with their number, the most frequent first. */
export function facetOf(products, state, name) {
  const counts = new Map()
  for (const product of productsThat(products, state, name))
    for (const value of new Set(valuesOf(product, facets[name][1]))) counts.set(value, (counts.get(value) ?? 0) + 1)
  // One that was chosen stays to be seen, also where no product has it.
  if (state[name] !== '' && !counts.has(state[name])) counts.set(state[name], 0)
  return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
}

/** The products that fit, as SQL. */
export function fittingSql(state) {
  const where = Object.keys(facets).filter((name) => state[name] !== '').map((name) => {
    const [, , column] = facets[name]
    const value = quote(state[name])
    return column === 'chains' ? `list_contains(chains, ${value})` : `${column} = ${value}`
  })
  if (state.search !== '') where.push(`contains(${sought}, ${quote(state.search.toLowerCase())})`)
  return `SELECT ${productColumns}
FROM universe${where.length === 0 ? '' : `\nWHERE ${where.join('\n  AND ')}`}
ORDER BY product_id`
}

export const registrySql = 'SELECT epoch_ms(min(valid_from)) AS a, epoch_ms(max(valid_from)) AS b FROM history.products'
export const historySql = (product) => `SELECT epoch_ms(valid_from) AS a,
  epoch_ms(if(isfinite(valid_to), valid_to, NULL)) AS b, valid_from, valid_to, status, name, op, closed_by, inferred, id
FROM history.products WHERE ${product === null ? 'true' : `id = ${quote(product)}`} ORDER BY valid_from`

/** Each endpoint's months: how many seconds of its windows were asked for, are held, and failed. */
export const monthsSql = `SELECT metric, epoch_ms(month) AS at, sum(s) AS asked,
  coalesce(sum(s) FILTER (state = 'failed'), 0) AS failed,
  coalesce(sum(s) FILTER (state = 'empty' OR (state = 'covered' AND reason IS NULL)), 0) AS held
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

/** Where and how the lake stands. */
export const standingSql = `SELECT CAST(getvariable('as_of') AS VARCHAR) AS wall FROM lake_info`

/** The name under which a folder keeps the answer to a question at an instant. */
export function nameOf(sql, asOf) {
  let [a, b] = [0xdeadbeef, 0x41c6ce57]
  for (const sign of `${asOf}\n${sql}`) {
    a = Math.imul(a ^ sign.codePointAt(0), 2654435761)
    b = Math.imul(b ^ sign.codePointAt(0), 1597334677)
  }
  return ((b >>> 0) * 2 ** 21 + (a >>> 11)).toString(36)
}
