/** Value in a cell of a table: a number, a text, or null. */
export type CellValue = number | string | null

/** Class of values that a column cannot tell apart. A cell matches a stored value if its class is one of the value's. */
export type ValueClass = number | string | null

/** How the numbers of a column were rounded. */
export interface Rounding {
  /**
   * `decimals`: to digits behind the point, negative for tens, hundreds and so on. `significant`: to significant digits.
   * `single`: to a float of 32 bits.
   */
  readonly kind: 'decimals' | 'significant' | 'single'
  /** Number of digits; null for `single`. */
  readonly digits: number | null
}

/** Compares cells with stored values. */
export interface ValueMatcher {
  /** Returns the class of the value of a cell. */
  readonly classOf: (value: CellValue) => ValueClass
  /** Returns the classes of a stored value: several if it lies between two and may have been rounded to either. */
  readonly classesOf: (value: CellValue) => readonly ValueClass[]
}

/** Share of a unit within which a number counts as half way between two rounded ones. */
const halfway = 1e-6
/** Relative error of a product of two doubles, with room. */
const doubleError = 2 ** -52

/** Builds the matcher of a column whose numbers were rounded like this; null: they were not. */
export function matcherOf(rounding: Rounding | null): ValueMatcher {
  switch (rounding?.kind) {
    case undefined:
      return { classOf: (value) => value, classesOf: (value) => [value] }
    case 'decimals':
      return decimalMatcher(rounding.digits ?? 0)
    case 'significant':
      return significantMatcher(rounding.digits ?? 1)
    case 'single':
      return matcherBy(Math.fround, (value) => [Math.fround(value)])
  }
}

function matcherBy(
  classOf: (value: number) => ValueClass,
  classesOf: (value: number) => readonly ValueClass[],
): ValueMatcher {
  return {
    classOf: (value) => (typeof value === 'number' ? classOf(value) : value),
    classesOf: (value) => (typeof value === 'number' ? classesOf(value) : [value]),
  }
}

function decimalMatcher(digits: number): ValueMatcher {
  const scaled = (value: number): number => (digits < 0 ? value / 10 ** -digits : value * 10 ** digits)
  return matcherBy(
    (value) => Math.round(scaled(value)),
    (value) => {
      const exact = scaled(value)
      const room = halfway + Math.abs(exact) * doubleError
      const near = [exact - room, exact, exact + room].map((scaledValue) => Math.round(scaledValue))
      return [...new Set(near)]
    },
  )
}

function significantMatcher(digits: number): ValueMatcher {
  const rounded = (value: number): number => Number(value.toPrecision(digits))
  return matcherBy(rounded, (value) => [
    ...new Set([rounded(value), rounded(value * (1 - doubleError)), rounded(value * (1 + doubleError))]),
  ])
}

/** Place of the last digit of a number that is not 0, and the number of digits up to it. */
export interface DigitCount {
  /** Digits behind the point; negative if the number ends in zeros before the point. */
  readonly decimals: number
  readonly significant: number
}

/** Counts the digits of a number; undefined for 0 and for what is no number. */
export function countDigits(value: number): DigitCount | undefined {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? []
  const digits = (whole + fraction).replace(/0+$/, '')
  const first = digits.search(/[1-9]/)
  if (first === -1) return undefined
  return { decimals: digits.length - whole.length - Number(exponent), significant: digits.length - first }
}

/**
 * Lists how the numbers of a column may have been rounded, the strictest way first: not at all, to floats of 32 bits, to
 * digits behind the point, to significant digits. The numbers are read only if the first way does not suffice.
 */
export function* listRoundings(numbers: () => Iterable<number>): Generator<Rounding | null> {
  yield null
  const counts: DigitCount[] = []
  let isSingle = true
  for (const number of numbers()) {
    const count = countDigits(number)
    if (count !== undefined) counts.push(count)
    isSingle &&= Math.fround(number) === number
  }
  if (isSingle) yield { kind: 'single', digits: null }
  for (const kind of ['decimals', 'significant'] as const)
    for (const digits of usualCounts(counts.map((count) => count[kind]))) yield { kind, digits }
}

/** Lists the numbers of digits that a column may have been rounded to: the most that any number has, and the commonest. */
function usualCounts(counts: readonly number[]): readonly number[] {
  if (counts.length === 0) return []
  const frequencies = [...Map.groupBy(counts, (count) => count)].map(([count, all]) => ({ count, times: all.length }))
  const commonest = frequencies.toSorted((a, b) => b.times - a.times || b.count - a.count)[0]?.count ?? 0
  const most = counts.reduce((largest, count) => Math.max(largest, count), -Infinity)
  return [...new Set([most, commonest])]
}
