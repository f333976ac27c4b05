import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { historyMerge, tieredMerge, vacuumable, wholeMerge } from '../../src/upkeep/merge-plan.ts'

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

/** A year of daily top-ups; the most files and rewrites ever seen. */
function year(first: number, daily: (day: number) => number): { files: number; rewrites: number } {
  let files: File[] = first === 0 ? [] : [fresh(first)]
  let [most, worst] = [0, 0]
  for (let day = 0; day < 365; day++) {
    files = topUp(files, daily(day))
    most = Math.max(most, files.length)
    worst = Math.max(worst, ...files.map((file) => file.rewrites))
  }
  return { files: most, rewrites: worst }
}

const bound = Math.floor(Math.log2(365) + 2)

describe('the choice of files to merge', () => {
  it('keeps a year of daily top-ups of 112 endpoints x 10 assets within its bounds', () => {
    for (let endpoint = 0; endpoint < 112; endpoint++) {
      // Histories of every length, days on which some assets fail and are made up for.
      const missing = (day: number): number => ((endpoint * 7 + day * 13) % 29 === 0 ? 4 : 0)
      const seen = year(endpoint * 1000, (day) => 10 - missing(day) + missing(day - 1))
      expect(seen.files).toBeLessThanOrEqual(bound)
      expect(seen.rewrites).toBeLessThanOrEqual(10)
    }
  })

  it('holds its bounds for top-ups of any size', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 10_000 }), { minLength: 365, maxLength: 365 })
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000_000 }), sizes, (first, daily) => {
        const seen = year(first, (day) => daily[day] ?? 1)
        expect(seen.files).toBeLessThanOrEqual(bound)
        expect(seen.rewrites).toBeLessThanOrEqual(20)
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
    expect(wholeMerge([full, full])).toEqual([])
  })

  it('grows less patient where more than eight files would be left', () => {
    // Each holds more than all smaller ones together, but for the first two.
    const rows = (count: number): number[] => [1, 1, ...Array.from({ length: count - 2 }, (_, n) => 4 * 2 ** n)]
    const chosen = (count: number): number[] => tieredMerge(rows(count).map(fresh)).map((file) => file.rows)
    expect(chosen(9)).toEqual([1, 1])
    expect(chosen(10)).toEqual(rows(10))
  })

  it('makes one file of a history whenever it has grown by a quarter', () => {
    let files: readonly File[] = [fresh(5000)]
    let [whole, most] = [0, 0]
    for (let day = 0; day < 365; day++) {
      files = [...files, fresh(12)]
      const chosen = historyMerge(files)
      if (chosen.length === files.length) whole++
      const rows = chosen.reduce((sum, file) => sum + file.rows, 0)
      if (chosen.length > 0) files = [...files.filter((file) => !chosen.includes(file)), fresh(rows)]
      most = Math.max(most, files.length)
      const largest = Math.max(...files.map((file) => file.rows))
      expect(files.reduce((sum, file) => sum + file.rows, 0)).toBeLessThan(largest * 1.25)
    }
    expect(files.reduce((sum, file) => sum + file.rows, 0)).toBe(5000 + 365 * 12)
    expect(whole).toBe(2)
    expect(most).toBeLessThanOrEqual(bound)
    expect(historyMerge([fresh(5)])).toEqual([])
    expect(historyMerge([])).toEqual([])
  })

  it('makes one file of a partition, and is then content', () => {
    expect(wholeMerge([fresh(5), fresh(9)])).toHaveLength(2)
    expect(wholeMerge([fresh(5)])).toEqual([])
    expect(wholeMerge([fresh(5)], () => false)).toHaveLength(1)
    expect(wholeMerge([])).toEqual([])
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
