import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

/** Waits until a condition holds, looking every 10 ms, so often at most: for four minutes where nothing is named. */
export async function until(holds: () => boolean, what: string, looks = 24_000): Promise<void> {
  for (let n = 0; n < looks; n++) {
    if (holds()) return
    await setTimeout(10)
  }
  throw new Error(`never: ${what}`)
}

/**
 * What Linux says of a process: its first thread's state and the signals that it has not taken; nothing once it ended.
 */
function standing(pid: number): { readonly state: string; readonly pending: boolean } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8')
    const state = /^State:\s*(\S)/m.exec(text)?.[1] ?? ''
    return state === 'Z' ? undefined : { state, pending: /^(?:Sig|Shd)Pnd:\s*0*[1-9a-f]/m.test(text) }
  } catch {
    return undefined
  }
}

/** Whether a process of a Linux machine is there and has not ended. */
export const alive = (pid: number): boolean => standing(pid) !== undefined

/** Waits until a process has taken every signal, done what it had to do and sleeps, or has ended. */
export async function heeded(pid: number): Promise<void> {
  let asleep = 0
  await until(() => {
    const now = standing(pid)
    asleep = now?.state === 'S' && !now.pending ? asleep + 1 : 0
    return now === undefined || asleep === 3
  }, `signals taken by ${pid}`)
}

/** Bytes that a process of a Linux machine has read from files and pipes; 0 once it ended. */
export function readBytesOf(pid: number): number {
  try {
    return Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
  } catch {
    return 0
  }
}
