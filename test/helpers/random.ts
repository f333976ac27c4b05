/** Random numbers in [0, 1), the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Random numbers of a small seed: neighbouring seeds give unlike sequences. */
export const randomOf = (seed: number): (() => number) => seeded(Math.imul(seed + 1, 0x9e3779b1) ^ 0x85ebca6b)
