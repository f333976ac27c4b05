import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  beginning,
  type Mark,
  pieceOf,
  type Portions,
  rewriting,
  tagsOf,
} from '../../src/maintenance/publish/ranges.ts'

type HeldPiece = Parameters<typeof rewriting>[0][number]

const portions: Portions = { few: 100, large: 5000 }
const mark = (version: number): Mark => ({ version, at: version * 1000 })
const add = { path: 'p', partitionValues: {}, size: 1, modificationTime: 1, dataChange: true, stats: '{}', tags: {} }
const held = (since: number, until: number, rows: number, group: string | null = null): HeldPiece => ({
  add: { ...add, path: `${since}-${until}-${group}` },
  piece: { since: mark(since), until: mark(until), group },
  rows,
})
const no = () => false

/**
 * Publishes these numbers of rows one after the other; the files at the end, and how often a row was written on
 * average.
 */
function lived(days: readonly number[]): { files: readonly HeldPiece[]; written: number } {
  let files: readonly HeldPiece[] = []
  let written = 0
  for (const [n, rows] of days.entries()) {
    const { write, leave } = rewriting(files, { since: mark(n), until: mark(n + 1) }, rows, no, portions)
    const made = write.map((piece) => ({ ...held(piece.since.version, piece.until.version, piece.rows), piece }))
    written += made.reduce((sum, file) => sum + file.rows, 0)
    files = [...files.filter((file) => !leave.includes(file)), ...made]
  }
  return { files, written }
}

test('whatever arrived, published files cover ranges in a row and have every row once', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(50), fc.nat(3000), fc.constant(0)), { maxLength: 40 }), (days) => {
      const { files } = lived(days)
      const sorted = files.toSorted((a, b) => a.piece.since.version - b.piece.since.version)
      for (const [n, { piece }] of sorted.entries())
        expect(piece.since.version).toBeGreaterThanOrEqual(sorted[n - 1]?.piece.until.version ?? 0)
      for (const { piece, rows } of sorted)
        expect(rows).toBe(days.slice(piece.since.version, piece.until.version).reduce((sum, own) => sum + own, 0))
      const all = files.reduce((sum, { rows }) => sum + rows, 0)
      expect(all).toBe(days.reduce((sum, own) => sum + own, 0))
    }),
  )
})

test('a year of days alike has few files, and a row is written few times', () => {
  const { files, written } = lived(Array.from({ length: 365 }, () => 60))
  expect(files.length).toBeLessThanOrEqual(10)
  expect(written / (365 * 60)).toBeLessThan(12)
  expect(Math.max(...files.map(({ rows }) => rows))).toBeLessThanOrEqual(portions.large)
})

test('a large file stays as it is, a small one behind it does not let it grow', () => {
  const files = [held(0, 3, 4990), held(3, 4, 20)]
  const { write, leave } = rewriting(files, { since: mark(4), until: mark(5) }, 10, no, portions)
  expect(leave).toEqual([files[1]])
  expect(write).toEqual([{ since: mark(3), until: mark(5), group: null, rows: 30 }])
})

test('only stale files are written again, each in its range and group', () => {
  const files = [held(0, 3, 9000, 'a'), held(0, 3, 9000, 'b'), held(3, 4, 400)]
  const { write, leave } = rewriting(
    files,
    { since: mark(4), until: mark(5) },
    0,
    ({ piece }) => piece.group !== 'b',
    portions,
  )
  expect(leave).toEqual([files[0], files[2]])
  expect(write).toEqual([
    { since: mark(0), until: mark(3), group: 'a', rows: 9000 },
    { since: mark(3), until: mark(4), group: null, rows: 400 },
  ])
})

test('the range of a file is read back from the log', () => {
  for (const { piece } of [held(0, 3, 1, 'a'), held(0, 3, 1)]) expect(pieceOf(tagsOf(piece))).toEqual(piece)
  expect(pieceOf(tagsOf({ since: beginning, until: mark(9), group: null }))?.since).toEqual(beginning)
  expect(pieceOf({})).toBeUndefined()
  expect(pieceOf({ since: '1@2' })).toBeUndefined()
})

test('small files are joined up to the largest rewritten one, and up to twice the newer rows', () => {
  const leaves = (own: number, fresh: number): number =>
    rewriting([held(0, 1, own)], { since: mark(1), until: mark(2) }, fresh, no, portions).leave.length
  expect([leaves(2500, 2500), leaves(2501, 2500)]).toEqual([1, 0])
  expect([leaves(200, 100), leaves(201, 100), leaves(100, 1), leaves(101, 1)]).toEqual([1, 0, 1, 0])
  // Nothing new is no reason to write anything.
  expect(rewriting([held(0, 1, 5)], { since: mark(1), until: mark(2) }, 0, no, portions)).toEqual({
    write: [],
    leave: [],
  })
})
