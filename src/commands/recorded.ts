import { hookNames } from '../config/health.ts'
import type { Settings } from '../config/settings.ts'
import { exitCode, LakeError } from '../errors.ts'
import { readContext, settingsOf } from './context.ts'
import type { OpenHooks } from './hooks.ts'
import type { CommandContext, Deps, Input, Tell } from './spec.ts'

/** Does the work of a recorded job, then has the hooks run; a call that was refused before it began has no end. */
export async function withHooks<T>(
  command: string,
  input: Input,
  deps: Deps,
  work: (tell: Tell) => Promise<T>,
): Promise<T> {
  let report: unknown = null
  const tell: Tell = (document) => void (report = document)
  const hooks = await hooksOf(command, input, deps)
  if (hooks === null) return await work(tell)
  const end = async (exit_code: number, error: string | null): Promise<void> => {
    if (exit_code === 2 || exit_code === 7) return
    hooks.look()
    hooks.done({ exit_code, error, report })
    await hooks.idle()
  }
  let value: T
  try {
    value = await work(tell)
  } catch (error) {
    await end(exitCode(error), error instanceof Error ? error.message : String(error))
    throw error
  }
  await end(typeof value === 'number' ? value : 0, null)
  return value
}

/** A mistake of the configuration is told by the command itself. */
async function hooksOf(command: string, input: Input, deps: Deps): Promise<OpenHooks | null> {
  if ('dryRun' in input.options && input.options.dryRun === true) return null
  let context: CommandContext
  try {
    if (!hasHooks(settingsOf(input, deps))) return null
    context = await readContext(input, deps)
  } catch (error) {
    if (error instanceof LakeError) return null
    throw error
  }
  // What hooks are told is read by half of the program: loaded only where there are some.
  const { openHooks } = await import('./hooks.ts')
  return await openHooks(context, command, deps, (words) => deps.stderr(`note: hook ${words}\n`))
}

/** Whether the config names any. */
export function hasHooks({ hooks }: Settings): boolean {
  return hookNames.some((name) => hooks.commands[name] !== undefined)
}
