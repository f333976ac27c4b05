import { type Columns, columnsOf, parquet } from '../store/parquet.ts'
import { type Engine, quoteName } from '../store/engine.ts'
import type { Draft, Ticket } from '../ledger/draft.ts'
import type { HeldFile, HeldVersion } from '../ledger/held.ts'
import type { Micros } from '../time.ts'
import { inLake } from '../store/layout.ts'
import { writeChanged, holdsPoints, inSession, orderOf, isHistory, supersededColumn, unproved } from './merge.ts'
import { recordRows } from './encode.ts'
import { mergedFooter, type Rewriting, type MergedFile } from './rewrite.ts'

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
  { engine, ledger, spool }: Rewriting,
  n: number,
  file: HeldFile,
  { now, mended }: { readonly now: Micros; readonly mended: ReadonlyMap<string, string> },
): Promise<MergedFile | null> {
  const out = spool.file(`${n}.parquet`)
  return await inSession(engine, [out], async (session) => {
    const source = parquet([inLake(ledger.root, file.path)])
    const columns = await columnsOf(session, source)
    if ((await aheadIn(session, source, columns, now)) === 0) return null
    const select = columns.map(({ name }) => `${mended.get(name) ?? quoteName(name)} AS ${quoteName(name)}`)
    const merged = isHistory(file.table) && columns.some(({ name }) => name === supersededColumn)
    const order = orderOf(merged || !isHistory(file.table) ? file.table : '', columns)
    const group = holdsPoints(file.table) ? {} : { group: recordRows }
    const rows = { source: `(SELECT ${select.join(', ')} FROM ${source})`, order, ...group }
    const changing = new Set(mended.keys())
    const job = { files: [file], source, columns, rows, changing, out, metadata: mergedFooter(ledger, [file]) }
    const written = await writeChanged(session, job)
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
