import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { Engine, quote } from '../../src/store/engine.ts'

/*
 * What comes every day: a whole `pitlake fetch`, start and views included, that brings one point to each of many series,
 * against the program before batches were converted in one pass; and the first fetch of the same series against dlt.
 * All ask the same provider on 127.0.0.1. `PITLAKE_BENCH_BEFORE` names a checkout of the earlier program.
 */

const root = fileURLToPath(new URL('../..', import.meta.url))
const cache = join(root, '.cache')
/** The last commit whose unit of work was the partition. */
const before = '9e122b1'
const day = 86_400
const since = Date.UTC(2023, 0, 1) / 1000
/** Days that the first fetch brings. */
const history = 1050
const rounds = 5
/** A top-up takes at most this part of the time that it took. */
const share = 1 / 5
/** The first fetch is at least so many times as fast as dlt's. */
const faster = 4

interface Measured {
  readonly line: string
  readonly within: boolean
}

/** A provider process and its address. */
interface Provider {
  readonly url: string
  readonly process: ChildProcess
}

/** One program with the lake that it keeps. */
interface Program {
  readonly folder: string
  readonly lake: string
}

/** Top-ups of 92 endpoints for two assets, A B A B, then the first fetch against dlt where that can be had. */
export async function benchTopUp(): Promise<Measured[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-topup-'))
  const provider = await startProvider()
  try {
    const config = join(folder, 'pitlake.yaml')
    writeFileSync(config, 'metrics: { requests_per_minute: 1000000, concurrency: 8 }\n')
    const ours: Program = { folder: root, lake: join(folder, 'ours') }
    const theirs: Program = { folder: earlierProgram(), lake: join(folder, 'before') }
    const first = fetchWith(ours, provider, config, history)
    fetchWith(theirs, provider, config, history)
    const times: [number, number][] = []
    for (let round = 1; round <= rounds; round++)
      times.push([
        fetchWith(ours, provider, config, history + round),
        fetchWith(theirs, provider, config, history + round),
      ])
    const points = await equalContent(ours, theirs)
    const [mine, other] = [median(times.map(([a]) => a)), median(times.map(([, b]) => b))]
    const ratio = median(times.map(([a, b]) => a / b))
    const top = `top-up of ${series} series, one point each (${points} in all): ${mine.toFixed(2)} s, before ${other.toFixed(2)} s, ratio ${ratio.toFixed(2)}`
    return [
      { line: `${top} (${ratio <= share ? 'within' : 'ABOVE'} ${share})`, within: ratio <= share },
      ...againstDlt(provider, folder, first),
    ]
  } finally {
    provider.process.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What a provider can be asked without names of one's own: every endpoint that has days. */
const paths = [...loadCatalogue().endpoints.values()]
  .filter(
    ({ intervals, placeholders, exchanges }) =>
      intervals.includes('24h') && placeholders.length === 0 && exchanges.length === 0,
  )
  .map(({ path }) => path)
const assets = ['BTC', 'ETH']
const series = paths.length * assets.length

async function startProvider(): Promise<Provider> {
  const child = spawn(process.execPath, [join(root, 'test/bench/topup-provider.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (text: Buffer) => resolve(String(text).trim()))
    child.once('exit', () => reject(new Error('the provider ended')))
  })
  return { url, process: child }
}

/** A checkout of the earlier program with the packages of this one. */
function earlierProgram(): string {
  const given = process.env['PITLAKE_BENCH_BEFORE']
  if (given !== undefined) return given
  const folder = join(cache, `before-${before}`)
  if (!existsSync(join(folder, 'src'))) {
    mkdirSync(cache, { recursive: true })
    const done = spawnSync('git', ['worktree', 'add', '--detach', '--force', folder, before], {
      cwd: root,
      encoding: 'utf8',
    })
    if (done.status !== 0) throw new Error(done.stderr)
  }
  if (!existsSync(join(folder, 'node_modules'))) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Seconds that a whole fetch takes that asks for the days up to the given one. */
function fetchWith({ folder, lake }: Program, { url }: Provider, config: string, days: number): number {
  const until = new Date((since + days * day) * 1000).toISOString()
  const from = new Date(since * 1000).toISOString()
  const flags = [
    '--paths',
    paths.join(','),
    '--assets',
    assets.join(','),
    '--intervals',
    '24h',
    '--since',
    from,
    '--until',
    until,
  ]
  const start = performance.now()
  const done = spawnSync(
    process.execPath,
    ['-r', './scripts/node24.cjs', 'src/main.ts', 'fetch', '--json', '--config', config, '--data', lake, ...flags],
    {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, PITLAKE_METRICS_URL: url, PITLAKE_METRICS_KEY: 'key-of-the-bench' },
    },
  )
  if (done.status !== 0) throw new Error(done.stderr)
  return (performance.now() - start) / 1000
}

/** How many points both lakes hold, the very same in both. */
async function equalContent(ours: Program, theirs: Program): Promise<number> {
  const engine = await Engine.open()
  try {
    for (const [name, { lake }] of Object.entries({ ours, theirs }))
      await engine.run(`ATTACH ${quote(join(lake, 'lake.duckdb'))} AS ${name} (READ_ONLY)`)
    const rows = (name: string): string => `SELECT * EXCLUDE (observed_at) FROM ${name}.points`
    const [row] = await engine.rows<{ points: bigint; more: bigint; less: bigint }>(
      `SELECT (SELECT count(*) FROM ours.points) AS points, (SELECT count(*) FROM (${rows('ours')} EXCEPT ALL ${rows('theirs')})) AS more,
        (SELECT count(*) FROM (${rows('theirs')} EXCEPT ALL ${rows('ours')})) AS less`,
    )
    if (row?.points !== BigInt(series * (history + rounds)) || row.more !== 0n || row.less !== 0n)
      throw new Error(`the results differ: ${row?.points} points, ${row?.more} more, ${row?.less} less`)
    return Number(row.points)
  } finally {
    engine.close()
  }
}

/** The first fetch against dlt, in turn: with rows, as its documentation begins, and with Arrow tables that the caller makes. */
function againstDlt(provider: Provider, folder: string, first: number): Measured[] {
  const python = dltPython()
  if (python === undefined)
    return [{ line: `first fetch: ${first.toFixed(2)} s; dlt cannot be had here`, within: true }]
  const config = join(folder, 'pitlake.yaml')
  const times = [0, 1, 2].map((n): [number, number, number] => [
    fetchWith({ folder: root, lake: join(folder, `first-${n}`) }, provider, config, history),
    loadWithDlt(python, provider, join(folder, `dlt-${n}`), 'rows'),
    loadWithDlt(python, provider, join(folder, `arrow-${n}`), 'arrow'),
  ])
  const [mine, rows, arrow] = [0, 1, 2].map((k) => median(times.map((round) => round[k] ?? 0)))
  const ratio = median(times.map(([a, b]) => b / a))
  const tables = median(times.map(([a, , c]) => c / a))
  const said = `first fetch of ${series} series: ${mine?.toFixed(2)} s, dlt ${rows?.toFixed(2)} s, ${ratio.toFixed(2)} times as fast`
  const verdict = ratio >= faster ? 'within' : 'BELOW'
  const other = `dlt given Arrow tables, without checks, dates or views: ${arrow?.toFixed(2)} s, ${tables.toFixed(2)} times as fast`
  return [
    { line: `${said} (${verdict} ${faster})`, within: ratio >= faster },
    { line: other, within: true },
  ]
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

/** Seconds that dlt takes for the same days, and the same number of rows. */
function loadWithDlt(python: string, { url }: Provider, folder: string, as: 'rows' | 'arrow'): number {
  const asked = JSON.stringify({
    url,
    paths,
    assets,
    since,
    until: since + history * day,
    folder,
    as,
    rows: series * history,
  })
  const start = performance.now()
  const done = spawnSync(python, [join(root, 'test/python/topup_dlt.py')], {
    input: asked,
    encoding: 'utf8',
    env: { ...process.env, RUNTIME__LOG_LEVEL: 'ERROR', RUNTIME__DLTHUB_TELEMETRY: 'false' },
  })
  if (done.status !== 0) throw new Error(done.stderr)
  return (performance.now() - start) / 1000
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
