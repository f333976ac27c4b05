import { usage } from '../errors.ts'
import type { Engine } from '../store/engine.ts'
import { optionAt } from './note.ts'
import { runScript, type RunDeps } from './run.ts'

/** The columns that the members of a universe add to decisions. */
export const memberColumns: readonly string[] = [
  'asset',
  'product_id',
  'name',
  'symbol',
  'isin',
  'status',
  'issuer_id',
  'asset_id',
  'valid_from',
  'assumed',
]

/**
 * The decisions about a universe: at each moment of a relation its members, each with the metric assets that it was linked
 * to then. A member without any is there, too: that nothing is measured of it does not make it disappear.
 */
export function membersSql(moments: string, condition: string, key: string): string {
  return `WITH _pit_moments AS (${moments}),
_pit_met AS (
  SELECT DISTINCT member.*, link.metric_asset
  FROM pit_universe('_pit_moments', (
${condition}
)) AS member
  LEFT JOIN links AS link
    ON link.product_id = member.product_id AND link.valid_from <= member.ts AND member.ts < link.valid_to
)
SELECT row_number() OVER (ORDER BY ${key}, product_id, metric_asset) AS ${key}, metric_asset AS asset,
  * EXCLUDE (${key}, metric_asset)
FROM _pit_met`
}

/** Refuses a condition that is none, and moments at which the registry was not known. */
export async function checkMembers(engine: Engine, moments: string, condition: string, deps: RunDeps): Promise<void> {
  await runScript(engine, `SELECT product_id FROM universe WHERE (\n${condition}\n)`, {
    ...deps,
    generated: false,
    above: 1,
  })
  const [row] = await engine.rows<{ first: string; start: string | null }>(
    `SELECT CAST(min(ts) AS VARCHAR) AS "first", (SELECT CAST(known_since AS VARCHAR) FROM registry_start) AS start
     FROM (${moments})
     HAVING NOT coalesce(CAST(getvariable('registry_backfill') AS BOOLEAN), false)
       AND NOT coalesce(min(ts) >= (SELECT known_since FROM registry_start), count(ts) = 0)`,
  )
  if (row === undefined) return
  const { first, start } = row
  const { door = 'terminal' } = deps
  throw usage(optionAt(door, 'universe'), {
    expected:
      start === null
        ? 'a registry: it is not known yet'
        : `instants from ${start} on, when the registry was first known`,
    got: first,
    next:
      start === null
        ? 'run `pitlake registry snapshot`'
        : `or let the first snapshot stand in: ${optionAt(door, 'registry_backfill', 'true')}`,
  })
}
