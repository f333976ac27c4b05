import { once } from 'node:events'
import { hostname, tmpdir } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { type LakeError, usage } from '../../base/errors.ts'
import type { BesideDeps } from '../../sources/http/connection.ts'
import { finishRun } from '../../maintenance/upkeep/finish.ts'
import type { RunEnd } from '../../lake/ledger/job.ts'
import type { RewriteDeps } from '../../lake/ledger/commit.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { Ledger, noLake } from '../../lake/ledger/ledger.ts'
import { programName } from './process.ts'
import type { Call, Deps } from './spec.ts'

/** Builds the real dependencies of a job that writes to a lake and contacts no provider. */
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

/** Builds the real dependencies of code that contacts a provider, in addition to those of a lake. */
export function besideWorld(deps: Deps): BesideDeps {
  const named = (name: string): string | undefined => deps.env[name] ?? deps.env[name.toUpperCase()]
  const begun = deps.now() - deps.elapsed()
  return {
    now: () => begun + deps.elapsed(),
    wait: async (ms, signal) => await deps.sleep(ms, signal),
    random: deps.random,
    signal: deps.signal,
    proxy: { http: named('http_proxy'), https: named('https_proxy'), all: named('all_proxy'), none: named('no_proxy') },
    program: programName(),
    temporary: tmpdir(),
  }
}

/** Waits until the work is stopped. */
export async function untilStopped({ signal }: Deps): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/**
 * Builds the real dependencies of a job that contacts an API; afterwards it leaves the lake merged, with current views.
 */
export function askingWorld(call: Call, command: string) {
  const { catalogue } = call
  const deps = lakeWorld(call, command)
  const note = (text: string): void => call.stderr(`note: ${text}\n`)
  const atEnd = async (end: RunEnd): Promise<void> => await finishRun(end, { catalogue, deps, note })
  return { ...besideWorld(call), ...deps, atEnd }
}

/**
 * Keeps the part of the heap small in which values are made: a job that parses a hundred megabytes of text leaves 100
 * MB of garbage there, and a process that runs for days grows it to as much, bit by bit. Collecting it more often costs
 * a twentieth of the time. Other V8s may not know the flag.
 */
export function spareHeap(): void {
  if (process.versions.node.startsWith('24.')) setFlagsFromString('--semi-space-growth-factor=1')
}

/** Builds the error for a command without a provider in the environment. */
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
export async function openedLake({ settings: { data }, now, stderr }: Call): Promise<number> {
  requireLake(data)
  using ledger = await Ledger.openToRead(data)
  const { version, committed_at } = ledger.head()
  const at = Math.floor(now() * 1000)
  if (committed_at <= at) return version
  const { clockNote } = await import('../../maintenance/upkeep/clock-ahead.ts')
  const note = clockNote(ledger, at)
  if (note !== null) stderr(`note: ${note}\n`)
  return version
}

/** Lists the APIs whose data the lake has; the steps report an unreadable lake. */
export function providersOf(root: string): Set<string> {
  const ledger = Ledger.asLeft(root)
  const provider = ledger?.head().provider ?? {}
  ledger?.close()
  return new Set(Object.keys(provider))
}
