import {
  type Interval,
  type Micros,
  unshownInterval,
  type Weekday,
  weekdayAt,
  weeklyIntervals,
} from '../../base/time.ts'
import { refusedOfHeld } from './refusals.ts'
import { windowAnswerOf, windowColumnNames } from './apply.ts'
import { checksOf, valueTypeColumns, versionColumns, violationColumns } from './columns.ts'
import { acceptedToo, passedToo } from './differences.ts'
import {
  type CoverageRow,
  type FileEntry,
  fileFields,
  type Json,
  ruleFields,
  type Rules,
  seriesFields,
  type SeriesRow,
  type Stamp,
  stampFields,
  type ValueType,
  valueTypeFields,
  violationFields,
  type WindowAnswer,
} from './entry.ts'
import { type Index, type IndexCell, parseCell, checkedValue, read, rowOf } from './index-rows.ts'
import { count, interval, orNull, real, shape, type Shaped, text, type ValueCheck } from '../../base/value-checks.ts'
import { type ArchivedState, fromState } from './archived-rows.ts'

const storedFile = rowOf({
  ...fileFields,
  added_version: count,
  removed_version: orNull(count),
  dropped_version: orNull(count),
})

/** A file that the journal lists, with the versions at which it entered and left the view. */
export interface StoredFile extends FileEntry {
  /** The version whose commit added it to the view. */
  readonly added_version: number
  /** The version whose commit took it out of the view; null while it is in the view. */
  readonly removed_version: number | null
  /** The version whose commit gave up its bytes (vacuum); null while they are on disk. */
  readonly dropped_version: number | null
}

/**
 * Lists the files of the view, of one table if it is named, in a fixed order; with a version, the files that it listed.
 */
export function liveFiles(
  index: Index,
  { table, version }: { readonly table?: string; readonly version?: number } = {},
): StoredFile[] {
  const then = 'added_version <= ? AND (removed_version IS NULL OR removed_version > ?)'
  const where = version === undefined ? 'removed_version IS NULL' : then
  const ofTable = table === undefined ? '' : ' AND tbl = ?'
  const order = 'ORDER BY tbl, metric, interval, added_version, path, label'
  const values = [version, version, table].filter((value) => value !== undefined)
  const rows = index.statement(`SELECT ${ofFile} FROM files WHERE ${where}${ofTable} ${order}`).all(...values)
  return rows.map(storedFile)
}

/** Lists every file whose bytes should be on disk, live or superseded. */
export function filesOnDisk(index: Index): StoredFile[] {
  return index
    .statement(`SELECT ${ofFile} FROM files WHERE dropped_version IS NULL ORDER BY path, label`)
    .all()
    .map(storedFile)
}

/** Whether the bytes of a file should be on disk now. */
export function isOnDisk(index: Index, path: string): boolean {
  return index.statement('SELECT 1 FROM files WHERE path = ? AND dropped_version IS NULL').get(path) !== undefined
}

/** Lists the files that a merged file replaced when it was added; empty if it is not a merged file. */
export function mergedFrom(index: Index, merged: StoredFile): StoredFile[] {
  const { table, label, metric, interval, added_version: version } = merged
  const removedFiles = liveFiles(index, { table, version: version - 1 }).filter(
    (file) => file.removed_version === version,
  )
  const inputs = removedFiles.filter(
    (file) => file.label === label && file.metric === metric && file.interval === interval,
  )
  return inputs.reduce((rows, file) => rows + file.rows, 0) === merged.rows ? inputs : []
}

/** Lists the originals of a merged file in its place; only for an index that no other process uses. */
export function listInstead(index: Index, merged: StoredFile, originals: readonly StoredFile[]): void {
  index.statement('DELETE FROM files WHERE path = ?').run(merged.path)
  const list = index.statement('UPDATE files SET removed_version = NULL WHERE path = ?')
  for (const { path } of originals) list.run(path)
}

const ofFile = '*, tbl AS "table"'

const seriesOf = rowOf({ ...seriesFields, points: count, first_t: orNull(real), last_t: orNull(real) })

/** A series with the count and the bounds of its stored points. */
export interface StoredSeries extends SeriesRow {
  readonly points: number
  /** The first stored `t`, in seconds; null if no point is stored. */
  readonly first_t: number | null
  /** The last stored `t`, in seconds; null if no point is stored. */
  readonly last_t: number | null
}

/** Returns the interval under which the points of a series are stored. */
export function storedInterval({ interval, settled }: Pick<StoredSeries, 'interval' | 'settled'>): Interval {
  return interval ?? settled ?? unshownInterval
}

/** Reads every series (or the named ones) by id, with the count and the bounds of its stored points. */
export function storedSeries(index: Index, ids?: readonly string[]): Map<string, StoredSeries> {
  const bySeriesId = index.statement('SELECT * FROM series WHERE id = ?')
  const rows = ids
    ? ids.flatMap((id) => bySeriesId.all(id))
    : index.statement('SELECT * FROM series ORDER BY n').iterate()
  const found = new Map<string, StoredSeries>()
  for (const row of rows) {
    const series = seriesOf(row)
    found.set(series.id, series)
  }
  return found
}

const plannedOf = rowOf({ id: text, metric: text, points: count, settled: interval })

/** The facts about one series that planning reads: its live coverage and the interval of its stored points. */
interface StoredAnswers {
  readonly metric: string
  /** Stored points. */
  readonly points: number
  /** The interval under which the points are stored; null while none shows it. */
  readonly settled: Interval | null
  /** The live coverage ranges, sorted and disjoint. */
  readonly answers: WindowAnswer[]
}

/**
 * Loads the live coverage of every series by id, each list sorted and disjoint; in one pass, because planning waits for
 * it.
 */
export function storedAnswers(index: Index): Map<string, StoredAnswers> {
  const byNumber = new Map<IndexCell | undefined, StoredAnswers>()
  const bySeries = new Map<string, StoredAnswers>()
  for (const row of index.statement('SELECT n, id, metric, points, settled FROM series').iterate()) {
    const { id, ...plain } = plannedOf(row)
    const answersOfSeries = { ...plain, answers: [] }
    byNumber.set(row['n'], answersOfSeries)
    bySeries.set(id, answersOfSeries)
  }
  const rows = index.statement(
    `SELECT series AS n, ${windowColumnNames.join(', ')} FROM coverage
     WHERE removed_version IS NULL ORDER BY series, since`,
  )
  for (const row of rows.iterate()) byNumber.get(row['n'])?.answers.push(windowAnswerOf(row))
  return bySeries
}

/** Loads the live coverage of every series (or of the named ones), each list sorted and disjoint. */
export function loadCoverage(index: Index, series?: readonly string[]): Map<string, CoverageRow[]> {
  if (series === undefined) {
    const answered = [...storedAnswers(index)].filter(([, { answers }]) => answers.length > 0)
    return new Map(answered.map(([id, { answers }]) => [id, answers.map((answer) => ({ series: id, ...answer }))]))
  }
  const liveRows = index.statement(
    `SELECT ${windowColumnNames.map((name) => `c.${name}`).join(', ')} FROM series s JOIN coverage c ON c.series = s.n
     WHERE s.id = ? AND c.removed_version IS NULL ORDER BY c.since`,
  )
  return new Map(
    series.map((id) => [id, Array.from(liveRows.iterate(id), (row) => ({ series: id, ...windowAnswerOf(row) }))]),
  )
}

const violationOf = rowOf({
  ...violationFields,
  added_version: count,
  acknowledged_at: orNull(real),
  why: orNull(text),
  reverted_at: orNull(real),
  incident: orNull(text),
  until: orNull(real),
  points: count,
})

/** A violation on record: a value of the provider that contradicts the stored one, with its outcome. */
export interface StoredViolation {
  /** Id of the series. */
  readonly series: string
  /** The point's `t`, or the start of a window whose points were all missing; seconds. */
  readonly t: number
  readonly kind: string
  /** The stored value as JSON text; null if none is named. */
  readonly stored: string | null
  /** The provider's value as JSON text; null if it sent none. */
  readonly offered: string | null
  /** Time at which the stored value was received, microseconds; null if unknown. */
  readonly stored_at: Micros | null
  /** Time at which the contradicting answer was received, microseconds. */
  readonly offered_at: Micros
  /** Id of the request that showed it; null for imported data. */
  readonly request: string | null
  /** The version whose commit recorded it. */
  readonly added_version: number
  /** Time at which a person acknowledged it, microseconds; null if nobody has. */
  readonly acknowledged_at: Micros | null
  /** The reason that the person gave; null if nobody has acknowledged it. */
  readonly why: string | null
  /** Time at which it was reverted upstream (answers no longer show it), microseconds; null while they still do. */
  readonly reverted_at: Micros | null
  /** Id of the incident to which it belongs; null for a single violation. */
  readonly incident: string | null
  /** The end of a half-open window whose points were all missing, in seconds; null for a single point. */
  readonly until: number | null
  /** Points that it concerns. */
  readonly points: number
}

/** Reads the violations on record, in the order of their commits. */
export function storedViolations(index: Index, series?: string): StoredViolation[] {
  const where = series === undefined ? '' : 'WHERE s.id = ?'
  const rows = index
    .statement(
      `SELECT s.id AS series, ${Object.keys(violationColumns)
        .map((name) => `v.${name}`)
        .join(', ')}, v.added_version,
         a.at AS acknowledged_at, a.why, w.committed_at AS reverted_at, nullif(v.incident, '') AS incident,
         nullif(v.until, 0) AS until, v.points
       FROM violations v JOIN series s ON s.n = v.series LEFT JOIN accepted a ON ${acceptedToo}
         LEFT JOIN passed p ON ${passedToo} LEFT JOIN versions w ON w.version = p.added_version ${where}
       ORDER BY v.added_version, s.n, v.t, v.kind`,
    )
    .all(...(series === undefined ? [] : [series]))
  return rows.map(violationOf)
}

/** Reads a named piece of committed state (the registry's cursor …); undefined if it was never set. */
export function storedState(index: Index, key: string): Json | undefined {
  const row = index.statement('SELECT value FROM state WHERE key = ?').get(key)
  return row === undefined ? undefined : parseCell(row['value'], key)
}

/**
 * Reads every piece of committed state whose name begins with a prefix, by the rest of its name, with the time of the
 * commit that set it.
 */
export function storedStates<T>(
  index: Index,
  prefix: string,
  check: ValueCheck<T>,
): { key: string; value: T; at: Micros }[] {
  const rows = index
    .statement(
      'SELECT key, value, committed_at FROM state JOIN versions USING (version) WHERE substr(key, 1, ?) = ? ' +
        'ORDER BY key',
    )
    .all(prefix.length, prefix)
  return rows.map(({ key, value, committed_at }) => ({
    key: String(key).slice(prefix.length),
    value: checkedValue(check, parseCell(value, prefix), prefix),
    at: Number(committed_at),
  }))
}

/** Returns the day on which the lake's weeks begin, as its weekly series show; Monday while it has none. */
export function storedWeekStart(index: Index): Weekday {
  const names = weeklyIntervals.map(() => '?').join(', ')
  const weekly = `SELECT first_t FROM series
    WHERE coalesce(settled, interval) IN (${names}) AND first_t IS NOT NULL LIMIT 1`
  const row = index.statement(weekly).get(...weeklyIntervals)
  return row === undefined ? 'monday' : weekdayAt(Number(row['first_t']))
}

/** Returns the extent to which the ledger's rows have moved to files. */
export function archivedState(index: Index): ArchivedState {
  return fromState((key) => storedState(index, key)) ?? { before: 0, requests: 0, credits: 0 }
}

/**
 * Reads a named fact that makes no version (time of the last poll …), with the time at which it was noted; undefined if
 * there is none.
 */
export function storedPassing(index: Index, key: string): { value: Json; at: Micros } | undefined {
  const row = index.statement('SELECT value, at FROM soft WHERE key = ?').get(key)
  return row === undefined ? undefined : { value: parseCell(row['value'], key), at: read(real, row['at'], key) }
}

/** Reads the facts noted in passing whose names begin with a prefix, by the rest of their names. */
export function storedPassingFrom(index: Index, prefix: string): Map<string, { value: Json; at: Micros }> {
  const rows = index.statement('SELECT key, value, at FROM soft WHERE substr(key, 1, length(?1)) = ?1').all(prefix)
  return new Map(
    rows.map((row) => {
      const key = read(text, row['key'], prefix)
      return [key.slice(prefix.length), { value: parseCell(row['value'], key), at: read(real, row['at'], key) }]
    }),
  )
}

const rulesOf = rowOf(ruleFields)

/** Reads the rules in force at a version (the newest by default); null before the first. */
export function storedRules(index: Index, version: number = Number.MAX_SAFE_INTEGER): Rules | null {
  const row = index
    .statement('SELECT digest, rules FROM rules WHERE version <= ? ORDER BY version DESC LIMIT 1')
    .get(version)
  return row === undefined ? null : rulesOf(row)
}

const versionFields = checksOf(versionColumns)
const versionOf = rowOf(versionFields)

/** One commit as `versions` shows it: its columns in `columns.ts`. */
export type StoredVersion = Shaped<typeof versionFields>

/** Reads every commit, oldest first. */
export function storedVersions(index: Index): StoredVersion[] {
  return index.statement('SELECT * FROM versions ORDER BY version').all().map(versionOf)
}

/** Returns the newest version committed at or before a timestamp; 0 if there is none. */
export function versionAt(index: Index, at: Micros): number {
  const row = index.statement('SELECT max(version) AS version FROM versions WHERE committed_at <= ?').get(at)
  return Number(row?.['version'] ?? 0)
}

const stampOf = rowOf(stampFields)

/** Reads every stamp, oldest first. */
export function storedStamps(index: Index): Stamp[] {
  return index.statement('SELECT * FROM stamps ORDER BY version, id').all().map(stampOf)
}

const summaryOf = rowOf({
  version: count,
  series: count,
  points: real,
  files: count,
  bytes: real,
  windows: shape({ covered: count, empty: count, unsupported: count, failed: count, not_requested: count }),
  gaps: count,
  pending: count,
  violations: count,
  incidents: count,
  acknowledged: count,
  reverted: count,
  findings: count,
  newest: orNull(real),
})

/** Counts of the newest version in the index. */
export interface LakeSummary {
  /** The newest version; 0 before the first commit. */
  readonly version: number
  /** Number of series with points. */
  readonly series: number
  /** Stored points of all series. */
  readonly points: number
  /** Files in the view, each path once. */
  readonly files: number
  /** Bytes of these files. */
  readonly bytes: number
  /** Coverage ranges by state: `covered`, `empty`, `unsupported`, `failed`, `not_requested`. */
  readonly windows: {
    readonly covered: number
    readonly empty: number
    readonly unsupported: number
    readonly failed: number
    readonly not_requested: number
  }
  /** Coverage ranges with missing points, and refused ones of series that have points. */
  readonly gaps: number
  /** Coverage ranges whose points the provider has not published yet. */
  readonly pending: number
  /** Open violations; an incident counts as one. */
  readonly violations: number
  /** Incidents among the open violations. */
  readonly incidents: number
  /** Acknowledged violations. */
  readonly acknowledged: number
  /** Violations that were reverted upstream before anybody acknowledged them. */
  readonly reverted: number
  /** Contradictions of clocks. */
  readonly findings: number
  /** The largest stored `t`, in seconds; null if no point is stored. */
  readonly newest: number | null
}

/** Counts the contents of the newest version in the index. */
export function summary(index: Index): LakeSummary {
  const rows = index.statement(
    `SELECT (SELECT coalesce(max(version), 0) FROM versions) AS version, series.*, files.*, windows.*, violations.*,
       (SELECT count(*) FROM clock_findings) AS findings
     FROM (SELECT count(*) AS series, coalesce(sum(points), 0) AS points, max(last_t) AS newest FROM series) series,
       (SELECT count(*) AS files, coalesce(sum(bytes), 0) AS bytes FROM
         (SELECT max(bytes) AS bytes FROM files WHERE removed_version IS NULL GROUP BY path)) files,
       (SELECT json_object('covered', count(*) FILTER (WHERE state = 'covered'),
           'empty', count(*) FILTER (WHERE state = 'empty'),
           'unsupported', count(*) FILTER (WHERE state = 'unsupported'),
           'failed', count(*) FILTER (WHERE state = 'failed'),
           'not_requested', count(*) FILTER (WHERE state = 'not requested')) AS windows,
         count(*) FILTER (WHERE reason = 'gap' OR ${refusedOfHeld}) AS gaps,
         count(*) FILTER (WHERE reason = 'pending') AS pending FROM coverage WHERE removed_version IS NULL) windows,
       (SELECT open AS violations, incidents, acknowledged, unacknowledged - open AS reverted FROM
         (SELECT count(DISTINCT one) FILTER (WHERE a.id IS NULL AND p.series IS NULL) AS open,
            count(DISTINCT nullif(v.incident, '')) FILTER (WHERE a.id IS NULL AND p.series IS NULL) AS incidents,
            count(DISTINCT one) FILTER (WHERE a.id IS NOT NULL) AS acknowledged,
            count(DISTINCT one) FILTER (WHERE a.id IS NULL) AS unacknowledged
          FROM (SELECT *, CASE incident WHEN '' THEN json_array(series, t, kind, offered_key) ELSE incident END AS one
            FROM violations) v LEFT JOIN passed p ON ${passedToo} LEFT JOIN accepted a ON ${acceptedToo})) violations`,
  )
  return summaryOf(rows.get() ?? {})
}

const typeOf = rowOf(valueTypeFields)

/** Reads the recorded types of the values of these metrics. */
export function storedValueTypes(index: Index, metrics: readonly string[]): ValueType[] {
  const valueTypeRow = index.statement(
    `SELECT ${Object.keys(valueTypeColumns).join(', ')}, nullif(after_type, '') AS after FROM value_types
     WHERE metric = ? AND removed_version IS NULL ORDER BY path, type, after_type, added_version`,
  )
  return metrics.flatMap((metric) => valueTypeRow.all(metric).map(typeOf))
}

/** Counts the known changes of the types of values: the rows about metrics in the view `schema_changes`. */
export function countValueChanges(index: Index): number {
  const [row] = index
    .statement(
      `WITH seen AS (
         SELECT metric, path, parent, type, after_type, min(available_at) AS at FROM value_types
         WHERE removed_version IS NULL GROUP BY metric, path, parent, type, after_type
       ), firsts AS (SELECT metric, path, parent, min(at) AS at FROM seen WHERE after_type = ''
         GROUP BY metric, path, parent)
       SELECT (SELECT count(*) FROM firsts f JOIN seen o ON o.metric = f.metric AND o.path = f.parent
           AND o.type = 'object' AND o.after_type = '' WHERE f.at > o.at)
         + (SELECT count(*) FROM (SELECT at, min(at) OVER (PARTITION BY metric, path) AS first FROM seen
           WHERE after_type = '' AND type <> 'null') WHERE at > first)
         + (SELECT count(*) FROM seen again JOIN seen first USING (metric, path, type) JOIN seen other
           USING (metric, path)
           WHERE again.after_type = other.type AND first.after_type = '' AND other.after_type = ''
             AND first.at < other.at AND again.at IS NOT NULL) AS changes`,
    )
    .all()
  return Number(row?.['changes'] ?? 0)
}
