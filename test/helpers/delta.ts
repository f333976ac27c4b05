import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { publish, type PublishSummary } from '../../src/publish/publish.ts'
import { destinationOf } from '../../src/publish/open.ts'
import { type Disk, realDisk } from '../../src/store/disk.ts'
import { Engine, quoteList, type Row } from '../../src/store/engine.ts'
import { commitDeps } from './lakes.ts'
import { catalogue } from './sandbox-client.ts'

/** One line of a Delta log, as this reader needs it. */
interface Line {
  readonly add?: { readonly path: string; readonly stats: string; readonly size: number }
  readonly remove?: { readonly path: string }
  readonly metaData?: { readonly schemaString: string; readonly format: { readonly options: object } }
}

/** The lines of every commit of a table, by version; the test's own reading of the protocol, without checkpoints. */
function linesOf(folder: string, version = Number.POSITIVE_INFINITY): readonly Line[] {
  const log = join(folder, '_delta_log')
  const names = readdirSync(log).filter((name) => /^\d{20}\.json$/.test(name) && Number(name.slice(0, 20)) <= version)
  return names.toSorted().flatMap((name) => {
    const lines = readFileSync(join(log, name), 'utf8').trimEnd().split('\n')
    return lines.map((line) => JSON.parse(line) as Line)
  })
}

/** The files of a version of a table, absolute, with what the log says of each. */
export function deltaFiles(folder: string, version?: number): ReadonlyMap<string, NonNullable<Line['add']>> {
  const files = new Map<string, NonNullable<Line['add']>>()
  for (const { add, remove } of linesOf(folder, version)) {
    if (remove && !files.delete(join(folder, decodeURI(remove.path)))) throw new Error(`${remove.path} was not there`)
    if (add) files.set(join(folder, decodeURI(add.path)), add)
  }
  return files
}

/** The newest version of a table. */
export function deltaVersion(folder: string): number {
  const names = readdirSync(join(folder, '_delta_log')).filter((name) => name.endsWith('.json'))
  return Math.max(...names.map((name) => Number(name.slice(0, 20))))
}

/** The rows of a version of a table. */
export async function deltaRows(folder: string, version?: number): Promise<readonly Row[]> {
  const files = [...deltaFiles(folder, version).keys()]
  if (files.length === 0) return []
  using engine = await Engine.open(':memory:', { threads: 1 })
  return await engine.rows(`SELECT * FROM read_parquet(${quoteList(files)}, hive_partitioning = false)`)
}

/** Publishes a lake to a folder as the command does. */
export async function publishTo(
  root: string,
  folder: string,
  { disk = realDisk, mark = 'test', nowMicros }: { disk?: Disk; mark?: string; nowMicros?: () => number } = {},
): Promise<PublishSummary> {
  const deps = { ...commitDeps(nowMicros ? { nowMicros } : {}), signal: new AbortController().signal }
  return await publish({ root, catalogue, to: destinationOf(folder, { disk, mark }) }, deps)
}
