import { LakeError } from '../../base/errors.ts'
import { thrownBy, type ToldRefusal, unopenedLake } from './refusal.ts'

/** Message to a process: a question, or that its answer is no longer wanted. */
export type AnswererCall<Question> =
  | { readonly id: number; readonly question: Question }
  | { readonly id: number; readonly gone: true }

/** Message of a process: about itself, or about a question, whose turn begins before it has an answer. */
export type WorkerMessage<Answer> =
  | { readonly ready: unknown }
  | { readonly failed: ToldRefusal }
  | { readonly full: true }
  /** DuckDB answers nothing more in this process. */
  | { readonly broken: true }
  | { readonly id: number; readonly begun: true }
  | { readonly id: number; readonly answer: Answer }
  | { readonly id: number; readonly refused: ToldRefusal }

/** Process as its keeper sees it. */
interface Process<Question> {
  readonly send: (message: AnswererCall<Question>) => void
  /** Ends it, whatever it is at. */
  readonly kill: () => void
}

/** Starts a process; `ended` is called with how it ended, once nothing of it is left. */
export type StartWorker<Question, Answer> = (
  heard: (message: WorkerMessage<Answer>) => void,
  ended: (how: string) => void,
) => Process<Question>

/** Time limit of a question, in seconds and as it was given. */
interface TurnLimit {
  readonly seconds: number
  readonly told: string
}

/** Dependencies of an answerer on the outside world. */
interface AnswererDeps<Question, Answer> {
  readonly start: StartWorker<Question, Answer>
  /** Ends early, without an error, when the signal is aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  /** Call that a process was lost, and why. */
  readonly note: (words: string) => void
}

/** Milliseconds that a cancelled query has to end: the engine hears a cancel between chunks only. */
const grace = 2000
/** Maximum times that a question is begun, if that of another client ends the process each time. */
const mostLost = 5

/**
 * Reason why a process ended, and whether it ended by itself: then one of the questions under way may have ended it.
 */
interface Loss {
  readonly why: string
  readonly byItself: boolean
}

/** A question without an answer yet. */
interface PendingQuestion<Answer> {
  begun: boolean
  /** Reason why the answer is no longer wanted; the client gets it when the process drops the question. */
  over: LakeError | undefined
  /** Aborted when its time no longer counts. */
  clock: AbortController
  readonly end: (outcome: Outcome<Answer>) => void
}

export type Outcome<Answer> =
  | { readonly answer: Answer }
  | { readonly refused: LakeError }
  | { readonly lost: Loss; readonly begun: boolean; readonly suspect: boolean }

/** A process with its pending questions. */
interface WorkerState<Question, Answer> {
  readonly process: Process<Question>
  readonly asked: Map<number, PendingQuestion<Answer>>
  /** Report of the process about itself, or why it never answered. */
  readonly opened: PromiseWithResolvers<Outcome<unknown>>
  ready: boolean
  lost: Loss | undefined
}

/**
 * Process that answers questions, kept warm, and replaced when it is lost: because a cancelled question did not end, or
 * because one ended the process. A question is a read, so those of others are sent again. Of the questions at work in a
 * process that ended by itself each is then sent alone: the one that ends another is refused.
 */
export class Answerer<Question, Answer> implements AsyncDisposable {
  readonly #limit: TurnLimit
  readonly #deps: AnswererDeps<Question, Answer>
  #state: WorkerState<Question, Answer> | undefined
  /** Promise that settles when the last question that is sent alone has its outcome. */
  #alone: Promise<unknown> = Promise.resolve()
  #ended: Promise<void> = Promise.resolve()
  #stopped = false
  /** Whether a process was ready before. */
  #wasReady = false
  #count = 0

  constructor(limit: TurnLimit, deps: AnswererDeps<Question, Answer>) {
    this.#limit = limit
    this.#deps = deps
  }

  /** Waits for the report of a process about itself, once it can answer. */
  async ready(): Promise<unknown> {
    const opened = await this.#workerState().opened.promise
    if ('answer' in opened) return opened.answer
    throw 'refused' in opened ? opened.refused : new LakeError('unexpected', { subject: opened.lost.why })
  }

  /** Sends a question; the client may go away. */
  async ask(question: Question, closed: AbortSignal): Promise<Answer> {
    let suspect = false
    for (let losses = 0; losses < mostLost; ) {
      const outcome: Outcome<Answer> = suspect
        ? await this.#byItself(question, closed)
        : await this.#besideOthers(question, closed)
      if ('answer' in outcome) return outcome.answer
      if ('refused' in outcome) throw outcome.refused
      if (suspect && outcome.suspect) throw culprit(outcome.lost)
      suspect = outcome.suspect
      if (outcome.begun) losses++
    }
    throw new LakeError('busy', {
      subject: `the query was begun ${mostLost} times, and each time another's ended the process`,
      next: 'send it again',
    })
  }

  /** Ends the process; who still waits is refused. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true
    if (this.#state !== undefined) this.#lose(this.#state, { why: 'the program was stopped', byItself: false })
    await this.#ended
  }

  async #besideOthers(question: Question, closed: AbortSignal): Promise<Outcome<Answer>> {
    for (;;) {
      const alone = this.#alone
      await alone
      await this.#workerState().opened.promise
      if (alone === this.#alone) return await this.#send(question, closed)
    }
  }

  async #byItself(question: Question, closed: AbortSignal): Promise<Outcome<Answer>> {
    const mine = this.#alone.then(async () => await this.#send(question, closed))
    this.#alone = mine
    return await mine
  }

  async #send(question: Question, closed: AbortSignal): Promise<Outcome<Answer>> {
    const state = this.#workerState()
    const opened = await state.opened.promise
    // The operator gets the full reason why it did not open; a client does not.
    if ('refused' in opened) return { refused: unopenedLake(opened.refused) }
    if ('lost' in opened) return opened
    if (closed.aborted || this.#stopped) return { refused: cancelled() }
    if (state.lost !== undefined) return { lost: state.lost, begun: false, suspect: false }
    const id = this.#count++
    const { promise, resolve } = Promise.withResolvers<Outcome<Answer>>()
    const pending: PendingQuestion<Answer> = {
      begun: false,
      over: undefined,
      clock: new AbortController(),
      end: resolve,
    }
    const leave = (): void => this.#cancel(state, id, pending, cancelled())
    state.asked.set(id, pending)
    closed.addEventListener('abort', leave, { once: true })
    state.process.send({ id, question })
    const outcome = await promise
    closed.removeEventListener('abort', leave)
    pending.clock.abort()
    state.asked.delete(id)
    return outcome
  }

  #workerState(): WorkerState<Question, Answer> {
    this.#state ??= this.#started()
    return this.#state
  }

  #started(): WorkerState<Question, Answer> {
    const ended = Promise.withResolvers<void>()
    const process = this.#deps.start(
      (message) => this.#hear(worker, message),
      (how) => {
        this.#lose(worker, { why: `the process of the answers ended by itself (${how})`, byItself: true })
        ended.resolve()
      },
    )
    const opened = Promise.withResolvers<Outcome<unknown>>()
    const worker: WorkerState<Question, Answer> = { process, asked: new Map(), opened, ready: false, lost: undefined }
    const before = this.#ended
    this.#ended = ended.promise.then(async () => before)
    return worker
  }

  #hear(state: WorkerState<Question, Answer>, message: WorkerMessage<Answer>): void {
    if ('ready' in message) {
      state.ready = true
      this.#wasReady = true
      return state.opened.resolve({ answer: message.ready })
    }
    if ('failed' in message) {
      const refused = thrownBy(message.failed)
      // After the first one only clients send questions; the reason is noted here, then.
      if (this.#wasReady) this.#deps.note(refused.message)
      state.opened.resolve({ refused })
      return this.#lose(state, { why: 'it did not open', byItself: false })
    }
    if ('full' in message)
      return this.#lose(state, { why: 'the answers took more memory than they may', byItself: true })
    if ('broken' in message) return this.#lose(state, { why: 'DuckDB gave up after a fatal error', byItself: true })
    const pending = state.asked.get(message.id)
    if (pending === undefined) return
    if ('begun' in message) return this.#begin(state, message.id, pending)
    if ('answer' in message) return pending.end({ answer: message.answer })
    pending.end({ refused: pending.over ?? thrownBy(message.refused) })
  }

  /** Begins the time limit of a question. */
  #begin(worker: WorkerState<Question, Answer>, id: number, pending: PendingQuestion<Answer>): void {
    pending.begun = true
    if (pending.over !== undefined) return this.#watch(worker, pending)
    const { seconds, told } = this.#limit
    const next = 'query less data at once, or start it with a longer --timeout'
    void this.#after(seconds * 1000, pending, () =>
      this.#cancel(
        worker,
        id,
        pending,
        new LakeError('stopped', { subject: `the query took longer than ${told}`, next }),
      ),
    )
  }

  #cancel(worker: WorkerState<Question, Answer>, id: number, pending: PendingQuestion<Answer>, over: LakeError): void {
    if (pending.over !== undefined) return
    pending.over = over
    worker.process.send({ id, gone: true })
    // One that waits for its turn ends at once.
    if (pending.begun) this.#watch(worker, pending)
  }

  /** Ends a cancelled question, or the process: nothing else stops a single call of a function in the engine. */
  #watch(worker: WorkerState<Question, Answer>, pending: PendingQuestion<Answer>): void {
    void this.#after(grace, pending, () =>
      this.#lose(worker, { why: 'a cancelled query did not end by itself', byItself: false }),
    )
  }

  async #after(ms: number, pending: PendingQuestion<Answer>, what: () => void): Promise<void> {
    pending.clock.abort()
    pending.clock = new AbortController()
    const { signal } = pending.clock
    await this.#deps.sleep(ms, signal)
    if (!signal.aborted) what()
  }

  /** Ends a process and begins the next one; its open questions are rejected as lost. */
  #lose(state: WorkerState<Question, Answer>, loss: Loss): void {
    if (state.lost !== undefined) return
    state.lost = loss
    state.process.kill()
    state.opened.resolve({ lost: loss, begun: true, suspect: false })
    // One that was stopped is kept, so that none begins after it; after one that never answered the next question
    // tries.
    if (this.#state === state && !this.#stopped) this.#state = undefined
    if (state.ready && !this.#stopped) {
      this.#deps.note(`${loss.why}; another process goes on`)
      this.#workerState()
    }
    const pending = [...state.asked.values()]
    const idle = pending.every(({ begun }) => !begun)
    for (const { begun, over, end } of pending) {
      const refused = over ?? (this.#stopped ? cancelled() : undefined)
      const suspect = loss.byItself && (begun || idle)
      end(refused === undefined ? { lost: loss, begun: begun || suspect, suspect } : { refused })
    }
  }
}

const cancelled = (): LakeError => new LakeError('stopped', { subject: 'the query was cancelled' })

function culprit({ why }: Loss): LakeError {
  return new LakeError('incomplete', {
    subject: `the query ended two processes, the second one alone: ${why}`,
    next: 'query less data at once, or start it with a larger --memory',
  })
}
