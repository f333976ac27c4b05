import { isObject } from '../../../base/json.ts'
import { parseMicros } from '../../../base/time.ts'

/** Node of a plan, as the engine returns it. */
export type Node = { readonly [name: string]: unknown }

/** Returns the part of a node with this name; an empty one if there is none. */
export function part(node: Node, name: string): Node {
  const member = node[name]
  return isObject(member) ? member : {}
}

/** Returns the parts of a node with this name; none if it has none. */
export function parts(node: Node, name: string): readonly Node[] {
  const member = node[name]
  return Array.isArray(member) ? member.filter(isObject) : []
}

/** Returns a word of a node; '' if it is none. */
export function word(node: Node, name: string): string {
  const member = node[name]
  return typeof member === 'string' ? member : ''
}

/** Returns a number of a node; NaN if it is none. */
export function numberIn(node: Node, name: string): number {
  const member = node[name]
  return typeof member === 'number' ? member : Number.NaN
}

/** Whether a part of a node has content. */
export function says(node: Node, name: string): boolean {
  const member = node[name]
  return Array.isArray(member) ? member.length > 0 : member !== undefined && member !== null && member !== false
}

/** Returns the name of the type that a node has under this name. */
export function typeOf(node: Node, name = 'return_type'): string {
  return word(part(node, name), 'id')
}

/** Parses a text with an instant to microseconds, UTC if it has no zone; NaN if it is not understood. */
function constantMicros(text: string): number {
  const form = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d(?:\.\d{1,6})?)?)?(?:Z|\+00(?::?00)?)?$/
  const [, day, minute = '00:00', second = ':00'] = form.exec(text.trim()) ?? []
  return day === undefined ? Number.NaN : (parseMicros(`${day}T${minute}${second}Z`) ?? Number.NaN)
}

/** Returns the text of a constant, through casts; undefined for anything else and for NULL. */
export function boundText(node: Node): string | undefined {
  if (word(node, 'expression_class') === 'BOUND_CAST') return boundText(part(node, 'child'))
  if (word(node, 'expression_class') !== 'BOUND_CONSTANT') return undefined
  const constant = part(node, 'value')
  return constant['is_null'] === true || typeof constant['value'] !== 'string' ? undefined : constant['value']
}

/** Computes the number of a constant expression, as far as it is understood; else NaN. */
export function numberOf(node: Node): number {
  switch (word(node, 'expression_class')) {
    case 'BOUND_CAST':
      return numberOf(part(node, 'child'))
    case 'BOUND_CONSTANT':
      return part(node, 'value')['is_null'] === true ? Number.NaN : numberIn(part(node, 'value'), 'value')
    case 'BOUND_FUNCTION': {
      const [firstChild, other] = parts(node, 'children')
      if (firstChild === undefined || other !== undefined) return Number.NaN
      if (word(node, 'name') === '-') return -numberOf(firstChild)
      return word(node, 'name') === 'trunc' ? Math.trunc(numberOf(firstChild)) : Number.NaN
    }
    default:
      return Number.NaN
  }
}

const forward = /^\s*(?:\d+(?:\.\d+)?\s*[a-z]+\s*)+$/i
const makers = /^to_(?:microseconds|milliseconds|seconds|minutes|hours|days|weeks|months|quarters|years|decades)$/

/** Whether a constant distance goes forward (1), back (-1), or neither as far as it is read (0). */
export function directionOf(node: Node): -1 | 0 | 1 {
  const type = typeOf(node) || typeOf(part(node, 'value'), 'type')
  if (/INT/.test(type) && type !== 'INTERVAL') return signOf(numberOf(node))
  const text = boundText(node)
  if (text !== undefined) return forward.test(text) ? 1 : 0
  if (word(node, 'expression_class') === 'BOUND_CONSTANT') return ofInterval(node)
  const [first] = parts(node, 'children')
  return first !== undefined && makers.test(word(node, 'name')) ? signOf(numberOf(first)) : 0
}

function ofInterval(node: Node): -1 | 0 | 1 {
  const constant = part(part(node, 'value'), 'value')
  const each = ['months', 'days', 'micros'].map((name) => numberIn(constant, name))
  if (each.every((size) => size >= 0)) return 1
  return each.every((size) => size <= 0) ? -1 : 0
}

function signOf(size: number): -1 | 0 | 1 {
  return size >= 0 ? 1 : size < 0 ? -1 : 0
}

/** Finds the instant that an expression rounds down, and to what. */
function floorOf(node: Node): { readonly of: Node; readonly unit: string } | undefined {
  if (word(node, 'expression_class') === 'BOUND_CAST' && typeOf(node) === 'DATE')
    return node['try_cast'] === true ? undefined : { of: part(node, 'child'), unit: 'day' }
  const [unit, of] = parts(node, 'children')
  const text = unit === undefined ? undefined : boundText(unit)
  if (!/^date_?trunc$/.test(word(node, 'name')) || of === undefined || text === undefined) return undefined
  return { of, unit: text.toLowerCase() }
}

/**
 * Whether a distance is one or more of these units: what was rounded down to the unit and moved by it is not earlier.
 */
function isUnit(node: Node, unit: string): boolean {
  const text = boundText(node)
  if (text !== undefined) return new RegExp(`^[1-9]\\d* ${unit}s?$`, 'i').test(text.trim())
  if (typeOf(part(node, 'value'), 'type') === 'INTEGER') return unit === 'day' && numberOf(node) >= 1
  const [first] = parts(node, 'children')
  return first !== undefined && word(node, 'name') === `to_${unit}s` && numberOf(first) >= 1
}

/**
 * Finds `x` in `date_trunc('day', x) + INTERVAL 1 DAY`, which is never earlier than `x`; undefined for any other
 * expression.
 */
export function ceilingOf(node: Node): Node | undefined {
  const [start, distance] = parts(node, 'children')
  const floor = word(node, 'name') === '+' && start !== undefined ? floorOf(start) : undefined
  return floor && distance !== undefined && isUnit(distance, floor.unit) ? floor.of : undefined
}

/** Microseconds of a constant instant, NaN where its text is not read; undefined for anything else. */
export function instantIn(node: Node): number | undefined {
  const text = boundText(node)
  return text === undefined ? undefined : constantMicros(text)
}
