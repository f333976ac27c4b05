import type { ClockInterval } from './knowledge-intervals.ts'

/** Instant at which the most cells match, and their number. */
export interface BestInstant {
  /** Begin of the last range with so many matching cells, microseconds; -Infinity if it has no begin. */
  readonly at: number
  readonly matching: number
}

/** Counts the cells that match in each state of knowledge. The intervals of one cell do not overlap. */
export class MatchingCells {
  #starts: Float64Array
  #ends: Float64Array
  #length: number
  #isSorted = false

  constructor(starts = new Float64Array(64), ends = new Float64Array(64), length = 0) {
    this.#starts = starts
    this.#ends = ends
    this.#length = length
  }

  /** Joins the intervals of the cells of several columns. */
  static joined(parts: readonly MatchingCells[]): MatchingCells {
    const length = parts.reduce((sum, part) => sum + part.#length, 0)
    const all = new MatchingCells(new Float64Array(length), new Float64Array(length), length)
    let place = 0
    for (const part of parts) {
      all.#starts.set(part.#starts.subarray(0, part.#length), place)
      all.#ends.set(part.#ends.subarray(0, part.#length), place)
      place += part.#length
    }
    return all
  }

  add(from: number, until: number): void {
    if (this.#length === this.#starts.length) {
      this.#starts = larger(this.#starts)
      this.#ends = larger(this.#ends)
    }
    this.#starts[this.#length] = from
    this.#ends[this.#length] = until
    this.#length++
    this.#isSorted = false
  }

  /** Lists the longest ranges in which `cells` cells match, in their order. */
  rangesOf(cells: number): readonly ClockInterval[] {
    const ranges: ClockInterval[] = []
    let from: number | undefined
    this.#sweep((at, matching) => {
      if (matching === cells) from ??= at
      else if (from !== undefined) {
        if (from < at) ranges.push({ from, until: at })
        from = undefined
      }
    })
    if (from !== undefined && from < Infinity) ranges.push({ from, until: Infinity })
    return ranges
  }

  /** Finds the last range in which the most cells match. */
  best(): BestInstant {
    let best: BestInstant = { at: -Infinity, matching: 0 }
    this.#sweep((at, matching) => {
      if (at < Infinity && matching >= best.matching) best = { at, matching }
    })
    return best
  }

  /** Visits each instant at which the number changes, with the number from there on. */
  #sweep(visit: (at: number, matching: number) => void): void {
    const starts = this.#starts.subarray(0, this.#length)
    const ends = this.#ends.subarray(0, this.#length)
    if (!this.#isSorted) {
      // Which start and which end belong together does not count any more.
      starts.sort()
      ends.sort()
      this.#isSorted = true
    }
    let begun = 0
    let ended = 0
    let matching = 0
    if (starts[0] !== -Infinity) visit(-Infinity, 0)
    while (begun < starts.length || ended < ends.length) {
      const at = Math.min(starts[begun] ?? Infinity, ends[ended] ?? Infinity)
      while (begun < starts.length && starts[begun] === at) begun++
      while (ended < ends.length && ends[ended] === at) ended++
      const next = begun - ended
      if (next !== matching || at === -Infinity) visit(at, next)
      matching = next
    }
  }
}

function larger(numbers: Float64Array): Float64Array {
  const copy = new Float64Array(numbers.length * 2)
  copy.set(numbers)
  return copy
}
