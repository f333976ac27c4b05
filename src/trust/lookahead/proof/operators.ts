import { boundText, numberIn, numberOf, type Node, part, parts, says, typeOf, word } from './nodes.ts'
import { factsIf, scopeOf, valueIn } from './expressions.ts'
import { readDistinct, readGroups, isForward, readWindows } from './groups.ts'
import { readExceptOrIntersect, readJoin, readProduct, readUnion } from './joins.ts'
import {
  boundOf,
  inheritOrigin,
  neverKnown,
  nameOf,
  originOf,
  type Reading,
  type Relation,
  alwaysKnown,
  textRows,
  coveringInstants,
} from './relations.ts'
import { addValue, allOf, always, type Id, isObstacle, type Obstacle } from './values.ts'
import { readScan } from './tables.ts'

/** A plan that repeats a CTE within a CTE again and again is not gone through to the end. */
const mostOperators = 5000

/** Builds the relation of an operator, from the relations below it. */
export function relationOf(reading: Reading, node: Node): Relation {
  reading.visited++
  if (reading.visited > mostOperators)
    return neverKnown({ what: 'the plan', why: `it has more than ${mostOperators} operators` }, [])
  const kind = word(node, 'type')
  if (kind === 'LOGICAL_MATERIALIZED_CTE') {
    const [definition, body] = parts(node, 'children')
    if (definition === undefined || body === undefined) return neverKnown(noRuleFor(kind), [])
    reading.ctes.set(numberIn(node, 'table_index'), definition)
    return relationOf(reading, body)
  }
  const below = parts(node, 'children').map((child) => relationOf(reading, child))
  const [first, second] = below
  if (first === undefined) return readLeaf(reading, node)
  if (second === undefined) return singles[kind]?.(reading, node, first) ?? neverKnown(noRuleFor(kind), first.columns)
  if (below.length > 2) return neverKnown(noRuleFor(kind), first.columns)
  return (
    doubles[kind]?.(reading, node, first, second) ?? neverKnown(noRuleFor(kind), [...first.columns, ...second.columns])
  )
}

/** Rules of operators over two relations. */
const doubles: Readonly<Record<string, (reading: Reading, node: Node, left: Relation, right: Relation) => Relation>> = {
  LOGICAL_COMPARISON_JOIN: readJoin,
  LOGICAL_ANY_JOIN: readJoin,
  LOGICAL_ASOF_JOIN: readJoin,
  LOGICAL_DELIM_JOIN: readJoin,
  LOGICAL_CROSS_PRODUCT: (_reading, _node, left, right) => readProduct(left, right),
  LOGICAL_UNION: (reading, _, left, right) => readUnion(reading, left, right),
  LOGICAL_EXCEPT: (reading, _, left, right) => readExceptOrIntersect(reading, left, right),
  LOGICAL_INTERSECT: (reading, _, left, right) => readExceptOrIntersect(reading, left, right),
}

function noRuleFor(kind: string): Obstacle {
  const name = kind.replace('LOGICAL_', '').replaceAll('_', ' ')
  if (kind === 'LOGICAL_RECURSIVE_CTE')
    return { what: 'WITH RECURSIVE', why: 'how often it goes round depends on its rows' }
  return { what: name, why: kind === 'LOGICAL_SAMPLE' ? 'it draws rows by chance' : 'no rule is known for it' }
}

function readLeaf(reading: Reading, node: Node): Relation {
  const column = (type: string, n: number): Id => addValue(reading.values, `column ${n + 1}`, type, always)
  switch (word(node, 'type')) {
    case 'LOGICAL_GET':
      return readScan(reading, node)
    case 'LOGICAL_CTE_REF': {
      const definition = reading.ctes.get(numberIn(node, 'cte_index'))
      if (definition === undefined || node['is_recurring'] === true)
        return neverKnown(noRuleFor('LOGICAL_RECURSIVE_CTE'), [])
      return { ...relationOf(reading, definition), order: undefined }
    }
    // Every tuple for which a correlated subquery may be computed: the join with its own rows keeps those that exist.
    case 'LOGICAL_DELIM_GET':
      return alwaysKnown(parts(node, 'chunk_types').map((type, n) => column(word(type, 'id'), n)))
    case 'LOGICAL_DUMMY_SCAN':
      return alwaysKnown([column('INTEGER', 0)])
    case 'LOGICAL_EMPTY_RESULT':
      return alwaysKnown(parts(node, 'return_types').map((type, n) => column(word(type, 'id'), n)))
    default:
      return neverKnown(noRuleFor(word(node, 'type')), [])
  }
}

/** Rules of operators over one relation. */
const singles: Readonly<Record<string, (reading: Reading, node: Node, child: Relation) => Relation>> = {
  LOGICAL_PROJECTION: readProjection,
  LOGICAL_FILTER: readFilter,
  LOGICAL_AGGREGATE_AND_GROUP_BY: readGroups,
  LOGICAL_WINDOW: readWindows,
  LOGICAL_DISTINCT: readDistinct,
  LOGICAL_ORDER_BY: readOrder,
  LOGICAL_LIMIT: readLimit,
  LOGICAL_UNNEST: readUnnest,
  LOGICAL_EXPRESSION_GET: readValues,
}

function readProjection(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  const columns = parts(node, 'expressions').map((expression) => valueIn(reading, expression, scope))
  return { ...child, columns, facts: scope.facts }
}

function readFilter(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  let rows = child.rows
  let guard = child.guard
  const present = new Set(child.present)
  for (const condition of parts(node, 'expressions')) {
    const id = valueIn(reading, condition, scope)
    const more = factsIf(reading, condition, scope)
    scope.facts.push(...more.facts)
    for (const id of more.present) present.add(id)
    if (guard?.id === id) [rows, guard] = [guard.rows, undefined]
    else {
      const bound = boundOf(reading, [id])
      rows = allOf(rows, bound)
      guard = guard && { id: guard.id, rows: allOf(guard.rows, bound) }
    }
  }
  const map = Array.isArray(node['projection_map']) ? (node['projection_map'] as readonly unknown[]) : []
  const columns = map.length > 0 ? map.flatMap((at) => child.columns[Number(at)] ?? []) : child.columns
  return { ...child, rows, columns, facts: scope.facts, present, guard }
}

function readOrder(reading: Reading, node: Node, child: Relation): Relation {
  if (says(node, 'projections') || says(node, 'projection_map'))
    return neverKnown(noRuleFor('LOGICAL_ORDER_BY'), child.columns)
  const scope = scopeOf(child)
  const ids = parts(node, 'orders').map((order) => valueIn(reading, part(order, 'expression'), scope))
  const [first] = ids
  const forward = first !== undefined && isForward(node, scope, first)
  return { ...child, facts: scope.facts, order: { ids, forward } }
}

/**
 * Reads a limit: the first rows of an order by time are known when the last of them is; the last ones, and a share,
 * when all are.
 */
function readLimit(reading: Reading, node: Node, child: Relation): Relation {
  const { order, columns } = child
  const bound = allOf(child.rows, boundOf(reading, order?.ids ?? []))
  if (isObstacle(bound)) return neverKnown(bound, columns)
  const fixed = ['limit_val', 'offset_val'].every((name) =>
    /^(?:CONSTANT_VALUE|UNSET)$/.test(word(part(node, name), 'type')),
  )
  const share = word(part(node, 'limit_val'), 'type') === 'CONSTANT_PERCENTAGE'
  if (!fixed && !share) return neverKnown({ what: 'LIMIT', why: 'how many rows it takes is computed' }, columns)
  reading.choices.add('LIMIT')
  if (bound.size === 0) return { ...child, guard: undefined }
  const candidates = order?.forward === true && fixed ? order.ids.slice(0, 1) : []
  const rows = coveringInstants(reading, child.facts, bound, candidates, (uncovered) => ({
    what: 'LIMIT',
    why:
      'rows that become known later may take the place of others: the order does not bound ' +
      nameOf(reading, uncovered),
  }))
  return isObstacle(rows) ? neverKnown(rows, columns) : { ...child, rows, guard: undefined }
}

function readUnnest(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  const lists = parts(node, 'expressions').map((expression) => valueIn(reading, expression, scope))
  const bound = boundOf(reading, lists)
  const types = parts(node, 'expressions').map((expression) => typeOf(expression))
  const elements = types.map((type) => addValue(reading.values, 'an element', type, always))
  const origin = originOf(reading, lists)
  const inText = origin?.size === 0 ? textRows(reading, node, elements) : alwaysKnown(elements)
  if (origin !== undefined && origin.size > 0) for (const id of elements) inheritOrigin(reading, id, lists)
  return {
    ...child,
    rows: allOf(child.rows, bound, inText.rows),
    columns: [...child.columns, ...elements],
    facts: scope.facts,
    guard: undefined,
  }
}

/** Whether an expression is a constant other than NULL. */
const isConstantValue = (node: Node): boolean => boundText(node) !== undefined || !Number.isNaN(numberOf(node))

/** Reads VALUES. */
function readValues(reading: Reading, node: Node, child: Relation): Relation {
  const scope = scopeOf(child)
  const expressions = node['expressions']
  const rows = Array.isArray(expressions) ? expressions.filter((row): row is readonly Node[] => Array.isArray(row)) : []
  const ids = rows.flatMap((row) => row.map((cell) => valueIn(reading, cell, scope)))
  const types = parts(node, 'expr_types').map((type) => word(type, 'id'))
  const columns = types.map((type, n) => addValue(reading.values, `column ${n + 1}`, type, always))
  const present = columns.filter((_, n) => rows.every((row) => row[n] !== undefined && isConstantValue(row[n])))
  // One row is a parameter, and no calendar.
  const inText = rows.length > 1 && originOf(reading, ids)?.size === 0
  const relation = inText ? textRows(reading, node, columns) : alwaysKnown(columns)
  return { ...relation, present: new Set(present), rows: allOf(child.rows, boundOf(reading, ids), relation.rows) }
}
