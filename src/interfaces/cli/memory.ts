import { totalmem } from 'node:os'
import { mega } from '../../base/option-kinds.ts'
import { usualMemory } from '../../lake/store/memory.ts'

/**
 * What this process keeps to where nobody says: a part of the machine's memory, or of what its control group may take.
 */
export function ownMemory(): number {
  return usualMemory(Math.min(totalmem(), process.constrainedMemory() || Infinity))
}

/** Milliseconds between two looks. */
export const look = 100
/** What one large value may need beside what DuckDB counts. */
const slack = 512 * mega

/**
 * Looks again and again whether the process holds more memory than it keeps to and a large value takes; gives how to
 * stop that.
 */
export function watchMemory(keptBytes: number, tooMuch: () => void, alsoLook = (): void => undefined): () => void {
  const timer = setInterval(() => {
    if (process.memoryUsage.rss() >= keptBytes + slack) tooMuch()
    alsoLook()
  }, look)
  return () => clearInterval(timer)
}
