import { commit, type Draft, type Ticket } from '../ledger/commit.ts'
import { basename } from 'node:path'
import type { Engine } from '../store/engine.ts'
import { parquet } from '../store/parquet.ts'
import { day, formatDate } from '../time.ts'
import { columnsMark, recordTables, tableColumns } from './columns.ts'
import { findingLine, readFindings, readKeys, readTexts } from './held.ts'
import { type RecordFinding, fold, type Memory, suspects, unseen } from './history.ts'
import { datedColumns, type LayerPlan, type Layers, writeDated } from './layers.ts'
import { type Constants, type Lines, newChange, writeFolded, writeStep } from './lines.ts'
import {
  asOf,
  type Drafting,
  type FinishedPoll,
  listAgain,
  oldRaw,
  type PollContext,
  rawFiles,
  stageLines,
} from './staging.ts'
import { versioned } from '../store/layout.ts'
import { committedCursor, passingDraft, registryState, stateDraft } from './state.ts'

/** A poll that was folded into steps: their lines are written. */
type FoldedPoll = Awaited<ReturnType<typeof foldPoll>>

/** A poll that became a version of the lake. */
export type Committed = Awaited<ReturnType<typeof commitPoll>>

/** Folds a poll into steps of history, upon what the lake holds. */
export async function foldPoll(finished: FinishedPoll) {
  const { ledger, withEngine, resources, poll, lines, whole } = finished
  const wanted = whole === null ? suspects(poll) : [...suspects(poll), ...unseen(poll)]
  const memory: Memory = await withEngine(async (engine) => ({
    resources,
    texts: await readTexts(ledger, engine, wanted),
    keys: await readKeys(ledger, engine),
  }))
  const change = newChange()
  const folded = fold(poll, memory, (step) => writeStep(lines, change, step))
  const findings = await newFindings(finished, [...folded.findings, ...disagreements(finished)])
  writeFolded(lines, change, { ...folded, findings })
  return { memory, change, findings, newKeys: folded.newKeys }
}

/** Folds a poll into steps of history and commits them with cursor, bodies and, for a whole state, its dated tables. */
export async function commitPoll(finished: FinishedPoll) {
  const folded = await foldPoll(finished)
  /** The date of the snapshot; null for a feed, or where it added nothing. */
  let date: string | null = null
  const version = await commit(
    finished.ledger,
    async (ticket) => {
      const drafted = await draftPoll(finished, folded, ticket)
      date = drafted.date
      return drafted.draft
    },
    finished.deps,
  )
  return { ...folded, version, date }
}

function disagreements({ disagreeing }: FinishedPoll): RecordFinding[] {
  const detail = 'the array of deployments and the product that embeds it differ; the array is kept'
  return disagreeing.map((id) => ({ kind: 'embedded_disagrees', resource: 'deployments', id, detail }))
}

/** What was found, without what is on record already and would be said with every snapshot. */
async function newFindings(
  { ledger, withEngine }: PollContext,
  found: readonly RecordFinding[],
): Promise<readonly RecordFinding[]> {
  if (found.length === 0) return found
  const known = await withEngine(async (engine) => await readFindings(ledger, engine))
  return found.filter((finding) => finding.kind !== 'embedded_disagrees' || !known.has(findingLine(finding)))
}

/** Makes the files of a poll and drafts their commit, with the date of its dated tables; what is known already makes none. */
export async function draftPoll(
  finished: FinishedPoll,
  { memory, change }: Pick<FoldedPoll, 'memory' | 'change'>,
  ticket: Ticket,
): Promise<{ readonly draft: Draft; readonly date: string | null }> {
  const { job, run, provider, providerMoved, ledger, requests, passing, whole, lines, cursor, epoch, as_of } = finished
  const state = registryState(ledger)
  const date = formatDate(ticket.committed_at / 1e6)
  const name = versioned(ticket.version, run)
  const drafting: Drafting = { ...finished, memory, change, state, ticket, date, name, files: [] }
  const base: Draft = { job, run, provider, providerMoved, requests, passing: passingDraft(passing) }
  const tables = appendedTables(finished)
  const fresh = tables.some((table) => lines.size(table).rows > 0)
  const again = whole !== null && epoch === state.epoch && isShown(drafting)
  // Where the feed goes on is no news by itself: a provider may write its cursors anew with each answer.
  if (!fresh && (again || whole === null)) {
    const further = whole === null ? { after: committedCursor(ledger), cursor } : undefined
    return { draft: { ...base, passing: passingDraft({ ...passing, ...(further && { further }) }) }, date: null }
  }
  for (const some of apart(lines, tables))
    await finished.withEngine(async (engine) => {
      for (const table of some) await append(drafting, engine, table)
    })
  const layers = whole === null ? undefined : await datedTables(drafting)
  const tags = await rawFiles(drafting, fresh)
  const old = oldRaw(ledger, formatDate(ticket.committed_at / 1e6 - finished.rawDays * day))
  const remove = old.filter((path) => !drafting.files.some((file) => file.path === path))
  const kept = Object.entries(tags).filter(([, tag]) => !remove.includes(tag.raw))
  const records: Record<string, number> = { ...state.records }
  for (const [table, rows] of Object.entries(change.growth)) records[table] = (records[table] ?? 0) + rows
  const last = whole && { date, observed_at: ticket.committed_at, as_of, source: whole }
  const draft = {
    ...base,
    add: drafting.files,
    tables: await finished.withEngine(async (engine) => await digestsOf(drafting, engine)),
    remove,
    state: stateDraft({
      cursor,
      epoch,
      records,
      ...(layers && { layers, last }),
      ...(last && !state.first && { first: last }),
    }),
    passing: passingDraft({ ...passing, tags: Object.fromEntries(kept) }),
  }
  return { draft, date: layers ? date : null }
}

/** What came to each table, by its name: SHA-256 over its rows, in whatever order they stand. */
async function digestsOf({ files, spool }: Drafting, engine: Engine): Promise<Record<string, string>> {
  const fresh = files.flatMap(({ temporary, table }) =>
    temporary === null || table === 'raw' ? [] : [{ temporary, table }],
  )
  const told: Record<string, string> = {}
  for (const [table, own] of Map.groupBy(fresh, (file) => file.table)) {
    const paths = own.map(({ temporary }) => spool.file(basename(temporary)))
    const [row] = await engine.rows<{ digest: string }>(
      `SELECT sha256(string_agg(line, '' ORDER BY line)) AS digest
       FROM (SELECT sha256(CAST(one AS VARCHAR)) AS line FROM ${parquet(paths)} AS one)`,
    )
    told[table] = row?.digest ?? ''
  }
  return told
}

/** Whether the dated tables of this date show what is held already. */
function isShown({ state, date, poll }: Drafting): boolean {
  const { last } = state
  if (last?.date !== date) return false
  for (const entities of poll.held.values())
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
  const large = tables.filter((table) => lines.size(table).bytes >= manyBytes)
  const small = tables.filter((table) => lines.size(table).rows > 0 && !large.includes(table))
  return [...large.map((table) => [table]), ...(small.length > 0 ? [small] : [])]
}

async function append(drafting: Drafting, engine: Engine, table: string): Promise<void> {
  const at = drafting.ticket.committed_at
  const constants: Constants = { at, ...(table.startsWith('history.') && asOf(drafting)) }
  await stageLines(drafting, engine, { table, lines: table, id: drafting.name, date: null, constants, meta: {} })
}

/** Makes the dated tables of a whole state; gives the layers that each is made of. */
async function datedTables(drafting: Drafting): Promise<Record<string, Layers>> {
  const { lines, poll, memory, change, name: id } = drafting
  const { layers, last } = drafting.state
  const next: Record<string, Layers> = {}
  const observed_at = drafting.ticket.committed_at
  const constants = { snapshot_date: drafting.date, observed_at, ...asOf(drafting), source: drafting.whole }
  const plans = writeDated(lines, { poll, change, memory, layers, lastAt: last?.observed_at ?? 0 })
  await drafting.withEngine(async (engine) => {
    for (const plan of plans) {
      const made = await layer(drafting, engine, plan, layers[plan.table])
      if (made) next[plan.table] = made
    }
    for (const [resource, { base, delta, rows }] of Object.entries(next)) {
      lines.add('snapshots', { resource, base: layerName(base), delta: layerName(delta), rows })
      for (const path of [base, delta]) if (path !== null) listAgain(drafting, resource, path)
    }
    const snapshots = { table: 'snapshots', lines: 'snapshots' }
    await stageLines(drafting, engine, { ...snapshots, id, date: null, constants, meta: {} })
  })
  return next
}

function layerName(path: string | null): string | null {
  const name = path?.split('/').at(-1)
  return name?.replace(/\.parquet$/, '') ?? null
}

async function layer(
  drafting: Drafting,
  engine: Engine,
  plan: LayerPlan,
  held: Layers | undefined,
): Promise<Layers | null> {
  const { table, kind, rows, lines } = plan
  if (kind === 'same') return held ? { ...held, rows } : null
  const { ticket, date, resources } = drafting
  const id = `${drafting.name}-${kind}`
  const constants: Constants = { layer: id, ...asOf(drafting), observed_at: ticket.committed_at }
  const meta = { layer: kind, columns: columnsMark(tableColumns(table, resources)) }
  const made = lines.startsWith('history.') ? datedColumns(table, resources) : {}
  const staged = await stageLines(drafting, engine, { table, lines, id, date, constants, made, meta })
  if (kind === 'delta') return held ? { ...held, delta: staged?.path ?? held.delta, rows } : null
  return staged ? { base: staged.path, base_at: ticket.committed_at, delta: null, rows } : null
}
