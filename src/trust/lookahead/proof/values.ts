/** A value that every row of a relation has: a column, an expression over columns, or a constant. */
export type Id = number

/** Obstacle to a proof: the expression or operator, and the reason. */
export interface Obstacle {
  /** Part of the query. */
  readonly what: string
  /** Why it prevents a proof. */
  readonly why: string
}

/**
 * Bound from which something of a row is known: the latest of these instants of the row (none: always); or an obstacle.
 */
export type Bound = ReadonlySet<Id> | Obstacle

/** Bound of data that are always known. */
export const always: ReadonlySet<Id> = new Set()

/** A value of a plan: its text, its type and its bound. */
interface Value {
  readonly text: string
  readonly type: string
  readonly bound: Bound
  /** Whether it is the end of a version: recorded when the next one came, and later than the cut until then. */
  readonly until: boolean
  /** Microseconds of a constant instant, NaN if its text was not read; undefined for any other value. */
  readonly instant: number | undefined
}

/** Fact that one value is never later than the other: if the second is not NULL, neither is the first. */
export type Fact = readonly [earlier: Id, later: Id]

/** The values that a plan mentions. */
export interface PlanValues {
  /** PlanValues by their id. */
  readonly list: Value[]
  /** Ids of expressions by their text: two equal expressions are one value. */
  readonly knownIds: Map<string, Id>
}

/** Returns a list without values. */
export function noValues(): PlanValues {
  return { list: [] as Value[], knownIds: new Map<string, Id>() }
}

/** Adds a value. */
export function addValue(
  values: PlanValues,
  text: string,
  type: string,
  bound: Bound,
  more: Partial<Pick<Value, 'until' | 'instant'>> = {},
): Id {
  values.list.push({ text, type, bound, until: false, instant: undefined, ...more })
  return values.list.length - 1
}

/** Returns the value of this number. */
export function valueOf(values: PlanValues, id: Id): Value {
  const value = values.list[id]
  if (value === undefined) throw new RangeError(`no value ${id}`)
  return value
}

/** Whether a bound is an obstacle: then it is unknown when something is known. */
export function isObstacle(bound: Bound): bound is Obstacle {
  return 'why' in bound
}

/** Combines bounds: known when all of these are. */
export function allOf(...bounds: readonly Bound[]): Bound {
  const all = new Set<Id>()
  for (const bound of bounds) {
    if (isObstacle(bound)) return bound
    for (const id of bound) all.add(id)
  }
  return all
}

const instants = /^(?:DATE|TIMESTAMP|TIMESTAMP WITH TIME ZONE)$/
const integers = /^(?:U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER)$/

/** Whether values of a type are instants, which have one order in whatever type they are written. */
export function isInstant(type: string): boolean {
  return instants.test(type)
}

/** Whether the order between values of a type is tracked. */
export function isOrdered(type: string): boolean {
  return instants.test(type) || integers.test(type)
}

/** Finds the values that are never earlier than one in a row of which these facts are true. */
function notBefore(values: PlanValues, facts: readonly Fact[], from: Id): ReadonlySet<Id> {
  if (values.list[from] === undefined) return new Set()
  const reached = new Set([from])
  const waiting = [from]
  const constants = constantsOf(values)
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { instant = Number.NaN } = valueOf(values, at)
    const next = facts.flatMap(([earlier, later]) => (earlier === at ? [later] : []))
    next.push(...constants.filter((other) => (valueOf(values, other).instant ?? Number.NaN) >= instant))
    for (const id of next)
      if (!reached.has(id)) {
        reached.add(id)
        waiting.push(id)
      }
  }
  return reached
}

/** Whether one value is never later than another in a row of which these facts are true. */
export function isNotLater(values: PlanValues, facts: readonly Fact[], earlier: Id, other: Id): boolean {
  return notBefore(values, facts, earlier).has(other)
}

/** Lists the constant instants that were met so far. */
function constantsOf(values: PlanValues): readonly Id[] {
  return values.list.flatMap(({ instant }, id) => (instant === undefined ? [] : [id]))
}

/** Instants that cover a bound, or the first of its instants that none covers. */
type Coverage = { readonly by: ReadonlySet<Id> } | { readonly uncovered: Id }

/**
 * Finds instants among the candidates, or constants, of which each instant of a bound is never later than one. If there
 * are several the earliest is taken. The answer instead names an instant that none covers.
 */
export function coveredBy(
  values: PlanValues,
  facts: readonly Fact[],
  bound: ReadonlySet<Id>,
  candidates: readonly Id[],
): Coverage {
  const by = new Set<Id>()
  for (const id of bound) {
    const later = notBefore(values, facts, id)
    const able = candidates.filter((candidate) => later.has(candidate))
    const [first] = [...able, ...constantsOf(values).filter((constant) => later.has(constant))]
    if (first === undefined) return { uncovered: id }
    const least = able.find((candidate) => able.every((other) => isNotLater(values, facts, candidate, other)))
    by.add(least ?? first)
  }
  return { by }
}
