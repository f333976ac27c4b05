import { type Engine, isSameName, lowerName } from '../../../lake/store/engine.ts'
import { type Assumption, settingsIn } from '../assumptions.ts'
import { boundPlan, callsIn, nodesOf, parsedSql, Remembered } from '../../../query/parse-tree.ts'
import { type OwnRelation, ownRelations } from '../own-files.ts'
import { inOneDialect, strangeWord } from './dialect.ts'
import { isPure } from './functions.ts'
import { type Node, word } from './nodes.ts'
import { relationOf } from './operators.ts'
import { placeOf, wholeRow } from './place.ts'
import { boundOf, boundNames, nameOf, type Reading, type Relation } from './relations.ts'
import {
  type Bound,
  type Fact,
  allOf,
  coveredBy,
  type Id,
  isInstant,
  isObstacle,
  noValues,
  type Obstacle,
  valueOf,
} from './values.ts'
import { mayBeRevised, openShadow } from './tables.ts'

/** An obstacle to a proof, with its place in the query. */
export interface PlacedObstacle extends Obstacle {
  /** Characters from the beginning of the query; null if the part of its text is not known. */
  readonly at: number | null
}

/** Outcome of a proof from the plan of a query that it does not look ahead. */
export interface PlanArgument {
  /** Whether, for every lake and every instant T, its rows up to T are the same on the lake cut at T. */
  readonly proved: boolean
  /** The reasons in the order of the plan, a line each. */
  readonly chain: readonly string[]
  /** The expression or operator that prevents the proof; null if `proved`. */
  readonly unproved: PlacedObstacle | null
}

/** A query, the column with the instant of each row, and those that may look ahead. */
interface Claim {
  readonly sql: string
  readonly ts: string
  readonly labels: readonly string[]
  /** Assumptions of the views and macros; none by default. */
  readonly settings?: ReadonlySet<Assumption>
  /** Whether points of the lake may have several vintages. */
  readonly revised?: boolean
  /** User data that the query reads by name, as tables of the shadow catalogue. */
  readonly own?: ReadonlyMap<string, OwnRelation>
}

/** Proves from the plan of a query that it looks ahead on no lake, or names the obstacle. Nothing runs. */
export async function argueFromPlan(session: Engine, claim: Claim): Promise<PlanArgument> {
  const tree = await parsedSql(session, claim.sql)
  if ('error' in tree) return unprovedBy({ what: 'the query', why: 'its text is not one SELECT' })
  const { proved, chain, unproved } = await argueParsed(session, claim, tree.statements)
  const at = unproved && placeOf(claim.sql, tree.statements, unproved, claim.ts)
  return { proved, chain, unproved: unproved && { ...unproved, at } }
}

async function argueParsed(session: Engine, claim: Claim, statements: readonly Node[]): Promise<PlanArgument> {
  const strange = [...callsIn(statements)].find(({ name }) => !isPure(name))
  if (strange !== undefined)
    return unprovedBy({ what: `${strange.name}()`, why: 'it is not known to follow from its arguments alone' })
  const settings = await settingsIn(session)
  const revised = await mayBeRevised(session)
  const ownTables = new Map((await ownRelations(session)).map((relation) => [lowerName(relation.name), relation]))
  const shadow = await openShadow(session, settings, [...ownTables.values()])
  try {
    const plan = await planOf(shadow, claim.sql)
    return 'why' in plan
      ? unprovedBy(plan)
      : argue(plan.plan, plan.names, { ...claim, settings, revised, own: ownTables })
  } catch (error) {
    const [line = ''] = error instanceof Error ? error.message.split('\n') : []
    return unprovedBy({ what: 'the plan of the query', why: line })
  } finally {
    shadow.close()
  }
}

const scanned = new Remembered<readonly string[] | undefined>()

/**
 * Lists the tables and views of the lake that the plan of a query scans, macros resolved; undefined if there is no
 * plan.
 */
export async function scannedTables(session: Engine, sql: string): Promise<readonly string[] | undefined> {
  const own = await ownRelations(session)
  return await scanned.of(session, JSON.stringify([sql, own]), async () => {
    try {
      using shadow = await openShadow(session, new Set(), own)
      const planned = await planOf(shadow, sql)
      if ('why' in planned) return undefined
      const scans = [...nodesOf(planned.plan)].flatMap((node) => {
        const schema = word(node, 'schema')
        return word(node, 'table') === '' ? [] : [`${schema === 'main' ? '' : `${schema}.`}${word(node, 'table')}`]
      })
      return [...new Set(scans)]
    } catch {
      return undefined
    }
  })
}

/** Returns the bound plan of a query from the engine, and the names of its columns. */
export async function planOf(
  shadow: Engine,
  sql: string,
): Promise<{ plan: Node; names: readonly string[] } | Obstacle> {
  const planned = await boundPlan(shadow, sql)
  if ('why' in planned) return { what: 'the plan of the query', ...planned }
  const { columns } = await shadow.prepared(sql)
  return { plan: planned.plan, names: columns.map(({ name }) => name) }
}

function unprovedBy(unproved: Obstacle): PlanArgument {
  return { proved: false, chain: [], unproved: { ...unproved, at: null } }
}

/** Whether the rows of a plan, and all of their columns but the labels, are known at their instant. */
export function argue(
  plan: Node,
  names: readonly string[],
  { ts, labels, settings = new Set(), revised = false, own = new Map() }: Omit<Claim, 'sql'>,
): PlanArgument {
  const strange = strangeWord(plan)
  if (strange !== undefined)
    return unprovedBy({ what: 'the plan of the query', why: `it says ${strange}, for which no rule is known` })
  const { reading, all } = readPlan(inOneDialect(plan), { settings, revised, ownTables: own })
  const at = all.columns[placeOfColumn(names, ts)]
  if (at === undefined || all.columns.length !== names.length)
    return unprovedBy({ what: ts, why: 'no column of this name has the instant of a row' })
  if (!isInstant(valueOf(reading.values, at).type))
    return unprovedBy({ what: ts, why: 'it is not an instant or a date' })
  const places = new Set(labels.map((label) => placeOfColumn(names, label)))
  const compared = all.columns.filter((_, n) => !places.has(n))
  const later = lateness(reading, all.facts, allOf(all.rows), at, wholeRow)
  const columns = compared.map((id) => lateness(reading, all.facts, boundOf(reading, [id]), at, nameOf(reading, id)))
  const unproved = [later, ...columns].find((obstacle) => obstacle !== undefined)
  if (unproved !== undefined) return { proved: false, chain: [...reading.reasons], unproved: { ...unproved, at: null } }
  const assumed = [...reading.choices].map(
    (functionName) => `assumed: ${functionName} takes one of equal values, or its rows in one order`,
  )
  const last =
    'the result: each row and value is known at ' +
    `${ts}${isObstacle(all.rows) ? '' : ` (${boundNames(reading, all.rows)})`}`
  return { proved: true, chain: [...reading.reasons, last, ...assumed], unproved: null }
}

/**
 * Reads a plan until no further rows of the text turn out to be a calendar: what lies below them was read before that
 * was known.
 */
function readPlan(
  plan: Node,
  lake: Pick<Reading, 'settings' | 'revised' | 'ownTables'>,
): { readonly reading: Reading; readonly all: Relation } {
  const calendars = new Set<Node>()
  for (;;) {
    const before = calendars.size
    const reading: Reading = {
      ...lake,
      values: noValues(),
      ctes: new Map(),
      reasons: new Set(),
      choices: new Set(),
      origins: new Map(),
      calendars,
      late: new Map(),
      visited: 0,
    }
    const all = relationOf(reading, plan)
    if (calendars.size === before) return { reading, all }
  }
}

/**
 * Finds the place of a column of the result: the one that is spelled so, else the one that SQL takes for it; -1 for
 * none.
 */
function placeOfColumn(names: readonly string[], wantedName: string): number {
  const exact = names.indexOf(wantedName)
  return exact >= 0 ? exact : names.findIndex((name) => isSameName(name, wantedName))
}

function lateness(reading: Reading, facts: readonly Fact[], bound: Bound, at: Id, what: string): Obstacle | undefined {
  if (isObstacle(bound)) return bound
  for (const id of bound) {
    const found = coveredBy(reading.values, facts, new Set([id]), [at])
    const late = reading.late.get(id)
    const boundName = nameOf(reading, at)
    const other = nameOf(reading, id) === boundName ? `another ${boundName} of its row` : nameOf(reading, id)
    if ('uncovered' in found || !found.by.has(at))
      return late ?? { what, why: `it is known at ${other}, which nothing holds to be at or before ${boundName}` }
  }
  return undefined
}
