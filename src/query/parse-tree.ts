import { type Engine, quote } from '../lake/store/engine.ts'
import { formOf, opening, statementsOf } from './statements.ts'

/** Node of a parsed statement, as the engine returns it. */
type Node = { readonly [name: string]: unknown }

/** A parsed text: the tree of each statement, or the reason why the engine returns none. */
export type ParsedSql =
  | { readonly statements: readonly Node[] }
  /** `parser` if the text is not SQL; anything else if it contains a statement that is not a SELECT. */
  | { readonly error: string }

/** Parses a text with the engine's own parser; nothing is bound and nothing runs. */
export async function parsedSql(engine: Engine, sql: string): Promise<ParsedSql> {
  // The engine reads a statement up to its first NUL, so that a literal with one has no end.
  if (sql.includes('\0')) return { error: 'a NUL sign' }
  // Qualified: a foreign database may have a macro of that name.
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

/**
 * Whether a text is exactly one expression: the tree around it must equal the tree around `true`. The text cannot end
 * the brackets that it is put into.
 */
export async function isOneExpression(engine: Engine, text: string): Promise<boolean> {
  const around = async (expression: string): Promise<{ readonly count: number; readonly shell: string }> => {
    const statements = await treeOf(engine, `SELECT (\n${expression}\n)`)
    const node = (statements[0]?.['node'] ?? {}) as Node
    const list = node['select_list']
    return {
      count: statements.length === 1 && Array.isArray(list) ? list.length : 0,
      shell: JSON.stringify({ ...node, select_list: undefined }),
    }
  }
  const parsed = await around(text)
  return parsed.count === 1 && parsed.shell === (await around('true')).shell
}

/** Parses the statements of a text; none if the engine does not show them. */
export async function treeOf(engine: Engine, sql: string): Promise<readonly Node[]> {
  const tree = await parsedSql(engine, sql)
  return 'error' in tree ? [] : tree.statements
}

/** Returns the bound plan of a SELECT from the engine, views and macros resolved, or why there is none. */
export async function boundPlan(
  engine: Engine,
  sql: string,
): Promise<{ readonly plan: Node } | { readonly why: string }> {
  const [row] = await engine.rows<{ plan: string }>(
    `SELECT CAST(system.main.json_serialize_plan(${quote(sql)}, optimize := false) AS VARCHAR) AS plan`,
  )
  const explained = JSON.parse(row?.plan ?? '{}') as Node
  const plans = explained['plans']
  if (explained['error'] === false && Array.isArray(plans) && plans.length === 1) return { plan: plans[0] as Node }
  return { why: typeof explained['error_message'] === 'string' ? explained['error_message'] : 'no reason was given' }
}

/** Lists the SELECTs that a statement describes. */
export async function describedIn(engine: Engine, sql: string): Promise<readonly string[]> {
  const showNodes = [...nodesOf(await treeOf(engine, sql))].filter(({ type }) => type === 'SHOW_REF')
  const texts: string[] = []
  for (const { query: node } of showNodes) {
    // Places without one are numbers that lose their last digits here.
    const whole = JSON.stringify(
      { error: false, statements: [{ node, named_param_map: [] }] },
      (name, value: unknown) => (name === 'query_location' ? 0 : value),
    )
    const [row] = await engine.rows<{ sql: string }>(
      `SELECT system.main.json_deserialize_sql(CAST(${quote(whole)} AS JSON)) AS sql`,
    )
    texts.push(row?.sql ?? '')
  }
  return texts
}

/** Yields every node of a tree, the outer before the inner. */
export function* nodesOf(root: unknown): Generator<Node> {
  const waiting: unknown[] = [root]
  while (waiting.length > 0) {
    const node = waiting.pop()
    if (typeof node !== 'object' || node === null) continue
    if (!Array.isArray(node)) yield node as Node
    // One by one: a name of 200,000 parts has more than a call takes arguments.
    for (const part of (Object.values(node) as readonly unknown[]).toReversed()) waiting.push(part)
  }
}

/** A function that a statement calls, its name in small letters. */
interface Call {
  readonly name: string
  readonly arguments: readonly unknown[]
}

/** Yields the functions that a statement calls anywhere, table functions and functions of single values. */
export function* callsIn(root: unknown): Generator<Call> {
  for (const node of nodesOf(root)) {
    const { function_name: name, children } = node
    if (typeof name === 'string')
      yield { name: name.toLowerCase(), arguments: Array.isArray(children) ? (children as readonly unknown[]) : [] }
  }
}

/** Lists the names of tables and views that a statement reads, without their schemas, in small letters. */
export function tablesIn(root: unknown): readonly string[] {
  return [...nodesOf(root)].flatMap(({ type, table_name: name }) =>
    type === 'BASE_TABLE' && typeof name === 'string' ? [name.toLowerCase()] : [],
  )
}

/** Lists the names of all that a statement reads and calls. */
export function namesIn(root: unknown): ReadonlySet<string> {
  return new Set([...tablesIn(root), ...[...callsIn(root)].map(({ name }) => name)])
}

/** Lists the names of the CTEs of a statement, in small letters. */
export function ctesIn(root: unknown): readonly string[] {
  return [...nodesOf(root)].flatMap((node) => {
    const { cte_map: held } = node
    const map = (held as Node | undefined)?.['map']
    return Array.isArray(map) ? map.map((entry) => String((entry as Node)['key']).toLowerCase()) : []
  })
}

const fileReader = /^(?:read_|parquet_|sniff_|glob$)/
/** Macros and functions of which an argument names a relation. */
const namesTable = /^(?:pit_\w+|query_table)$/

/**
 * Finds the part of a statement that reads files by their own names, past the views; undefined if there is none. A name
 * with a dot or a slash may be a file's wherever a CTE of that name does not reach, so no CTE excuses it; about any
 * other name the engine decides.
 */
export async function fileRead(engine: Engine, root: unknown): Promise<string | undefined> {
  const calls = [...callsIn(root)]
  const reader = calls.find(
    (call) => fileReader.test(call.name) || (namesTable.test(call.name) && !named(relationOf(call))),
  )
  if (reader !== undefined) return reader.name
  const tables = calls.flatMap((call) => (namesTable.test(call.name) ? (named(relationOf(call)) ?? []) : []))
  const dotted = [...wholeNames(root), ...tables].filter((name) => /[./\\]/.test(name))
  if (dotted.length === 0) return undefined
  const rows = await engine.rows<{ name: string }>(
    `SELECT DISTINCT lower(unnest([schema || '.' || name, db || '.' || name, db || '.' || schema || '.' || name])) AS name
     FROM (SELECT v.view_name AS name, v.schema_name AS schema, v.database_name AS db FROM system.main.duckdb_views() AS v
       UNION SELECT t.table_name, t.schema_name, t.database_name FROM system.main.duckdb_tables() AS t)`,
  )
  const knownNames = new Set(rows.map(({ name }) => name))
  return dotted.find((name) => !knownNames.has(name.toLowerCase()))
}

/** Runs `fileRead` on a whole script, which may also make what it reads. */
export async function fileReadIn(engine: Engine, script: string): Promise<string | undefined> {
  return await fileRead(engine, await treesOf(engine, script))
}

/** Parses the queries in the statements of a script; a part that does not parse alone has no tree. */
export async function treesOf(engine: Engine, script: string): Promise<readonly Node[]> {
  const probes = statementsOf(script).flatMap(({ text }) => formOf(text.slice(opening(text) ?? 0)).probes)
  return (await Promise.all(probes.map(async (probe) => await treeOf(engine, probe)))).flat()
}

/** Lists the tables in FROM, with the qualifiers before their names: all of it may be one path. */
function wholeNames(root: unknown): readonly string[] {
  return [...nodesOf(root)].flatMap(({ type, catalog_name: catalog, schema_name: schema, table_name: name }) =>
    type === 'BASE_TABLE'
      ? [[catalog, schema, name].filter((part) => typeof part === 'string' && part !== '').join('.')]
      : [],
  )
}

/** Finds the argument that names a relation, as the engine binds it: by name in any place, else the first. */
function relationOf({ arguments: operands }: Call): unknown {
  return operands.find((node) => aliasOf(node) === 'decisions') ?? operands.find((node) => aliasOf(node) === '')
}

/**
 * Finds a macro of the lake with a computed argument whose text would be adopted; a condition only must not contain a
 * subquery.
 */
export function computedIn(root: unknown): string | undefined {
  const asks = (node: unknown): boolean => [...nodesOf(node)].some(({ type }) => type === 'SUBQUERY')
  const isCondition = (name: string, node: unknown, at: number): boolean =>
    name === 'pit_universe' && (aliasOf(node) === 'members' || (at === 1 && aliasOf(node) === ''))
  const computed = ({ name, arguments: operands }: Call): boolean =>
    operands.some((node, at) => (isCondition(name, node, at) ? asks(node) : !isPlain(node)))
  return [...callsIn(root)].find((call) => /^(?:pit_\w+|resample|bars)$/.test(call.name) && computed(call))?.name
}

/** Whether a value is written as it is: a constant, a name, a list of these, or a length of time. */
function isPlain(node: unknown): boolean {
  const { class: kind, function_name: name, children, child } = (node ?? {}) as Node
  if (kind === 'CONSTANT' || kind === 'COLUMN_REF') return true
  if (kind === 'CAST') return isPlain(child)
  return /^(?:list_value|to_\w+|-)$/.test(String(name)) && Array.isArray(children) && children.every(isPlain)
}

/** Lists the tables that an argument names: a text, a list of some, a name without quotes; undefined for others. */
function named(node: unknown): readonly string[] | undefined {
  const { function_name: name, children } = (node ?? {}) as Node
  if (name === 'list_value' && Array.isArray(children)) {
    const texts = children.map(constantText).filter((text) => text !== undefined)
    return texts.length === children.length ? texts : undefined
  }
  const text = constantText(node) ?? columnName(node)
  return text === undefined ? undefined : [text]
}

/** Files that a statement may read by their own names. */
interface FilesNamed {
  /** All constant texts, and the names of tables. */
  readonly names: readonly string[]
  /** Function or macro that gets a computed name; undefined if there is none. */
  readonly computed: string | undefined
}

/** Lists the files that a statement, or the body of a macro, names itself. */
export function filesNamed(root: unknown, macro: boolean): FilesNamed {
  const computed = [...callsIn(root)].find((call) => {
    if (call.name === 'query_table' || fileReader.test(call.name)) return !isWritten(call.arguments[0])
    if (!namesTable.test(call.name)) return false
    // In a macro a name may be an argument of its caller.
    return macro ? !isWritten(relationOf(call)) : !named(relationOf(call))
  })
  return { names: [...wholeNames(root), ...constantTexts(root)], computed: computed?.name }
}

/** Whether a file name, or a list of names, is written as it is. */
function isWritten(node: unknown): boolean {
  return columnName(node) === undefined && named(node) !== undefined
}

/** Reads the name of a column: a name without quotes parses as a column where a text is expected. */
function columnName(node: unknown): string | undefined {
  const names = (node as Node | undefined)?.['column_names']
  return Array.isArray(names) ? names.join('.') : undefined
}

/** Lists the variables that a script reads by name, in small letters. */
export async function variablesIn(engine: Engine, script: string): Promise<ReadonlySet<string>> {
  const asking = [...callsIn(await treesOf(engine, script))].filter(({ name }) => name === 'getvariable')
  return new Set(asking.map((call) => constantText(call.arguments[0])?.toLowerCase() ?? ''))
}

/** Returns the text of a constant; undefined for anything else. */
export function constantText(node: unknown): string | undefined {
  const { class: kind, value } = (node ?? {}) as Node
  const constant = (value as Node | undefined)?.['value']
  return kind === 'CONSTANT' && typeof constant === 'string' ? constant : undefined
}

/** Lists every constant text of a tree, each once. */
export function constantTexts(root: unknown): readonly string[] {
  return [...new Set([...nodesOf(root)].map(constantText).filter((text) => text !== undefined))]
}

/** Returns the name of a named argument, in small letters; '' if it is positional. */
function aliasOf(node: unknown): string {
  const { alias } = (node ?? {}) as Node
  return typeof alias === 'string' ? alias.toLowerCase() : ''
}

/** Lists the options that a call of a join names with `=`, which compares, instead of `:=`. */
export function comparedOptions({ arguments: operands }: Call, options: ReadonlySet<string>): readonly string[] {
  return operands.flatMap((node) => {
    const { type, left } = (node ?? {}) as Node
    const name = type === 'COMPARE_EQUAL' ? columnName(left)?.split('.').at(-1)?.toLowerCase() : undefined
    return name !== undefined && options.has(name) ? [name] : []
  })
}

/** Maximum number of answers remembered for each database. */
const most = 200

/** Caches an answer that a database gives the same at any time and in any session, so that it is queried once. */
export class Remembered<T> {
  readonly #cached = new WeakMap<object, Map<string, T>>()

  /** Returns the answer to that text; after a failure it is computed again. */
  async of(engine: Engine, text: string, find: () => Promise<T>): Promise<T> {
    const cachedTexts = this.#cached.get(engine.database) ?? new Map<string, T>()
    this.#cached.set(engine.database, cachedTexts)
    const cached = cachedTexts.get(text)
    if (cached !== undefined) return cached
    const found = await find()
    const [oldest] = cachedTexts.keys()
    if (cachedTexts.size >= most && oldest !== undefined) cachedTexts.delete(oldest)
    cachedTexts.set(text, found)
    return found
  }
}

/**
 * Whether statements read what knows nothing before the first snapshot of the registry: views and macros that heed
 * `registry_backfill`, and all of the same names. The listing of assets begins with itself.
 */
export async function readsRegistry(engine: Engine, trees: unknown): Promise<boolean> {
  return await asksFor(engine, trees, 'registry_backfill', 'metric_assets')
}

const asking = new Remembered<ReadonlySet<string>>()

/** Whether statements name a view or macro, except `but`, that reads a session variable. */
export async function asksFor(engine: Engine, trees: unknown, variable: string, but = ''): Promise<boolean> {
  const limitText = quote(`getvariable('${variable}')`)
  // To tell the texts of all macros takes the engine longer than most questions.
  const names = await asking.of(engine, `${variable} ${but}`, async () => {
    const rows = await engine.rows<{ name: string }>(
      `SELECT view_name AS name FROM system.main.duckdb_views() AS v WHERE contains(sql, ${limitText}) AND view_name <> ${quote(but)}
       UNION SELECT function_name FROM system.main.duckdb_functions() AS f WHERE contains(macro_definition, ${limitText})`,
    )
    return new Set(rows.map(({ name }) => name))
  })
  return !namesIn(trees).isDisjointFrom(names)
}

/** Lists the tables of the registry that have a history. */
export async function historyTables(engine: Engine): Promise<readonly string[]> {
  const rows = await engine.rows<{ name: string }>(
    `SELECT view_name AS name FROM system.main.duckdb_views() AS v WHERE schema_name = 'history' ORDER BY name`,
  )
  return rows.map(({ name }) => name)
}
