import { columnsOf, parquet } from '../store/parquet.ts'
import { type Archived, archived, isKept, toState } from '../ledger/archive.ts'
import type { Draft, StagedFile } from '../ledger/draft.ts'
import { archivedState, type HeldFile, liveFiles } from '../ledger/held.ts'
import { quoteList } from '../store/engine.ts'
import { inLake } from '../store/layout.ts'
import { type Mended, type Mending, trueInstantSql } from './clock-instants.ts'
import { usualEncoding, writeParquet } from './encode.ts'
import { prove } from './merge.ts'
import { mergedFooter, replacement, type Rewriting } from './rewrite.ts'

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
  const { engine, ledger, spool } = rewriting
  const { version, committed_at: now } = mending.ticket
  // An instant of a wrong version is that version's mended one; any other of the future is that of the mending.
  const known = new Map(mending.wrong.map((one) => [one.committed_at, now - (version - one.version)]))
  const source = parquet([inLake(ledger.root, file.path)])
  const columns = await columnsOf(engine, source)
  const mended = columns
    .filter(({ name, type }) => type === 'TIMESTAMP WITH TIME ZONE' && !foreign.has(name))
    .map(({ name }) => `${trueInstantSql(name, { now, known, otherwise: now })} AS "${name}"`)
  const rest = `(SELECT * REPLACE (${mended.join(', ')}) FROM ${source} WHERE ${staysSql(rewriting, mending, table)})`
  const n = mending.nextFile()
  const out = spool.file(`${n}.parquet`)
  await writeParquet(
    engine,
    { source: rest, order: '' },
    out,
    usualEncoding(false, file.rows),
    mergedFooter(ledger, [file]),
  )
  const { rows, digest } = await prove(engine, parquet([out]), columns, table)
  if (rows === 0) return null
  if (!isKept(table) && rows !== file.rows) throw new RangeError(`${file.rows} rows of ${file.path} became ${rows}`)
  const month = new Date(now / 1000).toISOString().slice(0, 7)
  const bound = (at: number | null): number | null => at && Math.min(at, Math.floor(now / 1_000_000))
  const range = { min_t: bound(file.min_t), max_t: bound(file.max_t) }
  const staged = replacement(rewriting, n, [file], { rows, digest, ...range, meta: file.meta })
  return { ...staged, label: file.label > month ? month : file.label }
}

/** Rows of which the index has its own stay where they were in files before the wrong clock. */
function staysSql({ ledger }: Rewriting, { before = 0 }: Mending, table: Archived): string {
  if (!isKept(table)) return 'true'
  const [key, instant] = table === 'versions' ? ['version', 'committed_at'] : ['id', 'started_at']
  const known = ledger.statement(`SELECT ${key} AS key FROM ${table}`).all()
  const keys = quoteList(known.map((row) => String(row['key'])))
  return `epoch_us(${instant}) <= ${before} OR CAST(${key} AS VARCHAR) NOT IN (SELECT unnest(${keys}))`
}
