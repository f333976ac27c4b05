import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { countTests } from '../../scripts/counts.ts'

describe('counting tests', () => {
  const report = (passed: number, failed: number, broken = 0): string =>
    JSON.stringify({
      numPassedTests: passed,
      numFailedTests: failed,
      testResults: [
        { name: 'a', status: failed > 0 ? 'failed' : 'passed', assertionResults: [{ status: 'passed' }] },
        ...Array.from({ length: broken }, () => ({ name: 'b', status: 'failed', assertionResults: [] })),
      ],
    })
  const none = { skipped: 0, skippedIn: new Map() }

  test('sums reports and counts a file that did not start as a failure', () => {
    expect(countTests([report(3, 0), report(4, 2)])).toEqual({ passed: 7, failed: 2, ...none })
    expect(countTests([report(3, 0, 2)])).toEqual({ passed: 3, failed: 2, ...none })
    expect(countTests([])).toEqual({ passed: 0, failed: 0, ...none })
  })

  test('tells what was left out, and where', () => {
    const statuses = ['passed', 'skipped', 'pending', 'todo', 'failed']
    const assertionResults = statuses.map((status) => ({ status }))
    const testResults = [
      { name: 'some', status: 'passed', assertionResults },
      { name: 'all', status: 'passed', assertionResults: assertionResults.slice(0, 1) },
    ]
    expect(countTests([JSON.stringify({ numPassedTests: 2, numFailedTests: 1, testResults })])).toEqual({
      passed: 2,
      failed: 1,
      skipped: 3,
      skippedIn: new Map([['some', 3]]),
    })
  })
})

test('a machine for which the lockfile proves no binaries is told what to do, before anything is installed', () => {
  const script = fileURLToPath(new URL('../../scripts/platform.cjs', import.meta.url))
  const onto = (arch: string) => {
    const fake = `Object.defineProperty(process, 'platform', { value: '${arch.split('-')[0]}' });
      Object.defineProperty(process, 'arch', { value: '${arch.split('-')[1]}' }); require(${JSON.stringify(script)})`
    return spawnSync(process.execPath, ['-e', fake], { encoding: 'utf8' })
  }
  expect(onto('linux-x64')).toMatchObject({ status: 0, stderr: '' })
  const told = onto('darwin-arm64')
  expect(told.status).toBe(2)
  expect(told.stderr).toContain('proves no binaries for darwin-arm64')
  expect(told.stderr).toContain('npm install --no-package-lock --ignore-scripts')
})

describe('an old Node', () => {
  const preload = fileURLToPath(new URL('../../scripts/node24.cjs', import.meta.url))
  let folder = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pitlake-node-'))
    // The first process says that it is Node 20; what it starts says the truth.
    writeFileSync(
      join(folder, 'old.cjs'),
      "if (!process.env.SEEN) Object.defineProperty(process.versions, 'node', { value: '20.9.0' })\nprocess.env.SEEN = '1'\n",
    )
    writeFileSync(
      join(folder, 'main.cjs'),
      'console.log(process.versions.node, ...process.argv.slice(2))\nprocess.exit(7)\n',
    )
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const run = (guard: string): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(process.execPath, ['-r', join(folder, 'old.cjs'), '-r', guard, join(folder, 'main.cjs'), 'a b', '--c'], {
      encoding: 'utf8',
      env: {},
    })

  test('hands over to the pinned one: arguments, output and exit code pass through', () => {
    const { status, stdout, stderr } = run(preload)
    expect(stderr).toBe('')
    expect(stdout).toMatch(/^24\.\d+\.\d+ a b --c\n$/)
    expect(status).toBe(7)
  })

  test('without the pinned one it says in one line what to do', () => {
    const lonely = join(folder, 'node24.cjs')
    copyFileSync(preload, lonely)
    copyFileSync(preload.replace('node24', 'pinned'), join(folder, 'pinned.cjs'))
    const { status, stdout, stderr } = run(lonely)
    expect(stdout).toBe('')
    expect(stderr).toMatch(
      /expected Node 24 or later, got 20\.9\.0, and npm has brought none for \w+-\w+; install Node 24 .*same command again\n$/,
    )
    expect(status).toBe(2)
  })
})
