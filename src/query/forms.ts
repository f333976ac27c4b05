import { cutAtCommas, opening } from './statements.ts'

/** What a statement must prove before it may run. */
export interface Form {
  /** SELECTs of the same words: what stands in the statement and may call functions, for the engine's parser. */
  readonly probes: readonly string[]
  /** What the engine must take the statement for. */
  readonly kind: string
  /** Whether there is a plan to look at. */
  readonly planned: boolean
}

const part = String.raw`(?:"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*)`
const name = String.raw`${part}(?:\.${part}){0,2}`
const names = String.raw`\(~${part}(?:~,~${part})*~\)`
/** The end of a word. */
const end = String.raw`(?![\p{L}\p{N}_$])`
const temporary = String.raw`CREATE (?:OR REPLACE )?(?:TEMP|TEMPORARY)`

/** A pattern in which a space stands for blanks and `~` for none or some: the ASCII ones, which everybody reads alike. */
function head(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[ ~]/g, (mark) => String.raw`[ \t\r\n]${mark === ' ' ? '+' : '*'}`)}`, 'iu')
}

interface Kind {
  readonly head: RegExp
  readonly form: (rest: string, groups: readonly string[]) => Form | undefined
}

const only = (probes: readonly string[], kind: string, planned: boolean): Form => ({ probes, kind, planned })
const ended = (rest: string, kind: string): Form | undefined =>
  opening(rest) === undefined ? only([], kind, false) : undefined

/**
 * The statements beside SELECT that a session may run. Behind each head of plain words stands a text that is also the
 * text of a SELECT, so that the engine's parser shows the functions in it.
 */
const statementKinds: readonly Kind[] = [
  {
    head: head(`SET VARIABLE ${part}~(?:=|TO${end})`),
    form: (rest) => only([`SELECT (${rest}\n)`], 'SET', true),
  },
  { head: head(`RESET VARIABLE ${part}`), form: (rest) => ended(rest, 'SET') },
  {
    head: head(`${temporary} TABLE (?:IF NOT EXISTS )?${name}(?:~${names})?~AS${end}`),
    form: (rest) => only([rest], 'CREATE', true),
  },
  { head: head(`${temporary} TABLE (?:IF NOT EXISTS )?${name}~(?=[(])`), form: columnsForm },
  {
    head: head(`${temporary} VIEW (?:IF NOT EXISTS )?${name}(?:~${names})?~AS${end}`),
    form: (rest) => only([rest], 'CREATE', false),
  },
  { head: head(`${temporary} (?:MACRO|FUNCTION) (?:IF NOT EXISTS )?${name}~(?=[(])`), form: macroForm },
  {
    head: head(`INSERT INTO ${name}(?:~${names})?(?: BY (?:NAME|POSITION))?${end}`),
    form: (rest) => only([rest], 'INSERT', true),
  },
  { head: head(`UPDATE ${name} SET${end}`), form: (rest) => only([`SELECT ${rest}`], 'UPDATE', true) },
  {
    head: head(`DELETE FROM (${name})${end}`),
    form: (rest, [table = '']) => only([`SELECT 1 FROM ${table} ${rest}`], 'DELETE', true),
  },
  {
    head: head(`DROP (?:TABLE|VIEW|MACRO|MACRO TABLE|FUNCTION) (?:IF EXISTS )?${name}`),
    form: (rest) => ended(rest, 'DROP'),
  },
  {
    head: head('(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT)(?: (?:TRANSACTION|WORK))?'),
    form: (rest) => ended(rest, 'TRANSACTION'),
  },
]

/** The form of a statement that begins with its first word; a SELECT where it is none of the others. */
export function formOf(text: string): Form {
  for (const { head: pattern, form } of statementKinds) {
    const match = pattern.exec(text)
    const found = match && form(text.slice(match[0].length), match.slice(1))
    if (found) return found
  }
  return { probes: [text], kind: 'SELECT', planned: true }
}

/** `(a INTEGER, b DECIMAL(9, 2))`: names and types, each type proved in a cast; no defaults, no checks. */
function columnsForm(rest: string): Form | undefined {
  const list = inParentheses(rest)
  if (list === undefined || list.after.trim() !== '') return undefined
  const probes = list.parts.map((column) => {
    const found = head(`~${part} `).exec(column)
    return found ? `SELECT CAST(NULL AS ${column.slice(found[0].length)}\n)` : column
  })
  return only(probes, 'CREATE', false)
}

/** `(a, b := 1) AS a + b` and `(a) AS TABLE SELECT …`. */
function macroForm(rest: string): Form | undefined {
  const list = inParentheses(rest)
  const body = list && head(`~AS( TABLE)?${end}`).exec(list.after)
  if (!list || !body) return undefined
  const defaults = list.parts.flatMap((parameter) => {
    const found = head(`~${part}~(?::=|=>)?`).exec(parameter)
    const value = found ? parameter.slice(found[0].length) : parameter
    return value.trim() === '' ? [] : [`SELECT (${value}\n)`]
  })
  const said = list.after.slice(body[0].length)
  return only([...defaults, body[1] === undefined ? `SELECT (${said}\n)` : said], 'CREATE', false)
}

/** The parts of a text in parentheses, between its commas, and what follows. */
function inParentheses(text: string): { readonly parts: readonly string[]; readonly after: string } | undefined {
  const cut = cutAtCommas(text)
  return cut === undefined
    ? undefined
    : { parts: cut.parts.filter((one) => opening(one) !== undefined), after: cut.after }
}
