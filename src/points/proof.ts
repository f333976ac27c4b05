import { fileOf } from './conversion.ts'
import { type ByteCounts, countBytes, hasNegativeZero } from './byte-counts.ts'
import { isNested, isNumbers, kindBits, type Lexed, lexBody } from './lexer.ts'
import type { Shape } from './shape.ts'
import type { Part } from './write.ts'

/** Proves from the bytes of bodies that reading them with declared types lost and changed nothing. */
export class Proof {
  readonly #files: readonly string[]
  readonly #shape: Shape
  readonly #lexed: Map<string, Lexed>
  readonly #counted = new Map<number, ByteCounts>()

  constructor(files: readonly string[], shape: Shape, lexed: Map<string, Lexed>) {
    this.#files = files
    this.#shape = shape
    this.#lexed = lexed
  }

  /** Reads the bytes, to be done while DuckDB reads them too: numbers are counted, nested values need a strict reading. */
  async read(bodies: readonly number[]): Promise<void> {
    for (const body of bodies) {
      const file = fileOf(this.#files, body)
      if (this.#shape.kind === 'numbers') this.#counted.set(body, await countBytes(file))
      else this.#lexed.set(file, await lexBody(file))
    }
  }

  /** Whether the body holds just what was read. */
  async holds(body: number, part: Part): Promise<boolean> {
    const file = fileOf(this.#files, body)
    const counted = this.#counted.get(body)
    if (counted && (await this.#countedAgree(counted, part, file))) return true
    const seen = this.#lexed.get(file) ?? (await lexBody(file))
    this.#lexed.set(file, seen)
    return this.#tokensAgree(seen, part)
  }

  /**
   * Every t, v and computed_at that is there brings the two quotes of its key; with no quote beyond them there is no
   * text and no further key; with no comma beyond those between them none trails; with no r and no f there is no
   * boolean. A null or missing value leaves the sums unequal, too.
   */
  async #countedAgree(counted: ByteCounts, { rows, numbers, told, zeros }: Part, file: string): Promise<boolean> {
    const keys = rows + numbers + told
    if (counted.literals || counted.quotes !== 2 * keys || counted.commas !== keys - 1) return false
    return zeros === 0 || !counted.minus || !(await hasNegativeZero(file))
  }

  /** Only known keys, each in every point, with values of the declared kind or null. */
  #tokensAgree({ problem, elements, keys, negativeZeros }: Lexed, { rows }: Part): boolean {
    const { t, v, o, computed_at: told, other } = keys
    const [value, without] = this.#shape.kind === 'objects' ? [o, v] : [v, o]
    const fits = this.#shape.kind === 'numbers' ? isNumbers : isNested
    if (problem !== null || elements !== rows || negativeZeros.length > 0) return false
    if (other.count > 0 || without.count > 0 || (told.count > 0 && !this.#shape.told)) return false
    if (t.count !== elements || t.kinds !== kindBits.number || !isNumbers(told.kinds)) return false
    return value.count === elements && fits(value.kinds)
  }
}
