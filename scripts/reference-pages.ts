import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  API,
  type Checker,
  type Project,
  type Symbol as Named,
  SymbolFlags,
  type Type,
  type TypeReference,
} from 'typescript/unstable/sync'
import { anchorOf } from './anchors.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Pages of which this script makes the part between its two marks; the rest is written by hand. */
export const referencePages = {
  python: 'docs/reference/python.md',
  typescript: 'docs/reference/typescript.md',
  json: 'docs/reference/json.md',
} as const
const made = /(<!-- reference: made by scripts\/reference-pages\.ts -->\n)([\s\S]*?)(<!-- end -->\n)/

/** A parameter, an option or a field. */
export interface Parameter {
  readonly name: string
  /** Type as the source writes it; null if it has none. */
  readonly type: string | null
  /** Its description; empty if the source has none. */
  readonly text: string
}

/** One entry of a reference: a call, a value or a type. */
export interface Entry {
  /** Call as a caller writes it, such as `lake.panel`. */
  readonly title: string
  /** Call with its parameters; null for a type. */
  readonly signature: string | null
  /** First sentence or paragraph. */
  readonly summary: string
  /** Further paragraphs. */
  readonly details: string
  readonly parameters: readonly Parameter[]
  /** What the call returns; empty if the source does not describe it. */
  readonly returns: string
  /** Example, without its fence; empty if there is none. */
  readonly example: string
}

/** A heading and its entries. */
export interface Section {
  readonly title: string
  readonly entries: readonly Entry[]
}

/** How a language is fenced, and what its columns are called. */
interface Language {
  readonly signature: string
  readonly example: string
  readonly nouns: string
}

/** The text of a reference: a table of the calls, and a section for each entry. */
function referenceText(sections: readonly Section[], language: Language): string {
  const calls = sections.flatMap(({ entries }) => entries).filter(({ signature }) => signature !== null)
  const row = ({ title, summary }: Entry): string =>
    `| [\`${title}\`](#${anchorOf(title)}) | ${cell(firstSentence(summary))} |`
  const table = ['## Calls', '', '| call | effect |', '| --- | --- |', ...calls.map(row), ''].join('\n')
  return [table, ...sections.map((section) => sectionText(section, language))].join('\n')
}

function sectionText({ title, entries }: Section, language: Language): string {
  return [`## ${title}`, ...entries.map((entry) => entryText(entry, language))].join('\n\n') + '\n'
}

function entryText(entry: Entry, { signature, example, nouns }: Language): string {
  const { title, summary, details, parameters, returns } = entry
  return [
    `### \`${title}\``,
    entry.signature === null ? '' : fenced(signature, entry.signature),
    summary,
    details,
    parameterTable(parameters, nouns),
    returns === '' ? '' : `**Returns** ${returns}`,
    entry.example === '' ? '' : fenced(example, entry.example),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

/** A table of parameters; without a column of types if none has one. */
function parameterTable(parameters: readonly Parameter[], noun: string): string {
  if (parameters.length === 0) return ''
  if (parameters.every(({ type }) => type === null))
    return [
      `| ${noun} | meaning |`,
      '| --- | --- |',
      ...parameters.map(({ name, text }) => `| \`${name}\` | ${cell(text)} |`),
    ].join('\n')
  const rows = parameters.map(({ name, type, text }) => `| \`${name}\` | \`${cell(type ?? '')}\` | ${cell(text)} |`)
  return [`| ${noun} | type | meaning |`, '| --- | --- | --- |', ...rows].join('\n')
}

const fenced = (language: string, text: string): string => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``
const cell = (text: string): string => text.replaceAll('|', String.raw`\|`).replaceAll(/\s*\n\s*/g, ' ')
const firstSentence = (text: string): string => /^[\s\S]*?\.(?=\s|$)/.exec(text)?.[0] ?? text

/** A signature on one line, or with a line for each parameter if it is longer than a line of these pages. */
function brokenSignature(call: string, parameters: readonly string[], returned: string): string {
  const line = `${call}(${parameters.join(', ')})${returned}`
  return line.length <= 100 ? line : `${call}(\n${parameters.map((one) => `    ${one},\n`).join('')})${returned}`
}

/** What scripts/python-reference.py prints of a function, a property or a class. */
interface PythonFacts {
  readonly kind: 'function' | 'property' | 'class'
  readonly name: string
  readonly parameters: readonly {
    readonly name: string
    readonly type: string | null
    readonly default: string | null
    /** Whether it and all that follow must be named. */
    readonly star: boolean
  }[]
  readonly returns: string | null
  readonly docstring: string
  readonly members: readonly PythonFacts[]
}

/** What scripts/python-reference.py prints. */
interface PythonPackage {
  readonly exports: readonly PythonFacts[]
  /** Adapters for backtesting engines; their names begin with the module. */
  readonly engines: readonly PythonFacts[]
  readonly types: readonly { readonly name: string; readonly docstring: string }[]
}

/** The parts of a docstring. */
export interface Docstring {
  readonly summary: string
  readonly details: string
  /** Parameters, or attributes of a class, by name. */
  readonly parameters: ReadonlyMap<string, string>
  readonly returns: string
  readonly example: string
}

/** Reads a docstring: paragraphs, `Args:` or `Attributes:`, `Returns:`, and lines after the first `>>>`. */
export function readDocstring(text: string): Docstring {
  const at = text.search(/^>>> /m)
  const [prose, example] = at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at)]
  const blocks = prose.trim().split(/\n\n+/)
  const listed = (heading: RegExp): string =>
    (blocks.find((block) => heading.test(block)) ?? '').replace(heading, '').replaceAll(/^ {4}/gm, '')
  const items = listed(/^(?:Args|Attributes):\n/)
    .split(/\n(?! )/)
    .filter((item) => item !== '')
  const [summary = '', ...details] = blocks.filter((block) => !/^(?:Args|Attributes|Returns):\n/.test(block))
  return {
    summary,
    details: details.join('\n\n'),
    parameters: new Map(
      items.map((item) => [item.slice(0, item.indexOf(':')), item.slice(item.indexOf(':') + 1).trim()]),
    ),
    returns: listed(/^Returns:\n/),
    example: example.replaceAll(/ {2}# doctest:.*$/gm, ''),
  }
}

/** Methods that a caller writes with signs, such as `len(answer)`. */
const signs: Readonly<Record<string, (object: string) => string>> = {
  __len__: (object) => `len(${object})`,
  __getitem__: (object) => `${object}["v"]`,
  __iter__: (object) => `for row in ${object}`,
}

function pythonEntry(facts: PythonFacts, object: string): Entry {
  const { kind, name } = facts
  const { parameters: texts, ...doc } = readDocstring(facts.docstring)
  const sign = signs[name]
  const given = facts.parameters.map(
    (one) => `${one.name}${one.default === null ? '' : `=${doubleQuoted(one.default)}`}`,
  )
  const star = facts.parameters.findIndex(({ star: isFirst }) => isFirst)
  const shown = star === -1 ? given : given.toSpliced(star, 0, '*')
  const title = sign?.(object) ?? `${object}.${name}`
  const returned = facts.returns === null || facts.returns === 'None' ? '' : ` -> ${facts.returns}`
  const plain = sign !== undefined || kind === 'property'
  const fields = facts.parameters.map(({ name: own, type }) => ({
    name: own.replace(/^\*+/, ''),
    type: type === null ? null : doubleQuoted(type),
  }))
  const named = kind === 'class' ? [...texts.keys()].map((own) => ({ name: own, type: null })) : fields
  return {
    ...doc,
    title,
    signature: kind === 'class' ? null : plain ? `${title}${returned}` : brokenSignature(title, shown, returned),
    parameters: named.map((one) => ({ ...one, text: texts.get(one.name) ?? '' })),
  }
}

const doubleQuoted = (text: string): string => text.replaceAll("'", '"')

/** Facts of the Python package, read by Python itself; undefined if there is no python3. */
export function pythonPackage(): PythonPackage | undefined {
  const run = spawnSync('python3', ['-B', join(root, 'scripts/python-reference.py')], { encoding: 'utf8' })
  if (run.error !== undefined) return undefined
  if (run.status !== 0) throw new Error(run.stderr)
  return JSON.parse(run.stdout) as PythonPackage
}

/** Entries of the Python reference. */
export function pythonSections({ exports, engines, types }: PythonPackage): readonly Section[] {
  const named = (name: string): PythonFacts => {
    const found = exports.find((one) => one.name === name)
    if (found === undefined) throw new Error(`the package does not export ${name}`)
    return found
  }
  const members = (name: string, object: string): readonly Entry[] =>
    named(name).members.map((one) => pythonEntry(one, object))
  const calls = exports.filter(({ kind }) => kind === 'function').map((one) => pythonEntry(one, 'pitlake'))
  const others = exports.filter(({ kind, name }) => kind === 'class' && name !== 'Lake' && name !== 'Result')
  const classes = others.map((one) => pythonEntry(one, 'pitlake'))
  return [
    {
      title: 'Functions',
      entries: calls.toSorted((a, b) => Number(b.title.endsWith('.open')) - Number(a.title.endsWith('.open'))),
    },
    { title: 'The lake', entries: members('Lake', 'lake') },
    { title: 'Answers', entries: members('Result', 'answer') },
    { title: 'Classes and types', entries: [...classes, ...types.map((one) => typeEntry(one.name, one.docstring))] },
    { title: 'Backtesting engines', entries: engines.map((one) => pythonEntry(one, 'pitlake.engines')) },
  ]
}

const typeEntry = (name: string, summary: string, parameters: readonly Parameter[] = [], details = ''): Entry => ({
  // Its anchor then differs from that of a function of the same name.
  title: `type ${name}`,
  signature: null,
  summary,
  details,
  parameters,
  returns: '',
  example: '',
})

/** Types without a table: documents that commands print with `--json`, and the part of `LakeOptions` that it repeats. */
const untabled = ['Explained', 'LakeError', 'Proof', 'QueryOptions', 'Replayed', 'Stamped', 'Stressed']

/** Entries of the TypeScript reference, as the compiler knows the exports of src/index.ts. */
export function typescriptSections(): readonly Section[] {
  return withProject(({ program, checker }) => {
    const file = program.getSourceFile(join(root, 'src/index.ts'))
    const source = file && checker.getSymbolAtLocation(file)
    if (source === undefined) throw new Error('the compiler does not read src/index.ts')
    return sectionsOf(checker, source)
  })
}

/** Opens the sources with the compiler. */
function withProject<T>(use: (project: Project) => T): T {
  const api = new API({ cwd: root })
  try {
    const [project] = api.updateSnapshot({ openProject: join(root, 'tsconfig.build.json') }).getProjects()
    if (project === undefined) throw new Error('the compiler does not read the project')
    return use(project)
  } finally {
    api.close()
  }
}

/** Something that src/index.ts exports, under the name that a caller imports. */
interface Exported {
  readonly name: string
  readonly symbol: Named
}

/** What reads the types of the exports. */
interface Reader {
  readonly checker: Checker
  /** Names of exports by their names inside the project. */
  readonly names: ReadonlyMap<string, string>
}

function sectionsOf(checker: Checker, source: Named): readonly Section[] {
  const exported = checker.getExportsOfModule(source).map(
    (symbol): Exported => ({
      name: symbol.name,
      symbol: (symbol.flags & SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol),
    }),
  )
  const reader = { checker, names: new Map(exported.map(({ name, symbol }) => [symbol.name, name])) }
  const isFunction = ({ symbol }: Exported): boolean => (symbol.flags & SymbolFlags.Function) !== 0
  const functions = exported.filter(isFunction).map(({ name, symbol }) => callEntry(reader, symbol, name))
  const lake = exported.find(({ name }) => name === 'Lake')
  if (lake === undefined) throw new Error('src/index.ts exports no Lake')
  const members = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(lake.symbol))
  const types = exported.filter((one) => !isFunction(one) && one !== lake).map((one) => exportedType(reader, one))
  const isOpen = ({ title }: Entry): number => Number(title === 'openLake')
  return [
    { title: 'Functions', entries: functions.toSorted((a, b) => isOpen(b) - isOpen(a)) },
    { title: 'The lake', entries: members.map((member) => callEntry(reader, member, `lake.${member.name}`)) },
    { title: 'Types', entries: types.toSorted((a, b) => a.title.localeCompare(b.title, 'en')) },
  ]
}

/** Whole types, never shortened; an alias as what it stands for. */
const typeFormat = 1 | 8_388_608

/** The type of a symbol as a caller writes it. */
function typeText(reader: Reader, symbol: Named): string {
  const type = reader.checker.getTypeOfSymbol(symbol)
  if (type === undefined) throw new Error(`the compiler knows no type of ${symbol.name}`)
  return writtenType(reader, type)
}

/** A type with the names of the exports, and without what an optional parameter implies. */
function writtenType({ checker, names }: Reader, type: Type): string {
  return checker
    .typeToString(type, undefined, typeFormat)
    .replaceAll(/\?: ([^,)]*?) \| undefined(?=[,)])/g, '?: $1')
    .replaceAll('Table<any>', 'Table')
    .replaceAll(/\b[A-Z]\w+/g, (name) => names.get(name) ?? name)
}

/** The entry of a function, a method or a value. */
function callEntry(reader: Reader, symbol: Named, title: string): Entry {
  const { checker } = reader
  const type = typeText(reader, symbol)
  const tags = symbol.getJsDocTags(checker).map(({ name, text }) => ({ name, text: text ?? '' }))
  const tagged = (name: string): string => tags.find((tag) => tag.name === name)?.text ?? ''
  const call = /^((?:<.*?>)?)\((.*)\) => (.*)$/s.exec(type)
  const [summary = '', ...details] = symbol.getDocumentationComment(checker).split(/\n\n+/)
  return {
    title,
    signature:
      call === null
        ? `${title}: ${type}`
        : brokenSignature(`${title}${call[1]}`, parametersIn(call[2] ?? ''), `: ${call[3]}`),
    summary,
    details: details.join('\n\n'),
    parameters: tags
      .filter(({ name }) => name === 'param')
      .map(({ text }) => ({ name: text.split(/\s/)[0] ?? '', type: null, text: text.replace(/^\S+\s+/, '') })),
    returns: tagged('returns'),
    example: tagged('example')
      .replace(/^```ts\n/, '')
      .replace(/\n```$/, ''),
  }
}

/** The parameters of a signature: parts between commas that no bracket encloses. */
function parametersIn(text: string): readonly string[] {
  let depth = 0
  const cuts = [...text.replaceAll('=>', '  ')].flatMap((letter, at) => {
    if ('([{<'.includes(letter)) depth += 1
    if (')]}>'.includes(letter)) depth -= 1
    return letter === ',' && depth === 0 ? [at] : []
  })
  return [-1, ...cuts].map((cut, n) => text.slice(cut + 1, cuts[n]).trim()).filter((part) => part !== '')
}

/** The entry of an exported type: the fields of an interface, or what an alias stands for. */
function exportedType(reader: Reader, { name, symbol }: Exported): Entry {
  const { checker } = reader
  const text = symbol.getDocumentationComment(checker)
  if (untabled.includes(name)) return typeEntry(name, text)
  const type = checker.getDeclaredTypeOfSymbol(symbol)
  if ((symbol.flags & SymbolFlags.TypeAlias) !== 0)
    return typeEntry(name, text, [], fenced('typescript', `type ${name} = ${writtenType(reader, type)}`))
  const fields = checker.getPropertiesOfType(type).map((field) => ({
    name: `${field.name}${(field.flags & SymbolFlags.Optional) === 0 ? '' : '?'}`,
    type: shortUnion(typeText(reader, field).replace(/ \| undefined$/, '')),
    text: field.getDocumentationComment(checker),
  }))
  return typeEntry(name, text, fields)
}

/** A union of very many words by its first three. */
function shortUnion(type: string): string {
  const words = type.split(' | ')
  return words.length > 8 ? `${words.slice(0, 3).join(' | ')} | …` : type
}

/** A document that a command prints with `--json`. */
interface JsonDocument {
  readonly command: string
  /** File and name of the type of the document. */
  readonly file: string
  readonly type: string
}

const jsonDocuments: readonly JsonDocument[] = [
  { command: 'pitlake status --json', file: 'src/interfaces/report/status.ts', type: 'LakeStanding' },
  { command: 'pitlake plan --json', file: 'src/interfaces/commands/plan.ts', type: 'PlanDocument' },
  { command: 'pitlake fetch --json', file: 'src/interfaces/commands/fetch.ts', type: 'FetchDocument' },
  { command: 'pitlake lookahead --json', file: 'src/trust/lookahead/lookahead.ts', type: 'LookaheadProof' },
  { command: 'pitlake lookahead FILES --json', file: 'src/trust/research/judged-item.ts', type: 'ResearchReport' },
  { command: 'pitlake stress --json', file: 'src/trust/results/stress.ts', type: 'Stressed' },
  { command: 'pitlake when --json', file: 'src/trust/dating/dating.ts', type: 'DatedTable' },
  { command: 'pitlake verify --json', file: 'src/maintenance/upkeep/verify.ts', type: 'VerifySummary' },
  { command: 'pitlake doctor --json', file: 'src/interfaces/commands/doctor.ts', type: 'DoctorDocument' },
]

/** The documents of `--json` with their fields, as the compiler knows their types. */
export function jsonSections(): readonly Section[] {
  return withProject(({ program, checker }) =>
    jsonDocuments.map(({ command, file, type }) => {
      const source = program.getSourceFile(join(root, file))
      const module = source && checker.getSymbolAtLocation(source)
      const symbol = module && checker.getExportsOfModule(module).find(({ name }) => name === type)
      if (symbol === undefined) throw new Error(`${file} exports no type ${type}`)
      const parameters = jsonFields(checker, checker.getDeclaredTypeOfSymbol(symbol), '')
      return { title: `\`${command}\``, entries: [typeEntry(type, `Document of ${command}.`, parameters)] }
    }),
  )
}

/** Meaning of the parts of a series, whose type has no place for it. */
const seriesParts: Readonly<Record<string, string>> = {
  asset: 'Asset id of the metrics API.',
  interval: 'Interval of the points.',
  currency: '`native` or `usd`; null if the endpoint has none.',
  exchange: 'Exchange id; null if the endpoint has none.',
  network: 'Network; null if the endpoint has none.',
}

/** Most names that a path of fields has, such as `last_ends.fetch`. */
const deepestField = 2

/** The fields of an object, and below each field those of its object or of the objects in its list. */
function jsonFields(checker: Checker, type: Type, prefix: string): readonly Parameter[] {
  return checker.getPropertiesOfType(type).flatMap((field) => {
    const whole = checker.getTypeOfSymbol(field)
    const value = whole && checker.getNonNullableType(whole)
    if (whole === undefined || value === undefined) throw new Error(`the compiler knows no type of ${field.name}`)
    const isList = checker.isArrayType(value)
    const inner = isList ? checker.getTypeArguments(value as TypeReference)[0] : value
    if (inner === undefined) throw new Error(`the compiler knows no elements of ${field.name}`)
    const optional = (field.flags & SymbolFlags.Optional) === 0 ? '' : '?'
    const name = `${prefix}${field.name}`
    const isNull = / \| null\b|\bnull \| /.test(checker.typeToString(whole, undefined, typeFormat))
    const one = wordOf(checker, inner)
    const word = `${isList ? `list of ${one}s` : one}${isNull ? ' or null' : ''}`
    const row = {
      name: `${name}${optional}`,
      type: word,
      text: field.getDocumentationComment(checker) || (seriesParts[field.name] ?? ''),
    }
    const isLast = name.split('.').length >= deepestField || !isObjectType(checker, inner)
    // The text of the row describes fields that have none themselves.
    const below = isLast ? [] : jsonFields(checker, inner, `${name}${isList ? '[]' : ''}.`)
    return [row, ...(below.some(({ text }) => text !== '') ? below : [])]
  })
}

/** Whether values of a type are objects with fields of known names. */
const isObjectType = (checker: Checker, type: Type): boolean =>
  wordOf(checker, type) === 'object' &&
  checker.getIndexInfosOfType(type).length === 0 &&
  checker.getPropertiesOfType(type).length > 0

/** A type in the words of JSON. */
function wordOf(checker: Checker, type: Type): string {
  const text = checker.typeToString(type, undefined, typeFormat)
  if (text === 'string' || text.startsWith('"')) return 'text'
  if (text === 'boolean') return 'true or false'
  if (text === 'number') return 'number'
  return checker.isArrayType(type) ? 'list' : /^(?:Json|Cell)\b|^[^{<]* \| /.test(text) ? 'value' : 'object'
}

/** A page with the given text between its marks. */
export function withReference(page: string, text: string): string {
  if (!made.test(page)) throw new Error('the page has no place for its reference')
  return page.replace(made, (_, begin: string, __, end: string) => `${begin}\n${text}\n${end}`)
}

/** The reference of Python as the page shows it; undefined if there is no python3. */
export function pythonReference(): string | undefined {
  const facts = pythonPackage()
  return facts && referenceText(pythonSections(facts), { signature: 'python', example: 'python', nouns: 'parameter' })
}

/** The reference of TypeScript as the page shows it. The docs tests run its examples, which are fenced as `ts`. */
export function typescriptReference(): string {
  return referenceText(typescriptSections(), { signature: 'typescript', example: 'ts', nouns: 'name' })
}

/** The reference of the documents of `--json`. */
export function jsonReference(): string {
  const sections = jsonSections().map(({ title, entries }) => {
    const tables = entries.map(({ parameters }) => [
      '| field | type | meaning |',
      '| --- | --- | --- |',
      ...parameters.map(({ name, type, text }) => `| \`${name}\` | ${type ?? ''} | ${cell(text)} |`),
    ])
    return [`## ${title}`, '', ...tables.flat(), ''].join('\n')
  })
  return sections.join('\n')
}

if (import.meta.main) {
  for (const [page, text] of [
    [referencePages.python, pythonReference()],
    [referencePages.typescript, typescriptReference()],
    [referencePages.json, jsonReference()],
  ] as const) {
    if (text === undefined) throw new Error('python3 is needed to read the Python package')
    const file = join(root, page)
    writeFileSync(file, withReference(readFileSync(file, 'utf8'), text))
  }
}
