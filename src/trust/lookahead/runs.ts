import { microsOf } from '../../base/time.ts'
import { type Cell, type Engine, quote, quoteName, type Row } from '../../lake/store/engine.ts'
import { isCancel } from '../../query/run.ts'
import type { Subject, World } from './world.ts'

/** Differences in the rows of one cut-off. */
export interface CutStory {
  /** Milliseconds since 1970. */
  readonly cutoff: number
  /** Cut-off as ISO text with microseconds. */
  readonly at: string
  /** The instant of the first row on the whole lake. */
  readonly first: number
  readonly differing: number
  readonly missing: number
  readonly extra: number
  /** Instant of the earliest row that differs. */
  readonly earliest: number
  /** Whether only the last digits of doubles differ: sums in another order, not the future. */
  readonly rounding: boolean
}

/** Data on which a leak depends. */
export type Dependence = 'values' | 'existence' | 'registry' | 'calendar' | `own ${string}`

/** Options for the trials of a proof. */
export interface TrialInput {
  /** Column with the time of each row. Default: `ts`. */
  readonly ts: string
  /** Columns that may look ahead, such as the target of a model. */
  readonly labels: readonly string[]
  /** Number of times at which the lake is cut, and at most as many runs on altered data. Default: 50. */
  readonly cutoffs: number
  /** Number of cuts if the plan proves the query, as a check of pitlake itself. Default: as `cutoffs`. */
  readonly control?: number | undefined
  /** Relative difference of numbers that counts as equal. Default: 0, bit for bit. */
  readonly tolerance: number
  /** Called after each cut with the number of cuts done and of all. */
  readonly onCutoff?: (done: number, all: number) => void
}

/** Options for the trials of a proof, for callers inside the program. */
export interface WatchedTrialInput extends TrialInput {
  /** Called for each run whose rows differ by more than the last digits of doubles. */
  readonly onLeak?: (leak: FoundLeak) => void
}

/** A run that showed a leak, with all that running it again needs. */
export interface FoundLeak extends Pick<Probe, 'columns' | 'at'> {
  /** Time up to which rows are compared. */
  readonly cutoff: string
  readonly world: World
  readonly future: FutureKind
  /** Column of the first difference; null if whole rows differ. */
  readonly column: string | null
}

/** One value that was not knowable, or one row that was not. */
export interface LookaheadDifference {
  /** Cut-off of the run. */
  readonly as_of: string
  /** Columns that identify the row. */
  readonly row: Row
  /** Column that differs; null if the whole row does. */
  readonly column: string | null
  /** Value on the whole lake; null if the row does not exist there. */
  readonly full: Cell
  /** Value in the run; null if the row does not exist there. */
  readonly truncated: Cell
  /** How the data after `as_of` was changed: `cut`, `other values`, `other points` or `calendar`. */
  readonly future: FutureKind
}

/** Change of the future in a run; `calendar` takes the later decisions away, too. */
export type FutureKind = 'cut' | 'other values' | 'other points' | 'calendar'

const mostShown = 20
const shownEach = 5
/** Number of rows of a difference that are read. */
export const fetched = 200

/** A query or function that runs again and again. */
export interface Probe {
  readonly subject: Subject
  /** Columns of its result. */
  readonly columns: readonly ColumnSpec[]
  /** SQL of a row's instant. */
  readonly at: string
}

/** State that the runs of a proof share. */
export interface Trial extends Probe {
  readonly input: WatchedTrialInput
  readonly differences: LookaheadDifference[]
  readonly stories: CutStory[]
  /** States that were tried at their own last instant. */
  readonly tried: Set<number>
  /** First lines of the errors of runs with altered data. */
  readonly complaints: string[]
  runs: number
  changed: number
  rowless: RowlessInstants
}

/** States of knowledge at which the result has no row. */
export interface RowlessInstants {
  /** Number of them at which the query ran. */
  readonly tried: number
  readonly all: number
}

/** Runs in a world that is the whole lake up to a cut-off, and notes the differences up to there. */
export async function runAt(trial: Trial, cutoff: string, world: World, future: FutureKind): Promise<void> {
  const { subject, columns, at, differences, stories } = trial
  await subject.fill('proof_cut', world)
  const upTo = upToSql(at, cutoff)
  if (await isSameUpTo(trial, cutoff, 'proof_full', 'proof_cut')) return
  const bags = await bagDifference(subject.session, columns, upTo, fetched)
  const found = matchRows(columns, bags, trial.input.tolerance)
  if (found.length === 0) return
  stories.push(await storyOf(trial, cutoff, bags, found.every(isRounding)))
  const first = found.find((one) => !isRounding(one))
  if (first !== undefined) trial.input.onLeak?.({ columns, at, cutoff, world, future, column: first.column })
  for (const mismatch of found.slice(0, shownEach))
    if (differences.length < mostShown) differences.push({ as_of: cutoff, ...mismatch, future })
}

/**
 * Runs work and notes a failure: a run that fails in an impossible world shows nothing about the proof, which
 * continues.
 */
export async function noteIfItFails(trial: Trial, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (isCancel(error) || !(error instanceof Error)) throw error
    trial.complaints.push(error.message.split('\n')[0] ?? '')
  }
}

/** Whether two tables have the same rows up to an instant, as far as digests show. */
export async function isSameUpTo(trial: Probe, cutoff: string, one: string, other: string): Promise<boolean> {
  const [first, second] = [one, other].map((table) => digestUpTo(trial, table, cutoff))
  return (await trial.subject.session.rows(`${first} EXCEPT ${second}`)).length === 0
}

/** Builds the SQL of the digest of the rows of a table that are compared; the same for the same rows in any order. */
export function rowsDigestSql(columns: readonly ColumnSpec[]): string {
  const names = columns.filter(({ label }) => !label).map(({ name }) => quoteName(name))
  return `count(*) AS rows, sum(hash(${names.join(', ')})) AS digest`
}

/** Builds the query for one text, the digest of the rows of a relation up to an instant. */
export function digestUpTo({ columns, at }: Probe, from: string, cutoff: string): string {
  return (
    `SELECT concat_ws(' ', rows, digest) AS told FROM (SELECT ${rowsDigestSql(columns)} FROM ${from} WHERE ` +
    `${upToSql(at, cutoff)})`
  )
}

/** Builds the condition of rows up to an instant. */
export function upToSql(at: string, cutoff: string): string {
  return `${at} <= TIMESTAMPTZ ${quote(cutoff)}`
}

async function storyOf({ subject, at }: Probe, cutoff: string, bags: RowBags, rounding: boolean): Promise<CutStory> {
  const upTo = upToSql(at, cutoff)
  const [row] = await subject.session.rows<{ first: string }>(
    `SELECT min(${at}) AS first FROM proof_full WHERE ${upTo}`,
  )
  const missing = bags.missing.count
  const extra = bags.extra.count
  const earliest = [bags.missing.earliest, bags.extra.earliest].filter((instant) => instant !== null).toSorted()[0]
  return {
    cutoff: microsOf(cutoff) / 1000,
    at: cutoff,
    first: microsOf(row?.first ?? cutoff) / 1000,
    differing: Math.max(missing, extra),
    missing: Math.max(0, missing - extra),
    extra: Math.max(0, extra - missing),
    earliest: microsOf(earliest ?? cutoff) / 1000,
    rounding,
  }
}

/** A column of the result. */
export interface ColumnSpec {
  readonly name: string
  readonly type: string
  /** May look ahead, so it is not compared. */
  readonly label: boolean
  readonly ts: boolean
}

/** Rows of two results without an equal on the other side. */
interface RowBags {
  /** Rows of the whole lake only. */
  readonly missing: RowBag
  /** Rows of the other lake only. */
  readonly extra: RowBag
}

/** Rows of one side. */
interface RowBag {
  /** The latest of the rows. */
  readonly rows: readonly Row[]
  /** Number of all rows. */
  readonly count: number
  /** Earliest instant of a row, ISO; null if there is no row. */
  readonly earliest: string | null
}

/** One row or value that differs. */
type Mismatch = Pick<LookaheadDifference, 'row' | 'column' | 'full' | 'truncated'>

/**
 * Compares `proof_full` and `proof_cut` up to an instant: the rows without an equal on the other side, each as often as
 * one has it more: the latest `most` of them, how many there are, the earliest instant.
 */
export async function bagDifference(
  session: Engine,
  columns: readonly ColumnSpec[],
  where: string,
  most: number,
): Promise<RowBags> {
  const names = columns.filter(({ label }) => !label).map(({ name }) => quoteName(name))
  const ts = quoteName(columns.find((column) => column.ts)?.name ?? '')
  const side = (table: string): string => `SELECT ${names.join(', ')} FROM ${table} WHERE ${where}`
  const only = async (left: string, right: string): Promise<RowBag> => {
    await session.run(`CREATE OR REPLACE TEMP TABLE proof_only AS ${side(left)} EXCEPT ALL ${side(right)}`)
    const [facts] = await session.rows<{ n: bigint; earliest: string | null }>(
      `SELECT count(*) AS n, strftime(min(${ts}), '%Y-%m-%dT%H:%M:%S.%fZ') AS earliest FROM proof_only`,
    )
    const rows = await session.rows(`FROM proof_only ORDER BY ${ts} DESC, ${names.join(', ')} LIMIT ${most}`)
    return { rows, count: Number(facts?.n), earliest: facts?.earliest ?? null }
  }
  return { missing: await only('proof_full', 'proof_cut'), extra: await only('proof_cut', 'proof_full') }
}

/**
 * Pairs the rows of both sides that are the same but for some values: first by everything that is not a double, then by
 * instant and texts. A row without a partner differs as a whole.
 */
export function matchRows(columns: readonly ColumnSpec[], { missing, extra }: RowBags, tolerance: number): Mismatch[] {
  const compared = columns.filter(({ label }) => !label)
  const exactly = compared.filter(({ type }) => !/^(DOUBLE|FLOAT|DECIMAL)/.test(type))
  const loosely = compared.filter(({ ts, type }) => ts || type === 'VARCHAR')
  const mismatches: Mismatch[] = []
  let left = missing.rows
  let right = extra.rows
  for (const keys of [exactly, loosely]) {
    const waiting = Map.groupBy(right, (row) => keyOf(row, keys))
    left = left.filter((row) => {
      const partner = waiting.get(keyOf(row, keys))?.shift()
      if (partner) mismatches.push(...differingCells(compared, keys, row, partner, tolerance))
      return partner === undefined
    })
    right = [...waiting.values()].flat()
  }
  for (const row of left) mismatches.push({ row: keyCells(row, exactly), column: null, full: 'there', truncated: null })
  for (const row of right)
    mismatches.push({ row: keyCells(row, exactly), column: null, full: null, truncated: 'there' })
  return mismatches
}

function differingCells(
  compared: readonly ColumnSpec[],
  keys: readonly ColumnSpec[],
  full: Row,
  cut: Row,
  tolerance: number,
) {
  return compared.flatMap(({ name }) => {
    const a = full[name] ?? null
    const b = cut[name] ?? null
    if (text(a) === text(b) || isNear(a, b, tolerance)) return []
    return [{ row: keyCells(full, keys), column: name, full: a, truncated: b }]
  })
}

/** Whether two doubles differ in their last digits only. */
export function isRounding({ full, truncated }: Mismatch): boolean {
  return isNear(full, truncated, 1e-12)
}

function isNear(a: Cell, b: Cell, tolerance: number): boolean {
  if (typeof a !== 'number' || typeof b !== 'number') return false
  return Math.abs(a - b) <= tolerance * Math.max(Math.abs(a), Math.abs(b))
}

function keyCells(row: Row, keys: readonly ColumnSpec[]): Row {
  return Object.fromEntries(keys.map(({ name }) => [name, row[name] ?? null]))
}

function keyOf(row: Row, keys: readonly ColumnSpec[]): string {
  return keys.map(({ name }) => text(row[name] ?? null)).join('\u0000')
}

function text(cell: Cell): string {
  return typeof cell === 'number' && Number.isNaN(cell)
    ? 'NaN'
    : JSON.stringify(cell, (_key, member: unknown) => (typeof member === 'bigint' ? `${member}n` : member))
}
