import type { Engine } from '../../lake/store/engine.ts'
import { type Assumed, assumedBy } from './assumed.ts'
import type { TrialInput } from './runs.ts'
import { handsOf } from './holes.ts'
import { words } from '../../query/gate-lists.ts'
import { type Door, noteTexts } from '../../query/note.ts'
import { notesOfSql } from '../../query/question.ts'
import { guarded, type RunDeps } from '../../query/run.ts'
import { tryFutures, undecided } from './trial.ts'
import { querySubject } from './world.ts'
import { placeOf } from './proof/place.ts'
import { argueFromPlan } from './proof/prove.ts'
import type { Obstacle } from './proof/values.ts'
import { fileRead, parsedSql, tablesIn } from '../../query/tree.ts'

type Parsed = Awaited<ReturnType<typeof parsedSql>>

export type { LookaheadDifference as Difference } from './runs.ts'

/** What is to be proved about a query. */
interface ProofInput extends TrialInput {
  /** One SELECT, without a semicolon. */
  readonly sql: string
  /** The same for the reader of its plan, where what it names is a table of the session. */
  readonly planned?: string
  /** Whose words its notes are told in. */
  readonly door?: Door
}

/** What came of it: what running it tells, and what the plan says. */
export interface LookaheadProof extends ReturnType<typeof undecided> {
  /** Whether the plan says that no row differs on any lake at any cut-off; only beside `clean`. */
  readonly proved: boolean
  /** The reasons of the plan, a line each. */
  readonly chain: readonly string[]
  /** What stands in the way of a proof from the plan: the expression, and why; its place, counted from 1, where it is known. */
  readonly unproved: ReturnType<typeof inText> | null
  /** What its rows rest on beside what was known, whatever the verdict. */
  readonly assumes: readonly Assumed[]
}

/** What the plan says, and where in the text of the query's author. */
type Argued = Pick<LookaheadProof, 'proved' | 'chain' | 'unproved'>

/** Views that obey only observed_as_of. */
const ledgerViews = words('coverage gaps violations clock_findings requests runs versions')

/**
 * Runs the query on the whole lake and again at many instants T with `as_of = T`, and compares the rows up to T both
 * ways: what differs used the future. Beside that the plan is asked whether anything can differ at all; where it does not
 * say so, the query also runs with another future in the place of that which came.
 */
export async function proveNoLookahead(
  open: (threads: number | undefined) => Promise<Engine>,
  input: ProofInput,
  run: RunDeps,
): Promise<LookaheadProof> {
  const prove = async (threads: number | undefined, notes: readonly string[]): Promise<LookaheadProof | 'unsteady'> => {
    using session = await open(threads)
    return await guarded(
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
  const tested = undecided('the query is not deterministic: two runs on the same lake differ', 0, [])
  return { ...tested, ...whyUndecided(input, tested.reason ?? ''), assumes: [] }
}

/** A query that differs from itself on several threads is unsteady. */
async function proveWith(
  session: Engine,
  input: ProofInput,
  notes: readonly string[],
  { alone, run }: { readonly alone: boolean; readonly run: RunDeps },
): Promise<LookaheadProof | 'unsteady'> {
  using hands = await handsOf(session)
  const tree = await parsedSql(session, input.sql)
  let argument: Argued | undefined
  const argued = async (): Promise<Argued> => (argument ??= await argue(session, input))
  const past = await beyondAsOf(session, tree)
  const isProved = async (): Promise<boolean> => (await argued()).proved
  const tried =
    past === undefined
      ? await tryFutures(querySubject(session, input.sql, hands.sessions), input, notes, { alone, isProved })
      : undecided(past.why, 0, notes)
  if (tried === 'unsteady') return tried
  const noted = await notesOfSql(session, input.sql, run, past === undefined ? 'proof_full' : undefined)
  const tested = { ...tried, notes: [...noteTexts(noted, input.door ?? 'terminal'), ...tried.notes] }
  const assumes = tested.rows === 0 ? [] : await assumedBy(session, input.sql, 'proof_full')
  if (tested.verdict === 'undecided')
    return { ...tested, ...whyUndecided(input, tested.reason ?? '', past, tree), assumes }
  const found = await argued()
  if (tested.verdict === 'clean' || !found.proved) return { ...tested, ...found, assumes }
  const broken =
    'the plan says that it looks nowhere ahead: one of the two is a mistake of this program, please report it'
  return { ...tested, ...found, assumes, proved: false, notes: [...tested.notes, broken] }
}

/** What the query reads that `as_of` does not cut. */
async function beyondAsOf(session: Engine, tree: Parsed): Promise<Obstacle | undefined> {
  const ledger = 'error' in tree ? undefined : tablesIn(tree.statements).find((name) => ledgerViews.has(name))
  if (ledger !== undefined)
    return { what: ledger, why: `it reads ${ledger}, which tells what this lake did and which as_of does not cut` }
  const file = await fileRead(session, tree)
  if (file === undefined) return undefined
  return { what: file, why: `it reads files directly (${file}), which as_of does not cut; read the views` }
}

async function argue(session: Engine, input: ProofInput): Promise<Argued> {
  const planned = { ...input, sql: input.planned ?? input.sql }
  const { unproved, ...found } = await argueFromPlan(session, planned)
  return { ...found, unproved: unproved && inText(planned, unproved) }
}

/** Of what is undecided: the table or function at fault, where there is one, with its place in the text. */
function whyUndecided(input: ProofInput, why: string, past?: Obstacle, tree?: Parsed): Argued {
  const at = past && tree && !('error' in tree) ? placeOf(input.sql, tree.statements, past) : null
  return { proved: false, chain: [], unproved: inText(input, { what: past?.what ?? 'the query', why, at }) }
}

/** The place of an obstacle in its author's text. */
function inText(
  { sql }: ProofInput,
  { what, why, at }: NonNullable<Awaited<ReturnType<typeof argueFromPlan>>['unproved']>,
) {
  const lines = at === null ? null : sql.slice(0, at).split('\n')
  return { what, why, line: lines?.length ?? null, column: lines ? (lines.at(-1)?.length ?? 0) + 1 : null }
}
