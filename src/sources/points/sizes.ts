import { liveFiles } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { rowsAs } from '../../lake/ledger/index-rows.ts'
import { count, text } from '../../base/value-checks.ts'
import { Engine, quotePaths } from '../../lake/store/engine.ts'
import { statement } from './sql.ts'
import { inLake } from '../../lake/store/layout.ts'

/** The disk space of the points of one metric. */
export type MetricSize = {
  readonly metric: string
  readonly files: number
  readonly points: number
  readonly bytes: number
  readonly bytes_per_point: number
  /** Bytes per point by column, the largest first; `footers` is the part that belongs to no column. */
  readonly columns: Readonly<Record<string, number>>
}

/** Name in place of a metric for files that contain all of them. */
const recent = '(recent)'

/** Computes the bytes per point and column of every metric, from the footers of its files; the largest first. */
export async function metricSizes(root: string): Promise<MetricSize[]> {
  using ledger = await Ledger.openToRead(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  const files = liveFiles(ledger, { table: 'points' })
  const sizes: MetricSize[] = []
  for (const [metric, metricFiles] of Map.groupBy(files, (file) => file.metric ?? recent)) {
    const paths = metricFiles.map((file) => inLake(root, file.path))
    const rows = await rowsAs(
      engine,
      { column: text, bytes: count },
      statement('column_sizes', { files: quotePaths(paths) }),
    )
    const points = metricFiles.reduce((sum, file) => sum + file.rows, 0)
    const bytes = metricFiles.reduce((sum, file) => sum + file.bytes, 0)
    const footers = { column: 'footers', bytes: bytes - rows.reduce((sum, row) => sum + row.bytes, 0) }
    const sorted = [...rows, footers].toSorted((a, b) => b.bytes - a.bytes)
    const each = Object.fromEntries(sorted.map((row) => [row.column, row.bytes / points]))
    sizes.push({ metric, files: metricFiles.length, points, bytes, bytes_per_point: bytes / points, columns: each })
  }
  return sizes.toSorted((a, b) => b.bytes - a.bytes)
}
