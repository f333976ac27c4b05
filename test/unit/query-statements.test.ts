import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cutAtCommas, cutScript, isOpen, opening, openingWords, statementsOf } from '../../src/query/statements.ts'

const texts = (sql: string): readonly string[] => statementsOf(sql).map(({ text }) => text)

describe('a script is cut at its semicolons', () => {
  test.each([
    ['SELECT 1', ['SELECT 1']],
    ['SELECT 1;', ['SELECT 1']],
    [' SELECT 1 ; SELECT 2 ;; ', ['SELECT 1', 'SELECT 2']],
    ["SELECT ';'; SELECT 'it''s;'", ["SELECT ';'", "SELECT 'it''s;'"]],
    ['SELECT 1 AS "a;b"; SELECT 2', ['SELECT 1 AS "a;b"', 'SELECT 2']],
    ['SELECT 1 -- no; end\r + 1; SELECT 2', ['SELECT 1 -- no; end\r + 1', 'SELECT 2']],
    ['SELECT 1 -- no; end\n + 1; SELECT 2', ['SELECT 1 -- no; end\n + 1', 'SELECT 2']],
    ['SELECT /* a; /* b; */ c; */ 1; SELECT 2', ['SELECT /* a; /* b; */ c; */ 1', 'SELECT 2']],
    ['SELECT $$;$$; SELECT $a$;$$;$a$', ['SELECT $$;$$', 'SELECT $a$;$$;$a$']],
    [String.raw`SELECT E'\';'; SELECT 2`, [String.raw`SELECT E'\';'`, 'SELECT 2']],
    ['SELECT $1 + $name; SELECT 2', ['SELECT $1 + $name', 'SELECT 2']],
    ['-- only a comment', []],
    ['/* only */ ; ', []],
    ['', []],
  ])('%j', (sql, expected) => expect(texts(sql)).toEqual(expected))

  test('the parts of a script stand at their offsets and lose no text', () => {
    const part = fc.constantFrom('a', ' ', '\n', ';', "'", '"', '--', '/*', '*/', '$$', '$x$', 'é', "E'", '\\', '1')
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        const sql = parts.join('')
        for (const { text, offset } of statementsOf(sql)) expect(sql.startsWith(text, offset)).toBe(true)
        const { statements, rest } = cutScript(sql)
        if (!isOpen(sql)) expect(texts(`${sql}\n;`)).toEqual([...statements, rest].map((s) => s.text).filter(Boolean))
      }),
    )
  })

  test.each([
    ["SELECT 'a", true],
    ["SELECT 'a'", false],
    ['SELECT "a', true],
    ['/* a', true],
    ['/* a */', false],
    ['$$ a', true],
    ['-- a', false],
  ])('open: %j is %s', (sql, open) => expect(isOpen(sql)).toBe(open))
})

describe('what a statement says about itself', () => {
  test('a statement is known by its opening words without comments', () => {
    expect(openingWords('/* COPY */ select  1', 2)).toEqual(['SELECT', '1'])
    expect(opening(' -- a\r/* b */ SELECT 1')).toBe(14)
    expect(opening(' -- a')).toBeUndefined()
  })

  test.each([
    ['(a, b) AS c', ['a', ' b'], ' AS c'],
    ["(a DECIMAL(9, 2), b := ',)') x", ['a DECIMAL(9, 2)', " b := ',)'"], ' x'],
    ['(a[1, 2], {b: 1, c: 2})', ['a[1, 2]', ' {b: 1, c: 2}'], ''],
  ])('%j cut at its commas', (sql, parts, after) => expect(cutAtCommas(sql)).toEqual({ parts, after }))

  test.each(['a, b', '(a', ''])('%j has nothing in parentheses', (sql) => expect(cutAtCommas(sql)).toBeUndefined())
})
