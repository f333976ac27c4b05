import { totalmem } from 'node:os'
import { mega } from '../kinds.ts'
import { usualMemory } from '../store/memory.ts'

/** What this process keeps to where nobody says: a part of the machine's memory, or of what its control group may take. */
export function ownMemory(): number {
  return usualMemory(Math.min(totalmem(), process.constrainedMemory() || Infinity))
}

/** Milliseconds between two looks. */
export const look = 100
/** What one large value may need beside what DuckDB counts. */
const slack = 512 * mega

/** How much more a process may hold for a moment than it keeps to; with more it ends. */
export function memoryBound(bytes: number): number {
  return bytes + slack
}

/** Looks again and again whether the process holds more memory than it may; gives how to stop that. */
export function watchMemory(bound: number, tooMuch: () => void, alsoLook = (): void => undefined): () => void {
  const timer = setInterval(() => {
    if (process.memoryUsage.rss() >= bound) tooMuch()
    alsoLook()
  }, look)
  return () => clearInterval(timer)
}
