import type { Draft, Ticket } from '../ledger/commit.ts'
import { day, formatDate } from '../time.ts'
import type { Engine } from '../store/engine.ts'
import type { Layers } from './layers.ts'
import type { Constants, Lines } from './lines.ts'
import type { Change } from './steps.ts'
import { recordTables } from './columns.ts'
import { datedTables } from './dated.ts'
import { asOf, type PollContext } from './finished-poll.ts'
import { oldRaw, rawFiles } from './raw.ts'
import { type Drafting, fileName, stageLines } from './staging.ts'
import { committedCursor, registryState, type RegistryState, passingDraft, stateDraft } from './state.ts'

/** What a poll would commit, and whether dated tables are in it. */
export interface Drafted {
  readonly draft: Draft
  readonly date: string | null
}

/** Makes the files of a poll and drafts their commit; what is known already makes none. */
export async function draftPoll(
  parts: Pick<Drafting, 'context' | 'finished' | 'memory' | 'change'>,
  ticket: Ticket,
): Promise<Drafted> {
  const { context, finished } = parts
  const { job, run, provider, providerMoved, ledger, rawDays } = context
  const { requests, passing, whole, lines, cursor, epoch, as_of } = finished
  const state = registryState(ledger)
  const drafting: Drafting = { ...parts, state, ticket, date: formatDate(ticket.committed_at / 1e6), files: [] }
  const base: Draft = { job, run, provider, providerMoved, requests, passing: passingDraft(passing) }
  const tables = appendedTables(context)
  const fresh = tables.some((table) => lines.rows(table) > 0)
  const again = whole !== null && epoch === state.epoch && isShown(drafting)
  // Where the feed goes on is no news by itself: a provider may write its cursors anew with each answer.
  if (!fresh && (again || whole === null)) {
    const further = whole === null ? { after: committedCursor(ledger), cursor } : undefined
    return { draft: { ...base, passing: passingDraft({ ...passing, ...(further && { further }) }) }, date: null }
  }
  for (const some of apart(lines, tables))
    await context.withEngine(async (engine) => {
      for (const table of some) await append(drafting, engine, table)
    })
  const layers = whole === null ? undefined : await datedTables(drafting)
  const tags = await rawFiles(drafting, fresh)
  const old = oldRaw(ledger, formatDate(ticket.committed_at / 1e6 - rawDays * day))
  const remove = old.filter((path) => !drafting.files.some((file) => file.path === path))
  const kept = Object.entries(tags).filter(([, tag]) => !remove.includes(tag.raw))
  const last = { date: drafting.date, observed_at: ticket.committed_at, as_of }
  const draft = {
    ...base,
    add: drafting.files,
    remove,
    state: stateDraft({
      cursor,
      epoch,
      ...newState(drafting, whole === null ? null : { ...last, source: whole }, layers),
    }),
    passing: passingDraft({ ...passing, tags: Object.fromEntries(kept) }),
  }
  return { draft, date: layers ? drafting.date : null }
}

function newState(
  { state, change }: Drafting,
  last: RegistryState['last'],
  layers: Readonly<Record<string, Layers>> | undefined,
): Partial<RegistryState> {
  return {
    records: recordsAfter(state, change),
    ...(layers && { layers, last }),
    ...(last && !state.first && { first: last }),
  }
}

/** Open rows of each table after the steps. */
export function recordsAfter({ records }: RegistryState, { growth }: Change): Record<string, number> {
  const after: Record<string, number> = { ...records }
  for (const [table, rows] of Object.entries(growth)) after[table] = (after[table] ?? 0) + rows
  return after
}

/** Whether the dated tables of this date show what is held already. */
function isShown({ state, date, finished }: Drafting): boolean {
  const { last } = state
  if (last?.date !== date) return false
  for (const entities of finished.poll.held.values())
    for (const { at } of entities.values()) if (at > last.observed_at) return false
  return true
}

function appendedTables({ resources }: PollContext): readonly string[] {
  const tables = [...recordTables(resources).keys()]
  return [...tables.map((table) => `history.${table}`), 'absorbed', 'schema_changes', 'registry_findings', 'events']
}

/** Lines of so many bytes deserve an engine of their own. */
const manyBytes = 4_000_000

/** The tables that have lines: large ones alone, all others together. */
function apart(lines: Lines, tables: readonly string[]): (readonly string[])[] {
  const large = tables.filter((table) => lines.bytes(table) >= manyBytes)
  const small = tables.filter((table) => lines.rows(table) > 0 && !large.includes(table))
  return [...large.map((table) => [table]), ...(small.length > 0 ? [small] : [])]
}

async function append(drafting: Drafting, engine: Engine, table: string): Promise<void> {
  const constants: Constants = {
    at: drafting.ticket.committed_at,
    ...(table.startsWith('history.') && asOf(drafting.finished)),
  }
  await stageLines(drafting, engine, { table, lines: table, id: fileName(drafting), date: null, constants, meta: {} })
}
