/** Powers of ten that a double holds exactly. */
const powers = Float64Array.from({ length: 23 }, (_, n) => Number(`1e${n}`))
/** Veltkamp's factor: it splits a double into two halves of 26 bits, whose products are exact. */
const splitter = 2 ** 27 + 1
/** Below this integer a double holds every integer. */
const exact = 2 ** 53
/** A relative distance far above the error of the correction, and far below half a unit of the last place. */
const margin = 2 ** -95

/** Maximum number of digits of each of the two integers of a decimal. */
export const partDigits = 9
/** Maximum number of decimals. */
export const mostDecimals = 22

/**
 * Returns the double nearest to (whole × 10^digits + further) / 10^decimals, as `Number` reads its text; NaN if the value
 * lies so close to the middle of two doubles that only the text decides. `further` has `digits` digits.
 */
export function decimalValue(whole: number, further: number, digits: number, decimals: number): number {
  const divisor = powers[decimals] as number
  const scale = powers[digits] as number
  const scaled = whole * scale
  const high = scaled + further
  // Up to here the digits are one integer without loss, and a quotient of two such numbers is rounded once.
  if (high < exact) return high / divisor
  const low = productError(whole, scale, scaled) + (further - (high - scaled))
  const quotient = high / divisor
  const product = quotient * divisor
  const correction = (high - product - productError(quotient, divisor, product) + low) / divisor
  const doubt = quotient * margin
  const value = quotient + (correction + doubt)
  return value === quotient + (correction - doubt) ? value : Number.NaN
}

/** Returns the exact product of two doubles minus the rounded one (Dekker). */
function productError(a: number, b: number, product: number): number {
  const wideA = a * splitter
  const highA = wideA - (wideA - a)
  const lowA = a - highA
  const wideB = b * splitter
  const highB = wideB - (wideB - b)
  const lowB = b - highB
  return highA * highB - product + highA * lowB + lowA * highB + lowA * lowB
}
