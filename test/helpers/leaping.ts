import { setTimeout } from 'node:timers/promises'

/** What a job takes of a clock: instants in milliseconds and microseconds since 1970, and waiting. */
interface Clock {
  readonly now: () => number
  readonly nowMicros: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** A clock that goes on from an instant (Unix seconds) as this machine's does, and leaps to the end of every wait. */
export function leaping(from: () => number): Clock {
  const begun = performance.now()
  let leapt = 0
  const passed = (): number => performance.now() - begun + leapt
  return {
    now: () => from() * 1000 + passed(),
    nowMicros: () => Math.floor(from() * 1_000_000 + passed() * 1000),
    sleep: async (ms) => {
      const end = passed() + ms
      // What is under way beside comes first, as it would.
      await setTimeout(Math.min(ms, 5))
      leapt += Math.max(0, end - passed())
    },
  }
}
