import { literalEnd } from './sql-tokens.ts'

/** Where an SQL text stands in a file of TypeScript: what is between its quotes. */
export interface Place {
  readonly start: number
  readonly end: number
}

const sql =
  /\b(?:SELECT|FROM|WHERE|QUALIFY|CASE WHEN|JOIN|PARTITION BY|ORDER BY|GROUP BY|INSERT INTO|DELETE FROM|UPDATE|IS NULL|IS NOT NULL|DISTINCT FROM|AND|OR)\b/

/** The SQL texts of a file of TypeScript, told by its capital keywords; texts inside a placeholder come for themselves. */
export function sqlTextsOf(source: string): readonly Place[] {
  return textsIn(source, 0, source.length).filter(({ start, end }) => sql.test(withoutHoles(source.slice(start, end))))
}

/** A regular expression may begin where a value may. */
const beforeValue = /(?:[(,=:[!&|?{};+\n]|=>|\breturn)\s*$/

function textsIn(source: string, from: number, to: number): Place[] {
  const places: Place[] = []
  for (let at = from; at < to; ) {
    const end = literalEnd(source, at)
    if (end > at) {
      // A text with an escape of its quotes would have to be read and written anew.
      if (!/\\['"]/.test(source.slice(at, end))) places.push({ start: at + 1, end: end - 1 })
      if (source[at] === '`')
        places.push(...holesIn(source, at + 1, end - 1).flatMap((hole) => textsIn(source, hole.start, hole.end)))
      at = end
    } else if (source.startsWith('//', at)) at = endOr(source.indexOf('\n', at), to)
    else if (source.startsWith('/*', at)) at = endOr(source.indexOf('*/', at) + 1, to) + 1
    else if (source[at] === '/' && beforeValue.test(source.slice(Math.max(0, at - 40), at))) at = regexEnd(source, at)
    else at += 1
  }
  return places
}

function endOr(found: number, otherwise: number): number {
  return found <= 0 ? otherwise : found
}

function regexEnd(source: string, from: number): number {
  let inClass = false
  for (let at = from + 1; at < source.length; at += 1) {
    const sign = source[at]
    if (sign === '\n') return at
    if (sign === '\\') at += 1
    else if (sign === '[') inClass = true
    else if (sign === ']') inClass = false
    else if (sign === '/' && !inClass) return at + 1
  }
  return source.length
}

/** What stands in the `${…}` of a template, without the braces. */
function holesIn(source: string, from: number, to: number): Place[] {
  const holes: Place[] = []
  for (let at = from; at < to; ) {
    if (source[at] === '\\') at += 2
    else if (source.startsWith('${', at)) {
      const end = at + holeLength(source.slice(at, to))
      holes.push({ start: at + 2, end: end - 1 })
      at = end
    } else at += 1
  }
  return holes
}

function holeLength(text: string): number {
  // A template of nothing but this placeholder ends with it.
  let length = 2
  for (let depth = 1; length < text.length && depth > 0; ) {
    const end = literalEnd(text, length)
    if (end > length) length = end
    else {
      if (text[length] === '{') depth += 1
      if (text[length] === '}') depth -= 1
      length += 1
    }
  }
  return length
}

function withoutHoles(text: string): string {
  return holesIn(text, 0, text.length).reduceRight(
    (rest, { start, end }) => `${rest.slice(0, start)}${rest.slice(end)}`,
    text,
  )
}
