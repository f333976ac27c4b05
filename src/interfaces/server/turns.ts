import { LakeError } from '../../base/errors.ts'

/** Client that waits for an answer. */
export interface Asker {
  /** The name under which places are shared: equal names are one client. */
  readonly client: string
  /** Name that a program gives itself: programs of one client share its places by turns, and get no more than these. */
  readonly program?: string | undefined
  /** Aborted when the client no longer waits. */
  readonly closed: AbortSignal
}

/** A question without a place yet. */
interface Waiter {
  readonly admit: () => void
}

/**
 * Shares the places at which answers are made among clients. A free place goes to the waiting client that has the
 * fewest; among equals they take turns. The last free place is reserved for a client that has none: however many
 * questions one client sends, the first question of another does not wait for them. The places of a client are shared
 * in the same way among its programs, which name themselves: a name gains no place that its client would not get.
 */
export class Turns {
  #free: number
  readonly #places: number
  /** Places in use by client. */
  readonly #busy = new Map<string, number>()
  /** Places in use by program, of all clients. */
  readonly #busyPrograms = new Map<string, number>()
  /**
   * Questions that wait, by client and program: first those that were admitted longest ago, each with its oldest
   * question first.
   */
  readonly #waiting = new Map<string, Map<string, Set<Waiter>>>()

  constructor(places: number) {
    this.#places = places
    this.#free = places
  }

  /** Runs the work once the client has a place; rejects as cancelled if it goes away before. */
  async take<T>({ client, program = '', closed: gone }: Asker, work: () => Promise<T>): Promise<T> {
    await this.#admission(client, program, gone)
    try {
      return await work()
    } finally {
      this.#release(client, program)
    }
  }

  async #admission(client: string, program: string, closed: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = { admit: resolve }
    const leave = (): void => {
      this.#forget(client, program, waiter)
      reject(new LakeError('stopped', { subject: 'the query was cancelled' }))
    }
    if (closed.aborted) leave()
    else {
      closed.addEventListener('abort', leave, { once: true })
      const programs = this.#waiting.get(client) ?? new Map<string, Set<Waiter>>()
      programs.set(program, (programs.get(program) ?? new Set()).add(waiter))
      this.#waiting.set(client, programs)
      this.#admit()
    }
    try {
      await promise
    } finally {
      closed.removeEventListener('abort', leave)
    }
  }

  #forget(client: string, program: string, waiter: Waiter): void {
    const programs = this.#waiting.get(client)
    const waiters = programs?.get(program)
    waiters?.delete(waiter)
    if (waiters?.size === 0) programs?.delete(program)
    if (programs?.size === 0) this.#waiting.delete(client)
  }

  #release(client: string, program: string): void {
    countDown(this.#busy, client)
    countDown(this.#busyPrograms, nameOf(client, program))
    this.#free++
    this.#admit()
  }

  /** Assigns free places as long as a waiting client may have one. */
  #admit(): void {
    for (let client = this.#next(); client !== undefined; client = this.#next()) {
      const programs = this.#waiting.get(client) ?? new Map<string, Set<Waiter>>()
      const [program = ''] = fewestFirst(
        programs.keys(),
        (programName) => this.#busyPrograms.get(nameOf(client, programName)) ?? 0,
      )
      const waiters = programs.get(program) ?? new Set()
      const [waiter] = waiters
      if (waiter === undefined) return
      waiters.delete(waiter)
      // Both are last now.
      programs.delete(program)
      if (waiters.size > 0) programs.set(program, waiters)
      this.#waiting.delete(client)
      if (programs.size > 0) this.#waiting.set(client, programs)
      countUp(this.#busy, client)
      countUp(this.#busyPrograms, nameOf(client, program))
      this.#free--
      waiter.admit()
    }
  }

  /** Chooses the client that gets the next place; undefined if there is none for those that wait. */
  #next(): string | undefined {
    if (this.#free === 0) return undefined
    const reserved = this.#free === 1 && this.#places > 1
    const free = [...this.#waiting.keys()].filter((client) => !reserved || this.#placesOf(client) === 0)
    return fewestFirst(free, (client) => this.#placesOf(client))[0]
  }

  #placesOf(client: string): number {
    return this.#busy.get(client) ?? 0
  }
}

/** Names a program of a client, apart from those of the same name of other clients. */
const nameOf = (client: string, program: string): string => JSON.stringify([client, program])

/** Names by how many places they have; among equals in their order. */
function fewestFirst(names: Iterable<string>, places: (name: string) => number): readonly string[] {
  return [...names].toSorted((a, b) => places(a) - places(b))
}

function countUp(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

/** Forgets a name that counts nothing any more. */
function countDown(counts: Map<string, number>, name: string): void {
  const left = (counts.get(name) ?? 0) - 1
  if (left === 0) counts.delete(name)
  else counts.set(name, left)
}
