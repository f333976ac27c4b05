import { setTimeout } from 'node:timers/promises'

/** What a job takes of a clock: the time that passes in milliseconds, instants since 1970, and waiting. */
interface Clock {
  readonly elapsed: () => number
  readonly now: () => number
  readonly nowMicros: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** A clock that goes on from an instant (Unix seconds) as this machine's does, and leaps to the end of every wait. */
export function leaping(from: () => number = () => 0): Clock {
  const begun = performance.now()
  let leapt = 0
  const elapsed = (): number => performance.now() - begun + leapt
  return {
    elapsed,
    now: () => from() * 1000 + elapsed(),
    nowMicros: () => Math.floor(from() * 1_000_000 + elapsed() * 1000),
    sleep: async (ms) => {
      const end = elapsed() + ms
      // What is under way beside it goes on meanwhile.
      await setTimeout(Math.min(ms, 5))
      leapt += Math.max(0, end - elapsed())
    },
  }
}

/** The world of a job of the tests that asks a provider, by such a clock. */
export function askingBy(clock: Clock, command: string) {
  return {
    ...clock,
    wait: clock.sleep,
    random: Math.random,
    signal: new AbortController().signal,
    holder: { pid: process.pid, host: 'test', command },
    program: 'pitlake test',
    proxy: {},
    onEvent: (): void => undefined,
  }
}
