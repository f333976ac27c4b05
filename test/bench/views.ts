import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { commit, type Draft, type StagedFile } from '../../src/lake/ledger/commit.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { Engine, quote, quoteList } from '../../src/lake/store/engine.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { inLake, places, pointsFile } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { buildViews } from '../../src/query/views/build.ts'
import type { Interval } from '../../src/base/time.ts'
import { commitDeps, coverageRow, seriesRow } from '../helpers/lakes.ts'
import { byTurns, figure, judged, type Measured, median, sameRows, scaled } from './measured.ts'

const catalogue = loadCatalogue()
/** What views and files have in common. */
const columns = 'metric, "interval", asset, currency, exchange, network, t, available_at, observed_at, v, o, basis'
const hive = 'hive_partitioning = true, hive_types = {metric: VARCHAR, interval: VARCHAR}'
const sizes: Readonly<Record<string, number>> = { '10m': 600, '1h': 3600, '24h': 86_400 }

/**
 * The views against bare `read_parquet` on the same files, equal results asserted: an as-of view against a literal, a
 * first query on a cold connection, and what a build costs with 100,000 windows in the ledger.
 */
export async function benchViews(tell: (measured: readonly Measured[]) => void): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'pitlake-bench-views-'))
  try {
    for (const [name, work] of Object.entries({ large: asOf, many: firstQuery, wide: builds }))
      tell(await work(join(root, name)))
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

/** Thousands of files are not forced to the disk here. */
const quick = commitDeps({ disk: { ...realDisk, sync: async () => undefined } })

async function asOf(root: string): Promise<Measured[]> {
  const files = await makeLake(root, ['market/bench'], ['10m'], 8, scaled(1_000_000))
  const engine = await Engine.open(inLake(root, places.database), { readOnly: true })
  try {
    await engine.run(`SET VARIABLE as_of = '2076-06-01'`)
    const bare = `(SELECT * FROM read_parquet(${quoteList(files)}, ${hive}) WHERE available_at <= TIMESTAMPTZ '2076-06-01 00:00:00+00')`
    const query = (from: string) => async () =>
      JSON.stringify(
        (await engine.rows(`SELECT count(*)::INTEGER AS n, min(v) AS low, max(t) AS last FROM ${from} AS p`))[0],
      )
    await sameRows(engine, 'as-of view', `(SELECT ${columns} FROM points)`, `(SELECT ${columns} FROM ${bare})`)
    return [await compare('as-of view', 'the same with a literal', 1.1, 25, query('points'), query(bare))]
  } finally {
    engine.close()
  }
}

async function firstQuery(root: string): Promise<Measured[]> {
  const metrics = [...catalogue.endpoints.keys()]
  const files = await makeLake(root, metrics, ['10m', '1h', '24h'], 10, 20)
  const where = `WHERE metric = ${quote(metrics[7] ?? '')} AND "interval" = '24h'`
  const on = (database: string, from: string, options: object) => async () => {
    const engine = await Engine.open(database, options)
    try {
      return JSON.stringify(await engine.rows(`SELECT count(*)::INTEGER AS n, max(v) AS v FROM ${from} ${where}`))
    } finally {
      engine.close()
    }
  }
  {
    using engine = await Engine.open(inLake(root, places.database), { readOnly: true })
    const bare = `(SELECT ${columns} FROM read_parquet(${quoteList(files)}, ${hive}))`
    await sameRows(engine, 'open and ask', `(SELECT ${columns} FROM points)`, bare)
  }
  const list = `read_parquet(${quoteList(files)}, ${hive})`
  const glob = `read_parquet(${quote(`${root}/points/*/*/*.parquet`)}, ${hive})`
  const lake = on(inLake(root, places.database), 'points', { readOnly: true })
  const name = `open and ask, ${files.length} files`
  return [
    await compare(name, 'connect and read_parquet of the list', 3, 9, lake, on(':memory:', list, {})),
    await compare(name, 'connect and read_parquet of a glob', 3, 9, lake, on(':memory:', glob, {})),
  ]
}

/** A build with 100,000 windows, and again with nothing new; the baseline is DuckDB's copy of such a table. */
async function builds(root: string): Promise<Measured[]> {
  const ledger = await Ledger.open(root)
  const engine = await Engine.open(':memory:', { threads: 1 })
  try {
    const rows = scaled(100_000)
    const draft: Draft = {
      job: 'fetch',
      run: 'bench',
      provider: { synthetic: true },
      series: Array.from({ length: 1000 }, (_, n) => seriesRow(n)),
      coverage: Array.from({ length: rows }, (_, n) =>
        coverageRow(n % 1000, Math.floor(n / 1000) * 172_800, Math.floor(n / 1000) * 172_800 + 86_400, {
          reason: 'gap',
        }),
      ),
    }
    await commit(ledger, draft, commitDeps())
    const out = join(root, 'baseline.parquet')
    // The baseline writes what the build writes of the windows, from memory.
    await buildViews(ledger, { catalogue, deps: commitDeps() })
    const exported = (): string => `read_parquet(${quote(`${root}/exports/coverage-*.parquet`)})`
    await engine.run(`CREATE TABLE windows AS FROM ${exported()}`)
    const copy = async () => {
      await engine.run(`COPY windows TO ${quote(out)} (FORMAT parquet)`)
      return ''
    }
    const build = (force: boolean) => async () => {
      if (force) rmSync(join(root, 'exports'), { recursive: true, force: true })
      await buildViews(ledger, { catalogue, deps: commitDeps(), force })
      return ''
    }
    const name = `build of the views, ${rows.toLocaleString('en-US')} windows`
    const measured = [
      await compare(name, 'a bare COPY of these rows', 60, 3, build(true), copy),
      await compare(`${name}, nothing new`, 'a bare COPY of these rows', 15, 3, build(false), copy),
    ]
    const held = await sameRows(engine, name, exported(), `read_parquet(${quote(out)})`)
    if (held !== rows) throw new Error(`${name}: ${held} windows of ${rows}`)
    return measured
  } finally {
    engine.close()
    ledger.close()
  }
}

/** Commits `parts` files for every metric and interval and builds the views; the absolute paths of the files. */
async function makeLake(
  root: string,
  metrics: readonly string[],
  own: readonly Interval[],
  parts: number,
  rows: number,
): Promise<string[]> {
  const ledger = await Ledger.open(root)
  const engine = await Engine.open(':memory:')
  try {
    mkdirSync(inLake(root, 'spool/bench'), { recursive: true })
    const add: StagedFile[] = []
    for (const metric of metrics)
      for (const interval of own)
        for (let part = 0; part < parts; part++) {
          const temporary = `spool/bench/${add.length}.parquet`
          await engine.run(pointsSql(sizes[interval] ?? 0, part * rows, rows, inLake(root, temporary)))
          const range = { min_t: 0, max_t: 0, digest: null, meta: {} }
          add.push({
            ...range,
            temporary,
            path: pointsFile(metric, interval, `${part}-part`),
            table: 'points',
            label: '',
            metric,
            interval,
            rows,
          })
        }
    mkdirSync(dirname(inLake(root, places.database)), { recursive: true })
    await commit(ledger, { job: 'fetch', run: 'bench', provider: { synthetic: true }, add }, quick)
    await buildViews(ledger, { catalogue, deps: commitDeps() })
    return liveFiles(ledger).map((file) => inLake(root, file.path))
  } finally {
    engine.close()
    ledger.close()
  }
}

function pointsSql(size: number, from: number, rows: number, out: string): string {
  const at = (lag: number): string => `make_timestamptz((946684800 + (i + ${lag}) * ${size}) * 1000000)`
  return `COPY (SELECT 'BTC' AS asset, NULL::VARCHAR AS currency, NULL::VARCHAR AS exchange, NULL::VARCHAR AS network,
    ${at(0)} AS t, ${at(2)} AS available_at, ${at(2)} AS observed_at, sin(i) AS v, NULL::VARCHAR AS o, 'assumed' AS basis,
    NULL::VARCHAR AS extra, NULL::TIMESTAMPTZ AS computed_at, ${at(2)} AS available_rule_at, '{}' AS params
    FROM range(${from}, ${from + rows}) r(i)) TO ${quote(out)} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd)`
}

const nothing: [number, string] = [Number.NaN, '']

async function compare(
  name: string,
  baseline: string,
  bound: number,
  rounds: number,
  ours: () => Promise<string>,
  theirs: () => Promise<string>,
): Promise<Measured> {
  const times: [number, number][] = []
  for (let round = -1; round < scaled(rounds); round++) {
    const [[a, mine] = nothing, [b, other] = nothing] = await byTurns(round, [
      async () => await timed(ours),
      async () => await timed(theirs),
    ])
    if (mine !== other) throw new Error(`${name}: the results differ: ${mine} and ${other}`)
    if (round >= 0) times.push([a, b])
  }
  const [a, b] = [median(times.map(([x]) => x)), median(times.map(([, y]) => y))]
  figure(`${name} (processor)`, { pitlake: times.map(([x]) => x / 1000), [baseline]: times.map(([, y]) => y / 1000) })
  const line = `${name}: ${a.toFixed(1)} ms of processor time, ${baseline}: ${b.toFixed(1)} ms, ratio ${(a / b).toFixed(2)}`
  return judged(line, a / b, bound)
}

/** Processor time, not time on the wall: the same on a machine that has other work. */
async function timed(work: () => Promise<string>): Promise<[number, string]> {
  const start = process.cpuUsage()
  const result = await work()
  const { user, system } = process.cpuUsage(start)
  return [(user + system) / 1000, result]
}
