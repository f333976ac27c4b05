import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** One entry of `packages` in package-lock.json, as far as this script looks at it. */
export interface LockEntry {
  readonly version?: string
  readonly resolved?: string
  readonly optional?: boolean
  readonly inBundle?: boolean
  readonly os?: string | readonly string[]
  readonly cpu?: string | readonly string[]
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly [key: string]: unknown
}

/** A package-lock.json of version 2 or 3. */
export interface Lockfile {
  readonly packages: Readonly<Record<string, LockEntry>>
  readonly [key: string]: unknown
}

/** An optional dependency that a locked package names and the lockfile does not hold. */
export interface Missing {
  /** Where it belongs: `node_modules/name`, or nested under its parent. */
  readonly path: string
  readonly name: string
  readonly version: string
  /** The path of the locked package that names it; empty for the project itself. */
  readonly parent: string
}

const systems: ReadonlyMap<string, string> = new Map(
  Object.entries({ win: 'win32' }).concat(
    ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'].map((os) => [
      os,
      os,
    ]),
  ),
)
const processors: ReadonlySet<string> = new Set([
  'arm',
  'arm64',
  'ia32',
  'loong64',
  'mips64el',
  'ppc64',
  'riscv64',
  's390x',
  'wasm32',
  'x64',
])

/** The `os` and `cpu` that a name such as `@scope/binding-linux-x64-musl` tells; empty lists where it tells none. */
export function platformOf(name: string): { os: readonly string[]; cpu: readonly string[] } {
  const words = name.slice(name.lastIndexOf('/') + 1).split(/[-_.]/)
  const scope = name.includes('/') ? name.slice(1, name.indexOf('/')).split(/[-_.]/) : []
  const os = [...words, ...scope].flatMap((word) => systems.get(word) ?? [])
  const cpu = words.filter((word) => processors.has(word))
  return { os: os.slice(0, 1), cpu: cpu.slice(0, 1) }
}

/** Every optional dependency without an entry, in the order of the lockfile, each with the place where it belongs. */
export function missingEntries(lock: Lockfile): readonly Missing[] {
  const held = new Map(Object.entries(lock.packages).map(([path, entry]) => [path, entry.version ?? '']))
  const missing: Missing[] = []
  for (const [parent, entry] of Object.entries(lock.packages)) {
    if (entry.inBundle === true) continue
    for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
      const found = resolve(held, parent, name)
      if (found !== undefined && satisfies(held.get(found) ?? '', range)) continue
      const top = `node_modules/${name}`
      const path = held.has(top) || found !== undefined ? nested(parent, name) : top
      const version = /\d+\.\d+\.\d+[\w.+-]*/.exec(range)?.[0] ?? range
      held.set(path, version)
      missing.push({ path, name, version, parent })
    }
  }
  return missing
}

/**
 * The lockfile without download addresses and with an entry `{version, optional, os, cpu}` for each missing one,
 * sorted as npm sorts; what npm has since written into such an entry is taken out again.
 */
export function complete(given: Lockfile): Lockfile {
  const kept = Object.entries(given.packages).filter(([, entry]) => !isCompletion(entry))
  const lock = { ...given, packages: Object.fromEntries(kept.map(([path, entry]) => [path, withoutAddress(entry)])) }
  const added = missingEntries(lock).map(({ path, name, version, parent }): [string, LockEntry] => {
    const { os, cpu } = platformOf(name)
    if (os.length === 0 && cpu.length === 0) {
      throw new Error(
        `${name}, optional dependency of ${parent || 'the project'}: its name tells no platform; lock it by hand`,
      )
    }
    return [path, { version, optional: true, ...(os.length > 0 && { os }), ...(cpu.length > 0 && { cpu }) }]
  })
  const all = [...Object.entries(lock.packages), ...added]
  all.sort(([a], [b]) => a.localeCompare(b, 'en'))
  return { ...lock, packages: Object.fromEntries(all) }
}

/** The paths of all entries that carry a download address: those tie the lockfile to one registry. */
export function addressed(lock: Lockfile): readonly string[] {
  return Object.entries(lock.packages)
    .filter(([, entry]) => typeof entry.resolved === 'string' && entry.resolved.includes('://'))
    .map(([path]) => path)
}

/** An entry that no download has ever confirmed: this script wrote it. */
function isCompletion(entry: LockEntry): boolean {
  return entry.optional === true && entry.integrity === undefined && entry.resolved === undefined && entry.link !== true
}

function withoutAddress(entry: LockEntry): LockEntry {
  const { resolved, ...rest } = entry
  return resolved === undefined || !resolved.includes('://') ? entry : rest
}

/** The path under which Node would find the package from its parent: the nearest `node_modules` upwards. */
function resolve(held: ReadonlyMap<string, string>, parent: string, name: string): string | undefined {
  for (let folder = parent; ; folder = above(folder)) {
    const path = nested(folder, name)
    if (held.has(path)) return path
    if (folder === '') return undefined
  }
}

function above(folder: string): string {
  const cut = folder.lastIndexOf('/node_modules/')
  return cut < 0 ? '' : folder.slice(0, cut)
}

function nested(parent: string, name: string): string {
  return parent === '' ? `node_modules/${name}` : `${parent}/node_modules/${name}`
}

/** Only an exact version can be judged here; npm itself has resolved the ranges. */
function satisfies(version: string, range: string): boolean {
  return !/^\d+\.\d+\.\d+/.test(range) || version === range
}

function readLock(file: string): Lockfile {
  const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (typeof parsed !== 'object' || parsed === null || !('packages' in parsed)) throw new Error(`${file}: no lockfile`)
  return parsed as Lockfile
}

function main(mode: string | undefined): number {
  const file = fileURLToPath(new URL('../package-lock.json', import.meta.url))
  const lock = readLock(file)
  const missing = missingEntries(lock)
  const hosts = addressed(lock)
  if (mode === '--check') {
    for (const { path, version, parent } of missing)
      console.error(`missing: ${path} ${version} (named by ${parent || 'the project'})`)
    for (const path of hosts) console.error(`download address: ${path}`)
    if (missing.length + hosts.length > 0) console.error('run: node scripts/lockfile.ts')
    return missing.length + hosts.length > 0 ? 1 : 0
  }
  const next = complete(lock)
  writeFileSync(file, `${JSON.stringify(next, null, 2)}\n`)
  console.log(`package-lock.json: ${missing.length} entries added, ${hosts.length} addresses removed`)
  return 0
}

if (import.meta.main) process.exitCode = main(process.argv[2])
