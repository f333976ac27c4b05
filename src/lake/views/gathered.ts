import { createHash } from 'node:crypto'
import { gatherable } from '../../merge-plan.ts'
import { type Engine, quoteName } from '../engine.ts'
import type { HeldFile } from '../held.ts'
import { inLake } from '../layout.ts'
import type { Ledger } from '../ledger.ts'
import { type Columns, columnsOf as columnsIn, parquet, type Proof, prove } from '../merge.ts'
import { usualEncoding, writeParquet } from '../merge-encode.ts'
import { columnsOf } from './columns.ts'
import { type ExportDeps, exportsFolder, heldExport, placeExport } from './exports.ts'
import { type Gathered, readPoints } from './relations.ts'

/** Rows of a row group: a question about one metric reads one or two. */
const group = 32_768
const table = 'gathered'

/**
 * Writes the rows of the small points files into one and proves that it holds exactly them; a file that stands for the
 * same ones is taken if its bytes are still those that its name tells. Undefined where there are too few, or where their
 * rows cannot be read or do not agree with their commits: then the view names each, and whoever asks is told.
 */
export async function gather(
  ledger: Ledger,
  files: readonly HeldFile[],
  deps: ExportDeps,
): Promise<(Gathered & { readonly written: boolean }) | undefined> {
  const points = files.filter((file) => file.table === 'points')
  const partitions = Map.groupBy(points, ({ metric, interval }) => `${metric} ${interval}`)
  const small = gatherable([...partitions.values()]).toSorted((a, b) => (a.path < b.path ? -1 : 1))
  if (small.length === 0) return undefined
  const listed = JSON.stringify(small.map(({ path, sha256 }) => [path, sha256]))
  const mark = createHash('sha256').update(listed).digest('hex').slice(0, 16)
  const held = await heldExport(ledger.root, table, mark)
  const name = held ?? (await write(ledger, small, mark, deps))
  if (name === undefined) return undefined
  return {
    path: inLake(ledger.root, `${exportsFolder}/${name}`),
    files: new Set(small.map(({ path }) => path)),
    written: held === undefined,
  }
}

/** The name of the written file, which tells its bytes; undefined where it cannot hold what the small ones hold. */
async function write(
  ledger: Ledger,
  small: readonly HeldFile[],
  stands: string,
  { engine, disk, mark }: ExportDeps,
): Promise<string | undefined> {
  const temporary = inLake(ledger.root, `${exportsFolder}/.tmp-${mark}-${table}.parquet`)
  try {
    if (!(await copyProved(ledger, small, temporary, engine))) return undefined
    return await placeExport(ledger, table, stands, temporary, disk)
  } finally {
    await disk.remove(temporary)
  }
}

/** Copies rows that are as many as were committed, one file after another, each sorted by series already. */
async function copyProved(ledger: Ledger, small: readonly HeldFile[], out: string, engine: Engine): Promise<boolean> {
  const names = columnsOf('points').map(([name]) => quoteName(name))
  const source = `(SELECT ${names.join(', ')} FROM ${readPoints(ledger.root, small)})`
  const before = await readable(engine, source)
  if (before?.proof.rows !== small.reduce((sum, file) => sum + file.rows, 0)) return false
  const { columns, proof } = before
  // A dictionary loses the sign of a -0.0, but metrics and assets read twice as fast from one: few groups have so few
  // different values that a dictionary takes them, and the proof tells.
  for (const minusZero of proof.minusZero ? [false, true] : [false]) {
    const encoding = { ...usualEncoding(minusZero, proof.rows), level: 1 }
    await writeParquet(engine, { source, order: '', group }, out, encoding, { pitlake_digest: proof.digest })
    if ((await prove(engine, parquet([out]), columns, table)).digest === proof.digest) return true
  }
  return false
}

/** Columns and proof of a relation; undefined where a file of it is missing or damaged. */
async function readable(engine: Engine, source: string): Promise<{ columns: Columns; proof: Proof } | undefined> {
  try {
    const columns = await columnsIn(engine, source)
    return { columns, proof: await prove(engine, source, columns, table) }
  } catch {
    return undefined
  }
}
