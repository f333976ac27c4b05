import { type Scope, scopeOf, valueIn } from './expressions.ts'
import { pureAggregates } from './functions.ts'
import { lost } from './joins.ts'
import { type Node, part, parts, says, typeOf, word } from './nodes.ts'
import { boundOf, nameOf, named, type Reading, type Relation, steady, toldBy } from './relations.ts'
import { addValue, allOf, type Bound, type Id, isObstacle, type Obstacle } from './values.ts'

/** Which of the rows of a group the engine meets first is its own affair. */
const choosers =
  /^(?:any_value|arbitrary|first|last|arg_m.*|argm.*|m(?:ax|in)_by|mode|list|array_agg|listagg|string_agg|group_concat|histogram)$/

/** The rows of a GROUP BY: each known when every row of its group is, which the keys must tell. */
export function grouped(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  const keys = parts(node, 'groups').map((one) => valueIn(reading, one, scope))
  const sets = node['grouping_sets']
  const made = parts(node, 'expressions').map((one) => aggregate(reading, one, child, scope, keys))
  const columns = [...keys, ...made]
  const whole = Array.isArray(sets) && (sets.length === 0 || (sets.length === 1 && isWhole(sets[0], keys)))
  if (!whole) return lost({ what: 'GROUPING SETS', why: 'no rule is known for several at once' }, columns)
  if (says(node, 'grouping_functions')) return lost({ what: 'GROUPING()', why: 'no rule is known for it' }, columns)
  const what = keys.length === 0 ? 'an aggregate without GROUP BY' : `GROUP BY ${names(reading, keys)}`
  const rows = knownAt(reading, what, allOf(child.rows, boundOf(reading, keys)), scope, keys)
  if (isObstacle(rows)) return lost(rows, columns)
  if (rows.size > 0) reading.reasons.add(`${what}: every row of a group is known at ${named(reading, rows)}`)
  // Without a key there is a row even where there was none: what is true of the rows is not true of it.
  if (keys.length === 0) return { ...steady(columns), rows }
  return { ...steady(columns), rows, facts: scope.facts, present: child.present }
}

function isWhole(set: unknown, keys: readonly Id[]): boolean {
  return Array.isArray(set) && set.length === keys.length
}

function names(reading: Reading, ids: readonly Id[]): string {
  return ids.map((id) => nameOf(reading, id)).join(', ')
}

/** The keys at which everything of a group is known. */
function knownAt(reading: Reading, what: string, needed: Bound, scope: Scope, keys: readonly Id[]): Bound {
  return toldBy(reading, scope.facts, needed, keys, (uncovered) => ({
    what,
    why: `rows of a group may become known later: no key bounds ${nameOf(reading, uncovered)}`,
  }))
}

function aggregate(reading: Reading, node: Node, child: Relation, scope: Scope, keys: readonly Id[]): Id {
  const value = (one: Node): Id => valueIn(reading, one, scope)
  const given = parts(node, 'children').map(value)
  const filter = says(node, 'filter') ? [value(part(node, 'filter'))] : []
  const order = parts(part(node, 'order_bys'), 'orders').map((one) => value(part(one, 'expression')))
  const name = word(node, 'name')
  const text = `${name}(${names(reading, given)})`
  const needed = allOf(child.rows, boundOf(reading, [...given, ...filter, ...order]))
  const impure: Obstacle = { what: text, why: `${name}() is not known to follow from its rows alone` }
  const bound = pureAggregates.has(name) ? knownAt(reading, text, needed, scope, keys) : impure
  if (choosers.test(name) && order.length === 0) reading.choices.add(text)
  return addValue(reading.values, text, typeOf(node), bound)
}

/** DISTINCT, and DISTINCT ON with the row that its order puts first. */
export function distinct(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  const keys = parts(node, 'distinct_targets').map((one) => valueIn(reading, one, scope))
  const order = parts(part(node, 'order_by'), 'orders').map((one) => valueIn(reading, part(one, 'expression'), scope))
  const on = word(node, 'distinct_type') === 'DISTINCT_ON'
  const what = on ? `DISTINCT ON (${names(reading, keys)})` : 'DISTINCT'
  const decided = [...keys, ...order, ...(on ? [] : child.columns)]
  const rows = knownAt(reading, what, allOf(child.rows, boundOf(reading, decided)), scope, keys)
  if (isObstacle(rows)) return lost(rows, child.columns)
  if (on) reading.choices.add(what)
  return { ...child, rows, facts: scope.facts, order: undefined, guard: undefined }
}
