import { parquet } from '../store/parquet.ts'
import { backfillAfter } from '../catalog/availability.ts'
import { rowInstantSql, ruleRows } from '../catalog/availability-sql.ts'
import { endSql } from '../intervals-sql.ts'
import type { Regained } from '../ledger/entry.ts'
import type { Instant } from '../time.ts'
import type { Existing, Heard, PartJob, Tally } from './conversion.ts'
import { regain, tellLost } from './regain.ts'
import type { Loaded } from './stage.ts'
import { unload } from './load.ts'
import { type Contradiction, hear } from './standing.ts'
import { identityOf, type Ordered } from './order.ts'
import { numbered, rowsSql, statement } from './sql.ts'
import { type Engine, quoteList } from '../store/engine.ts'
import { computedSql } from './stored-clocks.ts'

/** What is new (then in `fresh`) and what contradicts. */
export interface Comparison {
  /** Whether the table `late` names points that came late. */
  readonly late: boolean
  /** Whether any point may be -0.0. */
  readonly minusZero: boolean
  readonly tallies: ReadonlyMap<number, Tally>
  readonly contradictions: readonly Contradiction[]
  /** What is said now of differences that are on record. */
  readonly heard: readonly Heard[]
  /** What came again of months that had lost points with a file. */
  readonly regained: readonly Regained[]
}

/** The answers of a batch, by their numbers in the order of writing and in that of asking; `compared`: differences are violations. */
const bodyColumns =
  'body INTEGER, part INTEGER, ord INTEGER, rank INTEGER, since BIGINT, until BIGINT, asked_at BIGINT, horizon BIGINT, compared BOOLEAN, interval VARCHAR, backfill BIGINT, own_asset VARCHAR, own_metric VARCHAR'
/** Their series, to find points in the files that are there: dimensions match exactly, NULL only with NULL. */
const seriesColumns =
  'rank INTEGER, part INTEGER, metric VARCHAR, interval VARCHAR, asset VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR, params VARCHAR'
/** The rules of their partitions, see `ruleRows`. */
const ruleColumns =
  'part INTEGER, begins BIGINT, ends BIGINT, kind VARCHAR, seconds BIGINT, basis VARCHAR, trusted BOOLEAN'
/** For each body the earlier answers of its series: what such an answer lacked was not known when it was asked. */
const priorColumns = 'body INTEGER, since BIGINT, until BIGINT, asked_at BIGINT'

/** Tells the session what was asked: the tables `bodies`, `series` and `rules`. */
export async function tellAsked(session: Engine, ordered: readonly Ordered[]): Promise<void> {
  const parts = new Map(ordered.map(({ p, part }) => [p, part]))
  const rules = [...parts].flatMap(([p, part]) => ruleRows(part.rules).map((rule) => ({ part: p, ...rule })))
  await session.run(`CREATE TEMP TABLE bodies AS ${rowsSql(bodyColumns, ordered.map(bodyRow))}`)
  await session.run(`CREATE TEMP TABLE series AS ${rowsSql(seriesColumns, seriesRows(ordered))}`)
  await session.run(`CREATE TEMP TABLE rules AS ${rowsSql(ruleColumns, rules)}`)
}

/** Compares what is staged with the files that are there and with the other bodies of the batch. */
export async function compare(session: Engine, ordered: readonly Ordered[], loaded: Loaded): Promise<Comparison> {
  const good = ordered.flatMap((one, i) => (loaded.poison.has(i) ? [] : [{ ...one, i }]))
  const shared = new Set(good.map(({ rank }) => rank)).size < good.length
  const doubled = [...loaded.staged.values()].some((body) => body.doubled)
  const held = heldSql(good, loaded)
  await session.run(held)
  const lost = good.some(({ body }) => body.lost)
  if (lost) await tellLost(session, good)
  const rowSql = { close: endSql('t', '"interval"'), instant: rowInstantSql('t', 'close') }
  await session.run(
    statement('offered', {
      ...rowSql,
      staged: lost ? 'restored' : 'staged',
      distinct: doubled ? 'DISTINCT ON (body, t)' : '',
    }),
  )
  await unload(session)
  // With nothing to compare with all that is offered is fresh: it need not be written down again.
  const alone = held === nothingHeld && !shared && !lost
  const first = { distinct: 'DISTINCT ON (rank, t)', order: 'ORDER BY rank, t, ord' }
  await session.run(
    statement('fresh', {
      kind: alone ? 'VIEW' : 'TABLE',
      unheld: alone ? '' : 'ANTI JOIN held USING (rank, t)',
      ...(shared ? first : { distinct: '', order: '' }),
    }),
  )
  await session.run(statement('known', { observed: `${good[0]?.part.observedAt ?? 0}::BIGINT` }))
  const uncompared = alone || good.every(({ part }) => part.overlap === 'off')
  const contradictions = uncompared ? [] : await contradict(session)
  const heard = uncompared ? [] : await hear(session, ordered, contradictions)
  const priors = good.flatMap((one) => priorRows(one, good))
  const late = priors.length > 0 || lost
  if (late) {
    await session.run(`CREATE TEMP TABLE prior (${priorColumns})`)
    if (priors.length > 0) await session.run(`INSERT INTO prior ${rowsSql(priorColumns, priors)}`)
    await session.run(statement('late'))
  }
  const regained = lost ? await regain(session, ordered, good[0]?.part.observedAt ?? 0n) : []
  const tallies = new Map<number, Tally>()
  for (const row of await numbered<TallyRow>(session, statement('tallies'))) {
    const { body, added_first: addedFirst, added_last: addedLast, ...rest } = row
    tallies.set(body, { ...rest, addedFirst, addedLast })
  }
  return { late, minusZero: lost || minusZero(loaded), tallies, contradictions, heard, regained }
}

function minusZero(loaded: Loaded): boolean {
  return [...loaded.staged.values()].some((body) => body.minusZero)
}

type Good = Ordered & { readonly i: number }

function bodyRow({ body, part, p, ord, rank }: Ordered, i: number): object {
  const same = body.prior.some((before) => before.since === body.since && before.until === body.until)
  const compared = part.overlap === 'exact' || (part.overlap === 'fixed_range' && same)
  const { since, until, askedAt, horizon } = body
  const named = { own_asset: body.series.asset, own_metric: [part.metric, part.wireName ?? ''].join(' ') }
  const own = { interval: part.interval, backfill: backfillAfter(part.interval), ...named }
  return { body: i, part: p, ord, rank, since, until, asked_at: askedAt, horizon, compared, ...own }
}

function seriesRows(ordered: readonly Ordered[]): object[] {
  const rows = new Map<number, object>()
  for (const { rank, p, part, body } of ordered) {
    const { metric, interval } = part
    rows.set(rank, { rank, part: p, metric, interval, ...identityOf(body.series) })
  }
  return [...rows.values()]
}

const nothingHeld =
  'CREATE TEMP TABLE held (rank INTEGER, t BIGINT, v DOUBLE, o VARCHAR, computed BIGINT, stored_at BIGINT)'

/** The points that files of both levels hold between the earliest and the latest instant that any body was asked for or brought. */
function heldSql(good: readonly Good[], loaded: Loaded): string {
  const meets = ({ from, to }: Range, { min_t, max_t }: Existing): boolean =>
    (min_t ?? -Infinity) <= to && (max_t ?? Infinity) >= from
  const own = [...Map.groupBy(good, ({ part }) => part)].flatMap(([part, bodies]) => {
    const range = rangeOf(bodies, loaded)
    return part.existing.filter((file) => meets(range, file)).map(({ path }) => ({ part, path }))
  })
  const range = rangeOf(good, loaded)
  const recent = (good[0]?.part.recent.existing ?? []).filter((file) => meets(range, file)).map(({ path }) => path)
  if (own.length === 0 && recent.length === 0) return nothingHeld
  const limits = [
    ...(Number.isFinite(range.from) ? [`e.t >= make_timestamptz(${range.from * 1_000_000}::BIGINT)`] : []),
    ...(Number.isFinite(range.to) ? [`e.t <= make_timestamptz(${range.to * 1_000_000}::BIGINT)`] : []),
  ]
  return statement('held', {
    source: heldFilesSql(own, recent),
    computed: computedSql('e'),
    range: limits.length === 0 ? 'true' : limits.join(' AND '),
  })
}

const held = 'asset, currency, exchange, network, params, t, v, o, basis, available_at, computed_at, observed_at'

/** The rows of files of both levels with metric and interval, for FROM. */
function heldFilesSql(
  own: readonly { readonly part: PartJob; readonly path: string }[],
  recent: readonly string[],
): string {
  const nth = (texts: readonly string[]): string => `(${quoteList(texts)})[CAST(file_index AS INTEGER) + 1]`
  const metric = nth(own.map(({ part }) => part.metric))
  const interval = nth(own.map(({ part }) => part.interval))
  const paths = quoteList(own.map(({ path }) => path))
  const levels = [
    ...(own.length === 0
      ? []
      : [
          `SELECT ${metric} AS metric, ${interval} AS "interval", ${held} FROM read_parquet(${paths}, hive_partitioning = false)`,
        ]),
    ...(recent.length === 0 ? [] : [`SELECT metric, "interval", ${held} FROM ${parquet(recent)}`]),
  ]
  return `(${levels.join(' UNION ALL ')})`
}

interface Range {
  readonly from: Instant
  readonly to: Instant
}

/** The first and the last t that bodies were asked for or brought. */
function rangeOf(bodies: readonly Good[], { staged }: Loaded): Range {
  const first = bodies.map(({ i, body }) => Math.min(body.since ?? -Infinity, staged.get(i)?.first ?? Infinity))
  const last = bodies.map(({ i, body }) => Math.max((body.until ?? Infinity) - 1, staged.get(i)?.last ?? -Infinity))
  return { from: Math.min(...first), to: Math.max(...last) }
}

async function contradict(session: Engine): Promise<Contradiction[]> {
  const seconds = (column: string): string => `CAST(CAST(${column} AS DOUBLE) / 1e6 AS VARCHAR)`
  const differences = statement('differences', {
    stored_computed: seconds('kc'),
    offered_computed: seconds('computed'),
  })
  return [
    ...(await numbered<Contradiction>(session, differences)),
    ...(await numbered<Contradiction>(session, statement('vanished'))),
  ]
}

const always = 1_000_000_000_000

/** Earlier answers of the body's series: those that the job names, and those of this batch that were asked before. */
function priorRows({ body, ord, rank, i }: Good, good: readonly Good[]): object[] {
  const batch = good.filter((o) => o.rank === rank && o.ord < ord && o.body.askedAt < body.askedAt).map((o) => o.body)
  return [...body.prior, ...batch].map((p) => ({
    body: i,
    since: p.since ?? -always,
    until: p.until ?? always,
    asked_at: p.askedAt,
  }))
}

interface TallyRow extends Omit<Tally, 'addedFirst' | 'addedLast'> {
  readonly body: number
  readonly added_first: Instant | null
  readonly added_last: Instant | null
}
