import { type Engine, quoteList } from './engine.ts'

/** What the footer of a Parquet file says. */
export interface Footer {
  readonly lake: string | null
  readonly version: string | null
  readonly rows: number
}

/** The footers of these files, by path. */
export async function footersOf(engine: Engine, paths: readonly string[]): Promise<Map<string, Footer>> {
  const footers = new Map<string, Footer>()
  if (paths.length === 0) return footers
  const rows = await engine.rows<{ path: string; points: bigint; lake: string | null; version: string | null }>(
    `WITH facts AS (SELECT file_name AS path, decode(key) AS name, decode(value) AS value
       FROM parquet_kv_metadata(${quoteList(paths)}) WHERE decode(key) IN ('pitlake_lake', 'pitlake_version'))
     SELECT f.file_name AS path, f.num_rows AS points, max(k.value) FILTER (k.name = 'pitlake_lake') AS lake,
       max(k.value) FILTER (k.name = 'pitlake_version') AS version
     FROM parquet_file_metadata(${quoteList(paths)}) f LEFT JOIN facts k ON k.path = f.file_name GROUP BY ALL`,
  )
  for (const row of rows)
    footers.set(row.path, {
      lake: row.lake,
      version: row.version,
      rows: Number(row.points),
    })
  return footers
}

/** What the points files hold of one series; `t` in seconds. */
export interface Counted {
  readonly metric: string
  readonly interval: string
  readonly asset: string
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
  readonly params: string | null
  readonly points: number
  readonly first: number
  readonly last: number
}

/** Counts the points of every series in a relation over points files. */
export async function countSeries(engine: Engine, points: string): Promise<Counted[]> {
  const rows = await engine.rows<Omit<Counted, Numbers> & Record<Numbers, bigint>>(
    `SELECT metric, "interval", asset, currency, exchange, network, params, count(*) AS points, epoch_us(min(t)) // 1000000 AS first,
       epoch_us(max(t)) // 1000000 AS last
     FROM ${points} GROUP BY ALL`,
  )
  return rows.map(({ points, first, last, ...names }) => ({
    ...names,
    points: Number(points),
    first: Number(first),
    last: Number(last),
  }))
}

type Numbers = 'points' | 'first' | 'last'
