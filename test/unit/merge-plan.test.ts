import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { portionRows } from '../../src/sources/points/files.ts'
import { historyMerge, tieredMerge, vacuumable, filesToMerge } from '../../src/maintenance/upkeep/merge-plan.ts'

interface File {
  readonly rows: number
  readonly bytes: number
  /** How often the most rewritten of its rows was rewritten. */
  readonly rewrites: number
}

const fresh = (rows: number): File => ({ rows, bytes: rows * 8, rewrites: 0 })

/** Adds a file and merges as the choice says until it says nothing more. */
function topUp(files: readonly File[], rows: number): File[] {
  let now = [...files, fresh(rows)]
  for (;;) {
    const chosen = new Set(tieredMerge(now))
    if (chosen.size === 0) return now
    expect(chosen.size).toBeGreaterThan(1)
    const sum = (pick: (file: File) => number): number => [...chosen].reduce((total, file) => total + pick(file), 0)
    const rewrites = 1 + Math.max(...[...chosen].map((file) => file.rewrites))
    now = [
      ...now.filter((file) => !chosen.has(file)),
      { rows: sum((file) => file.rows), bytes: sum((f) => f.bytes), rewrites },
    ]
  }
}

/** What a year of daily top-ups may come to, and how much of it the choice may use. */
const most = { partition: 8, recent: 10, rewrites: 8, share: 0.8 }

/**
 * One partition and its share of the recent files, topped up daily: the most files of both levels, and rows written
 * again for each that came.
 */
function lived(first: number, days: number, daily: (day: number) => number) {
  let own: File[] = []
  let recent: File[] = []
  const seen = { partition: 0, recent: 0, rows: 0, written: 0 }
  const merge = (files: readonly File[]): File[] => {
    const chosen = tieredMerge(files)
    if (chosen.length === 0) return [...files]
    const merged = fresh(chosen.reduce((sum, { rows }) => sum + rows, 0))
    seen.written += merged.rows
    return [...files.filter((file) => !chosen.includes(file)), merged]
  }
  const isPortion = ({ rows }: File): boolean => rows >= portionRows
  for (let day = 0; day <= days; day++) {
    const file = fresh(day === 0 ? first : daily(day))
    if (day > 0) seen.rows += file.rows
    if (file.rows > 0) (isPortion(file) ? own : recent).push(file)
    // One merge a top-up; what of the recent files has become a portion of its own moves with it.
    own = merge(own)
    const merged = merge(recent)
    own.push(...merged.filter(isPortion))
    recent = merged.filter((one) => !isPortion(one))
    seen.partition = Math.max(seen.partition, own.length)
    seen.recent = Math.max(seen.recent, recent.length)
  }
  return { ...seen, rewrites: seen.written / seen.rows }
}

const year = 365
/** One point of each of ten series, a failed day made up for on the next, hours instead of days, all sizes between. */
const portions: Readonly<Record<string, (day: number) => number>> = {
  'a day': () => 10,
  'a day, some missed': (day) => (day % 29 === 0 ? 6 : day % 29 === 1 ? 14 : 10),
  'the hours of a day': () => 240,
  'one series': () => 1,
  uneven: (day) => 1 + ((day * 7919) % 41),
}

describe('the choice of files to merge', () => {
  it.each(Object.entries(portions))('keeps top-ups of %s within their bounds, whatever was there first', (_, daily) => {
    for (const first of [0, 10, year * 10, 3 * year * 10, 3 * year * 240])
      for (const days of [year, 1000, 3000]) {
        const seen = lived(first, days, daily)
        expect(seen.partition).toBeLessThanOrEqual(most.partition * most.share)
        expect(seen.recent).toBeLessThanOrEqual(most.recent * most.share)
        expect(seen.rewrites).toBeLessThanOrEqual(days === year ? most.rewrites * most.share : most.rewrites)
      }
  })

  it('holds its bounds for top-ups of any size', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 10_000 }), { minLength: year, maxLength: year })
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000_000 }), sizes, (first, daily) => {
        let files: File[] = first === 0 ? [] : [fresh(first)]
        for (const rows of daily) {
          files = topUp(files, rows)
          expect(files.length).toBeLessThanOrEqual(most.partition)
        }
        expect(Math.max(...files.map((file) => file.rewrites))).toBeLessThanOrEqual(20)
      }),
      { numRuns: 60 },
    )
  })

  it('leaves large files to themselves and takes the smallest', () => {
    expect(tieredMerge([fresh(1000), fresh(10), fresh(3)])).toEqual([])
    expect(tieredMerge([fresh(1000), fresh(10), fresh(10)]).map((file) => file.rows)).toEqual([10, 10])
    expect(tieredMerge([])).toEqual([])
    const full = { rows: 1, bytes: 2 ** 30 }
    expect(tieredMerge([full, full])).toEqual([])
    expect(filesToMerge([full, full])).toEqual([])
  })

  it('grows less patient where more files would be left than so many portions need', () => {
    // Each holds more than all smaller ones together, but for the first two; the last makes up the sum.
    const rows = (count: number, sum: number): number[] => {
      const others = [1, 1, ...Array.from({ length: count - 3 }, (_, n) => 4 * 2 ** n)]
      return [...others, sum - others.reduce((all, one) => all + one, 0)]
    }
    const merged = (files: readonly number[]): number => tieredMerge(files.map(fresh)).length
    // (k + 6) over k portions come with k files and six times of writing again: 462 with five, 924 with six.
    for (const [kept, sum] of [
      [5, 461],
      [6, 462],
      [6, 923],
      [7, 924],
      [7, 10_000],
    ] as const) {
      expect([kept, sum, merged(rows(kept + 1, sum))]).toEqual([kept, sum, 2])
      expect(merged(rows(kept + 2, sum))).toBeGreaterThan(2)
    }
  })

  it('keeps five files of a year, six of two, seven of eight', () => {
    const kept = (days: number): number => {
      let files: File[] = []
      let largest = 0
      for (let day = 0; day < days; day++) {
        files = topUp(files, 1120)
        largest = Math.max(largest, files.length)
      }
      return largest
    }
    expect([365, 730, 8 * 365].map(kept)).toEqual([5, 6, 7])
  })

  it('makes one file of a history whenever it has grown by a quarter', () => {
    let files: readonly File[] = [fresh(5000)]
    let whole = 0
    for (let day = 0; day < 365; day++) {
      files = [...files, fresh(12)]
      const chosen = historyMerge(files)
      if (chosen.length === files.length) whole++
      const rows = chosen.reduce((sum, file) => sum + file.rows, 0)
      if (chosen.length > 0) files = [...files.filter((file) => !chosen.includes(file)), fresh(rows)]
      expect(files.length).toBeLessThanOrEqual(most.partition)
      const largest = Math.max(...files.map((file) => file.rows))
      expect(files.reduce((sum, file) => sum + file.rows, 0)).toBeLessThan(largest * 1.25)
    }
    expect(files.reduce((sum, file) => sum + file.rows, 0)).toBe(5000 + 365 * 12)
    expect(whole).toBe(2)
    // A quarter of the largest is enough.
    expect([historyMerge([fresh(100), fresh(24)]).length, historyMerge([fresh(100), fresh(25)]).length]).toEqual([0, 2])
    expect(historyMerge([fresh(5)])).toEqual([])
    expect(historyMerge([])).toEqual([])
  })

  it('makes one file of a partition, and is then content', () => {
    expect(filesToMerge([fresh(5), fresh(9)])).toHaveLength(2)
    expect(filesToMerge([fresh(5)])).toEqual([])
    expect(filesToMerge([fresh(5)], () => false)).toHaveLength(1)
    expect(filesToMerge([])).toEqual([])
  })
})

describe('the choice of files to vacuum', () => {
  const listed = (path: string, added: number, removed: number | null) => ({
    path,
    added_version: added,
    removed_version: removed,
  })
  const isOld = (version: number): boolean => version <= 10

  it('keeps what is live, young or stamped', () => {
    const files = [listed('live', 1, null), listed('young', 1, 11), listed('old', 1, 5), listed('stamped', 3, 10)]
    const { going, stamped } = vacuumable(files, { stamps: [9], isOld })
    expect(going.map((file) => file.path)).toEqual(['old'])
    expect(stamped.map((file) => file.path)).toEqual(['stamped'])
  })

  it('counts a version as the one before its end', () => {
    const at = (stamp: number): number => vacuumable([listed('a', 3, 6)], { stamps: [stamp], isOld }).going.length
    expect([2, 3, 5, 6].map(at)).toEqual([1, 0, 0, 1])
  })

  it('takes a path only when all its listings go', () => {
    const twice = [listed('a', 1, 5), listed('a', 5, null)]
    expect(vacuumable(twice, { stamps: [], isOld }).going).toEqual([])
    const ended = [listed('a', 1, 5), listed('a', 5, 7)]
    expect(vacuumable(ended, { stamps: [], isOld }).going).toHaveLength(2)
  })
})
