/** One statement of a script. */
export interface ScriptStatement {
  /** The statement without the closing `;` and without spaces around it. */
  readonly text: string
  /** Position in the script at which `text` begins, in UTF-16 code units. */
  readonly offset: number
}

/** A script cut at its semicolons. */
export interface CutScript {
  /** Statements that end in a `;`. */
  readonly statements: readonly ScriptStatement[]
  /** The text after the last `;`; blank if there is none. */
  readonly rest: ScriptStatement
}

/**
 * Cuts SQL at its semicolons into whole statements, and what follows the last `;` (blank when nothing does). Those in
 * texts, names and comments do not count. Comments alone are no statement.
 */
export function cutScript(sql: string): CutScript {
  const statements: ScriptStatement[] = []
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

/** Splits a script into its statements, the last one with or without its `;`. */
export function statementsOf(sql: string): readonly ScriptStatement[] {
  const { statements, rest } = cutScript(sql)
  return rest.text === '' ? statements : [...statements, rest]
}

/** Returns the first words of a statement in capitals, comments left out. */
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
  let before = ''
  let last = ''
  let word = ''
  for (const { text } of tokens(sql)) {
    // A word that names a column or a window is followed by a sign; a statement goes on with a word, a name or a list.
    if (writing.test(word) && last === '(' && /^(?:AS|MATERIALIZED)$/i.test(before) && /^[\p{L}\p{N}_"'$(]/u.test(text))
      return true
    ;[before, last, word] = [last, word, text]
  }
  return false
}

/**
 * Counts the words of a text that are among these, written in capitals here; those in texts, names and comments do not
 * count.
 */
export function countWords(sql: string, words: ReadonlySet<string>): number {
  let count = 0
  for (const { text } of tokens(sql)) if (words.has(text.toUpperCase())) count++
  return count
}

/** Finds the offset of the first word of a text, comments left out; undefined if there is none. */
export function opening(sql: string): number | undefined {
  for (const { start } of tokens(sql)) return start
  return undefined
}

/**
 * Splits the text between a first `(` and its `)` at the commas that stand in no further brackets, and returns what
 * follows.
 */
export function cutAtCommas(sql: string) {
  const parts: string[] = []
  let depth = 0
  let begin = 0
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

function piece(sql: string, begin: number, end: number): ScriptStatement {
  const raw = sql.slice(begin, end)
  return { text: raw.trim(), offset: begin + (raw.length - raw.trimStart().length) }
}

/** Yields the words, texts and signs of SQL without spaces and comments, each with where it begins. */
export function* tokens(sql: string) {
  let at = 0
  while (at < sql.length) {
    const end = Math.min(endOfToken(sql, at), sql.length)
    const text = sql.slice(at, end)
    if (!/^(?:\s|--|\/\*)/.test(text)) yield { text, start: at }
    at = end
  }
}

/** Finds the end of the token that begins at `at`; beyond the text's end if it is not closed. */
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

/** Finds the end of a token with a dollar: `$name` is a parameter, `$$ … $$` and `$tag$ … $tag$` are texts. */
function endOfDollar(sql: string, at: number): number {
  const opening = /\$(?:[A-Za-z_]\w*)?\$/y
  opening.lastIndex = at
  const mark = opening.exec(sql)?.[0]
  if (mark === undefined) return at + 1
  const close = sql.indexOf(mark, at + mark.length)
  return close < 0 ? sql.length + 1 : close + mark.length
}

/** Conditions that a statement must meet before it may run. */
interface Form {
  /** SELECTs of the same words: the parts of the statement that may call functions, for the engine's parser. */
  readonly probes: readonly string[]
  /** Kind that the engine must report for the statement. */
  readonly kind: string
  /** Whether there is a plan to judge. */
  readonly planned: boolean
}

const part = String.raw`(?:"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*)`
const name = String.raw`${part}(?:\.${part}){0,2}`
const names = String.raw`\(~${part}(?:~,~${part})*~\)`
/** The end of a word. */
const end = String.raw`(?![\p{L}\p{N}_$])`
const temporary = String.raw`CREATE (?:OR REPLACE )?(?:TEMP|TEMPORARY)`

/**
 * Builds a pattern in which a space means blanks and `~` some or none: the ASCII ones, which all parsers read alike.
 */
function head(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[ ~]/g, (mark) => String.raw`[ \t\r\n]${mark === ' ' ? '+' : '*'}`)}`, 'iu')
}

type Reading = (rest: string, groups: readonly string[]) => Form | undefined

const only = (probes: readonly string[], kind: string, planned: boolean): Form => ({ probes, kind, planned })
const wanted =
  (kind: string, planned: boolean): Reading =>
  (rest) =>
    only([rest], kind, planned)
const ended =
  (kind: string): Reading =>
  (rest) =>
    opening(rest) === undefined ? only([], kind, false) : undefined

/**
 * Statements other than SELECT that a session may run. After each head of plain words there is a text that is also the
 * text of a SELECT, so that the engine's parser shows the functions in it.
 */
const statementKinds: readonly (readonly [head: RegExp, reading: Reading])[] = [
  [head(`SET VARIABLE ${part}~(?:=|TO${end})`), (rest) => only([`SELECT (${rest}\n)`], 'SET', true)],
  [head(`RESET VARIABLE ${part}`), ended('SET')],
  [head(`${temporary} TABLE (?:IF NOT EXISTS )?${name}(?:~${names})?~AS${end}`), wanted('CREATE', true)],
  [head(`${temporary} TABLE (?:IF NOT EXISTS )?${name}~(?=[(])`), columnsForm],
  [head(`${temporary} VIEW (?:IF NOT EXISTS )?${name}(?:~${names})?~AS${end}`), wanted('CREATE', false)],
  [head(`${temporary} (?:MACRO|FUNCTION) (?:IF NOT EXISTS )?${name}~(?=[(])`), macroForm],
  [head(`INSERT INTO ${name}(?:~${names})?(?: BY (?:NAME|POSITION))?${end}`), wanted('INSERT', true)],
  [head(`UPDATE ${name} SET${end}`), (rest) => only([`SELECT ${rest}`], 'UPDATE', true)],
  [
    head(`DELETE FROM (${name})${end}`),
    (rest, [table = '']) => only([`SELECT 1 FROM ${table} ${rest}`], 'DELETE', true),
  ],
  [head(`DROP (?:TABLE|VIEW|MACRO|MACRO TABLE|FUNCTION) (?:IF EXISTS )?${name}`), ended('DROP')],
  [head('(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT)(?: (?:TRANSACTION|WORK))?'), ended('TRANSACTION')],
]

/**
 * First words of the statements above. A query begins with none of them, so its patterns need not be compiled: 30 ms.
 */
const firstWords = /^(?:SET|RESET|CREATE|INSERT|UPDATE|DELETE|DROP|BEGIN|START|COMMIT|END|ROLLBACK|ABORT)/i

/** Finds the form of a statement that begins with its first word; a SELECT if it is none of the others. */
export function formOf(text: string): Form {
  if (!firstWords.test(text)) return select(text)
  for (const [pattern, reading] of statementKinds) {
    const match = pattern.exec(text)
    const found = match && reading(text.slice(match[0].length), match.slice(1))
    if (found) return found
  }
  return select(text)
}

function select(text: string): Form {
  return { probes: [text], kind: 'SELECT', planned: true }
}

/** Parses `(a INTEGER, b DECIMAL(9, 2))`: names and types, each type proved in a cast; no defaults, no checks. */
function columnsForm(rest: string): Form | undefined {
  const list = inParentheses(rest)
  if (list === undefined || list.after.trim() !== '') return undefined
  const probes = list.parts.map((column) => {
    const found = head(`~${part} `).exec(column)
    return found ? `SELECT CAST(NULL AS ${column.slice(found[0].length)}\n)` : column
  })
  return only(probes, 'CREATE', false)
}

/** Parses `(a, b := 1) AS a + b` and `(a) AS TABLE SELECT …`. */
function macroForm(rest: string): Form | undefined {
  const list = inParentheses(rest)
  const body = list && head(`~AS( TABLE)?${end}`).exec(list.after)
  if (!list || !body) return undefined
  const defaults = list.parts.flatMap((parameter) => {
    const found = head(`~${part}~(?::=|=>)?`).exec(parameter)
    const value = found ? parameter.slice(found[0].length) : parameter
    return value.trim() === '' ? [] : [`SELECT (${value}\n)`]
  })
  const remainder = list.after.slice(body[0].length)
  return only([...defaults, body[1] === undefined ? `SELECT (${remainder}\n)` : remainder], 'CREATE', false)
}

/** Splits a text in parentheses at its commas, and returns what follows. */
function inParentheses(text: string) {
  const cut = cutAtCommas(text)
  return cut && { parts: cut.parts.filter((part) => opening(part) !== undefined), after: cut.after }
}
