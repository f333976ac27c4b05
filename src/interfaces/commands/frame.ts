import { loadCatalogue } from '../../catalog/load.ts'
import { exitCode, LakeError } from '../../base/errors.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { readContext, settingsOf } from '../cli/context.ts'
import type { SandboxScale, SandboxWorld } from './sandbox.ts'
import type { Deps, Typed } from '../cli/spec.ts'
import { hookNames } from '../../catalog/health.ts'
import type { Settings } from '../../catalog/settings.ts'
import type { JobHooks } from './hooks.ts'
import { damageBehind } from '../../query/changed-files.ts'
import { NotWhereNamed } from '../../query/refusal.ts'
import { diskError } from '../../lake/store/disk.ts'
import { jobTooLarge } from '../../lake/store/memory.ts'

/** Variables that show that the user has a provider in mind. */
const ofProviders = /^PITLAKE_(?:METRICS|REGISTRY)_(?:URL|KEY|KEY_FILE)$/

/**
 * Runs work that contacts a provider. If none is named in the environment or the configuration and the lake is known to
 * have a sandbox's data, that sandbox answers while the work lasts: never for a folder without a lake.
 */
export async function withProvider<T>(call: Typed, work: (call: Typed) => Promise<T>): Promise<T> {
  const world = 'head' in call.options && call.options.head !== undefined ? undefined : await worldFor(call)
  if (world === undefined) return work(call)
  // A run that contacts a provider does not load the sandbox.
  const { withSandbox } = await import('./sandbox.ts')
  return await withSandbox(world, call, async (env) => {
    call.stderr(`note: no provider is set and this lake is synthetic: a sandbox with its seed ${world.seed} answers\n`)
    return await work({ ...call, env: { ...call.env, ...env } })
  })
}

/** Reads the sandbox that the ledger has on record; undefined if a provider is named or the lake is not a sandbox's. */
async function worldFor(call: Typed): Promise<SandboxWorld | undefined> {
  const variables = Object.entries(call.env).filter(([name, text = '']) => ofProviders.test(name) && text.trim() !== '')
  const { data, metrics, registry } = settingsOf(call)
  const named = variables.length > 0 || metrics.url !== null || registry.url !== null
  if (named || !isBegun(data)) return undefined
  try {
    using ledger = await Ledger.openToRead(data)
    const { provider } = ledger.head()
    const names = new Set([provider?.metrics, provider?.registry].filter((name) => name !== undefined))
    const seed = /^sandbox:(\d+)$/.exec([...names][0] ?? '')?.[1]
    if (provider?.synthetic !== true || seed === undefined || names.size > 1) return undefined
    return { seed: Number(seed), scale: await scaleOf(ledger, call) }
  } catch (error) {
    // The command itself reports a lake that cannot be read.
    if (error instanceof LakeError) return undefined
    throw error
  }
}

/** Guesses the size of the registry that filled the lake: it is not recorded, but the two sizes are far apart. */
async function scaleOf(ledger: Ledger, deps: Deps): Promise<SandboxScale> {
  if (ledger.head().provider?.registry === undefined) return 'demo'
  const { registryStatus } = await import('../../sources/registry/status.ts')
  const { records } = await registryStatus(ledger, loadCatalogue(), deps.now(), null)
  return (records['products'] ?? 0) > 2000 ? 'full' : 'demo'
}

/** Runs the work of a recorded job, then its hooks; a call that was refused before it began has no end. */
export async function withHooks<T>(
  command: string,
  call: Typed,
  work: (tell: (document: unknown) => void) => Promise<T>,
): Promise<T> {
  let report: unknown = null
  const hooks = await hooksOf(command, call)
  const end = async (exit_code: number, error: string | null): Promise<void> => {
    if (hooks === null || exit_code === 2 || exit_code === 7) return
    hooks.look()
    hooks.done({ exit_code, error, report })
    await hooks.idle()
  }
  let value: T
  try {
    value = await work((document) => void (report = document))
  } catch (error) {
    await end(exitCode(error), error instanceof Error ? error.message : String(error))
    throw error
  }
  await end(typeof value === 'number' ? value : 0, null)
  return value
}

/**
 * Reads the hooks of a command; null if it has none, in a dry run, or on a mistake of the configuration, which the
 * command itself reports.
 */
async function hooksOf(command: string, call: Typed): Promise<JobHooks | null> {
  if ('dryRun' in call.options && call.options.dryRun === true) return null
  try {
    if (!hasHooks(settingsOf(call))) return null
    // The facts for hooks are read by half of the program: loaded only if there are hooks.
    const { openHooks } = await import('./hooks.ts')
    return await openHooks(await readContext(call), command, (words) => call.stderr(`note: hook ${words}\n`))
  } catch (error) {
    if (error instanceof LakeError) return null
    throw error
  }
}

/** Whether the config names any. */
export const hasHooks = ({ hooks }: Settings): boolean => hookNames.some((name) => hooks.commands[name] !== undefined)

/**
 * Explains an unforeseen error by its origin: a file of the lake that is damaged or gone, a lack of memory, or a disk
 * that would not take it; else returns the error itself.
 */
export async function explainThrown(thrown: unknown, command: string, data: string): Promise<unknown> {
  // An error from closing a thing must not hide the reason for closing it.
  const error: unknown = thrown instanceof Error && 'suppressed' in thrown ? thrown.suppressed : thrown
  const unforeseen = exitCode(error) === 1
  if (!unforeseen && !(error instanceof NotWhereNamed)) return error
  const damage = await damageBehind(data, error)
  if (damage !== null || !unforeseen) return damage ?? error
  const reported = diskError(error, `pitlake ${command}`)
  if (reported instanceof LakeError && reported.kind === 'incomplete') return reported
  return jobTooLarge(error, `pitlake ${command}`) ?? error
}
