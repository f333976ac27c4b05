import { describe, expect, test } from 'vitest'
import { chooseFiles } from '../../src/maintenance/upkeep/adopt-points.ts'

describe('choosing files', () => {
  const chosen = (count: number, ...shared: readonly (readonly number[])[]): string => {
    const { kept, refused } = chooseFiles(count, shared)
    const text = (files: ReadonlySet<number>): string => [...files].toSorted((a, b) => a - b).join('')
    return `${text(kept)}|${text(refused)}`
  }

  test('a merged file stands for what it was made of, across partitions too', () => {
    expect(chosen(3, [0, 1], [0, 2])).toBe('0|')
    // 0 and 1 were made of 2 and 3, each by partition.
    expect(chosen(4, [0, 2], [0, 3], [1, 2], [1, 3])).toBe('01|')
    // 1 holds what 0 does not: only 1 and 2 together hold each row once.
    expect(chosen(3, [0, 1], [1], [0, 2], [2])).toBe('12|')
  })

  test('if no set of whole files covers the rows, only those files are refused', () => {
    expect(chosen(3, [0], [0, 1], [1], [2])).toBe('2|01')
    expect(chosen(2)).toBe('01|')
  })
})
