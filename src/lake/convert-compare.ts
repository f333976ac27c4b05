import { backfillAfter } from '../catalog/availability.ts'
import { rowInstantSql, ruleRows } from '../catalog/availability-sql.ts'
import { endSql } from '../intervals-sql.ts'
import type { Instant } from '../time.ts'
import type { Existing } from './convert-job.ts'
import type { Loaded } from './convert-stage.ts'
import { type Ordered, paramsText } from './convert-order.ts'
import { json, statement } from './convert-sql.ts'
import { type Engine, quoteList, type Row } from './engine.ts'
import { computedSql } from './stored-clocks.ts'

/** What one body brought inside its window. */
export interface Tally {
  readonly kept: number
  readonly first: Instant | null
  readonly last: Instant | null
  readonly added: number
  readonly addedFirst: Instant | null
  readonly addedLast: Instant | null
}

/** A contradiction, by position of the body that brought it. */
export interface Contradiction {
  readonly body: number
  readonly t: Instant
  readonly kind: string
  readonly stored: string
  readonly offered: string | null
  readonly storedAt: number
}

/** What is new (then in the table `fresh`) and what contradicts. */
export interface Comparison {
  /** Whether the table `late` names points that came late. */
  readonly late: boolean
  /** Whether any point may be -0.0. */
  readonly minusZero: boolean
  readonly tallies: ReadonlyMap<number, Tally>
  readonly contradictions: readonly Contradiction[]
}

/** Tells the session what was asked: the tables `bodies`, `series` and `rules`. */
export async function tellAsked(session: Engine, ordered: readonly Ordered[]): Promise<void> {
  const parts = new Map(ordered.map(({ p, part }) => [p, part]))
  const rules = [...parts].flatMap(([p, part]) => ruleRows(part.rules).map((rule) => ({ part: p, ...rule })))
  await session.run(statement('bodies', { json: json(ordered.map(bodyRow)) }))
  await session.run(statement('series', { json: json(seriesRows(ordered)) }))
  await session.run(statement('rules', { json: json(rules) }))
}

/** Compares what is staged with the files that are there and with the other bodies of the batch. */
export async function compare(session: Engine, ordered: readonly Ordered[], loaded: Loaded): Promise<Comparison> {
  const good = ordered.flatMap((one, i) => (loaded.poison.has(i) ? [] : [{ ...one, i }]))
  const shared = new Set(good.map(({ rank }) => rank)).size < good.length
  const doubled = [...loaded.staged.values()].some((body) => body.doubled)
  await session.run(heldSql(good, loaded))
  const rowSql = { close: endSql('t', '"interval"'), instant: rowInstantSql('t', 'close') }
  await session.run(statement('offered', { ...rowSql, distinct: doubled ? 'DISTINCT ON (body, t)' : '' }))
  const first = { distinct: 'DISTINCT ON (rank, t)', order: 'ORDER BY rank, t, ord' }
  await session.run(statement('fresh', shared ? first : { distinct: '', order: '' }))
  await session.run(statement('known', { observed: `${good[0]?.part.observedAt ?? 0}::BIGINT` }))
  const contradictions = good.every(({ part }) => part.overlap === 'off') ? [] : await contradict(session)
  const priors = good.flatMap((one) => priorRows(one, good))
  if (priors.length > 0) {
    await session.run(statement('prior', { json: json(priors) }))
    await session.run(statement('late'))
  }
  const tallies = new Map<number, Tally>()
  for (const row of await session.rows(statement('tallies'))) tallies.set(Number(row['body']), tallyOf(row))
  return { late: priors.length > 0, minusZero: minusZero(loaded), tallies, contradictions }
}

function minusZero(loaded: Loaded): boolean {
  return [...loaded.staged.values()].some((body) => body.minusZero)
}

type Good = Ordered & { readonly i: number }

function bodyRow({ body, part, p, ord, rank }: Ordered, i: number): object {
  const same = body.prior.some((before) => before.since === body.since && before.until === body.until)
  const compared = part.overlap === 'exact' || (part.overlap === 'fixed_range' && same)
  const { since, until, askedAt, horizon } = body
  const own = { interval: part.interval, backfill: backfillAfter(part.interval) }
  return { body: i, part: p, ord, rank, since, until, asked_at: askedAt, horizon, compared, ...own }
}

function seriesRows(ordered: readonly Ordered[]): object[] {
  const rows = new Map<number, object>()
  for (const { rank, p, body } of ordered) {
    const { asset, currency, exchange, network, params } = body.series
    rows.set(rank, { rank, part: p, asset, currency, exchange, network, params: paramsText(params) })
  }
  return [...rows.values()]
}

/** The points that files hold between the earliest and the latest instant that any body was asked for or brought. */
function heldSql(good: readonly Good[], loaded: Loaded): string {
  const files = [...Map.groupBy(good, ({ p }) => p)].flatMap(([p, own]) => {
    const { from, to } = rangeOf(own, loaded)
    const meets = ({ min_t, max_t }: Existing): boolean => (min_t ?? -Infinity) <= to && (max_t ?? Infinity) >= from
    return (own[0]?.part.existing ?? []).filter(meets).map(({ path }) => ({ p, path }))
  })
  if (files.length === 0)
    return 'CREATE TEMP TABLE held (rank INTEGER, t BIGINT, v DOUBLE, o VARCHAR, computed BIGINT, stored_at BIGINT)'
  const { from, to } = rangeOf(good, loaded)
  const limits = [
    ...(Number.isFinite(from) ? [`e.t >= make_timestamptz(${from * 1_000_000}::BIGINT)`] : []),
    ...(Number.isFinite(to) ? [`e.t <= make_timestamptz(${to * 1_000_000}::BIGINT)`] : []),
  ]
  const part = `([${files.map(({ p }) => p).join(', ')}]::INTEGER[])[CAST(file_index AS INTEGER) + 1]`
  const paths = quoteList(files.map(({ path }) => path))
  return statement('held', {
    source: `(SELECT *, ${part} AS part FROM read_parquet(${paths}, hive_partitioning = false))`,
    computed: computedSql('e'),
    range: limits.length === 0 ? 'true' : limits.join(' AND '),
  })
}

/** The first and the last t that bodies were asked for or brought. */
function rangeOf(bodies: readonly Good[], { staged }: Loaded): { from: Instant; to: Instant } {
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
  const rows = [
    ...(await session.rows<ContradictionRow>(differences)),
    ...(await session.rows<ContradictionRow>(statement('vanished'))),
  ]
  return rows.map((row) => ({
    body: row.body,
    t: Number(row.t),
    kind: row.kind,
    stored: row.stored,
    offered: row.offered,
    storedAt: Number(row.stored_at),
  }))
}

type ContradictionRow = {
  readonly body: number
  readonly t: bigint
  readonly kind: string
  readonly stored: string
  readonly offered: string | null
  readonly stored_at: bigint
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

function tallyOf(row: Row): Tally {
  return {
    kept: Number(row['kept']),
    first: whole(row['first']),
    last: whole(row['last']),
    added: Number(row['added']),
    addedFirst: whole(row['added_first']),
    addedLast: whole(row['added_last']),
  }
}

function whole(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value)
}
