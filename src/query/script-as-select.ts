import { opening as startOf, openingWords, statementsOf, tokens } from './statements.ts'

const makes = /^CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+(?:TABLE|VIEW)\s+("[^"]+"|\w+)\s+AS(?=[\s(])/i

/** Text that takes the place of a part of a script, with spaces behind it up to the length of that part. */
interface Edit {
  readonly from: number
  readonly to: number
  readonly text: string
}

/**
 * Rewrites a script whose statements before the last set variables and make temporary tables as one SELECT: each such
 * table becomes a CTE, and every word keeps its place in the script; and lists the statements that set variables.
 * Undefined if there are other statements.
 */
export function scriptAsSelect(script: string) {
  const all = statementsOf(script)
  const body = all.at(-1)
  if (body === undefined) return undefined
  const sql = script.slice(0, body.offset + body.text.length)
  const sets: string[] = []
  const edits: Edit[] = []
  const endsOfTables = new Set<number>()
  for (const { text: whole, offset } of all.slice(0, -1)) {
    const start = startOf(whole) ?? 0
    const from = offset + start
    const to = offset + whole.length
    const text = whole.slice(start)
    const [head, name] = makes.exec(text) ?? []
    if (head !== undefined && name !== undefined) {
      edits.push({ from, to: from + head.length, text: `${endsOfTables.size === 0 ? 'WITH' : ','} ${name} AS (` })
      // Between the trimmed statement and its semicolon there are only blanks.
      endsOfTables.add(script.indexOf(';', to))
    } else if (openingWords(text, 2).join(' ') === 'SET VARIABLE') {
      sets.push(text)
      edits.push({ from, to, text: text.replaceAll(/\S/g, ' ') })
    } else return undefined
  }
  for (const { text, start } of tokens(sql))
    if (text === ';') edits.push({ from: start, to: start + 1, text: endsOfTables.has(start) ? ')' : ' ' })
  if (endsOfTables.size > 0) {
    const [first, second] = openingWords(body.text, 2)
    if (first === 'WITH' && second === 'RECURSIVE') return undefined
    const from = body.offset + (startOf(body.text) ?? 0)
    if (first === 'WITH') edits.push({ from, to: from + first.length, text: ',' })
  }
  return { sql: applyEdits(sql, edits), sets }
}

/** Applies edits that do not overlap; the text keeps its length. */
function applyEdits(sql: string, edits: readonly Edit[]): string {
  const parts: string[] = []
  let at = 0
  for (const { from, to, text } of edits.toSorted((a, b) => a.from - b.from)) {
    parts.push(sql.slice(at, from), text.padEnd(to - from))
    at = to
  }
  return parts.join('') + sql.slice(at)
}
