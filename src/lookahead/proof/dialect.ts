import { isObject } from '../../json.ts'
import { type Node, part, parts, says, word } from './nodes.ts'

/**
 * A plan of DuckDB 2 as DuckDB 1.5 tells it, whose words the rules are written in: a comparison and a cast are functions
 * there, names are ends of paths, how far `lag` goes is an argument of it, and further filters stand beside those of a scan.
 * A plan of 1.5 stays as it is.
 */
export function inOneDialect(plan: Node): Node {
  const told = Object.fromEntries(Object.entries(plan).map(([name, held]) => [name, inside(held)]))
  const path = pathIn(told, 'qname')
  const table = pathIn(told, 'qualified_name')
  return {
    ...told,
    ...(path.length > 0 && { name: path.at(-1) }),
    ...(table.length > 1 && { schema: table.at(-2), table: table.at(-1) }),
    ...(says(told, 'multi_column_filters') && { filters: told['multi_column_filters'] }),
    ...(word(told, 'expression_class') === 'BOUND_FUNCTION' && asOperator(told)),
    ...(/^WINDOW_(?:LAG|LEAD)$/.test(word(told, 'type')) && asDistance(told)),
  }
}

function inside(held: unknown): unknown {
  if (Array.isArray(held)) return held.map(inside)
  return isObject(held) ? inOneDialect(held) : held
}

function pathIn(node: Node, name: string): readonly string[] {
  const { path } = part(node, name)
  return Array.isArray(path) ? path.map(String) : []
}

function asOperator(call: Node): Node {
  const [left, right] = parts(call, 'children')
  if (word(call, 'type').startsWith('COMPARE_')) return { expression_class: 'BOUND_COMPARISON', left, right }
  if (word(call, 'type') !== 'OPERATOR_CAST') return {}
  return { expression_class: 'BOUND_CAST', child: left, try_cast: part(call, 'function_data')['try_cast'] }
}

function asDistance(call: Node): Node {
  const [value, offset, standard] = parts(call, 'children')
  return offset === undefined ? {} : { children: [value], offset_expr: offset, default_expr: standard }
}
