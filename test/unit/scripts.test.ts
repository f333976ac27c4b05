// @module-tag alone
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { countTests } from '../../scripts/counts.ts'
import { need } from '../helpers/needs.ts'
import { temporaryFolder, makeFolder } from '../helpers/folders.ts'
import { partOf } from '../helpers/part-of.ts'

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
  const none = { skipped: 0, failures: [], leftOut: [] }
  const left = (...reasons: readonly (string | null)[]) =>
    reasons.map((lacks) => ({ status: 'skipped', meta: lacks === null ? {} : { lacks } }))

  test('sums reports and counts a file that did not start as a failure', () => {
    expect(countTests([report(3, 0), report(4, 2)])).toEqual({ passed: 7, failed: 2, ...none })
    expect(countTests([report(3, 0, 2)])).toEqual({ passed: 3, failed: 2, ...none, failures: ['b', 'b'] })
    expect(countTests([])).toEqual({ passed: 0, failed: 0, ...none })
  })

  test('counting tests lists skipped tests with place and reason', () => {
    const statuses = ['passed', 'skipped', 'pending', 'todo', 'failed']
    const testResults = [
      { name: 'some', status: 'passed', assertionResults: statuses.map((status) => ({ status, fullName: 'one' })) },
      { name: 'all', status: 'passed', assertionResults: [{ status: 'passed' }] },
      { name: 'why', status: 'passed', assertionResults: left('no Python', 'no chromium', 'no Python') },
    ]
    expect(countTests([JSON.stringify({ numPassedTests: 2, numFailedTests: 1, testResults })])).toEqual({
      passed: 2,
      failed: 1,
      skipped: 6,
      failures: ['some › one'],
      leftOut: [
        { file: 'some', reason: null, count: 3 },
        { file: 'why', reason: 'no Python', count: 2 },
        { file: 'why', reason: 'no chromium', count: 1 },
      ],
    })
  })

  test('as a process: the reasons stand above the last line, and what is left out in silence fails', () => {
    const script = fileURLToPath(new URL('../../scripts/counts.ts', import.meta.url))
    const folder = makeFolder('counts')
    const run = (numPassedTests: number, ...tests: readonly object[]): readonly [number | null, string] => {
      const file = join(folder, 'tests.json')
      const testResults = [{ name: join(process.cwd(), 'test/a.test.ts'), status: 'passed', assertionResults: tests }]
      writeFileSync(file, JSON.stringify({ numPassedTests, numFailedTests: 0, testResults }))
      const { status, stdout } = spawnSync(process.execPath, [script, file], { encoding: 'utf8' })
      return [status, stdout]
    }
    const why = '2 skipped in test/a.test.ts: no Python\n'
    expect(run(1, { status: 'passed' })).toEqual([0, '1 passed, 0 failed, 0 skipped\n'])
    expect(run(1, ...left('no Python', 'no Python'))).toEqual([0, `${why}1 passed, 0 failed, 2 skipped\n`])
    expect(run(1, ...left(null))).toEqual([
      1,
      '1 skipped in test/a.test.ts: nobody says why\n1 passed, 0 failed, 1 skipped\n',
    ])
    const failed = 'failed: test/a.test.ts › adds\n'
    expect(run(1, { status: 'failed', fullName: 'adds' })).toEqual([1, `${failed}1 passed, 0 failed, 0 skipped\n`])
    expect(run(0)).toEqual([1, '0 passed, 0 failed, 0 skipped\n'])
    rmSync(folder, { recursive: true })
  })
})

describe('what a test needs of the machine', () => {
  const asked = () => {
    const task = { meta: {} as { lacks?: string } }
    const skip = (note?: unknown): never => {
      throw new RangeError(`skipped: ${String(note)}`)
    }
    return { task, context: partOf<Parameters<typeof need>[0]>({ task, skip }) }
  }
  afterEach(() => vi.unstubAllEnvs())

  test('is named where it is; a test without it is left out with the reason, or fails where it must be there', () => {
    vi.stubEnv('PITLAKE_SPARK', '/a/python')
    expect(need(asked().context, 'spark')).toBe('/a/python')
    vi.stubEnv('PITLAKE_SPARK', '')
    const { task, context } = asked()
    expect(() => need(context, 'spark')).toThrow('skipped: Spark is asked by make test-spark alone')
    expect(task.meta.lacks).toBe('Spark is asked by make test-spark alone')
    vi.stubEnv('PITLAKE_REQUIRED', 'chromium spark')
    expect(() => need(asked().context, 'spark')).toThrow(/by make test-spark alone, though it can be had here$/)
  })

  test('a tool that is being installed is waited for, and must exist once installed', () => {
    using kept = temporaryFolder('had')
    const file = join(kept.path, 'had')
    vi.stubEnv('PITLAKE_HAD', file)
    vi.stubEnv('PITLAKE_CHROMIUM', process.execPath)
    spawn('sh', ['-c', 'sleep 0.3; echo peers chromium >"$1.new"; mv "$1.new" "$1"', 'sh', file])
    expect(need(asked().context, 'chromium')).toBe(process.execPath)
    expect(readFileSync(file, 'utf8')).toBe('peers chromium\n')
    // What comes from no network is not waited for.
    rmSync(file)
    expect(() => need(asked().context, 'spark')).toThrow('skipped: Spark')
  })
})

test('a machine without binaries in the lockfile gets the next step before an install', () => {
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

test('a lake is copied with the stamps before the journal, and the journal before what it names', () => {
  const script = fileURLToPath(new URL('../../deploy/rsync-lake.sh', import.meta.url))
  using kept = temporaryFolder('rsync')
  const folder = kept.path
  writeFileSync(join(folder, 'rsync'), '#!/bin/sh\nfor part; do :; done\necho "${4##*/} $part"\n', { mode: 0o755 })
  const held = ['archive', 'assets', 'heads', 'journal', 'points', 'registry', 'runs', 'stamps']
  for (const name of [...held, 'spool']) mkdirSync(join(folder, 'lake', name), { recursive: true })
  writeFileSync(join(folder, 'lake', 'lake.json'), '{}')
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` }
  const { stdout } = spawnSync('/bin/sh', [script, join(folder, 'lake/'), 'there/'], { encoding: 'utf8', env })
  const order = stdout.trimEnd().split('\n')
  expect(order.toSorted()).toEqual([...held, 'lake.json'].map((name) => `${name} there/`).toSorted())
  expect(order.slice(0, 5)).toEqual(['lake.json', 'stamps', 'journal', 'runs', 'heads'].map((name) => `${name} there/`))
})

describe('an old Node', () => {
  const preload = fileURLToPath(new URL('../../scripts/fixed-node.cjs', import.meta.url))
  let folder = ''
  beforeAll(() => {
    folder = makeFolder('node')
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

  test('an old Node without a pinned one for its platform does not hand over to itself', () => {
    // Each process says that it is too old, the pinned one, too; the fourth would be one of an endless chain.
    const lying = join(folder, 'lying.cjs')
    writeFileSync(
      lying,
      "Object.defineProperty(process.versions, 'node', { value: '20.9.0' })\n" +
        "process.env.DEPTH = String(Number(process.env.DEPTH ?? 0) + 1)\nif (process.env.DEPTH > 3) throw new Error('endless')\n",
    )
    const line = ['-r', lying, '-r', preload, join(folder, 'main.cjs'), 'a b']
    const { status, stdout } = spawnSync(process.execPath, line, { encoding: 'utf8', env: {} })
    expect([status, stdout]).toEqual([7, '20.9.0 a b\n'])
  })

  test('an old Node without the pinned one prints one line with the next step', () => {
    const lonely = join(folder, 'fixed-node.cjs')
    copyFileSync(preload, lonely)
    copyFileSync(preload.replace('fixed-node', 'pinned'), join(folder, 'pinned.cjs'))
    const { status, stdout, stderr } = run(lonely)
    expect(stdout).toBe('')
    expect(stderr).toMatch(
      /expected Node 24\.22\.1, 26\.12\.1 or later, got 20\.9\.0, and npm has installed none for \w+-\w+; install Node 24 .*same command again\n$/,
    )
    expect(status).toBe(2)
  })
})
