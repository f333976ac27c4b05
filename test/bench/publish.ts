import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { commit, type StagedFile } from '../../src/lake/ledger/commit.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import { Engine, quote, quoteList } from '../../src/lake/store/engine.ts'
import { inLake, pointsFile, recentFile } from '../../src/lake/store/layout.ts'
import { deltaFiles, publishTo } from '../helpers/delta.ts'
import { commitDeps } from '../helpers/lakes.ts'
import { byTurns, figure, judged, type Measured, median, sameRows, scaled } from './measured.ts'

const metrics = [...loadCatalogue().endpoints.values()].flatMap(({ path, intervals }) =>
  intervals.includes('1h') ? [path] : [],
)
const perMetric = 20 * scaled(10_000)
const peak = fileURLToPath(new URL('peak.ts', import.meta.url))
/** Neither side is asked to wait for the disk. */
const quick: Disk = { ...realDisk, sync: async () => undefined, syncFolder: async () => undefined }

/**
 * A first publish of ten million points against DuckDB's bare COPY of the same columns of the same files to the same
 * Parquet, in processor time; what a day more costs, in seconds and files; and the memory of a lake ten times smaller.
 */
export async function benchPublish(): Promise<Measured[]> {
  const home = mkdtempSync(join(tmpdir(), 'pitlake-bench-publish-'))
  try {
    const [small, large] = [join(home, 'small'), join(home, 'large')]
    await grow(small, metrics.slice(0, 5))
    await grow(large, metrics.slice(0, 50))
    const lines = [await againstBare(home, large), memory(home, small, large)]
    return [...lines, ...(await topUp(home, large))]
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

async function grow(root: string, paths: readonly string[]): Promise<void> {
  using ledger = await Ledger.open(root)
  using engine = await Engine.open()
  mkdirSync(inLake(root, 'spool/bench'), { recursive: true })
  const file = async (path: string, at: number): Promise<StagedFile> => {
    const temporary = `spool/bench/${path.replaceAll('/', '-')}.parquet`
    await engine.run(
      `COPY (SELECT * EXCLUDE (metric, "interval") FROM (${pointsSql([path], 0, perMetric, at)}))
       TO ${quote(inLake(root, temporary))} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd)`,
    )
    const about = { table: 'points', label: '', interval: '1h', digest: null, meta: {}, min_t: 0, max_t: 0 } as const
    return { temporary, path: pointsFile(path, '1h', 'all'), metric: path, rows: perMetric, ...about }
  }
  await commit(
    ledger,
    async ({ committed_at }) => {
      const add: StagedFile[] = []
      for (const path of paths) add.push(await file(path, committed_at))
      return { job: 'fetch', run: 'bench', provider: { synthetic: true }, add }
    },
    commitDeps({ disk: quick }),
  )
}

/** Hourly points of 20 assets, one after the other, from one number on. */
function pointsSql(paths: readonly string[], from: number, rows: number, at: number): string {
  const each = rows / 20
  const t = `(1420070400 + (${from} + i % ${each}) * 3600)`
  return `SELECT metric, '1h' AS "interval", 'A' || (i // ${each}) AS asset, NULL::VARCHAR AS currency,
    NULL::VARCHAR AS exchange, NULL::VARCHAR AS network, make_timestamptz(${t} * 1000000) AS t,
    make_timestamptz((${t} + 3600 + 600) * 1000000 + i % 977) AS available_at,
    make_timestamptz(${at}::BIGINT) AS observed_at, sin(i) * 1000 AS v, NULL::VARCHAR AS o, 'assumed' AS basis,
    NULL::VARCHAR AS extra, NULL::TIMESTAMPTZ AS computed_at, NULL::TIMESTAMPTZ AS available_rule_at,
    NULL::VARCHAR AS params
    FROM (SELECT unnest([${paths.map(quote).join(', ')}]) AS metric), range(${rows}) r(i)`
}

async function againstBare(home: string, root: string): Promise<Measured> {
  using engine = await Engine.open()
  using ledger = await Ledger.open(root)
  const files = liveFiles(ledger, { table: 'points' }).map(({ path }) => inLake(root, path))
  const read = `read_parquet(${quoteList(files)}, hive_partitioning = true, hive_types = {metric: VARCHAR, interval: VARCHAR})`
  const [out, bare] = [join(home, 'out'), join(home, 'bare.parquet')]
  const times: [number, number][] = []
  for (let round = -1; round < 3; round++) {
    rmSync(out, { recursive: true, force: true })
    const publish = async (): Promise<number> =>
      await processor(async () => void (await publishTo(root, out, { disk: quick })))
    const copy = async (): Promise<number> =>
      await processor(async () => {
        await engine.run(
          `COPY (SELECT metric, asset, "interval", currency, exchange, network, t, available_at,
          coalesce(available_rule_at, available_at) AS available_rule_at, observed_at, computed_at, basis, v, o, extra
          FROM ${read}) TO ${quote(bare)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v1, DICTIONARY_SIZE_LIMIT 1)`,
        )
      })
    const [ours = 0, theirs = 0] = await byTurns(round, [publish, copy])
    if (round >= 0) times.push([ours, theirs])
  }
  // Published instants are rounded up to milliseconds.
  const rounded = (name: string): string => `epoch_ms(${name} + INTERVAL 999 MICROSECOND) AS ${name}`
  const own = ['metric', 'asset', '"interval"', 'currency', 'exchange', 'network', 'basis', 'v', 'o'].join(', ')
  const rows = (files: readonly string[]): string =>
    `(SELECT ${own}, ${['t', 'available_at', 'observed_at'].map(rounded).join(', ')} FROM read_parquet(${quoteList(files)}))`
  await sameRows(engine, 'publish', rows([...deltaFiles(join(out, 'points')).keys()]), rows([bare]))
  const [ours, theirs] = [median(times.map(([a]) => a)), median(times.map(([, b]) => b))]
  const each = { pitlake: times.map(([a]) => a), 'bare COPY': times.map(([, b]) => b) }
  figure(`publish of ${(perMetric * 50) / 1e6} M points (processor)`, each)
  const line = `publish of ${(perMetric * 50) / 1e6} million points: ${ours.toFixed(1)} s of processor time, a bare COPY ${theirs.toFixed(1)} s, ratio ${(ours / theirs).toFixed(2)}`
  return judged(line, ours / theirs, 2)
}

function memory(home: string, small: string, large: string): Measured {
  const [a, b] = [small, large].map((root) => {
    const args = [peak, 'publish', join(home, `peak-${root === small}`), '--json', '--data', root]
    const done = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: home })
    if (done.status !== 0) throw new Error(done.stderr)
    return (JSON.parse(done.stdout.trim().split('\n').at(-1) ?? '') as { megabytes: number }).megabytes
  })
  const [one = 0, ten = 0] = [a, b]
  return judged(
    `memory: ${one} MB for 1 million points, ${ten} MB for 10 million, ratio ${(ten / one).toFixed(2)}`,
    ten / one,
    1.5,
  )
}

async function topUp(home: string, root: string): Promise<Measured[]> {
  const out = join(home, 'out')
  using engine = await Engine.open()
  {
    using ledger = await Ledger.open(root)
    mkdirSync(inLake(root, 'spool/bench'), { recursive: true })
    const temporary = 'spool/bench/day.parquet'
    await commit(
      ledger,
      async ({ committed_at }) => {
        const sql = pointsSql(metrics.slice(0, 50), perMetric / 20, 24 * 20, committed_at)
        await engine.run(`COPY (${sql}) TO ${quote(inLake(root, temporary))} (FORMAT parquet, PARQUET_VERSION v2)`)
        const shares = Object.fromEntries(metrics.slice(0, 50).map((path) => [path, { '1h': [480, 0] }]))
        const about = { table: 'points', label: '', metric: null, interval: null, digest: null, min_t: 0, max_t: 0 }
        const file = { temporary, path: recentFile('day'), rows: 24 * 20 * 50, ...about, meta: { shares } }
        return { job: 'fetch', run: 'bench', provider: { synthetic: true }, add: [file] }
      },
      commitDeps({ disk: quick }),
    )
  }
  const files = (): number => readdirSync(out, { recursive: true, encoding: 'utf8' }).filter(isData).length
  const before = files()
  let most = 0
  const seconds = await processor(async () => {
    const { tables } = await publishTo(root, out, { disk: quick })
    most = Math.max(...Object.values(tables).map(({ files_added }) => files_added))
  })
  const line = `a day more: ${seconds.toFixed(2)} s of processor time, ${files() - before} files`
  return [judged(line, seconds, 5, ' s'), judged(`files of a table that a day adds: ${most}`, most, 4)]
}

const isData = (name: string): boolean => name.endsWith('.parquet') && !name.includes('_delta_log')

/** Seconds of the processor: the same on a machine that has other work. */
async function processor(work: () => Promise<void>): Promise<number> {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1e6
}
