import { expect, test } from 'vitest'
import { parseSetting } from '../../src/interfaces/commands/query.ts'

test('a value of --set is a number, true, false or null, and in quotes a text', () => {
  const cases: Readonly<Record<string, unknown>> = {
    '5': 5,
    '-1.5': -1.5,
    '1e-7': 1e-7,
    true: true,
    null: null,
    rule: 'rule',
    '2024-03-01': '2024-03-01',
    "it's": "it's",
    "'5'": '5',
    "'true'": 'true',
    "'it''s'": "it's",
    "''": '',
    '': '',
  }
  for (const [text, value] of Object.entries(cases)) expect(parseSetting('n', text), text).toBe(value)
})

test.for(['007', '1.50', '+5', '1e5', '0x10', ' 5', '12345678901234567890', 'TRUE', 'Null', "'5", "5'", "'a'b'"])(
  'the value %s of --set may mean two things and is refused',
  (text) => {
    const quoted = `--set "n='${text.replaceAll("'", "''")}'"`
    expect(() => parseSetting('n', text)).toThrow(
      `--set n: expected a number such as 1.5, true, false, null, or a text, got ${text}; put a text into quotes: ${quoted}`,
    )
    expect(parseSetting('n', quoted.slice('--set "n='.length, -1))).toBe(text)
  },
)
