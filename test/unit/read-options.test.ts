import { expect, test } from 'vitest'
import type { OptionFact } from '../../src/query/options.ts'
import { splitKnownOptions, readOption, readOptions, readVariables, saysSame } from '../../src/query/read-options.ts'

const rows: OptionFact = { kind: 'count', most: 5, about: 'rows' }
const table = { max_rows: rows, fields: { kind: 'choices', choices: ['v', 'age'], about: '' } } as const

test('a count is a whole number from 1 up to its maximum, both included', () => {
  expect([1, 5].map((n) => readOption(rows, 'rows', n))).toEqual([1, 5])
  for (const wrong of [0, 6, 1.5, '3', null, Number.NaN])
    expect(() => readOption(rows, 'rows', wrong)).toThrow('rows: expected a whole number from 1 to 5, got')
  expect(readOption({ kind: 'count', about: '' }, 'n', 1e9)).toBe(1e9)
  expect(() => readOption({ kind: 'count', about: '' }, 'n', 0)).toThrow('expected a whole number from 1 on, got 0')
})

test('an option is named as its interface names it, and an unknown one is refused', () => {
  expect(readOptions(table, { max_rows: 2, fields: 'v, age' }, 'fields')).toEqual({ maxRows: 2, fields: ['v', 'age'] })
  expect(readOptions(table, { maxRows: 2, fields: undefined }, 'typescript')).toEqual({ maxRows: 2 })
  expect(() => readOptions(table, { maxRows: 2 }, 'fields')).toThrow('did you mean `max_rows`?')
  expect(() => readOptions(table, { fields: 'v,oge' }, 'fields')).toThrow('expected v, age, got "oge"')
})

test('two spellings of a value are one, and what another table describes is set apart', () => {
  expect([saysSame(table, 'fields', 'v,age', ['v', 'age']), saysSame(table, 'fields', 'v', 'age')]).toEqual([
    true,
    false,
  ])
  expect([saysSame(table, 'other', 1, 1), saysSame(table, 'other', 1, '1')]).toEqual([true, false])
  expect(splitKnownOptions(table, { max_rows: 1, other: 2 })).toEqual({ own: { max_rows: 1 }, rest: { other: 2 } })
})

test('session variables have names in lower case, and those of the lake are checked in any case', () => {
  expect(readVariables({ AS_OF: '2024-03-01', Lucky: 5, BACKFILL: null })).toEqual({
    as_of: '2024-03-01',
    lucky: 5,
    backfill: null,
  })
  expect(() => readVariables({ BACKFILL: 'ruel' })).toThrow('--set backfill: expected rule, strict, got "ruel"')
  expect(() => readVariables({ Registry_Backfill: 'yes' })).toThrow('expected true or false, got "yes"')
})
