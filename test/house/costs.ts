import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What a kind of change costs in the TypeScript of `src`: new files, and files that were there with the lines that change. */
export interface Cost {
  readonly files: number
  readonly changed: number
  readonly lines: number
}

/** A kind of change as somebody would make it, who then sees that it works. */
export interface Change {
  /** As the table in CONTRIBUTING.md names it: the words behind "I want to". */
  readonly name: string
  /** As that table says it. */
  readonly cost: string
  readonly make: (copy: Copy) => void
  /** Statements of a module of the copy whose `src` is `src`; what they print, as JSON, is to be `shows`. */
  readonly proof: string
  readonly shows: unknown
}

/** The project's program in a folder of its own, in which anything may be changed. */
export class Copy {
  readonly folder = mkdtempSync(join(tmpdir(), 'pitlake-change-'))

  constructor() {
    for (const name of ['src', 'catalog', 'scripts', 'package.json', 'tsconfig.json', 'tsconfig.build.json'])
      cpSync(join(root, name), join(this.folder, name), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'))
  }

  /** Writes a file that was not there. */
  add(path: string, text: string): void {
    writeFileSync(join(this.folder, path), text, { flag: 'wx' })
  }

  /** Puts text behind the first place where another one stands. */
  behind(path: string, place: string, text: string): void {
    const file = join(this.folder, path)
    const before = readFileSync(file, 'utf8')
    const at = before.indexOf(place)
    if (at < 0) throw new RangeError(`${path} has no ${place}`)
    writeFileSync(file, before.slice(0, at + place.length) + text + before.slice(at + place.length))
  }

  /** Runs a program of the copy; what it prints. */
  run(...words: readonly string[]): string {
    const preload = ['-r', join(this.folder, 'scripts/node24.cjs')]
    const { stdout, stderr, status } = spawnSync(process.execPath, [...preload, ...words], {
      encoding: 'utf8',
      cwd: this.folder,
      env: { HOME: this.folder, PATH: process.env['PATH'] },
    })
    if (status !== 0) throw new Error(`${words.join(' ')}: ${stderr}`)
    return stdout
  }

  /** What was changed in the TypeScript of `src`. */
  cost(): Cost {
    const now = sourcesOf(this.folder)
    const before = sourcesOf(root)
    const fresh = [...now.keys()].filter((path) => !before.has(path))
    const changed = [...before].map(([path, text]) => linesApart(text, now.get(path) ?? ''))
    const lines = changed.reduce((sum, count) => sum + count, 0)
    return { files: fresh.length, changed: changed.filter((count) => count > 0).length, lines }
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function sourcesOf(folder: string): ReadonlyMap<string, string> {
  const src = join(folder, 'src')
  const names = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  return new Map(names.map((name) => [name, readFileSync(join(src, name), 'utf8')]))
}

/** Lines of one text that the other has not, or has oftener, on the side that has more of them. */
function linesApart(one: string, other: string): number {
  const counts = new Map<string, number>()
  for (const line of one.split('\n')) counts.set(line, (counts.get(line) ?? 0) + 1)
  for (const line of other.split('\n')) counts.set(line, (counts.get(line) ?? 0) - 1)
  const apart = [...counts.values()]
  const sum = (some: readonly number[]): number => some.reduce((all, count) => all + Math.abs(count), 0)
  return Math.max(sum(apart.filter((count) => count > 0)), sum(apart.filter((count) => count < 0)))
}

/** The words of a cost in the table. */
export function costInWords({ files, changed, lines }: Cost): string {
  const places = changed === 1 ? `${lines} lines of one file` : `${lines} lines of ${changed} files`
  const parts = [
    ...(files === 0 ? [] : [files === 1 ? 'a new file' : `${files} new files`]),
    ...(lines === 0 ? [] : [lines === 1 ? 'a line' : places]),
  ]
  return parts.length === 0 ? 'nothing' : parts.join(' and ')
}

const hello = `import { answering } from '../call/spec.ts'

/** \`hello\`: a greeting. */
export const helloCommand = answering({
  args: { '<whom>': 'somebody' },
  options: { '--times N': ['how often', '1'] },
  answer: async ({ args: [whom = ''], options: { times } }) => {
    const document = { whom, times: times + 0 }
    return await Promise.resolve({ document, words: () => \`hello \${whom}\\n\`.repeat(times) })
  },
})
`

const afterStart = `  afterStart: {
    keys: { after_start: duration.optional() },
    read: ({ after_start: seconds = 0 }: { readonly after_start?: number }) => ({ seconds }),
    seconds: ({ seconds }: { readonly seconds: number }) => seconds,
    describe: ({ seconds }: { readonly seconds: number }) => \`start of interval + \${formatLag(seconds)}\`,
    isLag: false,
    at: (t, close, seconds) => Math.max(close, t + seconds),
    sql: (t, close, seconds) => \`greatest(\${close}, \${t} + \${seconds})\`,
    undue: (at, seconds, start, ceil) => \`least(\${start(at)}, \${ceil(\`(\${at} - \${seconds})\`)})\`,
  },
`

/** Every kind of change whose cost is held; each room adds its own. */
export const changes: readonly Change[] = [
  {
    name: 'a command',
    cost: 'a new file and a line',
    make: (copy) => {
      copy.add('src/commands/hello.ts', hello)
      copy.behind(
        'src/commands/table.ts',
        "'To begin': [\n",
        "    ['hello', 'Greet.', '', () => import('./hello.ts')],\n",
      )
    },
    proof: `
      import { commandTable } from './src/commands/table.ts'
      import { dispatch } from './src/commands/cli.ts'
      let said = ''
      const deps = { env: {}, cwd: '.', stdout: (text) => void (said += text), stderr: () => undefined }
      await dispatch(['--help'], deps)
      const listed = /^ {2}hello +Greet$/m.test(said)
      said = ''
      await dispatch(['hello', 'you', '--times', '2', '--json'], deps)
      const [row] = commandTable
      const offered = (await (await commandTable.find(({ name }) => name === 'completion').load()).run(
        { args: ['bash', 'hello', '--t'], options: {}, ...deps, stdout: (text) => void (said += text) }), said)
      show({ listed, first: row.name, said: JSON.parse(said.slice(0, said.indexOf('}') + 1)), offered: offered.includes('--times') })`,
    shows: { listed: true, first: 'hello', said: { whom: 'you', times: 2 }, offered: true },
  },
  {
    name: 'an interval',
    cost: 'a line',
    make: (copy) =>
      copy.behind(
        'src/time.ts',
        "'24h': { seconds: day, months: 0, weekly: false },\n",
        "  '3d': { seconds: 3 * day, months: 0, weekly: false },\n",
      ),
    proof: `
      import { intervals, floor, end, count, longestSeconds } from './src/time.ts'
      import { endSql, stepSql } from './src/intervals-sql.ts'
      import { selectionOptions } from './src/call/context.ts'
      const t = floor(10 * 86400 + 5, '3d')
      const [, kind] = selectionOptions['--intervals LIST']
      show({ intervals, t: t / 86400, end: end(t, '3d') / 86400, count: count(0, 30 * 86400, '3d'),
        longest: longestSeconds('3d'), sql: [endSql('t', '3d'), stepSql('t', '3d', 1)].map((sql) => sql.includes('259200')), offered: kind.words })`,
    shows: {
      intervals: ['10m', '1h', '24h', '3d', '1w', '1month'],
      t: 9,
      end: 12,
      count: 10,
      longest: 259_200,
      sql: [true, true],
      offered: ['10m', '1h', '24h', '3d', '1w', '1month'],
    },
  },
  {
    name: 'a kind of availability rule',
    cost: '10 lines of one file',
    make: (copy) => copy.behind('src/catalog/rule-kinds.ts', 'const table = {\n', afterStart),
    proof: `
      import { availableAt } from './src/catalog/availability.ts'
      import { availableSql } from './src/catalog/availability-sql.ts'
      import { describeRule, ruleTimeKeys, timeOf } from './src/catalog/rule-kinds.ts'
      const rule = { ...timeOf({ after_start: 93600 }), basis: 'stated', until: null }
      show({ words: describeRule(rule), key: 'after_start' in ruleTimeKeys(), at: availableAt([rule], 0, '24h') / 3600,
        sql: availableSql([rule], 't', '24h').includes('93600') })`,
    shows: { words: 'start of interval + 26h', key: true, at: 26, sql: true },
  },
  {
    name: 'an output format',
    cost: 'a line',
    make: (copy) =>
      copy.behind(
        'src/query/write.ts',
        'const facts = {\n',
        "  lines: { endings: ['.lines'], text: true, write: writeJson },\n",
      ),
    proof: `
      import { formatOf, formats } from './src/query/write.ts'
      import { queryOptions } from './src/commands/query.ts'
      show({ formats, named: formatOf('a.lines.gz'), offered: queryOptions['--format FORMAT'][1].words.includes('lines') })`,
    shows: { formats: ['lines', 'table', 'csv', 'json', 'jsonl', 'arrow', 'parquet'], named: 'lines', offered: true },
  },
  {
    name: 'an endpoint',
    cost: 'nothing',
    make: (copy) =>
      copy.behind(
        'catalog/metrics.yaml',
        '  # options\n',
        '  - { path: options/new_one_pit, intervals: D, about: "new" }\n',
      ),
    proof: `
      import { loadCatalogue } from './src/catalog/load.ts'
      const { about, intervals } = loadCatalogue().endpoints.get('options/new_one_pit')
      show({ about, intervals })`,
    shows: { about: 'new', intervals: ['24h'] },
  },
  {
    name: 'a registry resource or field',
    cost: 'nothing',
    make: (copy) =>
      copy.behind(
        'catalog/registry.yaml',
        '    filters: [product, chain, status, verification_status, address]\n',
        '\n  funds:\n    entity: fund\n    path: /funds\n    detail: true\n    fields:\n      name: { kind: text }\n    embeds: {}\n    filters: [name]\n',
      ),
    proof: `
      import { loadCatalogue } from './src/catalog/load.ts'
      import { refuseClashes } from './src/views/clashes.ts'
      import { commandTable } from './src/commands/table.ts'
      const catalogue = loadCatalogue()
      refuseClashes(catalogue)
      let said = ''
      const completion = await commandTable.find(({ name }) => name === 'completion').load()
      await completion.run({ args: ['bash', 'registry', 'get', 'fu'], options: {},
        env: {}, cwd: '.', stdout: (text) => void (said += text) })
      show({ path: catalogue.resources.get('funds').path, said })`,
    shows: { path: '/funds', said: 'funds\n' },
  },
  {
    name: 'a finding of doctor',
    cost: '2 lines of 2 files',
    make: (copy) => {
      copy.behind('src/upkeep/findings.ts', 'const kinds = {\n', "  crumbs: notice('sweep the table'),\n")
      copy.behind(
        'src/upkeep/doctor.ts',
        '  { look: ({ ledger }) => checkMarker(ledger) },\n',
        "  { look: () => [finding('crumbs', 'table', 'a crumb')] },\n",
      )
    },
    proof: `
      import { Ledger } from './src/ledger/ledger.ts'
      import { examine } from './src/upkeep/doctor.ts'
      const data = process.env.HOME + '/lake'
      using ledger = await Ledger.open(data)
      const { findings } = await examine({ data, thorough: false }, { nowMicros: () => 1e15 })
      show(findings.filter(({ kind }) => kind === 'crumbs'))`,
    shows: [{ kind: 'crumbs', severity: 'notice', path: 'table', found: 'a crumb', remedy: 'sweep the table' }],
  },
  {
    name: 'a tool for agents, or a path over HTTP',
    cost: 'a line',
    make: (copy) =>
      copy.behind(
        'src/door/tools.ts',
        '    describeTool(page, pages, desk),\n',
        "    tool('hello', 'Greets.', sqlOption, async ({ sql }) => await Promise.resolve(sql)),\n",
      ),
    proof: `
      import { toolsOf } from './src/door/tools.ts'
      const tools = toolsOf({ desk: {}, pages: {}, standing: async () => ({}) })
      const { about, input, call } = tools.find(({ name }) => name === 'hello')
      const refused = await call({ sql: 1 }).catch(({ message }) => message)
      show({ about, keys: Object.keys(input), said: await call({ sql: 'you' }), refused: refused.includes('sql') })`,
    shows: { about: 'Greets.', keys: ['sql'], said: 'you', refused: true },
  },
]
