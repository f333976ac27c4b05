import pLimit from 'p-limit'
import { callLater } from '../http/ask.ts'
import type { Ask } from './plan.ts'
import { type Asking, askWindow } from './asking.ts'
import { lexBody } from '../points/lexer.ts'
import type { During } from '../../base/stopwatch.ts'
import { type Retry, type Answered, type AnswerWithBody, hasBody } from './answers.ts'

/** The receiver of answers. */
export interface AnswerSink {
  /** Requests under way at a time. */
  readonly concurrency: number
  /** Commits a batch; returns the windows that are to be asked once more. */
  readonly commitNow: (batch: readonly Answered[]) => Promise<readonly Retry[]>
  /** Measures how long the reading of bodies takes. */
  readonly during: During
  /** Called when a window of the plan is resolved. */
  readonly onSettled: (ask: Ask) => void
}

/** A batch is committed when it holds so many bodies and the first of them has waited so long, */
const batchBodies = 200
const batchMs = 10_000
/** or when it holds so many bodies. */
const mostBodies = 2000
/** While others let wait, what has come is committed once nothing more came for so long. */
const quietMs = 10_000
/**
 * A batch is committed when it holds so many bytes: what is in memory at a time depends on that, not on how much is
 * fetched.
 */
export const batchBytes = 16_000_000
/** Maximum number of batches that wait for their commit; then requests wait, too. */
const mostBatches = 2

/** Asks all windows, the first one alone because it teaches most; commits whenever enough has come. */
export async function askAll(asking: Asking, asks: readonly Ask[], to: AnswerSink): Promise<void> {
  const batches = batching(asking, to)
  const bringOne = async (ask: Ask, before?: Retry): Promise<void> => {
    await batches.check()
    const answers = await askWindow(asking, ask, before !== undefined)
    if (answers.length > 0) to.onSettled(ask)
    const { resolvedWindows } = asking.state
    const resolved = answers.filter(({ cut }) => cut === undefined).map((answer) => answer.ask.settles)
    resolvedWindows.set(ask.series.id, [...(resolvedWindows.get(ask.series.id) ?? []), ...resolved])
    await batches.take(await lexed(to.during, before?.doubted ? eitherOf(before.doubted, answers) : answers))
  }
  const limit = pLimit(to.concurrency)
  const [first, ...rest] = asks
  try {
    if (first) await bringOne(first)
    await all(
      rest.map((ask) => limit(bringOne, ask)),
      limit,
    )
    await batches.flush()
    await all(
      batches.again().map((retry) => limit(bringOne, retry.ask, retry)),
      limit,
    )
    await batches.flush()
  } finally {
    await batches.end()
  }
}

/** Gathers answers and has them committed, one batch after the other, while others are asked. */
function batching(asking: Pick<Asking, 'now' | 'state'>, { commitNow }: AnswerSink) {
  let waiting: Answered[] = []
  let since = 0
  const again: Retry[] = []
  let committing: Promise<void> = Promise.resolve()
  let ahead = 0
  let hasFailed = false
  const flush = async (): Promise<void> => {
    // Of a run that is stopped nothing is asked once more: what could not be decoded is judged as it is.
    const batch = asking.state.stopped === null ? waiting : waiting.map((answer) => ({ ...answer, again: true }))
    waiting = []
    ahead++
    committing = committing.then(async () => void again.push(...(await commitNow(batch)))).finally(() => ahead--)
    await committing
  }
  let arrivals = 0
  let armed = false
  let forget = (): void => undefined
  const flushOnceQuiet = (): void => {
    const before = arrivals
    armed = true
    forget = callLater(quietMs, () => {
      armed = false
      if (arrivals > before) flushOnceQuiet()
      else if (waiting.length > 0) flush().catch(() => (hasFailed = true))
    })
  }
  return {
    /** Fails where a batch could not be committed: nothing more is asked then. */
    check: async () => (hasFailed ? await committing : undefined),
    take: async (answers: readonly Answered[]): Promise<void> => {
      arrivals++
      // Only now: while it was asked, the batch may have been handed over and replaced.
      if (waiting.length === 0) since = asking.now()
      waiting.push(...answers)
      const bytes = waiting.reduce((sum, { body }) => sum + (body?.bytes ?? 0), 0)
      const many = waiting.length >= (asking.now() - since >= batchMs ? batchBodies : mostBodies)
      if (many || bytes >= batchBytes) {
        const flushed = flush()
        if (ahead < mostBatches) flushed.catch(() => (hasFailed = true))
        else await flushed
      } else if (!armed) flushOnceQuiet()
    },
    flush,
    /** What is to be asked once more of all that was committed. */
    again: () => again.splice(0),
    end: async (): Promise<void> => {
      forget()
      await committing.catch(() => undefined)
    },
  }
}

/** Lexes the bodies of answers: there is time for that while others are requested. */
async function lexed(during: During, answers: readonly Answered[]): Promise<Answered[]> {
  const lex = async ({ body, ...answer }: Answered): Promise<Answered> =>
    body === null
      ? { body, ...answer }
      : { body: { ...body, lexed: body.lexed ?? (await lexBody(body.file)) }, ...answer }
  return await during('reading', async () => await Promise.all(answers.map(lex)))
}

/** The second answer; where there is none that can be compared the first one, doubted as it is. */
function eitherOf(doubted: AnswerWithBody, second: readonly Answered[]): Answered[] {
  const requestAlone = (answer: Answered): Answered => ({ ...answer, body: null, coverage: [] })
  if (second.some(hasBody)) return [requestAlone(doubted), ...second]
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
