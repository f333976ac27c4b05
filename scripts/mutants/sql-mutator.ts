import { dropped, inverted, lists, type Piece, piecesOf, spanOf } from './sql-tree.ts'
import { type Holes, type Token, tokensOf } from './sql-tokens.ts'

/** One small change of an SQL text: the characters from `start` until `end` become `to`. */
export interface Mutation {
  readonly kind: string
  readonly start: number
  readonly end: number
  readonly to: string
}

/** The text with the change made. */
export function mutated(text: string, { start, end, to }: Mutation): string {
  return text.slice(0, start) + to + text.slice(end)
}

/** Every mutation of an SQL text, in its order; none stands in a comment, a string, a name or a placeholder. */
export function mutationsOf(text: string, holes: Holes): readonly Mutation[] {
  const tokens = tokensOf(text, holes)
  const pieces = piecesOf(tokens)
  const all = [...signs(tokens), ...words(tokens), ...numbers(tokens), ...groups(pieces, text)]
  const seen = new Map(all.map((one) => [`${one.start} ${one.end} ${one.to}`, one]))
  const outside = (one: Mutation): boolean => !indexes(tokens).some(([from, to]) => one.start >= from && one.end <= to)
  return [...seen.values()].filter(outside).toSorted((a, b) => a.start - b.start || a.end - b.end)
}

/** Statements that make an index: they change how fast something is, never what it is. */
function indexes(tokens: readonly Token[]): readonly (readonly [number, number])[] {
  return tokens.flatMap((token, n) => {
    if (token.text !== 'INDEX' || !['CREATE', 'UNIQUE'].includes(tokens[n - 1]?.text ?? '')) return []
    const end = tokens.slice(n).find(({ text }) => text === ';')?.start ?? Number.POSITIVE_INFINITY
    return [[token.start, end] as const]
  })
}

const comparisons: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '=': '<>',
  '<>': '=',
  '!=': '=',
}

function signs(tokens: readonly Token[]): Mutation[] {
  return tokens.flatMap((token, n) => {
    const to = token.kind === 'sign' ? comparisons[token.text] : undefined
    return to === undefined || isOption(tokens, n)
      ? []
      : [{ kind: 'comparison', start: token.start, end: token.end, to }]
  })
}

/** `format = 'array'` of a table function that reads files names an argument. */
function isOption(tokens: readonly Token[], at: number): boolean {
  let depth = 0
  for (let n = at - 1; n > 0; n -= 1) {
    if (tokens[n]?.text === ')') depth += 1
    if (tokens[n]?.text !== '(') continue
    if (depth === 0) return /^(?:read_\w+|from_json|parquet_\w+)$/.test(tokens[n - 1]?.text ?? '')
    depth -= 1
  }
  return false
}

const twins = [
  ['min', 'max'],
  ['least', 'greatest'],
  ['arg_min', 'arg_max'],
  ['min_by', 'max_by'],
  ['arg_min_null', 'arg_max_null'],
  ['list_min', 'list_max'],
  ['lead', 'lag'],
  ['bool_and', 'bool_or'],
  ['first', 'last'],
]
const functions = new Map(
  twins.flatMap(([a = '', b = '']) => [
    [a, b],
    [b, a],
  ]),
)
const opposites: Readonly<Record<string, string>> = { AND: 'OR', OR: 'AND' }
const notNegations = ['NULL', 'MATERIALIZED', 'DISTINCT']

function words(tokens: readonly Token[]): Mutation[] {
  return tokens.flatMap((token, n): Mutation[] => {
    if (token.kind !== 'word') return []
    const [before, next, after] = [tokens[n - 1]?.text, tokens[n + 1]?.text ?? '', tokens[n + 2]]
    const here = (kind: string, to: string, until = token): Mutation => ({
      kind,
      start: token.start,
      end: until.end,
      to,
    })
    const twin = functions.get(token.text.toLowerCase())
    if (twin !== undefined && next === '(') return [here('function', twin)]
    if (token.text === 'NOT' && before !== 'IS' && before !== 'IF' && !notNegations.includes(next))
      return [here('not', '')]
    if (token.text === 'NULLS' && tokens[n + 1])
      return [here('null', next === 'FIRST' ? 'NULLS LAST' : 'NULLS FIRST', tokens[n + 1])]
    if (token.text === 'UNION')
      return next === 'ALL' ? [here('union', 'UNION', tokens[n + 1])] : [here('union', 'UNION ALL')]
    if (token.text !== 'IS') return []
    if (next === 'NULL') return [here('null', 'IS NOT NULL', tokens[n + 1])]
    if (next === 'NOT' && after?.text === 'NULL') return [here('null', 'IS NULL', after)]
    if (next === 'DISTINCT') return [here('null', '<>', after), here('comparison', 'IS NOT DISTINCT FROM', after)]
    if (next === 'NOT' && after?.text === 'DISTINCT')
      return [here('null', '=', tokens[n + 3]), here('comparison', 'IS DISTINCT FROM', tokens[n + 3])]
    return []
  })
}

/** What only says how files are laid out. */
const layout = ['ROW_GROUP_SIZE', 'COMPRESSION_LEVEL', 'PARQUET_VERSION']

function numbers(tokens: readonly Token[]): Mutation[] {
  return tokens.flatMap((token, n): Mutation[] => {
    if (token.kind !== 'number' || !/^\d+$/.test(token.text)) return []
    if (layout.includes(tokens[n - 1]?.text ?? '') || tokens[n - 2]?.text === 'maximum_object_size') return []
    const to = token.text === '0' ? '1' : token.text === '1' ? '0' : String(BigInt(token.text) + 1n)
    return [{ kind: 'number', start: token.start, end: token.end, to }]
  })
}

function groups(pieces: readonly Piece[], text: string): Mutation[] {
  return pieces.flatMap((piece) => [
    ...chains(piece),
    ...lists(piece).flatMap((list) => [...dropped(list), ...inverted(list)]),
    ...firstOnly(piece, text),
    ...groups(piece.inner ?? [], text),
  ])
}

/** The operands of ANDs and ORs, and conditions that are the only one. */
function chains(piece: Piece): Mutation[] {
  return (piece.regions ?? []).flatMap(({ opener, operands, operators, wordsOfOperators }) => {
    const span = spanOf(operands.flat())
    if (!span) return []
    const whole = (to: string): Mutation => ({ kind: 'condition', start: span.start, end: span.end, to })
    const alone = ['WHERE', 'QUALIFY', 'HAVING'].includes(opener) && operands.length === 1 ? [whole('true')] : []
    const branch = opener === 'WHEN' && piece.searched ? [whole('false')] : []
    // Behind the OR of CREATE OR REPLACE there is no operand.
    const swaps = operators.flatMap(({ start, end, text }, n): Mutation[] =>
      (operands[n + 1] ?? []).length > 0 ? [{ kind: 'and-or', start, end, to: opposites[text] ?? text }] : [],
    )
    return [...alone, ...branch, ...swaps, ...operandDrops(operands, wordsOfOperators)]
  })
}

/** Each operand of a chain of ANDs, and each of a chain of ORs with its ANDs, left out once. */
function operandDrops(operands: readonly (readonly Piece[])[], operators: readonly string[]): Mutation[] {
  const single = operands.map((_, n): [number, number] => [n, n + 1])
  // Between two ORs lies one operand of theirs.
  const ors = [-1, ...operators.flatMap((word, n) => (word === 'OR' ? [n] : [])), operators.length]
  const wide = ors.slice(1).map((or, n): [number, number] => [(ors[n] ?? -1) + 1, or + 1])
  return [...single, ...(ors.length > 2 ? wide : [])].flatMap(([from, to]): Mutation[] => {
    const own = spanOf(operands.slice(from, to).flat())
    const next = spanOf(operands[to] ?? [])
    const before = spanOf(operands[from - 1] ?? [])
    const kind = 'operand'
    // Of a chain of ANDs between ORs, the last operand leaves with the AND before it.
    if (own && before && (operators[from - 1] === 'AND' || !next))
      return [{ kind, start: before.end, end: own.end, to: '' }]
    return own && next ? [{ kind, start: own.start, end: next.start, to: '' }] : []
  })
}

/** `coalesce(a, b)` as a. */
function firstOnly(piece: Piece, text: string): Mutation[] {
  if (piece.called !== 'coalesce' || piece.calledAt === undefined) return []
  const comma = piece.inner?.findIndex((one) => one.text === ',') ?? -1
  const first = spanOf(piece.inner?.slice(0, comma) ?? [])
  if (comma < 0 || !first) return []
  return [{ kind: 'null', start: piece.calledAt, end: piece.end, to: `(${text.slice(first.start, first.end)})` }]
}
