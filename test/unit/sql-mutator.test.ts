import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { allMutants, sampled, textOf } from '../../scripts/mutants/sql-mutants.ts'
import { mutated, mutationsOf } from '../../scripts/mutants/sql-mutator.ts'
import { roomOf, testsOf } from '../../scripts/mutants/sql-rooms.ts'
import { switched } from '../../scripts/mutants/sql-switch.ts'
import { sqlTextsOf } from '../../scripts/mutants/sql-texts.ts'

/** All that an SQL text becomes, spaces made one. */
function mutants(text: string, holes: '{{' | '${' = '{{'): string[] {
  return mutationsOf(text, holes).map((one) => mutated(text, one).replaceAll(/\s+/g, ' ').trim())
}

test('a small statement has exactly these mutants', () => {
  expect(mutants('SELECT a FROM x WHERE a < 1 AND b IS NULL OR c ORDER BY a, b DESC').toSorted()).toEqual(
    [
      'SELECT a FROM x WHERE b IS NULL OR c ORDER BY a, b DESC',
      'SELECT a FROM x WHERE c ORDER BY a, b DESC',
      'SELECT a FROM x WHERE a < 1 OR c ORDER BY a, b DESC',
      'SELECT a FROM x WHERE a < 1 AND b IS NULL ORDER BY a, b DESC',
      'SELECT a FROM x WHERE a <= 1 AND b IS NULL OR c ORDER BY a, b DESC',
      'SELECT a FROM x WHERE a < 0 AND b IS NULL OR c ORDER BY a, b DESC',
      'SELECT a FROM x WHERE a < 1 OR b IS NULL OR c ORDER BY a, b DESC',
      'SELECT a FROM x WHERE a < 1 AND b IS NULL AND c ORDER BY a, b DESC',
      'SELECT a FROM x WHERE a < 1 AND b IS NOT NULL OR c ORDER BY a, b DESC',
      'SELECT a FROM x WHERE a < 1 AND b IS NULL OR c ORDER BY b DESC',
      'SELECT a FROM x WHERE a < 1 AND b IS NULL OR c ORDER BY a',
      'SELECT a FROM x WHERE a < 1 AND b IS NULL OR c ORDER BY a DESC, b DESC',
      'SELECT a FROM x WHERE a < 1 AND b IS NULL OR c ORDER BY a, b ASC',
    ].toSorted(),
  )
})

test.each<[string, string, string[]]>([
  ['a condition alone', 'FROM x WHERE a', ['FROM x WHERE true']],
  ['a branch', 'CASE WHEN a THEN b END', ['CASE WHEN false THEN b END']],
  ['no branch of values', "CASE a WHEN 'x' THEN b END", []],
  ['a negation', 'FROM x WHERE NOT EXISTS (FROM y)', ['FROM x WHERE true', 'FROM x WHERE EXISTS (FROM y)']],
  ['no negation of a column', 'CREATE TABLE x (a INTEGER NOT NULL)', []],
  ['smaller of two', 'SELECT min(a), least(b, c)', ['SELECT max(a), least(b, c)', 'SELECT min(a), greatest(b, c)']],
  ['no column of such a name', 'SELECT first, last', []],
  ['rows of a window', 'max(a) OVER (PARTITION BY b)', ['min(a) OVER (PARTITION BY b)', 'max(a) OVER ()']],
  ['keys', 'JOIN x USING (a, b)', ['JOIN x USING (b)', 'JOIN x USING (a)']],
  ['groups', 'GROUP BY a, b', ['GROUP BY b', 'GROUP BY a']],
  ['a primary key', 'PRIMARY KEY (a, b)', ['PRIMARY KEY (b)', 'PRIMARY KEY (a)']],
  ['all groups are no key', 'GROUP BY ALL ORDER BY ALL', []],
  ['the first of several', 'SELECT coalesce(a, f(b, c))', ['SELECT (a)']],
  ['repetitions', 'FROM a UNION ALL FROM b', ['FROM a UNION FROM b']],
  ['repetitions wanted', 'FROM a UNION FROM b', ['FROM a UNION ALL FROM b']],
  ['NULL as a value', 'a IS DISTINCT FROM b', ['a <> b', 'a IS NOT DISTINCT FROM b']],
  ['NULL as a value, equal', 'a IS NOT DISTINCT FROM b', ['a = b', 'a IS DISTINCT FROM b']],
  ['where NULL stands', 'ORDER BY a NULLS LAST', ['ORDER BY a DESC NULLS LAST', 'ORDER BY a NULLS FIRST']],
  ['small numbers', 'SELECT x[2]', ['SELECT x[3]']],
  ['no fraction, no power', 'SELECT 1.5, 1e11', []],
  ['a range is no conjunction', 'WHERE a BETWEEN b AND c', ['WHERE true']],
  ['no condition is replaced', 'DECLARE OR REPLACE x; CREATE OR REPLACE VIEW y AS FROM z', []],
  ['no argument of a reader', "FROM read_json(x, format = 'array')", []],
  ['no layout of a file', 'COPY x TO y (ROW_GROUP_SIZE 4096)', []],
  ['no index', 'CREATE INDEX IF NOT EXISTS x ON y (a, b) WHERE c IS NULL', []],
  ['nothing in a comment', '-- a < 1 AND b\n/* c < /* 1 */ AND d */ FROM x', []],
  ['nothing in a text', "SELECT 'a < 1 AND it''s b', \"a < 1\", $$ a < 1 $$, $t$ a < 1 $t$", []],
  ['nothing in a placeholder', 'SELECT {{a < 1 AND {{b}} = 0}}', []],
])('%s', (_, text, expected) => expect(mutants(text).toSorted()).toEqual(expected.toSorted()))

test('a chain within brackets is a chain of its own, and IS DISTINCT FROM does not part it', () => {
  expect(mutants('WHERE (a OR b IS DISTINCT FROM c) AND d').toSorted()).toEqual(
    [
      'WHERE d',
      'WHERE (a OR b IS DISTINCT FROM c)',
      'WHERE (a OR b IS DISTINCT FROM c) OR d',
      'WHERE (b IS DISTINCT FROM c) AND d',
      'WHERE (a) AND d',
      'WHERE (a AND b IS DISTINCT FROM c) AND d',
      'WHERE (a OR b <> c) AND d',
      'WHERE (a OR b IS NOT DISTINCT FROM c) AND d',
    ].toSorted(),
  )
})

test('SQL is found in the texts of TypeScript, between its placeholders', () => {
  const source = [
    "import { a } from './a.ts'",
    '// `WHERE a < 1`',
    'const pattern = /`WHERE "a < 1/',
    'const one = `SELECT ${b ? `WHERE c < ${d({ e: "}" })}` : \'\'} FROM f`',
    "const two = 'neither this'",
    "const three = 'FROM g WHERE h = 1'",
  ].join('\n')
  const texts = sqlTextsOf(source).map(({ start, end }) => source.slice(start, end))
  expect(texts).toEqual([
    'SELECT ${b ? `WHERE c < ${d({ e: "}" })}` : \'\'} FROM f',
    'WHERE c < ${d({ e: "}" })}',
    'FROM g WHERE h = 1',
  ])
  expect(mutants(texts[0] ?? '', '${')).toEqual([])
  expect(mutants(texts[1] ?? '', '${').toSorted()).toEqual(['WHERE c <= ${d({ e: "}" })}', 'WHERE true'])
})

const all = allMutants(undefined)

test('a text of TypeScript is what the active mutant makes of it, also inside another text', () => {
  const source = "export const text = (b: string) => `WHERE ${b === '' ? 'true OR x' : b} AND y`\n"
  const [place, inner] = sqlTextsOf(source)
  if (!place || !inner) throw new Error('two texts')
  const asked = (id: string, at: typeof place, start: number, end: number, to: string) => ({
    id,
    mutant: { file: 'a.ts', line: 1, kind: '', mutant: '', source, edit: { start, end, to }, place: at },
  })
  const written = switched([
    asked('1', place, source.indexOf(' AND y'), source.indexOf(' AND y') + 6, ''),
    asked('2', inner, source.indexOf(' OR x'), source.indexOf(' OR x') + 5, ''),
  ])
  const input = `${written}for (const id of ['0', '1', '2']) { process.env.SQL_MUTANT = id; console.log(text('')) }`
  expect(
    execFileSync('node', ['--input-type=module-typescript'], { input, encoding: 'utf8' }).trim().split('\n'),
  ).toEqual(['WHERE true OR x AND y', 'WHERE true OR x', 'WHERE true AND y'])
})

test('every mutant of the project is another text, told apart from all others of its file', () => {
  expect(all.length).toBeGreaterThan(1500)
  expect(new Set(all.map(({ file, mutant }) => `${file} ${mutant}`)).size).toBe(all.length)
  expect(new Set(all.map((one) => `${one.file} ${textOf(one)}`)).size).toBe(all.length)
})

test('every mutant has tests that concern it', () => {
  const files = [...new Set(all.map(({ file }) => file))]
  expect(files.filter((file) => testsOf(file)[0].length === 0)).toEqual([])
  expect(files.flatMap((file) => testsOf(file).flat()).filter((path) => !existsSync(path))).toEqual([])
  expect(roomOf('src/views/sql/10_points.sql')).toBe('views')
})

test('a smaller sample is the beginning of a larger one of the same seed', () => {
  expect(sampled(all, 10, '1')).toEqual(sampled(all, 20, '1').slice(0, 10))
  expect(sampled(all, 10, '2')).not.toEqual(sampled(all, 10, '1'))
})
