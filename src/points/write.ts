import { compressionSql, footerSql, type Identity } from '../store/parquet.ts'
import { backfillAfter } from '../catalog/availability.ts'
import { availableSql, basisSql, floorSql, trustedSql } from '../catalog/availability-sql.ts'
import { endSql, micros } from '../intervals-sql.ts'
import type { Interval } from '../time.ts'
import { type Circumstances, identityOf, type Ordered, type PartJob, type WrittenFile } from './conversion.ts'
import { lookup, numbered, statement } from './sql.ts'
import { type Clocks, clocksSql } from './stage.ts'
import { type Engine, quote, quoteList } from '../store/engine.ts'
import { computedSql, type Share } from './files.ts'

/** SQL of what the series of each body, in the order of the column `body`, says of its points. */
function identitySql(ordered: readonly Ordered[]): Record<keyof Identity, string> {
  const all = ordered.map(({ body }) => identityOf(body.series))
  const perBody = (name: keyof Identity): string => lookup(all.map((one) => one[name]))
  return {
    asset: perBody('asset'),
    currency: perBody('currency'),
    exchange: perBody('exchange'),
    network: perBody('network'),
    params: perBody('params'),
  }
}

/**
 * SQL of what a point is written with that tells nothing but its body. In seconds: from when on the rule calls it
 * knowable (`available`), before which it never is (`floor`), how much later it counts as backfilled.
 */
export function literalDating({ rules, interval }: PartJob, ordered: readonly Ordered[]) {
  return {
    ...identitySql(ordered),
    available: availableSql(rules, 't', interval),
    floor: floorSql(rules, 't', interval),
    backfill: `${backfillAfter(interval)}::BIGINT`,
    basis: basisSql(rules, 't'),
    trusted: trustedSql(rules, 't'),
  }
}

/** For points of the table `fresh`, which tells what their rules say. */
export function stagedDating(ordered: readonly Ordered[]): ReturnType<typeof literalDating> {
  const ruled = { available: 'ruled', floor: 'floor', backfill: 'backfill', basis: 'rule_basis', trusted: 'trusted' }
  return { ...identitySql(ordered), ...ruled }
}

/**
 * SQL of metric and interval of each body's points, as leading columns. The metric is text: of an enum each row group would
 * be said to hold all of its values, and no question could skip one.
 */
export function leadOf(ordered: readonly Ordered[]): string {
  const perBody = (name: 'metric' | 'interval'): string => lookup(ordered.map(({ part }) => part[name]))
  return `CAST(${perBody('metric')} AS VARCHAR) AS metric, ${perBody('interval')} AS "interval",`
}

/** The points to be written. */
export interface Source {
  /** SQL of a relation: body, t, v, o, extra, computed, and what the dating names. */
  readonly source: string
  /** The column by which the series are sorted. */
  readonly place: string
  /** Whether the source is sorted by it and t already. */
  readonly sorted: boolean
  /** Whether the table `late` names points that came late. */
  readonly late: boolean
  /** Whether any point may be -0.0. */
  readonly minusZero: boolean
  /** Whether the file is written to be opened fast: it holds few rows, or every question reads it. */
  readonly few: boolean
  /** SQL of leading columns, each with a comma; '' for none. */
  readonly lead?: string
  /** The most rows of a row group. */
  readonly group?: number
  /** Path of the file. */
  readonly out: string
}

/** DuckDB's own. */
const usualGroup = 122_880

/** Writes the points to `out`, sorted, dated and with their series. */
export async function writePoints(
  session: Engine,
  { observedAt, metadata }: Circumstances,
  dating: ReturnType<typeof literalDating>,
  { source, place, sorted, late, minusZero, few, out, lead = '', group = usualGroup }: Source,
): Promise<void> {
  const now = `${observedAt}::BIGINT`
  const clocks = late
    ? { seen: `coalesce(stood, ${now})`, late: 'coalesce(tardy, false)', again: 'coalesce(anew, false)' }
    : { seen: now, late: 'false', again: 'false' }
  const from = late ? `(SELECT * RENAME ("again" AS anew) FROM ${source} LEFT JOIN late USING (body, t))` : source
  const { asset, currency, exchange, network, params } = dating
  const sql = statement('output', {
    asset,
    currency,
    exchange,
    network,
    params,
    dated: datedSql(dating, { source: from, place, ...clocks }),
    lead,
    group,
    order: sorted && !late ? '' : 'ORDER BY place, t',
    out: quote(out),
    compression: compressionSql(few),
    // Small enough that t and available_at get delta encoding instead of a dictionary.
    dictionary: minusZero ? 0 : 1000,
    metadata: footerSql(metadata),
  })
  await session.run(sql)
}

/** How the points of a relation are dated: SQL of when each was first seen, whether it came late, and whether anew. */
interface Dating {
  readonly source: string
  readonly place: string
  readonly seen: string
  readonly late: string
  readonly again: string
}

/** SQL of points with their dates. */
export function datedSql(
  { basis, available, floor, backfill, trusted }: ReturnType<typeof literalDating>,
  dating: Dating,
): string {
  return statement('dated', {
    basis: asBasis(basis),
    provider: asBasis(`'provider'`),
    observed_basis: asBasis(`'observed'`),
    available,
    floor,
    backfill,
    trusted,
    ...dating,
  })
}

/** As an enum: Parquet writes it several times faster and every reader sees text. */
function asBasis(text: string): string {
  return `CAST(${text} AS ENUM ('provider', 'observed', 'stated', 'assumed', 'override'))`
}

/** SQL of the content digest over rows of points files; sums over several files add up. */
export const digestSql = `CAST(coalesce(sum(hash(asset, currency, exchange, network, params, t, available_at, observed_at, v,
  signbit(v), o, basis, extra, computed_at, available_rule_at)), 0) AS VARCHAR)`

const noClocks = '0::BIGINT AS early, 0::BIGINT AS low, 0::BIGINT AS high'

/** What some points come to: first and last t (seconds), `available_at` and its lag behind the interval's end (microseconds). */
interface Bounds extends Omit<WrittenFile, 'min_t' | 'max_t'> {
  readonly first: number
  readonly last: number
}

/** What the written file holds of one series in one part of time: what one body brought. */
export interface Part extends Bounds, Clocks, Identity {
  /** Number of the part of time. */
  readonly part: number
  /** Points whose v is not null, and those whose v is zero. */
  readonly numbers: number
  readonly zeros: number
  /** Where they stand in the file. */
  readonly first_row: number
  readonly last_row: number
}

/** Reads the written file back, its clocks where points are `told`: by series, and by the part of time between the instants `cuts` (ascending). */
export async function readBack(
  session: Engine,
  { interval, rules }: PartJob,
  { out, told }: { readonly out: string; readonly told: boolean },
  cuts: readonly number[] = [],
): Promise<Part[]> {
  const branches = cuts.map((cut, part) => `WHEN mark < ${cut} THEN ${part}`).join(' ')
  const close = endSql('mark', interval)
  return await numbered<Part>(
    session,
    statement('written', {
      file: quoteList([out]),
      end: close,
      part: cuts.length === 0 ? '0' : `CASE ${branches} ELSE ${cuts.length} END`,
      clocks: told ? clocksSql(`epoch_us(${computedSql()})`, close, floorSql(rules, 'mark', interval)) : noClocks,
      computed: computedSql(),
      digest: digestSql,
    }),
  )
}

/** What a relation with metric and interval holds of one partition, with its proof. */
export interface ShareRow extends Bounds {
  readonly metric: string
  readonly interval: Interval
  readonly minus_zeros: number
}

/** What the rows of a relation with metric and interval are, by partition. */
export async function readShares(session: Engine, source: string): Promise<ShareRow[]> {
  const end = endSql('epoch_us(t)', '"interval"', micros)
  return await numbered<ShareRow>(session, statement('shares', { source, end, digest: digestSql }))
}

/** The share as the journal keeps it. */
export function shareOf({ metric, interval, rows, min_lag }: ShareRow): Share {
  return { metric, interval, rows, min_lag }
}

/** The file as the journal wants to know it. */
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
