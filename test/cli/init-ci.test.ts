import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { parse } from 'yaml'
import { pitlake } from '../helpers/command.ts'
import { makeFolder } from '../helpers/folders.ts'

let home = ''
beforeEach(() => {
  home = makeFolder('ci')
  return () => rmSync(home, { recursive: true, force: true })
})

const git = (...words: readonly string[]): void => {
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], { cwd: home, stdio: 'ignore' })
}

/** Commits, with a program in the place of pitlake that ends with this code; whether the commit was made. */
function commits(code: number): boolean {
  writeFileSync(join(home, 'asked.sh'), `#!/bin/sh\necho "$@" > asked.txt\nexit ${code}\n`, { mode: 0o755 })
  const env = { ...process.env, PITLAKE_COMMAND: './asked.sh' }
  const words = ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--allow-empty', '-qm', 'Change']
  return spawnSync('git', words, { cwd: home, env, stdio: 'ignore' }).status === 0
}

test('init-ci writes a workflow that judges with annotations and a report', async () => {
  const { code, notes } = await pitlake(home, ['init-ci'])
  expect([code, notes]).toEqual([0, expect.stringContaining('wrote .github/workflows/lookahead.yml')])
  const workflow = parse(readFileSync(join(home, '.github/workflows/lookahead.yml'), 'utf8')) as {
    readonly permissions: unknown
    readonly jobs: { readonly 'look-ahead': { readonly steps: readonly { readonly run?: string }[] } }
  }
  expect(workflow.permissions).toEqual({ contents: 'read' })
  const lines = workflow.jobs['look-ahead'].steps.flatMap(({ run }) => run ?? [])
  expect(lines.at(-1)).toContain('--changed-since "origin/$BASE_REF"')
  // What a pull request names reaches the shell as a variable only.
  expect(lines.join('\n')).not.toContain('${{')
})

test('init-ci writes nothing over a file that exists, and nothing next to one', async () => {
  await pitlake(home, ['init-ci'])
  writeFileSync(join(home, '.githooks/pre-commit'), 'mine')
  rmSync(join(home, '.github'), { recursive: true })
  const { code, message } = await pitlake(home, ['init-ci'])
  expect([code, message]).toEqual([
    2,
    expect.stringMatching(/^\.githooks\/pre-commit: expected no such file yet, got one; /),
  ])
  expect(readFileSync(join(home, '.githooks/pre-commit'), 'utf8')).toBe('mine')
  expect(existsSync(join(home, '.github'))).toBe(false)
})

test('the hook stops a commit that looks ahead, not one without a verdict', async () => {
  git('init', '-q')
  await pitlake(home, ['init-ci'])
  git('config', 'core.hooksPath', '.githooks')
  // The first commit has nothing to be compared with.
  expect(commits(4)).toBe(true)
  expect(commits(4)).toBe(false)
  expect(readFileSync(join(home, 'asked.txt'), 'utf8')).toBe('lookahead . --changed-since HEAD\n')
  expect([0, 6, 2].map(commits)).toEqual([true, true, false])
})
