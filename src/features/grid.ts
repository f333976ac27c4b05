import { type FeatureVersion, keptFeature } from '../catalog/features.ts'
import { heldStates } from '../ledger/held.ts'
import type { Index } from '../ledger/row.ts'
import { argueFromPlan } from '../lookahead/proof/prove.ts'
import { featurePrefix } from '../points/own-rows.ts'
import { ctesIn, parsedSql } from '../query/tree.ts'
import { folded } from '../results/folded.ts'
import { shape } from '../shape.ts'
import { type Engine, quote, quoteList } from '../store/engine.ts'
import { formatInstant, type Instant, type Interval, measureOf } from '../time.ts'
import { instantSql } from '../views/template.ts'

/** The instants at which a feature is told, first and last included. */
interface Grid {
  readonly grid: Interval
  readonly first: Instant
  readonly last: Instant
  /** With these a row for each of them. */
  readonly assets?: readonly string[] | undefined
}

/** The name by which a query reads its grid. */
const name = 'grid'

/** Lets a session read a grid. No row of it is there before its instant: how far it goes tells of the future, too. */
export async function bringGrid(session: Engine, { grid, first, last, assets }: Grid): Promise<void> {
  const { seconds, months } = measureOf(grid)
  const step = months > 0 ? `${months} months` : `${seconds} seconds`
  const instants = `calendar(${quote(formatInstant(first))}, ${quote(formatInstant(last + 1))}, ${quote(step)}) AS own`
  const all = assets === undefined ? 'own.ts' : `unnest(${quoteList(assets)}) AS asset, own.ts`
  const known = `${instantSql('as_of')} IS NULL OR ts <= ${instantSql('as_of')}`
  await session.run(`CREATE OR REPLACE TEMP TABLE own_grid AS SELECT ${all} FROM ${instants} ORDER BY ALL`)
  await session.run(`CREATE OR REPLACE TEMP VIEW ${name} AS FROM own_grid WHERE ${known}`)
}

/**
 * A query as a proof reads it from its plan: in the place of the grid, rows that are known at their instant, as points
 * are, whatever they are. It stands on a line of its own. Undefined where the query names no grid of ours.
 */
export async function plannedOver(session: Engine, sql: string, assets: Grid['assets']): Promise<string | undefined> {
  const tree = await parsedSql(session, sql)
  if (!/\bgrid\b/i.test(sql) || 'error' in tree || ctesIn(tree.statements).includes(name)) return undefined
  const own = assets === undefined ? '' : `CAST(unnest(${quoteList(assets)}) AS VARCHAR) AS asset, `
  return folded(`CREATE TEMP TABLE ${name} AS SELECT ${own}available_at AS ts FROM vintages;\n${sql}`)?.sql
}

/** Whether the plan of a feature proves, on this lake, that it looks nowhere ahead, and what stands in the way. */
export async function arguedOf(
  session: Engine,
  { sql, assets }: Pick<FeatureVersion, 'sql' | 'assets'>,
): ReturnType<typeof argueFromPlan> {
  return await argueFromPlan(session, { sql: (await plannedOver(session, sql, assets)) ?? sql, ts: 'ts', labels: [] })
}

/** Whether a query names a feature, or a part of its values. */
export function namesFeature(sql: string, other: string): boolean {
  return [`'`, '#'].some((end) => sql.includes(`'${featurePrefix}${other}${end}`))
}

/** The features that a query names, with the version of each that joins take. */
export function featuresIn(index: Index, sql: string): Readonly<Record<string, string>> {
  const all = heldStates(index, featurePrefix, shape({})).filter(({ key }) => namesFeature(sql, key))
  return Object.fromEntries(all.map(({ key, value }) => [key, keptFeature.parse(value).networks[0] ?? '']))
}
