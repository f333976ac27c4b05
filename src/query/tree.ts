import { type Engine, quote } from '../store/engine.ts'
import { formOf } from './forms.ts'
import { opening, statementsOf } from './statements.ts'

/** A node of a parsed statement, as the engine tells it. */
type Node = { readonly [name: string]: unknown }

/** A parsed text: its statements, or why the engine does not show them. */
export type Parsed =
  | { readonly statements: readonly Node[] }
  /** `parser` where it is no SQL; anything else where it is, but holds a statement that is no SELECT. */
  | { readonly error: string }

/** Reads a text with the engine's own parser; nothing is bound and nothing runs. */
export async function parsed(engine: Engine, sql: string): Promise<Parsed> {
  // Qualified: a database from elsewhere may hold a macro of that name.
  const [row] = await engine.rows<{ tree: string }>(
    `SELECT CAST(system.main.json_serialize_sql(CAST(${quote(sql)} AS VARCHAR)) AS VARCHAR) AS tree`,
  )
  const tree = JSON.parse(row?.tree ?? '{"error":true}') as {
    readonly error?: unknown
    readonly error_type?: unknown
    readonly statements?: unknown
  }
  if (tree.error !== false || !Array.isArray(tree.statements))
    return { error: typeof tree.error_type === 'string' ? tree.error_type : 'unknown' }
  return { statements: tree.statements as readonly Node[] }
}

/** Every node of a tree, the outer before the inner. */
export function* nodesOf(root: unknown): Generator<Node> {
  const waiting: unknown[] = [root]
  while (waiting.length > 0) {
    const node = waiting.pop()
    if (typeof node !== 'object' || node === null) continue
    if (!Array.isArray(node)) yield node as Node
    waiting.push(...(Object.values(node) as readonly unknown[]).toReversed())
  }
}

/** A function that a statement calls, its name in small letters. */
export interface Call {
  readonly name: string
  readonly arguments: readonly unknown[]
}

/** The functions that a statement calls anywhere, table functions and functions of single values. */
export function* callsIn(root: unknown): Generator<Call> {
  for (const node of nodesOf(root)) {
    const { function_name: name, children } = node
    if (typeof name === 'string')
      yield { name: name.toLowerCase(), arguments: Array.isArray(children) ? (children as readonly unknown[]) : [] }
  }
}

/** The names of tables and views that a statement reads, without their schemas, in small letters. */
export function tablesIn(root: unknown): readonly string[] {
  return [...nodesOf(root)].flatMap(({ type, table_name: name }) =>
    type === 'BASE_TABLE' && typeof name === 'string' ? [name.toLowerCase()] : [],
  )
}

/** The names of the CTEs of a statement, in small letters. */
export function ctesIn(root: unknown): readonly string[] {
  return [...nodesOf(root)].flatMap((node) => {
    const { cte_map: held } = node
    const map = (held as Node | undefined)?.['map']
    return Array.isArray(map) ? map.map((entry) => String((entry as Node)['key']).toLowerCase()) : []
  })
}

const fileReader = /^(?:read_|parquet_|sniff_|glob$)/
/** Macros and functions whose first argument names a table. */
const namesTable = /^(?:pit_\w+|query_table)$/

/**
 * What of a statement reads files by their own names, past the views; undefined where nothing does. A name with a dot or a
 * slash may be a file's wherever a CTE of that name does not reach, so no CTE excuses it.
 */
export async function fileRead(engine: Engine, root: unknown): Promise<string | undefined> {
  const calls = [...callsIn(root)]
  const reader = calls.find(
    ({ name, arguments: [first] }) => fileReader.test(name) || (namesTable.test(name) && !named(first)),
  )
  if (reader !== undefined) return reader.name
  const tables = calls.flatMap(({ name, arguments: [first] }) => (namesTable.test(name) ? (named(first) ?? []) : []))
  const rows = await engine.rows<{ name: string }>(
    `SELECT lower(v.view_name) AS name FROM system.main.duckdb_views() AS v
     UNION SELECT lower(t.table_name) FROM system.main.duckdb_tables() AS t`,
  )
  const own = ctesIn(root).filter((name) => !/[./\\]/.test(name))
  const known = new Set([...rows.map(({ name }) => name), ...own])
  return [...tablesIn(root), ...tables].find((name) => !known.has(name))
}

/** The tables that an argument names, in small letters: a text, a list of some, a name without quotes; undefined for others. */
function named(node: unknown): readonly string[] | undefined {
  const { function_name: name, children } = (node ?? {}) as Node
  if (name === 'list_value' && Array.isArray(children)) {
    const texts = children.map(constantText).filter((text) => text !== undefined)
    return texts.length === children.length ? texts.map((text) => text.toLowerCase()) : undefined
  }
  const text = constantText(node)?.toLowerCase() ?? columnName(node)
  return text === undefined ? undefined : [text]
}

/** What a statement names of files of its own: texts anywhere, tables by name, and the function that computes a name. */
export function filesNamed(root: unknown): { readonly names: readonly string[]; readonly computed: boolean } {
  const tables = [...nodesOf(root)].flatMap(({ type, table_name: name }) =>
    type === 'BASE_TABLE' && typeof name === 'string' ? [name] : [],
  )
  const computed = [...callsIn(root)].some(
    ({ name, arguments: [first] }) => (fileReader.test(name) || name === 'query_table') && !isWritten(first),
  )
  return { names: [...tables, ...textsIn(root)], computed }
}

/** Whether a name of a file, or a list of some, stands there as it is. */
function isWritten(node: unknown): boolean {
  return columnName(node) === undefined && named(node) !== undefined
}

/** A name without quotes stands as a column where a text is expected. */
function columnName(node: unknown): string | undefined {
  const names = (node as Node | undefined)?.['column_names']
  return Array.isArray(names) ? names.join('.').toLowerCase() : undefined
}

/** The variables that a script asks for by name, in small letters; what does not parse alone asks for none. */
export async function variablesIn(engine: Engine, script: string): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  for (const { text } of statementsOf(script))
    for (const probe of formOf(text.slice(opening(text) ?? 0)).probes) {
      const tree = await parsed(engine, probe)
      if ('error' in tree) continue
      for (const {
        name,
        arguments: [first],
      } of callsIn(tree.statements))
        if (name === 'getvariable') names.add(constantText(first)?.toLowerCase() ?? '')
    }
  return names
}

/** The text of a constant; undefined for anything else. */
export function constantText(node: unknown): string | undefined {
  const { class: kind, value } = (node ?? {}) as Node
  const held = (value as Node | undefined)?.['value']
  return kind === 'CONSTANT' && typeof held === 'string' ? held : undefined
}

/** The texts that a tree compares a column with, by `=` or IN, the column named with or without its table. */
export function comparedTexts(root: unknown, column: string): readonly string[] {
  return [...nodesOf(root)].flatMap(({ type, left, right, children }) => {
    const parts = type === 'COMPARE_EQUAL' ? [left, right] : type === 'COMPARE_IN' ? children : []
    if (!Array.isArray(parts) || !parts.some((part) => lastName(part) === column)) return []
    return parts.map(constantText).filter((text) => text !== undefined)
  })
}

/** Every constant text of a tree, each once. */
export function textsIn(root: unknown): readonly string[] {
  return [...new Set([...nodesOf(root)].map(constantText).filter((text) => text !== undefined))]
}

/** The arguments of a call as texts: those by place, and those by name in small letters; a list gives all of its texts. */
export function argumentsOf({ arguments: given }: Call): {
  readonly places: readonly (readonly string[])[]
  readonly named: Readonly<Record<string, readonly string[]>>
} {
  const alias = (node: unknown): string => {
    const { alias: held } = (node ?? {}) as Node
    return typeof held === 'string' ? held.toLowerCase() : ''
  }
  return {
    places: given.filter((node) => alias(node) === '').map(textsIn),
    named: Object.fromEntries(given.filter((node) => alias(node) !== '').map((node) => [alias(node), textsIn(node)])),
  }
}

/** The options that a call of a join names with `=`, which compares, instead of `:=`. */
export function comparedOptions({ arguments: given }: Call, options: ReadonlySet<string>): readonly string[] {
  return given.flatMap((node) => {
    const { type, left } = (node ?? {}) as Node
    const name = type === 'COMPARE_EQUAL' ? lastName(left) : undefined
    return name !== undefined && options.has(name) ? [name] : []
  })
}

function lastName(node: unknown): string | undefined {
  const names = (node as Node | undefined)?.['column_names']
  return Array.isArray(names) ? String(names.at(-1)).toLowerCase() : undefined
}
