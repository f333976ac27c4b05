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
}

/** Cell of a table, and which values can be its answer. */
export interface TableCell {
  /** Row of the table, counted from 1. */
  readonly row: number
  /** Place of its column among the compared columns. */
  readonly column: number
  /** Last instant at which a value may become known, microseconds. Infinity: no limit but the state of knowledge. */
  readonly at: number
  /** Values whose interval ended before this instant are too old and answer NULL. -Infinity: none is. */
  readonly staleBefore: number
  readonly value: CellValue
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

/**
 * Finds for each cell of a key all states of knowledge in which the lake answers its value. The answer is the last known
 * value in the order of the history. A value is therefore the answer from its own instant until a later one in that order
 * is known. The smallest instant among those is looked up in a tree that is filled from the end of the history.
 */
export function findKnowledge(
  history: KeyHistory,
  cells: readonly TableCell[],
  matcher: ValueMatcher,
  clock: KnowledgeClock,
  found: (cell: TableCell, interval: ClockInterval) => void,
): void {
  const canBeStale = cells.some(({ staleBefore }) => staleBefore > -Infinity)
  const values = canBeStale ? history.values : withoutRepetitions(history.values, matcher, clock)
  const questions = groupQuestions({ ...history, values }, cells, matcher)
  const earliest = new EarliestInstants(values.map(({ availableAt }) => availableAt))
  const ask = (cell: TableCell, from: number): void => {
    const until = earliest.upTo(cell.at)
    if (from < until) found(cell, { from, until })
  }
  for (let place = values.length - 1; place >= -1; place--) {
    for (const cell of questions.nullBefore.get(place + 1) ?? []) ask(cell, -Infinity)
    const value = values[place]
    if (value === undefined) continue
    for (const cell of questions.byPlace.get(place) ?? []) ask(cell, value[clock])
    earliest.add(value.availableAt, value[clock])
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
  let classes: string | undefined
  for (const value of values) {
    const own = value.value === undefined ? undefined : JSON.stringify(matcher.classesOf(value.value))
    const before = kept.at(-1)
    const repeats = before !== undefined && own === classes && before[clock] <= value[clock]
    if (repeats && before.availableAt <= value.availableAt) continue
    kept.push(value)
    classes = own
  }
  return kept
}

/** Cells of a key, by the place of a value in its history. */
interface CellQuestions {
  /** Cells that the value at a place matches. */
  readonly byPlace: ReadonlyMap<number, readonly TableCell[]>
  /** Cells of NULL, by the first place whose value is not too old: NULL is the answer as long as none from there on is known. */
  readonly nullBefore: ReadonlyMap<number, readonly TableCell[]>
}

function groupQuestions(
  { values, isNullBefore }: KeyHistory,
  cells: readonly TableCell[],
  matcher: ValueMatcher,
): CellQuestions {
  const places = new Map<ValueClass, number[]>()
  for (const [place, { value }] of values.entries()) {
    if (value === undefined) continue
    for (const valueClass of matcher.classesOf(value)) appendTo(places, valueClass, place)
  }
  const byPlace = new Map<number, TableCell[]>()
  const nullBefore = new Map<number, TableCell[]>()
  for (const cell of cells) {
    const firstFresh = countStale(values, cell.staleBefore)
    for (const place of places.get(matcher.classOf(cell.value)) ?? []) {
      const isKnown = (values[place]?.availableAt ?? Infinity) <= cell.at
      if (isKnown && place >= firstFresh) appendTo(byPlace, place, cell)
    }
    if (cell.value === null && isNullBefore) appendTo(nullBefore, firstFresh, cell)
  }
  return { byPlace, nullBefore }
}

function appendTo<Key, Item>(lists: Map<Key, Item[]>, key: Key, item: Item): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [item])
  else list.push(item)
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

  constructor(times: readonly number[]) {
    this.#times = Float64Array.from(new Set(times)).sort()
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
