import { cutAtCommas, tokens } from '../../../query/statements.ts'
import { nodesOf } from '../../../query/parse-tree.ts'
import { pureAggregates } from './functions.ts'
import { type Node, parts, says, word } from './nodes.ts'
import type { Obstacle } from './values.ts'
import { endOf } from './groups.ts'

/*
 * The plan tells of hardly any of its parts where it stood in the text. What stands in the way is looked for in the
 * parsed text by its name and arguments; where more than one part of the text could be meant no place is told.
 */

/**
 * Finds the place of an obstacle in a query, in characters from its beginning; null if it is not known. Rows that come
 * too early are reported where the column with their instant is selected.
 */
export function placeOf(sql: string, statements: readonly Node[], { what }: Obstacle, ts = ''): number | null {
  const [place, ...more] = new Set(places(sql, [...nodesOf(statements)], what, ts))
  return place === undefined || more.length > 0 ? null : place
}

function places(sql: string, all: readonly Node[], what: string, ts: string): readonly number[] {
  const at = (nodes: readonly Node[]): number[] => nodes.flatMap((node) => startOf(sql, node) ?? [])
  if (what === wholeRow) return at(selected(all, ts))
  if (what === 'a parameter') return tokensOf(sql, /^[$?]$/).slice(0, 1)
  if (what.startsWith('an aggregate')) return at(all.filter(isSelect).flatMap(loneAggregates))
  if (what.startsWith('join on ')) return at(joinsOn(all, what.slice('join on '.length)))
  const keyword = keywords.exec(what)?.[1]
  if (keyword !== undefined) return tokensOf(sql, new RegExp(`^${keyword}$`, 'i'))
  const call = /^(\w+)\(/.exec(what)?.[1]
  return at(call === undefined ? named(all, what) : called(all, call, what))
}

/** Name of an obstacle that is no part of the text. */
export const wholeRow = 'a row of the result'

/** Obstacles that are found by their keyword. */
const keywords = /^(?:WITH )?(GROUP(?:ING)?|DISTINCT|LIMIT|RECURSIVE)\b/

function tokensOf(sql: string, pattern: RegExp): readonly number[] {
  return [...tokens(sql)].filter(({ text }) => pattern.test(text)).map(({ start }) => start)
}

/** Finds the character at which a node begins: the parser counts bytes. */
function startOf(sql: string, node: Node): number | undefined {
  const bytes = node['query_location']
  const text = Buffer.from(sql)
  if (typeof bytes !== 'number' || bytes >= text.length) return undefined
  return text.subarray(0, bytes).toString().length
}

/**
 * Finds the calls of a function; if there are several, those over the like frames, and of these the ones with the same
 * arguments: the plan calls a column by its first name, so that one which the query renames identifies nothing.
 */
function called(all: readonly Node[], name: string, what: string): readonly Node[] {
  const calls = all.filter((node) => word(node, 'function_name').toLowerCase() === name)
  // A function that depends on more than its arguments is an obstacle anywhere: the first is reported.
  if (what === `${name}()`) return calls.slice(0, 1)
  const over = calls.filter((node) => frameOf(node) === (/\) OVER \((.*)\)$/.exec(what)?.[1]?.replace(...bare) ?? null))
  const argumentText = cutAtCommas(what.slice(name.length))?.parts.join(',') ?? ''
  const same = over.filter((node) => parts(node, 'children').map(lastName).join(', ') === argumentText)
  const renamed = aliasesIn(all)
  const isNamed = over.every((node) =>
    parts(node, 'children').every((child) => lastName(child) !== '' && !renamed.has(lastName(child))),
  )
  return over.length > 1 && isNamed ? same : over
}

/** Removes the names of columns from the text of a frame. */
const bare = [/(PARTITION BY|ORDER BY) .*?(?= ORDER BY | to |$)/g, '$1'] as const

/** Formats the frame of a call in the text, as the plan spells it; null if the call is not a window function. */
function frameOf(node: Node): string | null {
  if (word(node, 'class') !== 'WINDOW') return null
  const end = endOf(node)
  const nameSources = [
    parts(node, 'partitions').length > 0 ? 'PARTITION BY' : '',
    parts(node, 'orders').length > 0 ? `ORDER BY to ${end}` : '',
  ]
  return nameSources.filter((words) => words !== '').join(' ')
}

/** Lists all aliases in a query. */
function aliasesIn(all: readonly Node[]): ReadonlySet<string> {
  const lists = all.flatMap((node) => {
    const aliases = node['column_name_alias']
    return Array.isArray(aliases) ? aliases.map(String) : []
  })
  return new Set([...all.map((node) => word(node, 'alias')), ...lists])
}

/** Finds the expression of the result column with the instants. */
function selected(all: readonly Node[], ts: string): readonly Node[] {
  const select = all.find(isSelect)
  const list = select === undefined ? [] : parts(select, 'select_list')
  return list
    .filter((node) => (word(node, 'alias') || lastName(node)).toLowerCase() === ts.toLowerCase())
    .map(firstPart)
}

/** Finds a table or macro by its name; a column that the query neither renames nor takes with `*`. */
function named(all: readonly Node[], what: string): readonly Node[] {
  const last = what.slice(what.lastIndexOf('.') + 1).toLowerCase()
  const tables = all.filter(
    (node) =>
      (word(node, 'type') === 'BASE_TABLE' && word(node, 'table_name').toLowerCase() === last) ||
      word(node, 'function_name').toLowerCase() === last,
  )
  if (tables.length > 0) return tables
  const hidden = aliasesIn(all).has(last) || all.some((node) => word(node, 'class') === 'STAR')
  return hidden ? [] : all.filter((node) => lastName(node).toLowerCase() === last)
}

/** Finds the first part of an expression in the text: for `a - b` the parser reports the place of the sign. */
function firstPart(expression: Node): Node {
  const at = (node: Node): number => Number(node['query_location'] ?? Number.NaN)
  return [...nodesOf(expression)].reduce((first, node) => (at(node) < at(first) ? node : first), expression)
}

function isSelect(node: Node): boolean {
  return word(node, 'type') === 'SELECT_NODE'
}

/** Lists the aggregates of a SELECT without keys. */
function loneAggregates(select: Node): readonly Node[] {
  if (parts(select, 'group_expressions').length > 0) return []
  return [...nodesOf(select['select_list'])].filter(
    (node) => word(node, 'class') === 'FUNCTION' && pureAggregates.has(word(node, 'function_name').toLowerCase()),
  )
}

/** Finds the joins whose condition names all of these columns; else the macros that join. */
function joinsOn(all: readonly Node[], columns: string): readonly Node[] {
  const renamed = aliasesIn(all)
  const columnNames = (columns.match(/\w+/g) ?? []).map((name) => name.toLowerCase())
  const joins = all.filter(
    (node) => word(node, 'type') === 'JOIN' && (says(node, 'condition') || says(node, 'using_columns')),
  )
  const matching = joins.filter((node) => {
    const using = node['using_columns']
    const names = new Set([
      ...[...nodesOf(node['condition'])].map((conditionNode) => lastName(conditionNode).toLowerCase()),
      ...(Array.isArray(using) ? using.map((name) => String(name).toLowerCase()) : []),
    ])
    return columnNames.every((name) => names.has(name))
  })
  if (joins.length > 0) return joins.length === 1 || !columnNames.some((name) => renamed.has(name)) ? matching : []
  return all.filter((node) => word(node, 'function_name').toLowerCase().startsWith('pit_'))
}

function lastName(node: Node): string {
  const names = node['column_names']
  return Array.isArray(names) ? String(names.at(-1)) : ''
}
