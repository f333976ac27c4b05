import pLimit from 'p-limit'
import type { Ask } from './plan.ts'
import { type Asking, askWindow } from './asking.ts'
import { type Again, type Answered, type Brought, isBrought } from './answered.ts'

/** Where the answers go. */
export interface Destination {
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
/** A batch is committed when it holds so many bytes: what is in memory at a time depends on that, not on how much is fetched. */
export const batchBytes = 32_000_000

/** Asks all windows, the first one alone because it teaches most; commits whenever enough has come. */
export async function askAll(asking: Asking, asks: readonly Ask[], to: Destination): Promise<void> {
  const { concurrency, commitNow, onSettled } = to
  let waiting: Answered[] = []
  let since = 0
  const again: Again[] = []
  let committing: Promise<void> = Promise.resolve()
  const flush = async (): Promise<void> => {
    const batch = waiting
    waiting = []
    committing = committing.then(async () => void again.push(...(await commitNow(batch))))
    await committing
  }
  const bringOne = async (ask: Ask, before?: Again): Promise<void> => {
    const answers = await askWindow(asking, ask, before !== undefined)
    if (answers.length > 0) onSettled(ask)
    const came = before?.doubted ? eitherOf(before.doubted, answers) : answers
    // Only now: while it was asked, the batch may have been handed over and replaced.
    if (waiting.length === 0) since = asking.deps.now()
    waiting.push(...came)
    const bytes = waiting.reduce((sum, { body }) => sum + (body?.bytes ?? 0), 0)
    const many = waiting.length >= (asking.deps.now() - since >= batchMs ? batchBodies : mostBodies)
    if (many || bytes >= batchBytes) await flush()
  }
  const limit = pLimit(concurrency)
  const [first, ...rest] = asks
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
