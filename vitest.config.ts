import { statfsSync } from 'node:fs'
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

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Far above what any of them takes: the limit is for what hangs, not for machines that are slow.
    // Tests start servers, kill processes and open databases: each file has a process of its own.
    pool: 'forks',
    maxWorkers: '100%',
    testTimeout: 300_000,
    hookTimeout: 300_000,
    env: { TZ: 'America/New_York', ...roomy() },
  },
})
