import type { Rule } from '../../catalog/availability.ts'
import type { Series } from '../../catalog/series.ts'
import type { During } from '../../base/stopwatch.ts'
import type { Instant, Interval, Weekday } from '../../base/time.ts'
import type { Window } from '../../base/windows.ts'
import type { Standing } from '../../lake/ledger/differences.ts'
import type { Finding, Regained, Violation } from '../../lake/ledger/entry.ts'
import type { Lost } from '../../lake/ledger/lost-points.ts'
import type { Share } from './files.ts'
import type { Lexed } from './lexer.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { type Identity, identityColumns } from '../../lake/store/parquet.ts'

/** One successful answer: a spool file, and the request that it answers. */
export interface Body {
  /** The decompressed JSON body. */
  readonly file: string
  /** Facts about its tokens, if it has been read already. */
  readonly lexed?: Lexed | undefined
  /** Id of the request that returned it. */
  readonly request: string
  readonly series: Series
  /**
   * Start of the requested range, half-open; null if unbounded. Points outside of the range are compared, but never
   * stored.
   */
  readonly since: Instant | null
  readonly until: Instant | null
  readonly askedAt: Instant
  /** End of the storable points: a point whose interval ends later, or whose stated time is later, is not stored. */
  readonly horizon: Instant
  /** Earlier successful answers of this series. */
  readonly prior: readonly { readonly since: Instant; readonly until: Instant; readonly askedAt: Instant }[]
  /**
   * Time of the series' last import, for rows that come with their time of availability. A point that this import
   * lacked although it was available by then is late.
   */
  readonly lastImport?: Instant | undefined
  /** Differences of its series that are on record and that the last answer about them showed. */
  readonly standing?: readonly Standing[] | undefined
  /** Points that its series lost with files. */
  readonly lost?: Lost | undefined
}

/** An existing file, with the first and last `t` inside. */
export interface Existing {
  readonly path: string
  readonly min_t: Instant | null
  readonly max_t: Instant | null
}

/** The bodies of a batch for one partition, with the rules that apply to them. */
export interface ConvertPart {
  readonly metric: string
  /** The provider's name of the metric, if it differs. */
  readonly wireName?: string | undefined
  readonly interval: Interval
  readonly rules: readonly Rule[]
  /** `fixed_range` compares only with answers to the very same range, `off` never. */
  readonly overlap: 'exact' | 'fixed_range' | 'off'
  /**
   * The dating of differing values as vintages, if they are no violations. `observed`: values of answers are known from
   * their `computed_at` if it is later than the stored value, otherwise from the time they were seen. `told`: the
   * source dates each value, and one t may occur several times.
   */
  readonly revisable?: 'observed' | 'told' | undefined
  /** Bodies in the order of their requests; if two contain the same point, the first counts. */
  readonly bodies: readonly Body[]
  /** The live files of the partition alone. */
  readonly existing: readonly Existing[]
  /** Temporary path of the Parquet file to write. */
  readonly out: string
}

/** The facts that apply to all partitions of a batch. */
export interface ConversionContext {
  readonly recent: RecentJob
  /** Meaning of `t` at this provider; the lake always stores the start of the interval. */
  readonly timestamp: 'interval_start' | 'interval_end'
  /** The day on which weeks begin; Monday by default. */
  readonly weekStart?: Weekday
  /** Time of the coming commit, Unix microseconds. */
  readonly observedAt: bigint
  /** Key-value pairs for the footer. */
  readonly metadata: Readonly<Record<string, string>>
  readonly during?: During | undefined
  /** Stages points that are not answers of a provider. */
  readonly reader?: Reader | undefined
}

/** The counts of one body after staging. */
export interface Staged {
  readonly points: number
  /** Number of points with a `computed_at`. */
  readonly told: number
  /** Whether all values and timestamps are valid. */
  readonly sound: boolean
  /** Whether any value is -0.0. */
  readonly minusZero: boolean
  /** Whether some t may occur twice. */
  readonly doubled: boolean
  /** Whether the t are in rising order. */
  readonly rising?: boolean
  readonly first: number
  readonly last: number
}

/** The outcome of staging, by position of the body in the list. */
export interface Loaded {
  readonly staged: ReadonlyMap<number, Staged>
  readonly poison: ReadonlyMap<number, string>
  /** Whether the points are known to be in the order of the files; otherwise this is checked. */
  readonly sorted?: boolean
  /**
   * Whether their order does not depend on the number of threads, and all belong to one partition with one rule and to
   * the same requested range.
   */
  readonly alike?: boolean
}

/** A source of points other than spool files. */
export interface Reader {
  /** Creates the view `staged_points` of a session, see `staged_points.sql`, without any poisoned row. */
  readonly stage: (session: Engine, ordered: readonly Ordered[]) => Promise<Loaded>
  /** Drops what `stage` created, once the points have been copied. */
  readonly unload: (session: Engine) => Promise<void>
  /** Whether a different time for the same value is a contradiction. */
  readonly clocked: boolean
}

/** The input of a conversion for one commit. */
export interface ConvertJob extends ConversionContext {
  readonly parts: readonly ConvertPart[]
  /** Number of new points from which on a partition gets a file of its own; some thousands by default. */
  readonly portion?: number
}

/** The file for small portions of all partitions. */
interface RecentJob {
  /** The live recent files. */
  readonly existing: readonly Existing[]
  /** Temporary path of the Parquet file to write. */
  readonly out: string
}

/** One partition under the circumstances of its batch. */
export interface PartJob extends ConversionContext, ConvertPart {}

/** The counts of one body inside the requested range. */
export interface Tally {
  /** Points that may be stored, whether or not they already are; followed by their first and last `t`. */
  readonly kept: number
  readonly first: Instant | null
  readonly last: Instant | null
  /** New points of this body, followed by their first and last `t`. */
  readonly added: number
  readonly addedFirst: Instant | null
  readonly addedLast: Instant | null
  /** New points with an integer that a double cannot represent; its text is in `extra`. */
  readonly beyond: number
  /** New points that are further vintages of points that had a value. */
  readonly vintages?: number
}

/** The counts of a body without points. */
export const emptyTally: Tally = {
  kept: 0,
  first: null,
  last: null,
  added: 0,
  addedFirst: null,
  addedLast: null,
  beyond: 0,
}

/** The result of one body. */
export interface BodyResult extends Omit<Tally, 'kept'> {
  readonly request: string
  readonly series: string
  /** State of the body. `empty`: an array without elements. `poison`: nothing of the body was used. */
  readonly state: 'ok' | 'empty' | 'poison'
  /** Reason for calling it poison; null otherwise. */
  readonly reason: string | null
  /** Elements of the array; 0 for poison. */
  readonly points: number
  /**
   * Finished intervals of the requested range without a point, half-open; from the first point on if `since` is null.
   */
  readonly missing: readonly Window[]
}

/** The facts about a written file that the journal records. */
export interface WrittenFile {
  readonly rows: number
  /** Independent of the order of rows and of their spread over files: digests of parts add up (`digestSql`). */
  readonly digest: string
  /** First and last `t`, seconds. */
  readonly min_t: Instant
  readonly max_t: Instant
  /** First and last `available_at`, Unix microseconds. */
  readonly min_available: number
  readonly max_available: number
  /** The smallest `available_at` minus end of the interval, microseconds. */
  readonly min_lag: number
}

/** The written recent file. */
export interface WrittenRecent extends WrittenFile {
  readonly shares: readonly Share[]
}

/**
 * A stored point with a recorded difference, and whether the last answer about it still showed the difference; null if
 * the answer shows neither.
 */
export interface ConflictStatus {
  readonly standing: Standing
  readonly t: Instant
  readonly shown: boolean | null
}

/** The result of a conversion; nothing of it is committed yet. */
export interface ConvertResult {
  /** Files by partition; null if the partition gets no file of its own, and then there is none at `out`. */
  readonly files: readonly (WrittenFile | null)[]
  /** The recent file; null if no small portion is new. */
  readonly recent: WrittenRecent | null
  /** One result per body, by partition, each in the order of requests. */
  readonly bodies: readonly BodyResult[]
  readonly violations: readonly Violation[]
  readonly statuses: readonly ConflictStatus[]
  readonly findings: readonly Finding[]
  readonly regained: readonly Regained[]
  /** Number of stored points that bodies lack and whose absence means nothing. */
  readonly lacking: number
  /** Number of new points of user files that are late: known only from now on. */
  readonly latePoints: number
  /** Number of points that might be stored, whether or not they already are. */
  readonly kept: number
}

/** Returns the file of a body by its position; a position without a file is an internal error. */
export function fileOf(files: readonly string[], body: number): string {
  const file = files[body]
  if (file === undefined) throw new RangeError(`no file of body ${body}`)
  return file
}

/** A body in the order of writing: by series as the file is sorted, then by the requested range. */
export interface Ordered {
  readonly body: Body
  /** Partition of the answer, and the position of that in the batch. */
  readonly part: PartJob
  readonly p: number
  /** Position in its partition, in the order of requests. */
  readonly ord: number
  /** Number of the series in the batch. */
  readonly rank: number
}

/** Returns the body at a position that SQL returned; a missing one is an internal error. */
export function bodyAt(ordered: readonly Ordered[], position: number): Ordered {
  const found = ordered[position]
  if (found === undefined) throw new RangeError(`no body stands at ${position}`)
  return found
}

/**
 * Sorts bodies as their points will be sorted: partition, asset, currency, exchange, network, params, then requested
 * range.
 */
export function order(parts: readonly PartJob[]): Ordered[] {
  const keyed = parts.flatMap((part, p) => part.bodies.map((body, ord) => ({ body, part, p, ord, key: sortKey(body) })))
  keyed.sort(
    (a, b) =>
      a.p - b.p ||
      Buffer.compare(a.key, b.key) ||
      (a.body.since ?? -Infinity) - (b.body.since ?? -Infinity) ||
      a.ord - b.ord,
  )
  let rank = -1
  return keyed.map(({ key, ...prepared }, i) => {
    const before = keyed[i - 1]
    if (before?.p !== prepared.p || Buffer.compare(before.key, key) !== 0) rank++
    return { ...prepared, rank }
  })
}

/** Returns the identity of a series for the columns of its points. */
export function identityOf({ asset, currency, exchange, network, params }: Body['series']): Identity {
  return { asset, currency, exchange, network, params: paramsText(params) }
}

/** Returns bytes that compare like the columns, NULL last. */
function sortKey({ series }: Body): Buffer {
  const identity = identityOf(series)
  const parts = identityColumns.map((name) => identity[name])
  return Buffer.concat(parts.flatMap((part) => (part === null ? [Buffer.of(0xff)] : [Buffer.from(part), Buffer.of(0)])))
}

/** Formats the further parameters of a series as JSON text with sorted keys; null if there are none. */
function paramsText(params: Readonly<Record<string, string>>): string | null {
  const entries = Object.entries(params).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return entries.length === 0 ? null : JSON.stringify(Object.fromEntries(entries))
}
