import type { StagedFile } from '../ledger/draft.ts'
import { sha256 } from '../ledger/entry.ts'
import { liveFiles } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { heldMembers } from '../ledger/state-tree.ts'
import { type Engine, quote, quoteName } from '../store/engine.ts'
import { inLake, parseRegistryFile } from '../store/layout.ts'
import { columnsOf } from '../store/parquet.ts'
import { registryStatement, relation } from './columns.ts'

/*
 * What the state tells of the registry: of each table, as it is published, a digest for each day that brought or dated rows
 * (docs/proof.md). A day is digested from all of its rows, so it follows from what is published alone.
 */

/** How a table is published: its name, the clock of its rows in the lake, and the columns that are the lake's own business. */
interface Published {
  readonly name: string
  readonly at: 'at' | 'observed_at'
  readonly own: readonly string[]
}

const grown: Readonly<Record<string, Published>> = {
  snapshots: { name: 'registry_snapshots', at: 'observed_at', own: ['base', 'delta'] },
  events: { name: 'registry_events', at: 'at', own: ['hash'] },
  schema_changes: { name: 'registry_schema_changes', at: 'at', own: [] },
  registry_findings: { name: 'registry_findings', at: 'at', own: [] },
}
const ofSteps = ['closed_by', 'source', 'hash', 'as_of', 'as_of_at', 'superseded_at']
const ofLayers = ['layer', 'entity', 'removed']

/** How a table of the registry is published; undefined for what is seen in other tables alone. */
export function publishedForm(table: string): Published | undefined {
  if (table.startsWith('history.')) return { name: table.replace('.', '_'), at: 'at', own: ofSteps }
  return table === 'absorbed'
    ? undefined
    : (grown[table] ?? { name: `snapshot_${table}`, at: 'observed_at', own: ofLayers })
}

/** By published table and day (`2024-06-01`); `''` for a day that has no rows any more. */
type Days = Readonly<Record<string, Readonly<Record<string, string>>>>

interface Change {
  readonly add?: readonly StagedFile[]
  readonly remove?: readonly string[]
}

/** The days of every table as they are after a change of files; with `since` those from that day on, of tables that grow. */
export async function registryDays(
  ledger: Ledger,
  engine: Engine,
  { add = [], remove = [] }: Change,
  since?: string,
): Promise<Days> {
  const live = liveFiles(ledger).filter(({ path }) => !remove.includes(path))
  const all = [...live, ...add].filter(({ path, label }) => {
    return parseRegistryFile(path) && (since === undefined || label === '' || label >= since)
  })
  const files = Map.groupBy(all, ({ table }) => table)
  const source = (table: string): string => {
    const paths = (files.get(table) ?? []).map((file) => {
      return inLake(ledger.root, ('temporary' in file ? file.temporary : null) ?? file.path)
    })
    return relation(table, [...new Set(paths)])
  }
  const fresh = new Set(add.filter(({ temporary }) => temporary !== null).map(({ table }) => table))
  const found: Record<string, Record<string, string>> = {}
  for (const [table, [file]] of files) {
    const name = publishedForm(table)?.name
    // A date shows tables that it left as they were, too.
    const isFresh = fresh.has(table) || (file?.label !== '' && fresh.has('snapshots'))
    if (name === undefined || (since !== undefined && !isFresh)) continue
    const forms = formsOf(table, source, since ?? '0001-01-01')
    const each = await Promise.all(forms.map(async (form) => await linesOf(engine, form, since ?? '0001-01-01')))
    const lines = each.join(' UNION ALL ')
    const days = Object.fromEntries(
      heldMembers(ledger, name).flatMap(([day]) => (day < (since ?? '') ? [] : [[day, '']])),
    )
    for (const { day, seen, n, digest } of await engine.rows<Step>(registryStatement('digests', { lines }))) {
      const [rows = '0', chain = ''] = days[day]?.split(' ') ?? []
      days[day] = `${Number(rows) + n} b${sha256(`${chain}\n${seen} ${n} ${digest}`)}`
    }
    found[name] = days
  }
  return found
}

type Step = { readonly day: string; readonly seen: number; readonly n: number; readonly digest: string }

const upToMillis = (instant: string): string => `make_timestamptz((epoch_us(${instant}) + 999) // 1000 * 1000)`

/** A relation whose rows are published; columns whose name is another one there have it in `names`. */
interface Form extends Pick<Published, 'at' | 'own'> {
  readonly from: string
  readonly names?: Readonly<Record<string, string>>
}

/**
 * The SELECT of day, instant and text of each row, as JSON: a list of keys and values, sorted by keys, of whatever is there;
 * every value as text, instants in whole milliseconds of UTC.
 */
async function linesOf(engine: Engine, { from, at, own, names = {} }: Form, since: string): Promise<string> {
  const columns = (await columnsOf(engine, from)).filter(({ name }) => !own.includes(name))
  const parts = columns.map(({ name, type }) => {
    const value = type.startsWith('TIMESTAMP') ? upToMillis(quoteName(name)) : quoteName(name)
    return [names[name] ?? name, `to_json(CAST(${value} AS VARCHAR))`] as const
  })
  const sorted = parts.toSorted(([a], [b]) => (a < b ? -1 : 1))
  const told = sorted.map(([name, value]) => `${quote(`{"key":${JSON.stringify(name)},"value":`)} || ${value} || '}'`)
  const instant = upToMillis(quoteName(at))
  return `SELECT strftime(${instant}, '%Y-%m-%d') AS day, epoch_ms(${instant}) AS seen,
    '[' || concat_ws(',', ${told.join(', ')}) || ']' AS line FROM ${from}
    WHERE ${quoteName(at)} > TIMESTAMPTZ '${since} 00:00:00+00' - INTERVAL 1 millisecond`
}

/** The forms in which the rows of a table are published: a version of a record where it begins and where it ends. */
function formsOf(table: string, source: (table: string) => string, since: string): Form[] {
  const [from, { at, own }] = [source(table), publishedForm(table) ?? { at: 'at', own: [] }]
  if (grown[table]) return [{ from, at, own, names: { at: 'observed_at' } }]
  if (table.startsWith('history.')) {
    const ends = `(SELECT id, coalesce(closed_by, op) AS closed_by, "at" FROM ${from} WHERE op IS NULL OR op = 'updated')`
    return [
      { from: `(FROM ${from} WHERE op IS NOT NULL)`, at, own, names: { at: 'valid_from' } },
      { from: ends, at, own: [], names: { at: 'valid_to' } },
    ]
  }
  const dated = { snapshots: source('snapshots'), resource: quote(table), since, dated: from }
  return [{ from: `(${registryStatement('digests_dated', dated)})`, at, own }]
}
