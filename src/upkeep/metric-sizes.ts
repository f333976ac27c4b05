import { Engine, quoteList } from '../store/engine.ts'
import { liveFiles } from '../ledger/held.ts'
import { Ledger } from '../ledger/ledger.ts'
import { inLake } from '../store/layout.ts'
import { statement } from './sql.ts'

/** What the points of one metric cost on disk. */
export interface MetricSize {
  readonly metric: string
  readonly files: number
  readonly points: number
  readonly bytes: number
  readonly bytes_per_point: number
  /** Bytes a point by column, the dearest first; `footers` is what belongs to no column. */
  readonly columns: Readonly<Record<string, number>>
}

/** What stands for the metric of files that hold all of them. */
const recent = '(recent)'

/** Bytes per point and column of every metric, from the footers of its files; the dearest metric first. */
export async function metricSizes(root: string): Promise<MetricSize[]> {
  using ledger = await Ledger.openToRead(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  const files = liveFiles(ledger, { table: 'points' })
  const sizes: MetricSize[] = []
  for (const [metric, own] of Map.groupBy(files, (file) => file.metric ?? recent)) {
    const paths = own.map((file) => inLake(root, file.path))
    const columns = new Map<string, number>()
    const rows = await engine.rows<{ column: string; bytes: bigint }>(statement('sizes', { files: quoteList(paths) }))
    for (const { column, bytes } of rows) columns.set(column, (columns.get(column) ?? 0) + Number(bytes))
    const points = own.reduce((sum, file) => sum + file.rows, 0)
    const bytes = own.reduce((sum, file) => sum + file.bytes, 0)
    const inColumns = [...columns.values()].reduce((sum, one) => sum + one, 0)
    const sorted = [...columns, ['footers', bytes - inColumns] as const].toSorted(([, a], [, b]) => b - a)
    const each = Object.fromEntries(sorted.map(([name, one]) => [name, one / points]))
    sizes.push({ metric, files: own.length, points, bytes, bytes_per_point: bytes / points, columns: each })
  }
  return sizes.toSorted((a, b) => b.bytes - a.bytes)
}
