import { Ledger } from './ledger.ts'

/**
 * The index that the journal of a lake makes, in memory. Applying all entries takes long, so one examination applies
 * them once: first up to the version before the last, then all.
 */
export class RebuiltIndex {
  readonly #root: string
  #ledger: Ledger | undefined

  constructor(root: string) {
    this.#root = root
  }

  /** Applies the entries up to a version, by default all; the index stays open until this object is disposed. */
  async upTo(version: number = Number.POSITIVE_INFINITY): Promise<Ledger> {
    const earlier = this.#ledger
    if (earlier !== undefined && earlier.head().version <= version) {
      await earlier.catchUp(version)
      return earlier
    }
    this.close()
    this.#ledger = await Ledger.inMemory(this.#root, version)
    return this.#ledger
  }

  close(): void {
    this.#ledger?.close()
    this.#ledger = undefined
  }

  [Symbol.dispose](): void {
    this.close()
  }
}
