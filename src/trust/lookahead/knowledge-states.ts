import { type Engine, quote, quoteList, quoteName } from '../../lake/store/engine.ts'
import type { Subject } from './world.ts'
import { pointColumns } from '../../query/views/relations.ts'
import { ownArrivals } from './own-files.ts'
import { priced } from '../../query/points.ts'
import { ctesIn, historyTables, nodesOf, parsedSql, readsRegistry, tablesIn } from '../../query/parse-tree.ts'

/**
 * Temporary table of the states: `instant` (each of the result), `n`, and `last`, the end of its state: right before
 * something that the query reads arrives. A row that this arrival removes would exist up to there.
 */
const states = 'proof_state'
/**
 * Table of the instants (`moment`) at which data arrive that the query reads: of very many those around the rows of
 * the result, and the first of each of many spans.
 */
const moments = 'proof_moment'
/** Maximum number of arrivals that are kept one by one; a table of more would outgrow the memory of a query. */
const manyArrivals = 4_000_000

/**
 * States of knowledge: the instants of a result, grouped by what was known at them. Between two instants of one state
 * nothing arrived of the data that the query reads, so one cut-off, at the last of them, tries them all.
 */
export interface States {
  /** Number of states. */
  readonly count: number
  /**
   * SELECT of the instants of the registry's polls, empty if each instant counts; null if points alone tell the states
   * apart.
   */
  readonly polls: string | null
  /** FROM and WHERE of the points that the query reads. */
  readonly knownSql: string
}

/**
 * Numbers the states of the result in `proof_full`, from 0. `at` is the SQL of a row's instant; `polls` of the
 * registry's, which then count too, null where points alone tell the states apart; `known` are FROM and WHERE of the
 * points that it reads.
 */
export async function numberStates(subject: Subject, at: string, most: number = manyArrivals): Promise<States> {
  const { session } = subject
  const reads = await pointsRead(subject)
  const polls = await pollsOf(subject)
  const instantsSql = `(SELECT DISTINCT ${at} AS instant FROM proof_full WHERE ${at} IS NOT NULL) AS own`
  const further = `${polls === null || polls === '' ? '' : ` UNION ${polls}`}${await ownArrivals(session)}`
  await keepMoments(session, { known: reads, further, own: instantsSql, most })
  // The registry has more clocks than its polls: there each instant is a state of its own.
  await session.run(
    `CREATE OR REPLACE TEMP TABLE ${states} AS
     SELECT instant, n, max(coalesce(least(following, next.moment) - INTERVAL 1 MICROSECOND,
       instant)) OVER (PARTITION BY n) AS last
     FROM (SELECT own.instant, lead(own.instant) OVER (ORDER BY own.instant) AS following,
         dense_rank() OVER (ORDER BY ${polls === null ? 'news.moment NULLS FIRST' : 'own.instant'}) - 1 AS n
       FROM ${instantsSql} ASOF LEFT JOIN ${moments} AS news ON own.instant >= news.moment) AS numbered
     ASOF LEFT JOIN ${moments} AS next ON numbered.instant < next.moment`,
  )
  const [row] = await session.rows<{ n: bigint }>(`SELECT max(n) + 1 AS n FROM ${states}`)
  return { count: Number(row?.n ?? 0), polls, knownSql: reads }
}

/**
 * Makes the table of moments, at most about `most`: few of them suffice to tell what arrives before and after each
 * instant of the result.
 */
async function keepMoments(
  session: Engine,
  { known, further, own, most }: Record<'known' | 'further' | 'own', string> & { readonly most: number },
): Promise<void> {
  const all = `SELECT available_at AS moment ${known}${further}`
  const [size] = await session.rows<{ n: number; since: bigint; width: bigint }>(
    `SELECT count(*)::DOUBLE AS n, epoch_us(min(available_at)) AS since,
       (epoch_us(max(available_at)) - epoch_us(min(available_at))) // ${Math.ceil(most / 4)} + 1 AS width ${known}`,
  )
  const createMoments = `CREATE OR REPLACE TEMP TABLE ${moments} AS`
  if (size === undefined || size.n <= most) {
    await session.run(`${createMoments} ${all}`)
    return
  }
  const span = (instant: string): string => `(epoch_us(${instant}) - ${size.since}) // ${size.width}`
  await session.run(
    `${createMoments} WITH near AS (SELECT DISTINCT ${span('instant')} AS span FROM ${own})
     SELECT min(moment) AS moment FROM (${all}) WHERE moment IS NOT NULL GROUP BY ${span('moment')}
     UNION ALL SELECT moment FROM (${all}) WHERE ${span('moment')} IN (FROM near)`,
  )
}

/**
 * Chooses up to `count` states to try, and always the last, ascending: those in which the metrics that the query names
 * arrive without a value or late, inside weeks and months, at events of the registry; the rest evenly over time, or on
 * each day of the month. All of them if there are no more. Deterministic for a lake.
 */
export async function chooseStates(
  session: Engine,
  { count: all, polls, knownSql }: States,
  count: number,
  order: 'even' | 'days',
): Promise<number[]> {
  if (all <= count) return upTo(all)
  // Good places to look for a leak: SQL of the instants, and their share of all cut-offs. They are arrivals of points
  // without a value; late arrivals; the middle of weeks and of months, and their last days; the registry's polls.
  const sources = [
    [`SELECT available_at AS moment ${knownSql} AND v IS NULL AND o IS NULL`, 0.1],
    [lateArrivals(knownSql), 0.06],
    [`SELECT instant AS moment FROM ${states} WHERE isodow(instant) = 4 OR dayofmonth(instant) IN (15, 28)`, 0.06],
    [polls ?? '', 0.2],
  ] as const
  const chosen = new Set<number>([all - 1])
  for (const [sql, share] of sources.filter(([sql]) => sql !== '')) {
    const found = await session.rows<{ n: bigint }>(
      `SELECT DISTINCT unnest([n - 1, n]) AS n FROM (${sql}) ASOF JOIN ${states} ON moment >= instant WHERE n ` +
        '> 0 ORDER BY n',
    )
    const near = found.map((row) => Number(row.n))
    for (const n of spread(near, Math.max(1, Math.round(share * count)))) chosen.add(n)
  }
  const rest = order === 'even' ? spread(upTo(all), count) : await byDay(session)
  for (const n of rest) if (chosen.size < count) chosen.add(n)
  return [...chosen].toSorted((left, other) => left - other)
}

/** Reads the last instants of states, ISO text with microseconds. */
export async function instantsOf(session: Engine, chosen: readonly number[]): Promise<string[]> {
  const rows = await session.rows<{ last: string }>(
    `SELECT DISTINCT last FROM ${states} WHERE list_contains([${chosen.join(', ')}], n) ORDER BY last`,
  )
  return rows.map(({ last }) => last)
}

/** Timestamps right before arrivals at which the result has no row. */
interface RowlessCutoffs {
  /** Chosen ones, ISO text in the order of time. */
  readonly tried: readonly string[]
  /** Number of all of them. */
  readonly all: number
}

/**
 * Finds up to `most` instants right before an arrival, ISO text, at whose knowledge the result has no row, although
 * half the time between two arrivals has passed: a row that would exist without the arrival can only be found there.
 * `all` is their total number.
 */
export async function rowlessInstants(session: Engine, most: number): Promise<RowlessCutoffs> {
  const lasts = `SELECT until - INTERVAL 1 MICROSECOND AS last, row_number() OVER (ORDER BY until) - 1 AS place,
     count(*) OVER () AS n FROM (
       SELECT moment AS until, lag(moment) OVER (ORDER BY moment) AS since,
         (max(moment) OVER () - min(moment) OVER ()) / greatest(1, 2 * count(*) OVER ()) AS least
       FROM (SELECT DISTINCT moment FROM ${moments}))
     ASOF LEFT JOIN (SELECT DISTINCT instant FROM ${states}) AS own ON own.instant < until
     WHERE (own.instant IS NULL OR own.instant < since) AND (since IS NULL OR until - since >= least)`
  const rows = await session.rows<{ last: string; n: bigint }>(
    `SELECT last, n FROM (${lasts}) WHERE n <= ${most} OR place IN (
       SELECT round(i * (n - 1) / ${Math.max(1, most - 1)}) FROM range(${Math.max(1, most)}) AS own (i)) ORDER BY last`,
  )
  return { tried: rows.slice(0, most).map(({ last }) => last), all: Number(rows[0]?.n ?? 0) }
}

/** States in an order that has no rhythm but goes through the days of the month, its end being one, time and again. */
async function byDay(session: Engine): Promise<number[]> {
  const rows = await session.rows<{ n: bigint }>(
    `SELECT n FROM (SELECT DISTINCT n, last FROM ${states})
     ORDER BY row_number() OVER (PARTITION BY CASE WHEN CAST(last AS DATE) = last_day(last) THEN 0
       ELSE dayofmonth(last) END
       ORDER BY hash(last)), hash(last)`,
  )
  return rows.map((row) => Number(row.n))
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n)
}

/** Chooses up to `most` items, evenly over their order, first and last included. */
export function spread<T>(all: readonly T[], most: number): readonly T[] {
  if (all.length <= most) return all
  return Array.from({ length: most }, (_, i) => all[Math.round((i * (all.length - 1)) / Math.max(1, most - 1))] as T)
}

/** Views that follow from points and the catalogue alone. */
const ofPoints: ReadonlySet<string> = new Set(['points', 'components', 'series', 'price_usd', 'endpoints'])

/**
 * Builds the SQL of the polls that changed what is read of the registry: of the tables that the query names, else all;
 * null if it reads none. For a function only its words are known.
 */
async function pollsOf({ session, text, kind }: Subject): Promise<string | null> {
  const tables = await historyTables(session)
  const all = (of: readonly string[]): string =>
    of.map((table) => `SELECT valid_from AS moment FROM history.${quoteName(table)}`).join(' UNION ')
  if (kind === 'function') {
    const words = [...tables, 'universe', 'pit_universe', 'pit_registry', 'history', 'snapshots']
    return words.some((word) => new RegExp(`\\b${word}\\b`, 'i').test(text)) ? all(tables) : null
  }
  const tree = await parsedSql(session, text)
  const trees = 'error' in tree ? [] : tree.statements
  const ctes = new Set(ctesIn(trees))
  const read = tablesIn(trees).filter((name) => !ctes.has(name))
  if (!('error' in tree) && read.every((name) => ofPoints.has(name)) && !(await readsRegistry(session, trees)))
    return null
  const named = tables.filter((table) => read.includes(table))
  return all(named.length > 0 ? named : tables)
}

const namesPoints = /\b(?:points|components|series|price_usd|resample|bars|pit_(?!universe)\w+|query_table)\b/i

/** Builds FROM and WHERE of the points that are read, as far as the text and the plan show: at least all that are. */
async function pointsRead(subject: Subject): Promise<string> {
  const metrics = await namedMetrics(subject.session, subject.text)
  const { kind, text } = subject
  if (kind === 'SQL' && metrics.length === 0 && !namesPoints.test(text)) return 'FROM points WHERE false'
  const all = `FROM points WHERE ${metrics.length > 0 ? `metric IN (SELECT unnest(${quoteList(metrics)}))` : 'true'}`
  const series = kind === 'SQL' ? await seriesRead(subject) : undefined
  return series === undefined ? all : `${all} AND (${series})`
}

/** Lists the metrics that a text names; none if it names none, which means all. */
export async function namedMetrics(session: Engine, text: string): Promise<string[]> {
  const rows = await session.rows<{ metric: string }>(
    `SELECT metric FROM endpoints WHERE contains(${quote(text)}, metric) ORDER BY metric`,
  )
  const ofPrices = /\bprice_usd\b/i.test(text) ? [priced] : []
  return [...new Set([...rows.map(({ metric }) => metric), ...ofPrices])]
}

const columnsOfPoints: ReadonlySet<string> = new Set(pointColumns.map(([name]) => name))
const ofSeries = /^\(?"?(?:asset|interval|currency|exchange|network)"?(?: IS NOT DISTINCT FROM |=| IN \()/

/** Builds the condition on the series that scans of points let pass; undefined if one scan lets all pass. */
async function seriesRead({ session, text }: Subject): Promise<string | undefined> {
  const tree = await parsedSql(session, text)
  if ('error' in tree || tree.statements.length !== 1) return undefined
  try {
    const plans = await session.rows<{ explain_value: string }>(`EXPLAIN (FORMAT json) ${text}`)
    const scans = plans.flatMap(({ explain_value: plan }) => [...nodesOf(JSON.parse(plan))]).flatMap(scanOf)
    const conditions = scans.map((filters) => filters.filter((filter) => ofSeries.test(filter)).join(' AND '))
    if (conditions.length === 0 || conditions.includes('')) return undefined
    const any = [...new Set(conditions)].map((condition) => `(${condition})`).join(' OR ')
    await session.prepared(`SELECT 1 FROM points WHERE ${any}`)
    return any
  } catch {
    // A plan in unknown words shows nothing.
    return undefined
  }
}

/** Lists the filters of a step that scans points. */
function scanOf(step: { readonly [name: string]: unknown }): readonly (readonly string[])[] {
  const facts = step['extra_info'] as { readonly [fact: string]: unknown } | null | undefined
  if (facts?.['Function'] !== 'READ_PARQUET') return []
  const textsOf = (fact: string): readonly string[] => {
    const value = facts[fact]
    return Array.isArray(value) ? value.map(String) : typeof value === 'string' && value !== '' ? [value] : []
  }
  if (textsOf('Projections').some((column) => !columnsOfPoints.has(column))) return []
  // For a partition the plan shows which files it chose; the name of its column is a word of SQL.
  const files = textsOf('File Filters').flatMap((all) => [...all.matchAll(/\(interval = ('\w+')\)/g)])
  return [
    [
      ...textsOf('Filters').map((filter) => filter.replace(/^optional: /, '').replace(/^interval\b/, '"interval"')),
      ...files.map(([, name = '']) => `"interval"=${name}`),
    ],
  ]
}

/** Builds the SQL of the instants at which a point arrived after a newer one. */
function lateArrivals(knownSql: string): string {
  return `SELECT available_at AS moment FROM (
    SELECT available_at, t < max(t) OVER (PARTITION BY metric, asset, interval, currency, exchange, network
      ORDER BY available_at, t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS late ${knownSql})
    WHERE late`
}
