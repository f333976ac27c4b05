import { isDeepStrictEqual } from 'node:util'
import { type FeatureVersion, keptFeature } from '../../catalog/features.ts'
import { endSql } from '../../base/intervals-sql.ts'
import { storedStates, storedWeekStart } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { featurePrefix } from '../../sources/points/own-rows.ts'
import { rowsBeside } from '../../query/row-comparison.ts'
import { openQuery, setMoment } from '../../query/lake.ts'
import type { RunDeps } from '../../query/run.ts'
import { shape } from '../../base/value-checks.ts'
import { type Engine, quote, quoteName } from '../../lake/store/engine.ts'
import { formatMicros, type Weekday } from '../../base/time.ts'
import { arguedOf, featuresIn } from './grid.ts'
import { valuesOf } from './values.ts'

/** Comparison of the stored values of a feature with values that were computed again. */
interface FeatureComparison {
  /** Number of stored rows. */
  readonly rows: number
  /** Number of rows whose stored and computed values differ. */
  readonly differing: number
}

/** Result of the check of one version of a feature. */
export interface FeatureChecked extends FeatureComparison {
  /** Path of the metric. */
  readonly name: string
  /** Number of the definition, counted from 1. */
  readonly version: number
}

/**
 * Recomputes stored values of features, each with what the lake had when it was first stored, and compares them bit for
 * bit.
 */
export async function checkFeatures(
  root: string,
  names: readonly string[],
  within: Pick<RunDeps, 'signal' | 'sleep'>,
): Promise<FeatureChecked[]> {
  using ledger = await Ledger.openToRead(root)
  using session = await openQuery(root, { threads: 1 })
  const checked: FeatureChecked[] = []
  for (const { key, value } of storedStates(ledger, featurePrefix, shape({}))) {
    const name = `${featurePrefix}${key}`
    if (names.length > 0 && !names.includes(key) && !names.includes(name)) continue
    for (const [at, feature] of keptFeature.parse(value).versions.entries()) {
      // Values that read versions of other features which joins no longer use cannot be computed again.
      if (!isDeepStrictEqual(feature.reads, featuresIn(ledger, feature.sql))) continue
      const points = `points WHERE metric = ${quote(name)} AND network = ${quote(`v${at + 1}`)}`
      const found = await comparePoints(session, feature, points, storedWeekStart(ledger), { folder: root, ...within })
      checked.push({ name, version: at + 1, ...found })
    }
  }
  return checked
}

/** Finds points that are computed differently now. */
async function comparePoints(
  session: Engine,
  feature: FeatureVersion,
  points: string,
  weekStart: Weekday,
  run: RunDeps,
): Promise<FeatureComparison> {
  const knownFrom = `make_timestamptz((${endSql('epoch_us(t) // 1000000', feature.grid)}) * 1000000)`
  await session.run(`CREATE OR REPLACE TEMP TABLE feature_stored AS
    SELECT asset, currency, exchange, ${knownFrom} AS ts, v, o, epoch_us(observed_at) AS held FROM ${points}`)
  const portions = await session.rows<{ held: bigint; from: bigint; to: bigint; rows: bigint }>(
    `SELECT held, epoch_us(min(ts)) // 1000000 AS "from", epoch_us(max(ts)) // 1000000 AS "to", count(*) AS rows
     FROM feature_stored GROUP BY held ORDER BY held`,
  )
  const { proved } = await arguedOf(session, feature)
  let rows = 0
  let differing = 0
  for (const { held, from, to, rows: portionRows } of portions) {
    await setMoment(session, 'observed_as_of', formatMicros(Number(held) - 1))
    const due = { feature, from: Number(from), to: Number(to), weekStart, proved }
    const { table, values, keys } = await valuesOf(session, due, run)
    const text = (value: string): string =>
      `coalesce(CAST(TRY_CAST(${value} AS DOUBLE) AS VARCHAR), CAST(${value} AS VARCHAR))`
    const keptColumn = (name: string): string =>
      values.length === 1 ? 'coalesce(CAST(v AS VARCHAR), o)' : `(o ->> ${quote(`$.${JSON.stringify(name)}`)})`
    const listed = (value: (name: string) => string): string =>
      `SELECT ${[...keys, 'ts', `[${values.map((name) => text(value(name))).join(', ')}] AS told`].join(', ')}`
    await session.run(
      `CREATE OR REPLACE TEMP TABLE feature_was AS ${listed(keptColumn)} FROM feature_stored WHERE held = ${held};
       CREATE OR REPLACE TEMP TABLE feature_is AS ${listed(quoteName)} FROM ${table}`,
    )
    rows += Number(portionRows)
    differing += Math.max(...((await rowsBeside(session, 'feature_was', 'feature_is')) ?? [Number(portionRows)]))
  }
  await setMoment(session, 'observed_as_of')
  return { rows, differing }
}
