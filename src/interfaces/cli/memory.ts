import { totalmem } from 'node:os'
import { mega } from '../../base/option-kinds.ts'
import { usualMemory } from '../../lake/store/memory.ts'

/**
 * Returns the default memory limit of this process: a part of the machine's memory, or of what its control group may
 * take.
 */
export function ownMemory(): number {
  return usualMemory(Math.min(totalmem(), process.constrainedMemory() || Infinity))
}

/** Milliseconds between two looks. */
export const look = 100
/** Bytes that one large value may need in addition to what DuckDB counts. */
const slack = 512 * mega

/**
 * Checks at intervals whether the process uses more memory than its limit and a large value; returns how to stop that.
 */
export function watchMemory(keptBytes: number, tooMuch: () => void, alsoLook = (): void => undefined): () => void {
  const timer = setInterval(() => {
    if (process.memoryUsage.rss() >= keptBytes + slack) tooMuch()
    alsoLook()
  }, look)
  return () => clearInterval(timer)
}
