import type { Index } from './index-rows.ts'

/*
 * A digest of points is the sum of their hashes modulo 2^64. It does not depend on their order or on the files that
 * contain them; points that are added or lost are added or subtracted. There is one for each series and month.
 */

/** Number of points of a month, and their digest: 16 hex signs. */
export interface MonthDigest {
  readonly points: number
  readonly digest: string
}

/** Digests by month, `2024-06`. */
export type Months = ReadonlyMap<string, MonthDigest>

const nothing: MonthDigest = { points: 0, digest: '0'.repeat(16) }

/** Formats a sum of hashes, given as a number, as a digest. */
export function digestOfSum(sum: bigint | string): string {
  return BigInt.asUintN(64, BigInt(sum)).toString(16).padStart(16, '0')
}

/** Adds two digests, or with `sign` -1 subtracts the second from the first. */
export function addDigests(a: MonthDigest, b: MonthDigest, sign: 1 | -1 = 1): MonthDigest {
  const sum = BigInt(`0x${a.digest}`) + BigInt(sign) * BigInt(`0x${b.digest}`)
  return { points: a.points + sign * b.points, digest: digestOfSum(sum) }
}

/** Computes the change from one state of the months to another; months without changes are left out. */
export function monthsBetween(from: Months, to: Months): Map<string, MonthDigest> {
  const found = new Map<string, MonthDigest>()
  for (const month of [...new Set([...from.keys(), ...to.keys()])].toSorted()) {
    const change = addDigests(to.get(month) ?? nothing, from.get(month) ?? nothing, -1)
    if (change.points !== 0 || change.digest !== nothing.digest) found.set(month, change)
  }
  return found
}

/** Converts months to the form of a series' progress; empty if there are none. */
export function asDigests(months: Months): { readonly digests?: Readonly<Record<string, string>> } {
  if (months.size === 0) return {}
  return {
    digests: Object.fromEntries([...months].map(([month, content]) => [month, `${content.points} ${content.digest}`])),
  }
}

/** Reads the digests of the months of a series: from the first to the last named month, or of all. */
export function storedMonths(index: Index, series: number, some: readonly string[] = []): Map<string, MonthDigest> {
  const rows = index
    .statement('SELECT month, points, digest FROM digests WHERE series = ? AND month BETWEEN ? AND ? ORDER BY month')
    .all(series, some[0] ?? '', some.at(-1) ?? 'z')
  return new Map(
    rows.map(({ month, points, digest }) => [String(month), { points: Number(points), digest: String(digest) }]),
  )
}

/** Adds the changes of an entry to the digests of the months of a series. */
export function applyDigests(index: Index, series: number, digests: Readonly<Record<string, string>>): void {
  const months = Object.keys(digests).toSorted()
  const earlier = storedMonths(index, series, months)
  const rows = months.map((month) => {
    const [points = '0', digest = nothing.digest] = digests[month]?.split(' ') ?? []
    const added = { points: Number(points), digest }
    const before = earlier.get(month)
    return { month, ...(before === undefined ? added : addDigests(before, added)) }
  })
  // In one statement, because a first fetch adds some thousands.
  index
    .statement(
      `INSERT OR REPLACE INTO digests (series, month, points, digest)
       SELECT ?, value ->> 'month', value ->> 'points', value ->> 'digest' FROM json_each(?)`,
    )
    .run(series, JSON.stringify(rows))
}
