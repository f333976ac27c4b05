import { Engine } from '../store/engine.ts'
import type { Spool } from '../ledger/sweep.ts'

/** Lends an engine for one piece of work and closes it. */
export type WithEngine = <T>(work: (engine: Engine) => Promise<T>) => Promise<T>

/**
 * Engines of one run. What an engine took for one piece of work it keeps until it is closed; a new one takes a
 * hundredth of a second. One thread takes the least memory, and records are read and written in their order anyway.
 */
export function enginesOf(spool: Spool): WithEngine {
  return async (work) => {
    const options = { tempDirectory: spool.file('duckdb'), threads: 1, memoryLimit: '256MB' }
    using engine = await Engine.open(':memory:', options)
    return await work(engine)
  }
}
