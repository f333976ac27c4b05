import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { places } from '../../src/lake/store/layout.ts'
import { type Provider, root, since } from './provider.ts'

/** The last commit whose unit of work was the partition. */
const before = '9e122b1'
/** Where other programs for comparison are kept. */
export const cache = join(root, '.cache')

/** One program with the lake that it keeps. */
export interface Program {
  readonly folder: string
  readonly lake: string
}

/** What a run of a program took. */
export interface Took {
  /** Seconds from its start to its end. */
  readonly wall: number
  /** Seconds of all processors together. */
  readonly cpu: number
  readonly megabytes: number
  readonly stdout: string
}

/** Series, and the range of t (Unix seconds) that is to be brought: from the beginning unless said. */
export interface Wish {
  readonly paths: readonly string[]
  readonly assets: readonly string[]
  /** One interval or several, by comma. */
  readonly interval: string
  readonly since?: number
  readonly until: number
}

/** Runs a script of a folder to its end; what it does not end well is an error. */
export function runScript(folder: string, args: readonly string[], env: NodeJS.ProcessEnv, input = ''): Took {
  const usage = join(cache, `usage-${process.pid}.json`)
  const preloaded = ['--import', join(root, 'test/bench/usage.ts'), '-r', join(folder, 'scripts/fixed-node.cjs')]
  mkdirSync(cache, { recursive: true })
  const begun = performance.now()
  const done = spawnSync(process.execPath, [...preloaded, ...args], {
    cwd: folder,
    encoding: 'utf8',
    input,
    maxBuffer: 1 << 30,
    env: { ...process.env, ...env, PITLAKE_BENCH_USAGE: usage },
  })
  const wall = (performance.now() - begun) / 1000
  if (done.status !== 0) throw new Error(done.stderr)
  const own = JSON.parse(readFileSync(usage, 'utf8')) as Pick<Took, 'cpu' | 'megabytes'>
  rmSync(usage)
  return { wall, stdout: done.stdout, ...own }
}

/** A whole `pitlake fetch`, start and views included. */
export function fetchWith({ folder, lake }: Program, { url }: Provider, config: string, wish: Wish): Took {
  const instant = (at: number): string => new Date(at * 1000).toISOString()
  const selected = ['--paths', wish.paths.join(','), '--assets', wish.assets.join(','), '--intervals', wish.interval]
  const range = ['--since', instant(wish.since ?? since), '--until', instant(wish.until)]
  const args = ['src/main.ts', 'fetch', '--json', '--config', config, '--data', lake, ...selected, ...range]
  return runScript(folder, args, { PITLAKE_METRICS_URL: url, PITLAKE_METRICS_KEY: 'key-of-the-bench' })
}

/** The plain download of the same windows, so many at once. */
export function download({ url }: Provider, { paths, assets, interval, until, ...wish }: Wish, concurrency: number) {
  const urls = paths.flatMap((path) =>
    assets.flatMap((asset) =>
      interval.split(',').map((each) => {
        const query = `a=${asset}&s=${wish.since ?? since}&u=${until}&i=${each}`
        return `${url}/v1/metrics/${path}?${query}`
      }),
    ),
  )
  return runScript(root, ['test/bench/bare.ts'], {}, JSON.stringify({ urls, concurrency }))
}

/** A checkout of the earlier program with the packages of this one; `PITLAKE_BENCH_BEFORE` names one that is there. */
export function earlierProgram(): string {
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

/** How many points both lakes hold, the very same in both; the instants at which they came aside. */
export async function samePoints(ours: string, theirs: string): Promise<number> {
  using engine = await Engine.open()
  for (const [name, lake] of Object.entries({ ours, theirs }))
    await engine.run(`ATTACH ${quote(join(lake, places.database))} AS ${name} (READ_ONLY)`)
  const rows = (name: string): string => `SELECT * EXCLUDE (observed_at) FROM ${name}.points`
  const [row] = await engine.rows<{ points: bigint; more: bigint; less: bigint }>(
    `SELECT (SELECT count(*) FROM ours.points) AS points, (SELECT count(*) FROM (${rows('ours')} EXCEPT ALL ${rows('theirs')})) AS more,
      (SELECT count(*) FROM (${rows('theirs')} EXCEPT ALL ${rows('ours')})) AS less`,
  )
  if (row === undefined || row.more !== 0n || row.less !== 0n)
    throw new Error(`the results differ: ${row?.points} points, ${row?.more} more, ${row?.less} less`)
  return Number(row.points)
}
