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

/** One successful answer: a spool file and what was asked. */
export interface Body {
  /** The decompressed JSON body. */
  readonly file: string
  /** What it is made of, where somebody has looked already. */
  readonly lexed?: Lexed | undefined
  /** The id of the request that brought it. */
  readonly request: string
  readonly series: Series
  /** The asked range, half-open, null where unbounded. Points outside are compared, never stored. */
  readonly since: Instant | null
  readonly until: Instant | null
  readonly askedAt: Instant
  /** Points whose interval ends, or whose stated instant lies, after this instant are not stored. */
  readonly horizon: Instant
  /** Earlier successful answers of this series. */
  readonly prior: readonly { readonly since: Instant; readonly until: Instant; readonly askedAt: Instant }[]
  /**
   * Of rows that bring the instant from which they were known: when the series was last imported. What that import
   * lacked although it was known by then is late.
   */
  readonly lastImport?: Instant | undefined
  /** Differences of its series that are on record and that the last answer about them showed. */
  readonly standing?: readonly Standing[] | undefined
  /** What its series lost with files. */
  readonly lost?: Lost | undefined
}

/** A file that is there, with the first and last `t` inside. */
export interface Existing {
  readonly path: string
  readonly min_t: Instant | null
  readonly max_t: Instant | null
}

/** What a batch brings to one partition, and by what it is judged. */
export interface ConvertPart {
  readonly metric: string
  /** What the provider calls it, where that is something else. */
  readonly wireName?: string | undefined
  readonly interval: Interval
  readonly rules: readonly Rule[]
  /** `fixed_range` compares only with answers to the very same range, `off` never. */
  readonly overlap: 'exact' | 'fixed_range' | 'off'
  /**
   * That differing values are vintages: those of answers (`observed`) are known from their `computed_at` where that
   * came later than what was held, else from when they were seen; `told`: the source dates each, and one t may come
   * several times.
   */
  readonly revisable?: 'observed' | 'told' | undefined
  /** In the order of asking: where two bring the same point, the first wins. */
  readonly bodies: readonly Body[]
  /** The live files of the partition alone. */
  readonly existing: readonly Existing[]
  /** Temporary path of the Parquet file to write. */
  readonly out: string
}

/** What holds for all partitions of a batch. */
export interface ConversionContext {
  readonly recent: RecentJob
  /** What `t` marks at this provider; the lake always stores the start. */
  readonly timestamp: 'interval_start' | 'interval_end'
  /** The day on which weeks begin; Monday unless said. */
  readonly weekStart?: Weekday
  /** The instant of the coming commit, Unix microseconds. */
  readonly observedAt: bigint
  /** Key-value pairs for the footer. */
  readonly metadata: Readonly<Record<string, string>>
  readonly during?: During | undefined
  /** Who stages points that are no answers of a provider. */
  readonly reader?: Reader | undefined
}

/** What one body holds once it is staged. */
export interface Staged {
  readonly points: number
  /** How many have a computed_at. */
  readonly told: number
  /** Whether all values and instants are what they should be. */
  readonly sound: boolean
  /** Whether any value is -0.0. */
  readonly minusZero: boolean
  /** Whether some t may stand twice. */
  readonly doubled: boolean
  /** Whether each t stands behind the one before. */
  readonly rising?: boolean
  readonly first: number
  readonly last: number
}

/** The outcome of staging, by position of the body in the list. */
export interface Loaded {
  readonly staged: ReadonlyMap<number, Staged>
  readonly poison: ReadonlyMap<number, string>
  /** Whether they stand in the order of the files already; else that is found out. */
  readonly sorted?: boolean
  /** Whether that is so however many threads read them, and all are of one partition with one rule, asked at once. */
  readonly alike?: boolean
}

/** Stages points that come from somewhere else than spool files. */
export interface Reader {
  /** Makes the view `staged_points` of a session, see `staged_points.sql`, of which no row is poison. */
  readonly stage: (session: Engine, ordered: readonly Ordered[]) => Promise<Loaded>
  /** Drops what that made, once it stands elsewhere. */
  readonly unload: (session: Engine) => Promise<void>
  /** Whether another instant for the same value is a contradiction. */
  readonly clocked: boolean
}

/** Everything that one commit converts. */
export interface ConvertJob extends ConversionContext {
  readonly parts: readonly ConvertPart[]
  /** From so many new points on, what a partition gets is written to a file of its own; some thousands unless said. */
  readonly portion?: number
}

/** Where small portions of all partitions go together. */
interface RecentJob {
  /** The live recent files. */
  readonly existing: readonly Existing[]
  /** Temporary path of the Parquet file to write. */
  readonly out: string
}

/** One partition under the circumstances of its batch. */
export interface PartJob extends ConversionContext, ConvertPart {}

/** What one body brought inside the asked range. */
export interface Tally {
  /** Points that may be stored, held before or not, and their first and last `t`. */
  readonly kept: number
  readonly first: Instant | null
  readonly last: Instant | null
  /** New points that this body brought, and their first and last `t`. */
  readonly added: number
  readonly addedFirst: Instant | null
  readonly addedLast: Instant | null
  /** New points whose integer a double does not hold: its text is in `extra`. */
  readonly beyond: number
  /** New points that are further vintages of points that had a value. */
  readonly vintages?: number
}

/** What a body brought that brought nothing. */
export const emptyTally: Tally = {
  kept: 0,
  first: null,
  last: null,
  added: 0,
  addedFirst: null,
  addedLast: null,
  beyond: 0,
}

/** What became of one body. */
export interface BodyResult extends Omit<Tally, 'kept'> {
  readonly request: string
  readonly series: string
  /** `empty`: the array held nothing. `poison`: nothing of the body was used. */
  readonly state: 'ok' | 'empty' | 'poison'
  /** Why it is poison. */
  readonly reason: string | null
  /** Elements of the array; 0 for poison. */
  readonly points: number
  /**
   * Finished intervals of the asked range without a point, half-open; from the first point on where `since` is null.
   */
  readonly missing: readonly Window[]
}

/** The written file: what the journal wants to know of it. */
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

/** A held point of which a difference is on record, and what the last answer about it says of that; null: nothing. */
export interface ConflictStatus {
  readonly standing: Standing
  readonly t: Instant
  readonly shown: boolean | null
}

/** What a conversion gives; nothing of it is committed yet. */
export interface ConvertResult {
  /** By partition; null where it gets no file of its own: then there is none at `out`. */
  readonly files: readonly (WrittenFile | null)[]
  /** The recent file; null where no small portion is new. */
  readonly recent: WrittenRecent | null
  /** One a body, partition by partition, each in the order of asking. */
  readonly bodies: readonly BodyResult[]
  readonly violations: readonly Violation[]
  readonly statuses: readonly ConflictStatus[]
  readonly findings: readonly Finding[]
  readonly regained: readonly Regained[]
  /** How many held points bodies lack whose absence says nothing. */
  readonly lacking: number
  /** How many new points of user files are late: known only from now on. */
  readonly latePoints: number
  /** How many points might be stored, held before or not. */
  readonly kept: number
}

/** The file of a body by its place: what has none is no body. */
export function fileOf(files: readonly string[], body: number): string {
  const file = files[body]
  if (file === undefined) throw new RangeError(`no file of body ${body}`)
  return file
}

/** A body in the order of writing: by series as the file is sorted, then by what was asked. */
export interface Ordered {
  readonly body: Body
  /** Partition of the answer, and the position of that in the batch. */
  readonly part: PartJob
  readonly p: number
  /** Position in its partition: the order of asking. */
  readonly ord: number
  /** Number of the series in the batch. */
  readonly rank: number
}

/** The body of a position, as SQL tells it: there is one, or something is very wrong. */
export function bodyAt(ordered: readonly Ordered[], position: number): Ordered {
  const found = ordered[position]
  if (found === undefined) throw new RangeError(`no body stands at ${position}`)
  return found
}

/**
 * Sorts bodies as their points will be sorted: partition, asset, currency, exchange, network, params, then asked range.
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

/** A series as the columns of its points name it. */
export function identityOf({ asset, currency, exchange, network, params }: Body['series']): Identity {
  return { asset, currency, exchange, network, params: paramsText(params) }
}

/** Bytes that compare like the columns do, NULL last. */
function sortKey({ series }: Body): Buffer {
  const identity = identityOf(series)
  const parts = identityColumns.map((name) => identity[name])
  return Buffer.concat(parts.flatMap((part) => (part === null ? [Buffer.of(0xff)] : [Buffer.from(part), Buffer.of(0)])))
}

/** The further parameters of a series as JSON text with sorted keys; null where there are none. */
function paramsText(params: Readonly<Record<string, string>>): string | null {
  const entries = Object.entries(params).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return entries.length === 0 ? null : JSON.stringify(Object.fromEntries(entries))
}
