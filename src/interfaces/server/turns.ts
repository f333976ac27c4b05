import { LakeError } from '../../base/errors.ts'

/** Who waits for an answer. */
export interface Asker {
  /** The name under which places are shared: equal names are one client. */
  readonly client: string
  /** Aborted when the client no longer waits. */
  readonly gone: AbortSignal
}

/** A question without a place yet. */
interface Waiter {
  readonly admit: () => void
}

/**
 * Shares the places at which answers are made among clients. A free place goes to the waiting client that has the fewest;
 * among equals they take turns. The last free place is reserved for a client that has none: however many questions one
 * client sends, the first question of another does not wait for them.
 */
export class Turns {
  #free: number
  readonly #places: number
  /** Places in use by client. */
  readonly #busy = new Map<string, number>()
  /** Questions that wait, by client: first the client that was admitted longest ago, each with its oldest question first. */
  readonly #waiting = new Map<string, Set<Waiter>>()

  constructor(places: number) {
    this.#places = places
    this.#free = places
  }

  /** Does the work once the client has a place; rejects as cancelled if it goes away before. */
  async take<T>({ client, gone }: Asker, work: () => Promise<T>): Promise<T> {
    await this.#admission(client, gone)
    try {
      return await work()
    } finally {
      this.#release(client)
    }
  }

  async #admission(client: string, gone: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = { admit: resolve }
    const leave = (): void => {
      this.#forget(client, waiter)
      reject(new LakeError('stopped', { subject: 'the query was cancelled' }))
    }
    if (gone.aborted) leave()
    else {
      gone.addEventListener('abort', leave, { once: true })
      this.#waiting.set(client, (this.#waiting.get(client) ?? new Set()).add(waiter))
      this.#admit()
    }
    try {
      await promise
    } finally {
      gone.removeEventListener('abort', leave)
    }
  }

  #forget(client: string, waiter: Waiter): void {
    const waiters = this.#waiting.get(client)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#waiting.delete(client)
  }

  #release(client: string): void {
    const places = this.#placesOf(client) - 1
    if (places === 0) this.#busy.delete(client)
    else this.#busy.set(client, places)
    this.#free++
    this.#admit()
  }

  /** Gives free places away as long as a waiting client may have one. */
  #admit(): void {
    for (let client = this.#next(); client !== undefined; client = this.#next()) {
      const waiters = this.#waiting.get(client) ?? new Set()
      const [waiter] = waiters
      if (waiter === undefined) return
      waiters.delete(waiter)
      // The client stands last now.
      this.#waiting.delete(client)
      if (waiters.size > 0) this.#waiting.set(client, waiters)
      this.#busy.set(client, this.#placesOf(client) + 1)
      this.#free--
      waiter.admit()
    }
  }

  /** The client that gets the next place; undefined if there is none for those that wait. */
  #next(): string | undefined {
    if (this.#free === 0) return undefined
    const reserved = this.#free === 1 && this.#places > 1
    const [first] = [...this.#waiting.keys()]
      .filter((client) => !reserved || this.#placesOf(client) === 0)
      .toSorted((a, b) => this.#placesOf(a) - this.#placesOf(b))
    return first
  }

  #placesOf(client: string): number {
    return this.#busy.get(client) ?? 0
  }
}
