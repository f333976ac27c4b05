/** Rows that the same files hold: how many of these files may stay is one. Files are numbers, the preferred ones low. */
export type Shared = readonly number[]

/** Which files stay, and which cannot be told apart from others that hold some of the same rows. */
export interface Chosen {
  readonly kept: ReadonlySet<number>
  readonly refused: ReadonlySet<number>
}

/** So many steps are tried for files that overlap with one another. */
const patience = 100_000

/**
 * Chooses among `count` files the ones of which each row stands in exactly one; of several such sets the one with the
 * preferred files. Files that overlap so that no set of whole ones does are refused, with all that overlap with them.
 */
export function chooseFiles(count: number, shared: readonly Shared[]): Chosen {
  const kept = new Set<number>()
  const refused = new Set<number>()
  for (const group of groups(count, shared)) {
    const cover = coverOf(group)
    for (const file of group.files) {
      if (!cover) refused.add(file)
      else if (cover.has(file)) kept.add(file)
    }
  }
  return { kept, refused }
}

interface Group {
  readonly files: readonly number[]
  readonly shared: readonly Shared[]
}

/** Files that overlap with one another, directly or by others. */
function groups(count: number, shared: readonly Shared[]): Group[] {
  const parent = Array.from({ length: count }, (_, file) => file)
  const top = (file: number): number => {
    let at = file
    while (parent[at] !== at) at = parent[at] ?? at
    parent[file] = at
    return at
  }
  for (const [first = 0, ...others] of shared) for (const other of others) parent[top(other)] = top(first)
  const files = Map.groupBy(parent.keys(), top)
  const rows = Map.groupBy(
    shared.filter((one) => one.length > 0),
    ([first = 0]) => top(first),
  )
  return [...files].map(([key, own]) => ({ files: own, shared: rows.get(key) ?? [] }))
}

/** The preferred files first: the first set that is found is the preferred one, whatever else was there beside it. */
function coverOf({ files, shared }: Group): ReadonlySet<number> | undefined {
  const own = Map.groupBy(
    shared.flatMap((rows) => rows.map((file) => ({ file, rows }))),
    ({ file }) => file,
  )
  const rivals = (file: number): Set<number> => new Set((own.get(file) ?? []).flatMap(({ rows }) => rows))
  let steps = 0
  const search = (at: number, kept: readonly number[], out: ReadonlySet<number>): ReadonlySet<number> | undefined => {
    if (++steps > patience || shared.some((rows) => rows.every((file) => out.has(file)))) return undefined
    let next = at
    while (out.has(files[next] ?? -1)) next++
    const file = files[next]
    if (file === undefined) return new Set(kept)
    const others = rivals(file)
    others.delete(file)
    const free = !kept.some((one) => others.has(one))
    return (
      (free ? search(next + 1, [...kept, file], out.union(others)) : undefined) ??
      search(next + 1, kept, new Set([...out, file]))
    )
  }
  return search(0, [], new Set())
}
