/** One import or re-export as written in a file. */
export interface Import {
  readonly target: string
  /** Nothing of it is left at run time. */
  readonly typeOnly: boolean
  /** Read only once that line runs: `await import('…')`. */
  readonly late: boolean
}

/** The source with comments and the insides of strings blanked; line breaks and the quotes stay where they were. */
export function codeOnly(source: string): string {
  const scanner = { source, at: 0, out: '' }
  code(scanner, false)
  return scanner.out
}

interface Scanner {
  readonly source: string
  at: number
  out: string
}

/** Copies code up to its end, or inside a template up to the brace that closes the expression. */
function code(s: Scanner, inTemplate: boolean): void {
  let depth = 0
  while (s.at < s.source.length) {
    const c = s.source[s.at] ?? ''
    const two = s.source.slice(s.at, s.at + 2)
    if (two === '//') blank(s, /\/\/.*/y)
    else if (two === '/*') blank(s, /\/\*[\s\S]*?\*\//y)
    else if (c === "'") blank(s, /'(?:\\[\s\S]|[^'\\\n])*'/y)
    else if (c === '"') blank(s, /"(?:\\[\s\S]|[^"\\\n])*"/y)
    else if (c === '/' && regexMayStart(s.out)) blank(s, /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y)
    else if (c === '`') template(s)
    else {
      if (c === '{') depth += 1
      if (c === '}') depth -= 1
      if (inTemplate && depth < 0) return
      s.out += c
      s.at += 1
    }
  }
}

function template(s: Scanner): void {
  s.out += '`'
  s.at += 1
  while (s.at < s.source.length && s.source[s.at] !== '`') {
    if (s.source.startsWith('${', s.at)) {
      s.out += '${'
      s.at += 2
      code(s, true)
      s.out += '}'
      s.at += 1
    } else {
      const length = s.source[s.at] === '\\' ? 2 : 1
      s.out += s.source.slice(s.at, s.at + length).replaceAll(/[^\n]/g, ' ')
      s.at += length
    }
  }
  s.out += '`'
  s.at += 1
}

/**
 * Passes what the pattern matches here, each character but line breaks as a space, the first and last kept for strings.
 */
function blank(s: Scanner, pattern: RegExp): void {
  pattern.lastIndex = s.at
  const text = pattern.exec(s.source)?.[0] ?? s.source.slice(s.at, s.at + 1)
  const quote = /^['"]/.test(text) ? (text[0] ?? '') : ' '
  const inside = text.slice(1, -1).replaceAll(/[^\n]/g, ' ')
  s.out += text.length < 2 ? text : quote + inside + quote
  s.at += text.length
}

/** A slash after an operator, an opening bracket or `return` starts a regular expression, elsewhere it divides. */
function regexMayStart(before: string): boolean {
  const text = before.trimEnd()
  return text === '' || /[(,=:[!&|?{};+\-*%<>~^]$/.test(text) || /\b(?:return|typeof|case|in|of|void)$/.test(text)
}

const statements = /^[ \t]*(?:import|export)\b(?<names>[^'";]*?)from\s*(?<quote>['"])/gm
const sideEffects = /^[ \t]*import\s*(?<quote>['"])/gm
const dynamic = /\bimport\s*\(\s*(?<quote>['"])/g

/** Every import of a file: statements, re-exports, `import('…')`; not what comments or strings say. */
export function importsOf(source: string): readonly Import[] {
  const blanked = codeOnly(source)
  return [statements, sideEffects, dynamic].flatMap((pattern) =>
    [...blanked.matchAll(pattern)].map((match) => {
      const start = match.index + match[0].length
      const target = source.slice(start, blanked.indexOf(match.groups?.['quote'] ?? "'", start))
      return { target, typeOnly: isTypeOnly(match.groups?.['names'] ?? ''), late: pattern === dynamic }
    }),
  )
}

function isTypeOnly(names: string): boolean {
  const text = names.trim()
  if (/^type\b/.test(text)) return true
  if (!/^\{[^}]*\}$/.test(text)) return false
  const parts = text
    .slice(1, -1)
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
  return parts.length > 0 && parts.every((part) => part.startsWith('type '))
}
