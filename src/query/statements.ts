/** One statement of a script: its text without the closing `;`, and where that text begins. */
export interface Statement {
  readonly text: string
  readonly offset: number
}

/** A script cut at its semicolons: the whole statements, and what follows the last `;` (blank when nothing does). */
export interface Script {
  readonly statements: readonly Statement[]
  readonly rest: Statement
}

/** One word, text or sign of SQL that is no comment and no space. */
interface Token {
  readonly text: string
  readonly start: number
}

/** Cuts SQL into statements; semicolons in texts, names and comments do not count. Comments alone are no statement. */
export function cutScript(sql: string): Script {
  const statements: Statement[] = []
  let begin = 0
  let filled = false
  for (const { text, start } of tokens(sql)) {
    if (text !== ';') {
      filled = true
      continue
    }
    if (filled) statements.push(piece(sql, begin, start))
    begin = start + 1
    filled = false
  }
  return { statements, rest: filled ? piece(sql, begin, sql.length) : { text: '', offset: sql.length } }
}

/** Every statement of a script, the last one with or without its `;`. */
export function statementsOf(sql: string): readonly Statement[] {
  const { statements, rest } = cutScript(sql)
  return rest.text === '' ? statements : [...statements, rest]
}

/** The first words of a statement in capitals, comments left out. */
export function openingWords(sql: string, count: number): readonly string[] {
  const words: string[] = []
  for (const { text } of tokens(sql)) {
    if (words.length === count) break
    words.push(text.toUpperCase())
  }
  return words
}

const writing =
  /^(?:COPY|INSERT|UPDATE|DELETE|MERGE|TRUNCATE|CREATE|DROP|ALTER|EXPORT|IMPORT|ATTACH|DETACH|CALL|EXECUTE)$/i

/** Whether a part of a WITH is a statement that writes: later engines run it within a SELECT. */
export function writesInside(sql: string): boolean {
  let [before, last, word] = ['', '', '']
  for (const { text } of tokens(sql)) {
    // A word that names a column or a window is followed by a sign; a statement goes on with a word, a name or a list.
    if (writing.test(word) && last === '(' && /^(?:AS|MATERIALIZED)$/i.test(before) && /^[\p{L}\p{N}_"'$(]/u.test(text))
      return true
    ;[before, last, word] = [last, word, text]
  }
  return false
}

/** Where the first word of a text begins, comments left out; undefined where there is none. */
export function opening(sql: string): number | undefined {
  for (const { start } of tokens(sql)) return start
  return undefined
}

/** The text between a first `(` and its `)` cut at the commas that stand in no further brackets, and what follows. */
export function cutAtCommas(sql: string): { readonly parts: readonly string[]; readonly after: string } | undefined {
  const parts: string[] = []
  let [depth, begin] = [0, 0]
  for (const { text, start } of tokens(sql)) {
    if ('([{'.includes(text) && ++depth === 1) begin = start + 1
    else if (depth === 0) return undefined
    if (text === ',' && depth === 1) {
      parts.push(sql.slice(begin, start))
      begin = start + 1
    }
    if (!')]}'.includes(text) || --depth > 0) continue
    return { parts: [...parts, sql.slice(begin, start)], after: sql.slice(start + 1) }
  }
  return undefined
}

/** Whether the text ends inside a quoted text, a quoted name or a comment. */
export function isOpen(sql: string): boolean {
  let at = 0
  while (at < sql.length) {
    const end = endOfToken(sql, at)
    if (end > sql.length) return true
    at = end
  }
  return false
}

function piece(sql: string, begin: number, end: number): Statement {
  const raw = sql.slice(begin, end)
  return { text: raw.trim(), offset: begin + (raw.length - raw.trimStart().length) }
}

/** The words, texts and signs of SQL without spaces and comments, each with where it begins. */
export function* tokens(sql: string): Generator<Token> {
  let at = 0
  while (at < sql.length) {
    const end = Math.min(endOfToken(sql, at), sql.length)
    const text = sql.slice(at, end)
    if (!/^(?:\s|--|\/\*)/.test(text)) yield { text, start: at }
    at = end
  }
}

/** Where the token that begins at `at` ends; beyond the text's end when it is not closed. */
function endOfToken(sql: string, at: number): number {
  const rest = sql.slice(at, at + 2)
  // The engine ends such a comment at either sign.
  if (rest === '--') return at + (/[\r\n]/.exec(sql.slice(at))?.index ?? sql.length - at)
  if (rest === '/*') return endOfComment(sql, at)
  if (/^[eE]'/.test(rest)) return endOfQuoted(sql, at + 2, "'", true)
  if (rest.startsWith("'")) return endOfQuoted(sql, at + 1, "'", false)
  if (rest.startsWith('"')) return endOfQuoted(sql, at + 1, '"', false)
  if (rest.startsWith('$')) return endOfDollar(sql, at)
  const word = /[\p{L}\p{N}_$]+|\s+/uy
  word.lastIndex = at
  const match = word.exec(sql)
  return match ? at + match[0].length : at + 1
}

function endOfQuoted(sql: string, from: number, mark: string, escapes: boolean): number {
  for (let i = from; i < sql.length; i++) {
    if (escapes && sql[i] === '\\') i++
    else if (sql[i] === mark && sql[i + 1] === mark) i++
    else if (sql[i] === mark) return i + 1
  }
  return sql.length + 1
}

function endOfComment(sql: string, at: number): number {
  let depth = 0
  for (let i = at; i < sql.length; i++) {
    const two = sql.slice(i, i + 2)
    if (two === '/*') depth++
    if (two === '*/') depth--
    if (two === '/*' || two === '*/') i++
    if (depth === 0) return i + 1
  }
  return sql.length + 1
}

/** `$name` is a parameter, `$$ … $$` and `$tag$ … $tag$` are texts. */
function endOfDollar(sql: string, at: number): number {
  const opening = /\$(?:[A-Za-z_]\w*)?\$/y
  opening.lastIndex = at
  const mark = opening.exec(sql)?.[0]
  if (mark === undefined) return at + 1
  const close = sql.indexOf(mark, at + mark.length)
  return close < 0 ? sql.length + 1 : close + mark.length
}
