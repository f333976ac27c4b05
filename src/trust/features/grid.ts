import { type FeatureVersion, keptFeature } from '../../catalog/features.ts'
import { usage } from '../../base/errors.ts'
import { storedStates } from '../../lake/ledger/index-queries.ts'
import type { Index } from '../../lake/ledger/index-rows.ts'
import { argueFromPlan, type PlanArgument } from '../lookahead/proof/prove.ts'
import { featurePrefix } from '../../sources/points/own-rows.ts'
import { ctesIn, parsedSql } from '../../query/parse-tree.ts'
import { scriptAsSelect } from '../../query/script-as-select.ts'
import { shape } from '../../base/value-checks.ts'
import { type Engine, quote, quoteList, quoteName } from '../../lake/store/engine.ts'
import { formatInstant, type Instant, measureOf } from '../../base/time.ts'
import { instantSql } from '../../query/views/template.ts'

/** The name by which a query reads its grid. */
const name = 'grid'

/**
 * Lets a session read the grid of a feature, up to an instant. No row is visible before its own instant: how far the
 * grid goes reveals the future, too. The session sees only the features that the query names: computed values reveal
 * nothing of when others were computed.
 */
export async function bringGrid(session: Engine, feature: FeatureVersion, last: Instant): Promise<void> {
  const { sql, grid, first, assets } = feature
  const { seconds, months } = measureOf(grid)
  const step = months > 0 ? `${months} months` : `${seconds} seconds`
  const instants = `calendar(${quote(formatInstant(first))}, ${quote(formatInstant(last + 1))}, ${quote(step)}) AS own`
  const all = assets === undefined ? 'own.ts' : `unnest(${quoteList(assets)}) AS asset, own.ts`
  const knownSql = `${instantSql('as_of')} IS NULL OR ts <= ${instantSql('as_of')}`
  await session.run(`CREATE OR REPLACE TEMP TABLE own_grid AS SELECT ${all} FROM ${instants} ORDER BY ALL`)
  await session.run(`CREATE OR REPLACE TEMP VIEW ${name} AS FROM own_grid WHERE ${knownSql}`)
  const listing = `FROM system.main.duckdb_columns()
    WHERE schema_name = 'main' AND NOT internal AND column_name = 'metric'`
  const views = await session.rows<{ name: string; db: string }>(
    `SELECT DISTINCT table_name AS name, database_name AS db ${listing} AND database_name <> 'temp'`,
  )
  const named = [...namedFeatures(sql)].map((one) => `${featurePrefix}${one}`)
  const names = ['NULL', ...named.map(quote)].join(', ')
  const others = `NOT starts_with(metric, ${quote(featurePrefix)}) OR metric IN (${names})`
  for (const view of views) {
    if (!new RegExp(`\\b${view.name}\\b|\\bquery(?:_table)?\\b`, 'i').test(sql)) continue
    if (new RegExp(`\\b(?:main|${view.db})"?\\s*\\.\\s*"?${view.name}\\b`, 'i').test(sql))
      throw usage('sql', { expected: `${view.name} without a schema before it`, got: 'one' })
    const whole = [view.db, 'main', view.name].map(quoteName).join('.')
    await session.run(`CREATE OR REPLACE TEMP VIEW ${quoteName(view.name)} AS FROM ${whole} WHERE ${others}`)
  }
}

const anyFeature = new RegExp(`\\b${featurePrefix}[\\w/]+`, 'g')

/**
 * Rewrites a query as a proof reads it from its plan: in the place of the grid, rows that are known at their instant,
 * as points are, whatever they are. It stands on a line of its own. Undefined if the query names no grid of ours.
 */
export async function plannedOver(session: Engine, { sql, assets }: FeatureVersion): Promise<string | undefined> {
  const tree = await parsedSql(session, sql)
  if (!/\bgrid\b/i.test(sql) || 'error' in tree || ctesIn(tree.statements).includes(name)) return undefined
  const assetSql = assets === undefined ? '' : `CAST(unnest(${quoteList(assets)}) AS VARCHAR) AS asset, `
  return scriptAsSelect(`CREATE TEMP TABLE ${name} AS SELECT ${assetSql}available_at AS ts FROM vintages;\n${sql}`)?.sql
}

/** Argues from the plan of a feature, on this lake, that it does not look ahead, or finds the obstacle. */
export async function arguedOf(session: Engine, feature: FeatureVersion): Promise<PlanArgument> {
  const sql = (await plannedOver(session, feature)) ?? feature.sql
  return await argueFromPlan(session, { sql, ts: 'ts', labels: [] })
}

/** Lists the features that a query names, or parts of whose values it does. */
export function namedFeatures(sql: string): ReadonlySet<string> {
  return new Set((sql.match(anyFeature) ?? []).map((path) => path.slice(featurePrefix.length)))
}

/** Lists the features of the lake that a query names, with the version of each that joins read. */
export function featuresIn(index: Index, sql: string): Readonly<Record<string, string>> {
  const named = namedFeatures(sql)
  const all = storedStates(index, featurePrefix, shape({})).filter(({ key }) => named.has(key))
  return Object.fromEntries(all.map(({ key, value }) => [key, keptFeature.parse(value).networks[0] ?? '']))
}
