import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { relation } from '../../src/sources/registry/columns.ts'
import { tableFiles } from '../../src/sources/registry/status.ts'
import type { Catalogue } from '../../src/catalog/catalogue.ts'
import { publish } from '../../src/maintenance/publish/publish.ts'
import type { Destination } from '../../src/maintenance/publish/destination.ts'
import { type Portions, usualPortions } from '../../src/maintenance/publish/ranges.ts'
import { destinationOf } from '../../src/maintenance/publish/s3.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import { Engine, quoteList, type Row } from '../../src/lake/store/engine.ts'
import { commitDeps } from './lakes/drafts.ts'
import { catalogue as usual } from './sandbox-client.ts'
import { makeViews, multiset, withViews } from './views.ts'
import { micros } from './instants.ts'
import type { PointRow } from './lakes/lake-recipe.ts'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

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

/** How a test publishes. */
export interface Publishing {
  readonly disk?: Disk
  readonly mark?: string
  readonly nowMicros?: () => number
  readonly portions?: Portions
  readonly catalogue?: Catalogue
  readonly verify?: boolean
  /** Puts something between the publish and its destination. */
  readonly through?: (to: Destination) => Destination
}

/** Publishes a lake to a folder as the command does. */
export async function publishTo(root: string, folder: string, how: Publishing = {}): ReturnType<typeof publish> {
  const {
    disk = realDisk,
    mark = 'test',
    nowMicros,
    portions = usualPortions,
    through = (to) => to,
    catalogue = usual,
    verify = false,
  } = how
  const deps = { ...commitDeps(nowMicros ? { nowMicros } : {}), signal: new AbortController().signal }
  const to = through(destinationOf(folder, { disk, mark }))
  return await publish({ root, catalogue, to, portions, verify }, deps)
}

/** The next whole millisecond of ISO text with microseconds, by arithmetic of the test's own; none for infinity. */
export function ceiled(text: string): string | null {
  if (text.endsWith('infinity')) return null
  return new Date(Math.floor((micros(text) + 999) / 1000)).toISOString().replace('Z', '000Z')
}

const isInstant = (value: unknown): value is string =>
  typeof value === 'string' && /^(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z|-?infinity)$/.test(value)

/** Rows with every instant rounded up, as what is published must be; keys sorted, as a multiset. */
export function asPublished(rows: readonly Row[]): string[] {
  const up = (row: Row) => Object.entries(row).map(([name, value]) => [name, isInstant(value) ? ceiled(value) : value])
  return asRead(rows.map((row): Row => Object.fromEntries(up(row))))
}

/** Rows as they stand, with nothing rounded, as texts that can be compared. */
export function asRead(rows: readonly Row[]): string[] {
  return multiset(rows.map((row) => Object.fromEntries(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)))))
}

const filesOf = (root: string, table: string): string => {
  using ledger = Ledger.glance(root)
  return relation(table, ledger === undefined ? [] : tableFiles(ledger, table))
}

/** What no view shows as it stands in files: SQL of its rows as they are to be published. */
const unseen: Readonly<Record<string, (root: string) => string>> = {
  registry_snapshots: (root) => `(SELECT * EXCLUDE (base, delta) FROM ${filesOf(root, 'snapshots')})`,
  registry_events: (root) => `(SELECT * EXCLUDE (hash) RENAME ("at" AS observed_at) FROM ${filesOf(root, 'events')})`,
  registry_schema_changes: (root) => `(SELECT * RENAME ("at" AS observed_at) FROM ${filesOf(root, 'schema_changes')})`,
  registry_findings: (root) => `(SELECT * RENAME ("at" AS observed_at) FROM ${filesOf(root, 'registry_findings')})`,
}

/**
 * The tables that say something else than the views of the lake do; `versions` and `available_rule_at` are not
 * compared.
 */
export async function unlike(root: string, folder: string): Promise<readonly string[]> {
  await makeViews(root)
  const wrong: string[] = []
  await withViews(root, async (engine) => {
    const tables = readdirSync(folder).filter((name) => existsSync(join(folder, name, '_delta_log')))
    for (const table of tables.filter((name) => name !== 'versions')) {
      const view = table.replace(/^history_/, 'history.').replace(/^snapshot_/, 'snapshots.')
      const published = (await deltaRows(join(folder, table))).map((row) => {
        const { available_rule_at: rule, ...rest } = row
        return rule === undefined ? row : rest
      })
      const own = await engine.rows(`SELECT * FROM ${unseen[table]?.(root) ?? view}`)
      if (JSON.stringify(asRead(published)) !== JSON.stringify(asPublished(own))) wrong.push(table)
    }
  })
  return wrong
}

/** The point of a day, all known since the same one. */
export function onePoint(t: string): PointRow {
  const series = { metric: 'indicators/sopr_adjusted_pit', asset: 'BTC', interval: '24h' } as const
  return { ...series, t, available_at: '2024-04-01', v: 1 }
}
