/** Rows of a table from one number up to another, exclusive. */
export type RowRange = readonly [from: number, until: number]

/** Rows of a table that are left, and the number of tries. */
export interface Removal {
  readonly kept: readonly RowRange[]
  readonly tries: number
}

/**
 * Removes rows as long as a property holds for the others: first all, then ever smaller parts. Ends when no single row
 * can go, or after so many tries. The property must hold for all rows.
 */
export async function removeRows(
  count: number,
  most: number,
  holds: (kept: readonly RowRange[]) => Promise<boolean>,
): Promise<Removal> {
  if (count === 0 || most < 1) return { kept: count === 0 ? [] : [[0, count]], tries: 0 }
  if (await holds([])) return { kept: [], tries: 1 }
  let tries = 1
  let kept: readonly RowRange[] = halves([0, count])
  for (;;) {
    let isSmaller = false
    for (let place = 0; place < kept.length && tries < most; ) {
      const rest = kept.toSpliced(place, 1)
      tries++
      if (rest.length > 0 && (await holds(rest))) {
        kept = rest
        isSmaller = true
      } else place++
    }
    const areSingle = kept.every(([from, until]) => until - from === 1)
    if (tries >= most || (areSingle && !isSmaller)) return { kept, tries }
    if (!areSingle) kept = kept.flatMap(halves)
  }
}

function halves([from, until]: RowRange): RowRange[] {
  const middle = Math.ceil((from + until) / 2)
  return [[from, middle] as const, [middle, until] as const].filter(([first, end]) => first < end)
}
