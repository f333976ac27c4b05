import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { Engine, quote } from '../../src/store/engine.ts'
import { utcSql as instant } from '../../src/views/template.ts'
import { until } from './processes.ts'

/** A folder with a small lake made by hand: the names of the real one, 2 metrics × 2 assets × 100 days of 2024. */
export async function makeQueryLake(): Promise<{ readonly folder: string; readonly remove: () => Promise<void> }> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'pitlake-query-')))
  const folder = join(home, 'lake')
  await mkdir(join(folder, 'journal'), { recursive: true })
  await mkdir(join(folder, 'points'))
  const engine = await Engine.open(join(folder, 'lake.duckdb'))
  try {
    await build(engine, folder)
  } finally {
    engine.close()
  }
  return { folder, remove: async () => rm(home, { recursive: true, force: true }) }
}

async function build(engine: Engine, folder: string): Promise<void> {
  const file = quote(join(folder, 'points', 'one.parquet'))
  const day = '86400000000'
  await engine.run(`COPY (
SELECT metric, asset, '24h' AS "interval", CAST(NULL AS VARCHAR) AS currency, CAST(NULL AS VARCHAR) AS exchange, CAST(NULL AS VARCHAR) AS network, make_timestamptz(t) AS t,
 make_timestamptz(t + ${day} + 600000000) AS available_at, make_timestamptz(1735689600000000) AS observed_at,
 CASE WHEN asset = 'ETH' AND n = 3 THEN NULL ELSE CAST(n + m * 1000 AS DOUBLE) END AS v, CAST(NULL AS VARCHAR) AS o, 'assumed' AS basis
FROM (SELECT n, m, metric, asset, 1704067200000000 + n * ${day} AS t FROM range(100) AS days(n),
 (VALUES ('supply/current_pit', 1), ('indicators/one', 2)) AS metrics(metric, m), (VALUES ('BTC'), ('ETH')) AS assets(asset))
ORDER BY metric, asset, t) TO ${file} (FORMAT parquet)`)
  const asOf = instant(`getvariable('as_of')`)
  await engine.run(`CREATE VIEW points AS SELECT * FROM read_parquet([${file}])
WHERE (${asOf} IS NULL OR available_at <= ${asOf})`)
  await engine.run(`COMMENT ON COLUMN points.t IS 'start of the interval'`)
  await engine.run(`CREATE VIEW series AS SELECT DISTINCT metric, asset FROM points`)
  await engine.run(`CREATE VIEW lake_info AS SELECT ${quote(folder)} AS folder`)
  await engine.run(`CREATE VIEW endpoints AS SELECT metric, '24h' AS default_interval, CAST(NULL AS VARCHAR) AS default_currency,
 CAST(NULL AS VARCHAR) AS default_exchange, CAST(NULL AS VARCHAR) AS default_network FROM (VALUES ('supply/current_pit'), ('indicators/one')) AS known(metric)`)
  // As the real ones, these heed what may stand in for the time before the first snapshot.
  const backfill = `WHERE getvariable('registry_backfill') IS NULL OR true`
  await engine.run(`CREATE VIEW products AS SELECT 'p1' AS id ${backfill}`)
  await engine.run(`CREATE SCHEMA history`)
  await engine.run(
    `CREATE VIEW history.products AS SELECT 'p1' AS id, CAST('infinity' AS TIMESTAMPTZ) AS valid_to ${backfill}`,
  )
  await engine.run(
    `CREATE VIEW universe AS SELECT 'p1' AS product_id, 'active' AS status, ${asOf} AS seen WHERE getvariable('registry_backfill') IS NULL`,
  )
  await engine.run(`CREATE VIEW registry_start AS SELECT CAST('2024-02-01T00:00:00Z' AS TIMESTAMPTZ) AS known_since`)
  await engine.run(`CREATE MACRO calendar(since, until, step) AS TABLE
SELECT make_timestamptz(n) AS ts FROM range(epoch_us(CAST(since AS TIMESTAMP)), epoch_us(CAST(until AS TIMESTAMP)), epoch_us(step)) AS grid(n)`)
  await engine.run(`CREATE MACRO pit_long(decisions, metrics, wanted, latency := to_seconds(0), max_age := to_seconds(1000000000)) AS TABLE
SELECT d.*, m.metric, p.t, p.available_at, p.v, p.o, d.ts - p.t AS age FROM query_table(decisions) AS d, unnest(metrics) AS m(metric)
LEFT JOIN LATERAL (SELECT * FROM points AS k WHERE k.metric = m.metric AND k.asset = d.asset
 AND k.available_at <= d.ts - latency AND k.t >= d.ts - max_age ORDER BY k.t DESC LIMIT 1) AS p ON true`)
}

/** A stream that remembers what was written to it. */
export class Screen extends PassThrough {
  #text = ''

  constructor() {
    super()
    this.on('data', (part: Buffer) => {
      this.#text += part.toString('utf8')
    })
  }

  get text(): string {
    return this.#text
  }

  /** Waits until the text is there; gives what came after `from`. */
  async until(text: string, from = 0): Promise<string> {
    const came = (): string => this.#text.slice(from)
    await until(() => came().includes(text), `"${text}"`).catch((error: unknown) => {
      throw new Error(`there was: ${came()}`, { cause: error })
    })
    return came()
  }
}
