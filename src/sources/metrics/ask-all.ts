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
  /** Commits a batch; returns the windows to request once more. */
  readonly commitNow: (batch: readonly Answered[]) => Promise<readonly Retry[]>
  /** Measures how long the reading of bodies takes. */
  readonly during: During
  /** Called when a window of the plan is resolved. */
  readonly onSettled: (ask: Ask) => void
}

/** Number of bodies at which a batch is committed if the first of them has waited for `batchMs`. */
const batchBodies = 200
const batchMs = 10_000
/** Number of bodies at which a batch is committed in any case. */
const mostBodies = 2000
/** Time without a further answer after which waiting answers are committed, in milliseconds. */
const quietMs = 10_000
/** Bytes at which a batch is committed; this limits the memory in use, however much is fetched. */
export const batchBytes = 16_000_000
/** Maximum number of batches that wait for their commit; then requests wait, too. */
const mostBatches = 2

/**
 * Requests all windows, the first one alone because its answer shows the most; commits whenever enough answers wait.
 */
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

/** Collects answers and commits them, one batch after the other, while further windows are requested. */
function batching(asking: Pick<Asking, 'now' | 'state'>, { commitNow }: AnswerSink) {
  let waiting: Answered[] = []
  let since = 0
  const again: Retry[] = []
  let committing: Promise<void> = Promise.resolve()
  let ahead = 0
  let hasFailed = false
  const flush = async (): Promise<void> => {
    // In a stopped run nothing is requested again: an undecodable body is judged as it is.
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
    /** Throws if a batch could not be committed; no further window is requested then. */
    check: async () => (hasFailed ? await committing : undefined),
    take: async (answers: readonly Answered[]): Promise<void> => {
      arrivals++
      // Set only now: while this window was requested, the batch may have been committed and replaced.
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
    /** Returns, and forgets, the committed windows to request once more. */
    again: () => again.splice(0),
    end: async (): Promise<void> => {
      forget()
      await committing.catch(() => undefined)
    },
  }
}

/** Lexes the bodies of answers; there is time for it while other windows are requested. */
async function lexed(during: During, answers: readonly Answered[]): Promise<Answered[]> {
  const lex = async ({ body, ...answer }: Answered): Promise<Answered> =>
    body === null
      ? { body, ...answer }
      : { body: { ...body, lexed: body.lexed ?? (await lexBody(body.file)) }, ...answer }
  return await during('reading', async () => await Promise.all(answers.map(lex)))
}

/** Chooses the second answer; the first one, despite the doubt, if the second cannot be compared. */
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
