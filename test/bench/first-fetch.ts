import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { places } from '../../src/lake/store/layout.ts'
import { figure, judged, type Measured, median, sameRows, scaled, told } from './measured.ts'
import { cache, download, fetchWith, type Took, type Wish } from './programs.ts'
import { benchConfig, type Provider, root, since, withDailyProvider } from './provider.ts'

/*
 * The first fetch, start and views included, against the plain download of the same bodies by the same client and
 * against dlt with its workers, in one run; the points of both are the same, each way. Then the same where each answer
 * waits.
 */

const day = 86_400
const rounds = scaled(5)
const free = [...loadCatalogue().endpoints.values()].filter(
  (one) => one.placeholders.length + one.exchanges.length === 0,
)
const pathsOf = (interval: string): string[] =>
  free.filter(({ intervals }) => intervals.some((one) => one === interval)).map(({ path }) => path)

/**
 * What is fetched, how much longer than the download it may take, how many times as fast as dlt it is, and the largest
 * memory.
 */
interface Size {
  readonly name: string
  readonly wish: Wish
  readonly download: number
  readonly dlt: number
  readonly megabytes: number
}

const assets = ['BTC', 'ETH']
const sizes: readonly Size[] = [
  {
    name: 'small',
    wish: { paths: pathsOf('24h'), assets, interval: '24h', until: since + scaled(1085) * day },
    download: 4,
    dlt: 3,
    megabytes: 300,
  },
  {
    name: 'large',
    wish: { paths: pathsOf('1h').slice(0, 40), assets, interval: '24h,1h', until: since + scaled(1000) * day },
    download: 1.6,
    dlt: 4,
    megabytes: 400,
  },
]

/** First fetches of two sizes; `PITLAKE_BENCH_LATENCY=300` has each answer wait so many milliseconds. */
export async function benchFirstFetch(tell: (measured: readonly Measured[]) => void): Promise<void> {
  const latency = Number(process.env['PITLAKE_BENCH_LATENCY'] ?? 0)
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-first-'))
  const config = join(folder, 'pitlake.yaml')
  writeFileSync(config, benchConfig())
  const python = dltPython()
  try {
    await withDailyProvider(async (provider) => {
      for (const size of sizes) tell(await firstFetch({ provider, folder, config, python }, size))
    }, `latency=${latency}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Place {
  readonly provider: Provider
  readonly folder: string
  readonly config: string
  readonly python: string | undefined
}

async function firstFetch({ provider, folder, config, python }: Place, size: Size): Promise<Measured[]> {
  const { name, wish } = size
  const times: { readonly ours: Took; readonly bare: Took; readonly dlt: Took | undefined }[] = []
  let points = 0
  for (let n = 0; n < rounds; n++) {
    const lake = join(folder, `${name}-${n}`)
    const theirs = join(folder, `${name}-dlt-${n}`)
    const bare = download(provider, wish, 8)
    const ours = fetchWith({ folder: root, lake }, provider, config, wish)
    points = (JSON.parse(ours.stdout) as { points_added: number }).points_added
    const dlt = python === undefined ? undefined : loadWithDlt(python, provider, { folder: theirs, rows: points }, wish)
    if (dlt !== undefined) await expectSame(lake, theirs)
    times.push({ ours, bare, dlt })
    for (const path of [lake, theirs]) rmSync(path, { recursive: true, force: true })
  }
  const middle = (of: (time: (typeof times)[number]) => number): number => median(times.map(of))
  const took = (runs: readonly Took[]): string =>
    `${median(runs.map(({ wall }) => wall)).toFixed(2)} s (${median(runs.map(({ cpu }) => cpu)).toFixed(2)} s of processor)`
  const ours = times.map((time) => time.ours)
  const bare = times.map((time) => time.bare)
  const beside = middle((time) => time.ours.wall / time.bare.wall)
  const memory = middle((time) => time.ours.megabytes)
  const lines = [
    judged(
      `first fetch of ${points} points: ${took(ours)}; download ${took(bare)}, ratio ${beside.toFixed(2)}`,
      beside,
      size.download,
    ),
    judged(`its peak memory: ${memory} MB`, memory, size.megabytes, ' MB'),
  ]
  const theirs = times.flatMap(({ dlt }) => dlt ?? [])
  const walls = (runs: readonly Took[]): number[] => runs.map(({ wall }) => wall)
  figure(`first fetch, ${points} points`, { pitlake: walls(ours), dlt: walls(theirs), 'plain download': walls(bare) })
  if (theirs.length === 0) return [...lines, told('dlt cannot be had here')]
  const faster = middle(({ ours: own, dlt }) => (dlt?.wall ?? 0) / own.wall)
  const line = `dlt: ${took(theirs)}, ${faster.toFixed(2)} times as long (at least ${size.dlt})`
  return [...lines, { line, within: faster >= size.dlt }]
}

/** Fails unless the lake and what dlt loaded hold the same points. */
async function expectSame(lake: string, theirs: string): Promise<void> {
  using engine = await Engine.open()
  await engine.run(`ATTACH ${quote(join(lake, places.database))} AS ours (READ_ONLY)`)
  const points = 'metric, asset, "interval", epoch_us(t) // 1000000 AS t, v'
  const loaded = `read_parquet(${quote(join(theirs, 'data/lake/points/*.parquet'))})`
  const own = `(SELECT ${points}, epoch_us(computed_at) // 1000000 AS computed_at FROM ours.points)`
  await sameRows(engine, 'points', own, `(SELECT metric, asset, "interval", t, v, computed_at FROM ${loaded})`)
}

/** Python with dlt from its registry, in a folder of its own; undefined where either cannot be had. */
function dltPython(): string | undefined {
  const venv = join(cache, 'dlt')
  const python = join(venv, 'bin', 'python')
  const has = (): boolean => spawnSync(python, ['-c', 'import dlt, pyarrow']).status === 0
  if (!existsSync(python) && spawnSync('python3', ['-m', 'venv', venv]).status !== 0) return undefined
  if (!has()) spawnSync(python, ['-m', 'pip', 'install', '--quiet', 'dlt[parquet]==1.31.0'], { stdio: 'inherit' })
  return has() ? python : undefined
}

/** What dlt takes for the same windows, and the same number of rows. */
function loadWithDlt(
  python: string,
  { url }: Provider,
  { folder, rows }: { readonly folder: string; readonly rows: number },
  { paths, interval, until }: Wish,
): Took {
  const asked = JSON.stringify({
    url,
    paths,
    assets,
    intervals: interval.split(','),
    since,
    until,
    folder,
    as: 'rows',
    rows,
  })
  const workers = process.env['PITLAKE_BENCH_DLT_WORKERS']
  const many = workers === undefined ? {} : { NORMALIZE__WORKERS: workers, DATA_WRITER__FILE_MAX_ITEMS: '100000' }
  const start = performance.now()
  const done = spawnSync(python, [join(root, 'test/python/first_dlt.py')], {
    input: asked,
    encoding: 'utf8',
    env: { ...process.env, RUNTIME__LOG_LEVEL: 'ERROR', RUNTIME__DLTHUB_TELEMETRY: 'false', ...many },
  })
  const wall = (performance.now() - start) / 1000
  if (done.status !== 0) throw new Error(done.stderr)
  const own = JSON.parse(done.stdout.trimEnd().split('\n').at(-1) ?? '') as Pick<Took, 'cpu' | 'megabytes'>
  return { wall, stdout: '', ...own }
}
