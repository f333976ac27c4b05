import { numberOf } from './constants.ts'
import { type Scope, scopeOf, valueIn } from './expressions.ts'
import { pureAggregates } from './functions.ts'
import { type Node, part, parts, says, typeOf, word } from './nodes.ts'
import { boundOf, nameOf, named, type Reading, type Relation, toldBy } from './relations.ts'
import { addValue, allOf, type Bound, type Id, isNotLater, isObstacle } from './values.ts'

/** The same rows with what window functions say of them: each known as soon as every row that its frame may hold is. */
export function windowed(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  const made = parts(node, 'expressions').map((one) => {
    const { text, bound } = boundOfWindow(reading, one, child, scope)
    return addValue(reading.values, text, typeOf(one), bound)
  })
  return { ...child, columns: [...child.columns, ...made], facts: scope.facts, order: undefined, guard: undefined }
}

interface Parts {
  readonly partition: readonly Id[]
  readonly order: readonly Id[]
  readonly all: readonly Id[]
}

function boundOfWindow(reading: Reading, node: Node, child: Relation, scope: Scope): { text: string; bound: Bound } {
  const value = (one: Node): Id => valueIn(reading, one, scope)
  const expressions = (name: string): Id[] => parts(node, name).map(value)
  const orders = parts(node, 'orders')
  const single = ['filters', 'start_expr', 'end_expr', 'offset_expr', 'default_expr'].flatMap((name) =>
    says(node, name) ? [value(part(node, name))] : [],
  )
  const given = expressions('children')
  const partition = expressions('partitions')
  const order = orders.map((one) => value(part(one, 'expression')))
  const inner = parts(node, 'arg_orders').map((one) => value(part(one, 'expression')))
  const name = word(node, 'name') || word(node, 'type').replace('WINDOW_', '').toLowerCase()
  const text = `${name}(${given.map((id) => nameOf(reading, id)).join(', ')}) OVER (${frameWords(reading, node, partition, order)})`
  const all = [...partition, ...order, ...given, ...single, ...inner]
  return { text, bound: frameBound(reading, node, text, child, scope, { partition, order, all }) }
}

function frameBound(
  reading: Reading,
  node: Node,
  text: string,
  child: Relation,
  scope: Scope,
  { partition, order, all }: Parts,
): Bound {
  const name = word(node, 'name')
  if (word(node, 'type') === 'WINDOW_AGGREGATE' && !pureAggregates.has(name))
    return { what: text, why: `${name}() is not known to follow from its rows alone` }
  const needed = allOf(child.rows, boundOf(reading, all))
  if (isObstacle(needed)) return needed
  // Rows that share their place are numbered as the engine meets them.
  if (word(node, 'type') === 'WINDOW_ROW_NUMBER') reading.choices.add(text)
  if (needed.size === 0) return needed
  const [first] = order
  const back = first !== undefined && isForward(node, child, first) && looksBack(reading, node, scope, first)
  const candidates = [...partition, ...(back ? [first] : [])]
  const found = toldBy(reading, scope.facts, needed, candidates, (uncovered) => ({
    what: text,
    why: back
      ? `rows before it by ${nameOf(reading, first)} may come later than it: the order does not bound ${nameOf(reading, uncovered)}`
      : 'it looks at rows that are known after its own',
  }))
  if (!isObstacle(found))
    reading.reasons.add(`${text}: no row of its frame is known later than ${named(reading, found)}`)
  return found
}

/** Whether an order puts later rows behind earlier ones, and those without an instant last. */
export function isForward(node: Node, { present }: Pick<Scope, 'present'>, first: Id): boolean {
  const [order] = parts(node, 'orders')
  if (order === undefined || word(order, 'type') !== 'ASCENDING') return false
  return word(order, 'null_order') === 'NULLS LAST' || present.has(first)
}

const toRow = new Set(['UNBOUNDED_PRECEDING', 'CURRENT_ROW_RANGE', 'CURRENT_ROW_ROWS', 'CURRENT_ROW_GROUPS'])

/** Whether a function looks at no row behind its own and those that share its place in the order. */
function looksBack(reading: Reading, node: Node, scope: Scope, first: Id): boolean {
  switch (word(node, 'type')) {
    case 'WINDOW_ROW_NUMBER':
    case 'WINDOW_RANK':
    case 'WINDOW_RANK_DENSE':
      return !says(node, 'arg_orders')
    case 'WINDOW_LAG':
      return !says(node, 'arg_orders') && (!says(node, 'offset_expr') || numberOf(part(node, 'offset_expr')) >= 0)
    case 'WINDOW_AGGREGATE':
    case 'WINDOW_FIRST_VALUE':
    case 'WINDOW_LAST_VALUE':
    case 'WINDOW_NTH_VALUE':
      break
    default:
      return false
  }
  const end = word(node, 'end')
  if (toRow.has(end)) return true
  if (end === 'EXPR_PRECEDING_ROWS' || end === 'EXPR_PRECEDING_GROUPS') return numberOf(part(node, 'end_expr')) >= 0
  if (end !== 'EXPR_PRECEDING_RANGE') return false
  return isNotLater(reading.values, scope.facts, valueIn(reading, part(node, 'end_expr'), scope), first)
}

function frameWords(reading: Reading, node: Node, partition: readonly Id[], order: readonly Id[]): string {
  const list = (ids: readonly Id[]): string => ids.map((id) => nameOf(reading, id)).join(', ')
  const said = [
    partition.length > 0 ? `PARTITION BY ${list(partition)}` : '',
    order.length > 0 ? `ORDER BY ${list(order)} to ${endOf(node)}` : '',
  ]
  return said.filter((words) => words !== '').join(' ')
}

/** Where the frame of a window ends, in words. */
export function endOf(node: Node): string {
  return word(node, 'end')
    .replace(/_(?:ROWS|RANGE|GROUPS)$/, '')
    .replaceAll('_', ' ')
}
