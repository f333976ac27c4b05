import { compressionSql, footerSql, type Identity } from '../../lake/store/parquet.ts'
import { endSql, micros } from '../../base/intervals-sql.ts'
import type { Interval } from '../../base/time.ts'
import { type ConversionContext, identityOf, type Ordered, type WrittenFile } from './conversion-types.ts'
import { firstOf, lookup, rowsAsNumbers, statement } from './sql.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'
import { recentGroup, type Share } from './files.ts'

/**
 * SQL of the identity columns of each body's points, for bodies in the order of the column `body`, starting at `from`.
 */
function identitySql(ordered: readonly Ordered[], from: number): Record<keyof Identity, string> {
  const all = ordered.map(({ body }) => identityOf(body.series))
  const perBody = (name: keyof Identity): string =>
    lookup(
      all.map((identity) => identity[name]),
      from,
    )
  return {
    asset: perBody('asset'),
    currency: perBody('currency'),
    exchange: perBody('exchange'),
    network: perBody('network'),
    params: perBody('params'),
  }
}

/**
 * SQL of metric and interval of each body's points, as leading columns. The metric is text: with an enum, the
 * statistics of each row group would cover all metrics, and no query could skip one.
 */
function leadOf(ordered: readonly Ordered[], from: number): string {
  const perBody = (name: 'metric' | 'interval'): string =>
    lookup(
      ordered.map(({ part }) => part[name]),
      from,
    )
  return `CAST(${perBody('metric')} AS VARCHAR) AS metric, ${perBody('interval')} AS "interval",`
}

/** The facts about the points in the table `new_points`. */
interface Fresh {
  /** Whether they are sorted by rank and t already. */
  readonly sorted: boolean
  /** Whether they come without any join. */
  readonly alike: boolean
  /** Whether the table `late_points` contains points that arrived late. */
  readonly late: boolean
  /** Whether any may be a vintage. */
  readonly revised: boolean
}

/**
 * Builds SQL of the points of the table `new_points` with their dates, in the order of series and t. If they go to
 * `several` files they are first written to a table, because their sources cost as much to read as the files.
 */
export async function readyPoints(
  session: Engine,
  { observedAt }: ConversionContext,
  { sorted, alike, late, revised }: Fresh,
  several: boolean,
): Promise<string> {
  const now = `${observedAt}::BIGINT`
  const clocks = late
    ? { seen: `coalesce(stood, ${now})`, late: 'coalesce(tardy, false)', again: 'coalesce(anew, false)' }
    : { seen: now, late: 'false', again: 'false' }
  const source = late
    ? '(SELECT * RENAME ("again" AS anew) FROM new_points LEFT JOIN late_points USING (body, t))'
    : 'new_points'
  const ready = statement('sorted_points', {
    dated: statement('dated_points', { source, ...clocks, first: firstOf(revised) }),
    // After a join the engine does not preserve order across its threads; such a sample, of all rows, is taken by one
    // thread.
    order: !sorted ? 'ORDER BY place, t' : alike ? '' : 'USING SAMPLE 100 PERCENT (system, 1)',
  })
  if (!several) return `(${ready})`
  await session.run(`CREATE TEMP TABLE sorted_points AS ${ready}`)
  return 'sorted_points'
}

/** A file to be written. */
interface Written {
  /** SQL of points in order; `chosen` are the partitions to take from it. */
  readonly source: string
  readonly chosen: readonly number[]
  /** Whether any point may be -0.0. */
  readonly minusZero: boolean
  /** Whether the file must open fast: it has few rows, or every query reads it. */
  readonly few: boolean
  /** Whether each row contains its metric and interval. */
  readonly together: boolean
  /** Path of the file. */
  readonly out: string
}

/** DuckDB's own. */
const usualGroup = 122_880

/** Writes the points to `out`, with their series. */
export async function writePoints(
  session: Engine,
  { metadata }: ConversionContext,
  ordered: readonly Ordered[],
  { source, chosen, together, minusZero, few, out }: Written,
): Promise<void> {
  const places = ordered.flatMap(({ p }, i) => (chosen.includes(p) ? [i] : []))
  const begin = places[0] ?? 0
  const batch = ordered.slice(begin, (places.at(-1) ?? 0) + 1)
  const parts = ordered.reduce((most, { p }) => Math.max(most, p), 0) + 1
  const isChosen = Array.from({ length: parts }, (_, p) => chosen.includes(p)).join(', ')
  const sql = statement('points_file', {
    ...identitySql(batch, begin),
    source,
    // A long list would become a join, after which order is not preserved.
    chosen: chosen.length === 1 ? `part = ${chosen.join('')}` : `([${isChosen}])[part + 1]`,
    lead: together ? leadOf(batch, begin) : '',
    group: together ? recentGroup : usualGroup,
    out: quote(out),
    compression: compressionSql(few),
    // Small enough that t and available_at get delta encoding instead of a dictionary.
    dictionary: minusZero ? 0 : 1000,
    metadata: footerSql(metadata),
  })
  await session.run(sql)
}

/** SQL of the content digest over rows of points files; sums over several files add up. */
export const digestSql = `CAST(coalesce(sum(hash(asset, currency, exchange, network, params, t, available_at,
   observed_at, v,
  signbit(v), o, basis, extra, computed_at, available_rule_at)), 0) AS VARCHAR)`

/**
 * The bounds of some points: first and last t (seconds), `available_at` and its lag behind the interval's end
 * (microseconds).
 */
interface Bounds extends Omit<WrittenFile, 'min_t' | 'max_t'> {
  readonly first: number
  readonly last: number
}

/** The contents of a relation with metric and interval for one partition, with their digest. */
export interface ShareRow extends Bounds {
  readonly metric: string
  readonly interval: Interval
  readonly minus_zeros: number
}

/** Computes the contents of a relation with metric and interval, by partition. */
export async function readShares(session: Engine, source: string): Promise<ShareRow[]> {
  const end = endSql('epoch_us(t)', '"interval"', micros)
  return await rowsAsNumbers<ShareRow>(session, statement('partition_shares', { source, end, digest: digestSql }))
}

/** Converts a share to its form in the journal. */
export function shareOf({ metric, interval, rows, min_lag }: ShareRow): Share {
  return { metric, interval, rows, min_lag }
}

/** Combines bounds into the facts about a file for the journal. */
export function describe(groups: readonly Bounds[]): WrittenFile {
  const all = (name: Exclude<keyof Bounds, 'digest'>): number[] => groups.map((group) => group[name])
  return {
    rows: all('rows').reduce((sum, rows) => sum + rows, 0),
    digest: String(groups.reduce((sum, { digest }) => sum + BigInt(digest), 0n)),
    min_t: Math.min(...all('first')),
    max_t: Math.max(...all('last')),
    min_available: Math.min(...all('min_available')),
    max_available: Math.max(...all('max_available')),
    min_lag: Math.min(...all('min_lag')),
  }
}
