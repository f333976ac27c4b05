/*
 * Some laws are tried as often as there is time for. `make test` takes a share of each; `make test-long` runs the files
 * that import this one, whole or another part of them with each commit, and those that `vitest.config.ts` keeps for it.
 */

/** Whether the whole is tried, and not a share of it. */
export const long: boolean = ['1', 'all'].includes(process.env['PITLAKE_LONG'] ?? '')

/** Whether that is `.ci/run`, which has twenty minutes for all of it. */
const brief = process.env['PITLAKE_LONG'] === 'all'

/** How often: as the variable says, else `few` times in `make test`, `many` in `make test-long`, a third of the way in `.ci/run`. */
export function times(variable: string, few: number, many: number): number {
  return Number(process.env[variable] ?? (brief ? Math.round((2 * few + many) / 3) : long ? many : few))
}

/** Of what takes long even there so many, spread evenly; all of them with `PITLAKE_STEPS=all`. */
export function someOf<T>(all: readonly T[], many: number): readonly T[] {
  return process.env['PITLAKE_STEPS'] === 'all' ? all : spread(all, many)
}

/** All of them in `make test-long`, else so many, spread evenly, the first and the last among them. */
export const shareOf = <T>(all: readonly T[], few: number): readonly T[] => (long ? all : spread(all, few))

function spread<T>(all: readonly T[], few: number): readonly T[] {
  if (all.length <= few) return all
  return Array.from({ length: few }, (_, n) => all[Math.round((n * (all.length - 1)) / Math.max(1, few - 1))] as T)
}

/** Which part of what goes by turns is tried: `PITLAKE_TURN` counts commits in `make test` and `make test-long`. */
export const turn = Number(process.env['PITLAKE_TURN'] ?? 0)

/**
 * In `make test-long` each n-th of them at its turn, in `.ci/run`, which has twenty minutes, every third of those, in
 * `make test` about so few: another part with each commit, so that none is left out. All of them with `PITLAKE_STEPS=all`.
 */
export function turnOf<T>(all: readonly T[], parts: number, few: number): readonly T[] {
  if (process.env['PITLAKE_STEPS'] === 'all') return all
  const every = long ? Math.min(all.length, brief ? 3 * parts : parts) : Math.ceil(all.length / few)
  // Each round begins one further: what runs with every second commit has all parts, too.
  return partOf(all, every, turn + Math.floor(turn / every))
}

/** Seeds of worlds, from the first on: so many as the variable says, else one of `many` in `make test`, all in `make test-long`. */
export function drawn(variable: string, many: number, first = 1): readonly number[] {
  const named = process.env[variable]
  const seeds = Array.from({ length: Number(named ?? many) }, (_, n) => first + n)
  return named === undefined ? turnOf(seeds, 1, 1) : seeds
}

/** Every n-th of them, another part at each turn; after as many turns each was one of a part. */
export const partOf = <T>(all: readonly T[], every: number, nth: number): readonly T[] =>
  all.filter((_, n) => n % every === nth % every)
