import { hookNames } from '../config/health.ts'
import type { Settings } from '../config/settings.ts'
import { exitCode, LakeError } from '../errors.ts'
import { readContext, settingsOf } from './context.ts'
import type { OpenHooks } from './hooks.ts'
import type { Tell, Typed } from './spec.ts'

/** Does the work of a recorded job, then has the hooks run; a call that was refused before it began has no end. */
export async function withHooks<T>(command: string, call: Typed, work: (tell: Tell) => Promise<T>): Promise<T> {
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

/** A mistake of the configuration is told by the command itself. */
async function hooksOf(command: string, call: Typed): Promise<OpenHooks | null> {
  if ('dryRun' in call.options && call.options.dryRun === true) return null
  try {
    if (!hasHooks(settingsOf(call))) return null
    // What hooks are told is read by half of the program: loaded only where there are some.
    const { openHooks } = await import('./hooks.ts')
    return await openHooks(await readContext(call), command, (words) => call.stderr(`note: hook ${words}\n`))
  } catch (error) {
    if (error instanceof LakeError) return null
    throw error
  }
}

/** Whether the config names any. */
export function hasHooks({ hooks }: Settings): boolean {
  return hookNames.some((name) => hooks.commands[name] !== undefined)
}
