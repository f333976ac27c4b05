/** The parts on which a run spends its time, nearest to its end first; `other` is the time that no part claims. */
const parts = ['views', 'committing', 'writing', 'proving', 'reading', 'asking', 'waiting', 'other'] as const

/** A part of a run; derived, because `parts` lists them once. */
type Part = (typeof parts)[number]

/** Seconds by part: together they are the whole run. */
export type Spent = Readonly<Record<Part, number>>

/** Does work on the account of a part. */
export type During = <T>(part: Part, work: () => Promise<T>) => Promise<T>

/** Does work without counting its time. */
export const unwatched: During = async (_part, work) => await work()

/** Counts each moment once, for the first of the parts that go on. `elapsed`: milliseconds since the process began. */
export function stopwatch(elapsed: () => number): { readonly during: During; readonly spent: () => Spent } {
  const ms = new Map<Part, number>()
  const open: Part[] = []
  let since = 0
  const pass = (): void => {
    const now = elapsed()
    const part = parts.find((name) => open.includes(name)) ?? 'other'
    ms.set(part, (ms.get(part) ?? 0) + now - since)
    since = now
  }
  const during: During = async (part, work) => {
    pass()
    open.push(part)
    try {
      return await work()
    } finally {
      pass()
      open.splice(open.indexOf(part), 1)
    }
  }
  const spent = (): Spent => {
    pass()
    return Object.fromEntries(parts.map((part) => [part, Math.round(ms.get(part) ?? 0) / 1000])) as Spent
  }
  return { during, spent }
}
