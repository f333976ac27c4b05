import { spawn } from 'node:child_process'
import { beforeLeaving } from './leave.ts'

/** One hook as it is run. */
interface Call {
  /** A line for the shell, or a program and its arguments. */
  readonly command: string | readonly string[]
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  /** Seconds. */
  readonly limit: number
  /** From then on it gets only a few seconds. */
  readonly signal: AbortSignal
}

/** What a run that was told to stop waits for at most. */
const lastSeconds = 5
const graceMs = 2000
const mostWords = 2000

/**
 * Runs a hook in a process group of its own with the facts on its standard input; null where it ended well, else what is
 * to be said of it. Nothing of the group outlives its first process, nor the limit.
 */
export async function runHook({ command, folder, env, limit, signal }: Call, facts: string): Promise<string | null> {
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
  let said = ''
  let overdue: number | null = null
  const ended = (words: string | null): void => {
    const last = said.trim().split('\n').at(-1) ?? ''
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
  child.stderr.on('data', (part: Buffer) => void (said = (said + part.toString()).slice(-mostWords)))
  child.on('error', ({ message }) => resolve(`cannot be run: ${message}`))
  child.on('exit', (code, how) => {
    kill('SIGKILL')
    const bad = code === 0 ? null : `ended with ${how ?? `exit code ${code}`}`
    const words = overdue === null ? bad : `took longer than ${overdue} s`
    child.on('close', () => ended(words))
    // Whoever left the group may hold on to the pipe.
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
