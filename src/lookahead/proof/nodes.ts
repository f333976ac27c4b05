import { isObject } from '../../json.ts'

/** A node of a plan, as the engine tells it. */
export type Node = { readonly [name: string]: unknown }

/** The part of a node with this name; an empty one where there is none. */
export function part(node: Node, name: string): Node {
  const held = node[name]
  return isObject(held) ? held : {}
}

/** The parts of a node with this name, none where it has none. */
export function parts(node: Node, name: string): readonly Node[] {
  const held = node[name]
  return Array.isArray(held) ? held.filter(isObject) : []
}

/** A word of a node, '' where it is none. */
export function word(node: Node, name: string): string {
  const held = node[name]
  return typeof held === 'string' ? held : ''
}

/** A number of a node, NaN where it is none. */
export function count(node: Node, name: string): number {
  const held = node[name]
  return typeof held === 'number' ? held : Number.NaN
}

/** Whether a part of a node says anything. */
export function says(node: Node, name: string): boolean {
  const held = node[name]
  return Array.isArray(held) ? held.length > 0 : held !== undefined && held !== null && held !== false
}

/** The name of the type that a node has under this name. */
export function typeOf(node: Node, name = 'return_type'): string {
  return word(part(node, name), 'id')
}
