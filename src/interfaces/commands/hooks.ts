import { spawn } from 'node:child_process'
import { givenKeys, type Settings } from '../../catalog/settings.ts'
import { LakeError } from '../../base/errors.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { alarmsOf, newAlarms, type UpstreamDifference } from '../report/alarms.ts'
import { judgedReasons } from '../report/status.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { waitForLock } from '../../lake/store/lock.ts'
import { redact } from '../../base/secrets.ts'
import { formatInstant } from '../../base/time.ts'
import { instantNow } from '../cli/context.ts'
import { standingNow } from './status.ts'
import type { Call, Deps } from '../cli/spec.ts'
import { differenceDocument } from './violations.ts'
import { lakeWorld } from '../cli/world.ts'
import { beforeLeaving } from '../cli/process.ts'
import type { hookNames } from '../../catalog/health.ts'

/** Maximum number of hooks that wait for their turn. */
const mostWaiting = 20
/** Maximum number of violations that are reported one by one. */
const mostTold = 100

/** The hooks of a job. They run one after the other, in the background. */
export interface JobHooks {
  /** Runs `on_done`: a run, or a turn of a watch, has ended. */
  readonly done: (facts: object) => void
  /** Runs the hooks for new upstream differences and new stale series. */
  readonly look: () => void
  /** Waits until all hooks have ended. */
  readonly idle: () => Promise<void>
}

/** Opens the hooks of the configuration for one command. `say` gets the message about one that failed. */
export async function openHooks(call: Call, job: string, say: (words: string) => void): Promise<JobHooks> {
  const { signal } = call
  const { data, hooks } = call.settings
  const keys = givenKeys(call.env)
  const env = { ...keylessOf(call.env, keys), PITLAKE_DATA: data }
  const before = (await alarmsNow(call))?.violations ?? []
  const complain = (words: string): void => say(redact(words, keys))
  const timeOf = (): string => formatInstant(instantNow(call))
  let line = Promise.resolve()
  let waiting = 0
  let looks = false
  let givenUp = false
  const fire: Fire = async (name, facts, at = timeOf()) => {
    const command = hooks.commands[name]
    if (command === undefined) return
    if (givenUp) return complain(`${name}: left out`)
    const { version = 0, synthetic = false } = (await alarmsNow(call)) ?? {}
    const text = JSON.stringify({ hook: name, at, data, synthetic, version, command: job, ...facts })
    const words = await runHook({ command, ...hooks, env, signal }, `${redact(text, keys)}\n`)
    if (words !== null) complain(`${name}: ${words}`)
    // A run that was stopped waits for one hook that hangs, not for several.
    givenUp ||= words !== null && signal.aborted
  }
  const queue = (work: () => Promise<void>): void => {
    line = line.then(work).catch((error: unknown) => complain(error instanceof Error ? error.message : String(error)))
  }
  return {
    done: (facts: object): void => {
      if (waiting >= mostWaiting) return complain(`on_done: left out, ${waiting} are waiting`)
      waiting++
      const at = timeOf()
      queue(async () => {
        waiting--
        await fire('on_done', facts, at)
      })
    },
    look: (): void => {
      if (looks) return
      looks = true
      queue(async () => {
        looks = false
        await tellNews(call, before, fire)
      })
    },
    idle: async (): Promise<void> => await line,
  }
}

/** Runs the hook for a written head; the job waits for it. */
export async function tellHead(call: Call, facts: object): Promise<void> {
  const { data, hooks } = call.settings
  const command = hooks.commands.on_head
  if (command === undefined) return
  const keys = givenKeys(call.env)
  const env = { ...keylessOf(call.env, keys), PITLAKE_DATA: data }
  const text = JSON.stringify({ hook: 'on_head', at: formatInstant(instantNow(call)), data, ...facts })
  const words = await runHook({ command, ...hooks, env, signal: call.signal }, `${redact(text, keys)}\n`)
  if (words !== null) call.stderr(`note: hook on_head: ${redact(words, keys)}\n`)
}

/** Name of a hook. */
type HookName = (typeof hookNames)[number]

/** Runs a hook with facts. */
type Fire = (name: HookName, facts: object, at?: string) => Promise<void>

/** Seconds for which a job waits for another one that looks for news. */
const longestLook = 60

/** Finds new alarms, which only one of several jobs reports; null if the lake is missing or unreadable. */
async function newsNow(call: Call, before: readonly UpstreamDifference[]) {
  const root = call.settings.data
  if (!isBegun(root)) return null
  const { holder, nowMicros, ...waiting } = lakeWorld(call, 'hooks')
  const own = { ...holder, since: nowMicros() }
  await using _lock = await waitForLock(root, 'alarms', own, { ...waiting, seconds: longestLook })
  const alarms = await alarmsNow(call)
  return alarms && { alarms, ...(await newAlarms(root, alarms, before)) }
}

async function tellNews(call: Call, before: readonly UpstreamDifference[], fire: Fire): Promise<void> {
  const news = await newsNow(call, before)
  if (news === null) return
  const { alarms, violations, stale } = news
  if (violations.length + stale.length === 0) return
  // Everything that `status --check` has to say now, the gravest first.
  const reasons = judgedReasons((await standingNow(call)).reasons)
  const shown = violations.slice(0, mostTold).map(differenceDocument)
  const open = alarms.violations.length
  if (violations.length > 0) await fire('on_violation', { new: violations.length, open, violations: shown, reasons })
  if (stale.length > 0) await fire('on_stale', { new: stale.length, open: alarms.stale.length, stale, reasons })
}

/** Reads the current alarms; null for a lake that is missing or unreadable: the job itself reports that. */
async function alarmsNow({ settings, catalogue, now }: Call) {
  try {
    using ledger = await Ledger.openToRead(settings.data)
    return await alarmsOf(ledger, { settings, catalogue, now: instantNow({ now }) })
  } catch (error) {
    if (error instanceof LakeError) return null
    throw error
  }
}

/** Removes our keys from the environment, in variables of any name, and the addresses of the APIs. */
export function keylessOf(env: Deps['env'], keys: readonly string[]): Record<string, string> {
  const variables = Object.entries(env).flatMap(([name, value = '']): [string, string][] =>
    ours.test(name) || redact(value, keys) !== value ? [] : [[name, value]],
  )
  return Object.fromEntries(variables)
}

const ours = /^(?:PITLAKE_.*|AWS_(?:ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN))$/i

/**
 * One hook as it is run: a line for the shell, or a program and its arguments; from the signal on it gets few seconds.
 */
type HookRun = Pick<Settings['hooks'], 'folder' | 'limit'> & {
  readonly command: string | readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** Maximum seconds that a stopped run waits for a hook. */
const lastSeconds = 5
const graceMs = 2000
const mostWords = 2000

/**
 * Runs a hook in a process group of its own with the facts on its standard input; null if it ended well, else the
 * problem. Nothing of the group outlives its first process, nor the limit.
 */
async function runHook({ command, folder, env, limit, signal }: HookRun, facts: string): Promise<string | null> {
  const [file = '', ...args] = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
  const child = spawn(file, args, { cwd: folder, env, detached: true, stdio: ['pipe', 'ignore', 'pipe'] })
  const kill = (how: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, how)
    } catch {
      // It has ended.
    }
  }
  const { promise, resolve } = Promise.withResolvers<string | null>()
  let lastError = ''
  let overdue: number | null = null
  const ended = (words: string | null): void => {
    const last = lastError.trim().split('\n').at(-1) ?? ''
    resolve(words === null || last === '' ? words : `${words}: ${last}`)
  }
  const within = (seconds: number): void => {
    after(seconds * 1000, () => {
      overdue ??= seconds
      kill('SIGTERM')
    })
    after(seconds * 1000 + graceMs, () => kill('SIGKILL'))
    after(seconds * 1000 + 2 * graceMs, () => resolve(`is still there after ${seconds} s, and cannot be ended`))
  }
  const stopped = (): void => within(Math.min(limit, lastSeconds))
  const forget = beforeLeaving(() => kill('SIGKILL'))
  child.stdin.on('error', () => undefined)
  child.stdin.end(facts)
  child.stderr.on('data', (part: Buffer) => void (lastError = (lastError + part.toString()).slice(-mostWords)))
  child.on('error', ({ message }) => resolve(`cannot be run: ${message}`))
  child.on('exit', (code, how) => {
    kill('SIGKILL')
    const bad = code === 0 ? null : `ended with ${how ?? `exit code ${code}`}`
    const words = overdue === null ? bad : `took longer than ${overdue} s`
    child.on('close', () => ended(words))
    // A process that left the group may keep the pipe open.
    after(graceMs, () => ended(words))
  })
  within(limit)
  if (signal.aborted) stopped()
  signal.addEventListener('abort', stopped)
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', stopped)
    forget()
    child.stderr.destroy()
    child.unref()
  }
}

function after(ms: number, what: () => void): void {
  AbortSignal.timeout(ms).addEventListener('abort', what)
}
