import { type Accepted, acceptedFields, type Entry, type IncidentPart, type Violation } from './entry.ts'
import { checksOf, violationColumns } from './columns.ts'
import { cellsOf, type IndexCell, type Index, rowOf } from './index-rows.ts'
import { count, orNull, real, text } from '../../base/value-checks.ts'

/** Returns the key of a violation, which differs from that of every other violation. */
export function keyOf({ series, t, kind, offered, incident, until }: Violation): readonly IndexCell[] {
  return [series, t, kind, offered ?? '', incident ?? '', until ?? 0]
}

const columns = ['series', 't', 'kind', 'offered_key', 'incident', 'until']
const ofKey = columns.map((column) => `${column} = ?`).join(' AND ')

/** SQL that joins a violation `v` with each time `p` at which a later answer no longer showed it. */
export const ofPassed = columns.map((column) => `p.${column} = v.${column}`).join(' AND ')

/** SQL that joins a violation `v` with the last such time `p`, unless it reappeared since. */
export const passedToo = `${ofPassed} AND p.reopened_version IS NULL`

/** SQL that joins a violation `v` with its acceptance `a`, which may be that of its incident. */
export const acceptedToo = `((v.incident = '' AND a.series = v.series AND a.t = v.t AND a.kind = v.kind
  AND a.offered_key = v.offered_key) OR (v.incident <> '' AND a.id = v.incident))`

/** The columns of a violation that the journal also has. */
const observed: readonly string[] = Object.keys(violationColumns)
const observedCells = cellsOf(checksOf(violationColumns))

/** Applies the violations that an entry found, and those that it saw reverted, to the index. */
export function applyDifferences(index: Index, entry: Entry, numberOf: (id: string) => number): void {
  applyPassed(index, entry, numberOf)
  const reopen = index.statement(
    `UPDATE passed SET reopened_version = ? WHERE ${ofKey} AND added_version < ? AND reopened_version IS NULL`,
  )
  const put = index.statement(
    `INSERT OR IGNORE INTO violations (series, ${observed.join(', ')}, offered_key, incident, until, points,
       added_version)
     VALUES (?, ${observed.map(() => '?').join(', ')}, ?, ?, ?, ?, ?)`,
  )
  const alone: readonly Violation[] = entry.violations
  for (const violation of [...alone, ...unpacked(entry.incidents ?? [])]) {
    const series = numberOf(violation.series)
    reopen.run(entry.version, ...keyOf(violation).with(0, series), entry.version)
    const { offered, incident = '', until = 0, points = 1 } = violation
    const cells = observedCells(violation)
    const values = observed.map((column) => cells[column] ?? null)
    put.run(series, ...values, offered ?? '', incident, until, points, entry.version)
  }
}

function applyPassed(index: Index, { passed = [], version }: Entry, numberOf: (id: string) => number): void {
  const insertPassed =
    `INSERT OR IGNORE INTO passed (${columns.join(', ')}, added_version) SELECT ${columns.join(', ')}, ? FROM ` +
    'violations v'
  const insertDifference = index.statement(`${insertPassed} WHERE ${ofKey}`)
  const all = index.statement(
    `${insertPassed} WHERE series = ? AND incident = ? AND NOT EXISTS (SELECT 1 FROM passed p WHERE ${passedToo})`,
  )
  for (const { series, incident = '', differences } of passed) {
    const n = numberOf(series)
    if (differences === undefined) all.run(version, n, incident)
    for (const { t, kind, offered, until = 0 } of differences ?? [])
      insertDifference.run(version, n, t, kind, offered ?? '', incident, until)
  }
}

/** Violations as an entry lists them: those of an incident by series, kind and request, each of these named once. */
export function packViolations(violations: readonly Violation[]): Pick<Entry, 'violations' | 'incidents'> {
  const alone = violations.filter(({ incident }) => incident === undefined)
  const together = violations.filter(({ incident }) => incident !== undefined)
  const groups = Map.groupBy(together, (violation) => {
    const { incident, series, kind, offered_at, request, stored_at, until } = violation
    return JSON.stringify([incident, series, kind, offered_at, request, until === undefined && stored_at])
  })
  const incidents = [...groups.values()].map(partOf)
  return { violations: alone, ...(incidents.length > 0 && { incidents }) }
}

function partOf(group: readonly Violation[]): IncidentPart {
  const [{ incident = '', series, kind, offered_at, request, stored_at }] = group as [Violation]
  const windows = group.flatMap(({ t, until, points = 1 }) => (until === undefined ? [] : [{ t, until, points }]))
  const values = group.flatMap(({ t, stored, offered, until }) =>
    until === undefined ? [{ t, stored: stored ?? 'null', offered: offered ?? 'null' }] : [],
  )
  return {
    incident,
    series,
    kind,
    offered_at,
    request,
    ...(windows.length > 0 ? { windows } : { ...(stored_at !== null && { stored_at }), values }),
  }
}

function unpacked(parts: readonly IncidentPart[]): Violation[] {
  return parts.flatMap(({ windows = [], values = [], stored_at = null, ...of }) => [
    ...windows.map((window): Violation => ({ ...of, ...window, stored: null, offered: null, stored_at: null })),
    ...values.map((difference): Violation => ({ ...of, ...difference, stored_at })),
  ])
}

/** Whether a violation is on record and no later answer showed it reverted. */
export function isStanding(index: Index, series: number, violation: Violation): boolean {
  const row = index
    .statement(
      `SELECT 1 FROM violations v LEFT JOIN passed p ON ${passedToo}
       WHERE ${columns.map((column) => `v.${column} = ?`).join(' AND ')} AND p.series IS NULL`,
    )
    .get(...keyOf(violation).with(0, series))
  return row !== undefined
}

const standingOf = rowOf({
  ...checksOf(violationColumns),
  incident: text,
  until: count,
  points: count,
  id: orNull(text),
})

/**
 * A violation on record that the last answer about it still showed; `accepted` is the id under which a person
 * acknowledged it, or null.
 */
export type Standing = Violation & { readonly accepted: string | null }

/** Reads the standing differences of these series. */
export function standingDifferences(index: Index, series: readonly string[]): Standing[] {
  const rows = index.statement(
    `SELECT v.*, a.id FROM series s JOIN violations v ON v.series = s.n LEFT JOIN passed p ON ${passedToo}
     LEFT JOIN accepted a ON ${acceptedToo} WHERE s.id = ? AND p.series IS NULL ORDER BY v.t, v.kind, v.offered_key`,
  )
  return [...new Set(series)].flatMap((id) =>
    rows.all(id).map((row): Standing => {
      const { incident, until, points, id: accepted, ...rest } = standingOf(row)
      const window = until === 0 ? {} : { until, points }
      return { series: id, ...rest, ...(incident !== '' && { incident }), ...window, accepted }
    }),
  )
}

const acceptedOf = rowOf(acceptedFields)

/** Lists everything that a person has acknowledged. */
export function storedAcceptances(index: Index): Accepted[] {
  const rows = index.statement(
    `SELECT a.id, s.id AS series, a.t, a.kind, nullif(a.offered_key, '') AS offered, a.why FROM accepted a
     JOIN series s ON s.n = a.series ORDER BY a.added_version, a.id`,
  )
  return rows.all().map(acceptedOf)
}

/** Whether a person acknowledged exactly this difference, not only its incident. */
export function isAccepted(index: Index, { series, t, kind, offered }: Violation): boolean {
  const row = index
    .statement(
      'SELECT 1 FROM accepted a JOIN series s ON s.n = a.series WHERE s.id = ? AND a.t = ? AND a.kind = ? AND ' +
        'a.offered_key = ?',
    )
    .get(series, t, kind, offered ?? '')
  return row !== undefined
}

/**
 * SQL condition for differences of an answer that lacked several stored points: fewer than an incident, and possibly an
 * outage.
 */
const ofOutage = `v.kind = 'vanished' AND v.request IN (SELECT request FROM violations
  WHERE kind = 'vanished' AND incident = '' GROUP BY request HAVING count(*) > 1)`

/**
 * Lists windows to request again, by series: the hull of the open differences that may end by themselves, namely those
 * of incidents and of outages, unless a person acknowledged them.
 */
export function openDifferences(index: Index): Map<string, { readonly since: number; readonly until: number }> {
  const rows = index.statement(
    `SELECT s.id, min(v.t) AS since, max(max(v.until, v.t + 1)) AS until FROM violations v JOIN series s
       ON s.n = v.series
     LEFT JOIN passed p ON ${passedToo} LEFT JOIN accepted a ON ${acceptedToo}
     WHERE (v.incident <> '' OR ${ofOutage}) AND p.series IS NULL AND a.id IS NULL GROUP BY s.id`,
  )
  return new Map(rows.all().map((row) => [String(row['id']), hullOf(row)]))
}

const hullOf = rowOf({ since: real, until: real })

/** Returns the id for differences found together today: that of an open incident of the day, otherwise a new one. */
export function incidentOf(index: Index, api: string, day: string): string {
  const takenLines = index.statement(
    `SELECT 1 FROM violations v LEFT JOIN passed p ON ${passedToo} LEFT JOIN accepted a ON a.id = v.incident
     WHERE v.incident = ? GROUP BY v.incident HAVING count(a.id) > 0 OR count(p.series) = count(*)`,
  )
  for (let nth = 1; ; nth++) {
    const id = nth === 1 ? `${api}-${day}` : `${api}-${day}-${nth}`
    if (takenLines.get(id) === undefined) return id
  }
}
