import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

/** Where the lakes of the tests lie: in memory where there is plenty, since forcing files to a disk takes long. */
function roomy(): { TMPDIR?: string } {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return process.env['TMPDIR'] === undefined && bavail * bsize > 4 * 2 ** 30 ? { TMPDIR: '/dev/shm' } : {}
  } catch {
    return {}
  }
}

/**
 * What `make test` leaves to `make test-long`: other programs that read what the laws have been tried on already, what the
 * pages tell to type, and what takes long by its nature.
 */
const whole = [
  'test/api/catalogue-walk.test.ts',
  'test/cli/first-hour.test.ts',
  'test/cli/heedless.test.ts',
  'test/cli/own-resource.test.ts',
  'test/laws/L1-publish-python.test.ts',
  'test/laws/watch-memory.test.ts',
  'test/views/panel-python.test.ts',
  'test/views/peers.test.ts',
  'test/views/readers.test.ts',
]

/** What `make test-long` runs: that, and whatever takes but a share of something in `make test`. */
function longer(): string[] {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
  const sharing = files
    .map((name) => `test/${name}`)
    .filter((file) => readFileSync(file, 'utf8').includes("from '../helpers/shares.ts'"))
  return [...whole, ...sharing]
}

const long = process.env['PITLAKE_LONG']

export default defineConfig({
  test: {
    // By itself all of them, so that each can be named; `make` says which of both it wants.
    include: long === '1' ? longer() : ['test/**/*.test.ts'],
    exclude: long === '0' ? whole : [],
    // Far above what any of them takes: the limit is for what hangs, not for machines that are slow.
    // Tests start servers, kill processes and open databases: each file has a process of its own.
    pool: 'forks',
    // One more than there are cores: tests also wait for processes and answers.
    maxWorkers: availableParallelism() + 1,
    // A test that expects nothing, because a list was empty or nothing was thrown, has not passed.
    expect: { requireAssertions: true },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    env: { TZ: 'America/New_York', ...roomy() },
  },
})
