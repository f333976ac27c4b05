import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { matchesGlob } from 'node:path'
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

/** What `make test` leaves to `make test-long`: each law that it tries is tried by others, too. */
const whole = [
  // Other programs, which read what is tried without them already.
  'test/laws/L1-publish-python.test.ts',
  'test/unit/proof-engines.test.ts',
  'test/views/{panel-python,peers,readers,readers-trino}.test.ts',
  // What the pages tell to type, and what the system around runs.
  'test/cli/{findings,first-hour,hooks,own-recipes,publish,service}.test.ts',
  // Days of a watch, whole catalogues, every variant of a provider, and calls that nothing ends.
  'test/api/preflight.test.ts',
  'test/cli/{answers,daily,ends-asking,ends-lake,features,follow,heedless,import,lookahead,mcp,mirror,own-resource,registry,serve,watch}.test.ts',
  'test/laws/{L5-calendar,L5-estimate,watch,watch-days}.test.ts',
  // A law at one job more: kills and full disks, a clock that was wrong, old layouts, what is adopted or mended.
  'test/laws/{L1-clock-ledger,L1-clock-registry,L1-L6-views,L1-labels,L1-lookahead,L1-value-types}.test.ts',
  'test/laws/{L1-assumed,L1-clock-ahead,L1-publish,L1-recall,L2-accepted,L2-adopt,L2-adopt-registry,L2-incidents,L2-registry-raw,L2-registry-verify,L2-remedies}.test.ts',
  'test/laws/{L3-backup,L3-compact,L3-copy,L3-cursor,L3-features,L3-full,L3-index,L3-power,L3-publish,L3-rsync,L4-registry}.test.ts',
  'test/laws/{L5-metadata,L5-refusals,L5-stopped,L6-certificate,L6-compact,L6-explain,L6-layouts,L6-publish,L6-published-vacuum,L6-pull,L6-pull-vacuum,L6-race,L6-registry-proof}.test.ts',
  // What processes hold of memory, what becomes of vintages over years, and a kill between two askings.
  'test/laws/{memory,L2-own-vintages,L2-vintages,L3-incident}.test.ts',
  'test/views/{changed,dbt,identity,links-oracle,lookahead-function,lookahead-python,manifest,notes,noticed,recent,registry-merged,stress-delays}.test.ts',
  'test/{cli/stress,page/explain,page/explore,page/heat}.test.ts',
]

/** What only targets of their own run: `make test-watch`, `make test-years`. */
const apart = ['test/laws/{watch-memory,years,L6-growth}.test.ts']

/** Those that try the same of one another's kind: with `all` one of them at its turn, which counts commits. */
const inTurn = [
  ['test/laws/watch-days.test.ts', 'test/laws/L5-calendar.test.ts'],
  ['test/laws/watch-days.test.ts', 'test/laws/watch.test.ts'],
  ['test/laws/L1-clock-registry.test.ts', 'test/laws/L1-clock-ledger.test.ts'],
  // What was knowable, asked through views and macros, or by statements at a door.
  ['test/laws/L1-L6-views.test.ts', 'test/laws/L1-walls.test.ts'],
  // What a lake can lose, and who leads out of it: one thing with each flag of doctor, two at once by its words.
  ['test/laws/L2-remedies.test.ts', 'test/laws/L3-pairs.test.ts'],
  ['test/views/peers.test.ts', 'test/views/readers.test.ts'],
]
const turn = Number(process.env['PITLAKE_TURN'] ?? 0)
const notNow = inTurn.flatMap((pair) => pair[turn % 2] ?? [])

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => `test/${name}`)

/** What takes a minute and more begins first, then what takes half of one: no core is to wait for them in the end. */
const slow: readonly (readonly string[])[] = [
  ['cli/stress', 'doors/doors', 'laws/L1-L6-views', 'laws/L1-lookahead', 'laws/L3-pairs', 'laws/L3-powercuts'],
  ['cli/answers', 'cli/ends-asking', 'cli/ends-lake', 'cli/first-hour', 'laws/memory', 'laws/watch-days'],
  ['laws/L1-walls', 'laws/L2-registry-verify', 'laws/L3-publish', 'laws/L5-calendar', 'laws/L6-layouts', 'laws/L6-publish'],
  ['cli/daily', 'laws/L6-explain', 'laws/watch', 'page/explore', 'views/lookahead-python', 'views/peers'],
]

/** Those first, then the larger ones. */
class SlowFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = slow.findIndex((names) => names.some((name) => moduleId.endsWith(`/test/${name}.test.ts`)))
      return found === -1 ? slow.length : found
    }
    return (await super.sort(specs)).toSorted((a, b) => rank(a) - rank(b))
  }
}

/** The test files whose text holds something. */
const holding = (text: string): string[] => files.filter((file) => readFileSync(file, 'utf8').includes(text))

const matching = (patterns: readonly string[]): string[] =>
  files.filter((file) => patterns.some((pattern) => matchesGlob(file, pattern)))

/** What `make test-long` runs: that, and whatever takes but a share of something in `make test`. */
const longer = new Set([...matching(whole), ...holding("from '../helpers/shares.ts'")])

/**
 * Which share of them: `0` what `make test` tries, `1` what `make test-long` tries whole, `all` both in one run, each once.
 * By itself all of them, so that each can be named, and each in a process of its own.
 */
const share = process.env['PITLAKE_LONG']
const later = new Set(matching(share === 'all' ? [...apart, ...notNow] : [...whole, ...apart]))
const chosen = share === '1' ? [...longer] : files.filter((file) => !later.has(file))

/**
 * Tests leave nothing behind in their process, so that the next file may have it, with all that it has loaded. Those that
 * measure it or add to a table of it have their own, and so has whoever puts a module of its own in a module's place: it
 * comes too late where a file before has loaded it.
 */
const own = new Set([
  ...['http', 'scripts', 'rule-kinds'].map((name) => `test/unit/${name}.test.ts`),
  ...holding('vi.mock('),
])

export default defineConfig({
  test: {
    ...(share === undefined
      ? { include: files }
      : {
          projects: [
            { extends: true, test: { name: 'shared', include: chosen.filter((file) => !own.has(file)), isolate: false } },
            { extends: true, test: { name: 'alone', include: chosen.filter((file) => own.has(file)) } },
          ],
        }),
    // Far above what any of them takes: the limit is for what hangs, not for machines that are slow.
    // Tests start servers, kill processes and open databases: no threads of one process.
    pool: 'forks',
    // One more than there are cores: tests also wait for processes and answers.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: SlowFirst },
    // A test that expects nothing, because a list was empty or nothing was thrown, has not passed.
    expect: { requireAssertions: true },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    env: { TZ: 'America/New_York', ...roomy() },
  },
})
