import { createHash } from 'node:crypto'
import { quoteName } from '../../lake/store/engine.ts'
import { folderOfScript, moveScript } from '../../query/moved-script.ts'
import { alteredScript, realPoints, relationOfPoints } from '../../query/views/script.ts'
import { statementsOf, tokens } from '../../query/statements.ts'
import { changedPoints } from '../lookahead/world.ts'

/*
 * A small lake has the views and macros of the lake that a query needs, over tables in the place of the lake's files.
 * Views read their siblings; macros hold all that they need in their own text.
 */

/** A table of a small lake and the relation over the lake's files that fills it, for FROM. */
export interface SmallTable {
  readonly name: string
  readonly relation: string
}

/** Views and macros over tables. */
export interface SmallLake {
  readonly tables: readonly SmallTable[]
  /** Statements that make the schemas, views and macros. */
  readonly objects: readonly string[]
}

/** Name of the table with the stored points. */
export const pointsTable = 'lake_points'

/** Stands for the folder of the lake. */
const folderMark = '{{folder}}'

const beginMark = 'small_points_begin '
const endMark = ' small_points_end'

/** Builds the small lake of a query; undefined if the views are those of a program that wrote them differently. */
export function smallLakeOf(whole: string, query: string): SmallLake | undefined {
  const root = folderOfScript(whole)
  if (root === undefined) return undefined
  // Quotes and brackets in the name of the folder would otherwise be read as those of the SQL around it.
  const script = moveScript(whole, root, folderMark)
  const points = relationOfPoints(script)
  const marked = alteredScript(script, changedPoints.replace(realPoints, `${beginMark}${realPoints}${endMark}`))
  if (points === undefined || marked === undefined) return undefined
  const altered = marked.replaceAll(new RegExp(`${beginMark}[\\s\\S]*?${endMark}`, 'g'), pointsTable)
  const tables = new Map([[points, { name: pointsTable, relation: points }]])
  const needed = neededObjects(altered, query).map((text) => tablesForFiles(withoutStrangers(text, query), tables))
  // Text that still names a file is in a branch that this lake does not take.
  const objects = needed.map((text) => text.replaceAll(`${folderMark}/`, '').replaceAll(folderMark, ''))
  const readTables = [...tables.values()].filter(({ name }) => objects.some((text) => text.includes(name)))
  return {
    tables: readTables.map(({ name, relation }) => ({ name, relation: moveScript(relation, folderMark, root) })),
    objects,
  }
}

interface LakeObject {
  readonly kind: string
  /** The last part of its name, in small letters. */
  readonly name: string
  readonly text: string
}

/** Finds the schemas, and the views and macros that a query names, with the views that those views name. */
function neededObjects(script: string, query: string): readonly string[] {
  const objects = statementsOf(script).flatMap(({ text }): LakeObject[] => {
    const sql = text.replace(/^(?:\s*--[^\n]*\n)+/, '')
    const [, kind = '', name] = /^CREATE (?:OR REPLACE )?(\w+)(?: IF NOT EXISTS)? ([\w."]+)/.exec(sql) ?? []
    if (name === undefined) return []
    return [{ kind, name: name.replaceAll('"', '').split('.').at(-1)?.toLowerCase() ?? '', text: sql }]
  })
  const needed = new Set<LakeObject>(objects.filter(({ kind }) => kind === 'SCHEMA'))
  const open = [query]
  for (let text = open.pop(); text !== undefined; text = open.pop()) {
    const words = new Set([...text.toLowerCase().matchAll(/[a-z_]\w*/g)].map(([word]) => word))
    for (const object of objects) {
      if (needed.has(object) || !words.has(object.name)) continue
      needed.add(object)
      if (object.kind === 'VIEW') open.push(codeOf(object.text))
    }
  }
  return objects.filter((object) => needed.has(object)).map(({ text }) => text)
}

/** Removes the texts from SQL: a path in one names no view. */
function codeOf(sql: string): string {
  return [...tokens(sql)].map(({ text }) => (text.startsWith("'") ? "''" : text)).join(' ')
}

/**
 * Macros list a line of facts for each metric of the lake: those of metrics that the query does not name are left out.
 */
function withoutStrangers(text: string, query: string): string {
  const isNamed = (metric: string): boolean =>
    query.includes(metric) || (metric.startsWith('supply/') && query.includes('price_usd'))
  return text.replaceAll(/^([\w/.#:-]+)\|\d*\w+\t[^\n]*\n/gm, (line, metric: string) => (isNamed(metric) ? line : ''))
}

/** Replaces each read of files in a text by a table, at any depth of texts in texts. */
function tablesForFiles(text: string, tables: Map<string, SmallTable>): string {
  let made = ''
  let at = 0
  for (const { index } of text.matchAll(/read_parquet\(/g)) {
    if (index < at) continue
    const end = closingOf(text, index + 'read_parquet'.length)
    const call = text.slice(index, end)
    // A path that a macro builds while it is bound: only the branch for unaltered points, which is never taken here.
    if (/^read_parquet\('+, concat\(/.test(call)) continue
    const relation = unquoted(call)
    const table = tables.get(relation) ?? { name: tableName(relation), relation }
    tables.set(relation, table)
    made += text.slice(at, index) + table.name
    at = end
  }
  return made + text.slice(at)
}

/** Finds the end of a part between parentheses, from the first of them on. */
function closingOf(text: string, open: number): number {
  let depth = 0
  for (let at = open; at < text.length; at++) {
    if (text[at] === '(') depth++
    if (text[at] === ')' && --depth === 0) return at + 1
  }
  return text.length
}

/** Unquotes a call inside texts of texts: each level doubles its quotes. */
function unquoted(call: string): string {
  const quotes = /'+/.exec(call)?.[0].length ?? 1
  return call.replaceAll("'".repeat(quotes), "'")
}

/** Names the table for a read of files: by the folder or the beginning of the name of the first. */
function tableName(relation: string): string {
  const [, path = ''] = /'([^'\n]+)/.exec(relation) ?? []
  const [file = '', folder = ''] = path.split('/').toReversed()
  const told = folder === 'exports' ? (file.split('-')[0] ?? '') : folder.replace(/^\w+=/, '')
  const digest = createHash('sha256').update(relation).digest('hex').slice(0, 6)
  return `lake_${told.replaceAll(/\W+/g, '_')}_${digest}`
}

/** Builds a statement that makes a table from a file in the folder `data`. */
export function tableFromFile(name: string): string {
  return `CREATE TABLE ${quoteName(name)} AS FROM 'data/${name}.parquet'`
}
