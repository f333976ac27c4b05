import type { Token } from './sql-tokens.ts'

/** A token, or all that is between two brackets or between CASE and END, with them. */
export interface Piece {
  readonly text: string
  readonly start: number
  readonly end: number
  /** Of brackets: what is inside. */
  readonly inner?: readonly Piece[]
  /** Of brackets: the conditions that stand in them. */
  readonly regions?: readonly Region[]
  /** Of the brackets of a call: the function, in small letters. */
  readonly called?: string
  readonly calledAt?: number
  /** Of a CASE: whether its WHENs hold conditions. */
  readonly searched?: boolean
}

/** What stands between two keywords or commas, parted by ANDs and ORs. */
export interface Region {
  /** The keyword before it. */
  readonly opener: string
  readonly operands: readonly (readonly Piece[])[]
  readonly operators: readonly Piece[]
  readonly wordsOfOperators: readonly string[]
}

/** A list of keys: what stands behind PARTITION BY, GROUP BY, ORDER BY, or in the brackets of USING or PRIMARY KEY. */
export interface List {
  readonly name: 'PARTITION' | 'GROUP' | 'ORDER' | 'USING' | 'KEY'
  /** Where the list begins with its keyword. */
  readonly start: number
  readonly items: readonly (readonly Piece[])[]
}

const closers: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}', CASE: 'END' }

/** The tokens as a tree; the whole text is one piece. */
export function piecesOf(tokens: readonly Token[]): readonly Piece[] {
  const walk = (from: number, closer: string | undefined): [inner: Piece[], next: number] => {
    const inner: Piece[] = []
    let at = from
    while (at < tokens.length) {
      const token = tokens[at]
      if (!token) break
      if (token.kind === 'word' || token.kind === 'sign') {
        if (token.text === closer) return [inner, at]
        const own = closers[token.text]
        if (own !== undefined) {
          const [children, end] = walk(at + 1, own)
          const before = tokens[at - 1]
          const called =
            token.text === '(' && before?.kind === 'word' && !separators.has(before.text) ? before : undefined
          inner.push({
            ...bracket(children, token.text),
            start: token.start,
            end: (tokens[end] ?? tokens.at(-1))?.end ?? token.end,
            ...(called ? { called: called.text.toLowerCase(), calledAt: called.start } : {}),
          })
          at = end + 1
          continue
        }
      }
      inner.push({
        text: token.kind === 'word' || token.kind === 'sign' ? token.text : '·',
        start: token.start,
        end: token.end,
      })
      at += 1
    }
    return [inner, at]
  }
  const [inner] = walk(0, undefined)
  const last = tokens.at(-1)
  return last ? [{ ...bracket(inner, ''), start: 0, end: last.end }] : []
}

function bracket(inner: readonly Piece[], text: string): Pick<Piece, 'text' | 'inner' | 'regions' | 'searched'> {
  return { text: `${text}…`, inner, regions: regionsOf(inner), searched: text === 'CASE' && inner[0]?.text === 'WHEN' }
}

const separators = new Set(
  (
    'SELECT FROM WHERE ON USING QUALIFY HAVING GROUP ORDER BY LIMIT OFFSET UNION ALL EXCEPT INTERSECT JOIN LEFT RIGHT FULL ' +
    'INNER CROSS ASOF SEMI ANTI WHEN THEN ELSE AS PARTITION ROWS RANGE OVER FILTER WITH VALUES SET INSERT UPDATE DELETE ' +
    'INTO CREATE DISTINCT EXCLUDE REPLACE lambda DESC ASC NULLS COPY TO MACRO VIEW TABLE DO CONFLICT RETURNING IN IS NOT ' +
    'EXISTS AND OR MATERIALIZED UNIQUE KEY , ; : :='
  ).split(' '),
)
/** Those that may stand within a condition. */
const within = new Set(['IN', 'IS', 'NOT', 'EXISTS', 'AND', 'OR', 'UNIQUE', 'KEY', 'MATERIALIZED', 'OVER', 'FILTER'])

function parts(inner: readonly Piece[], n: number): boolean {
  const { text = '' } = inner[n] ?? {}
  if (!separators.has(text) || within.has(text)) return false
  const [one, two, three] = [inner[n - 1]?.text, inner[n - 2]?.text, inner[n - 3]?.text]
  // IS [NOT] DISTINCT FROM is an operator.
  if (text === 'DISTINCT') return !(one === 'IS' || (one === 'NOT' && two === 'IS'))
  if (text === 'FROM') return !(one === 'DISTINCT' && (two === 'IS' || (two === 'NOT' && three === 'IS')))
  return true
}

function regionsOf(inner: readonly Piece[]): readonly Region[] {
  const regions: Region[] = []
  let opener = ''
  let from = 0
  for (let n = 0; n <= inner.length; n += 1) {
    if (n < inner.length && !parts(inner, n)) continue
    regions.push(regionOf(opener, inner.slice(from, n)))
    opener = inner[n]?.text ?? ''
    from = n + 1
  }
  return regions
}

function regionOf(opener: string, pieces: readonly Piece[]): Region {
  const operands: Piece[][] = [[]]
  const operators: Piece[] = []
  let between = false
  for (const piece of pieces) {
    const isOperator = (piece.text === 'AND' && !between) || piece.text === 'OR'
    if (piece.text === 'BETWEEN') between = true
    else if (piece.text === 'AND') between = false
    if (isOperator) {
      operators.push(piece)
      operands.push([])
    } else operands.at(-1)?.push(piece)
  }
  return { opener, operands, operators, wordsOfOperators: operators.map(({ text }) => text) }
}

/** From the first to the last of these. */
export function spanOf(pieces: readonly Piece[]): { readonly start: number; readonly end: number } | undefined {
  const [first, last] = [pieces[0], pieces.at(-1)]
  return first && last ? { start: first.start, end: last.end } : undefined
}

/** The lists of keys that stand directly in these brackets. */
export function lists(piece: Piece): readonly List[] {
  const inner = piece.inner ?? []
  return inner.flatMap(({ text, start }, n): List[] => {
    if ((text === 'PARTITION' || text === 'GROUP' || text === 'ORDER') && inner[n + 1]?.text === 'BY')
      return [{ name: text, start, items: itemsOf(inner.slice(n + 2)) }]
    const brackets = inner[n + 1]
    if (brackets?.text !== '(…') return []
    if (text === 'USING') return [{ name: 'USING', start, items: itemsOf(brackets.inner ?? []) }]
    if (text === 'KEY' || text === 'UNIQUE') return [{ name: 'KEY', start, items: itemsOf(brackets.inner ?? []) }]
    return []
  })
}

const inOrder = new Set(['DESC', 'ASC', 'NULLS', ',', 'IN', 'IS', 'NOT', 'AND', 'OR'])

function itemsOf(pieces: readonly Piece[]): Piece[][] {
  const end = pieces.findIndex(({ text }) => separators.has(text) && !inOrder.has(text))
  const items: Piece[][] = [[]]
  for (const piece of end < 0 ? pieces : pieces.slice(0, end)) {
    if (piece.text === ',') items.push([])
    else items.at(-1)?.push(piece)
  }
  return items.filter((item) => item.length > 0 && item[0]?.text !== 'ALL')
}

/** A change of the text. */
interface Change {
  readonly kind: string
  readonly start: number
  readonly end: number
  readonly to: string
}

/** Each key left out once; a partition of one key goes as a whole. */
export function dropped({ name, start, items }: List): Change[] {
  const kind = 'key'
  if (items.length === 1 && name === 'PARTITION') {
    const own = spanOf(items[0] ?? [])
    return own ? [{ kind, start, end: own.end, to: '' }] : []
  }
  return items.flatMap((item, n): Change[] => {
    const [own, before, next] = [spanOf(item), spanOf(items[n - 1] ?? []), spanOf(items[n + 1] ?? [])]
    if (own && next) return [{ kind, start: own.start, end: next.start, to: '' }]
    return own && before ? [{ kind, start: before.end, end: own.end, to: '' }] : []
  })
}

/** Each key of an ORDER BY the other way round. */
export function inverted({ name, items }: List): Change[] {
  if (name !== 'ORDER') return []
  return items.flatMap((item): Change[] => {
    const descending = item.find(({ text }) => text === 'DESC')
    if (descending) return [{ kind: 'order', start: descending.start, end: descending.end, to: 'ASC' }]
    const nulls = item.findIndex(({ text }) => text === 'NULLS' || text === 'ASC')
    const own = spanOf(nulls < 0 ? item : item.slice(0, nulls))
    return own ? [{ kind: 'order', start: own.end, end: own.end, to: ' DESC' }] : []
  })
}
