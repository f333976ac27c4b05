import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import {
  ambientBreaches,
  callBreaches,
  castBreaches,
  defaultExports,
  headlessSql,
  silentSkips,
  strayScripts,
  vainAssertions,
  ownerBreaches,
  undocumentedCommands,
  unreadKeys,
  wornNames,
} from './house/habits.ts'
import { caseBreaches, lawBreaches, lostPlaces } from './house/cases.ts'
import { cycles, type Files, floors, loadedBy, orderBreaches, rankOf } from './house/order.ts'
import { codeOnly, importsOf } from './house/source.ts'
import { forbiddenWords } from './house/words.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Every text file that is tracked, or would be with the next `git add`. */
function project(): Files {
  const listed = execFileSync(
    'git',
    ['-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    { cwd: root },
  )
  const paths = listed
    .toString('utf8')
    .split('\0')
    .filter((path) => path !== '' && existsSync(join(root, path)))
  const texts = paths.map((path): [string, string] => [path, readFileSync(join(root, path), 'utf8')])
  return new Map(texts.filter(([, text]) => !text.includes('\0')))
}

const files = project()
const of = (texts: Readonly<Record<string, string>>): Files => new Map(Object.entries(texts))

describe('this project', () => {
  test('the source files of the project are found', () => {
    expect([...files.keys()]).toContain('src/base/time.ts')
    expect([...files.keys()].filter((path) => path.startsWith('src/')).length).toBeGreaterThan(10)
  })
  test('modules import along the order of floors only', () => expect(orderBreaches(files)).toEqual([]))
  test('has no ring of imports', () => expect(cycles(files)).toEqual([]))
  test('fetching loads what fetching needs', () => {
    const run = ['cli', 'parse', 'frame', 'fetch'].map((name) => `src/interfaces/commands/${name}.ts`)
    const loaded = [...new Set(run.flatMap((path) => [...loadedBy(files, path)]))]
    expect(loaded).toContain('src/sources/metrics/fetch.ts')
    const elsewhere =
      /^src\/(?:sources\/(?:registry|points)|interfaces\/report)\/|^src\/query\/views\/(?!manifest)|^src\/maintenance\/upkeep\/(?!finish)/
    expect(loaded.filter((path) => elsewhere.test(path))).toEqual([])
    const house = { 'src/a.ts': "import './b.ts'\nimport type { C } from './c.ts'\nawait import('./d.ts')" }
    const rest = { 'src/b.ts': "export * from './e.ts'", 'src/c.ts': '', 'src/d.ts': '', 'src/e.ts': '' }
    expect([...loadedBy(of({ ...house, ...rest }), 'src/a.ts')]).toEqual(['src/a.ts', 'src/b.ts', 'src/e.ts'])
  })
  test('copies no script into the package where compiled ones stand', () => {
    expect(strayScripts(files)).toEqual([])
    expect(strayScripts(of({ 'src/a/b.ts': '', 'src/a/c.js': '', 'src/a/d/e.js': '' }))).toEqual(['src/a/c.js'])
  })
  test('touches the world through its owners', () => expect(ownerBreaches(files)).toEqual([]))
  test('takes clock, chance and process as arguments', () => expect(ambientBreaches(files)).toEqual([]))
  test('waits and draws names through their owners', () => expect(callBreaches(files)).toEqual([]))
  test('believes no value that it has not looked at', () => {
    expect(castBreaches(files)).toEqual([])
    const cast = {
      'src/lake/ledger/index-queries.ts': 'a\nreturn rows as  unknown as Row[]',
      'src/x.ts': '// as never',
    }
    expect(castBreaches(of(cast))).toEqual(['src/lake/ledger/index-queries.ts:2: as  unknown as'])
    expect(castBreaches(of({ 'src/lake/ledger/ledger.ts': 'made as unknown as Statement' }))).toEqual([])
  })
  test('no module has a default export', () => expect(defaultExports(files)).toEqual([]))
  test('says above each SQL object what it is for', () => expect(headlessSql(files)).toEqual([]))
  test('every command has a page', () => {
    expect(undocumentedCommands(files)).toEqual([])
    const command = of({ 'src/interfaces/commands/x.ts': "name: 'x',\n  summary: 's'," })
    expect(undocumentedCommands(command)).toEqual([expect.stringContaining('no heading for x')])
  })
  test('asserts nothing that cannot fail', () => {
    expect(vainAssertions(files)).toEqual([])
    const vain = 'expect(a).not.toContain(expect.stringMatching(/b/))'
    expect(vainAssertions(of({ 'test/a.test.ts': `\n${vain}` }))).toEqual(['test/a.test.ts:2'])
  })
  test('leaves no test out in silence', () => {
    expect(silentSkips(files)).toEqual([])
    for (const line of [
      'test.skip(',
      'test.runIf(there)(',
      'describe.skipIf(a)(',
      'it.todo(',
      'test.each.only(',
      'context.skip(',
    ])
      expect(silentSkips(of({ 'test/a.test.ts': line }))).toHaveLength(1)
    expect(silentSkips(of({ 'test/a.test.ts': "need(context, 'mount')" }))).toEqual([])
  })
  test('reads every key of the catalogue', () => expect(unreadKeys(files)).toEqual([]))
  test('holds each case of time in a test that names it', () => {
    expect(caseBreaches(files)).toEqual([])
    const titles = (numbers: string): Files =>
      of({ 'docs/explanation/concepts.md': '1. One.\n2. Two.\n', 'test/a.test.ts': `test('${numbers}: so', () => {})` })
    expect(caseBreaches(titles('TIME 1, TIME 2'))).toEqual([])
    expect(caseBreaches(titles('TIME 2'))).toEqual(['no test is titled TIME 1'])
    expect(caseBreaches(titles('TIME 1, 2'))).toEqual(['no test is titled TIME 1', 'no test is titled TIME 2'])
    expect(caseBreaches(titles('TIME 1, TIME 2, TIME 3'))).toEqual(['docs/explanation/concepts.md does not list 3'])
  })
  test('tries each law in a test that is named after it', () => {
    expect(lawBreaches(files)).toEqual([])
    const laws = { 'docs/explanation/concepts.md': '- **L1 A.** a\n- **L2 B.** b\n- **L3 C.** c\n' }
    expect(lawBreaches(of({ ...laws, 'test/laws/L1-L2-a.test.ts': '' }))).toEqual(['no test is named after L3'])
    const further = { 'test/laws/L1-L2-a.test.ts': '', 'test/a.test.ts': "test('L3: c', f)\ntest('L4: d', f)" }
    expect(lawBreaches(of({ ...laws, ...further }))).toEqual(['docs/explanation/concepts.md does not list L4'])
  })
  test('has every place that the table of changes names', () => {
    expect(lostPlaces(files)).toEqual([])
    const table = '| a | `src/a/`, `b.ts`, `src/*/<name>.ts` | `c.ts`, `d/`, `docs/e.md` |'
    expect(lostPlaces(of({ 'CONTRIBUTING.md': table, 'src/a/b.ts': '' }))).toEqual(['c.ts', 'd/', 'docs/e.md'])
  })
  test('names nothing by a word of many meanings', () => {
    expect(wornNames(files)).toEqual([])
    for (const line of [
      'async function told(a: X): Y {',
      'interface Told {',
      '  const told = (a) => b',
      'export type Settled = 1',
    ])
      expect(wornNames(of({ 'src/a.ts': `\n${line}` }))).toEqual([expect.stringContaining('src/a.ts:2: ')])
    expect(wornNames(of({ 'src/a.ts': '  const told = await read()\ninterface ToldAlarms {' }))).toEqual([])
  })
  test('names no machine, no package registry, no loose end', () => expect(forbiddenWords(files)).toEqual([]))
})

describe('the order of the floors', () => {
  const house = {
    'src/base/time.ts': '',
    'src/catalog/load.ts': '',
    'src/lake/store/engine.ts': '',
    'src/lake/ledger/journal.ts': '',
    'src/sources/http/outcome.ts': '',
    'src/sources/metrics/plan.ts': '',
    'src/sandbox/server.ts': '',
    'src/sandbox/world/noise.ts': '',
    'src/interfaces/commands/fetch.ts': '',
  }
  const breach = (path: string, line: string): readonly string[] => orderBreaches(of({ ...house, [path]: line }))

  test.each([
    ['src/base/time.ts', "import { plan } from '../sources/metrics/plan.ts'", 'a higher floor'],
    ['src/base/time.ts', "import type { Plan } from '../sources/metrics/plan.ts'", 'a higher floor'],
    ['src/lake/store/engine.ts', "export { judge } from '../../sources/http/outcome.ts'", 'a higher floor'],
    [
      'src/sources/metrics/plan.ts',
      "const late = await import('../../interfaces/commands/fetch.ts')",
      'a higher floor',
    ],
    [
      'src/sources/metrics/plan.ts',
      "import { serve } from '../../sandbox/server.ts'",
      'only commands know the sandbox',
    ],
    [
      'src/sandbox/server.ts',
      "import type { Outcome } from '../sources/http/outcome.ts'",
      'the sandbox takes from base',
    ],
    ['src/sources/metrics/plan.ts', "import { gone } from './gone.ts'", 'no such file'],
    ['src/utils.ts', '', 'outside the floors'],
    ['src/misc/a.ts', '', 'outside the floors'],
  ])('%s: %s', (path, line, why) => expect(breach(path, line)).toEqual([expect.stringContaining(why)]))

  test.each([
    ['src/interfaces/commands/fetch.ts', "import { serve } from '../../sandbox/server.ts'"],
    ['src/main.ts', "import { fetch } from './interfaces/commands/fetch.ts'"],
    ['src/lake/store/engine.ts', "import { journal } from '../ledger/journal.ts'"],
    ['src/sources/metrics/plan.ts', "import {\n  type Outcome,\n  judge,\n} from '../http/outcome.ts'"],
    ['src/sandbox/server.ts', "import { hour } from '../base/time.ts'"],
    ['src/base/time.ts', "// import { plan } from '../sources/metrics/plan.ts'"],
    ['src/base/time.ts', 'const text = "import { plan } from \'../sources/metrics/plan.ts\'"'],
  ])('an allowed import passes: %s: %s', (path, line) => expect(breach(path, line)).toEqual([]))

  test('the rank of a file is the position of its floor', () => {
    expect(rankOf('src/query/views/sql.ts')).toBe(floors.indexOf('query'))
    expect(rankOf('src/index.ts')).toBe(floors.length)
    expect(rankOf('src/views.ts')).toBeUndefined()
    expect(rankOf('docs/x.md')).toBeUndefined()
    for (const floor of floors) expect([...files.keys()].some((path) => path.startsWith(`src/${floor}/`))).toBe(true)
  })

  test('rings are found through other files and through types', () => {
    const ring = of({
      'src/lake/ledger/a.ts': "import { b } from './b.ts'",
      'src/lake/ledger/b.ts': "import type { C } from './c.ts'",
      'src/lake/ledger/c.ts': "import { a } from './a.ts'",
      'src/lake/ledger/d.ts': "import { a } from './a.ts'",
    })
    expect(cycles(ring)).toEqual([
      'src/lake/ledger/a.ts -> src/lake/ledger/b.ts -> src/lake/ledger/c.ts -> src/lake/ledger/a.ts',
    ])
    expect(cycles(of({ 'src/lake/ledger/d.ts': "import { a } from './a.ts'", 'src/lake/ledger/a.ts': '' }))).toEqual([])
  })
})

describe('the habits', () => {
  test.each([
    ['src/sources/http/ask.ts', "import { createServer } from 'node:http'", 'src/sandbox/server.ts'],
    ['src/sandbox/metrics.ts', "import http from 'http'", 'src/sandbox/server.ts'],
    ['src/sources/http/ask.ts', "import { request } from 'undici'", 'src/sources/http/http.ts'],
    ['src/lake/ledger/views.ts', "const db = await import('@duckdb/node-api')", 'src/lake/store/engine.ts'],
    ['src/lake/ledger/journal.ts', "import { DatabaseSync } from 'node:sqlite'", 'src/lake/ledger/ledger.ts'],
    [
      'src/interfaces/commands/sql.ts',
      "import { spawn } from 'node:child_process'",
      'src/interfaces/commands/hooks.ts',
    ],
    ['src/sources/metrics/plan.ts', "import { Worker } from 'node:worker_threads'", 'nobody'],
    ['src/sources/metrics/plan.ts', "import process from 'node:process'", 'src/main.ts'],
  ])('a call outside its owner is reported: %s: %s', (path, line, owner) => {
    expect(ownerBreaches(of({ [path]: line }))).toEqual([expect.stringContaining(owner)])
  })

  test('owners may, and types may', () => {
    const good = {
      'src/lake/ledger/ledger.ts': "import { DatabaseSync } from 'node:sqlite'",
      'src/sandbox/server.ts': "import { createServer } from 'node:http'",
      'src/lake/ledger/apply.ts': "import type { DatabaseSync } from 'node:sqlite'",
    }
    expect(ownerBreaches(of(good))).toEqual([])
  })

  test.each([
    'const now = Date.now()',
    'const clock = Date.now',
    'const now = new Date()',
    'const now = new Date',
    'const x = Math.random() * 2',
    'const start = performance.now()',
    'const home = process.env.HOME',
    "const home = process['env']",
    'console.log(1)',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a file
    'const text = `at ${Date.now()}`',
    'const text = /[\'"]/.test(a) ? Date.now() : 0',
    'const p = globalThis.process',
  ])('the world as an argument: %s', (line) => {
    expect(ambientBreaches(of({ 'src/sources/metrics/plan.ts': `\n${line}\n` }))).toEqual([
      expect.stringMatching(/^src\/sources\/metrics\/plan\.ts:2: /),
    ])
    expect(ambientBreaches(of({ 'src/interfaces/commands/fetch.ts': line, 'src/main.ts': line }))).toEqual([])
  })

  test.each([
    'const date = new Date(seconds * 1000)',
    'const now = deps.now()',
    '// Date.now() is forbidden here',
    '/* console.log */',
    "const text = 'console.log(Date.now())'",
    'const text = `process.env`',
    'await deps.process.wait()',
    'const pattern = /Date.now()/',
  ])('an allowed call is not reported: %s', (line) =>
    expect(ambientBreaches(of({ 'src/sources/metrics/plan.ts': line }))).toEqual([]),
  )

  test('a default export is reported', () => {
    const bad = of({
      'src/a.ts': 'export default function f() {}',
      'test/b.ts': 'const a = 1\nexport { a as default }',
    })
    expect(defaultExports(bad)).toHaveLength(2)
    expect(defaultExports(of({ 'src/a.ts': "// export default\nexport const a = 'export default'" }))).toEqual([])
  })

  test('an SQL file without a header is reported', () => {
    const sql = of({
      'src/query/views/sql/01_a.sql': 'SELECT 1',
      'src/query/views/sql/02_b.sql': '--\nSELECT 1',
      'src/query/views/sql/03_c.sql': '-- points: every value knowable at as_of\nSELECT 1',
      'src/query/views/sql/04_d.sql': '',
    })
    expect(headlessSql(sql).map((line) => line.slice(20, 24))).toEqual(['01_a', '02_b', '04_d'])
  })

  test('commands without help or without a page', () => {
    const table =
      "[{ name: 'catalog list', summary: 'list' },\n { name: 'plan',\n summary: '' }, { name: 'sql', summary: \"q\" }]"
    const docs = '# Commands\n\n## `pitlake catalog list`\n\nplan\n\n### sql [QUERY]\n'
    expect(
      undocumentedCommands(of({ 'src/interfaces/commands/table.ts': table, 'docs/reference/commands.md': docs })),
    ).toEqual([
      'src/interfaces/commands/table.ts: plan has no summary',
      'src/interfaces/commands/table.ts: no heading for plan in docs/reference/commands.md',
    ])
    expect(undocumentedCommands(of({ 'src/interfaces/commands/table.ts': table }))).toHaveLength(4)
  })

  test('a configuration key that no code reads is reported', () => {
    const texts = {
      'src/catalog/catalogue.ts':
        'export interface E {\n  readonly path: string\n  readonly since?: boolean\n  readonly about: string\n}',
      'src/catalog/load.ts': 'x.about',
      'src/sources/metrics/plan.ts': '// e.about\nconst { since } = e\nuse(e.path)',
    }
    expect(unreadKeys(of(texts))).toEqual(['src/catalog/catalogue.ts: nobody reads about'])
  })

  test('words that do not belong', () => {
    const slash = '/'
    const host = 'npmjs'
    const loose = ['TO', 'DO'].join('')
    const equals = '='
    const bad = [
      `${slash}work${slash}main`,
      `cd ${slash}root`,
      `${slash}home${slash}ada${slash}lake`,
      `https://registry.${host}.org/x`,
      `${loose}: later`,
      `registry${equals}https://mirror.example`,
    ]
    for (const text of bad)
      expect(forbiddenWords(of({ 'a.md': `one\n${text}` }))).toEqual([expect.stringMatching(/^a\.md:2: /)])
    const good = [
      'data/work/x',
      'network/root',
      '$HOME/work',
      'homework',
      'the root of',
      'registry API',
      '~/work/x',
      'todo',
    ]
    for (const text of good) expect(forbiddenWords(of({ 'a.md': text }))).toEqual([])
  })
})

describe('reading a source', () => {
  test('imports of every form are read from a source', () => {
    const source = [
      "import './a.ts'",
      "import type { B } from './b.ts'",
      "import { type C, type D } from './c.ts'",
      "import { type C, d } from './d.ts'",
      "import * as e from './e.ts'",
      "export * from './f.ts'",
      "export type { G } from './g.ts'",
      "const h = () => import('./h.ts')",
      "/* import './x.ts' */",
    ].join('\n')
    const read = importsOf(source).map(({ target, typeOnly }) => `${target}${typeOnly ? ' type' : ''}`)
    expect(read.toSorted()).toEqual([
      './a.ts',
      './b.ts type',
      './c.ts type',
      './d.ts',
      './e.ts',
      './f.ts',
      './g.ts type',
      './h.ts',
    ])
  })

  test('strings, patterns and templates go, code and line numbers stay', () => {
    const source = [
      "const a = 'x' // one",
      String.raw`const b = /["'\/]/g`,
      'const c = `t ${d.map((e) => `${e}`)} u`',
      'f(c / 2, "y\\"") / 3',
      '/* two',
      'three */ g()',
    ].join('\n')
    expect(codeOnly(source).split('\n')).toEqual([
      `const a = ' '${' '.repeat(7)}`,
      `const b =${' '.repeat(10)}`,
      'const c = `  ${d.map((e) => `${e}`)}  `',
      'f(c / 2, "   ") / 3',
      ' '.repeat(6),
      `${' '.repeat(8)} g()`,
    ])
  })
})
