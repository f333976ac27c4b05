import { expect } from 'vitest'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import type { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine, quote, quoteList } from '../../src/lake/store/engine.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { readPoints } from '../../src/query/views/relations.ts'
import { datedPointsSql, earlierDatings } from '../../src/sources/points/datings.ts'
import { day, metrics, start } from './lakes/top-ups.ts'

/** The points as a reader with this instant (microseconds) sees them, as the views read them; a relation for FROM. */
export function pointsAt(ledger: Ledger, observedAsOf: number | null): string {
  const files = liveFiles(ledger)
  const read = (paths: readonly string[]): string =>
    readPoints(
      ledger.root,
      paths.map((path) => ({ path })),
    )
  const newest = read(files.filter((file) => file.table === 'points').map((file) => file.path))
  const at = observedAsOf === null ? 'CAST(NULL AS TIMESTAMPTZ)' : `make_timestamptz(${observedAsOf}::BIGINT)`
  return `(SELECT * FROM ${datedPointsSql(newest, earlierDatings(files), read, at)}
    WHERE ${at} IS NULL OR observed_at <= ${at})`
}

/**
 * The same by definition. Of each metric
 * the files that were dated anew first after the instant answer, and where there are none, the newest.
 */
function pointsByDefinition(ledger: Ledger, observedAsOf: number | null): string {
  const at = observedAsOf ?? Infinity
  const files = liveFiles(ledger)
  const ended = files.filter(({ table, label }) => table === 'redated' && Number(label) > at)
  const before = [...Map.groupBy(ended, ({ metric }) => metric).values()].flatMap((own) => {
    const first = Math.min(...own.map(({ label }) => Number(label)))
    return own.filter(({ label }) => Number(label) === first)
  })
  const dated = before.map(({ metric }) => metric)
  const read = (path: string, metric: string | null): string => {
    const names = metric === null ? '' : `, ${quote(metric)} AS metric, '24h' AS "interval"`
    return `SELECT *${names} FROM read_parquet(${quote(inLake(ledger.root, path))}, hive_partitioning = false)`
  }
  const newest = files
    .filter(({ table }) => table === 'points')
    .map(
      ({ path, metric }) =>
        `FROM (${read(path, metric)}) WHERE NOT list_contains(${quoteList(dated as string[])}, metric)`,
    )
  const earlier = before.map(({ path, metric }) => read(path, metric))
  const held = observedAsOf === null ? 'true' : `epoch_us(observed_at) <= ${observedAsOf}`
  return `(FROM (${[...newest, ...earlier].join(' UNION ALL BY NAME ')}) WHERE ${held})`
}

/** A fixed set of questions: one series, the latest known of all, a panel, counts, three instants of knowledge. */
export async function answers(ledger: Ledger, observedAsOf: number | null): Promise<string> {
  const points = pointsAt(ledger, observedAsOf)
  const instants = [40, 100, 300].map((days) => (start + days * day + 601) * 1_000_000)
  const latest = (at: string): string =>
    `SELECT metric, asset, arg_max(struct_pack(t, v, o, available_at, observed_at), t) AS last, count(*) AS n
     FROM ${points} WHERE ${at} GROUP BY ALL ORDER BY ALL`
  const questions = [
    `SELECT t, v, signbit(v) AS sign, o, available_at, observed_at, basis,
     coalesce(computed_at, CASE WHEN basis = 'provider' THEN available_at END) AS computed,
     coalesce(available_rule_at, available_at) AS ruled
     FROM ${points} WHERE metric = ${quote(metrics[0])} AND asset = 'A1' ORDER BY t`,
    latest('true'),
    `SELECT t, asset, max(v) FILTER (WHERE metric = ${quote(metrics[0])}) AS a,
     max(v) FILTER (WHERE metric = ${quote(metrics[1])}) AS b FROM ${points} GROUP BY ALL ORDER BY ALL`,
    `SELECT metric, "interval", count(*) AS n, count(v) AS scalars, count(DISTINCT t) AS ts, basis FROM ${points}
     GROUP BY ALL ORDER BY ALL`,
    ...instants.map((at) => latest(`available_at <= make_timestamptz(${at}::BIGINT)`)),
  ]
  using engine = await Engine.open(':memory:', { threads: 1 })
  const rows = []
  for (const question of questions) rows.push(await engine.rows(question))
  const defined = questions.slice(0, 2).map((one) => one.replace(points, pointsByDefinition(ledger, observedAsOf)))
  for (const [n, one] of defined.entries()) expect(await engine.rows(one)).toEqual(rows[n])
  return JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))
}
