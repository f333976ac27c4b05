import { isUtf8 } from 'node:buffer'
import { LineCounter, isMap, isNode, isScalar, type Document, type Node, parseDocument, visit } from 'yaml'
import { z } from 'zod'
import { type Complaint, usage } from '../base/errors.ts'
import { hint } from '../base/suggestion.ts'
import { parseDuration, parseInstant } from '../base/time.ts'

/** `20m`, `2h`, `3d` as seconds; 0 needs no unit. */
export const duration = z
  .union([z.string(), z.number()])
  .refine((value) => parseDuration(String(value)) !== undefined, 'a duration such as 20m, 2h or 3d')
  .transform((value) => parseDuration(String(value)) ?? Number.NaN)

/** An ISO date or date-time as Unix seconds; zone-less means UTC. */
export const instant = z
  .union([z.string(), z.number().int()])
  .refine((value) => parseInstant(String(value)) !== undefined, 'a date such as 2024-06-01 or an instant with Z')
  .transform((value) => parseInstant(String(value)) ?? Number.NaN)

type Key = string | number
type Path = readonly Key[]

/** A parsed YAML text, with the line of every node for complaints. */
export interface YamlText {
  /** The name of its file. */
  readonly name: string
  /** The parsed value; undefined if there are complaints. */
  readonly value: unknown
  /** Mistakes of syntax and repeated keys. */
  readonly complaints: Complaint[]
  /** Returns `file:line` of the node at the path, or of its nearest parent that exists. */
  readonly where: (path: Path) => string
  /** Returns a scalar as it is written: `00` is not 0. Undefined if the path names none. */
  readonly written: (path: Path) => string | undefined
}

/** Parses YAML; syntax errors and repeated keys become complaints with their line. */
export function readYaml(name: string, text: string): YamlText {
  const lines = new LineCounter()
  const document = parse(name, text, lines)
  // One syntax error causes others after it, so only the first is reported. Repeated keys are independent errors.
  const syntax = document.errors.filter((error) => error.code !== 'DUPLICATE_KEY')
  const errors = syntax.length > 0 ? syntax.slice(0, 1) : document.errors
  const at = (offset: number) => `${name}:${lines.linePos(offset).line}`
  const complaints: Complaint[] = errors.map(({ pos: [start], message }) => ({
    subject: at(start),
    expected: 'valid YAML',
    got: withoutText(message),
  }))
  if (errors.length === 0)
    complaints.push(
      ...strangeNodes(document).map(({ offset, ...complaint }) => ({ subject: at(offset), ...complaint })),
    )
  const value = complaints.length > 0 ? undefined : valueOf(document, at, complaints)
  const where = (path: Path) => `${name}:${lineOf(document, lines, path)}`
  const written = (path: Path) => {
    const node = document.getIn(path, true)
    return isScalar(node) ? node.source : undefined
  }
  return { name, value, complaints, where, written }
}

/** Parses a text; nesting that is too deep for the parser is refused. */
function parse(name: string, text: string, lines: LineCounter): Document.Parsed {
  try {
    return parseDocument(text, { lineCounter: lines, prettyErrors: false })
  } catch (cause) {
    throw usage(name, { expected: 'YAML that can be parsed', got: 'values nested too deeply', cause })
  }
}

/** Decodes the text of a user's file; bytes that are not UTF-8 are refused with their line. */
export function utf8Text(name: string, bytes: Buffer): string {
  if (isUtf8(bytes)) return new TextDecoder().decode(bytes)
  let line = 1
  let start = 0
  for (let end = bytes.indexOf(10); end >= 0 && isUtf8(bytes.subarray(start, end)); end = bytes.indexOf(10, start)) {
    line++
    start = end + 1
  }
  throw usage(`${name}:${line}`, { expected: 'UTF-8', got: 'bytes that are none', next: 'save the file as UTF-8' })
}

/**
 * Finds nodes that YAML allows but that are always mistakes: an anchor that contains itself, and control characters
 * that a terminal or a header would interpret.
 */
function strangeNodes(document: Document): { offset: number; expected: string; got: string }[] {
  const problems: { offset: number; expected: string; got: string }[] = []
  visit(document, {
    Alias: (_, alias, parents) => {
      const anchored = alias.resolve(document)
      if (anchored !== undefined && parents.includes(anchored))
        problems.push({
          offset: offsetOf(alias),
          expected: 'a value',
          got: `the anchor \`${alias.source}\` inside itself`,
        })
    },
    Scalar: (_, scalar) => {
      const sign = /[^\P{Cc}\n\t]/u.exec(String(scalar.value))?.[0]
      const code = sign?.codePointAt(0)?.toString(16).padStart(4, '0')
      if (code !== undefined)
        problems.push({ offset: offsetOf(scalar), expected: 'text', got: `the control sign \\u${code} in it` })
    },
  })
  return problems
}

/** Converts the document to a value; undefined if its aliases expand without end. */
function valueOf(document: Document, at: (offset: number) => string, complaints: Complaint[]): unknown {
  try {
    return document.toJS()
  } catch (error) {
    let last = 0
    visit(document, { Alias: (_, alias) => void (last = offsetOf(alias)) })
    const got = withoutText(error instanceof Error ? error.message : String(error))
    complaints.push({ subject: at(last), expected: 'aliases that can be followed', got })
    return undefined
  }
}

function offsetOf({ range }: Node): number {
  return range?.[0] ?? 0
}

/** Formats every issue of a zod error as `file:line: path: expected …, got …`, unknown keys with a suggestion. */
export function describeIssues(
  yaml: YamlText,
  issues: readonly z.core.$ZodIssue[],
  schema: z.core.$ZodType,
): Complaint[] {
  const unknown = new Set(issues.filter(({ code }) => code === 'unrecognized_keys').map(({ path }) => path.join('.')))
  return issues.flatMap((issue) => {
    const path = issue.path.filter((key) => typeof key !== 'symbol')
    // A key that a mapping lacks is most likely the intended spelling of its unknown key.
    if (issue.code === 'custom' && unknown.has(issue.path.join('.'))) return []
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => unknownKey(yaml, [...path, key], keysAt(schema, path)))
    }
    if (issue.code === 'invalid_union' && issue.errors.length > 0) {
      const nearest = nearestOptions(issue.errors)
      const [first = []] = nearest
      if (nearest.length === 1) {
        const inside = first.map((one) => ({ ...one, path: [...issue.path, ...one.path] }))
        return describeIssues(yaml, inside, schema)
      }
      const expected = [...new Set(nearest.flat().map(expectation))].join(' or ')
      const inner = [...path, ...(first[0]?.path.filter((key) => typeof key !== 'symbol') ?? [])]
      return [complaint(yaml, inner, expected, nearest.flat().every(isQuotable))]
    }
    return [complaint(yaml, path, expectation(issue), isQuotable(issue))]
  })
}

/** Returns the options of a union that a value meets best: those with the fewest issues, each unknown key counted. */
function nearestOptions(options: readonly (readonly z.core.$ZodIssue[])[]): (readonly z.core.$ZodIssue[])[] {
  const weight = (issues: readonly z.core.$ZodIssue[]): number =>
    issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 1), 0)
  const least = Math.min(...options.map(weight))
  return options.filter((issues) => weight(issues) === least)
}

/** Lists the keys that the schema allows at a path; empty if any key is allowed. */
function keysAt(schema: z.core.$ZodType | undefined, path: Path): readonly string[] {
  const [key, ...inner] = path
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return keysAt(schema.unwrap(), path)
  if (schema instanceof z.ZodPipe) return keysAt(schema.in, path)
  if (schema instanceof z.ZodUnion) return [...new Set(schema.options.flatMap((option) => keysAt(option, path)))]
  if (schema instanceof z.ZodArray) return keysAt(schema.element, inner)
  if (schema instanceof z.ZodObject) {
    const shape: z.core.$ZodShape = schema.shape
    return key === undefined ? Object.keys(shape) : keysAt(shape[key], inner)
  }
  if (!(schema instanceof z.ZodRecord)) return []
  if (key !== undefined) return keysAt(schema.valueType, inner)
  return schema.keyType instanceof z.ZodEnum ? schema.keyType.options.map(String) : []
}

function unknownKey(yaml: YamlText, path: Path, knownKeys: readonly string[]): Complaint {
  const key = String(path.at(-1))
  return {
    subject: `${yaml.where(path)}: ${dotted(path)}`,
    expected: knownKeys.length > 0 ? `one of ${knownKeys.join(', ')}` : 'no such key',
    got: isName(key) ? `the unknown key \`${key}\`` : unnamed,
    next: hint(key, knownKeys),
  }
}

function complaint(yaml: YamlText, path: Path, expected: string, isQuoted: boolean): Complaint {
  const got = valueAt(yaml.value, path)
  return {
    subject: `${yaml.where(path)}: ${dotted(path)}`,
    expected,
    got: got === undefined ? 'nothing' : shownValue(got, isQuoted),
  }
}

/**
 * Whether an issue is about a value of the right kind: a number out of its range, a word that is not of a fixed list.
 */
function isQuotable(issue: z.core.$ZodIssue): boolean {
  return issue.code === 'invalid_value' || issue.code === 'too_small' || issue.code === 'too_big'
}

/**
 * Describes a value in an error: only its kind, because a file that is no configuration may contain secrets. A number
 * or a word is quoted if the key takes one and this one is not allowed.
 */
function shownValue(value: unknown, isQuoted: boolean): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'a mapping'
  if (typeof value === 'string') return isQuoted && /^[\w.-]{1,24}$/.test(value) ? `"${value}"` : 'text'
  if (typeof value === 'number') return isQuoted ? String(value) : 'a number'
  return value === null ? 'null' : 'true or false'
}

/**
 * Name in messages for an unknown key that is not an identifier: in a file of a different kind it may be a whole line.
 */
const unnamed = 'a key that is no name'

/** Whether a key is a word, a path or a pattern of paths, and not a line of some other file. */
function isName(key: Key): boolean {
  return typeof key === 'number' || /^[\w./*#@ -]{1,80}$/.test(key)
}

/** Reduces the parser's message to its words, without the quotations from the file. */
function withoutText(message: string): string {
  if (message.includes('call stack')) return 'values nested too deeply'
  return message.replaceAll(/(["'`]).*\1/gs, '…').replace(/:\s.*$/s, '')
}

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return article(issue.expected)
    case 'invalid_value':
      return `one of ${issue.values.map(String).join(', ')}`
    case 'too_small': {
      const unit = issue.origin === 'string' ? ' characters' : issue.origin === 'array' ? ' values' : ''
      return `at least ${String(issue.minimum)}${unit}`
    }
    case 'too_big':
      return `at most ${String(issue.maximum)}`
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message
    default:
      return issue.message
  }
}

function article(type: string): string {
  const named: Readonly<Record<string, string>> = {
    int: 'a whole number',
    array: 'a list',
    object: 'a mapping',
    record: 'a mapping',
    string: 'text',
    boolean: 'true or false',
  }
  return named[type] ?? `a ${type}`
}

function lineOf(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length > 0; length--) {
    const parent = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true)
    const key = path[length - 1]
    if (isMap(parent)) {
      const pair = parent.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key))
      if (pair && isNode(pair.key) && pair.key.range) return lines.linePos(pair.key.range[0]).line
    }
    const node = document.getIn(path.slice(0, length), true)
    if (isNode(node) && (node as Node).range) return lines.linePos(offsetOf(node)).line
  }
  return 1
}

function valueAt(value: unknown, path: Path): unknown {
  let at = value
  for (const key of path) {
    if (typeof at !== 'object' || at === null) return undefined
    at = (at as Record<Key, unknown>)[key]
  }
  return at
}

function dotted(path: Path): string {
  const shown = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${isName(key) ? key : '…'}`))
  const text = shown.join('')
  return text.replace(/^\./, '') || 'the file'
}
