/** Powers of ten that a double holds exactly. */
const powers = Float64Array.from({ length: 23 }, (_, n) => Number(`1e${n}`))
/** Veltkamp's factor: it splits a double into two halves of 26 bits, whose products are exact. */
const splitter = 2 ** 27 + 1
/** A relative distance far above the error of the correction, and far below half a unit of the last place. */
const margin = 2 ** -95

/** Largest `whole` to which one more digit can be added without loss. */
export const fullDigits: number = Math.floor(2 ** 53 / 10) - 1
/** Maximum number of digits behind those of `whole`. */
export const mostFurther = 4
/** Maximum number of decimals that `decimalValue` takes. */
export const mostDecimals = 22

/**
 * Returns the double nearest to (whole × 10^digits + further) / 10^decimals, as `Number` reads its text; NaN if the value
 * lies so close to the middle of two doubles that only the text decides. `whole` is exact, `further` has that many digits.
 */
export function decimalValue(whole: number, further: number, digits: number, decimals: number): number {
  const divisor = powers[decimals] ?? Number.NaN
  if (digits === 0) return whole / divisor
  const scale = powers[digits] ?? Number.NaN
  const high = whole * scale
  const low = productError(whole, scale, high) + further
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
