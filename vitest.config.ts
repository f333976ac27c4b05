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

/** What `make test-long` runs: whatever takes but a share of something in `make test`. */
function sharing(): string[] {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
  return files
    .map((name) => `test/${name}`)
    .filter((file) => readFileSync(file, 'utf8').includes("from '../helpers/shares.ts'"))
}

export default defineConfig({
  test: {
    include: process.env['PITLAKE_LONG'] === '1' ? sharing() : ['test/**/*.test.ts'],
    // Far above what any of them takes: the limit is for what hangs, not for machines that are slow.
    // Tests start servers, kill processes and open databases: each file has a process of its own.
    pool: 'forks',
    // One more than there are cores: tests also wait for processes and answers.
    maxWorkers: availableParallelism() + 1,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    env: { TZ: 'America/New_York', ...roomy() },
  },
})
