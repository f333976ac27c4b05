import { readFileSync, rmSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { removeSpills } from '../../lake/store/files.ts'
import type { Deps } from './spec.ts'

/** Builds the dependencies of this process, without the missing ones. */
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

/** Removes what work that has not ended leaves behind. */
export function cleanUp(): void {
  for (const clean of [removeSpills, ...cleaners].toReversed()) clean()
}

/** Registers work to do if the process must leave early; returns how to take that back. */
export function beforeLeaving(clean: () => void): () => void {
  cleaners.add(clean)
  return () => void cleaners.delete(clean)
}

/**
 * Ends the process at once. `process.exit` waits for the threads of the engine, and one call of a function that fills
 * gigabytes ends when it likes: so the process becomes another one that ends.
 */
export function exitAtOnce(code: number): void {
  cleanUp()
  if (process.platform !== 'win32') process.execve?.('/bin/sh', ['sh', '-c', `exit ${code}`], {})
  process.exit(code)
}

/** Removes a folder in which threads of this process may still write. */
export function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 3 })
}

/** The signals that stop a command in good order. */
export const stopSignals = ['SIGINT', 'SIGTERM'] as const

/**
 * Runs work during which a stop signal ends the process at once, as the system does it: a parser that works for minutes
 * hears no signal. Nothing is written meanwhile, so there is nothing to clean up.
 */
export function endingAtOnce<T>(work: () => T): T {
  const listeners = stopSignals.map((signal) => [signal, process.listeners(signal)] as const)
  for (const signal of stopSignals) process.removeAllListeners(signal)
  try {
    return work()
  } finally {
    for (const [signal, ours] of listeners) for (const listener of ours) process.on(signal, listener)
  }
}

/** Returns the program's name and version, as in entries and footers. */
export const programName = (): string => `pitlake ${programVersion()}`

/** Reads the program's version. */
export function programVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
