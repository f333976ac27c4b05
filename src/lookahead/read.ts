import { type Engine, quote, quoteList, quoteName } from '../store/engine.ts'
import { pointColumns } from '../views/relations.ts'
import type { Subject } from './world.ts'
import { priced } from '../query/points.ts'
import { historyTables, readsRegistry } from '../query/registry-objects.ts'
import { ctesIn, nodesOf, parsed, tablesIn } from '../query/tree.ts'

/** What tells of points alone. */
const ofPoints: ReadonlySet<string> = new Set(['points', 'components', 'series', 'price_usd', 'endpoints'])

/**
 * The polls that changed what is read of the registry, as SQL: of the tables that the query names, else all; null where it
 * reads none. Of a function its words are all that is known.
 */
export async function pollsOf({ session, text, kind }: Subject): Promise<string | null> {
  const tables = await historyTables(session)
  const all = (of: readonly string[]): string =>
    of.map((table) => `SELECT valid_from AS moment FROM history.${quoteName(table)}`).join(' UNION ')
  if (kind === 'function') {
    const words = [...tables, 'universe', 'pit_universe', 'history', 'snapshots']
    return words.some((word) => new RegExp(`\\b${word}\\b`, 'i').test(text)) ? all(tables) : null
  }
  const tree = await parsed(session, text)
  const trees = 'error' in tree ? [] : tree.statements
  const ctes = new Set(ctesIn(trees))
  const read = tablesIn(trees).filter((name) => !ctes.has(name))
  if (!('error' in tree) && read.every((name) => ofPoints.has(name)) && !(await readsRegistry(session, trees)))
    return null
  const named = tables.filter((table) => read.includes(table))
  return all(named.length > 0 ? named : tables)
}

const namesPoints = /\b(?:points|components|series|price_usd|resample|pit_(?!universe)\w+|query_table)\b/i

/** The FROM and WHERE of the points that are read, as far as the text and the plan tell: at least all that are. */
export async function pointsRead(subject: Subject): Promise<string> {
  const metrics = await namedMetrics(subject.session, subject.text)
  const { kind, text } = subject
  if (kind === 'SQL' && metrics.length === 0 && !namesPoints.test(text)) return 'FROM points WHERE false'
  const all = `FROM points WHERE ${metrics.length > 0 ? `metric IN (SELECT unnest(${quoteList(metrics)}))` : 'true'}`
  const series = kind === 'SQL' ? await seriesRead(subject) : undefined
  return series === undefined ? all : `${all} AND (${series})`
}

/** The metrics whose names a text says; none where it says none, which means all. */
export async function namedMetrics(session: Engine, text: string): Promise<string[]> {
  const rows = await session.rows<{ metric: string }>(
    `SELECT metric FROM endpoints WHERE contains(${quote(text)}, metric) ORDER BY metric`,
  )
  const ofPrices = /\bprice_usd\b/i.test(text) ? [priced] : []
  return [...new Set([...rows.map(({ metric }) => metric), ...ofPrices])]
}

const columnsOfPoints: ReadonlySet<string> = new Set(pointColumns.map(([name]) => name))
const ofSeries = /^\(?"?(?:asset|interval|currency|exchange|network)"?(?: IS NOT DISTINCT FROM |=| IN \()/

/** What the scans of points let pass, as a condition on their series; undefined where one of them lets all of them pass. */
async function seriesRead({ session, text }: Subject): Promise<string | undefined> {
  try {
    const plans = await session.rows<{ explain_value: string }>(`EXPLAIN (FORMAT json) ${text}`)
    const scans = plans.flatMap(({ explain_value: plan }) => [...nodesOf(JSON.parse(plan))]).flatMap(scanOf)
    const conditions = scans.map((filters) => filters.filter((filter) => ofSeries.test(filter)).join(' AND '))
    if (conditions.length === 0 || conditions.includes('')) return undefined
    const any = [...new Set(conditions)].map((condition) => `(${condition})`).join(' OR ')
    await session.prepared(`SELECT 1 FROM points WHERE ${any}`)
    return any
  } catch {
    // A plan that is told in other words tells nothing.
    return undefined
  }
}

/** The filters of a step that scans points. */
function scanOf(step: { readonly [name: string]: unknown }): readonly (readonly string[])[] {
  const facts = step['extra_info'] as { readonly [fact: string]: unknown } | null | undefined
  if (facts?.['Function'] !== 'READ_PARQUET') return []
  const textsOf = (fact: string): readonly string[] => {
    const value = facts[fact]
    return Array.isArray(value) ? value.map(String) : typeof value === 'string' && value !== '' ? [value] : []
  }
  if (textsOf('Projections').some((column) => !columnsOfPoints.has(column))) return []
  // Of a partition the plan tells by which files it chose; the name of its column is a word of SQL.
  const files = textsOf('File Filters').flatMap((all) => [...all.matchAll(/\(interval = ('\w+')\)/g)])
  return [
    [
      ...textsOf('Filters').map((filter) => filter.replace(/^optional: /, '').replace(/^interval\b/, '"interval"')),
      ...files.map(([, name = '']) => `"interval"=${name}`),
    ],
  ]
}

/** The instants at which a point arrived after a newer one. */
export function lateArrivals(known: string): string {
  return `SELECT available_at AS moment FROM (
    SELECT available_at, t < max(t) OVER (PARTITION BY metric, asset, interval, currency, exchange, network
      ORDER BY available_at, t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS late ${known})
    WHERE late`
}

/** The instants at which points without a value arrive. */
export function emptyArrivals(known: string): string {
  return `SELECT available_at AS moment ${known} AND v IS NULL AND o IS NULL`
}
