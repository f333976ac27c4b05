import { commit, type Version } from '../ledger/commit.ts'
import { findingLine, readFindings, readKeys, readTexts } from './held.ts'
import { type Change, newChange, writeFolded, writeStep } from './steps.ts'
import { type Finding, type Memory, fold, type Folded, suspects, unseen } from './history.ts'
import { draftPoll } from './draft.ts'
import type { FinishedPoll, PollContext } from './staging.ts'

/** A poll that was folded into steps: their lines are written. */
export interface FoldedPoll {
  readonly memory: Memory
  readonly change: Change
  readonly findings: readonly Finding[]
  readonly newKeys: Folded['newKeys']
}

/** A poll that became a version of the lake. */
export interface Committed extends FoldedPoll {
  readonly version: Version
  /** The date of the snapshot; null for a feed, or where it added nothing. */
  readonly date: string | null
}

/** Folds a poll into steps of history, upon what the lake holds. */
export async function foldPoll(context: PollContext, finished: FinishedPoll): Promise<FoldedPoll> {
  const { ledger, withEngine, resources } = context
  const { poll, lines } = finished
  const wanted = finished.whole === null ? suspects(poll) : [...suspects(poll), ...unseen(poll)]
  const memory: Memory = await withEngine(async (engine) => ({
    resources,
    texts: await readTexts(ledger, engine, wanted),
    keys: await readKeys(ledger, engine),
  }))
  const change = newChange()
  const folded = fold(poll, memory, (step) => writeStep(lines, change, step))
  const findings = await newFindings(context, [...folded.findings, ...disagreements(finished)])
  writeFolded(lines, change, { ...folded, findings })
  return { memory, change, findings, newKeys: folded.newKeys }
}

/** Folds a poll into steps of history and commits them with cursor, bodies and, for a whole state, its dated tables. */
export async function commitPoll(context: PollContext, finished: FinishedPoll): Promise<Committed> {
  const folded = await foldPoll(context, finished)
  let date: string | null = null
  const version = await commit(
    context.ledger,
    async (ticket) => {
      const drafted = await draftPoll(context, finished, folded, ticket)
      date = drafted.date
      return drafted.draft
    },
    context.deps,
  )
  return { ...folded, version, date }
}

function disagreements({ disagreeing }: FinishedPoll): Finding[] {
  const detail = 'the array of deployments and the product that embeds it differ; the array is kept'
  return disagreeing.map((id) => ({ kind: 'embedded_disagrees', resource: 'deployments', id, detail }))
}

/** What was found, without what is on record already and would be said with every snapshot. */
async function newFindings(
  { ledger, withEngine }: PollContext,
  found: readonly Finding[],
): Promise<readonly Finding[]> {
  if (found.length === 0) return found
  const known = await withEngine(async (engine) => await readFindings(ledger, engine))
  return found.filter((finding) => finding.kind !== 'embedded_disagrees' || !known.has(findingLine(finding)))
}
