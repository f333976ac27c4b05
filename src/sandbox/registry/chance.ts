/** A deterministic source of choices; the same seed and keys give the same sequence on every machine. */
export interface Chance {
  /** The next number in `[0, 1)`. */
  readonly next: () => number
  /** A whole number in `[0, below)`. */
  readonly int: (below: number) => number
  /** Whether something of this probability happens. */
  readonly yes: (probability: number) => boolean
  /** One of the items; the list must not be empty. */
  readonly pick: <T>(items: readonly T[]) => T
  /** How often something happens that is expected `mean` times (Poisson). */
  readonly times: (mean: number) => number
  /** A text of this length over the alphabet. */
  readonly text: (alphabet: string, length: number) => string
}

/** A 32-bit hash of a text (FNV-1a with a final mix). */
export function hash32(text: string): number {
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** Starts the sequence that belongs to these keys. */
export function chance(...keys: readonly (string | number)[]): Chance {
  let state = hash32(keys.join('|'))
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let z = Math.imul(state ^ (state >>> 15), state | 1)
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61)
    return ((z ^ (z >>> 14)) >>> 0) / 4_294_967_296
  }
  const int = (below: number): number => Math.floor(next() * below)
  return {
    next,
    int,
    yes: (probability) => next() < probability,
    pick: <T>(items: readonly T[]): T => items[int(items.length)] as T,
    times: (mean) => poisson(mean, next),
    text: (alphabet, length) => {
      let out = ''
      for (let i = 0; i < length; i++) out += alphabet[int(alphabet.length)]
      return out
    },
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
