import { realDisk } from '../store/disk.ts'
import { writePrivate } from '../store/files.ts'
import { type Engine, quote, quoteList } from '../store/engine.ts'
import { canonical } from '../ledger/entry.ts'
import type { Micros } from '../time.ts'
import { liveFiles } from '../ledger/held.ts'
import { inLake } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { ListedAsset } from './assets-listing.ts'

/** The newest record of each stored asset as canonical JSON text, in the order of first sight. */
export async function heldAssets(ledger: Ledger, engine: Engine): Promise<Map<string, string>> {
  const files = liveFiles(ledger, { table: 'metric_assets' }).map((file) => inLake(ledger.root, file.path))
  if (files.length === 0) return new Map()
  const rows = await engine.rows<{ id: string; record: string }>(
    `SELECT id, arg_max(record, observed_at) AS record FROM read_parquet(${quoteList(files)}, hive_partitioning = false)
     GROUP BY id ORDER BY min(observed_at), id`,
  )
  return new Map(rows.map(({ id, record }) => [id, canonical(JSON.parse(record))]))
}

/** DuckDB's own limit of a JSON object, in bytes; it sizes buffers after it. */
const usualObject = 1 << 24

/** Writes the rows as one Parquet file, sorted by id. */
export async function writeAssets(
  engine: Engine,
  rows: readonly ListedAsset[],
  out: string,
  observedAt: Micros,
): Promise<void> {
  const lines = `${out}.jsonl`
  const text = rows.map(({ id, symbol, addresses, record }) => {
    const nested = addresses === null ? null : JSON.stringify(addresses)
    return `${JSON.stringify({ id, symbol, addresses: nested, record: JSON.stringify(record) })}\n`
  })
  const longest = text.reduce((most, line) => Math.max(most, line.length), 0)
  await writePrivate(lines, text.join(''))
  try {
    await engine.run(
      `COPY (
         SELECT id, symbol, addresses, record, make_timestamptz(${observedAt}) AS observed_at
         FROM read_json(${quote(lines)}, format = 'newline_delimited', hive_partitioning = false, maximum_object_size = ${Math.max(usualObject, 4 * longest)},
           columns = {id: 'VARCHAR', symbol: 'VARCHAR', addresses: 'VARCHAR', record: 'VARCHAR'})
         ORDER BY id
       ) TO ${quote(out)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2)`,
    )
  } finally {
    await realDisk.remove(lines)
  }
}
