import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  type Entry,
  pythonPackage,
  pythonReference,
  pythonSections,
  readDocstring,
  referencePages,
  type Section,
  jsonReference,
  jsonSections,
  typescriptReference,
  typescriptSections,
  withReference,
} from '../../scripts/reference-pages.ts'
import type {
  GivenOptions,
  gridOptions,
  JoinOptions,
  joinOptions,
  KnowledgeOptions,
  knowledgeOptions,
  panelOptions,
  pointsOptions,
} from '../../src/query/options.ts'
import type { Panel } from '../../src/query/panel.ts'
import type { PointsFilter } from '../../src/query/points.ts'
import { need } from '../helpers/needs.ts'

const pageText = (name: string): string => readFileSync(join(import.meta.dirname, '../..', name), 'utf8')
const entriesOf = (sections: readonly Section[]): readonly Entry[] => sections.flatMap(({ entries }) => entries)

/** Entries without a summary, parameters without a description, and calls without an example. */
const undescribed = (entries: readonly Entry[]): readonly string[] =>
  entries.flatMap(({ title, signature, summary, parameters, example }) => [
    ...(summary === '' ? [title] : []),
    ...parameters.filter(({ text }) => text === '').map(({ name }) => `${title}: ${name}`),
    ...(signature !== null && example === '' ? [`${title}: example`] : []),
  ])

const typescript = typescriptSections()
const python = pythonPackage()

test('the TypeScript page shows the signatures and doc comments of src/index.ts', () => {
  const page = pageText(referencePages.typescript)
  expect(page, 'node scripts/reference-pages.ts').toBe(withReference(page, typescriptReference()))
})

test('every export of TypeScript has a description, each parameter too, and each call an example', () => {
  const entries = entriesOf(typescript)
  expect(entries.length).toBeGreaterThan(40)
  expect(undescribed(entries)).toEqual([])
})

describe('the Python package', () => {
  const entries = (): readonly Entry[] => (python === undefined ? [] : entriesOf(pythonSections(python)))

  test('has a page with the signatures and docstrings of today', (context) => {
    need(context, 'python3')
    const page = pageText(referencePages.python)
    expect(page, 'node scripts/reference-pages.ts').toBe(withReference(page, pythonReference() ?? ''))
  })

  test('describes every export, each parameter too, and has an example for each call', (context) => {
    need(context, 'python3')
    expect(entries().length).toBeGreaterThan(40)
    expect(undescribed(entries())).toEqual([])
  })

  test('has an entry for each public function and class of the adapters for engines', (context) => {
    need(context, 'python3')
    const folder = join(import.meta.dirname, '../../python/pitlake/engines')
    const names = readdirSync(folder).flatMap((file) =>
      [...readFileSync(join(folder, file), 'utf8').matchAll(/^(?:def|class) ([A-Za-z]\w*)/gm)].map(
        ([, name]) => `${file.replace('.py', '')}.${name}`,
      ),
    )
    expect(names.length).toBeGreaterThan(8)
    expect(python?.engines.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  })

  test('describes no parameter that a call does not have', (context) => {
    need(context, 'python3')
    const given = [...(python?.exports ?? []), ...(python?.engines ?? [])]
      .flatMap((one) => [one, ...one.members])
      .filter(({ kind }) => kind === 'function')
    const strange = given.flatMap(({ name, parameters, docstring }) => {
      const own = new Set(parameters.map((one) => one.name.replace(/^\*+/, '')))
      return [...readDocstring(docstring).parameters.keys()]
        .filter((one) => !own.has(one))
        .map((one) => `${name}: ${one}`)
    })
    expect(strange).toEqual([])
  })
})

test('the page of JSON documents shows every field of the nine types, each with a description', () => {
  const page = pageText(referencePages.json)
  const entries = entriesOf(jsonSections())
  expect(page, 'node scripts/reference-pages.ts').toBe(withReference(page, jsonReference()))
  expect(entries.map(({ parameters }) => parameters.length > 8)).toEqual(Array(9).fill(true))
  expect(undescribed(entries)).toEqual([])
})

test('a docstring is read as summary, details, parameters, result and example', () => {
  const text = `Does it.

More about it.

Args:
    query: One: or
        several.
    n: How many.

Returns:
    The rows.

>>> f("x")  # doctest: +SKIP
1`
  expect(readDocstring(text)).toEqual({
    summary: 'Does it.',
    details: 'More about it.',
    parameters: new Map([
      ['query', 'One: or\n    several.'],
      ['n', 'How many.'],
    ]),
    returns: 'The rows.',
    example: '>>> f("x")\n1',
  })
})

test('a page without the marks of its reference is refused', () => {
  expect(() => withReference('# Python\n', 'text')).toThrow('no place for its reference')
})

/** Whether two types accept the same values; the compiler decides it. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false

test('the options that a caller in TypeScript may give are those of the option tables', () => {
  expect<Same<Required<KnowledgeOptions>, Required<GivenOptions<typeof knowledgeOptions>>>>(true).toBe(true)
  expect<Same<Required<JoinOptions>, Required<GivenOptions<typeof joinOptions>>>>(true).toBe(true)
  expect<Same<Required<PointsFilter>, Required<GivenOptions<typeof pointsOptions>>>>(true).toBe(true)
  type PanelOptions = Omit<Panel, 'decisions' | 'latencySeconds' | 'maxAgeSeconds'>
  expect<Same<Required<PanelOptions>, Required<GivenOptions<typeof gridOptions & typeof panelOptions>>>>(true).toBe(
    true,
  )
})
