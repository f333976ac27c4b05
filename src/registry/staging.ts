import type { StagedFile, Ticket, CommitDeps } from '../ledger/commit.ts'
import { Engine } from '../store/engine.ts'
import { liveFiles } from '../ledger/held.ts'
import { registryFile, versioned } from '../store/layout.ts'
import { tableColumns } from './columns.ts'
import { type Constants, writeParquet, type Lines } from './lines.ts'
import type { Change } from './steps.ts'
import type { Memory, Poll } from './history.ts'
import type { RegistryState, PassingFacts, Tags } from './state.ts'
import { withoutPoints, listedAs } from '../ledger/draft.ts'
import { parseMicros } from '../time.ts'
import type { Provider, RequestRow } from '../ledger/entry.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Spool } from '../ledger/sweep.ts'
import type { Resources } from './bodies.ts'
import type { RawBody } from './asking.ts'

/** What a poll, one reading of the registry, is committed with. */
export interface PollContext {
  readonly ledger: Ledger
  readonly withEngine: WithEngine
  readonly spool: Spool
  readonly resources: Resources
  readonly run: string
  readonly job: string
  readonly provider: Provider
  readonly providerMoved: boolean
  readonly rawDays: number
  readonly deps: CommitDeps
}

/** A poll that is over, ready to become a version. */
export interface FinishedPoll {
  readonly poll: Poll
  readonly lines: Lines
  readonly as_of: string | null
  readonly raws: readonly RawBody[]
  /** Where the feed goes on afterwards. */
  readonly cursor: string
  readonly epoch: number
  /** Set where a whole state was read: it becomes a dated snapshot. */
  readonly whole: 'snapshot' | 'lists' | null
  readonly disagreeing: readonly string[]
  readonly requests: readonly RequestRow[]
  readonly passing: Partial<PassingFacts>
  readonly tags: Tags
}

/** Up to when a body says that it speaks, as it says it and in microseconds; null where that cannot be read. */
export function asOf({ as_of }: FinishedPoll): { readonly as_of: string | null; readonly as_of_at: number | null } {
  return { as_of, as_of_at: as_of === null ? null : (parseMicros(as_of) ?? null) }
}

/** Lends an engine for one piece of work and closes it. */
export type WithEngine = <T>(work: (engine: Engine) => Promise<T>) => Promise<T>

/**
 * Engines of one run. What an engine took for one piece of work it keeps until it is closed; a new one takes a
 * hundredth of a second. One thread takes the least memory, and records are read and written in their order anyway.
 */
export function enginesOf(spool: Spool): WithEngine {
  return async (work) => {
    const options = { tempDirectory: spool.file('duckdb'), threads: 1, memoryLimit: '256MB' }
    using engine = await Engine.open(':memory:', options)
    return await work(engine)
  }
}

/** The draft of one poll in the making, under the commit lock. */
export interface Drafting {
  readonly context: PollContext
  readonly finished: FinishedPoll
  readonly memory: Memory
  readonly change: Change
  /** As it was before. */
  readonly state: RegistryState
  readonly ticket: Ticket
  /** The day of the commit, `YYYY-MM-DD`, UTC. */
  readonly date: string
  /** Grows by what is made. */
  readonly files: StagedFile[]
}

/** The name of a file of this commit; names of files never repeat. */
export function fileName({ ticket, context }: Drafting): string {
  return versioned(ticket.version, context.run)
}

/** A file of a table that is made of lines. */
interface TableFile {
  readonly table: string
  /** The name of the lines. */
  readonly lines: string
  readonly id: string
  readonly date: string | null
  readonly constants: Constants
  readonly made?: Readonly<Record<string, string>>
  readonly meta: StagedFile['meta']
}

/** Writes the lines of this name as a file of the draft; null where there are none. */
export async function stageLines(drafting: Drafting, engine: Engine, file: TableFile): Promise<StagedFile | null> {
  const { context, finished, ticket, files } = drafting
  const staged = await stageTable(engine, { ...context, lines: finished.lines, ticket }, file)
  if (staged) files.push(staged)
  return staged
}

/** The same of any lines; without resources the table must have the same columns whatever the resources. */
export async function stageTable(
  engine: Engine,
  from: Pick<PollContext, 'spool'> & { readonly lines: Lines; readonly ticket: Ticket; readonly resources?: Resources },
  { table, lines: name, id, date, constants, made = {}, meta }: TableFile,
): Promise<StagedFile | null> {
  const { spool, ticket, resources } = from
  const lines = from.lines.file(name)
  if (lines === undefined) return null
  const temporary = `${table}-${id}.parquet`
  const { rows, longest } = from.lines.size(name)
  const columns = tableColumns(table, resources)
  await writeParquet(engine, { columns, lines, longest, constants, made, out: spool.file(temporary), ticket })
  const place = { temporary: spool.path(temporary), path: registryFile(table, id, date), table, label: date ?? '' }
  return { ...place, ...withoutPoints, rows, meta }
}

/** Lists a file of the lake under this date, if it is not. */
export function listAgain({ context, files, date }: Drafting, table: string, path: string): void {
  if (files.some((file) => file.path === path)) return
  const listed = liveFiles(context.ledger, { table }).filter((file) => file.path === path)
  const [first] = listed
  if (!first || listed.some((file) => file.label === date)) return
  files.push(listedAs(first, { label: date }))
}
