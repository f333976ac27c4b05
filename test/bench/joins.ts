import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Engine, quote, quoteList } from '../../src/store/engine.ts'
import type { HeldFile } from '../../src/ledger/held.ts'
import { inLake, pointsFile } from '../../src/store/layout.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { joinObjects } from '../helpers/joins.ts'
import { median } from './measured.ts'

/** One comparison: medians in seconds, and the ratio that must not be above the bound. */
export interface JoinRatio {
  readonly name: string
  readonly ours: number
  readonly bare: number
  readonly strict: number
  readonly ratio: number
  readonly bound: number
}

const day = 86_400_000_000
const first = Date.UTC(2015, 0, 1) * 1000
const days = 3650

/** Twenty metrics of daily points that take no dimension. */
export function dailyMetrics(): string[] {
  return [...catalogue.endpoints.values()]
    .filter(
      ({ intervals, defaults }) =>
        intervals.includes('24h') && !defaults.currency && !defaults.exchange && !defaults.network,
    )
    .map(({ path }) => path)
    .slice(0, 20)
}

/** Metrics of daily points for 20 assets: lags of 5 to 50 minutes, `late` in 10,000 up to 20 days late. */
export async function makeLake(
  engine: Engine,
  root: string,
  metrics: readonly string[],
  late: number,
): Promise<HeldFile[]> {
  const files: HeldFile[] = []
  for (const [m, metric] of metrics.entries()) {
    const path = pointsFile(metric, '24h', `late-${late}`)
    mkdirSync(dirname(inLake(root, path)), { recursive: true })
    const ended = `${first} + (d + 1) * ${day}`
    const lag = `(300 + 60 * ${m}) * 1000000 + CAST(hash(${m}, a, d) % 1500000000 AS BIGINT)
      + CASE WHEN hash(a, d, ${m}, 7) % 10000 < ${late} THEN CAST(hash(d, ${m}, a, 9) % 1728000 AS BIGINT) * 1000000 ELSE 0 END`
    await engine.run(`COPY (
      SELECT 'A' || lpad(CAST(a AS VARCHAR), 2, '0') AS asset, NULL::VARCHAR AS currency, NULL::VARCHAR AS exchange, NULL::VARCHAR AS network,
        make_timestamptz(${first} + d * ${day}) AS t, make_timestamptz(${ended} + ${lag}) AS available_at,
        make_timestamptz(${ended} + ${30 * day}) AS observed_at, (hash(${m}, a, d, 3) % 1000000) / 1000.0::DOUBLE AS v, NULL::VARCHAR AS o,
        'assumed' AS basis, NULL::VARCHAR AS extra, NULL::TIMESTAMPTZ AS computed_at,
        make_timestamptz(${ended} + ${lag}) AS available_rule_at, NULL::VARCHAR AS params
      FROM range(20) AS x (a), range(${days}) AS y (d) ORDER BY asset, t
    ) TO ${quote(inLake(root, path))} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd)`)
    const [row] = await engine.rows(
      `SELECT min(epoch_us(available_at) - epoch_us(t)) - ${day} AS lag FROM ${quote(inLake(root, path))}`,
    )
    files.push({
      path,
      table: 'points',
      label: '',
      metric,
      interval: '24h',
      meta: { min_lag: Number(row?.['lag']) },
    } as never)
  }
  return files
}

/** Decisions by kind, as SELECT statements: id, asset, ts. */
export const decisions: Readonly<Record<string, string>> = {
  random: `SELECT i AS id, 'A' || lpad(CAST(hash(i) % 20 AS VARCHAR), 2, '0') AS asset, make_timestamptz(${first} + CAST(hash(i, 5) % ${days * day}::UBIGINT AS BIGINT)) AS ts FROM range(100000) AS r (i)`,
  'a million random': `SELECT i AS id, 'A' || lpad(CAST(hash(i) % 20 AS VARCHAR), 2, '0') AS asset, make_timestamptz(${first} + CAST(hash(i, 5) % ${days * day}::UBIGINT AS BIGINT)) AS ts FROM range(1000000) AS r (i)`,
  midnight: `SELECT a * 10000 + d AS id, 'A' || lpad(CAST(a AS VARCHAR), 2, '0') AS asset, make_timestamptz(${first} + d * ${day}) AS ts FROM range(20) AS x (a), range(${days}) AS y (d)`,
  'years later': `SELECT i AS id, 'A' || lpad(CAST(hash(i) % 20 AS VARCHAR), 2, '0') AS asset, make_timestamptz(${first} + ${(days + 1000) * day} + i) AS ts FROM range(100000) AS r (i)`,
}

const overtaken = `SELECT p.* FROM points AS p
  QUALIFY t >= max(t) OVER (PARTITION BY metric, asset ORDER BY available_at, t, observed_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    AND lead(available_at) OVER (PARTITION BY metric, asset ORDER BY available_at, t, observed_at) IS DISTINCT FROM available_at`

function asof(list: string, points: string): string {
  return `SELECT q.*, p.t, p.available_at, p.v, p.o
    FROM (SELECT d.*, m.metric FROM d, (SELECT unnest(${list}) AS metric) AS m) AS q
    ASOF LEFT JOIN ${points} AS p ON q.metric = p.metric AND q.asset = p.asset AND q.ts >= p.available_at`
}

async function timed(engine: Engine, sql: string): Promise<[number, string]> {
  const start = performance.now()
  await engine.run(`CREATE OR REPLACE TEMP TABLE answer AS ${sql}`)
  const seconds = (performance.now() - start) / 1000
  const [row] = await engine.rows(
    `SELECT count(*) AS n, count(t) AS known, CAST(sum(CAST(hash(id, metric, t, available_at, v) AS HUGEINT)) AS VARCHAR) AS digest FROM answer`,
  )
  return [seconds, JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))]
}

async function compare(
  engine: Engine,
  name: string,
  ours: string,
  list: string,
  bound: number,
  rounds: number,
): Promise<JoinRatio> {
  const forms = [ours, asof(list, 'points'), asof(list, `(${overtaken})`)]
  const times: number[][] = [[], [], []]
  for (let round = -1; round < rounds; round++) {
    const results: string[] = []
    for (const [n, form] of forms.entries()) {
      const [seconds, result] = await timed(engine, form)
      results.push(result)
      if (round >= 0) times[n]?.push(seconds)
    }
    if (results[0] !== results[2]) throw new Error(`${name}: ours and the strict window form differ`)
  }
  const [own, bare, strict] = times.map(median) as [number, number, number]
  return { name, ours: own, bare, strict, ratio: own / bare, bound }
}

/** The join of one metric alone: planning it counts for less. */
const million = 'a million random'

/** The joins against a bare ASOF JOIN (wrong with late points) and the strict window form, equal results asserted. */
export async function benchJoins(
  rounds = 5,
  onRatio: (ratio: JoinRatio) => void = () => undefined,
): Promise<JoinRatio[]> {
  const root = mkdtempSync(join(tmpdir(), 'pitlake-bench-'))
  const engine = await Engine.open(':memory:', { threads: 2 })
  const metrics = dailyMetrics()
  const ratios: JoinRatio[] = []
  const add = (ratio: JoinRatio): void => {
    ratios.push(ratio)
    onRatio(ratio)
  }
  try {
    for (const late of [0, 100]) {
      const files = await makeLake(engine, root, metrics, late)
      for (const { sql } of joinObjects(root, files)) await engine.run(sql)
      const read = `read_parquet(${quoteList(files.map(({ path }) => inLake(root, path)))}, hive_partitioning = true, hive_types = {metric: VARCHAR, interval: VARCHAR})`
      await engine.run(`CREATE OR REPLACE TEMP VIEW points AS FROM ${read}`)
      for (const [kind, sql] of Object.entries(decisions)) {
        await engine.run(`CREATE OR REPLACE TEMP TABLE d AS ${sql}`)
        const said = `${kind} decisions, ${late / 100} % late`
        const one = quoteList(metrics.slice(0, 1))
        const join = `SELECT *, ${quote(metrics[0] ?? '')} AS metric FROM pit_join('d', ${quote(metrics[0] ?? '')}, '24h')`
        await engine.run(
          `CREATE OR REPLACE TEMP VIEW points AS FROM ${read.replace(/\[.*?\]/, `[${quote(inLake(root, files[0]?.path ?? ''))}]`)}`,
        )
        add(
          await compare(
            engine,
            `pit_join, ${said}`,
            join,
            one,
            kind === 'years later' ? 2.1 : late === 0 ? 1 : 1.3,
            rounds,
          ),
        )
        await engine.run(`CREATE OR REPLACE TEMP VIEW points AS FROM ${read}`)
        if (kind === million) continue
        const list = quoteList(metrics)
        const bound = kind === 'years later' ? 2.1 : 0.75
        add(
          await compare(
            engine,
            `pit_long, 20 metrics, ${said}`,
            `FROM pit_long('d', ${list}, '24h')`,
            list,
            bound,
            rounds,
          ),
        )
      }
    }
  } finally {
    engine.close()
    rmSync(root, { recursive: true, force: true })
  }
  return ratios
}
