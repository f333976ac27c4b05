import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Tests start servers, kill processes and open databases: each file has a process of its own.
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 30_000,
    env: { TZ: 'America/New_York' },
  },
})
