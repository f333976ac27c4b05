import { LakeError } from '../../base/errors.ts'
import { dropArchived } from './archived-rows.ts'
import { askedAgain, type CoverageChange, layOver } from './coverage.ts'
import {
  type CoverageRow,
  type Entry,
  fileFields,
  requestFields,
  type RequestRow,
  type Stamp,
  stampFields,
  type Verified,
  verifiedFields,
  windowFields,
} from './entry.ts'
import type { Sealed } from './journal.ts'
import { applyDifferences } from './differences.ts'
import { checksOf, clockFindingColumns, type LedgerColumn, runColumns, valueTypeColumns } from './columns.ts'
import { applyLost } from './lost-points.ts'
import { applyDigests } from './month-digests.ts'
import { applyLiveLists, type ListName } from './live-lists.ts'
import { storedLeaf } from './log.ts'
import { liveKey, liveRows, readLiveDigest, withRows } from './live-digest.ts'
import { cellsOf, type Index, type IndexCell, type IndexRow, rowOf } from './index-rows.ts'
import type { PlacedFacts, RunFacts } from './run-facts.ts'
import type { Micros } from '../../base/time.ts'

/** Applies one entry to the index; the caller wraps it in a transaction. */
export function applyEntry(index: Index, sealed: Sealed): void {
  const { entry } = sealed
  applySeries(index, entry)
  applyFiles(index, entry)
  applyUncovered(index, entry)
  applyCoverage(index, entry)
  applyObservations(index, entry)
  applyLost(index, entry.version, (id) => named(index, entry, id), entry)
  for (const request of entry.requests) applyRequest(index, request)
  for (const verified of entry.verified) applyVerified(index, verified)
  for (const [key, value] of Object.entries(entry.state))
    insert(index, 'OR REPLACE INTO state', { key, value: JSON.stringify(value), version: entry.version })
  const mended = entry.state['clock_mended'] as Partial<ClockMended> | undefined
  if (mended === undefined) dropArchived(index, entry.state)
  else applyMendedClock(index, mended)
  if (entry.rules) {
    const { digest, rules } = entry.rules
    insert(index, 'INTO rules', { version: entry.version, digest, rules: JSON.stringify(rules) })
  }
  applyVersion(index, sealed)
}

/** Texts of INSERT statements by their target; each target always has the same columns. */
const insertions = new Map<string, string>()

/** Adds a row. */
function insert(index: Index, into: string, cells: Readonly<Record<string, IndexCell>>): void {
  let sql = insertions.get(into)
  if (sql === undefined) {
    const columns = Object.keys(cells)
    sql = `INSERT ${into} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
    insertions.set(into, sql)
  }
  index.statement(sql).run(...Object.values(cells))
}

/**
 * The state that records the correction of a clock that was far ahead: its version, its time, and the time of the
 * version before it.
 */
interface ClockMended {
  readonly version: number
  readonly at: Micros
  readonly before: Micros
}

/** Columns of the index with timestamps of this machine's clock, in microseconds. */
export const clocked = [
  ['requests', 'asked_at'],
  ['runs', 'started_at'],
  ['runs', 'ended_at'],
  ['verified', 'at'],
  ['violations', 'stored_at'],
  ['violations', 'offered_at'],
  ['accepted', 'at'],
  ['clock_findings', 'at'],
] as const

/**
 * Moves every later timestamp in the index back to the time of the correction, because only the wrong clock can have
 * written it. Versions stay in order; facts of which the latest counts get the time of the version before.
 */
function applyMendedClock(index: Index, { version = 0, at = Infinity, before = 0 }: Partial<ClockMended>): void {
  if (at === Infinity) return
  index.statement('UPDATE versions SET committed_at = ? - (? - version) WHERE committed_at > ?').run(at, version, at)
  for (const [table, column] of clocked)
    index.statement(`UPDATE OR REPLACE ${table} SET ${column} = ? WHERE ${column} > ?`).run(at, at)
  const seconds = Math.floor(at / 1_000_000)
  index.statement('UPDATE coverage SET asked_at = ? WHERE asked_at > ?').run(seconds, seconds)
  index.statement('UPDATE soft SET at = ? WHERE at > ?').run(before, at)
}

/**
 * Limits a timestamp in a run's file to the latest one that a number represents exactly to the microsecond, in the year
 * 2255.
 */
export function within(at: Micros): Micros {
  return Math.min(at, Number.MAX_SAFE_INTEGER)
}

function applyVersion(index: Index, { entry, digest }: Sealed): void {
  const { version, committed_at, job, run, program, provider, files } = entry
  insert(index, 'INTO versions', {
    version,
    committed_at,
    job,
    run,
    program,
    digest,
    provider: JSON.stringify(provider),
    files_added: files.add.length,
    files_removed: files.remove.length,
    files_dropped: files.drop.length,
    points_added: pointsOf(entry),
    leaf: storedLeaf(index, entry),
  })
  setMeta(index, 'lake', entry.lake)
  setMeta(index, 'version', entry.version)
  setMeta(index, 'digest', digest)
  setMeta(index, 'committed_at', entry.committed_at)
  setMeta(index, 'provider', entry.provider)
}

/** Counts the points that an entry added. */
export function pointsOf({ progress }: Pick<Entry, 'progress'>): number {
  return progress.reduce((sum, { points }) => sum + points, 0)
}

/** Sets a fact about the index itself. */
export function setMeta(index: Index, key: string, value: unknown): void {
  insert(index, 'OR REPLACE INTO meta', { key, value: JSON.stringify(value) })
}

function applySeries(index: Index, entry: Entry): void {
  const insert = index.statement(
    `INSERT INTO series (n, id, metric, asset, interval, currency, exchange, network, params, settled, added_version)
     VALUES ((SELECT coalesce(max(n), 0) + 1 FROM series), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET settled = coalesce(excluded.settled, settled)`,
  )
  for (const {
    id,
    metric,
    asset,
    interval,
    currency,
    exchange,
    network,
    params,
    settled: settledInterval,
  } of entry.series) {
    const cells = [id, metric, asset, interval, currency, exchange, network, JSON.stringify(params), settledInterval]
    insert.run(...cells, entry.version)
  }
  const progress = index.statement(
    `UPDATE series SET points = points + ?, first_t = min(coalesce(first_t, ?), ?), last_t = max(coalesce(last_t, ?), ?)
     WHERE id = ? RETURNING n`,
  )
  for (const p of entry.progress) {
    const earlier = progress.get(p.points, p.first_t, p.first_t, p.last_t, p.last_t, p.series)
    if (!earlier) throw unnamed(entry, p.series)
    if (p.digests) applyDigests(index, Number(earlier['n']), p.digests)
  }
}

function applyFiles(index: Index, entry: Entry): void {
  const removedRows = entry.files.remove.flatMap((path) => liveRows(index, path))
  const digestWithout = withRows(readLiveDigest(index), removedRows, -1n)
  const remove = index.statement('UPDATE files SET removed_version = ? WHERE path = ? AND removed_version IS NULL')
  for (const path of entry.files.remove) remove.run(entry.version, path)
  const drop = index.statement('UPDATE files SET dropped_version = ? WHERE path = ? AND dropped_version IS NULL')
  for (const path of entry.files.drop) drop.run(entry.version, path)
  for (const { table: tbl, ...file } of entry.files.add)
    insert(index, 'INTO files', { tbl, ...fileCells(file), added_version: entry.version })
  const come = new Set(entry.files.add.map(({ path }) => path))
  const added = [...come].flatMap((path) =>
    liveRows(index, path).filter((row) => row['added_version'] === entry.version),
  )
  setMeta(index, liveKey, withRows(digestWithout, added))
  applyLiveLists(index, [...removedRows, ...added].map(listOfRow))
}

function listOfRow({ tbl, metric }: IndexRow): ListName {
  return { table: String(tbl), metric: metric === null || metric === undefined ? null : String(metric) }
}

const { table: _, ...fileColumns } = fileFields
const fileCells = cellsOf(fileColumns)

/** Removes coverage of windows about which nothing is known any more, because the recorded answers were wrong. */
function applyUncovered(index: Index, entry: Entry): void {
  const end = index.statement(
    'UPDATE coverage SET removed_version = ? WHERE series = ? AND since >= ? AND until <= ? AND ' +
      'removed_version IS NULL',
  )
  for (const { series, since, until } of entry.uncovered ?? [])
    end.run(entry.version, named(index, entry, series), since, until)
}

function applyCoverage(index: Index, entry: Entry): void {
  const numbers = new Map<string, number>()
  // End of the live rows of a series: a window after it overlaps none of them.
  const ends = new Map<number, number>()
  const end = index.statement('SELECT max(until) AS until FROM coverage WHERE series = ? AND removed_version IS NULL')
  for (const row of entry.coverage) {
    const n = numbers.get(row.series) ?? named(index, entry, row.series)
    numbers.set(row.series, n)
    const before = ends.get(n) ?? Number(end.get(n)?.['until'] ?? Number.NEGATIVE_INFINITY)
    if (row.since > before && row.until > row.since) insertCoverage(index, n, row, entry.version)
    else changeCoverage(index, n, layOver(liveCoverage(index, n, row), row), entry.version)
    ends.set(n, Math.max(before, row.until))
  }
}

/** Names of the columns that an answer fills. */
export const windowColumnNames: readonly string[] = Object.keys(windowFields)

/** Reads a row of coverage without its series. */
export const windowAnswerOf = rowOf(windowFields)

/** Lists the live rows of a series that overlap or touch the window, sorted. */
export function liveCoverage(index: Index, n: number, window: CoverageRow): CoverageRow[] {
  return index
    .statement(
      `SELECT ${windowColumnNames.join(', ')} FROM coverage
       WHERE series = ? AND removed_version IS NULL AND since <= ? AND until >= ? ORDER BY since`,
    )
    .all(n, window.until, window.since)
    .map((row) => ({ series: window.series, ...windowAnswerOf(row) }))
}

function changeCoverage(index: Index, n: number, change: CoverageChange, version: number): void {
  const forget = index.statement(
    'DELETE FROM coverage WHERE series = ? AND since = ? AND removed_version IS NULL AND added_version = ?',
  )
  const end = index.statement(
    'UPDATE coverage SET removed_version = ? WHERE series = ? AND since = ? AND removed_version IS NULL',
  )
  for (const row of change.remove) {
    forget.run(n, row.since, version)
    end.run(version, n, row.since)
  }
  for (const row of change.add) insertCoverage(index, n, row, version)
}

function insertCoverage(index: Index, series: number, row: CoverageRow, added_version: number): void {
  insert(index, 'INTO coverage', { series, ...windowCells(row), added_version })
}

const windowCells = cellsOf(windowFields)

/** Returns the short number of a series; undefined for one that was never named. */
export function seriesNumber(index: Index, id: string): number | undefined {
  const row = index.statement('SELECT n FROM series WHERE id = ?').get(id)
  return row === undefined ? undefined : Number(row['n'])
}

function applyObservations(index: Index, entry: Entry): void {
  const added_version = entry.version
  applyDifferences(index, entry, (id) => named(index, entry, id))
  for (const { id, series, t, kind, offered, why } of entry.accepted ?? []) {
    const what = { id, series: named(index, entry, series), t, kind, offered_key: offered ?? '', why }
    insert(index, 'OR IGNORE INTO accepted', { ...what, at: entry.committed_at, added_version })
  }
  for (const finding of entry.findings) {
    const series = named(index, entry, finding.series)
    insert(index, 'OR IGNORE INTO clock_findings', { series, ...findingCells(finding), added_version })
  }
  applyValueTypes(index, entry)
}

function applyValueTypes(index: Index, { retyped, value_types, version: added_version }: Entry): void {
  const end = index.statement('UPDATE value_types SET removed_version = ? WHERE metric = ? AND removed_version IS NULL')
  for (const metric of retyped ?? []) end.run(added_version, metric)
  for (const valueType of value_types ?? []) {
    const cells = { ...valueTypeCells(valueType), after_type: valueType.after ?? '', added_version }
    insert(index, 'OR IGNORE INTO value_types', cells)
  }
}

const findingCells = cellsOf(checksOf(clockFindingColumns))
const valueTypeCells = cellsOf(checksOf(valueTypeColumns))

/** Applies a stamp to the index. */
export function applyStamp(index: Index, stamp: Stamp): void {
  insert(index, 'OR REPLACE INTO stamps', stampCells(stamp))
}

const stampCells = cellsOf(stampFields)

function named(index: Index, entry: Entry, id: string): number {
  const n = seriesNumber(index, id)
  if (n === undefined) throw unnamed(entry, id)
  return n
}

function unnamed(entry: Entry, id: string): LakeError {
  return new LakeError('integrity', {
    subject: `journal entry ${entry.version}`,
    expected: 'every series to be named before it is used',
    got: id,
    next: 'run pitlake doctor',
  })
}

/** Applies one line of a run's file to the index; the caller wraps it in a transaction. */
export function applyFacts(index: Index, placed: PlacedFacts): void {
  const { line } = placed
  if (line.run) applyRun(index, line.run)
  for (const request of line.requests ?? []) applyRequest(index, request)
  for (const verified of line.verified ?? []) applyVerified(index, verified)
  for (const row of line.asked_again ?? []) applyAskedAgain(index, row)
  const passing = index.statement(
    `INSERT INTO soft (key, value, at) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE
     SET value = excluded.value, at = excluded.at WHERE (excluded.at, excluded.value) > (at, value)`,
  )
  for (const [key, fact] of Object.entries(line.soft ?? {}))
    passing.run(key, JSON.stringify(fact.value), within(fact.at))
  index
    .statement(
      `INSERT INTO run_files (name, offset) VALUES (?, ?)
       ON CONFLICT (name) DO UPDATE SET offset = max(offset, excluded.offset)`,
    )
    .run(placed.name, placed.end)
}

/** Records repeated requests without a new version: the rows keep the version that added them. */
function applyAskedAgain(index: Index, row: CoverageRow): void {
  const n = seriesNumber(index, row.series)
  if (n === undefined) return
  const added = index.statement(
    'SELECT added_version FROM coverage WHERE series = ? AND since = ? AND removed_version IS NULL',
  )
  const forget = index.statement('DELETE FROM coverage WHERE series = ? AND since = ? AND removed_version IS NULL')
  for (const range of liveCoverage(index, n, row)) {
    const change = askedAgain([range], row)
    if (change.remove.length === 0) continue
    const version = Number(added.get(n, range.since)?.['added_version'])
    forget.run(n, range.since)
    for (const next of change.add) insertCoverage(index, n, next, version)
  }
}

const requestCells = cellsOf(requestFields)

function applyRequest(index: Index, request: RequestRow): void {
  insert(index, 'OR IGNORE INTO requests', { ...requestCells(request), asked_at: within(request.asked_at) })
}

function applyVerified(index: Index, verified: Verified): void {
  insert(index, 'OR IGNORE INTO verified', { ...verifiedCells(verified), at: within(verified.at) })
}

const verifiedCells = cellsOf(verifiedFields)

function applyRun(index: Index, run: RunFacts): void {
  index.statement('INSERT OR IGNORE INTO runs (id) VALUES (?)').run(run.id)
  for (const [column, { check, shown }] of Object.entries<LedgerColumn>(runColumns)) {
    const value = (run as Readonly<Record<string, unknown>>)[column]
    if (column === 'id' || value === undefined) continue
    const plain = check?.nested === true ? JSON.stringify(value) : (value as IndexCell)
    const cell = shown === 'TIMESTAMPTZ' ? within(Number(plain)) : plain
    index.statement(`UPDATE runs SET ${column} = ? WHERE id = ?`).run(cell, run.id)
  }
}
