import { hashText, unit } from '../world/noise.ts'

/** A deterministic source of choices; the same seed and keys give the same sequence on every machine. */
export type Chance = ReturnType<typeof chance>

/** Starts the sequence that belongs to these keys. */
export function chance(...keys: readonly (string | number)[]) {
  let state = hashText(keys.join('|'))
  /** The next number in `[0, 1)`. */
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let z = Math.imul(state ^ (state >>> 15), state | 1)
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61)
    return unit((z ^ (z >>> 14)) >>> 0)
  }
  /** A whole number in `[0, below)`. */
  const int = (below: number): number => Math.floor(next() * below)
  return {
    next,
    int,
    /** Whether something of this probability happens. */
    yes: (probability: number): boolean => next() < probability,
    /** One of the items; the list must not be empty. */
    pick: <T>(items: readonly T[]): T => items[int(items.length)] as T,
    /** How often something happens that is expected `mean` times (Poisson). */
    times: (mean: number): number => poisson(mean, next),
    /** A text of this length over the alphabet. */
    text: (alphabet: string, length: number): string =>
      Array.from({ length }, () => alphabet[int(alphabet.length)]).join(''),
  }
}

function poisson(mean: number, next: () => number): number {
  const limit = Math.exp(-mean)
  let product = next()
  let n = 0
  while (product > limit && n < 1000) {
    product *= next()
    n++
  }
  return n
}
