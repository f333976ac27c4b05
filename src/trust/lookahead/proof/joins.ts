import { comparedBound, comparedFacts, factsIf, type Scope, valueIn } from './expressions.ts'
import { type Node, part, parts, says, word } from './nodes.ts'
import {
  type RowGuard,
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
import { addValue, allOf, always, type Bound, type Fact, type Id, isNotLater, isObstacle, valueOf } from './values.ts'

/** Reads the rows of a join of two relations. */
export function readJoin(reading: Reading, node: Node, left: Relation, right: Relation): Relation {
  const kind = word(node, 'join_type')
  if (node['delim_flipped'] === true || says(node, 'left_projection_map') || says(node, 'right_projection_map'))
    return neverKnown({ what: `${kind} JOIN`, why: 'no rule is known for this form of it' }, [
      ...left.columns,
      ...right.columns,
    ])
  const on = conditionOf(reading, node, left, right)
  const asof = word(node, 'type') === 'LOGICAL_ASOF_JOIN'
  switch (kind) {
    case 'INNER':
      return asof ? leftJoin(reading, on, left, right, false) : innerJoin(on, left, right)
    case 'LEFT':
    case 'SINGLE':
      return leftJoin(reading, on, left, right, true)
    case 'RIGHT': {
      const pairs = on.pairs.map((pair) => ({ ...pair, left: pair.right, right: pair.left }))
      const both = leftJoin(reading, { ...on, pairs }, right, left, true)
      const deduplicated = both.columns.slice(0, right.columns.length)
      const other = both.columns.slice(right.columns.length)
      return { ...both, columns: [...other, ...deduplicated] }
    }
    case 'SEMI':
    case 'ANTI':
      return semiJoin(reading, on, left, right)
    case 'MARK':
      return markJoin(reading, on, left, right)
    default:
      return fullJoin(kind, on, left, right)
  }
}

/** The condition of a join. */
interface JoinCondition {
  /** Comparisons of a value of the left side with one of the right side. */
  readonly pairs: readonly ComparedPair[]
  /** Bound from which it is known whether two rows match. */
  readonly bound: Bound
  /** Facts about rows that match, including those of both sides. */
  readonly facts: readonly Fact[]
  /** Values that are never NULL in rows that match. */
  readonly present: readonly Id[]
  /** Names of the compared values, for a sentence. */
  readonly text: string
}

/** Two values that a join compares. */
interface ComparedPair {
  readonly left: Id
  readonly right: Id
  /** The comparison, as the plan names it. */
  readonly comparison: string
}

/** Reads the condition of a join from its node. */
function conditionOf(reading: Reading, node: Node, left: Relation, right: Relation): JoinCondition {
  const facts: Fact[] = [...left.facts, ...right.facts]
  const leftScope: Scope = { columns: left.columns, present: left.present, facts }
  const rightScope: Scope = { columns: right.columns, present: right.present, facts }
  const columns = [...left.columns, ...right.columns]
  const wholeScope: Scope = { columns, present: new Set([...left.present, ...right.present]), facts }
  const sides = parts(node, 'conditions').filter((condition) => says(condition, 'comparison'))
  const pairs = sides.map((side) => ({
    left: valueIn(reading, part(side, 'left'), leftScope),
    right: valueIn(reading, part(side, 'right'), rightScope),
    comparison: word(side, 'comparison'),
  }))
  for (const pair of pairs) facts.push(...comparedFacts(reading, pair.comparison, pair.left, pair.right))
  const others = [
    ...parts(node, 'conditions').filter((condition) => !says(condition, 'comparison')),
    ...['predicate', 'condition'].flatMap((name) => (says(node, name) ? [part(node, name)] : [])),
  ]
  const sure = others.map((condition) => factsIf(reading, condition, wholeScope))
  facts.push(...sure.flatMap((outcome) => outcome.facts))
  const more = others.map((condition) => valueIn(reading, condition, wholeScope))
  const compared = pairs.map((pair) => comparedBound(reading, pair.left, pair.right))
  const present = pairs
    .filter(({ comparison }) => !/DISTINCT/.test(comparison))
    .flatMap((pair) => [pair.left, pair.right])
  const text = pairs.map((pair) => `${nameOf(reading, pair.left)}, ${nameOf(reading, pair.right)}`).join('; ')
  const bound = allOf(...compared, boundOf(reading, more))
  return { pairs, bound, facts, present: [...present, ...sure.flatMap((outcome) => outcome.present)], text }
}

/** Joins each row of the one with each of the other that matches: known when both are. */
function innerJoin(on: JoinCondition, left: Relation, right: Relation): Relation {
  return {
    ...alwaysKnown([...left.columns, ...right.columns]),
    rows: allOf(left.rows, right.rows, on.bound),
    facts: on.facts,
    present: new Set([...left.present, ...right.present, ...on.present]),
    guard: guardOf(left, right, on.bound),
  }
}

/**
 * Finds the instants of the left row at which every row of the right side that may match it is known. Absence is
 * knowledge: a row without a match must stay without one.
 */
function matchesKnown(reading: Reading, on: JoinCondition, left: Relation, needed: Bound): Bound {
  const bounds = [left.rows, ...left.columns.map((id) => valueOf(reading.values, id).bound)]
  const clocks = bounds.flatMap((bound) => (isObstacle(bound) ? [] : [...bound]))
  const comparable = new Set([...left.columns, ...on.pairs.map((pair) => pair.left), ...clocks])
  return coveringInstants(reading, on.facts, needed, [...comparable], (uncovered) => ({
    what: `join on ${on.text || 'nothing'}`,
    why: `a match may come later than the row itself: nothing bounds ${nameOf(reading, uncovered)}`,
  }))
}

/** Joins every row of the left side with what matches it of the right side, else (outer) with nothing. */
function leftJoin(reading: Reading, on: JoinCondition, left: Relation, right: Relation, isOuter: boolean): Relation {
  const matches = matchesKnown(reading, on, left, allOf(right.rows, on.bound))
  if (!isObstacle(matches) && matches.size > 0)
    reading.reasons.add(`join on ${on.text}: whatever matches is known at ${boundNames(reading, matches)}`)
  const copies = right.columns.map((id) => {
    const { text, type, bound, until } = valueOf(reading.values, id)
    const ownBound = isObstacle(bound) ? bound : matchesKnown(reading, on, left, bound)
    const copy = addValue(reading.values, text, type, ownBound, { until })
    inheritOrigin(reading, copy, [id])
    return copy
  })
  const same = right.columns.flatMap((column, i) =>
    right.columns.flatMap((other, j): Fact[] =>
      i !== j && isNotLater(reading.values, on.facts, column, other) ? [[copies[i] ?? column, copies[j] ?? other]] : [],
    ),
  )
  return {
    ...alwaysKnown([...left.columns, ...copies]),
    rows: allOf(left.rows, matches),
    facts: [...left.facts, ...same, ...(isOuter ? [] : matchedFacts(reading, on, left, right, copies))],
    present: left.present,
  }
}

/** Facts between both sides if every row has its match. */
function matchedFacts(
  reading: Reading,
  on: JoinCondition,
  left: Relation,
  right: Relation,
  copies: readonly Id[],
): Fact[] {
  const { values } = reading
  return right.columns.flatMap((column, i) =>
    left.columns.flatMap((other): Fact[] => {
      const copy = copies[i] ?? column
      const forth: Fact[] = isNotLater(values, on.facts, column, other) ? [[copy, other]] : []
      return isNotLater(values, on.facts, other, column) ? [...forth, [other, copy]] : forth
    }),
  )
}

/** Reads the rows of the left side that have a match, or none. */
function semiJoin(reading: Reading, on: JoinCondition, left: Relation, right: Relation): Relation {
  const found = matchesKnown(reading, on, left, allOf(right.rows, on.bound))
  return { ...left, rows: allOf(left.rows, found), order: undefined, guard: undefined }
}

/**
 * Reads every row of the left side, with whether it has a match. That is NULL if a side is, which the engine notes for
 * all rows at once: both sides must be without NULL, or be compared so that NULL is a value.
 */
function markJoin(reading: Reading, on: JoinCondition, left: Relation, right: Relation): Relation {
  const needed = allOf(right.rows, on.bound)
  const matches = matchesKnown(reading, on, left, needed)
  const grouped = on.pairs.some(({ comparison }) => /NOT_DISTINCT/.test(comparison))
  const unsure = on.pairs.find(({ left: leftId, right: other, comparison }) => {
    if (/NOT_DISTINCT/.test(comparison)) return false
    const isPresent = left.present.has(leftId) || (!isObstacle(matches) && matches.has(leftId))
    return !isPresent || !(grouped || right.present.has(other))
  })
  const why = 'a NULL on one side that comes later changes the answer for every row'
  const isStatic = !isObstacle(needed) && needed.size === 0
  const bound = unsure === undefined || isStatic || isObstacle(matches) ? matches : { what: `IN on ${on.text}`, why }
  const mark = addValue(reading.values, `IN or EXISTS on ${on.text}`, 'BOOLEAN', bound)
  return { ...left, columns: [...left.columns, mark], order: undefined, guard: undefined }
}

/** Joins both sides, which keep rows without a match. */
function fullJoin(kind: string, on: JoinCondition, left: Relation, right: Relation): Relation {
  const all = allOf(left.rows, right.rows, on.bound)
  const columns = [...left.columns, ...right.columns]
  const what = `${kind} JOIN`
  if (kind !== 'FULL' && kind !== 'OUTER') return neverKnown({ what, why: 'no rule is known for it' }, columns)
  if (isObstacle(all)) return neverKnown(all, columns)
  const why = 'rows of both sides without a match are proved only where both are always known'
  return all.size === 0 ? alwaysKnown(columns) : neverKnown({ what, why }, columns)
}

/** Combines each row of the one with each of the other. */
export function readProduct(left: Relation, right: Relation): Relation {
  return {
    rows: allOf(left.rows, right.rows),
    columns: [...left.columns, ...right.columns],
    facts: [...left.facts, ...right.facts],
    present: new Set([...left.present, ...right.present]),
    order: undefined,
    guard: guardOf(left, right),
  }
}

function guardOf(left: Relation, right: Relation, ...more: readonly Bound[]): RowGuard | undefined {
  if (left.guard) return { id: left.guard.id, rows: allOf(left.guard.rows, right.rows, ...more) }
  return right.guard && { id: right.guard.id, rows: allOf(left.rows, right.guard.rows, ...more) }
}

/** Reads UNION ALL: a row is known when it is on its side. Columns that are not known on one side are not known. */
export function readUnion(reading: Reading, left: Relation, right: Relation): Relation {
  return mergeSides(reading, [boundByColumns(reading, left), boundByColumns(reading, right)])
}

/**
 * Reads EXCEPT and INTERSECT, which compare whole rows: equal ones have equal instants, and all of their columns count.
 */
export function readExceptOrIntersect(reading: Reading, left: Relation, right: Relation): Relation {
  const whole = (side: Relation): Relation => ({ ...side, rows: allOf(side.rows, boundOf(reading, side.columns)) })
  const all = mergeSides(reading, [whole(left), whole(right)])
  return isObstacle(all.rows) ? neverKnown(all.rows, all.columns) : all
}

/** Bounds the rows of a side, known together with those of their columns that are ever known. */
function boundByColumns(reading: Reading, side: Relation): Relation {
  const bounds = side.columns.map((id) => boundOf(reading, [id])).filter((bound) => !isObstacle(bound))
  return { ...side, rows: allOf(side.rows, ...bounds) }
}

/** Merges the columns of both sides by their places, with what is true of them on either side. */
function mergeSides(reading: Reading, sides: readonly [Relation, Relation]): Relation {
  const { values } = reading
  const [left, right] = sides
  const columns = left.columns.map((id, at) => {
    const bound = boundOf(reading, [id, ...right.columns.slice(at, at + 1)])
    const { text, type } = valueOf(values, id)
    const column = addValue(values, text, type, isObstacle(bound) ? bound : always)
    inheritOrigin(reading, column, [id, ...right.columns.slice(at, at + 1)])
    return column
  })
  const holds = (i: number, j: number): boolean =>
    sides.every(({ columns: sideColumns, facts }) =>
      isNotLater(values, facts, sideColumns[i] ?? -1, sideColumns[j] ?? -1),
    )
  const facts = columns.flatMap((column, i) =>
    columns.flatMap((other, j): Fact[] => (i !== j && holds(i, j) ? [[column, other]] : [])),
  )
  const present = columns.filter((_, at) => sides.every((side) => side.present.has(side.columns[at] ?? -1)))
  const all = { ...alwaysKnown(columns), present: new Set(present) }
  const allRows = allOf(...sides.map(({ rows }) => rows))
  if (isObstacle(allRows) || allRows.size === 0) return { ...all, rows: allRows, facts }
  // A row is known at an instant of its own side, which is never later than the columns that bound it on both.
  const names = new Set([...allRows].map((id) => nameOf(reading, id)))
  const instant = addValue(values, [...names].join(' or '), 'TIMESTAMP WITH TIME ZONE', always)
  // An instant that is computed from rows of the text on both sides is that of its own side.
  for (const id of columns) {
    const [first, ...others] = reading.origins.get(id) ?? []
    if (first !== undefined) reading.origins.set(id, new Set([first, ...others, { ...first, clock: instant }]))
  }
  const bounding = columns.flatMap((column, at): Fact[] =>
    sides.every(
      ({ rows, columns: sideColumns, facts: sideFacts }) =>
        !isObstacle(rows) && [...rows].every((id) => isNotLater(values, sideFacts, id, sideColumns[at] ?? -1)),
    )
      ? [[instant, column]]
      : [],
  )
  return { ...all, rows: new Set([instant]), facts: [...facts, ...bounding] }
}
