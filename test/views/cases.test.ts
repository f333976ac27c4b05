import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Engine, Row } from '../../src/lake/store/engine.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { viewCaseCommits } from '../helpers/lakes/view-cases.ts'
import { withViews } from '../helpers/views.ts'

const folder = join(import.meta.dirname, 'cases')

/** Statements and what the last of them gives. */
interface Part {
  readonly statements: readonly string[]
  readonly expected: string
}

/** A file of test/views/cases; test/views/cases/README.md says how it is written. */
interface Case {
  readonly name: string
  readonly title: string
  readonly parts: readonly Part[]
}

/** Reads a case; throws where something of it would not be asked or not be compared. */
function readCase(name: string, text: string): Case {
  const [, title = ''] = /^-- (.+)\n/.exec(text) ?? []
  if (title === '') throw new Error(`${name}: the first line is no comment that says what the case shows`)
  const pieces = text.split(/^\/\*\n([\s\S]*?)\n\*\/$/m)
  if (pieces.length < 3) throw new Error(`${name}: no rows are expected`)
  if (pieces.at(-1)?.trim() !== '') throw new Error(`${name}: nothing is expected of the last statement`)
  const parts = Array.from({ length: (pieces.length - 1) / 2 }, (_, n): Part => {
    const statements = (pieces[2 * n] ?? '')
      .replaceAll(/^--.*$/gm, '')
      .split(/;[ ]*$/m)
      .map((one) => one.trim())
      .filter((one) => one !== '')
    if (statements.length === 0) throw new Error(`${name}: expected rows without a statement`)
    return { statements, expected: pieces[2 * n + 1] ?? '' }
  })
  return { name, title, parts }
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (Object.is(value, -0)) return '-0'
  if (typeof value === 'string' || typeof value === 'bigint') return String(value)
  return JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? Number(one) : one))
}

/** Rows as a case writes them: the names of the columns, then a line a row. */
function written(names: readonly string[], rows: readonly Row[]): string {
  return [names, ...rows.map((row) => names.map((name) => cell(row[name])))].map((line) => line.join(' | ')).join('\n')
}

async function given(engine: Engine, statements: readonly string[]): Promise<string> {
  const [last = '', ...before] = statements.toReversed()
  try {
    for (const one of before.toReversed()) await engine.run(one)
    const { names } = await engine.stream(`FROM (${last}) LIMIT 0`)
    return written(names, await engine.rows(last))
  } catch (error) {
    return `error: ${(error as Error).message}`
  }
}

const cases = readdirSync(folder)
  .filter((name) => name.endsWith('.sql'))
  .map((name) => readCase(name, readFileSync(join(folder, name), 'utf8')))

const { root } = lakeOfFile({ name: 'cases', commits: viewCaseCommits })

test.each(cases.map((one): [string, Case] => [`${one.title} (${one.name})`, one]))('%s', (_, { parts }) =>
  withViews(root, async (engine) => {
    for (const { statements, expected } of parts) {
      const answer = await given(engine, statements)
      const { 1: words } = /^error: (.*)$/.exec(expected) ?? []
      if (words === undefined) expect(answer).toBe(expected)
      else expect(answer.startsWith('error: ') ? answer : `no error but\n${answer}`).toContain(words)
    }
  }),
)

test('a case that would compare nothing is refused', () => {
  expect(() => readCase('a.sql', 'SELECT 1;\n')).toThrow('first line')
  expect(() => readCase('a.sql', '-- One.\nSELECT 1;\n')).toThrow('no rows are expected')
  expect(() => readCase('a.sql', '-- One.\n/*\na\n1\n*/\n')).toThrow('without a statement')
  expect(() => readCase('a.sql', '-- One.\nSELECT 1 AS a;\n/*\na\n1\n*/\nSELECT 2;\n')).toThrow('last statement')
  const { parts } = readCase('a.sql', '-- One.\nSET x = 1;\nSELECT 1 AS a;\n/*\na\n1\n*/\n')
  expect(parts).toEqual([{ statements: ['SET x = 1', 'SELECT 1 AS a'], expected: 'a\n1' }])
})
