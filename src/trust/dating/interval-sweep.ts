import type { ClockInterval, TableCell } from './knowledge-intervals.ts'

/** Instant at which the most cells match, and their number. */
export interface BestInstant {
  /** Begin of the last range with so many matching cells, microseconds; -Infinity if it has no begin. */
  readonly at: number
  readonly matching: number
}

/** Cells that match in each state of knowledge. The intervals of one cell do not overlap. */
export class MatchingCells {
  readonly #cells: TableCell[] = []
  readonly #starts: number[] = []
  readonly #ends: number[] = []

  /** Joins the intervals of the cells of several columns. */
  static joined(parts: readonly MatchingCells[]): MatchingCells {
    const all = new MatchingCells()
    for (const part of parts) {
      for (const [n, cell] of part.#cells.entries()) all.add(cell, part.#interval(n))
    }
    return all
  }

  add(cell: TableCell, { from, until }: ClockInterval): void {
    this.#cells.push(cell)
    this.#starts.push(from)
    this.#ends.push(until)
  }

  #interval(n: number): ClockInterval {
    return { from: this.#starts[n] ?? 0, until: this.#ends[n] ?? 0 }
  }

  /** Collects the cells that match at a moment. */
  at(moment: number): ReadonlySet<TableCell> {
    const covers = ({ from, until }: ClockInterval): boolean => from <= moment && moment < until
    return new Set(this.#cells.filter((_, n) => covers(this.#interval(n))))
  }

  /** Lists the ranges in which one cell matches. */
  ofCell(cell: TableCell): readonly ClockInterval[] {
    const own = new MatchingCells()
    for (const [n, other] of this.#cells.entries()) if (other === cell) own.add(cell, this.#interval(n))
    return own.rangesOf(1)
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
