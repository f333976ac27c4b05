import { type Columns, columnsOf } from '../../lake/store/parquet.ts'
import { isSameName, quoteName } from '../../lake/store/engine.ts'
import { likelyCause } from './cause.ts'
import { tryCalendarEnds } from './calendar.ts'
import { dependsOn, tryChanges } from './changes.ts'
import { combsFor, runHoles, searchRuns, strayInstants, suspectStates, unmovedStates } from './masked-intervals.ts'
import {
  bagDifference,
  type ColumnSpec,
  type Dependence,
  type LookaheadDifference,
  fetched,
  isRounding,
  matchRows,
  type RowlessInstants,
  runAt,
  type Trial,
  type TrialInput,
  type WatchedTrialInput,
  noteIfItFails,
} from './runs.ts'
import { chooseStates, instantsOf, numberStates, rowlessInstants, spread, type States } from './knowledge-states.ts'
import { hiddenWorld, seesWorlds, type Subject, wholeLake } from './world.ts'

/** Result of running a query or function without parts of the future, and with other ones. */
export interface TrialOutcome {
  /** `clean`, `leak` or `undecided`. */
  readonly verdict: 'clean' | 'leak' | 'undecided'
  /** Why; for a leak the likely cause. Null if there is nothing to report. */
  readonly reason: string | null
  /** Number of runs in which a part of the future was hidden. */
  readonly cutoffs: number
  /** Number of runs on altered data. */
  readonly changed: number
  /** Rows of the result. */
  readonly rows: number
  /** Up to 20 values or rows that were not knowable. */
  readonly differences: readonly LookaheadDifference[]
  /** Number of rows that differ in any run. */
  readonly differing: number
  /**
   * Data on which a leak depends: values or existence of later points, registry, later decisions, or a user file (`own
   * NAME`).
   */
  readonly depends_on: readonly Dependence[]
  /** Notes as sentences. */
  readonly notes: readonly string[]
}

const roundingReason =
  'only the last digits of doubles differ: sums in another order; aggregate with ORDER BY, or allow --tolerance 1e-12'

/**
 * Runs and compares: on the whole lake, twice, and without a part of the future; then with another one, unless
 * `isProved` says that no future matters. `unsteady` where two runs on the same lake differ.
 */
export async function tryFutures(
  subject: Subject,
  trialInput: WatchedTrialInput,
  notes: readonly string[],
  { alone, isProved }: { readonly alone: boolean; readonly isProved: () => Promise<boolean> },
): Promise<TrialOutcome | 'unsteady'> {
  const { session } = subject
  await subject.fill('proof_full', wholeLake)
  const described = await columnsOf(session, 'proof_full')
  const input = spellColumns(trialInput, described)
  const columns = described.map((column) => specOf(column, input))
  const problem = problemOfColumns(columns, input)
  if (problem !== undefined) return undecidedOutcome(problem, 0, notes)
  const [size] = await session.rows(`SELECT count(${quoteName(input.ts)}) AS n FROM proof_full`)
  const rows = Number(size?.['n'])
  if (rows < 2) return undecidedOutcome(`too few rows: ${rows} with an instant`, rows, notes)
  await subject.fill('proof_cut', wholeLake)
  const again = matchRows(columns, await bagDifference(session, columns, 'true', fetched), input.tolerance)
  if (again.length > 0)
    return alone && again.every(isRounding) ? undecidedOutcome(roundingReason, rows, notes) : 'unsteady'
  const proved = await isProved()
  const cutoffs = Math.min(input.cutoffs, proved ? (input.control ?? input.cutoffs) : input.cutoffs)
  const trial: Trial = {
    subject,
    columns,
    at: instantOfRow(columns, input.ts),
    input: { ...input, cutoffs },
    differences: [],
    stories: [],
    tried: new Set(),
    complaints: [],
    runs: 0,
    changed: 0,
    rowless: { tried: 0, all: 0 },
  }
  const states = await numberStates(subject, trial.at)
  const isControl = cutoffs < input.cutoffs
  // If nothing can differ any state will do: the last, and the others evenly over time.
  if (isControl) await cutAt(trial, spread([...Array(states.count).keys()], cutoffs))
  const safe = isControl ? undefined : await tryCuts(trial, states)
  if (trial.stories.length === 0 && !proved) await tryChanges(trial, states)
  const further = trial.stories.length === 0 && !proved ? await tryCalendarEnds(trial) : []
  const chance = safe && chanceText(trial.tried.union(safe).size, states.count, trial.rowless, safe.size > 0)
  const sentences = [...further, ...(chance === undefined ? [] : [chance])]
  return await judge(trial, { rows, notes, chance: sentences })
}

/** Spells the names of columns in the input as the result does. */
function spellColumns(input: WatchedTrialInput, columns: Columns): WatchedTrialInput {
  const names = columns.map(({ name }) => name)
  const spelled = (requested: string): string =>
    names.find((name) => name === requested) ?? names.find((name) => isSameName(name, requested)) ?? requested
  return { ...input, ts: spelled(input.ts), labels: input.labels.map(spelled) }
}

function specOf(column: Columns[number], { ts, labels }: TrialInput): ColumnSpec {
  return { ...column, label: labels.includes(column.name), ts: column.name === ts }
}

function problemOfColumns(columns: readonly ColumnSpec[], { ts, labels }: TrialInput): string | undefined {
  const names = columns.map(({ name }) => name)
  const unknown = labels.filter((label) => !names.includes(label))
  if (unknown.length > 0) return `no column ${unknown.join(', ')} to be a label; there are ${names.join(', ')}`
  const column = columns.find(({ name }) => name === ts)
  if (!column) return `no column ${ts} with the instant of each row; name it with --ts (${names.join(', ')})`
  if (!/^(TIMESTAMP|DATE)/.test(column.type)) return `column ${ts} is ${column.type}, not an instant or a date`
  if (columns.every((other) => other.ts || other.label)) return 'no column to compare beside the instant and the labels'
  return undefined
}

/** Builds the SQL of the row's instant as TIMESTAMPTZ; one without a zone is UTC. */
function instantOfRow(columns: readonly ColumnSpec[], ts: string): string {
  const name = quoteName(ts)
  const type = columns.find((column) => column.name === ts)?.type ?? ''
  return type.startsWith('TIMESTAMP WITH') ? name : `timezone('UTC', ${name}::TIMESTAMP)`
}

/** Share of the runs that is reserved for what the others make suspicious. */
const roomForDoubts = 0.1

/** Tries it without the future at states of knowledge; returns the states that masked intervals tried. */
async function tryCuts(trial: Trial, states: States): Promise<ReadonlySet<number>> {
  const { input } = trial
  const { session } = trial.subject
  const isHidden = states.count > input.cutoffs && (await seesWorlds(session)).hidden
  const counts = { most: Math.floor(input.cutoffs / 2), usual: Math.min(32, Math.ceil(input.cutoffs / 3)) }
  const every = isHidden ? await combsFor(trial, states, counts, hiddenWorld, () => countRun(trial)) : 0
  const room = every === 0 ? 0 : Math.max(2, Math.round(roomForDoubts * input.cutoffs))
  const reserved = Math.floor(input.cutoffs / 16)
  const { tried: rowless, all } = await rowlessInstants(session, Math.max(reserved, input.cutoffs - states.count))
  trial.rowless = { tried: rowless.length, all }
  const exact = Math.max(1, input.cutoffs - every - room - trial.runs - Math.min(reserved, rowless.length))
  await cutAt(trial, await chooseStates(session, states, exact, every === 0 ? 'days' : 'even'))
  if (trial.stories.length === 0) await cutAtInstants(trial, rowless)
  if (every === 0 || trial.stories.length > 0) return new Set()
  for (let run = 0; run < every; run++) {
    await noteIfItFails(trial, async () => runHoles(trial, { every, run, world: hiddenWorld }))
    countRun(trial)
  }
  for (const suspect of await suspectStates(session, states.count, Math.max(0, input.cutoffs - trial.runs)))
    if (trial.stories.length === 0) await cutAt(trial, [suspect])
  const stray = await strayInstants(session)
  if (trial.stories.length === 0) await cutAtInstants(trial, spread(stray, Math.max(0, input.cutoffs - trial.runs)))
  return await unmovedStates(session, states.count)
}

/** Reason of a leak that depends on later decisions. */
const calendarReason =
  'its rows change if its calendar ends earlier: a row of a calendar is known only from its own time on'

/** Builds the reason of any other leak of a function: of its cause only what it depends on is known. */
function functionReason(turns: readonly Dependence[]): string {
  const differs = 'its rows differ if later data is missing or altered'
  return turns.length === 0 ? `${differs}; cause not found` : differs
}

/** Facts of a verdict apart from the runs. */
interface JudgedBy {
  readonly rows: number
  readonly notes: readonly string[]
  /** Notes of a clean verdict: how rare a leak may be, and what was not tried. */
  readonly chance: readonly string[]
}

async function judge(trial: Trial, { rows, notes, chance }: JudgedBy): Promise<TrialOutcome> {
  const { stories, differences, subject, input } = trial
  const differing = stories.reduce((sum, story) => sum + story.differing, 0)
  const ran = { cutoffs: trial.runs, changed: trial.changed, rows, differences, differing }
  if (differing > 0 && stories.every((story) => story.rounding))
    return { verdict: 'undecided', reason: roundingReason, ...ran, depends_on: [], notes }
  if (differing > 0) {
    const turns = await dependsOn(trial)
    const { session, text, kind } = subject
    const leaked = { sql: text, ts: input.ts, stories, dependsOn: turns }
    const ofQuery = async (): Promise<string> =>
      kind === 'SQL' ? await likelyCause(session, leaked) : functionReason(turns)
    const reason = turns.includes('calendar') ? calendarReason : await ofQuery()
    return { verdict: 'leak', reason, ...ran, changed: trial.changed, depends_on: turns, notes }
  }
  const [complaint] = trial.complaints
  const failed =
    `${trial.complaints.length} runs on hidden or altered data ended in an error and therefore show nothing: ` +
    `${complaint}`
  const sentences = [...notes, ...(complaint === undefined ? [] : [failed]), ...chance]
  return { verdict: 'clean', reason: null, ...ran, depends_on: [], notes: sentences }
}

function countRun(trial: Trial): void {
  trial.runs++
  trial.input.onCutoff?.(trial.runs, trial.input.cutoffs)
}

/** Runs as of the last instants of these states and notes what differs up to them. */
async function cutAt(trial: Trial, chosen: readonly number[]): Promise<void> {
  await cutAtInstants(trial, await instantsOf(trial.subject.session, chosen))
  for (const state of chosen) trial.tried.add(state)
}

/** Number of cut-offs at which a leak is examined, the first that show it; no run follows a certain leak. */
const enoughLooked = 4

/** Runs as of instants and notes what differs up to them, until a leak is certain. */
async function cutAtInstants(trial: Trial, cutoffs: readonly string[]): Promise<void> {
  const runs = cutoffs.map((cutoff) => ({ cutoff, world: { as_of: cutoff } }))
  const first = spread(runs, enoughLooked)
  await searchRuns(trial, [...first, ...runs.filter((run) => !first.includes(run))], {
    enough: enoughLooked,
    onRun: () => countRun(trial),
    examine: async ({ cutoff, world }) => runAt(trial, cutoff, world, 'cut'),
  })
}

/** Describes how rare a leak may be that affects one decision through the data of the next state of knowledge. */
function chanceText(tried: number, states: number, rowless: RowlessInstants, holes: boolean): string {
  const how = holes ? ', some as of themselves, the others without what came right after them' : ''
  const empty = rowless.all === 0 ? '' : `, and ${rowless.tried} of ${rowless.all} at which there is no row`
  const summary = `${tried} of ${states} states of knowledge were tried${how}${empty}`
  if (tried >= states) return `${summary}: a leak of one row would have been met`
  const rare = Math.max(1, Math.floor(1 / (1 - 0.05 ** (1 / tried))))
  return `${summary}: a leak in one of ${rare} would have been met with 95 %, a rarer one perhaps not (--cutoffs)`
}

/** Builds the outcome if nothing can be tried. */
export function undecidedOutcome(reason: string, rows: number, notes: readonly string[]): TrialOutcome {
  const none = { cutoffs: 0, changed: 0, differences: [], differing: 0, depends_on: [] }
  return { verdict: 'undecided', reason, rows, ...none, notes }
}
