import { microsOf } from '../time.ts'
import { columnsOf } from '../store/parquet.ts'
import type { Cell, Engine, Row } from '../store/engine.ts'
import { quote, quoteName } from '../store/engine.ts'
import { likelyCause, type CutStory } from './lookahead-cause.ts'
import {
  canHide,
  digestSql,
  measureMemory,
  type Probe,
  prepareHoles,
  runHoles,
  suspectStates,
  unmovedStates,
} from './lookahead-holes.ts'
import { chooseStates, instantsOf, numberStates, type States } from './lookahead-states.ts'
import { placeOf } from './proof/place.ts'
import { type Argument, argueFromPlan, type Placed } from './proof/prove.ts'
import { historyTables } from './registry-objects.ts'
import { fileRead, parsed, tablesIn } from './tree.ts'
import { type Bags, bagDifference, type ColumnSpec, isRounding, matchRows } from './lookahead-rows.ts'

/** What is to be proved about a query. */
export interface ProofInput {
  /** One SELECT, without a semicolon. */
  readonly sql: string
  /** What stands before it in the text of its author: lines and columns are those of that text. */
  readonly before?: string
  /** The column with the instant of each row. */
  readonly ts: string
  /** Columns that may look ahead: what a model is to learn. */
  readonly labels: readonly string[]
  /** How many times the query runs without a part of the future. */
  readonly cutoffs: number
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
  /** On the lake as it stood at `as_of`. */
  readonly truncated: Cell
}

/** What came of it. */
export interface Proof {
  readonly verdict: 'clean' | 'leak' | 'undecided'
  /** Why, in words; for a leak the likely cause. */
  readonly reason: string | null
  readonly cutoffs: number
  readonly rows: number
  readonly differences: readonly Difference[]
  /** Rows that differ, over all cut-offs. */
  readonly differing: number
  readonly notes: readonly string[]
  /** Whether the plan says that no row differs on any lake at any cut-off; only beside `clean`. */
  readonly proved: boolean
  /** The reasons of the plan, a line each. */
  readonly chain: readonly string[]
  /** What stands in the way of a proof from the plan: the expression, and why; its place, counted from 1, where it is known. */
  readonly unproved: Unproved | null
}

/** An expression that stands in the way of a proof. */
interface Unproved {
  readonly what: string
  readonly why: string
  readonly line: number | null
  readonly column: number | null
}

/** What running the query tells. */
type Tested = Omit<Proof, keyof Argument>

/** Runs work on a session so that it can be cancelled, and tells what DuckDB complains of in one line. */
type Guard = <T>(session: Engine, sql: string, work: () => Promise<T>) => Promise<T>

const roundingReason =
  'only the last digits of doubles differ: sums in another order; aggregate with ORDER BY, or allow --tolerance 1e-12'
/** Views that obey only observed_as_of. */
const ledgerViews: ReadonlySet<string> = new Set([
  'coverage',
  'gaps',
  'violations',
  'clock_findings',
  'requests',
  'runs',
  'versions',
])
const shown = 20
const shownEach = 5
const fetched = 200

/**
 * Runs the query on the whole lake and again at many instants T with `as_of = T`, and compares the rows up to T both
 * ways: what differs used the future. Beside that the plan is asked whether anything can differ at all.
 */
export async function proveNoLookahead(
  open: (threads: number | undefined) => Promise<Engine>,
  input: ProofInput,
  guard: Guard,
): Promise<Proof> {
  const tested = await testNoLookahead(open, input, guard)
  const none = { proved: false, chain: [], unproved: null }
  if (tested.verdict === 'undecided')
    return { ...tested, ...none, unproved: await whyUndecided(open, input, tested.reason) }
  using session = await open(undefined)
  const { unproved, ...found } = await guard(session, input.sql, async () => await argueFromPlan(session, input))
  const argument = { ...found, unproved: unproved && inText(input, unproved) }
  if (tested.verdict === 'clean') return { ...tested, ...argument }
  const broken =
    'the plan says that it looks nowhere ahead: one of the two is a mistake of this program, please report it'
  return { ...tested, ...argument, proved: false, notes: argument.proved ? [...tested.notes, broken] : tested.notes }
}

/** Of what is undecided: the table or function at fault, where the reason names one that stands in the text. */
async function whyUndecided(
  open: (threads: number | undefined) => Promise<Engine>,
  input: ProofInput,
  reason: string | null,
): Promise<Unproved> {
  const why = reason ?? 'it is undecided'
  const what = /^it reads (?:files directly \()?(\w+)/.exec(why)?.[1]
  if (what === undefined) return { what: 'the query', why, line: null, column: null }
  using session = await open(undefined)
  const tree = await parsed(session, input.sql)
  const at = 'error' in tree ? null : placeOf(input.sql, tree.statements, { what, why })
  return inText(input, { what, why, at })
}

/** The place of an obstacle in its author's text. */
function inText({ sql, before = '' }: ProofInput, { what, why, at }: Placed): Unproved {
  const lines = at === null ? null : `${before}${sql.slice(0, at)}`.split('\n')
  return { what, why, line: lines?.length ?? null, column: lines ? (lines.at(-1)?.length ?? 0) + 1 : null }
}

/** Runs and compares. A query that differs from itself is run on one thread before it is given up. */
async function testNoLookahead(
  open: (threads: number | undefined) => Promise<Engine>,
  input: ProofInput,
  guard: Guard,
): Promise<Tested> {
  const prove = async (threads: number | undefined, notes: readonly string[]): Promise<Tested | 'unsteady'> => {
    using session = await open(threads)
    return await guard(session, input.sql, async () => await proveWith(session, input, notes, threads === 1))
  }
  const proof = await prove(undefined, [])
  if (proof !== 'unsteady') return proof
  const alone = await prove(1, ['two runs on several threads differ, so everything ran on one thread'])
  if (alone !== 'unsteady') return alone
  return undecided('the query is not deterministic: two runs on the same lake differ', 0, [])
}

async function proveWith(
  session: Engine,
  input: ProofInput,
  notes: readonly string[],
  alone: boolean,
): Promise<Tested | 'unsteady'> {
  const tree = await parsed(session, input.sql)
  const ledger = 'error' in tree ? undefined : tablesIn(tree.statements).find((name) => ledgerViews.has(name))
  if (ledger !== undefined)
    return undecided(`it reads ${ledger}, which tells what this lake did and which as_of does not cut`, 0, notes)
  const past = await fileRead(session, tree)
  if (past !== undefined)
    return undecided(`it reads files directly (${past}), which as_of does not cut; read the views`, 0, notes)
  await session.run(`CREATE OR REPLACE TEMP TABLE proof_full AS ${input.sql}`)
  const columns = await describe(session, input)
  const problem = unfit(columns, input)
  if (problem !== undefined) return undecided(problem, 0, notes)
  const [size] = await session.rows(`SELECT count(${quoteName(input.ts)}) AS n FROM proof_full`)
  const rows = Number(size?.['n'])
  if (rows < 2) return undecided(`too few rows: ${rows} with an instant`, rows, notes)
  const again = await sameAgain(session, input, columns)
  if (again === 'rounding' && alone) return undecided(roundingReason, rows, notes)
  if (again !== 'same') return 'unsteady'
  return await tryCutoffs(session, input, columns, rows, notes)
}

async function describe(session: Engine, input: ProofInput): Promise<ColumnSpec[]> {
  const columns = await columnsOf(session, 'proof_full')
  return columns.map((column) => ({
    ...column,
    label: input.labels.includes(column.name),
    ts: column.name === input.ts,
  }))
}

function unfit(columns: readonly ColumnSpec[], { ts, labels }: ProofInput): string | undefined {
  const names = columns.map(({ name }) => name)
  const unknown = labels.filter((label) => !names.includes(label))
  if (unknown.length > 0) return `no column ${unknown.join(', ')} to be a label; there are ${names.join(', ')}`
  const column = columns.find(({ name }) => name === ts)
  if (!column) return `no column ${ts} with the instant of each row; name it with --ts (${names.join(', ')})`
  if (!/^(TIMESTAMP|DATE)/.test(column.type)) return `column ${ts} is ${column.type}, not an instant or a date`
  if (columns.every((other) => other.ts || other.label)) return 'no column to compare beside the instant and the labels'
  return undefined
}

/** The row's instant as TIMESTAMPTZ; what has no zone is UTC. */
function instant(columns: readonly ColumnSpec[], ts: string): string {
  const name = quoteName(ts)
  const type = columns.find((column) => column.name === ts)?.type ?? ''
  return type.startsWith('TIMESTAMP WITH') ? name : `timezone('UTC', ${name}::TIMESTAMP)`
}

/** Whether the query gives the same again, but for differences that count as none. */
async function sameAgain(
  session: Engine,
  input: ProofInput,
  columns: readonly ColumnSpec[],
): Promise<'same' | 'rounding' | 'other'> {
  await session.run(`CREATE OR REPLACE TEMP TABLE proof_cut AS ${input.sql}`)
  const found = matchRows(columns, await bagDifference(session, columns, 'true', fetched), input.tolerance)
  if (found.length === 0) return 'same'
  return found.every(isRounding) ? 'rounding' : 'other'
}

/** A part of the runs is kept for what the others make suspicious. */
const roomForDoubts = 0.1

async function tryCutoffs(
  session: Engine,
  input: ProofInput,
  columns: readonly ColumnSpec[],
  rows: number,
  notes: readonly string[],
): Promise<Tested> {
  const at = instant(columns, input.ts)
  const states = await numberStates(session, input.sql, at)
  const probe: Probe = { session, query: input.sql, columns, at }
  const trial: Trial = { ...probe, input, differences: [], stories: [], tried: new Set(), runs: 0 }
  const every = await holesFor(trial, states)
  const room = every === 0 ? 0 : Math.max(2, Math.round(roomForDoubts * input.cutoffs))
  const exact = Math.max(1, input.cutoffs - every - room - trial.runs)
  await cutAt(trial, await chooseStates(session, states, exact, every === 0 ? 'days' : 'even'))
  let safe = new Set<number>()
  if (every > 0 && trial.stories.length === 0) {
    for (let run = 0; run < every; run++) {
      await runHoles(probe, { every, run })
      told(trial)
    }
    for (const suspect of await suspectStates(session, states.count, Math.max(0, input.cutoffs - trial.runs)))
      if (trial.stories.length === 0) await cutAt(trial, [suspect])
    safe = await unmovedStates(session, states.count)
  }
  const { stories, differences } = trial
  const differing = stories.reduce((sum, story) => sum + story.differing, 0)
  const common = { cutoffs: trial.runs, rows, differences, differing, notes }
  if (differing > 0 && stories.every((story) => story.rounding))
    return { verdict: 'undecided', reason: roundingReason, ...common }
  if (differing > 0) {
    const reason = likelyCause(input.sql, input.ts, stories, await historyTables(session))
    return { verdict: 'leak', reason, ...common }
  }
  const chance = odds(trial.tried.union(safe).size, states.count, safe.size > 0)
  return { verdict: 'clean', reason: null, ...common, notes: [...notes, chance] }
}

/** What the runs of a proof share. */
interface Trial extends Probe {
  readonly input: ProofInput
  readonly differences: Difference[]
  readonly stories: CutStory[]
  /** The states that were tried at their own last instant. */
  readonly tried: Set<number>
  runs: number
}

function told(trial: Trial): void {
  trial.runs++
  trial.input.onCutoff?.(trial.runs, trial.input.cutoffs)
}

/**
 * With how many combs of holes each state is tried right before one; 0 where cut-offs reach all of them, where holes say
 * nothing, and where the query remembers for too long.
 */
async function holesFor(trial: Trial, { count, polls }: States): Promise<number> {
  const { session, input } = trial
  const most = Math.floor(input.cutoffs / 2)
  if (count <= input.cutoffs || polls !== null || most < 3 || !(await canHide(session))) return 0
  await prepareHoles(trial)
  const memory = await measureMemory(trial, count)
  told(trial)
  await prepareHoles(trial)
  return memory + 2 > most ? 0 : Math.min(most, Math.max(2 * memory + 2, Math.min(32, Math.ceil(input.cutoffs / 3))))
}

/** Runs the query as of the last instants of these states and notes what differs up to them. */
async function cutAt(trial: Trial, chosen: readonly number[]): Promise<void> {
  const { session, query, columns, at, differences, stories } = trial
  for (const cutoff of await instantsOf(session, chosen)) {
    await session.run(`SET VARIABLE as_of = TIMESTAMPTZ ${quote(cutoff)}`)
    await session.run(`CREATE OR REPLACE TEMP TABLE proof_cut AS ${query}`)
    await session.run('SET VARIABLE as_of = NULL')
    told(trial)
    const upTo = upToSql(at, cutoff)
    if (await isSame(session, columns, upTo)) continue
    const bags = await bagDifference(session, columns, upTo, fetched)
    const found = matchRows(columns, bags, trial.input.tolerance)
    if (found.length === 0) continue
    stories.push(await storyOf(trial, cutoff, bags, found.every(isRounding)))
    for (const { key, column, full, truncated } of found)
      if (differences.filter((known) => known.as_of === cutoff).length < shownEach && differences.length < shown)
        differences.push({ as_of: cutoff, row: key, column, full, truncated })
  }
  for (const state of chosen) trial.tried.add(state)
}

/** Whether both sides hold the same rows up to an instant, as far as digests tell. */
async function isSame(session: Engine, columns: readonly ColumnSpec[], upTo: string): Promise<boolean> {
  const side = (table: string): string => `SELECT ${digestSql(columns)} FROM ${table} WHERE ${upTo}`
  return (await session.rows(`${side('proof_full')} EXCEPT ${side('proof_cut')}`)).length === 0
}

/** How rare a leak may be that touches one decision, by what the next step brings. */
function odds(tried: number, states: number, holes: boolean): string {
  const how = holes ? ', some as of themselves, the others without what came right after them' : ''
  const said = `${tried} of ${states} states of knowledge were tried${how}`
  if (tried >= states) return `${said}: a leak of one row would have been met`
  const rare = Math.max(1, Math.floor(1 / (1 - 0.05 ** (1 / tried))))
  return `${said}: a leak in one of ${rare} would have been met with 95 %, a rarer one perhaps not (--cutoffs)`
}

function upToSql(at: string, cutoff: string): string {
  return `${at} <= TIMESTAMPTZ ${quote(cutoff)}`
}

async function storyOf({ session, at }: Probe, cutoff: string, bags: Bags, rounding: boolean): Promise<CutStory> {
  const upTo = upToSql(at, cutoff)
  const [row] = await session.rows<{ first: string }>(`SELECT min(${at}) AS first FROM proof_full WHERE ${upTo}`)
  const { missing, extra } = bags.counts
  return {
    cutoff: microsOf(cutoff) / 1000,
    first: microsOf(row?.first ?? cutoff) / 1000,
    differing: Math.max(missing, extra),
    missing: Math.max(0, missing - extra),
    extra: Math.max(0, extra - missing),
    earliest: microsOf(bags.earliest ?? cutoff) / 1000,
    rounding,
  }
}

function undecided(reason: string, rows: number, notes: readonly string[]): Tested {
  return { verdict: 'undecided', reason, cutoffs: 0, rows, differences: [], differing: 0, notes }
}
