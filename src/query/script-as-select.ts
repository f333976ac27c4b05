import { opening as startOf, openingWords, statementsOf } from './statements.ts'

const makes = /^CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+(?:TABLE|VIEW)\s+("[^"]+"|\w+)\s+AS(?=[\s(])/i

/**
 * Rewrites a script whose statements before the last set variables and make temporary tables as one SELECT: each such
 * table becomes a CTE, and every word keeps its place in the script; and lists the statements that set variables.
 * Undefined if there are other statements.
 */
export function scriptAsSelect(script: string) {
  const all = statementsOf(script)
  const body = all.at(-1)
  if (body === undefined) return undefined
  const sets: string[] = []
  let sql = script.slice(0, body.offset + body.text.length)
  const put = (at: number, length: number, text: string): void => {
    sql = `${sql.slice(0, at)}${text.padEnd(length)}${sql.slice(at + length)}`
  }
  let opening = 'WITH'
  for (const [n, batch] of all.slice(0, -1).entries()) {
    const start = startOf(batch.text) ?? 0
    const text = batch.text.slice(start)
    const offset = batch.offset + start
    const [head, name] = makes.exec(text) ?? []
    const next = all[n + 1]?.offset ?? sql.length
    const end = script.lastIndexOf(';', next - 1)
    if (head !== undefined && name !== undefined) {
      put(offset, head.length, `${opening} ${name} AS (`)
      put(end, 1, ')')
      opening = ','
    } else if (openingWords(text, 2).join(' ') === 'SET VARIABLE') {
      sets.push(text)
      put(offset, end + 1 - offset, script.slice(offset, end + 1).replaceAll(/\S/g, ' '))
    } else return undefined
  }
  if (opening === 'WITH') return { sql, sets }
  const [first, second] = openingWords(body.text, 2)
  if (first === 'WITH' && second === 'RECURSIVE') return undefined
  if (first === 'WITH') put(body.offset + body.text.search(/WITH/i), 4, ',')
  return { sql, sets }
}
