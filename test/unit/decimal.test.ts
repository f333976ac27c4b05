import { expect, test } from 'vitest'
import { decimalValue, partDigits } from '../../src/sources/points/decimal.ts'
import { seeded } from '../helpers/random.ts'
import { rounds } from '../helpers/tiers.ts'

/** Reads a decimal of at most 18 digits from its text. */
function valueOf(text: string): number {
  const [integers = '', decimals = ''] = text.split('.')
  const digits = integers + decimals
  const further = digits.slice(partDigits)
  return decimalValue(Number(digits.slice(0, partDigits)), Number(further), further.length, decimals.length)
}

const random = seeded(20_261_129)
const digits = (count: number): string => Array.from({ length: count }, () => Math.floor(random() * 10)).join('')

test('random decimals are read as Number reads them', () => {
  let undecided = 0
  const count = rounds('PITLAKE_FUZZ', 200_000, 2_000_000)
  for (let n = 0; n < count; n++) {
    const size = 1 + Math.floor(random() * 18)
    const point = 1 + Math.floor(random() * size)
    const all = digits(size)
    const text = point === size ? all : `${all.slice(0, point)}.${all.slice(point)}`
    const value = valueOf(text)
    if (Number.isNaN(value)) undecided++
    else if (!Object.is(value, Number(text))) expect(value, text).toBe(Number(text))
  }
  expect(undecided).toBeLessThan(count / 100)
})

test('a decimal in the middle of two doubles is left to its text, and its neighbours are not', () => {
  for (let n = 0; n < 1000; n++) {
    const odd = 2n ** 52n + BigInt(Math.floor(random() * 2 ** 52))
    expect(valueOf(`${odd}.5`)).toBeNaN()
    for (const near of [`${odd}.49`, `${odd}.51`]) expect(valueOf(near)).toBe(Number(near))
    const beyond = 2n * odd + 1n
    expect(valueOf(String(beyond))).toBeNaN()
  }
})

test('small decimals keep every bit', () => {
  for (const text of [
    '0',
    '0.0',
    '0.1',
    '0.30000000000000004',
    '1.7976931348623157',
    '0.00000000000000001',
    '999999999999999999',
  ])
    expect(valueOf(text)).toBe(Number(text))
})
