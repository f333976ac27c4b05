import type { ClockInterval } from './knowledge-intervals.ts'

/** Instant at which the most cells match, and their number. */
export interface BestInstant {
  /** Begin of the last range with so many matching cells, microseconds; -Infinity if it has no begin. */
  readonly at: number
  readonly matching: number
}

/** Numbers of cells that match in each state of knowledge. The intervals of one cell do not overlap. */
export class MatchingCells {
  readonly #starts: number[] = []
  readonly #ends: number[] = []

  add({ from, until }: ClockInterval): void {
    this.#starts.push(from)
    this.#ends.push(until)
  }

  /** Takes over the intervals of other cells. */
  addAll(other: MatchingCells): void {
    for (const start of other.#starts) this.#starts.push(start)
    for (const end of other.#ends) this.#ends.push(end)
  }

  /** Lists the longest ranges in which `cells` cells match, in their order. */
  rangesOf(cells: number): readonly ClockInterval[] {
    const ranges: ClockInterval[] = []
    let from: number | undefined
    for (const { at, matching } of this.#steps()) {
      if (matching === cells) from ??= at
      else if (from !== undefined) {
        if (from < at) ranges.push({ from, until: at })
        from = undefined
      }
    }
    if (from !== undefined && from < Infinity) ranges.push({ from, until: Infinity })
    return ranges
  }

  /** Finds the last range in which the most cells match. */
  best(): BestInstant {
    let best: BestInstant = { at: -Infinity, matching: 0 }
    for (const step of this.#steps()) if (step.at < Infinity && step.matching >= best.matching) best = step
    return best
  }

  /** Returns each instant at which the number changes, and the number from there on. */
  *#steps(): Generator<BestInstant> {
    const starts = Float64Array.from(this.#starts).sort()
    const ends = Float64Array.from(this.#ends).sort()
    let begun = 0
    let ended = 0
    let matching = 0
    if (starts[0] !== -Infinity) yield { at: -Infinity, matching: 0 }
    while (begun < starts.length || ended < ends.length) {
      const at = Math.min(starts[begun] ?? Infinity, ends[ended] ?? Infinity)
      while (begun < starts.length && starts[begun] === at) begun++
      while (ended < ends.length && ends[ended] === at) ended++
      const next = begun - ended
      if (next !== matching || at === -Infinity) yield { at, matching: next }
      matching = next
    }
  }
}
