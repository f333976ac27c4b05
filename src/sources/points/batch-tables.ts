import { backfillAfter } from '../../catalog/availability.ts'
import { ruleRows } from '../../catalog/availability-sql.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'
import { identityOf, type Ordered } from './conversion-types.ts'
import { rowsSql } from './sql.ts'

/** Further columns of a batch with revisable series: the dating of vintages, and whether a difference is one. */
const revisableColumns = ', revisable VARCHAR, revises BOOLEAN'
/**
 * The answers of a batch, numbered in the order of writing and in that of requests; `compared` if differences are
 * violations.
 */
const bodyColumns =
  'body INTEGER, part INTEGER, ord INTEGER, rank INTEGER, since BIGINT, until BIGINT, asked_at BIGINT, horizon ' +
  'BIGINT, compared BOOLEAN, interval VARCHAR, backfill BIGINT, own_asset VARCHAR, own_metric VARCHAR, clocked ' +
  'BOOLEAN'
/**
 * Columns of the bodies' series, for finding their points in stored files: dimensions match exactly, NULL only with
 * NULL.
 */
const seriesColumns =
  'rank INTEGER, part INTEGER, metric VARCHAR, interval VARCHAR, asset VARCHAR, currency VARCHAR, exchange ' +
  'VARCHAR, network VARCHAR, params VARCHAR'
/** Columns of the rules of their partitions, see `ruleRows`. */
const ruleColumns =
  'part INTEGER, begins BIGINT, ends BIGINT, kind VARCHAR, seconds BIGINT, rule_basis VARCHAR, trusted BOOLEAN'

/** Creates the tables of a batch in the session: `bodies`, `series` and `rules`. */
export async function createBatchTables(session: Engine, ordered: readonly Ordered[]): Promise<void> {
  const parts = new Map(ordered.map(({ p, part }) => [p, part]))
  const rules = [...parts].flatMap(ruleRowsOf)
  const columns = hasRevisable(ordered) ? bodyColumns + revisableColumns : bodyColumns
  await session.run(`CREATE TEMP TABLE bodies AS ${rowsSql(columns, ordered.map(bodyRow))}`)
  await session.run(`CREATE TEMP TABLE series AS ${rowsSql(seriesColumns, seriesRows(ordered))}`)
  await session.run(`CREATE TEMP TABLE rules AS ${rowsSql(ruleColumns, rules)}`)
}

/** SQL that joins staged points, or a relation like them, with their requests and rules, for FROM. */
export const withBatchSql = 'JOIN bodies USING (body) JOIN rules USING (part) WHERE t >= begins AND t < ends'

/**
 * SQL of the staged points with their requests and rules, for answers that differ only in their series. These are
 * constants, because after a join the engine does not preserve order across its threads.
 */
export function uniformBatchSql([first]: readonly Ordered[]): string {
  if (first === undefined) return 'staged_points'
  const [rule] = ruleRowsOf([first.p, first.part])
  const row = Object.entries({ ...bodyRow(first, 0), ...rule, since: null, until: null })
  const types = new Map(
    `${bodyColumns}, ${ruleColumns}`.split(', ').map((column) => column.split(' ') as [string, string]),
  )
  const same = row.filter(([name]) => !['body', 'ord', 'rank'].includes(name))
  const constants = same.map(
    ([name, value]) => `CAST(${value === null ? 'NULL' : quote(String(value))} AS ${types.get(name)}) AS "${name}"`,
  )
  return `(SELECT *, body AS ord, body AS rank, ${constants.join(', ')} FROM staged_points)`
}

function ruleRowsOf([part, { rules }]: readonly [number, Pick<Ordered['part'], 'rules'>]) {
  return ruleRows(rules).map(({ basis, ...rule }) => ({ part, rule_basis: basis, ...rule }))
}

function bodyRow({ body, part, p, ord, rank }: Ordered, i: number): object {
  const same = body.prior.some((before) => before.since === body.since && before.until === body.until)
  const isCompared = part.overlap === 'exact' || (part.overlap === 'fixed_range' && same)
  const { revisable = null } = part
  const compared = isCompared && revisable === null
  const revises = isCompared && revisable !== null
  const { since, until, askedAt, horizon } = body
  const named = { own_asset: body.series.asset, own_metric: [part.metric, part.wireName ?? ''].join(' ') }
  const clocked = part.reader?.clocked ?? true
  const seriesColumns = { interval: part.interval, backfill: backfillAfter(part.interval), clocked, ...named }
  const judged = revisable === null ? { compared } : { compared, revisable, revises }
  return { body: i, part: p, ord, rank, since, until, asked_at: askedAt, horizon, ...judged, ...seriesColumns }
}

function seriesRows(ordered: readonly Ordered[]): object[] {
  const rows = new Map<number, object>()
  for (const { rank, p, part, body } of ordered) {
    const { metric, interval } = part
    rows.set(rank, { rank, part: p, metric, interval, ...identityOf(body.series) })
  }
  return [...rows.values()]
}

/** Whether any series may be revised. */
export function hasRevisable(ordered: readonly Ordered[]): boolean {
  return ordered.some(({ part }) => part.revisable !== undefined)
}
