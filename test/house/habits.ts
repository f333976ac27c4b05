import type { Files } from './order.ts'
import { codeOnly, importsOf } from './source.ts'

/**
 * Who opens files: the store those of the lake, the client its spool, the loaders what a user wrote, these commands
 * what a user names or what came with the program. All others ask the store.
 */
const files = [
  'src/lake/store/',
  'src/sources/http/',
  'src/catalog/load.ts',
  'src/catalog/settings.ts',
  'src/catalog/user-file.ts',
  'src/interfaces/cli/context.ts',
  'src/interfaces/cli/process.ts',
  ...['catalog', 'demo', 'desk', 'export-page', 'init', 'init-ci', 'query', 'sandbox', 'sql'].map(
    (name) => `src/interfaces/commands/${name}.ts`,
  ),
]

/** Modules that touch the world, and the files that may import them; a trailing slash means the whole folder. */
const owners: Readonly<Record<string, readonly string[]>> = {
  http: ['src/sandbox/server.ts', 'src/interfaces/server/listen.ts'],
  https: [],
  http2: [],
  net: [],
  tls: [],
  dgram: [],
  undici: ['src/sources/http/http.ts'],
  '@duckdb/node-api': ['src/lake/store/engine.ts', 'src/lake/store/text-table.ts', 'src/lake/store/double-rows.ts'],
  '@modelcontextprotocol/server': ['src/interfaces/server/mcp.ts'],
  sqlite: ['src/lake/store/database.ts', 'src/lake/ledger/ledger.ts'],
  fs: files,
  timers: ['src/interfaces/cli/process.ts', 'src/index.ts', 'src/sandbox/'],
  child_process: ['hooks', 'desk', 'research-tools'].map((name) => `src/interfaces/commands/${name}.ts`),
  worker_threads: [],
  cluster: [],
  process: ['src/main.ts', 'src/interfaces/cli/', 'src/interfaces/commands/'],
  console: ['src/main.ts', 'src/interfaces/cli/', 'src/interfaces/commands/'],
  perf_hooks: ['src/main.ts', 'src/interfaces/cli/', 'src/interfaces/commands/'],
}

/** Imports of an I/O module outside its owner. */
export function ownerBreaches(files: Files): readonly string[] {
  return sources(files, 'src/').flatMap(([path, text]) =>
    importsOf(text).flatMap(({ target, typeOnly }) => {
      const name = target.replace(/^node:/, '')
      const module = name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : (name.split('/')[0] ?? '')
      const allowed = target.startsWith('.') ? undefined : owners[module]
      if (allowed === undefined || typeOnly || allowed.some((owner) => isIn(path, owner))) return []
      return [`${path} imports ${target}: it belongs to ${allowed.join(', ') || 'nobody'}`]
    }),
  )
}

/** What waits, ends a wait, draws a name or reads a command line, and the files that may. */
const calls: Readonly<Record<string, readonly string[]>> = {
  setTimeout: ['src/interfaces/cli/process.ts', 'src/index.ts', 'src/sandbox/'],
  setInterval: ['src/interfaces/cli/', 'src/interfaces/commands/', 'src/sandbox/'],
  'AbortSignal.timeout': ['src/sources/http/', 'src/interfaces/cli/', 'src/interfaces/commands/'],
  'Date.parse': ['src/base/time.ts', 'src/sandbox/'],
  randomUUID: ['src/lake/store/', 'src/interfaces/cli/', 'src/interfaces/commands/'],
  // Other interfaces and steps of `daily` call the function behind a command.
  parseCommand: ['src/interfaces/cli/parse.ts', 'src/interfaces/commands/run-command-line.ts'],
  dispatch: ['src/interfaces/commands/run-command-line.ts'],
}

/** Timers, drawn names and readers of command lines outside their owners. */
export function callBreaches(files: Files): readonly string[] {
  return sources(files, 'src/').flatMap(([path, text]) => {
    const code = codeOnly(text)
    return Object.entries(calls).flatMap(([name, owners]) =>
      owners.some((owner) => isIn(path, owner)) || !new RegExp(String.raw`(?<![\w.])${name}\b`).test(code)
        ? []
        : [`${path}: ${name} belongs to ${owners.join(', ')}`],
    )
  })
}

/**
 * What hands values between two libraries whose types do not meet: from DuckDB's vectors to Arrow, and SQLite's rows.
 */
const adapters = ['src/query/vectors.ts', 'src/query/arrow-columns.ts', 'src/lake/ledger/ledger.ts']

/** Casts that no compiler checks, outside the adapters: what comes from outside is validated where it is read. */
export function castBreaches(files: Files): readonly string[] {
  return sources(files, 'src/')
    .filter(([path]) => !adapters.includes(path))
    .flatMap(([path, text]) => {
      const code = codeOnly(text)
      return [...code.matchAll(/\bas\s+(?:unknown\s+as|never|any)\b/g)].map(
        (match) => `${path}:${lineAt(code, match.index)}: ${match[0]}`,
      )
    })
}

const ambient: Readonly<Record<string, RegExp>> = {
  'Date.now': /(?<![\w.])Date\s*\.\s*now\b/g,
  'new Date() without argument': /\bnew\s+Date\s*(?:\(\s*\)|(?=[;,)\]}\n]|$))/g,
  'Math.random': /\bMath\s*\.\s*random\b/g,
  performance: /(?<![\w.])performance\s*\.\s*\w/g,
  process: /(?<![\w.])process\s*(?:\?\.|\.|\[)/g,
  console: /(?<![\w.])console\s*(?:\?\.|\.|\[)/g,
  globalThis: /(?<![\w.])globalThis\b/g,
}

/** The clock, chance, `process` or `console` outside main, calls and commands, which hand them on as arguments. */
export function ambientBreaches(files: Files): readonly string[] {
  const pure = sources(files, 'src/').filter(
    ([path]) => path !== 'src/main.ts' && !/^src\/interfaces\/(?:cli|commands)\//.test(path),
  )
  return pure.flatMap(([path, text]) => {
    const code = codeOnly(text)
    return Object.entries(ambient).flatMap(([name, pattern]) =>
      [...code.matchAll(pattern)].map((match) => `${path}:${lineAt(code, match.index)}: ${name}`),
    )
  })
}

/** `export default`, and the same said as `export { x as default }`. */
export function defaultExports(files: Files): readonly string[] {
  return ['src/', 'test/', 'scripts/', 'notebooks/'].flatMap((folder) =>
    sources(files, folder)
      .filter(([, text]) => /\bexport\s+default\b|\bexport\s*\{[^}]*\bas\s+default\b/.test(codeOnly(text)))
      .map(([path]) => `${path}: default export`),
  )
}

/** Tests that are left out, or alone, without a reason that is counted: only `need` leaves one out. */
export function silentSkips(files: Files): readonly string[] {
  const silent =
    /\b(?:test|it|describe)\b[.\w]*\.(?:skip|todo|only|runIf|skipIf)\b|\b(?:x?context|ctx)\.skip\(|\(\{ skip \}\)/g
  return sources(files, 'test/')
    .filter(([path]) => path.endsWith('.test.ts'))
    .flatMap(([path, text]) =>
      [...codeOnly(text).matchAll(silent)].map(({ 0: found, index }) => `${path}:${lineAt(text, index)}: ${found}`),
    )
}

/** Assertions that cannot fail: members are compared with a matcher as if it were one of them. */
export function vainAssertions(files: Files): readonly string[] {
  return sources(files, 'test/').flatMap(([path, text]) =>
    [...codeOnly(text).matchAll(/\.not\.(?:toContain|toBe)\(expect\./g)].map(
      ({ index }) => `${path}:${lineAt(text, index)}`,
    ),
  )
}

/** Scripts in a folder of TypeScript: the package has what that is compiled to there, maybe by the same name. */
export function strayScripts(files: Files): readonly string[] {
  const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))
  const compiled = new Set(sources(files, 'src/').map(([path]) => folderOf(path)))
  return [...files.keys()].filter((path) => /^src\/.*\.js$/.test(path) && compiled.has(folderOf(path)))
}

/** SQL files of the program whose first line is not a comment with words in it. */
export function headlessSql(files: Files): readonly string[] {
  return [...files]
    .filter(([path, text]) => path.startsWith('src/') && path.endsWith('.sql') && !/^\s*(?:--|\/\*)[^\n]*\w/.test(text))
    .map(([path]) => `${path}: no header comment`)
}

/** Commands without a summary, and commands that no heading of the reference names. */
export function undocumentedCommands(files: Files): readonly string[] {
  const headings = (files.get('docs/reference/commands.md') ?? '').match(/^#{1,6} .*$/gm) ?? []
  const titles = headings.map((line) =>
    line
      .replace(/^#+\s*/, '')
      .replaceAll('`', '')
      .replace(/^pitlake\s+/, '')
      .trim(),
  )
  return sources(files, 'src/interfaces/commands/').flatMap(([path, text]) =>
    [...text.matchAll(/\bname:\s*'([^']+)',\s*summary:\s*(?:'([^']*)'|"([^"]*)"|`([^`]*)`)/g)].flatMap((match) => {
      const name = match[1] ?? ''
      const summary = match[2] ?? match[3] ?? match[4] ?? ''
      const documented = titles.some((title) => title === name || title.startsWith(`${name} `))
      return [
        ...(summary.trim() === '' ? [`${path}: ${name} has no summary`] : []),
        ...(documented ? [] : [`${path}: no heading for ${name} in docs/reference/commands.md`]),
      ]
    }),
  )
}

const catalogueTypes = ['src/catalog/catalogue.ts', 'src/catalog/availability.ts', 'src/catalog/wire.ts']

/**
 * Keys of the catalogue's records that no code reads: neither `.key` nor `{ key }`, outside their file and the loader.
 */
export function unreadKeys(files: Files): readonly string[] {
  const loaders = [
    'src/catalog/load.ts',
    'src/catalog/assemble.ts',
    'src/catalog/document.ts',
    'src/catalog/schema.ts',
    'src/catalog/rules.ts',
  ]
  return catalogueTypes.flatMap((home) => {
    const readers = sources(files, 'src/').filter(([path]) => path !== home && !loaders.includes(path))
    const code = readers.map(([, text]) => codeOnly(text)).join('\n')
    const keys = [...codeOnly(files.get(home) ?? '').matchAll(/\breadonly\s+(\w+)\??\s*:|\b(\w+): row\./g)].map(
      (match) => match[1] ?? match[2] ?? '',
    )
    return [...new Set(keys)]
      .filter((key) => !new RegExp(String.raw`\.\s*${key}\b|\{[^{}]*\b${key}\b[^{}]*\}\s*(?:=[^=>]|:\s*\w)`).test(code))
      .map((key) => `${home}: nobody reads ${key}`)
  })
}

/** Words that had many meanings each: as the name of a function, a type or a module's constant they say nothing. */
const worn = 'told|settled?|census|gathered|soft|rich|tools|bench'

/** Functions, types and constants of a module with a worn name. */
export function wornNames(files: Files): readonly string[] {
  const named = new RegExp(
    String.raw`^(?:export )?(?:async )?(?:function\*?|const|let|interface|type|class) (?:${worn})\b|\bconst (?:${worn}) = (?:async )?\(|^(?:export )?(?:async )?function work\b`,
    'gim',
  )
  return sources(files, 'src/')
    .filter(([path]) => !path.startsWith('src/sandbox/'))
    .flatMap(([path, text]) =>
      [...codeOnly(text).matchAll(named)].map(
        ({ 0: found, index }) => `${path}:${lineAt(text, index)}: ${found.trim()}`,
      ),
    )
}

/** The TypeScript files below a folder. */
function sources(files: Files, folder: string): readonly (readonly [string, string])[] {
  return [...files].filter(([path]) => path.startsWith(folder) && path.endsWith('.ts'))
}

function isIn(path: string, owner: string): boolean {
  return owner.endsWith('/') ? path.startsWith(owner) : path === owner
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}
