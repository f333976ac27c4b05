import { isObject, jsonOf } from '../../base/json.ts'
import { openingWords, statementsOf } from '../../query/statements.ts'

/** Item of a research repository that may look ahead, or a file without any. */
export interface ResearchItem {
  /** Path of its file, as it was named or found. */
  readonly file: string
  /** Line of the file at which it begins, counted from 1. */
  readonly line: number
  readonly kind: ItemKind
  /** Name of the function, or `cell 3`; null for a whole file. */
  readonly name: string | null
  /** SQL of a query; '' for a function and for what is left out. */
  readonly text: string
  /** Options that the text itself names in a comment. */
  readonly own: OwnOptions
  /** Reason why it is skipped; null if it is to be judged. */
  readonly skipped: string | null
}

/** Kind of a research item; `file` for a file in which there is no item. */
type ItemKind = 'query' | 'cell' | 'function' | 'file'

/** Options of one query, from a comment such as `-- pitlake: ts=decided_at labels=y`. */
export interface OwnOptions {
  readonly ts?: string
  readonly labels?: readonly string[]
}

/** Endings of the files that are searched for in a folder. */
const searched = /\.(?:sql|py|ipynb)$/i

/** Whether a folder's file of this name is looked into. */
export function isResearchFile(name: string): boolean {
  return searched.test(name)
}

/** Lists the items of one file, by the ending of its name; any file without `.py` or `.ipynb` counts as SQL. */
export function itemsOf(file: string, text: string): readonly ResearchItem[] {
  if (text.includes('\0')) return [leftOut(file, 'not a text file')]
  if (/\.py$/i.test(file)) return functionsOf(file, text)
  if (/\.ipynb$/i.test(file)) return cellsOf(file, text)
  return [queryItem({ file, line: 1, kind: 'query', name: null }, text)]
}

function leftOut(file: string, why: string): ResearchItem {
  return { file, line: 1, kind: 'file', name: null, text: '', own: {}, skipped: why }
}

/** Builds the item of a file that could not be read. */
export function unreadItem(file: string, why: string): ResearchItem {
  return leftOut(file, `it cannot be read: ${why}`)
}

type Place = Pick<ResearchItem, 'file' | 'line' | 'kind' | 'name'>

function queryItem(place: Place, text: string): ResearchItem {
  const { skip, ...own } = directiveIn(text)
  return { ...place, text, own, skipped: skip ?? whyNoQuery(text) }
}

/** Parses the comment of a text for pitlake: `-- pitlake: skip REASON`, or options as NAME=VALUE. */
function directiveIn(text: string): OwnOptions & { readonly skip?: string } {
  const [, comment = ''] = /^\s*--\s*pitlake:\s*(.*?)\s*$/im.exec(text) ?? []
  const [, reason] = /^skip\b[\s:,]*(.*)$/i.exec(comment) ?? []
  if (reason !== undefined) return { skip: reason === '' ? 'marked: skip' : `marked: ${reason}` }
  const options = new Map(
    [...comment.matchAll(/(\w+)\s*=\s*([^\s]+)/g)].map(([, name = '', value = '']) => [name, value]),
  )
  const ts = options.get('ts')
  const labels = options.get('labels')
  return { ...(ts !== undefined && { ts }), ...(labels !== undefined && { labels: labels.split(',') }) }
}

/** First words of a statement that returns rows. */
const asking = new Set(['SELECT', 'WITH', 'FROM', 'VALUES', 'TABLE', 'PIVOT', 'UNPIVOT', '('])

/** Explains why a text has no query; null if its last statement may be one. */
function whyNoQuery(text: string): string | null {
  const template = /\{\{|\{%/.exec(text.replaceAll(/'(?:[^']|'')*'/g, (quoted) => ' '.repeat(quoted.length)))
  if (template !== null) {
    const line = text.slice(0, template.index).split('\n').length
    return `no query: a template (line ${line}); name the SQL that is made from it`
  }
  const last = statementsOf(text).at(-1)
  if (last === undefined) return 'no query: no statement'
  const [word = ''] = openingWords(last.text, 1)
  return asking.has(word) ? null : `no query: the last statement is ${word}`
}

/** Functions of a Python file that are marked with `@pitlake.point_in_time`, found without running it. */
function functionsOf(file: string, text: string): readonly ResearchItem[] {
  const lines = withoutLongTexts(text).split('\n')
  const found = lines.flatMap((line, n): ResearchItem[] => {
    const [, indent] = /^(\s*)@(?:\w+\.)?point_in_time\b/.exec(line) ?? []
    if (indent === undefined) return []
    const [, name = null] = /^\s*(?:async\s+)?def\s+(\w+)/m.exec(lines.slice(n + 1).join('\n')) ?? []
    const skipped = indent === '' ? null : 'not at the top level of its file; move the function there'
    return [{ file, line: n + 1, kind: 'function', name, text: '', own: {}, skipped }]
  })
  return found.length > 0 ? found : [leftOut(file, 'no function is marked with @pitlake.point_in_time')]
}

/** Blanks the texts between three quotes in Python, so that no example in one counts as a mark. */
function withoutLongTexts(text: string): string {
  return text.replaceAll(/("""|''')[\s\S]*?\1/g, (long) => long.replaceAll(/[^\n]/g, ' '))
}

/** Lists the `%%pit` cells of a notebook. */
function cellsOf(file: string, text: string): readonly ResearchItem[] {
  const notebook = jsonOf(text)
  const cells = isObject(notebook) ? notebook['cells'] : undefined
  if (!Array.isArray(cells)) return [leftOut(file, 'not a notebook: expected JSON with a list of cells')]
  const lines = text.split('\n').flatMap((line, n) => (/"\s*%%pit\b/.test(line) ? [n + 1] : []))
  const found = cells.flatMap((cell: unknown, n) => {
    const source = sourceOf(cell)
    const [head] = /^\s*%%pit\b[^\n]*\n?/.exec(source) ?? []
    return head === undefined ? [] : [{ name: `cell ${n + 1}`, sql: source.slice(head.length) }]
  })
  if (found.length === 0) return [leftOut(file, 'no cell begins with %%pit')]
  return found.map(({ name, sql }, n) => queryItem({ file, line: lines[n] ?? 1, kind: 'cell', name }, sql))
}

/** Returns the source of a code cell; '' for any other. */
function sourceOf(cell: unknown): string {
  if (!isObject(cell) || cell['cell_type'] !== 'code') return ''
  const { source } = cell
  if (Array.isArray(source)) return source.filter((line) => typeof line === 'string').join('')
  return typeof source === 'string' ? source : ''
}
