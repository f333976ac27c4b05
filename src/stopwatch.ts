/** What a run spends its time on, nearest to its end first: what goes on at once counts for the first of them. */
const parts = ['views', 'committing', 'writing', 'proving', 'reading', 'asking', 'waiting', 'planning'] as const

type Part = (typeof parts)[number]

/** Seconds by part; `other` is what no part claims. Together they are the whole run. */
export type Spent = Readonly<Record<Part | 'other', number>>

/** Does work on the account of a part. */
export type During = <T>(part: Part, work: () => Promise<T>) => Promise<T>

/** Where nobody keeps the time. */
export const unwatched: During = async (_part, work) => await work()

/** A stopwatch over parts that overlap: each moment counts once. `elapsed`: milliseconds since the process began. */
export function stopwatch(elapsed: () => number): { readonly during: During; readonly spent: () => Spent } {
  const ms = new Map<Part | 'other', number>()
  const open = new Map<Part, number>()
  let since = 0
  const pass = (): void => {
    const now = elapsed()
    const part = parts.find((one) => (open.get(one) ?? 0) > 0) ?? 'other'
    ms.set(part, (ms.get(part) ?? 0) + now - since)
    since = now
  }
  const turn = (part: Part, by: 1 | -1): void => {
    pass()
    open.set(part, (open.get(part) ?? 0) + by)
  }
  const during: During = async (part, work) => {
    turn(part, 1)
    try {
      return await work()
    } finally {
      turn(part, -1)
    }
  }
  const spent = (): Spent => {
    pass()
    const seconds = (part: Part | 'other'): number => Math.round(ms.get(part) ?? 0) / 1000
    return Object.fromEntries([...parts, 'other' as const].map((part) => [part, seconds(part)])) as Spent
  }
  return { during, spent }
}
