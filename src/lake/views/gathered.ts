import { createHash } from 'node:crypto'
import { gatherable } from '../../merge-plan.ts'
import { namesIn } from '../disk.ts'
import type { Engine } from '../engine.ts'
import type { HeldFile } from '../held.ts'
import { inLake } from '../layout.ts'
import type { Ledger } from '../ledger.ts'
import { type Columns, columnsOf as columnsIn, parquet, type Proof, prove } from '../merge.ts'
import { usualEncoding, writeParquet } from '../merge-encode.ts'
import { columnsOf } from './columns.ts'
import { type ExportDeps, exportsFolder } from './exports.ts'
import { type Gathered, identifier, readPoints } from './relations.ts'

/** Rows of a row group: a question about one metric reads one or two. */
const group = 32_768
const table = 'gathered'

/**
 * Writes the rows of the small points files into one and proves that it holds exactly them; a file that stands for the
 * same ones is taken as it is unless `anew`. Undefined where there are too few, or where their rows cannot be read or
 * do not agree with their commits: then the view names each, and whoever asks is told.
 */
export async function gather(
  ledger: Ledger,
  files: readonly HeldFile[],
  deps: ExportDeps,
  anew: boolean,
): Promise<(Gathered & { readonly written: boolean }) | undefined> {
  const points = files.filter((file) => file.table === 'points')
  const partitions = Map.groupBy(points, ({ metric, interval }) => `${metric} ${interval}`)
  const small = gatherable([...partitions.values()]).toSorted((a, b) => (a.path < b.path ? -1 : 1))
  if (small.length === 0) return undefined
  const digest = createHash('sha256').update(JSON.stringify(small.map(({ path, sha256 }) => [path, sha256])))
  const mark = digest.digest('hex').slice(0, 16)
  const names = await namesIn(inLake(ledger.root, exportsFolder))
  const held = names.find((name) => name.startsWith(`${table}-`) && name.endsWith(`-${mark}.parquet`))
  const version = String(ledger.head().version).padStart(10, '0')
  const path = inLake(ledger.root, `${exportsFolder}/${held ?? `${table}-${version}-${mark}.parquet`}`)
  const known = { path, files: new Set(small.map((file) => file.path)) }
  if (held !== undefined && !anew) return { ...known, written: false }
  return (await write(ledger, small, path, deps)) ? { ...known, written: true } : undefined
}

/** Whether the file could be written and holds what the small ones hold. */
async function write(ledger: Ledger, small: readonly HeldFile[], path: string, deps: ExportDeps): Promise<boolean> {
  const { engine, disk, mark } = deps
  const temporary = inLake(ledger.root, `${exportsFolder}/.tmp-${mark}-${table}.parquet`)
  try {
    if (!(await holdsThem(ledger, small, temporary, engine))) return false
    await disk.sync(temporary)
    await disk.move(temporary, path)
    return true
  } finally {
    await disk.remove(temporary)
  }
}

/** Copies rows that are as many as were committed, one file after another, each sorted by series already. */
async function holdsThem(ledger: Ledger, small: readonly HeldFile[], out: string, engine: Engine): Promise<boolean> {
  const names = columnsOf('points').map(([name]) => identifier(name))
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
