import { type Engine, quote, quoteList, quoteName } from '../store/engine.ts'
import { historyTables, readsRegistry } from './registry-objects.ts'
import { parsed, tablesIn } from './tree.ts'

/** What makes an instant a good place to look for a leak. */
interface Source {
  /** SQL of one column `moment`, the instants worth trying. */
  readonly sql: string
  /** How large a part of all cut-offs it gets. */
  readonly share: number
}

/** The instants to try, how many of them are instants of the result, and how many the result has. */
export interface Cutoffs {
  readonly cutoffs: readonly string[]
  readonly own: number
  readonly instants: number
}

/**
 * The instants against which a query is tried, ISO text with microseconds, ascending: just before and at arrivals of
 * the metrics that it names, around points without a value, at late points, inside weeks and months, at registry events; most
 * at rows of its result, all of them where they are no more than `count`, else on each day of the month. Chosen over all time and always the same for the same lake. Reads `proof_full`.
 */
export async function chooseCutoffs(session: Engine, sql: string, at: string, count: number): Promise<Cutoffs> {
  const [range] = await session.rows<{ lo: string; hi: string }>(
    `SELECT min(${at}) AS lo, max(${at}) AS hi FROM proof_full`,
  )
  const { lo = '', hi = '' } = range ?? {}
  const metrics = await namedMetrics(session, sql)
  const known = `FROM points WHERE ${metrics.length > 0 ? `metric IN (SELECT unnest(${quoteList(metrics)}))` : 'true'}`
  const sources: Source[] = [
    { sql: aroundNulls(known, at), share: 0.1 },
    { sql: `SELECT DISTINCT available_at AS moment ${known}`, share: 0.07 },
    { sql: `SELECT DISTINCT make_timestamptz(epoch_us(available_at) - 1) AS moment ${known}`, share: 0.07 },
    { sql: lateArrivals(known), share: 0.04 },
    { sql: insidePeriods(lo, hi), share: 0.04 },
  ]
  const events = await registryEvents(session, sql)
  if (events !== undefined) sources.push({ sql: events, share: 0.2 })
  const chosen = new Set<string>([hi])
  for (const source of sources) {
    const most = Math.max(1, Math.round(source.share * count))
    for (const instant of await spread(session, source.sql, lo, hi, most)) chosen.add(instant)
  }
  const decisions = await session.rows<{ moment: string }>(decisionsByDay(at, count))
  // Where there are no more decisions than cut-offs, all of them are tried and nothing else is needed.
  if (decisions.length < count) for (const { moment } of decisions) chosen.add(moment)
  else for (const { moment } of decisions) if (chosen.size < count) chosen.add(moment)
  const cutoffs = [...chosen].toSorted()
  const [facts] = await session.rows<{ own: bigint; instants: bigint }>(
    `SELECT count(DISTINCT ${at}) FILTER (WHERE ${at} IN (SELECT CAST(unnest(${quoteList(cutoffs)}) AS TIMESTAMPTZ))) AS own,
       count(DISTINCT ${at}) AS instants FROM proof_full`,
  )
  return { cutoffs, own: Number(facts?.own), instants: Number(facts?.instants) }
}

/** Instants of the result in an order that has no rhythm but goes through the days of the month, its end being one, time and again. */
function decisionsByDay(at: string, most: number): string {
  return `SELECT moment FROM (SELECT DISTINCT ${at} AS moment FROM proof_full WHERE ${at} IS NOT NULL)
    ORDER BY row_number() OVER (PARTITION BY CASE WHEN CAST(moment AS DATE) = last_day(moment) THEN 0 ELSE dayofmonth(moment) END
      ORDER BY hash(moment)), hash(moment) LIMIT ${most}`
}

/** The metrics whose names the query says; none where it says none, which means all. */
async function namedMetrics(session: Engine, sql: string): Promise<string[]> {
  const rows = await session.rows<{ metric: string }>(
    `SELECT metric FROM endpoints WHERE contains(${quote(sql)}, metric)`,
  )
  return rows.map(({ metric }) => metric)
}

/** The first instants of the result from which a point without a value, and the one before the next, could be known. */
function aroundNulls(known: string, at: string): string {
  return `SELECT DISTINCT own.moment FROM (
      SELECT unnest([available_at, make_timestamptz(epoch_us(available_at) - 1)]) AS arrived ${known} AND v IS NULL AND o IS NULL) AS empty
    ASOF JOIN (SELECT DISTINCT ${at} AS moment FROM proof_full) AS own ON own.moment >= empty.arrived`
}

/** Instants at which a point arrived after a newer one. */
function lateArrivals(known: string): string {
  return `SELECT DISTINCT available_at AS moment FROM (
    SELECT available_at, t < max(t) OVER (PARTITION BY metric, asset, interval, currency, exchange, network
      ORDER BY available_at, t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS late ${known})
    WHERE late`
}

/** Thursdays at noon and the 15ths at noon, and the last microsecond of a month. */
function insidePeriods(lo: string, hi: string): string {
  const days = `generate_series(date_trunc('day', TIMESTAMPTZ ${quote(lo)}), TIMESTAMPTZ ${quote(hi)}, INTERVAL 1 DAY)`
  return `SELECT day + INTERVAL 12 HOUR AS moment FROM (SELECT unnest(${days}) AS day)
    WHERE isodow(day) = 4 OR dayofmonth(day) IN (15, 28)`
}

/** The polls, and just before them, that changed what a query reads of the registry: the tables that it names, else all. */
async function registryEvents(session: Engine, sql: string): Promise<string | undefined> {
  const tree = await parsed(session, sql)
  const read = 'error' in tree ? [] : tablesIn(tree.statements)
  const tables = await historyTables(session)
  const named = tables.filter((table) => read.includes(table))
  if (named.length === 0 && ('error' in tree || !(await readsRegistry(session, tree.statements)))) return undefined
  const polls = (named.length > 0 ? named : tables).map(
    (table) => `SELECT valid_from AS poll FROM history.${quoteName(table)}`,
  )
  return `SELECT DISTINCT unnest([poll, make_timestamptz(epoch_us(poll) - 1)]) AS moment FROM (${polls.join(' UNION ')})`
}

/** Up to `most` instants of the source within the range, evenly over their order, first and last included. */
async function spread(session: Engine, source: string, lo: string, hi: string, most: number): Promise<string[]> {
  const rows = await session.rows<{ moment: string }>(
    `WITH ranked AS (
       SELECT moment, row_number() OVER (ORDER BY moment) - 1 AS i, count(*) OVER () AS n FROM (${source})
       WHERE moment BETWEEN TIMESTAMPTZ ${quote(lo)} AND TIMESTAMPTZ ${quote(hi)}
     )
     SELECT moment FROM ranked WHERE n <= ${most} OR i = n - 1
       OR i // greatest(1, n // ${most}) <> (i - 1) // greatest(1, n // ${most}) ORDER BY moment`,
  )
  const all = rows.map(({ moment }) => moment)
  if (all.length <= most) return all
  return Array.from({ length: most }, (_, i) => all[Math.round((i * (all.length - 1)) / Math.max(1, most - 1))] ?? '')
}
