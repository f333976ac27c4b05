import type { StagedFile } from '../../lake/ledger/draft.ts'
import { sha256 } from '../../lake/ledger/entry.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { heldMembers } from '../../lake/ledger/state-tree.ts'
import { type Engine, quote, quoteName } from '../../lake/store/engine.ts'
import { inLake, parseRegistryFile } from '../../lake/store/layout.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import { formatDate, type Micros } from '../../base/time.ts'
import { registryStatement, relation } from './columns.ts'

/*
 * What the state tells of the registry: of each table, as it is published, a digest for each day that brought or dated rows
 * (docs/explanation/proof.md). A day is digested from all of its rows, so it follows from what is published alone.
 */

type Kind = 'history' | 'dated' | 'grown'

/** The columns of the lake's files that are its own business. */
export const ownColumns: Readonly<Record<Kind, readonly string[]>> = {
  history: ['closed_by', 'source', 'hash', 'as_of', 'as_of_at', 'superseded_at', 'of table'],
  dated: ['layer', 'entity', 'removed', 'of table'],
  grown: ['base', 'delta', 'hash', 'of table'],
}

/** The names under which tables that only grow are published. */
const grown: Readonly<Record<string, string>> = {
  snapshots: 'registry_snapshots',
  events: 'registry_events',
  schema_changes: 'registry_schema_changes',
  registry_findings: 'registry_findings',
}

const kindOf = (table: string): Kind => (table.startsWith('history.') ? 'history' : grown[table] ? 'grown' : 'dated')

/** The name under which a table of the registry is published; undefined for what is seen in other tables alone. */
export function publishedName(table: string): string | undefined {
  if (table === 'absorbed') return undefined
  return grown[table] ?? (table.startsWith('history.') ? table.replace('.', '_') : `snapshot_${table}`)
}

/** By published table and day (`2024-06-01`); `''` for a day that has no rows any more. */
type Days = Readonly<Record<string, Readonly<Record<string, string>>>>

type TableFile = Pick<StagedFile, 'path' | 'table' | 'label'> & Partial<Pick<StagedFile, 'temporary'>>

/** Whether the state tells the days of every table of the registry that has files. */
export function isRegistryTold(ledger: Ledger, live: readonly TableFile[] = liveFiles(ledger)): boolean {
  const told = new Map(heldMembers(ledger, 'registry'))
  return live.every(({ path, table }) => {
    const name = parseRegistryFile(path) && publishedName(table)
    return name === undefined || told.get(name)?.includes(' ') === true
  })
}

/**
 * The days that are others after a change of files. With `at` the files are what a commit of that instant brings: its rows
 * go on where the ledger ends, and of the dates of snapshots only its own is digested. Else all rows are read.
 */
export async function registryDays(
  ledger: Ledger,
  engine: Engine,
  { add = [], remove = [] }: { readonly add?: readonly StagedFile[]; readonly remove?: readonly string[] },
  at?: Micros,
): Promise<Days> {
  const all: readonly TableFile[] = liveFiles(ledger)
  const [now, before] = [at ?? 0, ledger.head().committed_at].map((instant) => Math.ceil(instant / 1000))
  // Two commits of one millisecond are one instant: then all rows are read of what this one adds to.
  const isTied = now === before
  const date = at === undefined || !isRegistryTold(ledger, all) ? undefined : formatDate(at / 1e6)
  const live = all.filter(({ path }) => !remove.includes(path))
  const fresh = add.filter(({ temporary }) => temporary !== null)
  // A date shows tables that it left as they were, too.
  const dated = fresh.some(({ table }) => table === 'snapshots') ? date : undefined
  const files = [...live, ...add].filter((file) => {
    if (!parseRegistryFile(file.path) || publishedName(file.table) === undefined) return false
    if (date === undefined) return true
    if (file.label !== '') return file.label === dated
    return fresh.some(({ path, table }) => (isTied ? table === file.table : path === file.path))
  })
  const digests: Record<string, Record<string, string>> = {}
  for (const table of new Set(files.map((file) => file.table))) {
    const name = publishedName(table) ?? table
    const grows = kindOf(table) !== 'dated'
    const days = heldMembers(ledger, name).filter(([day]) => (grows && isTied) || day >= (date ?? ''))
    const goesOn = date !== undefined && grows && !isTied
    digests[name] = Object.fromEntries(goesOn ? days : days.map(([day]) => [day, '']))
  }
  const pathOf = ({ path, temporary }: TableFile): string => inLake(ledger.root, temporary ?? path)
  const snapshots = files.filter(({ table }) => table === 'snapshots').map(pathOf)
  for (const [kind, own] of Map.groupBy(files, ({ table }) => kindOf(table))) {
    const tables = new Map(own.map((file) => [pathOf(file), file.table]))
    const rows = relation(own[0]?.table ?? '', [...tables.keys()], [...tables.values()])
    for (const { table, seen, n, digest } of await engine.rows<Step>(await stepsSql(engine, kind, rows, snapshots))) {
      const days = (digests[publishedName(table) ?? table] ??= {})
      const day = formatDate(seen / 1000)
      const [count, chain = ''] = days[day]?.split(' ') ?? []
      days[day] = `${Number(count ?? 0) + n} b${sha256(`${chain}\n${seen} ${n} ${digest}`)}`
    }
  }
  return digests
}

/** What an instant brought to a table. */
type Step = { readonly table: string; readonly seen: number; readonly n: number; readonly digest: string }

/**
 * The SELECT of the steps of all tables of a kind. A column that only some of them have has no value in the others, and
 * what has no value is no part of a row's text: together they are read as if each were alone.
 */
async function stepsSql(engine: Engine, kind: Kind, tables: string, snapshots: readonly string[]): Promise<string> {
  const dated = { dated: tables, snapshots: relation('snapshots', snapshots) }
  const rows = kind === 'dated' ? `(${registryStatement('snapshot_rows', dated)})` : tables
  const columns = await columnsOf(engine, rows)
  const clocks = columns.flatMap(({ name }) => (name === 'at' || name === 'observed_at' ? [quoteName(name)] : []))
  const clock = `coalesce(${clocks.join(', ')})`
  const digestedColumns = columns.filter(
    ({ name }) => !ownColumns[kind].includes(name) && !clocks.includes(quoteName(name)),
  )
  const parts = digestedColumns.map(
    ({ name, type }) => [name, type.startsWith('TIMESTAMP') ? upToMillis(quoteName(name)) : quoteName(name)] as const,
  )
  const rowText = textSql([...parts, [kind === 'history' ? 'valid_from' : 'observed_at', upToMillis(clock)]])
  const end = textSql([
    ['id', 'id'],
    ['closed_by', 'coalesce(closed_by, op)'],
    ['valid_to', upToMillis(clock)],
  ])
  // A version of a record is told where it begins and where it ends.
  const versions = `CASE WHEN op IS NOT NULL THEN ${rowText} END, CASE WHEN op IS NULL OR op = 'updated' THEN ${end} END`
  return registryStatement('day_digests', {
    seen: upToMillis(clock),
    texts: kind === 'history' ? versions : rowText,
    rows,
  })
}

const upToMillis = (instant: string): string => `make_timestamptz((epoch_us(${instant}) + 999) // 1000 * 1000)`

/** The digest of a row's text: a list of keys and values, sorted by keys, of whatever is there; every value as text. */
function textSql(parts: readonly (readonly [key: string, value: string])[]): string {
  const sorted = parts.toSorted(([a], [b]) => (a < b ? -1 : 1))
  const told = sorted.map(
    ([key, value]) => `${quote(`"key":${JSON.stringify(key)},"value":`)} || to_json(CAST(${value} AS VARCHAR))`,
  )
  return `sha256(concat('[{', concat_ws('},{', ${told.join(', ')}), '}]'))`
}
