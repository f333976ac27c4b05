import { type FeatureVersion, keptFeature } from '../catalog/features.ts'
import { LakeError } from '../errors.ts'
import { endSql } from '../intervals-sql.ts'
import { heldStates, heldWeekStart } from '../ledger/held.ts'
import { Ledger } from '../ledger/ledger.ts'
import { featurePrefix } from '../points/own-rows.ts'
import { openQuery, setMoment } from '../query/lake.ts'
import type { RunDeps } from '../query/run.ts'
import { shape } from '../shape.ts'
import { type Engine, quote, quoteName } from '../store/engine.ts'
import { formatMicros, type Weekday } from '../time.ts'
import { arguedOf } from './grid.ts'
import { valuesOf } from './values.ts'

/** What computing a version of a feature again came to. */
export interface FeatureChecked {
  readonly name: string
  readonly version: number
  readonly rows: number
  /** The first value that is another, in words. */
  readonly differs: string | null
}

/**
 * Computes every value of features again, each with what the lake held when it was first computed, and compares bit for
 * bit. Writes nothing.
 */
export async function checkFeatures(root: string, names: readonly string[], within: Pick<RunDeps, 'signal' | 'sleep'>) {
  using ledger = await Ledger.openToRead(root)
  using session = await openQuery(root, { threads: 1 })
  const checked: FeatureChecked[] = []
  for (const { key, value } of heldStates(ledger, featurePrefix, shape({}))) {
    const name = `${featurePrefix}${key}`
    if (names.length > 0 && !names.includes(key) && !names.includes(name)) continue
    for (const [at, feature] of keptFeature.parse(value).versions.entries())
      checked.push(
        await versionChecked(session, { name, version: at + 1, feature }, heldWeekStart(ledger), {
          folder: root,
          ...within,
        }),
      )
  }
  return checked
}

type Which = Pick<FeatureChecked, 'name' | 'version'> & { readonly feature: FeatureVersion }

async function versionChecked(
  session: Engine,
  which: Which,
  weekStart: Weekday,
  run: RunDeps,
): Promise<FeatureChecked> {
  const { name, version, feature } = which
  const told = endSql('epoch_us(t) // 1000000', feature.grid)
  await session.run(`CREATE OR REPLACE TEMP TABLE feature_stored AS
    SELECT asset, currency, exchange, make_timestamptz((${told}) * 1000000) AS ts, v, o, epoch_us(observed_at) AS held FROM points
    WHERE metric = ${quote(name)} AND network = ${quote(`v${version}`)}`)
  const groups = await session.rows<{ held: bigint; from: bigint; to: bigint; rows: bigint }>(
    `SELECT held, epoch_us(min(ts)) // 1000000 AS "from", epoch_us(max(ts)) // 1000000 AS "to", count(*) AS rows
     FROM feature_stored GROUP BY held ORDER BY held`,
  )
  const rows = groups.reduce((sum, one) => sum + Number(one.rows), 0)
  const { proved } = await arguedOf(session, feature)
  try {
    for (const { held, from, to } of groups) {
      await setMoment(session, 'observed_as_of', formatMicros(Number(held) - 1))
      const due = { feature, from: Number(from), to: Number(to), weekStart, proved }
      const { table, values, keys } = await valuesOf(session, due, run)
      const differs = await difference(session, table, values, keys, Number(held))
      if (differs !== null) return { name, version, rows, differs }
    }
    return { name, version, rows, differs: null }
  } finally {
    await setMoment(session, 'observed_as_of')
  }
}

/** The first row of a portion that is stored and computed otherwise. */
async function difference(
  session: Engine,
  table: string,
  values: readonly string[],
  keys: readonly string[],
  held: number,
): Promise<string | null> {
  const stored = (column: string): string =>
    values.length === 1
      ? 'coalesce(CAST(v AS VARCHAR), o)'
      : `CAST(CAST(o ->> ${quote(`$.${JSON.stringify(column)}`)} AS DOUBLE) AS VARCHAR)`
  const again = (column: string): string => {
    const own = quoteName(column)
    return `coalesce(CAST(TRY_CAST(${own} AS DOUBLE) AS VARCHAR), CAST(${own} AS VARCHAR))`
  }
  const listed = (value: (column: string) => string): string =>
    `SELECT ${[...keys, 'ts'].join(', ')}, [${values.map(value).join(', ')}] AS told`
  const [one, other] = [`${listed(stored)} FROM feature_stored WHERE held = ${held}`, `${listed(again)} FROM ${table}`]
  const [row] = await session.rows<{ ts: string; told: string; other: string }>(
    `SELECT ts, CAST(first(told) FILTER (here) AS VARCHAR) AS told, CAST(first(told) FILTER (NOT here) AS VARCHAR) AS other FROM (
       SELECT *, true AS here FROM (${one} EXCEPT ALL ${other}) UNION ALL SELECT *, false FROM (${other} EXCEPT ALL ${one}))
     GROUP BY ${[...keys, 'ts'].join(', ')} ORDER BY ts LIMIT 1`,
  )
  return row === undefined
    ? null
    : `at ${row.ts} ${row.told ?? 'nothing'} is stored, ${row.other ?? 'nothing'} computed`
}

/** The error that a check ends with. */
export function checkVerdict({ name, version, differs }: FeatureChecked): LakeError | null {
  if (differs === null) return null
  return new LakeError('integrity', {
    subject: `${name} v${version}`,
    got: differs,
    next: 'pitlake doctor proves the files that it was made from',
  })
}
