import { availableSql, floorSql } from '../catalog/availability-sql.ts'
import type { Instant } from '../time.ts'
import type { ConvertJob } from './convert-job.ts'
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

/** Compares what is staged with the files that are there and with the other bodies of the batch. */
export async function compare(
  session: Engine,
  job: ConvertJob,
  ordered: readonly Ordered[],
  loaded: Loaded,
): Promise<Comparison> {
  const { rules, interval } = job
  const good = ordered.flatMap((one, i) => (loaded.poison.has(i) ? [] : [{ ...one, i }]))
  await session.run(statement('bodies', { json: json(good.map((one) => bodyRow(one, job))) }))
  await session.run(statement('series', { json: json(seriesRows(ordered)) }))
  await session.run(heldSql(job, good, loaded))
  await session.run(statement('offered', { floor: floorSql(rules, 's.t', interval) }))
  await session.run(statement('fresh'))
  await session.run(statement('known', { observed: `${job.observedAt}::BIGINT` }))
  const contradictions = job.overlap === 'off' ? [] : await contradict(session, good)
  const priors = good.flatMap((one) => priorRows(one, good))
  if (priors.length > 0) {
    await session.run(statement('prior', { json: json(priors) }))
    await session.run(statement('late', { available: availableSql(rules, 'f.t', interval) }))
  }
  const tallies = new Map<number, Tally>()
  for (const row of await session.rows(statement('tallies'))) tallies.set(Number(row['body']), tallyOf(row))
  return { late: priors.length > 0, minusZero: minusZero(loaded), tallies, contradictions }
}

function minusZero(loaded: Loaded): boolean {
  return [...loaded.staged.values()].some((body) => body.minusZero)
}

type Good = Ordered & { readonly i: number }

function bodyRow({ body, ord, rank, i }: Good, job: ConvertJob): object {
  const same = body.prior.some((p) => p.since === body.since && p.until === body.until)
  const compared = job.overlap === 'exact' || (job.overlap === 'fixed_range' && same)
  const { since, until, askedAt, horizon } = body
  return { body: i, ord, rank, since, until, asked_at: askedAt, horizon, compared }
}

function seriesRows(ordered: readonly Ordered[]): object[] {
  const rows = new Map<number, object>()
  for (const { rank, body } of ordered) {
    const { asset, currency, exchange, network, params } = body.series
    rows.set(rank, { rank, asset, currency, exchange, network, params: paramsText(params) })
  }
  return [...rows.values()]
}

/** The held points between the earliest and the latest instant that any body was asked for or brought. */
function heldSql(job: ConvertJob, good: readonly Good[], loaded: Loaded): string {
  if (job.existing.length === 0)
    return 'CREATE TEMP TABLE held (rank INTEGER, t BIGINT, v DOUBLE, o VARCHAR, computed BIGINT, stored_at BIGINT)'
  const from = Math.min(
    ...good.map(({ body, i }) => Math.min(body.since ?? -Infinity, loaded.staged.get(i)?.first ?? Infinity)),
  )
  const to = Math.max(
    ...good.map(({ body, i }) => Math.max(body.until ?? Infinity, loaded.staged.get(i)?.last ?? -Infinity)),
  )
  const limits = [
    ...(Number.isFinite(from) ? [`e.t >= make_timestamptz(${from * 1_000_000}::BIGINT)`] : []),
    ...(Number.isFinite(to) ? [`e.t <= make_timestamptz(${to * 1_000_000}::BIGINT)`] : []),
  ]
  return statement('held', {
    files: quoteList(job.existing),
    computed: computedSql('e'),
    range: limits.length === 0 ? 'true' : limits.join(' AND '),
  })
}

async function contradict(session: Engine, good: readonly Good[]): Promise<Contradiction[]> {
  if (good.length === 0) return []
  const seconds = (column: string): string => `CAST(CAST(${column} AS DOUBLE) / 1e6 AS VARCHAR)`
  const differences = statement('differences', {
    stored_computed: seconds('kc'),
    offered_computed: seconds('computed'),
  })
  const vanished = statement('vanished', { bodies: good.map(({ i }) => i).join(', ') })
  const rows = [
    ...(await session.rows<ContradictionRow>(differences)),
    ...(await session.rows<ContradictionRow>(vanished)),
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
