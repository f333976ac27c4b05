import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { audit, type Audited, faults } from '../../scripts/audit.ts'
import type { Lockfile } from '../../scripts/lockfile.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

test('every locked package is on the list of accepted ones', () => {
  const rows = audit(JSON.parse(read('package-lock.json')) as Lockfile)
  expect(rows.length).toBeGreaterThan(100)
  expect(rows.filter(({ runtime }) => runtime).map(({ name }) => name)).toContain('undici')
  expect(faults(rows)).toEqual([])
})

test('a new runtime package, an unknown licence and an install script are reported', () => {
  const row: Audited = { name: 'zod', version: '1.0.0', licence: 'MIT', runtime: true, installScript: false }
  expect(faults([row, { ...row, name: '@duckdb/node-bindings-linux-x64' }])).toEqual([])
  expect(
    faults([
      { ...row, name: 'left-pad' },
      { ...row, name: 'left-pad', runtime: false },
      { ...row, licence: 'MPL-2.0' },
      { ...row, licence: 'MPL-2.0', runtime: false },
      { ...row, licence: 'unknown', runtime: false },
      { ...row, installScript: true },
    ]),
  ).toEqual([
    'left-pad 1.0.0: a runtime package that is not on the list',
    'zod 1.0.0: licence MPL-2.0',
    'zod 1.0.0: licence unknown',
    'zod 1.0.0: an install script',
  ])
})

test('the lockfile has all facts that the audit needs', () => {
  const packages = {
    '': { version: '1.0.0' },
    'node_modules/a': { version: '1.0.0', license: 'MIT' },
    'node_modules/a/node_modules/@x/b': { version: '2.0.0', dev: true, hasInstallScript: true },
  }
  expect(audit({ packages })).toEqual([
    { name: 'a', version: '1.0.0', licence: 'MIT', runtime: true, installScript: false },
    { name: '@x/b', version: '2.0.0', licence: 'unknown', runtime: false, installScript: true },
  ])
})

test.each([
  'notebooks/requirements.txt',
  ...globSync('test/python/requirements*.txt', { cwd: new URL('../../', import.meta.url) }),
])('%s: exact versions, each with checksums', (file) => {
  const wanted = read(file).replaceAll('\\\n', ' ').trim().split('\n')
  expect(wanted.length).toBeGreaterThan(5)
  for (const line of wanted)
    expect(line).toMatch(/^[\w.-]+(\[[\w-]+\])?==[\w.]+( ; [^#]+?)?( +--hash=sha256:[0-9a-f]{64})+$/)
})

test('packages of Python are installed in one place, none without a checksum', () => {
  const lines = globSync(['scripts/*', '.ci/run'], { cwd: new URL('../../', import.meta.url) })
    .filter((file) => /\.sh$|run$/.test(file))
    .flatMap((file) => read(file).split('\n'))
  const installing = lines.filter((line) => /^\s*[^#]*pip\b.* install /.test(line) && !line.includes('--no-index'))
  expect(installing).toEqual([expect.stringContaining('--require-hashes')])
})
