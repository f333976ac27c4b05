import type { CellValue, ValueClass, ValueMatcher } from './value-matcher.ts'

/** Value that the lake stores for a key: for a series, a single point, or a field of a registry record. */
export interface StoredValue {
  /** Rank within the key: of the values that are known, the one with the largest `t` is the answer. Microseconds. */
  readonly t: number
  /** End of the interval that the value describes, from which its age counts, microseconds. */
  readonly end: number
  /** Time from which a live user could know the value, microseconds. */
  readonly availableAt: number
  /** Time from which the lake contained the value, microseconds. */
  readonly observedAt: number
  /** The value; undefined if a record was removed, which no cell of a table can show. */
  readonly value: CellValue | undefined
}

/** Everything that the lake ever knew for a key. */
export interface KeyHistory {
  /**
   * Values, sorted by `t`. Of those that are known the last one is the answer: values of one `t` are usually sorted by
   * `availableAt`, then by `observedAt`.
   */
  readonly values: readonly StoredValue[]
  /** Whether the lake answers NULL while it knows no value. If not, it has no answer then. */
  readonly isNullBefore: boolean
  /** Whether only the clock of `as_of` is known of the values; every state of the other one then matches. */
  readonly isOfOneClock?: boolean
}

/** Cell of a table, and which values can be its answer. */
export interface TableCell {
  /** Row of the table, counted from 1. */
  readonly row: number
  /** Last instant at which a value may become known, microseconds. Infinity: no limit but the state of knowledge. */
  readonly at: number
  /** Values whose interval ended before this instant are too old and answer NULL. -Infinity: none is. */
  readonly staleBefore: number
  readonly value: CellValue
}

/** Cells of a key. A table may have millions, so that each fact has an array of its own instead of an object a cell. */
export class CellList {
  readonly #rows: number[] = []
  readonly #at: number[] = []
  readonly #staleBefore: number[] = []
  readonly #values: CellValue[] = []

  get length(): number {
    return this.#rows.length
  }

  add({ row, at, staleBefore, value }: TableCell): void {
    this.#rows.push(row)
    this.#at.push(at)
    this.#staleBefore.push(staleBefore)
    this.#values.push(value)
  }

  /** Returns the nth cell, counted from 0. */
  cell(n: number): TableCell {
    return { row: this.#rows[n] ?? 0, at: this.at(n), staleBefore: this.staleBefore(n), value: this.value(n) }
  }

  at(n: number): number {
    return this.#at[n] ?? -Infinity
  }

  staleBefore(n: number): number {
    return this.#staleBefore[n] ?? -Infinity
  }

  value(n: number): CellValue {
    return this.#values[n] ?? null
  }

  /** Whether values can be too old for a cell. */
  canBeStale(): boolean {
    return this.#staleBefore.some((time) => time > -Infinity)
  }
}

/** Clock of a state of knowledge: that of `as_of`, or that of `observed_as_of`. */
export type KnowledgeClock = 'availableAt' | 'observedAt'

/** Half-open range of a clock, microseconds; -Infinity and Infinity if it has no end. */
export interface ClockInterval {
  readonly from: number
  readonly until: number
}

/** Compares values by their usual order in a `KeyHistory`. */
export function compareStored(a: StoredValue, b: StoredValue): number {
  return a.t - b.t || a.availableAt - b.availableAt || a.observedAt - b.observedAt
}

/** Receives that the nth cell of a key matches from an instant of a clock until another, microseconds. */
export type FoundInterval = (n: number, from: number, until: number) => void

/**
 * Finds for each cell of a key all states of knowledge in which the lake answers its value. The answer is the last known
 * value in the order of the history. A value is therefore the answer from its own instant until a later one in that order
 * is known. The smallest instant among those is looked up in a tree that is filled from the end of the history.
 */
export function findKnowledge(
  history: KeyHistory,
  cells: CellList,
  matcher: ValueMatcher,
  found: Readonly<Partial<Record<KnowledgeClock, FoundInterval>>>,
): void {
  const canBeStale = cells.canBeStale()
  let whole: CellQuestions | undefined
  for (const clock of ['availableAt', 'observedAt'] as const) {
    const report = found[clock]
    if (report === undefined) continue
    if (clock === 'observedAt' && history.isOfOneClock === true) {
      for (let n = 0; n < cells.length; n++) report(n, -Infinity, Infinity)
      continue
    }
    const values = canBeStale ? history.values : withoutRepetitions(history.values, matcher, clock)
    const isWhole = values.length === history.values.length
    const questions = isWhole && whole !== undefined ? whole : groupQuestions({ ...history, values }, cells, matcher)
    if (isWhole) whole = questions
    answerQuestions({ values, questions, cells, clock }, report)
  }
}

/** Questions about the cells of a key, and what they are answered from. */
interface AskedKey {
  readonly values: readonly StoredValue[]
  readonly questions: CellQuestions
  readonly cells: CellList
  readonly clock: KnowledgeClock
}

function answerQuestions({ values, questions, cells, clock }: AskedKey, found: FoundInterval): void {
  const { byPlace, nullBefore } = questions
  const earliest = new EarliestInstants(values)
  const ask = (n: number, from: number): void => {
    const until = earliest.upTo(cells.at(n))
    if (from < until) found(n, from, until)
  }
  for (let place = values.length - 1; place >= -1; place--) {
    nullBefore.forEach(place + 1, (n) => ask(n, -Infinity))
    const value = values[place]
    if (value === undefined) continue
    const from = value[clock]
    byPlace.forEach(place, (n) => ask(n, from))
    earliest.add(value.availableAt, from)
  }
}

/** Looks up the value that the lake answers for a cell in one state of knowledge; undefined if it has no answer. */
export function findAnswer(
  { values, isNullBefore }: KeyHistory,
  { at, staleBefore }: TableCell,
  clock: KnowledgeClock,
  moment: number,
): CellValue | undefined {
  const known = values.findLast((value) => value.availableAt <= at && value[clock] <= moment)
  if (known === undefined) return isNullBefore ? null : undefined
  return known.end < staleBefore ? null : known.value
}

/**
 * Leaves out each value that repeats the one before it and is known no earlier: with or without it the answers are the
 * same.
 */
function withoutRepetitions(
  values: readonly StoredValue[],
  matcher: ValueMatcher,
  clock: KnowledgeClock,
): readonly StoredValue[] {
  const kept: StoredValue[] = []
  let before: StoredValue | undefined
  let classesBefore: readonly ValueClass[] | undefined
  for (const value of values) {
    const classes = value.value === undefined ? undefined : matcher.classesOf(value.value)
    const repeats = before !== undefined && areSame(classes, classesBefore) && before[clock] <= value[clock]
    if (repeats && before !== undefined && before.availableAt <= value.availableAt) continue
    kept.push(value)
    before = value
    classesBefore = classes
  }
  return kept
}

function areSame(a: readonly ValueClass[] | undefined, b: readonly ValueClass[] | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.length === b.length && a.every((one, n) => one === b[n])
}

/** Cells of a key, by the place of a value in its history. */
interface CellQuestions {
  /** Cells that the value at a place matches. */
  readonly byPlace: Lists
  /** Cells of NULL, by the first place whose value is not too old: NULL is the answer as long as none from there on is known. */
  readonly nullBefore: Lists
}

function groupQuestions({ values, isNullBefore }: KeyHistory, cells: CellList, matcher: ValueMatcher): CellQuestions {
  const numbers = new Map<ValueClass, number>()
  const places = new Lists()
  for (const [place, { value }] of values.entries()) {
    if (value === undefined) continue
    for (const valueClass of matcher.classesOf(value)) {
      let number = numbers.get(valueClass)
      if (number === undefined) numbers.set(valueClass, (number = numbers.size))
      places.add(number, place)
    }
  }
  const byPlace = new Lists()
  const nullBefore = new Lists()
  for (let n = 0; n < cells.length; n++) {
    const at = cells.at(n)
    const value = cells.value(n)
    const firstFresh = countStale(values, cells.staleBefore(n))
    const number = numbers.get(matcher.classOf(value))
    if (number !== undefined)
      places.forEach(number, (place) => {
        const isKnown = (values[place]?.availableAt ?? Infinity) <= at
        if (isKnown && place >= firstFresh) byPlace.add(place, n)
      })
    if (value === null && isNullBefore) nullBefore.add(firstFresh, n)
  }
  return { byPlace, nullBefore }
}

/** Lists of numbers, chained in three arrays: an array for each list would be an object for each stored value. */
class Lists {
  /** Last link of each list; 0 or absent if it is empty. Links count from 1. */
  readonly #last: number[] = []
  /** The item of each link. */
  readonly #items: number[] = [0]
  /** The link before each link. */
  readonly #before: number[] = [0]

  add(list: number, item: number): void {
    while (this.#last.length <= list) this.#last.push(0)
    this.#before.push(this.#last[list] ?? 0)
    this.#last[list] = this.#items.push(item) - 1
  }

  /** Visits the items of a list, the last one first. */
  forEach(list: number, visit: (item: number) => void): void {
    for (let link = this.#last[list] ?? 0; link > 0; link = this.#before[link] ?? 0) visit(this.#items[link] ?? 0)
  }
}

/** Counts the values that are too old; they are the first ones. */
function countStale(values: readonly StoredValue[], staleBefore: number): number {
  if (staleBefore === -Infinity) return 0
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((values[middle]?.end ?? Infinity) < staleBefore) low = middle + 1
    else high = middle
  }
  return low
}

/** Smallest instants of a clock among the values that were available by some time: a Fenwick tree of minima. */
class EarliestInstants {
  readonly #times: Float64Array
  readonly #minima: Float64Array

  constructor(values: readonly StoredValue[]) {
    const times = Float64Array.from(values, ({ availableAt }) => availableAt).sort()
    this.#times = times.filter((time, n) => n === 0 || time !== times[n - 1])
    this.#minima = new Float64Array(this.#times.length + 1).fill(Infinity)
  }

  add(availableAt: number, instant: number): void {
    for (let n = this.#countUpTo(availableAt); n < this.#minima.length; n += n & -n)
      this.#minima[n] = Math.min(this.#minima[n] ?? Infinity, instant)
  }

  /** Smallest instant of the values that were available at `time`; Infinity if there are none. */
  upTo(time: number): number {
    let least = Infinity
    for (let n = this.#countUpTo(time); n > 0; n -= n & -n) least = Math.min(least, this.#minima[n] ?? Infinity)
    return least
  }

  #countUpTo(time: number): number {
    let low = 0
    let high = this.#times.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#times[middle] ?? Infinity) <= time) low = middle + 1
      else high = middle
    }
    return low
  }
}
