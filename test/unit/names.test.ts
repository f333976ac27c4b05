import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { joinOptions, knowledgeOptions, panelOptions } from '../../src/query/options.ts'
import { intervals, measureOf } from '../../src/base/time.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const all = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, name = '']) => name).toSorted()

const typescript = read('src/index.ts')
const python = read('python/pitlake/lake.py')
const lakeInTypescript = /export interface Lake \{\n([\s\S]*?)\n\}/.exec(typescript)?.[1] ?? ''
const lakeInPython = /\nclass Lake:\n([\s\S]*?)\n\n\nSTATUS/.exec(python)?.[1] ?? ''

/** What a lake answers, in TypeScript and in Python. */
const named = {
  typescript: [
    ...all(lakeInTypescript, /^ {2}(?:readonly )?(\w+)[(:]/gm),
    ...all(typescript, /^export async function (\w+)/gm).filter((name) => name !== 'openLake'),
  ]
    .map(snake)
    .toSorted(),
  python: [
    // A frame in memory is Python's own; files are imported by the command line.
    ...all(lakeInPython, /^ {4}def ([a-z]\w*)\(/gm).filter((name) => name !== 'import_frame'),
    ...all(read('python/pitlake/lookahead.py'), /^def ([a-z]\w*)\(/gm),
  ].toSorted(),
}

test('a lake has the same names in TypeScript and in Python', () => {
  expect(named.typescript.length).toBeGreaterThan(15)
  expect(named.python).toEqual(named.typescript)
})

test('options of opening a lake have the same names in TypeScript and Python, apart from the progress bar', () => {
  const fieldsOf = (name: string, file: string): readonly string[] =>
    all(
      new RegExp(`interface ${name} extends .*\\{\\n([\\s\\S]*?)\\n\\}`).exec(read(file))?.[1] ?? '',
      /^ {2}readonly (\w+)\?/gm,
    )
  const options = [...fieldsOf('QueryOptions', 'src/query/lake.ts'), ...fieldsOf('LakeOptions', 'src/index.ts')]
  const signature = /\ndef open\(([\s\S]*?)\) -> Lake/.exec(python)?.[1] ?? ''
  const given = all(signature, /(\w+): /g).filter((name) => !['path', 'progress'].includes(name))
  expect(given).toEqual([...Object.keys(knowledgeOptions), ...options.map(snake)].toSorted())
})

test.each([
  ['joins', /def pit_join\(([\s\S]*?)\) -> Result/, joinOptions, ['self', 'decisions', 'metric']],
  ['panels', /def panel\(([\s\S]*?)\) -> Result/, panelOptions, ['self', 'decisions']],
] as const)('options of %s have the same names in TypeScript and Python', (_, pattern, table, further) => {
  const theirs = all(pattern.exec(python)?.[1] ?? '', /(\w+): /g).filter((name) => !further.some((one) => one === name))
  expect(theirs.length).toBeGreaterThan(7)
  // `with` is a word of Python.
  const ours = Object.keys(table).map((name) => (name === 'with' ? 'universe_columns' : name))
  expect(theirs).toEqual(ours.toSorted())
})

test('both reference pages name each method of a lake', () => {
  const own = read('docs/reference/python.md')
  const other = read('docs/reference/typescript.md')
  const lost = (page: string, names: readonly string[]): string[] =>
    names.filter((name) => !new RegExp(`\`[^\`]*\\b${name}\\b[^\`]*\``).test(page))
  expect(lost(own, named.python)).toEqual([])
  const camel = named.typescript.map((name) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()))
  expect(lost(other, camel)).toEqual([])
})

test('an interval is as long in Python as in TypeScript, and stands in the same place', () => {
  const lengths = /^SECONDS = (\{.*\})\nMONTHS = (\{.*\})$/m.exec(read('python/pitlake/text.py')) ?? []
  const [seconds = {}, months = {}] = lengths.slice(1).map((text) => JSON.parse(text.replaceAll('_', '')) as object)
  const ours = intervals.map((name) => ({ name, ...measureOf(name) }))
  expect(Object.entries(seconds)).toEqual(ours.flatMap((one) => (one.months > 0 ? [] : [[one.name, one.seconds]])))
  expect(Object.entries(months)).toEqual(ours.flatMap((one) => (one.months > 0 ? [[one.name, one.months]] : [])))
})
