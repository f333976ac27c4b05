/** A figure in words, and whether it is within its bound. */
export interface Measured {
  readonly line: string
  readonly within: boolean
}

/** The words, with the bound that was kept or broken. */
export function judged(line: string, value: number, bound: number, unit = ''): Measured {
  const within = value <= bound
  return { line: `${line} (${within ? 'within' : 'ABOVE'} ${bound}${unit})`, within }
}

/** The middle one. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
