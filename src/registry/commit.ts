import { commit, type Version } from '../ledger/commit.ts'
import { readFindings, readKeys, readTexts } from './held.ts'
import { unseen } from './layers.ts'
import { type Change, newChange, writeFolded, writeStep } from './steps.ts'
import { type Finding, type Memory, fold, type Folded, suspects } from './history.ts'
import { draftPoll, recordsAfter } from './draft.ts'
import type { FinishedPoll, PollContext } from './finished-poll.ts'
import { registryState } from './state.ts'

/** A poll that became a version of the lake: what it changed. */
export interface Committed {
  readonly version: Version
  /** The date of the snapshot; null for a feed, or where it added nothing. */
  readonly date: string | null
  readonly opened: number
  readonly updated: number
  readonly closed: number
  readonly findings: readonly Finding[]
  readonly newKeys: number
  readonly records: Readonly<Record<string, number>>
}

/** A poll that was folded into steps: their lines are written. */
export interface FoldedPoll {
  readonly memory: Memory
  readonly change: Change
  readonly findings: readonly Finding[]
  readonly newKeys: Folded['newKeys']
}

/** Folds a poll into steps of history, upon what the lake holds. */
export async function foldPoll(context: PollContext, finished: FinishedPoll): Promise<FoldedPoll> {
  const { ledger, withEngine, resources } = context
  const { poll, lines } = finished
  const wanted = finished.whole === null ? suspects(poll) : union(suspects(poll), unseen(poll))
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
  const { memory, change, findings, newKeys } = await foldPoll(context, finished)
  const records = recordsAfter(registryState(context.ledger), change)
  let date: string | null = null
  const version = await commit(
    context.ledger,
    async (ticket) => {
      const drafted = await draftPoll({ context, finished, memory, change }, ticket)
      date = drafted.date
      return drafted.draft
    },
    context.deps,
  )
  const { opened, updated, closed } = change
  const added = newKeys.filter(({ initial }) => !initial).length
  return { version, date, opened, updated, closed, findings, newKeys: added, records }
}

function union(a: Map<string, Set<string>>, b: ReadonlyMap<string, ReadonlySet<string>>): Map<string, Set<string>> {
  for (const [key, ids] of b) a.set(key, (a.get(key) ?? new Set<string>()).union(ids))
  return a
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
  return found.filter(
    ({ kind, resource, id, detail }) =>
      kind !== 'embedded_disagrees' || !known.has([kind, resource, id, detail].join('\n')),
  )
}
