import { fileOf } from './conversion.ts'
import { agrees, type ByteCounts, countBytes } from './byte-counts.ts'
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
      const counted = this.#shape.kind === 'numbers' ? await countBytes(file, () => true) : null
      if (counted !== null) this.#counted.set(body, counted)
      else this.#lexed.set(file, await lexBody(file))
    }
  }

  /** Whether the body holds just what was read. */
  async holds(body: number, part: Part): Promise<boolean> {
    const file = fileOf(this.#files, body)
    const counted = this.#counted.get(body)
    if (counted && (await agrees(counted, part, file))) return true
    const seen = this.#lexed.get(file) ?? (await lexBody(file))
    this.#lexed.set(file, seen)
    return this.#tokensAgree(seen, part)
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
