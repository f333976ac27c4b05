// @module-tag full
// @module-tag slow
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test, vi } from 'vitest'
import { openQuery } from '../../src/query/lake.ts'
import { runScript } from '../../src/query/run.ts'
import { need } from '../helpers/needs.ts'
import { scratch } from '../helpers/scratch.ts'
import { sample } from '../helpers/tiers.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = (name: string): string => readFileSync(join(root, name), 'utf8')
const home = scratch('first-hour')
const data = join(home, 'data')
const env: NodeJS.ProcessEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith('PITLAKE_') && name !== 'PYTHONPATH'),
)
env['PITLAKE_DATA'] = data
env['PYTHONDONTWRITEBYTECODE'] = '1'

/** The lake that `make lake` makes, without installing anything. */
beforeAll(() => {
  execFileSync('make', ['-o', 'node_modules/.package-lock.json', '-s', 'lake'], { cwd: root, env, stdio: 'pipe' })
})

/** What a person types into a shell in the root of the project. */
function typed(lines: string, ...shell: readonly string[]) {
  const [program = 'bash', ...words] = shell
  return spawnSync(program, words, { cwd: root, env, input: `set -o pipefail\n${lines}\n`, encoding: 'utf8' })
}

/** What stands in the blocks of a language, one text each. */
function blocks(text: string, language: string): readonly string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, block = '']) => block)
}

const makeShell = ['make', '-o', 'node_modules/.package-lock.json', '-s', 'shell'] as const

/** What the README has typed that comes from a network; the line of Python is typed below. */
const elsewhere = [
  "python3 -m venv .venv && .venv/bin/pip install './python[pandas]'",
  ".venv/bin/python -c 'import pitlake; print(pitlake.open().universe().df())'",
]

test('every line of the README, and the session of the quick start, works in a fresh shell in the root', () => {
  const readme = page('README.md')
  const makes = blocks(readme, 'sh').flatMap((block) =>
    [...block.matchAll(/^(.*?)\s*(?:#.*)?$/gm)].map(([, line]) => line),
  )
  const targets = [...page('Makefile').matchAll(/^([a-z]+):.*## /gm)].map(([, name]) => `make ${name}`)
  const lines = makes.filter((one) => one !== '')
  expect(lines.filter((one) => one?.startsWith('make '))).toHaveLength(3)
  expect([...targets, ...elsewhere]).toEqual(expect.arrayContaining(lines))
  const pages = [readme, page('docs/tutorials/quick-start.md')]
  const session = pages
    .flatMap((text) => blocks(text, 'console'))
    .flatMap((block) => [...block.matchAll(/^\$ (.*(?:\n {4}.*)*)$/gm)].map(([, command = '']) => command))
  expect(session.length).toBeGreaterThan(3)
  for (const command of session) {
    const ways = [typed(command, ...makeShell)]
    // One is enough to see that npx finds the program.
    if (command.includes('lookahead')) ways.push(typed(command.replace(/^pitlake/, 'npx pitlake'), 'bash'))
    for (const { status, stdout, stderr } of ways) {
      expect(stdout.trim().split('\n').length, command).toBeGreaterThan(2)
      expect(stderr, command).not.toMatch(/not found/)
      // `make` ends with 2 where its shell ended with another code than 0.
      if (command.includes('lookahead')) expect([2, 4], stderr).toContain(status)
      else expect(status, stderr).toBe(0)
      if (command.startsWith('pitlake fetch'))
        expect(stderr).toMatch(/this lake is synthetic: a sandbox with its seed 1 answers/)
    }
  }
})

test('the Python of the README and of the quick start works from the root', (context) => {
  const python = need(context, 'peers')
  const own = { ...env, PYTHONPATH: join(root, 'python') }
  const line = elsewhere[1]?.replace('.venv/bin/python', python) ?? ''
  const told = spawnSync('bash', ['-c', line], { cwd: root, env: own, encoding: 'utf8' })
  expect(told.stdout, told.stderr).toMatch(/\[\d+ rows x 18 columns\]/)
  const sound = 'assert len(frame) > 300 and frame.notna().mean().min() > 0.9 and len(frame.columns) == 4; del frame'
  const both = ['README.md', 'docs/tutorials/quick-start.md'].map(
    (name) => `${blocks(page(name), 'python')[0]}\n${sound}\n`,
  )
  const argv = ['-W', 'error::UserWarning', '-c', both.join('')]
  const run = spawnSync(python, argv, { cwd: root, env: own, encoding: 'utf8' })
  expect(run.status, run.stderr).toBe(0)
})

const recipes = [...page('docs/how-to/cookbook.md').matchAll(/^\*\*(.+)\*\*\n\n```sql\n([\s\S]*?)```/gm)].map(
  ([, title = '', sql = '']): [string, string] => [title, sql],
)

test('recipes of the cookbook find something there, too', async () => {
  expect(recipes.length).toBeGreaterThan(20)
  const empty: string[] = []
  // Each on a small lake with every commit: test/views/cookbook.test.ts.
  for (const [title, sql] of sample(recipes, 4)) {
    using engine = await openQuery(data)
    const ready = await runScript(engine, sql, { folder: data, sleep: async () => await Promise.resolve() })
    if ((await engine.rows(`FROM (${ready.text.replace(/;\s*$/, '')}) LIMIT 1`)).length === 0) empty.push(title)
  }
  expect(empty).toEqual([])
})

test('the examples of the TypeScript guide run as they stand and print what they say', () => {
  const examples = blocks(page('docs/reference/typescript.md'), 'ts')
  expect(examples.length).toBeGreaterThan(3)
  const parts = examples.map((block) => `{\n${block.replace(/^import .*$/gm, '')}\n}`)
  const index = JSON.stringify(new URL('../../src/index.ts', import.meta.url).href)
  // An example of the reference shows the call, not the import.
  const names = 'LakeError, explainChange, lookahead, noted, openLake, rows, stress'
  const file = join(home, 'example.ts')
  writeFileSync(file, `import * as pitlake from ${index}\nconst { ${names} } = pitlake\n${parts.join('\n')}`)
  const run = spawnSync(join(dirname(process.execPath), 'node'), [file], { cwd: home, encoding: 'utf8' })
  expect(run.stderr).toBe('')
  const said = examples.flatMap((block) => [...block.matchAll(/\/\/ → (.*)$/gm)].map((match) => match[1]))
  expect(run.stdout.trimEnd().split('\n')).toEqual(said)
})
