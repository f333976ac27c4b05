import { archivedState } from './index-queries.ts'
import { checksOf, runColumns } from './columns.ts'
import type { RunFacts } from './run-facts.ts'
import { type Verified, verifiedFields } from './entry.ts'
import { type Index, parseCell, checkedValue, rowOf } from './index-rows.ts'
import { count, flag, listOf, maybe, orNull, real, shape, text, wholeNumber } from '../../base/value-checks.ts'
import type { Instant, Micros } from '../../base/time.ts'
import type { Selection } from '../../catalog/series.ts'

const runOf = rowOf(checksOf(runColumns))
const costOf = rowOf({ requests: wholeNumber, credits: real, points: wholeNumber })

/** A run on record: its columns in `columns.ts`, null for unknown facts. */
export type RecordedRun = {
  readonly [K in keyof RunFacts]-?: undefined extends RunFacts[K] ? Exclude<RunFacts[K], undefined> | null : RunFacts[K]
}

/** A run on record, with its cost. */
export interface StoredRun extends RecordedRun {
  /** Requests that it sent, those repeated once. */
  readonly requests: number
  /** Credits of these requests. */
  readonly credits: number
  /** Points that these requests returned. */
  readonly points: number
}

/** Reads the newest runs, newest first. */
export function storedRuns(index: Index, most: number): StoredRun[] {
  const rows = index.statement(
    `SELECT runs.*, count(q.id) AS requests, coalesce(sum(credits), 0) AS credits, coalesce(sum(points), 0) AS points
     FROM (SELECT * FROM runs ORDER BY coalesce(started_at, 0) DESC, id DESC LIMIT ?) runs LEFT JOIN requests q
       ON q.run = runs.id
     GROUP BY runs.id ORDER BY coalesce(started_at, 0) DESC, runs.id DESC`,
  )
  return rows.all(most).map((row) => ({ ...withNulls(runOf(row)), ...costOf(row) }))
}

function withNulls(run: RunFacts): RecordedRun {
  const columns = Object.entries(run).map(([column, value]) => [column, value ?? null])
  // The compiler does not infer the keys through Object.fromEntries.
  return Object.fromEntries(columns) as RecordedRun
}

const instantsOf = rowOf({ about: orNull(text), at: real })

/** Lists the times at which fetches began, oldest first (microseconds). */
export function fetchStarts(index: Index): Micros[] {
  const rows = index.statement(
    "SELECT NULL AS about, started_at AS at FROM runs WHERE job = 'fetch' AND started_at IS NOT NULL ORDER BY " +
      'started_at',
  )
  return rows.all().map((row) => instantsOf(row).at)
}

/** Lists the times at which imports added something new, by metric, oldest first (microseconds). */
export function importArrivals(index: Index): Map<string, Micros[]> {
  const rows = index.statement(
    `SELECT plan ->> '$.series' AS about, committed_at AS at FROM versions JOIN runs ON runs.id = versions.run
     WHERE versions.job = 'import' AND plan ->> '$.series' IS NOT NULL ORDER BY committed_at`,
  )
  const found = rows.all().map(instantsOf)
  return new Map(
    [...Map.groupBy(found, ({ about }) => about ?? '')].map(([metric, arrivals]) => [
      metric,
      arrivals.map(({ at }) => at),
    ]),
  )
}

/** Whether the newest fetch belonged to `watch`, which requests whenever something is due. */
export function isWatched(index: Index): boolean {
  const row = index
    .statement(
      "SELECT command FROM runs WHERE job = 'fetch' AND started_at IS NOT NULL ORDER BY started_at DESC LIMIT 1",
    )
    .get()
  return /\bwatch\b/.test(String(row?.['command'] ?? ''))
}

const runEndOf = rowOf({ job: text, started_at: real, stopped_by: orNull(text), exit_code: orNull(wholeNumber) })

/** The end of a run. */
export interface StoredRunEnd {
  readonly job: string
  /** Microseconds. */
  readonly started_at: Micros
  /** Reason for ending early; null if it did not. */
  readonly stopped_by: string | null
  /** Exit code; null if the run did not record one. */
  readonly exit_code: number | null
}

/** Returns the end of the newest fetch that has ended; null if there is none. */
export function lastFetchEnd(index: Index): StoredRunEnd | null {
  const row = index
    .statement(
      `SELECT job, started_at, stopped_by, exit_code FROM runs WHERE job = 'fetch' AND ended_at IS NOT NULL
       ORDER BY started_at DESC LIMIT 1`,
    )
    .get()
  return row === undefined ? null : runEndOf(row)
}

/** Value of `stopped_by` for a registry run whose snapshot was held back. */
export const heldBackEnd = 'held_back'

/**
 * Returns the last snapshot of the registry that was held back; null if there is none, or if a snapshot or a run of the
 * same job was applied since. A failed run applied nothing.
 */
export function heldBackSnapshot(index: Index): StoredRunEnd | null {
  const row = index
    .statement(
      `SELECT job, started_at, stopped_by, exit_code FROM runs AS back WHERE stopped_by = ?1
       AND NOT EXISTS (SELECT 1 FROM runs later WHERE later.started_at > back.started_at AND later.exit_code = 0
         AND (later.job = back.job OR later.job = 'registry snapshot')) ORDER BY started_at DESC LIMIT 1`,
    )
    .get(heldBackEnd)
  return row === undefined ? null : runEndOf(row)
}

const publishedOf = rowOf({
  destination: text,
  at: real,
  exit_code: orNull(wholeNumber),
  missing: count,
  changed: count,
})

/** The last run of `publish` to one destination. */
export interface Publication {
  readonly destination: string
  /** Time of its end, or of its beginning if it has not ended; microseconds. */
  readonly at: Micros
  /** Exit code; null if the run has not ended. */
  readonly exit_code: number | null
  /** Files that were missing at the destination. */
  readonly missing: number
  /** Files that differed at the destination. */
  readonly changed: number
}

/** Reads the last publish to each destination. */
export function lastPublished(index: Index): Publication[] {
  const rows = index.statement(
    `SELECT plan ->> '$.destination' AS destination, coalesce(ended_at, started_at) AS at, exit_code,
       coalesce(actual ->> '$.missing', 0) AS missing, coalesce(actual ->> '$.changed', 0) AS changed, max(started_at)
     FROM runs WHERE job = 'publish' AND plan ->> '$.destination' IS NOT NULL GROUP BY 1 ORDER BY 1`,
  )
  return rows.all().map(publishedOf)
}

const copyOf = rowOf({ job: text, destination: text, version: count, lake: count })

/** The copy at one destination of `publish` or `backup`. */
export interface LakeCopy {
  /** `publish` or `backup`. */
  readonly job: string
  readonly destination: string
  /** The newest version that a complete run wrote to the destination. */
  readonly version: number
  /** Whether the journal was copied, too, as 1 or 0. */
  readonly lake: number
}

/** Reads the copies at the destinations of `publish` and `backup`. */
export function storedCopies(index: Index): LakeCopy[] {
  const rows = index.statement(
    `SELECT job, plan ->> '$.destination' AS destination, max(plan ->> '$.version') AS version,
       max(coalesce(plan ->> '$.lake', 0)) AS lake
     FROM runs WHERE job IN ('publish', 'backup') AND exit_code = 0 AND plan ->> '$.destination' IS NOT NULL
     GROUP BY 1, 2 HAVING count(plan ->> '$.version') > 0 ORDER BY 2, 1`,
  )
  return rows.all().map(copyOf)
}

const totalsOf = rowOf({ total: count, credits: real, day: count, day_credits: real, busiest_minute: count })

/** Counts of the requests on record. */
export interface RequestTotals {
  /** Requests in all, archived ones included. */
  readonly total: number
  /** Credits of all requests. */
  readonly credits: number
  /** Requests of the last 24 hours. */
  readonly day: number
  /** Credits of the last 24 hours. */
  readonly day_credits: number
  /**
   * Requests for points in the busiest minute of the last 24 hours, repeats included. The configuration sets their
   * pace; metadata and listings have their own.
   */
  readonly busiest_minute: number
}

/** Counts requests and credits in all and in the 24 hours before `now`. */
export function requestTotals(index: Index, now: Micros): RequestTotals {
  const rows = index.statement(
    `SELECT count(*) + ?1 AS total, coalesce(sum(credits), 0) + ?2 AS credits,
       count(*) FILTER (WHERE asked_at >= ?3) AS day,
       coalesce(sum(credits) FILTER (WHERE asked_at >= ?3), 0) AS day_credits,
       (SELECT coalesce(max(n), 0) FROM (SELECT sum(attempts) AS n FROM requests
         WHERE api = 'metrics' AND series IS NOT NULL AND asked_at >= ?3
           GROUP BY asked_at / 60000000)) AS busiest_minute
     FROM requests`,
  )
  const archivedTotals = archivedState(index)
  return totalsOf(rows.get(archivedTotals.requests, archivedTotals.credits, now - 86_400_000_000) ?? {})
}

const byOutcomeOf = rowOf({ api: text, outcome: text, requests: count })

/** Requests to one API that ended in the same way. */
export interface OutcomeCount {
  /** `metrics` or `registry`. */
  readonly api: string
  /** The kind of outcome, such as `body` or `refused`. */
  readonly outcome: string
  /** Number of requests; a repeated one counts once. */
  readonly requests: number
}

/** Counts the requests on record by API and outcome. */
export function requestsByOutcome(index: Index): OutcomeCount[] {
  const rows = index.statement(
    'SELECT api, outcome, count(*) AS requests FROM requests GROUP BY api, outcome ORDER BY api, outcome',
  )
  return rows.all().map(byOutcomeOf)
}

const verifiedOf = rowOf(verifiedFields)

/**
 * Reads every window that was requested again, by series, oldest first; `result` shows whether an answer was compared.
 */
export function storedVerified(index: Index): Map<string, Verified[]> {
  const rows = index.statement('SELECT series, since, until, at, result FROM verified ORDER BY at').iterate()
  return Map.groupBy(Array.from(rows, verifiedOf), ({ series }) => series)
}

const verifiedTotalsOf = rowOf({ windows: count, differing: count, refused: count, last_at: orNull(real) })

/** Counts of the windows that `verify` has compared. */
export interface VerifiedTotals {
  /** Windows that were requested again and compared. */
  readonly windows: number
  /** Series in which at least one window differed. */
  readonly differing: number
  /** Series whose last request for stored history the provider refused. */
  readonly refused: number
  /** Time of the last comparison, microseconds; null if there was none. */
  readonly last_at: Micros | null
}

/** Counts the windows that were requested again and compared. */
export function verifiedTotals(index: Index): VerifiedTotals {
  const rows = index.statement(
    `SELECT count(*) AS windows, max(at) AS last_at,
       (SELECT count(*) FROM (SELECT result, max(at) FROM verified GROUP BY series)
         WHERE result = 'refused') AS refused,
       count(DISTINCT series) FILTER (WHERE result NOT IN ('identical', 'appended', 'revised')) AS differing
     FROM verified WHERE result NOT IN ('refused', 'unanswered')`,
  )
  return verifiedTotalsOf(rows.get() ?? {})
}

const change = shape({ files: count, rows: count, bytes: count })

const changesOf = rowOf({
  version: count,
  committed_at: count,
  job: text,
  run: orNull(text),
  points_added: real,
  added: change,
  replaced: change,
  removed: change,
  violations: count,
  stamps: count,
  rules: count,
})

/** Size of a set of files. */
export interface FileTotals {
  readonly files: number
  readonly rows: number
  readonly bytes: number
}

/** The changes of one commit. */
export interface VersionChange {
  readonly version: number
  /** Microseconds. */
  readonly committed_at: Micros
  readonly job: string
  /** Name of the run that made it; null for entries that name none. */
  readonly run: string | null
  /** Points that it added; negative if it lost more than it added. */
  readonly points_added: number
  /** Files that entered the view. */
  readonly added: FileTotals
  /** Files that left the view: other files of the same version contain their rows. */
  readonly replaced: FileTotals
  /** Files whose bytes a vacuum removed. */
  readonly removed: FileTotals
  /** Violations that it recorded. */
  readonly violations: number
  /** Stamps that it recorded. */
  readonly stamps: number
  /** Whether it put new availability rules in force. */
  readonly rules: boolean
}

/** Lists the files that every commit added, replaced and removed, oldest first. */
export function versionChanges(index: Index): VersionChange[] {
  const changes = (of: string): string =>
    `LEFT JOIN (SELECT ${of}_in AS version, json_object('files', count(*), 'rows', sum(rows), 'bytes',
       sum(bytes)) AS ${of}
       FROM path GROUP BY 1) USING (version)`
  const counted = (table: string, column = 'added_version'): string =>
    `LEFT JOIN (SELECT ${column} AS version, count(*) AS ${table} FROM ${table} GROUP BY 1) USING (version)`
  const nothing = `'{"files":0,"rows":0,"bytes":0}'`
  // A path counts once, when it was first added or removed, under however many labels it is listed.
  const rows = index.statement(
    `WITH path AS MATERIALIZED (SELECT min(added_version) AS added_in, min(removed_version) AS replaced_in,
         min(dropped_version) AS removed_in, max(rows) AS rows, max(bytes) AS bytes FROM files GROUP BY path)
     SELECT version, committed_at, job, run, points_added, coalesce(added, ${nothing}) AS added,
       coalesce(replaced, ${nothing}) AS replaced, coalesce(removed, ${nothing}) AS removed,
       coalesce(violations, 0) AS violations, coalesce(stamps, 0) AS stamps, coalesce(rules, 0) AS rules
     FROM versions ${['added', 'replaced', 'removed'].map(changes).join(' ')}
       ${counted('violations')} ${counted('stamps', 'version')} ${counted('rules', 'version')} ORDER BY version`,
  )
  return rows.all().map((row) => {
    const { rules, ...rest } = changesOf(row)
    return { ...rest, rules: rules > 0 }
  })
}

/** Key under which a run records how many requests of its plan it did not send; from then on coverage records them. */
export const notAskedKey = 'not_requested'

const texts = listOf(text)
const some = maybe(texts)
const selectionFields = {
  assets: texts,
  paths: some,
  intervals: some,
  currencies: some,
  exchanges: some,
  networks: some,
}
const markFields = {
  selections: listOf(shape({ ...selectionFields, since: maybe(real), until: maybe(real), exact: maybe(flag) })),
  /** Whether everything stored in the lake was also selected. */
  held: flag,
}

/** Converts the selections of a run to the form that its plan records, so that a later run can plan them again. */
export function selectionMarks(selections: readonly Selection[]) {
  const named = selections.filter(({ held: isStored }) => isStored !== true)
  return {
    selections: named.map((selection) =>
      Object.fromEntries(Object.entries(selection).filter(([, value]) => value !== undefined)),
    ),
    held: named.length < selections.length,
  }
}

/**
 * Returns the selections of fetches that were killed, or that ended before the provider answered, since the last fetch
 * that recorded the unrequested part of its plan. Excludes the running fetch `but`, and runs that a wrong clock dated
 * later than `now`. `since` is the start of the first of them, microseconds.
 */
export function pendingSelections(index: Index, now: Instant, but: string | null = null) {
  const rows = index.statement(
    `SELECT plan, started_at FROM runs WHERE job = 'fetch' AND plan ->> '$.selections' IS NOT NULL
       AND id IS NOT ?1 AND started_at <= ?2
     AND started_at > coalesce((SELECT max(started_at) FROM runs
       WHERE job = 'fetch' AND actual ->> '$.${notAskedKey}' IS NOT NULL AND started_at <= ?2), 0)
     ORDER BY started_at`,
  )
  const found = rows.all(but, (now + 1) * 1_000_000)
  const marks = found.map(({ plan }) => checkedValue(shape(markFields), parseCell(plan, 'plan'), 'plan'))
  const unique = new Map(
    marks.flatMap(({ selections }) => selections).map((selection) => [JSON.stringify(selection), selection]),
  )
  const since = found[0] === undefined ? null : Number(found[0]['started_at'])
  return { selections: [...unique.values()], held: marks.some(({ held }) => held), since }
}

/** Returns the id of the newest fetch that has not ended; null if there is none. */
export function runAtWork(index: Index): string | null {
  const row = index
    .statement("SELECT id FROM runs WHERE job = 'fetch' AND ended_at IS NULL ORDER BY started_at DESC")
    .get()
  return row === undefined ? null : String(row['id'])
}
