import { columnsOf, parquet } from '../store/parquet.ts'
import { type ClockMended } from '../ledger/apply.ts'
import { type Archived, archived, isKept, toState } from '../ledger/archive.ts'
import type { Draft, StagedFile } from '../ledger/draft.ts'
import { archivedState, type HeldFile, type HeldVersion, liveFiles } from '../ledger/held.ts'
import { quote, quoteList } from '../store/engine.ts'
import { inLake } from '../store/layout.ts'
import { prove } from './merge.ts'
import { footerOf, replacement, type Rewriting } from './rewrite.ts'

/** The mending, the versions that it mends, and where the numbers of files of the spool go on. */
export interface WrongArchive extends ClockMended {
  readonly wrong: readonly Pick<HeldVersion, 'version' | 'committed_at'>[]
  readonly from: number
}

/**
 * Rows of the ledger that a clock far ahead put into files of the lake get true instants there. What the index still has
 * of them leaves the files, and what is in files is what was before the wrong clock: else nothing that comes before its
 * instant would ever be told again.
 */
export async function mendArchive(
  rewriting: Rewriting,
  mending: WrongArchive,
): Promise<Required<Pick<Draft, 'add' | 'remove' | 'state'>>> {
  const { ledger } = rewriting
  const held = archivedState(ledger)
  const first = mending.wrong[0]?.version ?? Infinity
  if (held.before <= mending.at) return { add: [], remove: [], state: {} }
  const add: StagedFile[] = []
  const remove: string[] = []
  for (const table of archived)
    for (const file of liveFiles(ledger, { table })) {
      if (file.added_version < first) continue
      const mended = await mendFile(rewriting, mending, table, file, mending.from + remove.length)
      remove.push(file.path)
      if (mended !== null) add.push(mended)
    }
  return { add, remove, state: toState({ ...held, before: mending.before + 1 }) }
}

/** The file without what the index still tells and with true instants; null where nothing is left of it. */
async function mendFile(
  rewriting: Rewriting,
  mending: WrongArchive,
  table: Archived,
  file: HeldFile,
  n: number,
): Promise<StagedFile | null> {
  const { engine, ledger, spool } = rewriting
  const source = parquet([inLake(ledger.root, file.path)])
  const columns = await columnsOf(engine, source)
  const mended = columns
    .filter(({ type }) => type === 'TIMESTAMP WITH TIME ZONE')
    .filter(({ name }) => !['since', 'until', 'provider_date'].includes(name))
    .map(({ name }) => `${instantSql(mending, name)} AS "${name}"`)
  const out = spool.file(`${n}.parquet`)
  const footer = Object.entries(footerOf(ledger, [file])).map(([key, value]) => `${key}: ${quote(value)}`)
  await engine.run(
    `COPY (SELECT * REPLACE (${mended.join(', ')}) FROM ${source} WHERE ${staysSql(rewriting, mending, table)})
     TO ${quote(out)} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, KV_METADATA {${footer.join(', ')}})`,
  )
  const { rows, digest } = await prove(engine, parquet([out]), columns, table)
  if (rows === 0) return null
  if (!isKept(table) && rows !== file.rows) throw new RangeError(`${file.rows} rows of ${file.path} became ${rows}`)
  const month = new Date(mending.at / 1000).toISOString().slice(0, 7)
  const latest = Math.floor(mending.at / 1_000_000)
  const bound = (at: number | null): number | null => (at === null ? null : Math.min(at, latest))
  const staged = replacement(rewriting, n, [file], {
    rows,
    digest,
    min_t: bound(file.min_t),
    max_t: bound(file.max_t),
    meta: file.meta,
  })
  return { ...staged, label: file.label > month ? month : file.label }
}

/** An instant of a wrong version is that version's mended one; any other of the future is that of the mending. */
function instantSql({ version, at, wrong }: WrongArchive, column: string): string {
  const list = (values: readonly number[]): string => `CAST([${values.join(', ')}] AS BIGINT[])`
  const place = `list_position(${list(wrong.map(({ committed_at }) => committed_at))}, epoch_us("${column}"))`
  const found = `list_extract(${list(wrong.map((one) => at - (version - one.version)))}, ${place})`
  return `CASE WHEN epoch_us("${column}") > ${at} THEN make_timestamptz(coalesce(${found}, ${at}::BIGINT)) ELSE "${column}" END`
}

/** Rows of which the index has its own stay where they were in files before the wrong clock. */
function staysSql({ ledger }: Rewriting, { before }: WrongArchive, table: Archived): string {
  if (!isKept(table)) return 'true'
  const [key, instant] = table === 'versions' ? ['version', 'committed_at'] : ['id', 'started_at']
  const known = ledger.statement(`SELECT ${key} AS key FROM ${table}`).all()
  const keys = quoteList(known.map((row) => String(row['key'])))
  return `epoch_us(${instant}) <= ${before} OR CAST(${key} AS VARCHAR) NOT IN (SELECT unnest(${keys}))`
}
