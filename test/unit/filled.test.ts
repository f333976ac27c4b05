import { expect, test } from 'vitest'
import { isDoubtful } from '../../src/query/answer-notes.ts'
import { Filled } from '../../src/query/filled-columns.ts'

test('a zero in the only row is noted, as a number of any kind or as its text', () => {
  const told = (...rows: readonly (number | bigint | string | null)[]) => {
    const filled = new Filled(['n'])
    filled.addCells(rows.length, [rows])
    return filled.empty()
  }
  for (const zero of [0, 0n, '0', -0])
    expect(told(zero)).toEqual([{ column: 'n', assets: [], everywhere: false, zero: true }])
  for (const other of [1, 1n, '', '00', 'zero']) expect(told(other)).toEqual([])
  expect(told(null)).toEqual([{ column: 'n', assets: [], everywhere: true }])
  expect([told(0, 0), told()]).toEqual([[], []])
  const later = new Filled(['n'])
  later.addCells(1, [[0n]])
  later.addCells(1, [[5n]])
  expect(later.empty()).toEqual([])
})

test('missing values of a column are listed by asset in the order of their names', () => {
  const filled = new Filled(['asset', 'v', 'w'], 'asset')
  filled.addCells(2, [
    ['ETH', 'BTC'],
    [null, 1],
    [null, null],
  ])
  filled.addCells(1, [['ADA'], [null], [null]])
  expect(filled.empty()).toEqual([
    { column: 'v', assets: ['ADA', 'ETH'], everywhere: false },
    { column: 'w', assets: ['ADA', 'BTC', 'ETH'], everywhere: true },
  ])
})

test('an answer without rows, or with a column that is empty unlike the rest, is worth a note', () => {
  const column = (name: string, everywhere = true) => ({ column: name, assets: [], everywhere })
  const zero = { ...column('n', false), zero: true as const }
  expect([isDoubtful(0, [], false), isDoubtful(3, [], false), isDoubtful(3, [column('v')], false)]).toEqual([
    true,
    false,
    true,
  ])
  for (const often of ['currency', 'Exchange', 'EXTRA', 'o']) expect(isDoubtful(3, [column(often)], true)).toBe(false)
  expect([
    isDoubtful(3, [column('v', false)], true),
    isDoubtful(1, [zero], true),
    isDoubtful(1, [zero], false),
  ]).toEqual([false, true, false])
})
