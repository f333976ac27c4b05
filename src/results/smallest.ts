/** A part of a list that does what the whole list does. */
export interface Smallest<T> {
  readonly part: readonly T[]
  /** Whether no single one of it can be left out: false where the tries did not suffice to tell. */
  readonly minimal: boolean
}

/**
 * Finds a part of a list for which `does` holds as it does for the whole, and of which nothing can be left out: halves are
 * tried, then smaller shares and what is left without them. So few of many are found in a number of tries that grows with
 * the logarithm of the many. After `most` tries the smallest part so far is given.
 */
export async function smallestPart<T>(
  all: readonly T[],
  does: (part: readonly T[]) => Promise<boolean>,
  most: number,
): Promise<Smallest<T>> {
  let part = all
  let tries = 0
  for (let shares = 2; part.length > 1; ) {
    const cut = sharesOf(part, shares)
    const rests = shares > 2 ? cut.map((share) => without(part, new Set(share))) : []
    let found: readonly T[] | undefined
    for (const one of [...cut, ...rests]) {
      if (tries++ >= most) return { part, minimal: false }
      if (!(await does(one))) continue
      found = one
      break
    }
    if (found === undefined && shares >= part.length) break
    shares = found === undefined ? Math.min(part.length, 2 * shares) : cut.includes(found) ? 2 : Math.max(2, shares - 1)
    part = found ?? part
  }
  return { part, minimal: true }
}

/** So many shares of a list, in its order, of sizes that differ by one at most. */
function sharesOf<T>(list: readonly T[], count: number): (readonly T[])[] {
  const at = (n: number): number => Math.floor((n * list.length) / count)
  return Array.from({ length: count }, (_, n) => list.slice(at(n), at(n + 1)))
}

function without<T>(list: readonly T[], gone: ReadonlySet<T>): readonly T[] {
  return list.filter((one) => !gone.has(one))
}
