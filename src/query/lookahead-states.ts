import { type Engine, quote, quoteList, quoteName } from '../store/engine.ts'
import { historyTables, readsRegistry } from './registry-objects.ts'
import { ctesIn, parsed, tablesIn } from './tree.ts'

/** The temporary table of the states: `instant` (each of the result), `n`, and `last` (the last instant of its state). */
const states = 'proof_state'

/**
 * The instants of a result by what was known at them: between two instants of one state nothing arrived of what the
 * query names, so that one cut-off, at the last of them, tries them all.
 */
export interface States {
  readonly count: number
  /** SQL of the registry's polls, which then count too; null where points alone tell the states apart. */
  readonly polls: string | null
  /** The FROM and WHERE of the points of the metrics that the query names. */
  readonly known: string
}

/** Numbers the states of the result in `proof_full`, from 0. `at` is the SQL of a row's instant. */
export async function numberStates(session: Engine, sql: string, at: string): Promise<States> {
  const metrics = await namedMetrics(session, sql)
  const known = `FROM points WHERE ${metrics.length > 0 ? `metric IN (SELECT unnest(${quoteList(metrics)}))` : 'true'}`
  const polls = await pollsOf(session, sql)
  const own = `(SELECT DISTINCT ${at} AS instant FROM proof_full WHERE ${at} IS NOT NULL) AS own`
  const numbered =
    polls === null
      ? `SELECT own.instant, dense_rank() OVER (ORDER BY arrived NULLS FIRST) - 1 AS n
       FROM ${own} ASOF LEFT JOIN (SELECT DISTINCT available_at AS arrived ${known}) AS news ON own.instant >= arrived`
      : `SELECT own.instant, dense_rank() OVER (ORDER BY own.instant) - 1 AS n FROM ${own}`
  await session.run(
    `CREATE OR REPLACE TEMP TABLE ${states} AS SELECT *, max(instant) OVER (PARTITION BY n) AS last FROM (${numbered})`,
  )
  const [row] = await session.rows<{ n: bigint }>(`SELECT max(n) + 1 AS n FROM ${states}`)
  return { count: Number(row?.n ?? 0), polls, known }
}

/** What tells of points alone. */
const ofPoints: ReadonlySet<string> = new Set(['points', 'components', 'series', 'price_usd', 'endpoints'])

/** The polls that changed what a query reads of the registry: of the tables that it names, else all; null where it reads none. */
async function pollsOf(session: Engine, sql: string): Promise<string | null> {
  const tree = await parsed(session, sql)
  const trees = 'error' in tree ? [] : tree.statements
  const ctes = new Set(ctesIn(trees))
  const read = tablesIn(trees).filter((name) => !ctes.has(name))
  if (!('error' in tree) && read.every((name) => ofPoints.has(name)) && !(await readsRegistry(session, trees)))
    return null
  const tables = await historyTables(session)
  const named = tables.filter((table) => read.includes(table))
  const polls = (named.length > 0 ? named : tables).map(
    (table) => `SELECT valid_from AS moment FROM history.${quoteName(table)}`,
  )
  return polls.join(' UNION ')
}

/** The metrics whose names the query says; none where it says none, which means all. */
export async function namedMetrics(session: Engine, sql: string): Promise<string[]> {
  const rows = await session.rows<{ metric: string }>(
    `SELECT metric FROM endpoints WHERE contains(${quote(sql)}, metric) ORDER BY metric`,
  )
  const priced = /\bprice_usd\b/i.test(sql) ? ['supply/current_pit'] : []
  return [...new Set([...rows.map(({ metric }) => metric), ...priced])]
}

/** What makes a state a good place to look for a leak. */
interface Source {
  /** SQL of one column `moment`, the instants worth trying. */
  readonly sql: string
  /** How large a part of all cut-offs it gets. */
  readonly share: number
}

/**
 * Up to `count` states to try, and always the last, ascending: those in which the metrics that the query names arrive
 * without a value or late, inside weeks and months, at events of the registry; the rest evenly over time, or on each
 * day of the month. All of them where there are no more. The same for the same lake.
 */
export async function chooseStates(
  session: Engine,
  { count: all, polls, known }: States,
  count: number,
  order: 'even' | 'days',
): Promise<number[]> {
  if (all <= count) return Array.from({ length: all }, (_, n) => n)
  const sources: Source[] = [
    { sql: `SELECT available_at AS moment ${known} AND v IS NULL AND o IS NULL`, share: 0.1 },
    { sql: lateArrivals(known), share: 0.06 },
    { sql: insidePeriods(), share: 0.06 },
  ]
  if (polls !== null && polls !== '') sources.push({ sql: polls, share: 0.2 })
  const chosen = new Set<number>([all - 1])
  for (const { sql, share } of sources) {
    const found = await session.rows<{ n: bigint }>(
      `SELECT DISTINCT unnest([n - 1, n]) AS n FROM (${sql}) ASOF JOIN ${states} ON moment >= instant WHERE n > 0 ORDER BY n`,
    )
    for (const n of spread(
      found.map((row) => Number(row.n)),
      Math.max(1, Math.round(share * count)),
    ))
      chosen.add(n)
  }
  const rest =
    order === 'even'
      ? spread(
          Array.from({ length: all }, (_, n) => n),
          count,
        )
      : await byDay(session)
  for (const n of rest) if (chosen.size < count) chosen.add(n)
  return [...chosen].toSorted((one, other) => one - other)
}

/** The last instants of states, ISO text with microseconds. */
export async function instantsOf(session: Engine, chosen: readonly number[]): Promise<string[]> {
  const rows = await session.rows<{ last: string }>(
    `SELECT DISTINCT last FROM ${states} WHERE list_contains([${chosen.join(', ')}], n) ORDER BY last`,
  )
  return rows.map(({ last }) => last)
}

/** States in an order that has no rhythm but goes through the days of the month, its end being one, time and again. */
async function byDay(session: Engine): Promise<number[]> {
  const rows = await session.rows<{ n: bigint }>(
    `SELECT n FROM (SELECT DISTINCT n, last FROM ${states})
     ORDER BY row_number() OVER (PARTITION BY CASE WHEN CAST(last AS DATE) = last_day(last) THEN 0 ELSE dayofmonth(last) END
       ORDER BY hash(last)), hash(last)`,
  )
  return rows.map((row) => Number(row.n))
}

/** Instants at which a point arrived after a newer one. */
function lateArrivals(known: string): string {
  return `SELECT available_at AS moment FROM (
    SELECT available_at, t < max(t) OVER (PARTITION BY metric, asset, interval, currency, exchange, network
      ORDER BY available_at, t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS late ${known})
    WHERE late`
}

/** The middle of weeks and of months, and their last days. */
function insidePeriods(): string {
  return `SELECT instant AS moment FROM ${states} WHERE isodow(instant) = 4 OR dayofmonth(instant) IN (15, 28)`
}

/** Up to `most` of these, evenly over their order, first and last included. */
function spread(all: readonly number[], most: number): readonly number[] {
  if (all.length <= most) return all
  return Array.from({ length: most }, (_, i) => all[Math.round((i * (all.length - 1)) / Math.max(1, most - 1))] ?? 0)
}
