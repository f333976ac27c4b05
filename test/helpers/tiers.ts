/*
 * How much of a law each tier tries. `make test` runs the fast tier, `make test-all` the full one. Both run the same
 * cases every time: which cases belong to a sample follows from its size alone. Environment variables draw more of
 * them.
 */

/** Whether this run is the full tier (`make test-all`). */
export const isFullTier: boolean = process.env['PITLAKE_TESTS'] === 'all'

/** Whether every sample is taken whole, which takes hours: `PITLAKE_CASES=all`. */
export const takesEveryCase = process.env['PITLAKE_CASES'] === 'all'

/**
 * Number of rounds of a random test: the environment variable, else `fast` in the fast tier and `full` in the full one.
 */
export function rounds(variable: string, fast: number, full: number): number {
  return Number(process.env[variable] ?? (isFullTier ? full : fast))
}

/**
 * Cases of this run, spread evenly with both ends among them: `fast` of them in the fast tier, `full` in the full one,
 * by default every sixth and at least as many as in the fast tier.
 */
export function sample<T>(
  cases: readonly T[],
  fast: number,
  full: number = Math.max(fast, Math.ceil(cases.length / 6)),
): readonly T[] {
  return takesEveryCase ? cases : spread(cases, isFullTier ? full : fast)
}

/**
 * Seeds of random worlds from `first` on: as many as the environment variable says, else `full` in the full tier and
 * one.
 */
export function seeds(variable: string, full: number, first = 1): readonly number[] {
  return Array.from({ length: rounds(variable, 1, full) }, (_, nth) => first + nth)
}

function spread<T>(cases: readonly T[], wanted: number): readonly T[] {
  const count = Math.max(1, Math.round(wanted))
  if (cases.length <= count) return cases
  if (count === 1) return cases.slice(0, 1)
  const positions = Array.from({ length: count }, (_, nth) => Math.round((nth * (cases.length - 1)) / (count - 1)))
  return positions.flatMap((position) => cases.slice(position, position + 1))
}
