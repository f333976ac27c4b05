import { columnsOf, parquet } from '../store/parquet.ts'
import { type Archived, archivable, archived, isKept, toState } from '../ledger/archive.ts'
import { commit, type CommitDeps } from '../ledger/commit.ts'
import { type Draft, footerOf, type StagedFile, type Ticket, withoutPoints } from '../ledger/draft.ts'
import type { Micros } from '../time.ts'
import { archivedState } from '../ledger/held.ts'
import { archiveFile, versioned } from '../store/layout.ts'
import { runName } from '../ledger/job.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { prove } from './merge.ts'
import { archivedTables, copySql, writeLines } from '../views/ledger-tables.ts'
import { type Rewriting, withRewriting } from './rewrite.ts'
import { providerOf } from '../ledger/provider.ts'
import { quote } from '../store/engine.ts'
import { count, orNull, text, real } from '../ledger/shape.ts'
import { rowOf } from '../ledger/row.ts'

/** So many rows are worth a version of their own. */
const worthwhile = 500
/** Rows of the last two days stay at hand. */
const atHand: Micros = 2 * 86_400_000_000

/** The instant that decides into which file a row goes: one a month, so that old months can go; null where none may. */
const instants: Readonly<Record<Archived, string | null>> = {
  requests: 'asked_at',
  coverage: null,
  runs: 'started_at',
  versions: null,
}

/**
 * Puts old rows of the ledger into files of the lake, where they are merged like points: so neither the ledger nor its
 * checkpoints nor what is written for the views at the end of each run grow with every request that was ever made.
 */
export async function archiveRows(
  ledger: Ledger,
  deps: CommitDeps,
  least: number = worthwhile,
  run: string = runName(deps, 'archive'),
): Promise<void> {
  const due = deps.nowMicros() - atHand
  const waiting = archived.map((table) => countOf(ledger, table, due)).reduce((sum, rows) => sum + rows, 0)
  if (waiting < least) return
  await withRewriting(ledger, { ...deps, threads: 1 }, run, async (rewriting) => {
    await commit(
      ledger,
      async (ticket) => {
        // Where the clock has stepped back, nothing that is in files already is told to go again.
        const before = Math.max(due, archivedState(ledger).before)
        return await draftOf({ ...rewriting, ticket, before })
      },
      deps,
    )
  })
}

interface Archiving extends Pick<Rewriting, 'ledger' | 'spool' | 'engine' | 'run'> {
  readonly ticket: Ticket
  readonly before: Micros
}

/** What goes: what stands in files already does not go again. */
function conditionOf(ledger: Ledger, table: Archived, before: Micros): string {
  const rows = archivable(table, before)
  return isKept(table) ? `${rows} AND NOT (${archivable(table, archivedState(ledger).before)})` : rows
}

function countOf(ledger: Ledger, table: Archived, before: Micros): number {
  const row = ledger.statement(`SELECT count(*) AS n FROM ${table} WHERE ${conditionOf(ledger, table, before)}`).get()
  return Number(row?.['n'] ?? 0)
}

async function draftOf(archiving: Archiving): Promise<Draft> {
  const { ledger, run, before } = archiving
  const held = archivedState(ledger)
  const add: StagedFile[] = []
  for (const table of archived) add.push(...(await filesOf(archiving, table)))
  const cost = ledger
    .statement(
      `SELECT count(*) AS n, coalesce(sum(credits), 0) AS c FROM requests WHERE ${archivable('requests', before)}`,
    )
    .get()
  const state = {
    before,
    requests: held.requests + Number(cost?.['n'] ?? 0),
    credits: held.credits + Number(cost?.['c'] ?? 0),
  }
  return { job: 'archive', run, provider: providerOf(ledger), add, state: toState(state) }
}

const partOf = rowOf({ label: text, rows: count, min_t: orNull(real), max_t: orNull(real) })

async function filesOf(archiving: Archiving, table: Archived): Promise<StagedFile[]> {
  const { ledger, before } = archiving
  const condition = conditionOf(ledger, table, before)
  const instant = instants[table]
  const labelOf = instant === null ? `''` : `strftime('%Y-%m', ${instant} / 1000000, 'unixepoch')`
  const parts = ledger.statement(
    `SELECT ${labelOf} AS label, count(*) AS rows, min(${instant}) / 1000000 AS min_t, max(${instant}) / 1000000 AS max_t
     FROM ${table} WHERE ${condition} GROUP BY 1 ORDER BY 1`,
  )
  const files: StagedFile[] = []
  for (const part of parts.all().map(partOf)) {
    const own = `${condition} AND ${labelOf} = ${quote(part.label)}`
    files.push(await fileOf(archiving, { table, condition: own, ...part }))
  }
  return files
}

interface Part extends ReturnType<typeof partOf> {
  readonly table: Archived
  readonly condition: string
}

async function fileOf(
  { ledger, ticket, spool, engine }: Archiving,
  { table, label, condition, ...facts }: Part,
): Promise<StagedFile> {
  const name = versioned(ticket.version, label === '' ? 'all' : label)
  const { columns, lines } = archivedTables[table]
  const [text, temporary] = [spool.file(`${table}-${name}.jsonl`), `${table}-${name}.parquet`]
  await writeLines(text, lines(ledger, condition))
  await engine.run(copySql(text, spool.file(temporary), columns, footerOf(ticket)))
  const source = parquet([spool.file(temporary)])
  const proof = await prove(engine, source, await columnsOf(engine, source), table)
  if (proof.rows !== facts.rows) throw new RangeError(`${facts.rows} rows of ${table} became ${proof.rows}`)
  const place = { temporary: spool.path(temporary), path: archiveFile(table, name), table, label }
  return { ...place, ...withoutPoints, ...facts, digest: proof.digest, meta: {} }
}
