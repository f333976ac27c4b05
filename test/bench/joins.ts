import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Engine, quote, quoteList } from '../../src/lake/store/engine.ts'
import type { StoredFile } from '../../src/lake/ledger/index-queries.ts'
import { inLake, pointsFile } from '../../src/lake/store/layout.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { joinObjects } from '../helpers/joins.ts'
import { byTurns, figure, judged, type Measured, median, scaled } from './measured.ts'

const day = 86_400_000_000
const first = Date.UTC(2015, 0, 1) * 1000
const days = scaled(3650)

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
): Promise<StoredFile[]> {
  const files: StoredFile[] = []
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
      `SELECT min(epoch_us(available_at) - epoch_us(t)) - ${day} AS lag, min(epoch(t)) AS first, max(epoch(t)) AS newest FROM ${quote(inLake(root, path))}`,
    )
    files.push({
      path,
      table: 'points',
      label: '',
      metric,
      interval: '24h',
      rows: 20 * days,
      min_t: Number(row?.['first']),
      max_t: Number(row?.['newest']),
      meta: { min_lag: Number(row?.['lag']) },
      digest: null,
      bytes: 0,
      sha256: '',
      added_version: 1,
      removed_version: null,
      dropped_version: null,
    })
  }
  return files
}

/** Decisions by kind, as SELECT statements: id, asset, ts. */
export const decisions: Readonly<Record<string, string>> = {
  random: `SELECT i AS id, 'A' || lpad(CAST(hash(i) % 20 AS VARCHAR), 2, '0') AS asset, make_timestamptz(${first} + CAST(hash(i, 5) % ${days * day}::UBIGINT AS BIGINT)) AS ts FROM range(${scaled(100_000)}) AS r (i)`,
  'a million random': `SELECT i AS id, 'A' || lpad(CAST(hash(i) % 20 AS VARCHAR), 2, '0') AS asset, make_timestamptz(${first} + CAST(hash(i, 5) % ${days * day}::UBIGINT AS BIGINT)) AS ts FROM range(${scaled(1_000_000)}) AS r (i)`,
  midnight: `SELECT a * 10000 + d AS id, 'A' || lpad(CAST(a AS VARCHAR), 2, '0') AS asset, make_timestamptz(${first} + d * ${day}) AS ts FROM range(20) AS x (a), range(${days}) AS y (d)`,
  'years later': `SELECT i AS id, 'A' || lpad(CAST(hash(i) % 20 AS VARCHAR), 2, '0') AS asset, make_timestamptz(${first} + ${(days + 1000) * day} + i) AS ts FROM range(${scaled(100_000)}) AS r (i)`,
}

const overtaken = `SELECT p.* FROM points AS p
  QUALIFY t >= max(t) OVER (PARTITION BY metric, asset ORDER BY available_at, t, observed_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    AND lead(available_at) OVER (PARTITION BY metric, asset ORDER BY available_at, t, observed_at) IS DISTINCT FROM available_at`

/** One join for all metrics. */
function together(points: string): string {
  return `SELECT q.*, p.t, p.available_at, p.v, p.o
    FROM (SELECT d.*, m.metric FROM d, (SELECT DISTINCT metric FROM points) AS m) AS q
    ASOF LEFT JOIN ${points} AS p ON q.metric = p.metric AND q.asset = p.asset AND q.ts >= p.available_at`
}

/** One join a metric: none has to be compared by its name. */
function apart(metrics: readonly string[], points: string): string {
  return metrics
    .map(
      (metric) => `SELECT d.*, ${quote(metric)} AS metric, p.t, p.available_at, p.v, p.o
        FROM d ASOF LEFT JOIN (FROM ${points} WHERE metric = ${quote(metric)}) AS p ON d.asset = p.asset AND d.ts >= p.available_at`,
    )
    .join(' UNION ALL ')
}

async function timed(engine: Engine, sql: string): Promise<[number, string]> {
  const start = performance.now()
  await engine.run(`CREATE OR REPLACE TEMP TABLE answer AS ${sql}`)
  const seconds = (performance.now() - start) / 1000
  const [row] = await engine.rows(
    `SELECT count(*) AS n, count(t) AS known, CAST(sum(CAST(hash(id, asset, ts, metric, t, available_at, v, o) AS HUGEINT)) AS VARCHAR) AS digest FROM answer`,
  )
  return [seconds, JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))]
}

/** A question to the joins, and what is known of its points. */
interface Question {
  readonly name: string
  readonly ours: string
  readonly metrics: readonly string[]
  /** Whether some points come late: then bare joins answer otherwise, else the same. */
  readonly late: boolean
  readonly bound: number
}

/** Ours against the faster of two bare ASOF joins, and against the window form that is right with late points, too. */
async function compare(engine: Engine, { name, ours, metrics, late, bound }: Question, rounds: number) {
  const strict = `(${overtaken})`
  const forms = [ours, together('points'), apart(metrics, 'points'), together(strict)]
  const times: number[][] = forms.map(() => [])
  for (let round = -1; round < rounds; round++) {
    const results = await byTurns(
      round,
      forms.map((form) => async () => await timed(engine, form)),
    )
    const [own, one, each, right] = results.map(([, answer]) => answer)
    if (own !== right) throw new Error(`${name}: ours and the strict window form differ`)
    if (one !== each) throw new Error(`${name}: the two bare forms differ`)
    if (!late && own !== one) throw new Error(`${name}: nothing came late, and a bare ASOF JOIN answers otherwise`)
    if (round >= 0) for (const [n, [seconds]] of results.entries()) times[n]?.push(seconds)
  }
  const [own = 0, one = 0, each = 0, right = 0] = times.map(median)
  const planned = await planning(engine, ours, rounds)
  const [pitlake = [], bareOne = [], bareEach = [], exact = []] = times
  const bare = { 'bare ASOF JOIN': bareOne, 'bare, metric by metric': bareEach }
  // With late points a bare join answers wrong: it is no peer.
  figure(name, { pitlake, ...(late ? {} : bare), 'DuckDB, exact': exact })
  const line = `${name}: ${own.toFixed(3)} s (planned in ${planned.toFixed(3)}), bare in one join ${one.toFixed(3)} s, metric by metric ${each.toFixed(3)} s, strict ${right.toFixed(3)} s`
  const ratio = own / Math.min(one, each)
  return judged(`${line}, ratio to the faster bare one ${ratio.toFixed(2)}`, ratio, bound)
}

/** What binding and planning take of it, which a short question feels. */
async function planning(engine: Engine, sql: string, rounds: number): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const start = performance.now()
    await engine.run(`EXPLAIN ${sql}`)
    times.push((performance.now() - start) / 1000)
  }
  return median(times)
}

/** The join of one metric alone, where planning counts for nothing. */
const million = 'a million random'

/** The joins against bare ASOF JOINs (wrong with late points) and the strict window form, equal results asserted. */
export async function benchJoins(tell: (measured: readonly Measured[]) => void, rounds = scaled(5)): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'pitlake-bench-'))
  const engine = await Engine.open(':memory:', { threads: 2 })
  const metrics = dailyMetrics()
  try {
    for (const late of [0, 100]) {
      const files = await makeLake(engine, root, metrics, late)
      for (const { sql } of joinObjects(root, files)) await engine.run(sql)
      const read = (paths: readonly string[]): string =>
        `CREATE OR REPLACE TEMP VIEW points AS FROM read_parquet(${quoteList(paths.map((path) => inLake(root, path)))}, hive_partitioning = true, hive_types = {metric: VARCHAR, interval: VARCHAR})`
      for (const [kind, sql] of Object.entries(decisions)) {
        await engine.run(`CREATE OR REPLACE TEMP TABLE d AS ${sql}`)
        const said = `${kind} decisions, ${late / 100} % late`
        const common = { metrics, late: late > 0 }
        await engine.run(read(files.slice(0, 1).map(({ path }) => path)))
        const first = quote(metrics[0] ?? '')
        const one = {
          ...common,
          name: `pit_join, ${said}`,
          ours: `SELECT *, ${first} AS metric FROM pit_join('d', ${first}, '24h')`,
          metrics: metrics.slice(0, 1),
          // Of 100,000 decisions planning is a sixth.
          bound: kind === million ? (late === 0 ? 1 : 1.3) : 1.5,
        }
        tell([await compare(engine, one, rounds)])
        if (kind === million) continue
        await engine.run(read(files.map(({ path }) => path)))
        const all = {
          ...common,
          name: `pit_long, 20 metrics, ${said}`,
          ours: `FROM pit_long('d', ${quoteList(metrics)}, '24h')`,
          bound: 0.8,
        }
        tell([await compare(engine, all, rounds)])
      }
    }
  } finally {
    engine.close()
    rmSync(root, { recursive: true, force: true })
  }
}
