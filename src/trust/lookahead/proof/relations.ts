import type { Assumption } from '../assumptions.ts'
import type { OwnRelation } from '../own-files.ts'
import type { Node } from './nodes.ts'
import {
  type PlanValues,
  addValue,
  allOf,
  always,
  type Bound,
  coveredBy,
  type Fact,
  type Id,
  isInstant,
  isObstacle,
  type Obstacle,
  valueOf,
} from './values.ts'

/** Columns by which rows are ordered first. */
interface Order {
  readonly ids: readonly Id[]
  /** Later rows behind earlier ones, those without an instant last. */
  readonly forward: boolean
}

/**
 * Rows of an operator and when they are known. For every lake and every instant T: its rows of which all instants in
 * `rows`, and in the bounds of the columns that one looks at, are not later than T, are the same on the lake cut at T.
 */
export interface Relation {
  readonly rows: Bound
  readonly columns: readonly Id[]
  readonly facts: readonly Fact[]
  /** Values that are never NULL in these rows. */
  readonly present: ReadonlySet<Id>
  readonly order: Order | undefined
  /** A condition under which rows are known earlier than at the bound of the relation; undefined if there is none. */
  readonly guard: RowGuard | undefined
}

/** A condition on rows: if it is true of a row, the row is known at `rows`. */
export interface RowGuard {
  /** The value that is true. */
  readonly id: Id
  readonly rows: Bound
}

/** Builds a relation of rows that are always known. */
export function alwaysKnown(columns: readonly Id[]): Relation {
  return { rows: always, columns, facts: [], present: new Set(), order: undefined, guard: undefined }
}

/** Builds a relation of rows that are never known, nor their columns. */
export function neverKnown(obstacle: Obstacle, columns: readonly Id[]): Relation {
  return { ...alwaysKnown(columns), rows: obstacle }
}

/** Rows in the text of a query: VALUES, a series, a list of constants. They have no column with an instant. */
export interface TextRows {
  /** The node of the plan that makes them. */
  readonly node: Node
  /** Placeholder for the instant that is computed from a row. */
  readonly clock: Id
}

/** State of a proof while it goes through a plan. */
export interface Reading {
  /** Assumptions of the views and macros. */
  readonly settings: ReadonlySet<Assumption>
  /** Whether points of the lake may have several vintages. */
  readonly revised: boolean
  /** User data by the name, in small letters, under which the query reads it. */
  readonly ownTables: ReadonlyMap<string, OwnRelation>
  readonly values: PlanValues
  readonly ctes: Map<number, Node>
  /** The reasons, each once, in the order in which they were met. */
  readonly reasons: Set<string>
  /** Choices that are left to the engine, such as `LIMIT` without a full order. */
  readonly choices: Set<string>
  /**
   * The rows of the text from which a value is computed with constants alone; empty for a constant, missing for any
   * other.
   */
  readonly origins: Map<Id, ReadonlySet<TextRows>>
  /** Nodes whose rows of the text are a calendar, because an instant is computed from them. */
  readonly calendars: Set<Node>
  /** Reasons why values are known at a constant instant only. */
  readonly late: Map<Id, Obstacle>
  visited: number
}

/**
 * Builds the relation of rows in the text. If they have an instant, or one is computed from them, they are a calendar,
 * whose rows are known at their instant: how many come later reveals the future.
 */
export function textRows(reading: Reading, node: Node, columns: readonly Id[]): Relation {
  const instants = columns.filter((id) => isInstant(valueOf(reading.values, id).type))
  const instant = instants.find((id) => nameOf(reading, id) === 'ts') ?? instants[0]
  if (instant !== undefined) return { ...alwaysKnown(columns), rows: new Set([instant]) }
  const clock = addValue(reading.values, 'the instant computed from it', 'TIMESTAMP WITH TIME ZONE', always)
  for (const id of columns) reading.origins.set(id, new Set([{ node, clock }]))
  return { ...alwaysKnown(columns), rows: reading.calendars.has(node) ? new Set([clock]) : always }
}

/**
 * Finds the rows of the text from which all of these values are computed with constants alone; undefined if one of them
 * is not.
 */
export function originOf({ origins }: Reading, ids: readonly Id[]): ReadonlySet<TextRows> | undefined {
  const all = new Set<TextRows>()
  for (const id of ids) {
    const found = origins.get(id)
    if (found === undefined) return undefined
    for (const rows of found) all.add(rows)
  }
  return all
}

/** Assigns a value the origin of others. */
export function inheritOrigin(reading: Reading, id: Id, from: readonly Id[]): void {
  const origin = originOf(reading, from)
  if (origin !== undefined) reading.origins.set(id, origin)
}

/** Returns the name of a value in a sentence. */
export function nameOf({ values }: Reading, id: Id): string {
  return valueOf(values, id).text
}

/** Computes from when these values are known. */
export function boundOf({ values }: Reading, ids: readonly Id[]): Bound {
  return allOf(...ids.map((id) => valueOf(values, id).bound))
}

/** Names of the values of a bound, the latest of which counts. */
export function boundNames(reading: Reading, bound: ReadonlySet<Id>): string {
  const names = [...new Set([...bound].map((id) => nameOf(reading, id)))]
  return names.length === 0 ? 'always' : names.join(' and ')
}

/**
 * Finds the instants among the candidates, or constants, at which everything of a bound is known, else the obstacle for
 * the instant that nothing covers. A value known at a constant alone is remembered with that obstacle.
 */
export function coveringInstants(
  reading: Reading,
  facts: readonly Fact[],
  needed: Bound,
  candidates: readonly Id[],
  obstacle: (uncovered: Id) => Obstacle,
): Bound {
  if (isObstacle(needed)) return needed
  const found = coveredBy(reading.values, facts, needed, candidates)
  if ('uncovered' in found) return obstacle(found.uncovered)
  for (const id of found.by)
    if (!candidates.includes(id) && !needed.has(id) && !reading.late.has(id))
      reading.late.set(id, obstacle([...needed][0] ?? id))
  return found.by
}
