import { expect, test } from 'vitest'

test('a pattern in toMatchObject matches the texts that it describes and no others', () => {
  const answer = { code: 2, message: 'expected a number', lines: ['one', 'two'] }
  expect(answer).toMatchObject({ code: 2, message: /a number$/, lines: [/^o/, 'two'] })
  expect(answer).not.toMatchObject({ message: /a text/ })
  expect(answer).not.toMatchObject({ lines: [/^o/, /^o/] })
})
