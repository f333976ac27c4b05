import { type Columns, columnsOf, parquet } from '../store/parquet.ts'
import { type Engine, quote, quoteName } from '../store/engine.ts'
import type { FileEntry } from '../ledger/entry.ts'
import type { Micros } from '../time.ts'
import { inLake } from '../store/layout.ts'
import { writeChanged } from './changed-rows.ts'
import { inSession, orderOf } from './merge.ts'
import { recordRows } from './encode.ts'
import { isHistory, supersededColumn, unproved } from './merge-history.ts'

/** Instants that a clock far ahead has dated, and those that stand in their place. */
export interface Mending {
  /** What is later than this never was. */
  readonly now: Micros
  /** The wrong instants in their order; the mended ones are in the same order, so that steps stay one after the other. */
  readonly instants: ReadonlyMap<Micros, Micros>
  /** The instant of the mending commit, where a wrong one is none of those. */
  readonly observedAt: Micros
  /** The day of the mending commit, `YYYY-MM-DD`. */
  readonly date: string
  /** Layers of dated tables that got other names. */
  readonly layers: ReadonlyMap<string, string>
}

/** A file of the registry, or of the listing of assets, that is to get true instants. */
export interface InstantsJob extends Mending {
  readonly root: string
  readonly file: FileEntry
  readonly out: string
  readonly metadata: Readonly<Record<string, string>>
}

const instants = new Set(['at', 'observed_at', supersededColumn])
const changing = new Set([...instants, 'snapshot_date', 'layer', 'base', 'delta'])

/** Writes the file with true instants and gives its digest; null where none of it lies in the future. */
export async function redateInstants(
  engine: Engine,
  job: InstantsJob,
): Promise<Pick<FileEntry, 'rows' | 'digest'> | null> {
  return await inSession(engine, [job.out], async (session) => {
    const { file, out } = job
    const source = parquet([inLake(job.root, file.path)])
    const columns = await columnsOf(session, source)
    if ((await aheadIn(session, source, columns, job.now)) === 0) return null
    const mended = columns.map(({ name }) => `${mendedSql(job, name)} AS ${quoteName(name)}`)
    const merged = columns.some(({ name }) => name === supersededColumn)
    const order = orderOf(merged || !isHistory(file.table) ? file.table : '', columns)
    const rows = { source: `(SELECT ${mended.join(', ')} FROM ${source})`, order, group: recordRows }
    const { before, after } = await writeChanged(session, { ...job, files: [file], source, columns, rows, changing })
    const written = parquet([out])
    const hidden = isHistory(file.table) && merged ? await unproved(session, written) : 0
    if (before.rows !== file.rows || hidden > 0 || (await aheadIn(session, written, columns, job.now)) > 0)
      throw new Error(`mending ${file.path} would change more than instants`)
    return { rows: after.rows, digest: after.digest }
  })
}

/** How many rows of a relation carry an instant of the future. */
async function aheadIn(session: Engine, source: string, columns: Columns, now: Micros): Promise<number> {
  const late = columns
    .filter(({ name }) => instants.has(name))
    .map(({ name }) => `coalesce(epoch_us(${quoteName(name)}) > ${now}, false)`)
  const [row] = await session.rows(`SELECT count(*) AS n FROM ${source} WHERE ${late.join(' OR ') || 'false'}`)
  return Number(row?.['n'])
}

function mendedSql({ now, instants: known, observedAt, date, layers }: Mending, name: string): string {
  const column = quoteName(name)
  if (instants.has(name)) {
    const [wrong, mended] = [[...known.keys()], [...known.values()]].map(
      (list) => `CAST([${list.join(', ')}] AS BIGINT[])`,
    )
    const found = `list_extract(${mended}, list_position(${wrong}, epoch_us(${column})))`
    return `CASE WHEN epoch_us(${column}) > ${now} THEN make_timestamptz(coalesce(${found}, ${observedAt}::BIGINT)) ELSE ${column} END`
  }
  if (name === 'snapshot_date')
    return `CASE WHEN epoch_us(observed_at) > ${now} THEN CAST(${quote(date)} AS DATE) ELSE ${column} END`
  if (!changing.has(name) || layers.size === 0) return column
  const cases = [...layers].map(([from, to]) => `WHEN ${quote(from)} THEN ${quote(to)}`)
  return `CASE ${column} ${cases.join(' ')} ELSE ${column} END`
}
