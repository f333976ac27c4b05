import type { Engine } from '../store/engine.ts'

/** So many answers are remembered of each database. */
const most = 200

/** What a database answers to a text the same whenever and in whichever session it is asked, found out once. */
export class Remembered<T> {
  readonly #held = new WeakMap<object, Map<string, T>>()

  /** The answer to that text; one that cannot be had is asked for again. */
  async of(engine: Engine, text: string, find: () => Promise<T>): Promise<T> {
    const held = this.#held.get(engine.database) ?? new Map<string, T>()
    this.#held.set(engine.database, held)
    const known = held.get(text)
    if (known !== undefined) return known
    const found = await find()
    const [oldest] = held.keys()
    if (held.size >= most && oldest !== undefined) held.delete(oldest)
    held.set(text, found)
    return found
  }
}
