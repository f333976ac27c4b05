import { once } from 'node:events'
import { hostname, tmpdir } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import type { Catalogue } from '../catalog/catalogue.ts'
import { type LakeError, usage } from '../errors.ts'
import type { BesideDeps } from '../ledger/connection.ts'
import { finishRun } from '../upkeep/finish.ts'
import type { RunEnd } from '../ledger/job.ts'
import type { RewriteDeps } from '../ledger/commit.ts'
import { isBegun } from '../store/begin.ts'
import { Ledger, noLake } from '../ledger/ledger.ts'
import { programName } from './program.ts'
import type { Deps } from './spec.ts'

/** The real world behind a job that writes to a lake and asks nobody. */
export function lakeWorld(deps: Deps, command: string): RewriteDeps {
  return {
    nowMicros: () => Math.floor(deps.now() * 1000),
    sleep: async (ms) => await deps.sleep(ms),
    random: deps.random,
    signal: deps.signal,
    holder: { pid: process.pid, host: hostname(), command: `pitlake ${command}` },
    program: programName(),
  }
}

/** The same for a job that leaves the lake with fresh views. */
export function viewingWorld(deps: Deps, command: string, catalogue: Catalogue) {
  const world = lakeWorld(deps, command)
  const atEnd = async ({ ledger }: RunEnd): Promise<void> => {
    if (ledger.head().version === 0) return
    const { buildViews } = await import('../views/build.ts')
    await buildViews(ledger, { catalogue, deps: world })
  }
  return { ...world, atEnd }
}

/** The real world behind what asks a provider beside a lake. */
export function besideWorld(deps: Deps): BesideDeps {
  const { env } = deps
  const begun = deps.now() - deps.elapsed()
  return {
    now: () => begun + deps.elapsed(),
    wait: async (ms, signal) => await deps.sleep(ms, signal),
    random: deps.random,
    signal: deps.signal,
    proxy: {
      http: env['http_proxy'] ?? env['HTTP_PROXY'],
      https: env['https_proxy'] ?? env['HTTPS_PROXY'],
      all: env['all_proxy'] ?? env['ALL_PROXY'],
      none: env['no_proxy'] ?? env['NO_PROXY'],
    },
    program: programName(),
    temporary: tmpdir(),
  }
}

/** When the work is told to stop. */
export async function untilStopped({ signal }: Deps): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** The real world behind a job that asks an API; afterwards it leaves the lake merged, with fresh views. */
export function askingWorld(deps: Deps, command: string, catalogue: Catalogue) {
  const world = lakeWorld(deps, command)
  return {
    ...besideWorld(deps),
    ...world,
    atEnd: async (end: RunEnd) =>
      await finishRun(end, { catalogue, deps: world, note: (text) => deps.stderr(`note: ${text}\n`) }),
  }
}

/**
 * Keeps the part of the heap small in which values are made: a job that takes a hundred megabytes of text apart leaves
 * 100 MB of garbage there, and a process that runs for days grows it to as much, bit by bit. Collecting it more often
 * costs a twentieth of the time. Other V8s may not know the flag.
 */
export function spareHeap(): void {
  if (process.versions.node.startsWith('24.')) setFlagsFromString('--semi-space-growth-factor=1')
}

/** Nobody was named who could be asked. */
export function noProvider(command: string): LakeError {
  const next = 'set PITLAKE_METRICS_URL and PITLAKE_METRICS_KEY, or those of the registry'
  return usage(command, { expected: 'a provider in the environment', got: 'none', next })
}

/** Refuses a folder in which no lake was begun. */
export function requireLake(root: string): void {
  if (!isBegun(root)) throw noLake(root)
}

/**
 * Refuses a folder in which no lake was begun; says on stderr where its last commit lies ahead of this machine's clock.
 * Gives the newest version.
 */
export async function openedLake(deps: Deps, root: string): Promise<number> {
  requireLake(root)
  using ledger = await Ledger.openToRead(root)
  const { version, committed_at } = ledger.head()
  const now = Math.floor(deps.now() * 1000)
  if (committed_at <= now) return version
  const { clockNote } = await import('../upkeep/clock-ahead.ts')
  const note = clockNote(ledger, now)
  if (note !== null) deps.stderr(`note: ${note}\n`)
  return version
}

/** The APIs that the lake holds data of; an unreadable lake is told by the steps. */
export function providersOf(root: string): Set<string> {
  const ledger = Ledger.asLeft(root)
  const provider = ledger?.head().provider ?? {}
  ledger?.close()
  return new Set(Object.keys(provider))
}
