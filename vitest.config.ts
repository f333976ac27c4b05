import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Far above what any of them takes: the limit is for what hangs, not for machines that are slow.
    // Tests start servers, kill processes and open databases: each file has a process of its own.
    pool: 'forks',
    maxWorkers: '100%',
    testTimeout: 300_000,
    hookTimeout: 300_000,
    env: { TZ: 'America/New_York' },
  },
})
