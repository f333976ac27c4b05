import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { end } from '../../../src/base/time.ts'
import type { StagedFile } from '../../../src/lake/ledger/commit.ts'
import { type Engine, quote } from '../../../src/lake/store/engine.ts'
import { pointsFile } from '../../../src/lake/store/layout.ts'
import { micros } from '../instants.ts'
import type { PointRow } from './lake-recipe.ts'

const pointColumns = `asset: 'VARCHAR', currency: 'VARCHAR', exchange: 'VARCHAR', network: 'VARCHAR', t: 'TIMESTAMPTZ',
  available_at: 'TIMESTAMPTZ', observed_at: 'TIMESTAMPTZ', v: 'DOUBLE', o: 'VARCHAR', basis: 'VARCHAR', extra: 'VARCHAR',
  computed_at: 'TIMESTAMPTZ', available_rule_at: 'TIMESTAMPTZ', params: 'VARCHAR'`

/** A point with the instant at which the lake first stored it. */
export interface StoredPoint extends PointRow {
  readonly observed_at: string
}

/**
 * Writes rows as JSON and copies them into a Parquet file; `columns` names each column and its type, `order` is SQL.
 */
export async function writeRows(
  engine: Engine,
  out: string,
  rows: readonly object[],
  columns: string,
  order = '',
): Promise<void> {
  mkdirSync(dirname(out), { recursive: true })
  writeFileSync(`${out}.jsonl`, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  const options = `hive_partitioning = false, format = 'newline_delimited', columns = {${columns}}`
  const read = `read_json(${quote(`${out}.jsonl`)}, ${options})`
  await engine.run(`COPY (SELECT * FROM ${read} ${order}) TO ${quote(out)} (FORMAT parquet)`)
}

/** Writes points of one metric and interval into a Parquet file, in their order or in that of `order`. */
export async function writePoints(
  engine: Engine,
  out: string,
  points: readonly StoredPoint[],
  order = '',
): Promise<void> {
  const rows = points.map((point) => ({
    params: null,
    basis: 'assumed',
    available_rule_at: point.available_rule_at ?? point.available_at,
    ...point,
  }))
  await writeRows(engine, out, rows, pointColumns, order)
}

/**
 * What the ledger has to know of a file of points: its place as `id`, its rows, the times that they span, the least
 * lag.
 */
export function pointsFileFacts(points: readonly PointRow[], id: string): Omit<StagedFile, 'temporary'> {
  const [first] = points
  if (first === undefined) throw new Error('a file of points needs a point')
  const { metric, interval } = first
  const starts = points.map(({ t }) => Math.floor(micros(t) / 1_000_000))
  const lags = points.map(({ t, available_at }) => micros(available_at) - end(micros(t) / 1e6, interval) * 1e6)
  return {
    path: pointsFile(metric, interval, id),
    table: 'points',
    label: '',
    metric,
    interval,
    digest: null,
    rows: points.length,
    min_t: Math.min(...starts),
    max_t: Math.max(...starts),
    meta: { min_lag: Math.min(...lags) },
  }
}
