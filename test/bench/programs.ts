import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Provider, root, since } from './provider.ts'

/** Where other programs for comparison are kept. */
export const cache = join(root, '.cache')

/** Version of dlt that is measured beside a first fetch. */
export const dltVersion = '1.31.0'

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

/** What a script reads on stdin, and the exit code with which it ends well. */
interface ScriptEnd {
  readonly input?: string
  readonly code?: number
}

/** Runs a script of a folder to its end; what it does not end well is an error. */
export function runScript(
  folder: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { input = '', code = 0 }: ScriptEnd = {},
): Took {
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
  if (done.status !== code) throw new Error(done.stderr)
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
  return runScript(root, ['test/bench/bare.ts'], {}, { input: JSON.stringify({ urls, concurrency }) })
}
