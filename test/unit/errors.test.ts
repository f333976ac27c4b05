import { expect, test } from 'vitest'
import { type ErrorKind, exitCode, gravest, LakeError, usage } from '../../src/base/errors.ts'

test.each<[ErrorKind, number]>([
  ['unexpected', 1],
  ['usage', 2],
  ['unauthorised', 3],
  ['integrity', 4],
  ['stopped', 5],
  ['incomplete', 6],
  ['busy', 7],
])('an error of kind %s ends with %i', (kind, code) =>
  expect(exitCode(new LakeError(kind, { subject: 'x', next: 'y' }))).toBe(code),
)

test('the gravest of several exit codes is returned', () => {
  const order = [4, 3, 1, 2, 6, 5, 7, 0]
  for (const [i, code] of order.entries()) expect(gravest(order.slice(i).toReversed())).toBe(code)
  expect(gravest([])).toBe(0)
  expect(gravest([0, 130])).toBe(130)
})

test('a thrown value that is no LakeError ends with 1', () => {
  for (const thrown of [new Error('x'), new RangeError('x'), 'text', undefined]) expect(exitCode(thrown)).toBe(1)
})

test('an error is one line of subject, expected, got and next, and keeps its cause', () => {
  const cause = new Error('why')
  const error = usage('a', { expected: 'b\n  c', got: 'd', next: 'try e', cause })
  expect(error.message).toBe('a: expected b c, got d; try e')
  expect(error.cause).toBe(cause)
  expect(usage('alone').message).toBe('alone')
  expect(new LakeError('usage', [{ subject: 'one' }, { subject: 'two', got: 'x' }]).message).toBe('one\ntwo: x')
})
