import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Files } from './house/order.ts'
import { exportedNames, idleExports, sharedNames, sizeOf } from './house/size.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const listed = [
  '-c',
  'safe.directory=*',
  'ls-files',
  '-z',
  '--cached',
  '--others',
  '--exclude-standard',
  'src',
  'test',
  'scripts',
]
const paths = execFileSync('git', listed, { cwd: root })
  .toString('utf8')
  .split('\0')
  .filter((path) => /\.[mc]?ts$/.test(path) && existsSync(join(root, path)))
const files: Files = new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
const of = (texts: Readonly<Record<string, string>>): Files => new Map(Object.entries(texts))

/** What only the types of the package's entry name: the compiler wants them exported where it writes declarations. */
const declarations = ['TalkingSpec']

test('almost no exported name means two things', () => {
  expect(sharedNames(files).length).toBeLessThanOrEqual(10)
  expect(sharedNames(of({ 'src/a.ts': 'export const x = 1', 'src/b.ts': 'export interface x {}' }))).toEqual([
    'x: src/a.ts, src/b.ts',
  ])
})

test('nothing is exported that nobody imports', () => {
  expect(idleExports(files).filter((idle) => !declarations.includes(idle.split(': ')[1] ?? ''))).toEqual([])
  const house = {
    'src/a.ts': 'export const used = 1\nexport type Idle = 2',
    'src/b.ts': "import { used } from './a.ts'",
  }
  expect(idleExports(of(house))).toEqual(['src/a.ts: Idle'])
  expect(idleExports(of({ ...house, 'src/c.ts': "await import('./a.ts')" }))).toEqual([])
})

test('the house does not grow unseen: whoever needs more says so here', () => {
  const src = sizeOf(files, 'src/')
  expect(src.lines).toBeLessThanOrEqual(63_600)
  expect(src.files).toBeLessThanOrEqual(400)
  expect(sizeOf(files, 'test/').lines).toBeLessThanOrEqual(70_800)
  expect(exportedNames(files)).toBeLessThanOrEqual(2_200)
})
