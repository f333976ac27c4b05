import type { Engine } from '../../lake/store/engine.ts'
import { type AssumedRows, loadAssumptions } from './assumptions.ts'
import type { WatchedTrialInput } from './runs.ts'
import { workerSessions } from './masked-intervals.ts'
import { isKeptByProof } from './own-files.ts'
import { words } from '../../query/gate-lists.ts'
import { type Door, noteTexts } from '../../query/note-texts.ts'
import { notesOfSql } from '../../query/question.ts'
import { runCancellable, type RunDeps } from '../../query/run.ts'
import { type TrialOutcome, tryFutures, undecidedOutcome } from './trial.ts'
import { querySubject } from './world.ts'
import { placeOf } from './proof/place.ts'
import { argueFromPlan, type PlacedObstacle } from './proof/prove.ts'
import type { Obstacle } from './proof/values.ts'
import type { Node } from './proof/nodes.ts'
import { fileRead, type ParsedSql, parsedSql, tablesIn, treesOf } from '../../query/parse-tree.ts'

export type { LookaheadDifference as Difference } from './runs.ts'

/** A query and how to try it. */
interface ProofInput extends WatchedTrialInput {
  /** One SELECT, without a semicolon. */
  readonly sql: string
  /** The statements before it, which run again in each world. */
  readonly preparation?: readonly string[]
  /**
   * Equivalent SELECT for the readers of text and plan, if the query names what statements before it or the session
   * made; null if there is none.
   */
  readonly planned?: string | null
  /** Interface in whose words the notes are written. */
  readonly door?: Door
}

/** Document of `lookahead`: the verdict, the rows that used the future, and the argument from the plan. */
export interface LookaheadProof extends TrialOutcome {
  /** Whether the plan proves that no row differs on any lake at any cut-off; true only if the verdict is `clean`. */
  readonly proved: boolean
  /** The reasons of the plan, a line each. */
  readonly chain: readonly string[]
  /** The expression that prevents a proof from the plan; null if there is none. */
  readonly unproved: LocatedObstacle | null
  /** Assumptions that the rows depend on, whatever the verdict. */
  readonly assumes: readonly AssumedRows[]
}

/** An obstacle to a proof, with its place in the text of the query's author. */
export interface LocatedObstacle extends Obstacle {
  /** Line, counted from 1; null if the place is not known. */
  readonly line: number | null
  /** Column, counted from 1; null if the place is not known. */
  readonly column: number | null
}

/** The argument from the plan. */
type Argued = Pick<LookaheadProof, 'proved' | 'chain' | 'unproved'>

/** Views that obey only observed_as_of. */
const ledgerViews = words('coverage gaps violations clock_findings requests runs versions')

/**
 * Runs the query on the whole lake and again at many instants T with `as_of = T`, and compares the rows up to T both
 * ways: a difference used the future. In addition the plan shows whether anything can differ at all; if it does not
 * prove that, the query also runs with altered data in the place of the later ones.
 */
export async function proveNoLookahead(
  open: (threads: number | undefined) => Promise<Engine>,
  input: ProofInput,
  run: RunDeps,
): Promise<LookaheadProof> {
  const prove = async (threads: number | undefined, notes: readonly string[]): Promise<LookaheadProof | 'unsteady'> => {
    using session = await open(threads)
    return await runCancellable(
      session,
      input.sql,
      run,
      async () => await proveWith(session, input, notes, { alone: threads === 1, run }),
    )
  }
  const proof = await prove(undefined, [])
  if (proof !== 'unsteady') return proof
  const alone = await prove(1, ['two runs on several threads differ, so everything ran on one thread'])
  if (alone !== 'unsteady') return alone
  const tested = undecidedOutcome('the query is not deterministic: two runs on the same lake differ', 0, [])
  return { ...tested, ...whyUndecided(input, tested.reason ?? ''), assumes: [] }
}

/** Proves a query; one that differs from itself on several threads is unsteady. */
async function proveWith(
  session: Engine,
  input: ProofInput,
  notes: readonly string[],
  { alone, run }: { readonly alone: boolean; readonly run: RunDeps },
): Promise<LookaheadProof | 'unsteady'> {
  using hands = await workerSessions(session)
  const { sql, preparation = [] } = input
  // For a feature people read the query itself: only its plan is over a different grid.
  const readable = preparation.length > 0 ? (input.planned ?? null) : sql
  const script = [...preparation, sql].join(';\n')
  const tree = await parsedSql(session, readable ?? script)
  let argument: Argued | undefined
  const argued = async (): Promise<Argued> => (argument ??= await argue(session, input))
  const past = await findUncutRead(session, await treesOf(session, script))
  const isProved = async (): Promise<boolean> => (await argued()).proved
  const tried =
    past === undefined
      ? await tryFutures(
          querySubject(session, sql, { preparation, text: readable ?? script, hands: hands.sessions }),
          input,
          notes,
          { alone, isProved },
        )
      : undecidedOutcome(past.why, 0, notes)
  if (tried === 'unsteady') return tried
  const noted =
    readable === null ? [] : await notesOfSql(session, readable, run, past === undefined ? 'proof_full' : undefined)
  const tested = { ...tried, notes: [...noteTexts(noted, input.door ?? 'terminal'), ...tried.notes] }
  const assumes = tested.rows === 0 ? [] : await loadAssumptions(session, readable ?? undefined, 'proof_full')
  if (tested.verdict === 'undecided')
    return { ...tested, ...whyUndecided(input, tested.reason ?? '', past, tree), assumes }
  const found = await argued()
  if (tested.verdict === 'clean' || !found.proved) return { ...tested, ...found, assumes }
  const broken =
    'the plan says that it looks nowhere ahead: one of the two is a mistake of this program, please report it'
  return { ...tested, ...found, assumes, proved: false, notes: [...tested.notes, broken] }
}

/** Finds a table or file in a script that `as_of` does not cut; undefined if there is none. */
async function findUncutRead(session: Engine, trees: readonly Node[]): Promise<Obstacle | undefined> {
  const tables = tablesIn(trees)
  const ledger = tables.find((name) => ledgerViews.has(name))
  if (ledger !== undefined)
    return { what: ledger, why: `it reads ${ledger}, which tells what this lake did and which as_of does not cut` }
  const whole = tables.find(isKeptByProof)
  if (whole !== undefined)
    return {
      what: whole,
      why: `it reads ${whole}, in which this program keeps rows whole; read them by the name of --own`,
    }
  const file = await fileRead(session, trees)
  if (file === undefined) return undefined
  return { what: file, why: `it reads files directly (${file}), which as_of does not cut; read the views` }
}

/** Obstacle of a script that cannot be read as one SELECT. */
const notOneSelect: Obstacle = {
  what: 'the statements before the query',
  why: 'they do more than set variables and make temporary tables and views, so that no one SELECT amounts to them',
}

async function argue(session: Engine, input: ProofInput): Promise<Argued> {
  if (input.planned === null)
    return { proved: false, chain: [], unproved: locateObstacle(input, { ...notOneSelect, at: null }) }
  const planned = { ...input, sql: input.planned ?? input.sql }
  const { unproved, ...found } = await argueFromPlan(session, planned)
  return { ...found, unproved: unproved && locateObstacle(planned, unproved) }
}

/**
 * Builds an undecided verdict with its reason: the table or function at fault, if there is one, with its place in the
 * text.
 */
function whyUndecided(input: ProofInput, why: string, past?: Obstacle, tree?: ParsedSql): Argued {
  const sql = input.preparation?.length ? (input.planned ?? input.sql) : input.sql
  const at = past && tree && !('error' in tree) ? placeOf(sql, tree.statements, past) : null
  return { proved: false, chain: [], unproved: locateObstacle({ sql }, { what: past?.what ?? 'the query', why, at }) }
}

/** Finds the place of an obstacle in its author's text. */
function locateObstacle({ sql }: Pick<ProofInput, 'sql'>, { what, why, at }: PlacedObstacle): LocatedObstacle {
  const lines = at === null ? null : sql.slice(0, at).split('\n')
  return { what, why, line: lines?.length ?? null, column: lines ? (lines.at(-1)?.length ?? 0) + 1 : null }
}
