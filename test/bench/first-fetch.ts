import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { places } from '../../src/lake/store/layout.ts'
import { byTurns, figure, judged, type Measured, median, sameRows, scaled, told } from './measured.ts'
import { cache, dltVersion, download, fetchWith, type Took, type Wish } from './programs.ts'
import { benchConfig, type Provider, root, since, withDailyProvider } from './provider.ts'

/*
 * A first fetch, from the start of the command to its views, beside three programs in one run: a plain download of the
 * same bodies by the same client, dlt with its rows, and dlt with Arrow tables. The lake and what dlt loaded hold the
 * same points in each round. `PITLAKE_BENCH_LATENCY=300` makes the provider wait that many milliseconds for each answer.
 */

const day = 86_400
const rounds = scaled(5)
const endpointsWithoutNames = [...loadCatalogue().endpoints.values()].filter(
  ({ placeholders, exchanges }) => placeholders.length + exchanges.length === 0,
)
const pathsOf = (interval: string): string[] =>
  endpointsWithoutNames.filter(({ intervals }) => intervals.some((one) => one === interval)).map(({ path }) => path)

/** Forms in which dlt takes the points of a response. */
const dltForms = ['rows', 'Arrow'] as const
type DltForm = (typeof dltForms)[number]

/** A first fetch that is measured, and the bounds that it must keep. */
interface Size {
  readonly name: string
  readonly wish: Wish
  /** Most seconds by the clock, as a multiple of the plain download's. */
  readonly download: number
  /** Least seconds of dlt, by the clock and of the processor, as a multiple of ours. */
  readonly dlt: Readonly<Record<DltForm, number>>
  /** Most memory in MB. */
  readonly megabytes: number
}

const assets = ['BTC', 'ETH']
const sizes: readonly Size[] = [
  {
    name: 'small',
    wish: { paths: pathsOf('24h'), assets, interval: '24h', until: since + scaled(1085) * day },
    download: 4,
    dlt: { rows: 3, Arrow: 1.3 },
    megabytes: 300,
  },
  {
    name: 'large',
    wish: { paths: pathsOf('1h').slice(0, 40), assets, interval: '24h,1h', until: since + scaled(1000) * day },
    download: 1.6,
    dlt: { rows: 4, Arrow: 1.5 },
    megabytes: 400,
  },
]

/** Measures first fetches of two sizes. */
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
  /** Python that has dlt; undefined where it cannot be installed. */
  readonly python: string | undefined
}

/** Runs of each program, one for each round. */
interface Runs {
  readonly ours: Took[]
  readonly download: Took[]
  readonly dlt: Readonly<Record<DltForm, Took[]>>
}

async function firstFetch(place: Place, size: Size): Promise<Measured[]> {
  const runs: Runs = { ours: [], download: [], dlt: { rows: [], Arrow: [] } }
  let points = 0
  for (let round = 0; round < rounds; round++) points = await runRound(place, size, round, runs)
  const name = `first fetch, ${points.toLocaleString('en-US')} points`
  keepFigures(name, runs)
  const slower = ratioOf(runs.ours, runs.download, 'wall')
  const memory = median(runs.ours.map(({ megabytes }) => megabytes))
  const lines = [
    judged(
      `${name}: ${secondsOf(runs.ours)}; download ${secondsOf(runs.download)}, ratio ${slower.toFixed(2)}`,
      slower,
      size.download,
    ),
    judged(`its peak memory: ${memory} MB`, memory, size.megabytes, ' MB'),
  ]
  if (place.python === undefined) return [...lines, told('dlt cannot be had here')]
  return [...lines, ...dltForms.map((form) => besideDlt(runs, form, size.dlt[form]))]
}

/** Runs every program once, in an order that turns with the round, and compares their points; gives the number of points. */
async function runRound(
  { provider, folder, config, python }: Place,
  { name, wish }: Size,
  round: number,
  runs: Runs,
): Promise<number> {
  const lake = join(folder, `${name}-${round}`)
  const forms =
    python === undefined
      ? []
      : dltForms.map((form) => ({ form, python, loaded: join(folder, `${name}-${form}-${round}`) }))
  await byTurns<unknown>(round, [
    async () => runs.ours.push(fetchWith({ folder: root, lake }, provider, config, wish)),
    async () => runs.download.push(download(provider, wish, 8)),
    ...forms.map(
      ({ form, python, loaded }) =>
        async () =>
          runs.dlt[form].push(loadWithDlt(python, provider, { folder: loaded, form }, wish)),
    ),
  ])
  for (const { loaded } of forms) {
    await expectSame(lake, loaded)
    rmSync(loaded, { recursive: true, force: true })
  }
  rmSync(lake, { recursive: true, force: true })
  return (JSON.parse(runs.ours.at(-1)?.stdout ?? '') as { points_added: number }).points_added
}

function besideDlt({ ours, dlt }: Runs, form: DltForm, bound: number): Measured {
  const clock = ratioOf(dlt[form], ours, 'wall')
  const processor = ratioOf(dlt[form], ours, 'cpu')
  const within = Math.min(clock, processor) >= bound
  const ratios = `${clock.toFixed(2)} times as long, ${processor.toFixed(2)} times the processor`
  return {
    line: `dlt with ${form}: ${secondsOf(dlt[form])}, ${ratios} (${within ? 'at least' : 'BELOW'} ${bound})`,
    within,
  }
}

function keepFigures(name: string, { ours, download: plain, dlt }: Runs): void {
  for (const [words, key] of [
    ['by the clock', 'wall'],
    ['processor', 'cpu'],
  ] as const) {
    const seconds = (taken: readonly Took[]): number[] => taken.map((run) => run[key])
    const peers = Object.fromEntries(dltForms.map((form) => [`dlt, ${form}`, seconds(dlt[form])]))
    figure(`${name} (${words})`, { pitlake: seconds(ours), ...peers })
    figure(`${name}, beside a download that keeps nothing (${words})`, {
      pitlake: seconds(ours),
      'plain download': seconds(plain),
    })
  }
}

const ratioOf = (runs: readonly Took[], others: readonly Took[], key: 'wall' | 'cpu'): number =>
  median(runs.map((run, round) => run[key] / (others[round]?.[key] ?? Number.NaN)))

const secondsOf = (runs: readonly Took[]): string =>
  `${median(runs.map(({ wall }) => wall)).toFixed(2)} s (${median(runs.map(({ cpu }) => cpu)).toFixed(2)} s of processor)`

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
  if (!has())
    spawnSync(python, ['-m', 'pip', 'install', '--quiet', `dlt[parquet]==${dltVersion}`], { stdio: 'inherit' })
  return has() ? python : undefined
}

/** What dlt is told beside the windows. */
interface DltLoad {
  readonly folder: string
  readonly form: DltForm
}

/** Loads the same windows with dlt. */
function loadWithDlt(
  python: string,
  { url }: Provider,
  { folder, form }: DltLoad,
  { paths, interval, until }: Wish,
): Took {
  const intervals = interval.split(',')
  const asked = JSON.stringify({ url, paths, assets, intervals, since, until, folder, form })
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
