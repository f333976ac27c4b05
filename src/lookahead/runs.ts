import { microsOf } from '../time.ts'
import { type Cell, quote, type Row } from '../store/engine.ts'
import type { CutStory } from './cause.ts'
import { digestSql, type Probe } from './holes.ts'
import { type Bags, bagDifference, isRounding, matchRows } from './rows.ts'
import { isCancel } from '../query/run.ts'
import type { World } from './world.ts'

/** How a proof is to be tried. */
export interface TrialInput {
  /** The column with the instant of each row. */
  readonly ts: string
  /** Columns that may look ahead: what a model is to learn. */
  readonly labels: readonly string[]
  /** How many times it runs without a part of the future; and as often, at most, with another future. */
  readonly cutoffs: number
  /** How many times it runs where its plan proves it: as a check of this program alone. As often as any other without. */
  readonly control?: number | undefined
  /** Relative difference up to which two doubles count as equal; 0: bit for bit. */
  readonly tolerance: number
  readonly onCutoff?: (done: number, all: number) => void
}

/** One value that was not knowable, or one row that was not. */
export interface Difference {
  readonly as_of: string
  /** The columns by which the row is known: its instant and everything that is not a double. */
  readonly row: Row
  /** Null where the whole row differs. */
  readonly column: string | null
  /** On the whole lake; null where the row is not there. */
  readonly full: Cell
  /** On the lake as it stood at `as_of`, or as it would be had something else come after that. */
  readonly truncated: Cell
  /** What was done to that which came after `as_of`: taken away, given other values, or some of its points taken away. */
  readonly future: Future
}

/** What was done to the future in a run. */
export type Future = 'cut' | 'other values' | 'other points'

const shown = 20
const shownEach = 5
/** So many rows of a difference are looked at. */
export const fetched = 200

/** What the runs of a proof share. */
export interface Trial extends Probe {
  readonly input: TrialInput
  readonly differences: Difference[]
  readonly stories: CutStory[]
  /** The states that were tried at their own last instant. */
  readonly tried: Set<number>
  /** What runs in worlds that never were complained of. */
  readonly complaints: string[]
  runs: number
  changed: number
  /** States of knowledge at which the result has no row: how many were tried, how many there are. */
  rowless: { readonly tried: number; readonly all: number }
}

/** Runs in a world that is the whole lake up to a cut-off, and notes what differs up to there. */
export async function runAt(trial: Trial, cutoff: string, world: World, future: Future): Promise<void> {
  const { subject, columns, at, differences, stories } = trial
  await subject.fill('proof_cut', world)
  const upTo = upToSql(at, cutoff)
  if (await isSame(trial, cutoff, 'proof_full', 'proof_cut')) return
  const bags = await bagDifference(subject.session, columns, upTo, fetched)
  const found = matchRows(columns, bags, trial.input.tolerance)
  if (found.length === 0) return
  stories.push(await storyOf(trial, cutoff, bags, found.every(isRounding)))
  for (const { key, column, full, truncated } of found)
    if (differences.filter((known) => known.as_of === cutoff).length < shownEach && differences.length < shown)
      differences.push({ as_of: cutoff, row: key, column, full, truncated, future })
}

/** A run that fails in a world that never was tells nothing of what is proved: it is noted, and the proof goes on. */
export async function whereItRuns(trial: Trial, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (isCancel(error) || !(error instanceof Error)) throw error
    trial.complaints.push(error.message.split('\n')[0] ?? '')
  }
}

/** Whether two tables hold the same rows up to an instant, as far as digests tell. */
export async function isSame(trial: Probe, cutoff: string, one: string, other: string): Promise<boolean> {
  const side = (table: string): string =>
    `SELECT ${digestSql(trial.columns)} FROM ${table} WHERE ${upToSql(trial.at, cutoff)}`
  return (await trial.subject.session.rows(`${side(one)} EXCEPT ${side(other)}`)).length === 0
}

function upToSql(at: string, cutoff: string): string {
  return `${at} <= TIMESTAMPTZ ${quote(cutoff)}`
}

async function storyOf({ subject, at }: Probe, cutoff: string, bags: Bags, rounding: boolean): Promise<CutStory> {
  const upTo = upToSql(at, cutoff)
  const [row] = await subject.session.rows<{ first: string }>(
    `SELECT min(${at}) AS first FROM proof_full WHERE ${upTo}`,
  )
  const { missing, extra } = bags.counts
  return {
    cutoff: microsOf(cutoff) / 1000,
    at: cutoff,
    first: microsOf(row?.first ?? cutoff) / 1000,
    differing: Math.max(missing, extra),
    missing: Math.max(0, missing - extra),
    extra: Math.max(0, extra - missing),
    earliest: microsOf(bags.earliest ?? cutoff) / 1000,
    rounding,
  }
}
