import type { Engine } from '../../lake/store/engine.ts'
import { callsIn, ctesIn, historyTables, nodesOf, parsedSql, treesOf } from '../../query/parse-tree.ts'
import { words } from '../../query/gate-lists.ts'
import { pureAggregates } from './proof/functions.ts'
import { type Node, part, parts, word } from './proof/nodes.ts'
import { scannedTables } from './proof/prove.ts'
import type { CutStory, Dependence } from './runs.ts'

/** Facts of a query from its parsed text and its plan, never from words of its text. */
interface QueryFacts {
  /** Tables and views of the lake that it scans, macros resolved: `points`, `history.assets`. */
  readonly scanned: ReadonlySet<string>
  /** Views of the registry as it is now. */
  readonly registryNow: ReadonlySet<string>
  /** Functions and macros that it calls, in small letters. */
  readonly called: ReadonlySet<string>
  readonly nodes: readonly Node[]
}

/** A leak of which the cause is looked for. */
interface Leaked {
  readonly sql: string
  /** The column with the instant of each row. */
  readonly ts: string
  readonly stories: readonly CutStory[]
  readonly dependsOn: readonly Dependence[]
}

/** Cause if neither the plan nor the reads show one. */
export const noCause = 'cause not found: the differences show that it looks ahead, its plan does not show where'

/** Finds the cause of a look-ahead, from the query's parsed text and plan and from how its rows differ. */
export async function likelyCause(session: Engine, leaked: Leaked): Promise<string> {
  const facts = await factsOf(session, leaked.sql)
  if (facts === undefined) return noCause
  return causes.find(([applies]) => applies(facts, leaked))?.[1] ?? noCause
}

async function factsOf(session: Engine, sql: string): Promise<QueryFacts | undefined> {
  const tree = await parsedSql(session, sql)
  if ('error' in tree) return undefined
  const ctes = new Set(ctesIn(tree.statements))
  const scanned = await scannedTables(session, sql)
  return {
    // Without a plan a name that a CTE has, too, is left out: it may be either.
    scanned: new Set(scanned ?? namedTables(tree.statements).filter((name) => !ctes.has(name))),
    registryNow: new Set([...(await historyTables(session)), 'universe']),
    called: new Set([...callsIn(tree.statements)].map(({ name }) => name)),
    nodes: [...nodesOf(tree.statements)],
  }
}

/**
 * Tables that follow the registry, in addition to those of its resources: as views name them, and `pit_universe` in a
 * plan.
 */
const ofRegistry: ReadonlySet<string> = words(
  'universe metric_assets links proof_versions registry_start registry_events registry_findings schema_changes',
)

/**
 * Whether one of these texts reads the registry, as its plan shows it; without a plan its parsed text, apart from CTEs.
 */
export async function registryIsRead(session: Engine, texts: readonly string[]): Promise<boolean> {
  const resources = new Set(await historyTables(session))
  for (const sql of texts) {
    const trees = await treesOf(session, sql)
    const ctes = new Set(ctesIn(trees))
    const called = [...callsIn(trees)].map(({ name }) => name)
    const named = namedTables(trees).filter((name) => !ctes.has(name))
    const read = (await scannedTables(session, sql)) ?? named
    if (called.includes('pit_universe') || called.includes('pit_registry')) return true
    if (read.some((name) => ofRegistry.has(name) || resources.has(name) || /^(?:history|snapshots)\./.test(name)))
      return true
  }
  return false
}

/** Lists the tables and views in the text, those of other schemas with their schema, as in a plan. */
function namedTables(statements: unknown): string[] {
  return [...nodesOf(statements)].flatMap((node) => {
    if (node['type'] !== 'BASE_TABLE') return []
    const schema = word(node, 'schema_name').toLowerCase()
    return [`${schema === '' || schema === 'main' ? '' : `${schema}.`}${word(node, 'table_name').toLowerCase()}`]
  })
}

const day = 86_400_000
const ofPoints: ReadonlySet<string> = new Set(['points', 'components', 'series', 'price_usd', 'vintages'])
const makesGrid = /^(?:calendar|generate_series|range|pit_join|pit_long|pit_window)$/

type Cause = readonly [applies: (facts: QueryFacts, leaked: Leaked) => boolean, words: string]

/** The causes, the one that is shown most plainly first. */
const causes: readonly Cause[] = [
  [
    ({ scanned, registryNow }, { dependsOn }) => dependsOn.includes('registry') && !scanned.isDisjointFrom(registryNow),
    'survivors only: the registry as it is now, applied to earlier dates (use pit_universe)',
  ],
  [
    ({ scanned, called }, { stories }) =>
      stories.every(({ differing, missing }) => differing === missing) &&
      ![...called].some((name) => makesGrid.test(name)) &&
      !scanned.isDisjointFrom(ofPoints),
    'the rows themselves come from the future: the grid is taken from points (use calendar)',
  ],
  [
    (_, { stories }) => stories.every((story) => story.extra > 0 && story.extra === story.differing),
    'rows are left out because of what came later: keep what is not known yet out of the join or subquery ' +
      '(available_at <= ts in ON), not out of its rows',
  ],
  [
    ({ nodes }) => windowsIn(nodes).some(reachesAhead),
    'a window that reaches ahead of its row (FOLLOWING or lead: centred window)',
  ],
  [
    ({ nodes, scanned }) => !scanned.isDisjointFrom(ofPoints) && nodes.some(choosesAssets),
    'survivors only: assets chosen by what became of them later, applied to earlier dates (choose them as of ' +
      'each decision)',
  ],
  [
    ({ nodes }, { ts, stories }) =>
      windowsIn(nodes).some((window) => isOfAllTimes(window, ts)) || (nodes.some(isAggregate) && reachesBack(stories)),
    'a statistic of the whole sample, given to every row (use a window that ends at the row, such as pit_window)',
  ],
  [
    ({ nodes, called }) => [...called].some((name) => name.startsWith('pit_')) && nodes.some(movesDecisions),
    'the decisions of a join were moved: it answers for another instant than the row has (join at ts, use latency)',
  ],
  [
    ({ nodes, called }, { stories }) =>
      !called.isDisjointFrom(calendarParts) &&
      nodes.some(isAggregate) &&
      Math.max(...stories.map((story) => story.cutoff - story.earliest)) > 2 * day,
    'an aggregate of a whole week, month or year, given to the days inside it',
  ],
  [
    ({ nodes, scanned }) => !scanned.isDisjointFrom(ofPoints) && nodes.some(comparesT),
    'joined on t: the value of an interval, used before it was known (use pit_join)',
  ],
]

const calendarParts: ReadonlySet<string> = words(
  'date_trunc datetrunc time_bucket date_part datepart month week year quarter last_day monthname yearweek ' +
    'weekofyear strftime',
)

/** Whether the rows that differ reach back over most of a long sample. */
function reachesBack(stories: readonly CutStory[]): boolean {
  return (
    stories.every(({ cutoff, earliest, first }) => cutoff > first && (cutoff - earliest) / (cutoff - first) > 0.8) &&
    stories.some(({ cutoff, first }) => cutoff - first > 60 * day)
  )
}

function windowsIn(nodes: readonly Node[]): readonly Node[] {
  return nodes.filter((node) => word(node, 'class') === 'WINDOW')
}

function reachesAhead(window: Node): boolean {
  return word(window, 'type') === 'WINDOW_LEAD' || /^(?:EXPR|UNBOUNDED)_FOLLOWING/.test(word(window, 'end'))
}

/**
 * Whether a window looks at rows of all times: neither ordered by the instant of a row nor among those of one instant.
 */
function isOfAllTimes(window: Node, ts: string): boolean {
  const keys = [...nodesOf([window['partitions'], window['orders']])].map(columnOf)
  return !keys.some((name) => name === ts.toLowerCase() || name === 't' || name === 'available_at')
}

/** Whether a node is `asset IN (SELECT asset FROM …)`, or a semi join. */
function choosesAssets(node: Node): boolean {
  if (word(node, 'type') === 'JOIN') return word(node, 'join_type') === 'SEMI'
  return word(node, 'subquery_type') === 'ANY' && columnOf(part(node, 'child')) === 'asset'
}

function isAggregate(node: Node): boolean {
  return word(node, 'class') === 'FUNCTION' && pureAggregates.has(word(node, 'function_name').toLowerCase())
}

/** Whether a node moves `ts` by a length of time. */
function movesDecisions(node: Node): boolean {
  if (!/^[-+]$/.test(word(node, 'function_name'))) return false
  const sides = parts(node, 'children')
  const isLength = (side: Node): boolean =>
    /^to_\w+$/.test(word(side, 'function_name')) || word(part(side, 'cast_type'), 'id') === 'INTERVAL'
  return sides.some((side) => columnOf(side) === 'ts') && sides.some(isLength)
}

/** Whether a node compares, or joins on, the start of an interval. */
function comparesT(node: Node): boolean {
  const { using_columns: using } = node
  if (Array.isArray(using) && using.some((name) => String(name).toLowerCase() === 't')) return true
  return (
    /^(?:COMPARISON|BETWEEN)$/.test(word(node, 'class')) && [...nodesOf(node)].some((inner) => columnOf(inner) === 't')
  )
}

/** Returns the name of a column that a node refers to, in small letters; '' for any other node. */
function columnOf(node: Node): string {
  const { column_names: names } = node
  return Array.isArray(names) ? String(names.at(-1)).toLowerCase() : ''
}
