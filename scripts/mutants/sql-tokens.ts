/** A word, number, text, quoted name, placeholder or sign of an SQL text; spaces and comments are none. */
export interface Token {
  readonly kind: 'word' | 'number' | 'string' | 'name' | 'hole' | 'sign'
  readonly text: string
  readonly start: number
  readonly end: number
}

/** How a text writes what is filled in: `{{…}}` in our files, `${…}` in TypeScript. */
export type Holes = '{{' | '${'

const signs = ['->>', '<=', '>=', '<>', '!=', '::', '||', ':=', '=>', '//', '<<', '>>', '->', '**']

/** The tokens of an SQL text, in order. */
export function tokensOf(text: string, holes: Holes): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const { kind, end } = nextPiece(text, at, holes)
    if (kind !== 'space') tokens.push({ kind, text: text.slice(at, end), start: at, end })
    at = end
  }
  return tokens
}

function nextPiece(text: string, at: number, holes: Holes): { kind: Token['kind'] | 'space'; end: number } {
  const space = matchAt(/(?:\s|--[^\n]*)+/y, text, at)
  if (space > 0) return { kind: 'space', end: at + space }
  if (text.startsWith('/*', at)) return { kind: 'space', end: nestedEnd(text, at, '/*', '*/') }
  if (text.startsWith(holes, at)) return { kind: 'hole', end: holeEnd(text, at, holes) }
  const first = text[at] ?? ''
  if (first === "'") return { kind: 'string', end: quotedEnd(text, at, holes) }
  if (first === '"') return { kind: 'name', end: quotedEnd(text, at, holes) }
  const dollar = /\$(?:[A-Za-z_]\w*)?\$/y
  const tag = text.slice(at, at + matchAt(dollar, text, at))
  if (tag !== '') return { kind: 'string', end: endBehind(text, tag, at + tag.length) }
  const word = matchAt(/[A-Za-z_]\w*/y, text, at)
  if (word > 0) return { kind: 'word', end: at + word }
  const number = matchAt(/\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?/y, text, at)
  if (number > 0) return { kind: 'number', end: at + number }
  return { kind: 'sign', end: at + (signs.find((sign) => text.startsWith(sign, at))?.length ?? 1) }
}

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0].length ?? 0
}

function endBehind(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from)
  return found < 0 ? text.length : found + mark.length
}

/** The end of what nests: a block comment of DuckDB, a placeholder. */
function nestedEnd(text: string, from: number, open: string, close: string): number {
  let depth = 0
  for (let at = from; at < text.length; ) {
    if (text.startsWith(open, at)) depth += 1
    else if (text.startsWith(close, at)) depth -= 1
    else {
      at += 1
      continue
    }
    at += 2
    if (depth === 0) return at
  }
  return text.length
}

/** A quote within is doubled; a placeholder within may hold quotes of its own. */
function quotedEnd(text: string, from: number, holes: Holes): number {
  const quote = text[from]
  let at = from + 1
  while (at < text.length) {
    if (text.startsWith(holes, at)) at = holeEnd(text, at, holes)
    else if (text[at] !== quote) at += 1
    else if (text[at + 1] === quote) at += 2
    else return at + 1
  }
  return text.length
}

function holeEnd(text: string, from: number, holes: Holes): number {
  return holes === '${' ? codeEnd(text, from + 2) : nestedEnd(text, from, '{{', '}}')
}

/** The end of the TypeScript behind `${`, behind its brace. */
function codeEnd(text: string, from: number): number {
  let depth = 1
  for (let at = from; at < text.length; ) {
    const text_end = literalEnd(text, at)
    if (text_end > at) {
      at = text_end
      continue
    }
    if (text[at] === '{') depth += 1
    if (text[at] === '}') depth -= 1
    at += 1
    if (depth === 0) return at
  }
  return text.length
}

/** The end of the TypeScript text that begins here, in any of its three quotes; `at` where none does. */
export function literalEnd(text: string, at: number): number {
  const quote = text[at]
  if (quote !== "'" && quote !== '"' && quote !== '`') return at
  let next = at + 1
  while (next < text.length && text[next] !== quote) {
    if (text[next] === '\\') next += 2
    else if (quote === '`' && text.startsWith('${', next)) next = codeEnd(text, next + 2)
    else next += 1
  }
  return Math.min(next + 1, text.length)
}
