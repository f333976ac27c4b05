import { LakeError } from '../errors.ts'

/** How long work may take, and how that is waited for. */
export interface Limit {
  /** Undefined: as long as it likes. */
  readonly seconds: number | undefined
  /** The same as it was given: `90s`. */
  readonly told: string
  /** What to do where it took longer. */
  readonly next: string
  readonly signal: AbortSignal
  /** Ends early, without an error, when the signal is aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
}

/** Does work that is cancelled by its signal, and after so many seconds; which of both it was is told. */
export async function limited<T>(limit: Limit, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { seconds, told, next, signal, sleep } = limit
  const over = new AbortController()
  const done = new AbortController()
  const expire = async (ms: number): Promise<void> => {
    await sleep(ms, done.signal)
    if (!done.signal.aborted) over.abort()
  }
  if (seconds !== undefined) void expire(seconds * 1000)
  try {
    return await work(AbortSignal.any([signal, over.signal]))
  } catch (cause) {
    if (!over.signal.aborted) throw cause
    throw new LakeError('stopped', { subject: `the query took longer than ${told}`, next, cause })
  } finally {
    done.abort()
  }
}
