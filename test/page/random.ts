/** Whole numbers below `n`, the same for the same seed. */
export function random(seed: number): (n: number) => number {
  let state = seed * 2_654_435_769
  return (n) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0
    const mixed = Math.imul(state ^ (state >>> 13), 3_266_489_917)
    return ((mixed ^ (mixed >>> 16)) >>> 0) % n
  }
}
