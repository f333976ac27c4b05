/**
 * A smooth function of time (Unix seconds) with values between about -1 and 1; the same answer in any order of asking.
 */
export type Curve = (at: number) => number

/** Computes a 32-bit hash of the text, as an unsigned integer. */
export function hashText(text: string, seed = 0): number {
  let hash = (seed ^ 0x811c9dc5) | 0
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return mix(hash)
}

/** Scrambles 32 bits; unsigned. */
export function mix(value: number): number {
  let h = value | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** Computes a hash of a seed and a whole number beyond 32 bits; unsigned. */
export function hashAt(seed: number, at: number): number {
  return mix(seed ^ mix((at | 0) ^ Math.imul(Math.floor(at / 0x1_0000_0000), 0x9e3779b1)))
}

/** Converts the hash to a number in [0, 1). */
export const unit = (hash: number): number => hash / 0x1_0000_0000

/**
 * Builds one octave of value noise: hashed knots every `period` seconds, smoothstep between; the last two knots are
 * kept.
 */
export function octave(seed: number, period: number): Curve {
  const phase = unit(mix(seed ^ 0x5bd1e995))
  const knot = (k: number): number => unit(hashAt(seed, k)) * 2 - 1
  let index = Number.NaN
  let remaining = 0
  let right = 0
  return (at) => {
    const place = at / period + phase
    const k = Math.floor(place)
    if (k !== index) {
      remaining = k === index + 1 ? right : knot(k)
      right = knot(k + 1)
      index = k
    }
    const f = place - k
    return remaining + (right - remaining) * f * f * (3 - 2 * f)
  }
}

/** Builds the weighted sum of octaves: `[period in seconds, weight]`. */
export function octaves(seed: number, parts: readonly (readonly [number, number])[]): Curve {
  const curves = parts.map(([period], i) => octave(mix(seed + Math.imul(i + 1, 0x9e3779b1)), period))
  const weights = parts.map(([, weight]) => weight)
  const size = curves.length
  return (at) => {
    let sum = 0
    for (let i = 0; i < size; i++) sum += (curves[i] as Curve)(at) * (weights[i] as number)
    return sum
  }
}
