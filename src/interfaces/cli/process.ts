import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { removeSpills } from '../../lake/store/files.ts'
import type { Deps } from './spec.ts'

/** The world of this process, but for what is said. */
export function ownWorld(): Omit<Deps, 'stdout' | 'stderr' | 'live' | 'isTerminal' | 'signal'> {
  return {
    now: Date.now,
    elapsed: () => performance.now(),
    sleep: async (ms, signal) => setTimeout(ms, undefined, signal ? { signal } : {}).catch(() => undefined),
    random: Math.random,
    env: process.env,
    cwd: process.cwd(),
  }
}

const cleaners = new Set<() => void>()

/** Has this done if the process must leave before its work has ended; gives how to take that back. */
export function beforeLeaving(clean: () => void): () => void {
  cleaners.add(clean)
  return () => void cleaners.delete(clean)
}

/**
 * Ends the process at once. `process.exit` waits for the threads of the engine, and one call of a function that fills
 * gigabytes ends when it likes: so the process becomes another one that ends.
 */
export function leave(code: number): void {
  for (const clean of [removeSpills, ...cleaners].toReversed()) clean()
  if (process.platform !== 'win32') process.execve?.('/bin/sh', ['sh', '-c', `exit ${code}`], {})
  process.exit(code)
}

/** The program's name and version, as entries and footers name it. */
export const programName = (): string => `pitlake ${programVersion()}`

/** The program's version. */
export function programVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
