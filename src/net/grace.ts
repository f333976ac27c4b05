/** How long what is in flight may still take once a run was interrupted: with the commit it ends within ten seconds. */
export const interruptedMs = 6_000

/** Does something once so much real time has passed, unless what it gives back is called before; keeps no process alive. */
export function afterAWhile(ms: number, act: () => void): () => void {
  const signal = AbortSignal.timeout(ms)
  signal.addEventListener('abort', act)
  return () => signal.removeEventListener('abort', act)
}
