import { type Scope, scopeOf, valueIn } from './expressions.ts'
import { pureAggregates } from './functions.ts'
import { type Node, numberOf, part, parts, says, typeOf, word } from './nodes.ts'
import {
  boundOf,
  inheritOrigin,
  neverKnown,
  boundNames,
  nameOf,
  type Reading,
  type Relation,
  alwaysKnown,
  coveringInstants,
} from './relations.ts'
import { addValue, allOf, type Bound, type Id, isNotLater, isObstacle, type Obstacle } from './values.ts'

/** Aggregates whose result depends on the order of rows within a group, which the engine chooses. */
const choosers =
  /^(?:any_value|arbitrary|first|last|arg_m.*|argm.*|m(?:ax|in)_by|mode|list|array_agg|listagg|string_agg|group_concat|histogram)$/

/** Reads the rows of a GROUP BY: each is known when every row of its group is, which the keys must show. */
export function readGroups(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  const keys = parts(node, 'groups').map((group) => valueIn(reading, group, scope))
  const sets = node['grouping_sets']
  const aggregates = parts(node, 'expressions').map((expression) => aggregate(reading, expression, child, scope, keys))
  const columns = [...keys, ...aggregates]
  const [set = keys, ...others] = Array.isArray(sets) ? (sets as readonly unknown[]) : [null]
  const isWholeSet = Array.isArray(set) && set.length === keys.length && others.length === 0
  if (!isWholeSet) return neverKnown({ what: 'GROUPING SETS', why: 'no rule is known for several at once' }, columns)
  if (says(node, 'grouping_functions'))
    return neverKnown({ what: 'GROUPING()', why: 'no rule is known for it' }, columns)
  const what = keys.length === 0 ? 'an aggregate without GROUP BY' : `GROUP BY ${names(reading, keys)}`
  const rows = knownAt(reading, what, allOf(child.rows, boundOf(reading, keys)), scope, keys)
  if (isObstacle(rows)) return neverKnown(rows, columns)
  if (rows.size > 0) reading.reasons.add(`${what}: every row of a group is known at ${boundNames(reading, rows)}`)
  // Without a key there is a row even where there was none: what is true of the rows is not true of it.
  if (keys.length === 0) return { ...alwaysKnown(columns), rows }
  return { ...alwaysKnown(columns), rows, facts: scope.facts, present: child.present }
}

function names(reading: Reading, ids: readonly Id[]): string {
  return ids.map((id) => nameOf(reading, id)).join(', ')
}

/** Finds the keys at which everything of a group is known. */
function knownAt(reading: Reading, what: string, needed: Bound, scope: Scope, keys: readonly Id[]): Bound {
  return coveringInstants(reading, scope.facts, needed, keys, (uncovered) => ({
    what,
    why: `rows of a group may become known later: no key bounds ${nameOf(reading, uncovered)}`,
  }))
}

function aggregate(reading: Reading, node: Node, child: Relation, scope: Scope, keys: readonly Id[]): Id {
  const value = (expression: Node): Id => valueIn(reading, expression, scope)
  const argumentIds = parts(node, 'children').map(value)
  const filter = says(node, 'filter') ? [value(part(node, 'filter'))] : []
  const order = parts(part(node, 'order_bys'), 'orders').map((order) => value(part(order, 'expression')))
  const name = word(node, 'name')
  const text = `${name}(${names(reading, argumentIds)})`
  const needed = allOf(child.rows, boundOf(reading, [...argumentIds, ...filter, ...order]))
  const impure: Obstacle = { what: text, why: `${name}() is not known to follow from its rows alone` }
  const bound = pureAggregates.has(name) ? knownAt(reading, text, needed, scope, keys) : impure
  if (choosers.test(name) && order.length === 0) reading.choices.add(text)
  const id = addValue(reading.values, text, typeOf(node), bound)
  inheritOrigin(reading, id, child.columns)
  return id
}

/** Reads DISTINCT, and DISTINCT ON with the row that its order puts first. */
export function readDistinct(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  const keys = parts(node, 'distinct_targets').map((target) => valueIn(reading, target, scope))
  const order = parts(part(node, 'order_by'), 'orders').map((orderNode) =>
    valueIn(reading, part(orderNode, 'expression'), scope),
  )
  const on = word(node, 'distinct_type') === 'DISTINCT_ON'
  const what = on ? `DISTINCT ON (${names(reading, keys)})` : 'DISTINCT'
  const decided = [...keys, ...order, ...(on ? [] : child.columns)]
  const rows = knownAt(reading, what, allOf(child.rows, boundOf(reading, decided)), scope, keys)
  if (isObstacle(rows)) return neverKnown(rows, child.columns)
  if (on) reading.choices.add(what)
  return { ...child, rows, facts: scope.facts, order: undefined, guard: undefined }
}

/**
 * Reads rows with the values of window functions: each value is known as soon as every row is that its frame may
 * contain.
 */
export function readWindows(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  const windows = parts(node, 'expressions').map((expression) => {
    const { text, bound } = boundOfWindow(reading, expression, child, scope)
    const id = addValue(reading.values, text, typeOf(expression), bound)
    inheritOrigin(reading, id, child.columns)
    return id
  })
  return { ...child, columns: [...child.columns, ...windows], facts: scope.facts, order: undefined, guard: undefined }
}

function boundOfWindow(reading: Reading, node: Node, child: Relation, scope: Scope): { text: string; bound: Bound } {
  const value = (expression: Node): Id => valueIn(reading, expression, scope)
  const expressions = (name: string): Id[] => parts(node, name).map(value)
  const orders = parts(node, 'orders')
  const single = ['filters', 'start_expr', 'end_expr', 'offset_expr', 'default_expr'].flatMap((name) =>
    says(node, name) ? [value(part(node, name))] : [],
  )
  const argumentIds = expressions('children')
  const partition = expressions('partitions')
  const order = orders.map((orderNode) => value(part(orderNode, 'expression')))
  const inner = parts(node, 'arg_orders').map((orderNode) => value(part(orderNode, 'expression')))
  const name = word(node, 'name') || word(node, 'type').replace('WINDOW_', '').toLowerCase()
  const text =
    `${name}(${argumentIds.map((id) => nameOf(reading, id)).join(', ')}) OVER ` +
    `(${frameWords(reading, node, partition, order)})`
  if (word(node, 'type') === 'WINDOW_AGGREGATE' && !pureAggregates.has(name))
    return { text, bound: { what: text, why: `${name}() is not known to follow from its rows alone` } }
  const all = [...partition, ...order, ...argumentIds, ...single, ...inner]
  const needed = allOf(child.rows, boundOf(reading, all))
  if (isObstacle(needed)) return { text, bound: needed }
  // Rows that share their place are numbered as the engine meets them.
  if (word(node, 'type') === 'WINDOW_ROW_NUMBER') reading.choices.add(text)
  if (needed.size === 0) return { text, bound: needed }
  const [first] = order
  const back = first !== undefined && isForward(node, child, first) && looksBack(reading, node, scope, first)
  const candidates = [...partition, ...(back ? [first] : [])]
  const found = coveringInstants(reading, scope.facts, needed, candidates, (uncovered) => ({
    what: text,
    why: back
      ? `rows before it by ${nameOf(reading, first)} may come later than it: the order does not bound ` +
        nameOf(reading, uncovered)
      : 'it looks at rows that are known after its own',
  }))
  if (!isObstacle(found))
    reading.reasons.add(`${text}: no row of its frame is known later than ${boundNames(reading, found)}`)
  return { text, bound: found }
}

/** Whether an order puts later rows behind earlier ones, and those without an instant last. */
export function isForward(node: Node, { present }: Pick<Scope, 'present'>, first: Id): boolean {
  const [order] = parts(node, 'orders')
  if (order === undefined || word(order, 'type') !== 'ASCENDING') return false
  return word(order, 'null_order') === 'NULLS LAST' || present.has(first)
}

const counting = /^WINDOW_(?:ROW_NUMBER|RANK|RANK_DENSE)$/
const framed = /^WINDOW_(?:AGGREGATE|(?:FIRST|LAST|NTH)_VALUE)$/

/** Whether a function looks at no row after its own and those with the same place in the order. */
function looksBack(reading: Reading, node: Node, scope: Scope, first: Id): boolean {
  const type = word(node, 'type')
  if (counting.test(type)) return !says(node, 'arg_orders')
  if (type === 'WINDOW_LAG')
    return !says(node, 'arg_orders') && (!says(node, 'offset_expr') || numberOf(part(node, 'offset_expr')) >= 0)
  if (!framed.test(type)) return false
  const end = word(node, 'end')
  if (/^(?:UNBOUNDED_PRECEDING|CURRENT_ROW_(?:RANGE|ROWS|GROUPS))$/.test(end)) return true
  if (end === 'EXPR_PRECEDING_ROWS' || end === 'EXPR_PRECEDING_GROUPS') return numberOf(part(node, 'end_expr')) >= 0
  if (end !== 'EXPR_PRECEDING_RANGE') return false
  return isNotLater(reading.values, scope.facts, valueIn(reading, part(node, 'end_expr'), scope), first)
}

function frameWords(reading: Reading, node: Node, partition: readonly Id[], order: readonly Id[]): string {
  const list = (ids: readonly Id[]): string => ids.map((id) => nameOf(reading, id)).join(', ')
  const reasons = [
    partition.length > 0 ? `PARTITION BY ${list(partition)}` : '',
    order.length > 0 ? `ORDER BY ${list(order)} to ${endOf(node)}` : '',
  ]
  return reasons.filter((words) => words !== '').join(' ')
}

/** Formats the end of the frame of a window in words. */
export function endOf(node: Node): string {
  return word(node, 'end')
    .replace(/_(?:ROWS|RANGE|GROUPS)$/, '')
    .replaceAll('_', ' ')
}
