import pLimit from 'p-limit'
import { afterAWhile } from '../net/ask.ts'
import type { Ask } from './plan.ts'
import { type Asking, askWindow } from './asking.ts'
import { type Again, type Answered, type Brought, isBrought } from './answered.ts'

/** Where the answers go. */
export interface AnswerSink {
  readonly concurrency: number
  /** Commits a batch; returns the windows that are to be asked once more. */
  readonly commitNow: (batch: readonly Answered[]) => Promise<readonly Again[]>
  readonly onSettled: (ask: Ask) => void
}

/** A batch is committed when it holds so many bodies and the first of them has waited so long, */
const batchBodies = 200
const batchMs = 10_000
/** or when it holds so many bodies. */
const mostBodies = 2000
/** While others let wait, what has come is committed once nothing more came for so long. */
const quietMs = 10_000
/** A batch is committed when it holds so many bytes: what is in memory at a time depends on that, not on how much is fetched. */
export const batchBytes = 32_000_000

/** Asks all windows, the first one alone because it teaches most; commits whenever enough has come. */
export async function askAll(asking: Asking, asks: readonly Ask[], to: AnswerSink): Promise<void> {
  const { concurrency, commitNow, onSettled } = to
  let waiting: Answered[] = []
  let since = 0
  const again: Again[] = []
  let committing: Promise<void> = Promise.resolve()
  const flush = async (): Promise<void> => {
    // Of a run that is stopped nothing is asked once more: what could not be decoded is judged as it is.
    const batch = asking.state.stopped === null ? waiting : waiting.map((one) => ({ ...one, again: true }))
    waiting = []
    committing = committing.then(async () => void again.push(...(await commitNow(batch))))
    await committing
  }
  let [came, armed] = [0, false]
  let forget = (): void => undefined
  const flushOnceQuiet = (): void => {
    const before = came
    armed = true
    forget = afterAWhile(quietMs, () => {
      armed = false
      if (came > before) flushOnceQuiet()
      // What is wrong with it the next one tells.
      else if (waiting.length > 0) flush().catch(() => undefined)
    })
  }
  const bringOne = async (ask: Ask, before?: Again): Promise<void> => {
    const told = await askWindow(asking, ask, before !== undefined)
    if (told.length > 0) onSettled(ask)
    const { settled } = asking.state
    const own = told.filter(({ cut }) => cut === undefined).map((one) => one.ask.settles)
    settled.set(ask.series.id, [...(settled.get(ask.series.id) ?? []), ...own])
    const answers = before?.doubted ? eitherOf(before.doubted, told) : told
    came++
    // Only now: while it was asked, the batch may have been handed over and replaced.
    if (waiting.length === 0) since = asking.deps.now()
    waiting.push(...answers)
    const bytes = waiting.reduce((sum, { body }) => sum + (body?.bytes ?? 0), 0)
    const many = waiting.length >= (asking.deps.now() - since >= batchMs ? batchBodies : mostBodies)
    if (many || bytes >= batchBytes) await flush()
    else if (!armed) flushOnceQuiet()
  }
  const limit = pLimit(concurrency)
  const [first, ...rest] = asks
  try {
    if (first) await bringOne(first)
    await all(
      rest.map((ask) => limit(bringOne, ask)),
      limit,
    )
    await flush()
    await all(
      again.splice(0).map((one) => limit(bringOne, one.ask, one)),
      limit,
    )
    await flush()
  } finally {
    forget()
  }
}

/** The second answer; where there is none that can be compared the first one, doubted as it is. */
function eitherOf(doubted: Brought, second: readonly Answered[]): Answered[] {
  const requestAlone = (one: Answered): Answered => ({ ...one, body: null, coverage: [] })
  if (second.some(isBrought)) return [requestAlone(doubted), ...second]
  return [...second.map(requestAlone), { ...doubted, again: true }]
}

/** Waits for all; after a failure nothing new is begun. */
async function all(tasks: readonly Promise<void>[], limit: { clearQueue: () => void }): Promise<void> {
  try {
    await Promise.all(tasks)
  } catch (error) {
    limit.clearQueue()
    throw error
  }
}
