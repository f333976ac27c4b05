import type { StagedFile } from '../ledger/draft.ts'
import { sha256 } from '../ledger/entry.ts'
import { liveFiles } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { heldMembers } from '../ledger/state-tree.ts'
import { type Engine, quote, quoteName } from '../store/engine.ts'
import { inLake, parseRegistryFile } from '../store/layout.ts'
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
const ofLayers = ['layer', 'entity', 'removed', 'newest']

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

/**
 * The days of every table as they are after a change of files; with `since` those from that day on, of tables that grow.
 * `lend` lends an engine: one for all small tables, one for each other.
 */
export async function registryDays(
  ledger: Ledger,
  lend: (work: (engine: Engine) => Promise<void>) => Promise<void>,
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
  // A date shows tables that it left as they were, too.
  const isFresh = (table: string, label = ''): boolean => fresh.has(table) || (label !== '' && fresh.has('snapshots'))
  const asked = [...files].flatMap(([table, own]) => {
    const name = publishedForm(table)?.name
    const rows = own.reduce((sum, file) => sum + file.rows, 0)
    return name === undefined || (since !== undefined && !isFresh(table, own[0]?.label)) ? [] : [{ table, name, rows }]
  })
  const found: Record<string, Record<string, string>> = {}
  for (const { name } of asked) {
    const again = heldMembers(ledger, name).filter(([day]) => day >= (since ?? ''))
    found[name] = Object.fromEntries(again.map(([day]) => [day, '']))
  }
  const small = asked.filter(({ rows }) => rows < manyRows)
  for (const some of [small, ...asked.filter(({ rows }) => rows >= manyRows).map((one) => [one])]) {
    if (some.length === 0) continue
    await lend(async (engine) => {
      const forms = some.flatMap(({ table, name }) => {
        return formsOf(table, source, since ?? '0001-01-01').map((form) => ({ ...form, name }))
      })
      const lines = (await linesOf(engine, forms, since ?? '0001-01-01')).join(' UNION ALL ')
      for (const { name, day, seen, n, digest } of await engine.rows<Step>(registryStatement('digests', { lines }))) {
        const days = (found[name] ??= {})
        const [rows = '0', chain = ''] = days[day]?.split(' ') ?? []
        days[day] = `${Number(rows) + n} b${sha256(`${chain}\n${seen} ${n} ${digest}`)}`
      }
    })
  }
  return found
}

/** A table of so many rows is digested alone: what the engine took for it is not kept for the next. */
const manyRows = 20_000

type Step = {
  readonly name: string
  readonly day: string
  readonly seen: number
  readonly n: number
  readonly digest: string
}

const upToMillis = (instant: string): string => `make_timestamptz((epoch_us(${instant}) + 999) // 1000 * 1000)`

/** A relation whose rows are published; columns whose name is another one there have it in `names`. */
interface Form extends Pick<Published, 'at' | 'own'> {
  readonly from: string
  readonly names?: Readonly<Record<string, string>>
  /** The relation of a dated table, of whose entities the newest layer of a date says all. */
  readonly layered?: string
}

/**
 * The SELECTs of name, day, instant and text of each row, as JSON: a list of keys and values, sorted by keys, of whatever is
 * there; every value as text, instants in whole milliseconds of UTC.
 */
async function linesOf(engine: Engine, forms: readonly (Form & Pick<Published, 'name'>)[], since: string) {
  const described = forms.map(
    ({ from }, n) => `SELECT ${n} AS form, column_name, column_type FROM (DESCRIBE FROM ${from})`,
  )
  const rows = await engine.rows<{ form: number; column_name: string; column_type: string }>(
    described.join(' UNION ALL '),
  )
  const columns = Map.groupBy(rows, ({ form }) => form)
  return forms.map(({ name: published, from, at, own, names = {}, layered }, n) => {
    const parts = (columns.get(n) ?? []).flatMap(({ column_name: name, column_type: type }) => {
      const value = type.startsWith('TIMESTAMP') ? upToMillis(quoteName(name)) : quoteName(name)
      return own.includes(name) ? [] : [[names[name] ?? name, `to_json(CAST(${value} AS VARCHAR))`] as const]
    })
    const sorted = parts.toSorted(([a], [b]) => (a < b ? -1 : 1))
    const told = sorted.map(([name, value]) => `${quote(`{"key":${JSON.stringify(name)},"value":`)} || ${value} || '}'`)
    const instant = upToMillis(quoteName(at))
    // Only hashes are held to be joined or sorted: records are many bytes.
    const keys = layered === undefined ? '' : 'layer, entity, newest, '
    const lines = `SELECT ${keys}strftime(${instant}, '%Y-%m-%d') AS day, epoch_ms(${instant}) AS seen,
      sha256('[' || concat_ws(',', ${told.join(', ')}) || ']') AS line FROM ${from}
      WHERE ${quoteName(at)} > TIMESTAMPTZ '${since} 00:00:00+00' - INTERVAL 1 millisecond`
    const named = `SELECT ${quote(published)} AS name, day, seen, line FROM (${lines}) AS told`
    if (layered === undefined) return named
    return `${named} LEFT JOIN (SELECT DISTINCT layer, entity, true AS is_newer FROM ${layered}) AS other
        ON other.layer = told.newest AND other.entity = told.entity
      WHERE told.layer = told.newest OR is_newer IS NULL`
  })
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
  return [{ from: `(${registryStatement('digests_dated', dated)})`, at, own, layered: from }]
}
