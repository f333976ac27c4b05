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
 * The lockfile without download addresses, and without what no checksum proves: binaries of platforms that the registry
 * at hand does not serve. Packages no longer name them, so that `npm ci` does not miss them; what is left can be
 * installed as it stands, and nothing is installed that was not proved.
 */
export function complete(given: Lockfile): Lockfile {
  const bare = new Set(unproved(given))
  const kept = Object.entries(given.packages).filter(([path]) => !bare.has(path))
  const held = new Map(kept.map(([path, entry]) => [path, entry.version ?? '']))
  const packages = kept.map(([path, entry]) => [path, path === '' ? entry : served(path, withoutAddress(entry), held)])
  return { ...given, packages: Object.fromEntries(packages) as Lockfile['packages'] }
}

/** The entry with those of its optional dependencies that the lockfile holds. */
function served(path: string, entry: LockEntry, held: ReadonlyMap<string, string>): LockEntry {
  const { optionalDependencies, ...rest } = entry
  if (optionalDependencies === undefined || entry.inBundle === true) return entry
  const there = Object.entries(optionalDependencies).filter(([name]) => resolve(held, path, name) !== undefined)
  // The place of the key stays, so that nothing moves in the file.
  if (there.length > 0) return { ...entry, optionalDependencies: Object.fromEntries(there) }
  return rest
}

/** The paths of all entries without a checksum: whatever came under their name would be installed. */
export function unproved(lock: Lockfile): readonly string[] {
  return Object.entries(lock.packages)
    .filter(([path, entry]) => path !== '' && entry.link !== true && entry.inBundle !== true && !isProved(entry))
    .map(([path]) => path)
}

function isProved({ integrity }: LockEntry): boolean {
  return typeof integrity === 'string' && /^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity)
}

/** `linux-x64`, …: the platforms for which the lockfile holds every binary that the program itself needs. */
export function platforms(lock: Lockfile): readonly string[] {
  const suffixes = ['node_modules/node-', 'node_modules/@duckdb/node-bindings-'].map(
    (prefix) =>
      new Set(Object.keys(lock.packages).flatMap((path) => (path.startsWith(prefix) ? path.slice(prefix.length) : []))),
  )
  const [first = new Set<string>(), ...others] = suffixes
  return [...first].filter((name) => others.every((names) => names.has(name)))
}

/** The paths of all entries that carry a download address: those tie the lockfile to one registry. */
export function addressed(lock: Lockfile): readonly string[] {
  return Object.entries(lock.packages)
    .filter(([, entry]) => typeof entry.resolved === 'string' && entry.resolved.includes('://'))
    .map(([path]) => path)
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
  const faults = [
    ...missingEntries(lock).map(
      ({ path, version, parent }) => `missing: ${path} ${version} (named by ${parent || 'the project'})`,
    ),
    ...addressed(lock).map((path) => `download address: ${path}`),
    ...unproved(lock).map((path) => `no checksum: ${path}`),
  ]
  if (mode === '--check') {
    for (const fault of faults) console.error(fault)
    if (faults.length > 0) console.error('run: node scripts/lockfile.ts')
    return faults.length > 0 ? 1 : 0
  }
  const next = complete(lock)
  writeFileSync(file, `${JSON.stringify(next, null, 2)}\n`)
  console.log(`package-lock.json: ${faults.length} faults removed; whole for ${platforms(next).join(', ')}`)
  return missingEntries(next).length > 0 ? 1 : 0
}

if (import.meta.main) process.exitCode = main(process.argv[2])
