import { type Columns, parquet } from '../store/parquet.ts'
import { type Archived, archived, isKept, toState } from '../ledger/archive.ts'
import type { Draft, StagedFile, Ticket } from '../ledger/draft.ts'
import { archivedState, type HeldFile, type HeldVersion, liveFiles } from '../ledger/held.ts'
import { type Engine, quoteList, quoteName } from '../store/engine.ts'
import { recordRows, type Rewriting, usualEncoding, writeEncoded } from './rewrite.ts'
import {
  rewriteFiles,
  holdsPoints,
  isHistory,
  orderOf,
  prove,
  supersededColumn,
  unproved,
  writeChanged,
} from './merge.ts'
import type { Micros } from '../time.ts'

/** What a clock far ahead has dated, and what stands in its place. */
export interface Mending {
  /** The versions that it dated, the first one first. */
  readonly wrong: readonly Pick<HeldVersion, 'version' | 'committed_at'>[]
  /** When the version before them was committed; undefined where there was none. */
  readonly before: Micros | undefined
  /** What is later than this never was. */
  readonly now: Micros
  /** The version that mends. */
  readonly ticket: Ticket
  /** A number that no other file of this mending has. */
  readonly nextFile: () => number
}

/** A part of the mending's draft. */
export type Mended = Required<Pick<Draft, 'add' | 'remove'>>

/** Instants of before and after a mending. */
export interface TrueInstants {
  /** What is later than this never was. */
  readonly now: Micros
  /** The wrong instants in their order; the true ones are in the same order, so that steps stay one after the other. */
  readonly known: ReadonlyMap<Micros, Micros>
  /** What stands in the place of any other wrong one. */
  readonly otherwise: Micros
}

/** SQL of the true instants of a column. */
export function trueInstantSql(name: string, { now, known, otherwise }: TrueInstants): string {
  const column = quoteName(name)
  const list = (values: Iterable<Micros>): string => `CAST([${[...values].join(', ')}] AS BIGINT[])`
  const found = `list_extract(${list(known.values())}, list_position(${list(known.keys())}, epoch_us(${column})))`
  return `CASE WHEN epoch_us(${column}) > ${now} THEN make_timestamptz(coalesce(${found}, ${otherwise}::BIGINT)) ELSE ${column} END`
}

/** The columns that say when something was seen; no other instant of a file can be that of a wrong clock by itself. */
export const seenColumns: ReadonlySet<string> = new Set(['at', 'observed_at', supersededColumn])

/**
 * Writes a file as the nth of the spool with true instants, `mended` by column; null where none of it lies in the future.
 * Nothing but these columns may change.
 */
export async function mendInstants(
  rewriting: Rewriting,
  n: number,
  file: HeldFile,
  { now, mended }: { readonly now: Micros; readonly mended: ReadonlyMap<string, string> },
): Promise<StagedFile | null> {
  return await rewriteFiles(rewriting, n, [file], async ({ session, source, columns, out, metadata }) => {
    if ((await aheadIn(session, source, columns, now)) === 0) return null
    const select = columns.map(({ name }) => `${mended.get(name) ?? quoteName(name)} AS ${quoteName(name)}`)
    const merged = isHistory(file.table) && columns.some(({ name }) => name === supersededColumn)
    const order = orderOf(merged || !isHistory(file.table) ? file.table : '', columns)
    const group = holdsPoints(file.table) ? {} : { group: recordRows }
    const rows = { source: `(SELECT ${select.join(', ')} FROM ${source})`, order, ...group }
    const changing = new Set(mended.keys())
    const written = await writeChanged(session, { files: [file], source, columns, rows, changing, out, metadata })
    const hidden = merged ? await unproved(session, parquet([out])) : 0
    if (hidden > 0 || (await aheadIn(session, parquet([out]), columns, now)) > 0)
      throw new Error(`mending ${file.path} would change more than instants`)
    return written
  })
}

/** How many rows of a relation carry an instant of the future. */
async function aheadIn(session: Engine, source: string, columns: Columns, now: Micros): Promise<number> {
  const late = columns
    .filter(({ name }) => seenColumns.has(name))
    .map(({ name }) => `coalesce(epoch_us(${quoteName(name)}) > ${now}, false)`)
  const [row] = await session.rows(`SELECT count(*) AS n FROM ${source} WHERE ${late.join(' OR ') || 'false'}`)
  return Number(row?.['n'])
}

/**
 * Rows of the ledger that a clock far ahead put into files of the lake get true instants there. What the index still has
 * of them leaves the files, and what is in files is what was before the wrong clock: else nothing that comes before its
 * instant would ever be told again.
 */
export async function mendArchive(
  rewriting: Rewriting,
  mending: Mending,
): Promise<Mended & Required<Pick<Draft, 'state'>>> {
  const { ledger } = rewriting
  const held = archivedState(ledger)
  if (held.before <= mending.ticket.committed_at) return { add: [], remove: [], state: {} }
  const add: StagedFile[] = []
  const remove: string[] = []
  for (const table of archived)
    for (const file of liveFiles(ledger, { table })) {
      if (file.added_version < (mending.wrong[0]?.version ?? Infinity)) continue
      const mended = await mendFile(rewriting, mending, table, file)
      remove.push(file.path)
      if (mended !== null) add.push(mended)
    }
  return { add, remove, state: toState({ ...held, before: (mending.before ?? 0) + 1 }) }
}

/** Windows and days of these names are told by others than this machine's clock. */
const foreign: ReadonlySet<string> = new Set(['since', 'until', 'provider_date'])

/** The file without what the index still tells and with true instants; null where nothing is left of it. */
async function mendFile(
  rewriting: Rewriting,
  mending: Mending,
  table: Archived,
  file: HeldFile,
): Promise<StagedFile | null> {
  const { version, committed_at: now } = mending.ticket
  // An instant of a wrong version is that version's mended one; any other of the future is that of the mending.
  const known = new Map(mending.wrong.map((one) => [one.committed_at, now - (version - one.version)]))
  const bound = (at: number | null): number | null => at && Math.min(at, Math.floor(now / 1_000_000))
  const range = { min_t: bound(file.min_t), max_t: bound(file.max_t) }
  const staged = await rewriteFiles(rewriting, mending.nextFile(), [file], async (old) => {
    const { session, source, columns, out, metadata } = old
    const mended = columns
      .filter(({ name, type }) => type === 'TIMESTAMP WITH TIME ZONE' && !foreign.has(name))
      .map(({ name }) => `${trueInstantSql(name, { now, known, otherwise: now })} AS "${name}"`)
    const rest = `(SELECT * REPLACE (${mended.join(', ')}) FROM ${source} WHERE ${staysSql(rewriting, mending, table)})`
    await writeEncoded(session, { source: rest, order: '' }, out, usualEncoding(false, file.rows), metadata)
    const { rows, digest } = await prove(session, parquet([out]), columns, table)
    if (!isKept(table) && rows !== file.rows) throw new RangeError(`${file.rows} rows of ${file.path} became ${rows}`)
    return rows === 0 ? null : { rows, digest, ...range, meta: file.meta }
  })
  const month = new Date(now / 1000).toISOString().slice(0, 7)
  return staged && { ...staged, label: file.label > month ? month : file.label }
}

/** Rows of which the index has its own stay where they were in files before the wrong clock. */
function staysSql({ ledger }: Rewriting, { before = 0 }: Mending, table: Archived): string {
  if (!isKept(table)) return 'true'
  const [key, instant] = table === 'versions' ? ['version', 'committed_at'] : ['id', 'started_at']
  const known = ledger.statement(`SELECT ${key} AS key FROM ${table}`).all()
  const keys = quoteList(known.map((row) => String(row['key'])))
  return `epoch_us(${instant}) <= ${before} OR CAST(${key} AS VARCHAR) NOT IN (SELECT unnest(${keys}))`
}
