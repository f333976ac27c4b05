import type { StagedFile, Ticket } from '../ledger/commit.ts'
import type { Engine } from '../store/engine.ts'
import { liveFiles } from '../ledger/held.ts'
import { registryFile } from '../store/layout.ts'
import { tableColumns } from './columns.ts'
import { type Constants, writeParquet } from './lines.ts'
import type { Change } from './steps.ts'
import type { Memory } from './history.ts'
import type { FinishedPoll, PollContext } from './finished-poll.ts'
import type { RegistryState } from './state.ts'

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
  return `${String(ticket.version).padStart(10, '0')}-${context.run}`
}

/** Writes the lines of this name as a file of the table; null where there are none. */
export async function stageLines(
  { context, finished, ticket, files }: Drafting,
  engine: Engine,
  place: {
    readonly table: string
    readonly lines: string
    readonly id: string
    readonly date: string | null
    readonly constants: Constants
    readonly made?: Readonly<Record<string, string>>
    readonly meta: StagedFile['meta']
  },
): Promise<StagedFile | null> {
  const { table, id, date, constants, made = {}, meta } = place
  const lines = finished.lines.file(place.lines)
  if (lines === undefined) return null
  const { spool } = context
  const temporary = `${table}-${id}.parquet`
  const longest = finished.lines.longest(place.lines)
  const columns = tableColumns(table, context.resources)
  await writeParquet(engine, { columns, lines, longest, constants, made, out: spool.file(temporary), ticket })
  const staged: StagedFile = {
    temporary: spool.path(temporary),
    path: registryFile(table, id, date),
    table,
    label: date ?? '',
    metric: null,
    interval: null,
    rows: finished.lines.rows(place.lines),
    min_t: null,
    max_t: null,
    digest: null,
    meta,
  }
  files.push(staged)
  return staged
}

/** Lists a file of the lake under this date, if it is not. */
export function listAgain({ context, files, date }: Drafting, table: string, path: string): void {
  if (files.some((file) => file.path === path)) return
  const listed = liveFiles(context.ledger, { table }).filter((file) => file.path === path)
  const [first] = listed
  if (!first || listed.some((file) => file.label === date)) return
  const { rows, min_t, max_t, digest, meta } = first
  const frame = { metric: null, interval: null, rows, min_t, max_t, digest, meta }
  files.push({ temporary: null, path, table, label: date, ...frame })
}
