import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Where the lakes of the tests lie: in memory where there is plenty, since forcing files to a disk takes long. */
function roomy(): { TMPDIR?: string } {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return process.env['TMPDIR'] === undefined && bavail * bsize > 4 * 2 ** 30 ? { TMPDIR: '/dev/shm' } : {}
  } catch {
    return {}
  }
}

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => `test/${name}`)

/** Test files by the tags that they begin with: lines `// @module-tag NAME`. */
const tagged = (tag: string): ReadonlySet<string> =>
  new Set(files.filter((file) => new RegExp(`^// @module-tag ${tag}$`, 'm').test(readFileSync(file, 'utf8'))))

/** Files of the full tier alone: kills, other programs, whole catalogues, days of a watch, what takes long by nature. */
const full = tagged('full')

/** Files of neither tier, which take many minutes: each runs when it is named. */
const named = tagged('named')

/** Files that take half a minute or more: they begin first, so that no core waits for them in the end. */
const slow = tagged('slow')

/** Files that need a process of their own: they measure it, or put a module of their own in another one's place. */
const alone = tagged('alone')

/** The slow files first, then the larger ones. */
class SlowFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification): boolean => slow.has(relative(process.cwd(), moduleId))
    const sorted = await super.sort(specs)
    return [...sorted.filter(isSlow), ...sorted.filter((spec) => !isSlow(spec))]
  }
}

/** Tier of this run: `fast` is `make test`, `all` is `make test-all`; unset, each file can be named, in a process of its own. */
const tier = process.env['PITLAKE_TESTS']
const chosen = files.filter((file) => !named.has(file) && !(tier === 'fast' && full.has(file)))

export default defineConfig({
  test: {
    ...(tier === undefined
      ? { include: files }
      : {
          projects: [
            // Tests leave nothing behind in their process, so that the next file may have it, with all that it has loaded.
            { extends: true, test: { name: 'shared', include: chosen.filter((file) => !alone.has(file)), isolate: false } },
            { extends: true, test: { name: 'alone', include: chosen.filter((file) => alone.has(file)) } },
          ],
        }),
    tags: [
      { name: 'full', description: 'the full tier alone' },
      { name: 'named', description: 'neither tier: runs when named' },
      { name: 'slow', description: 'begins first' },
      { name: 'alone', description: 'in a process of its own' },
    ],
    // Far above what any of them takes: the limit is for what hangs, not for machines that are slow.
    // Tests start servers, kill processes and open databases: no threads of one process.
    pool: 'forks',
    // One more than there are cores: tests also wait for processes and answers.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: SlowFirst },
    setupFiles: ['test/helpers/fixed-seed.ts'],
    // A test that expects nothing, because a list was empty or nothing was thrown, has not passed.
    expect: { requireAssertions: true },
    testTimeout: 900_000,
    hookTimeout: 900_000,
    env: { TZ: 'America/New_York', ...roomy() },
  },
})
