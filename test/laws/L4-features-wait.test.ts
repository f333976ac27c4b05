import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { Engine } from '../../src/lake/store/engine.ts'
import { pitlake } from '../helpers/command.ts'
import { inWindow } from '../helpers/days.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'

/* A feature tells nothing of what nobody has requested yet: it waits, or is computed anew as another version, and says so. */

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const days = 40
const count = 'blockchain/block_count_pit'
const other = 'indicators/sopr_adjusted_pit'
const iso = (at: number): string => new Date(at * 1000).toISOString()

const points = Array.from({ length: days }, (_, n) => ({ t: start + n * day, v: n + 1 }))
const answer = (path: string, query: URLSearchParams): unknown =>
  path === 'assets' ? { status: 404 } : inWindow(query, points)

interface FeatureAnswer {
  readonly name: string
  readonly version: number
  readonly rows_added: number
  readonly waits_for: string | null
  readonly recomputed_for: string | null
}

/** Commands on a lake whose feature reads the count of two assets at each day, and what they answer of it. */
function deskOf(own: OwnProvider) {
  const folder = dirname(own.root)
  const run = async (argv: readonly string[], select: string) => {
    const sql = `SELECT ts, asset, v FROM pit_join('grid', '${count}', '24h')`
    const feature = `level: { why: a test, grid: 24h, assets: [BTC, ETH], since: ${iso(start)}, sql: "${sql}" }`
    const files = { f: join(folder, `${own.clock.now}.f.yaml`), config: join(folder, `${own.clock.now}.c.yaml`) }
    writeFileSync(files.f, `features:\n  ${feature}\n`)
    writeFileSync(files.config, `select: [${select}]\ncatalogs: [${files.f}]\n`)
    const env = { PITLAKE_METRICS_URL: own.url, PITLAKE_METRICS_KEY: 'a-key-of-a-test' }
    const all = [...argv, '--config', files.config, '--data', own.root, '--json']
    const ended = await pitlake(folder, all, env, { now: () => own.clock.now * 1000 })
    const told = (ended.out === '' ? {} : JSON.parse(ended.out)) as { features?: readonly FeatureAnswer[] }
    return { code: ended.code, feature: told.features?.[0], message: ended.message }
  }
  const nulls = async (network: string): Promise<string> => {
    using engine = await Engine.open(join(own.root, 'lake.duckdb'), { readOnly: true, threads: 1 })
    const [row] = await engine.rows<{ n: string }>(
      `SELECT count(v) || ' of ' || count(*) AS n FROM points WHERE metric = 'feature/level' AND network = '${network}'`,
    )
    return row?.n ?? ''
  }
  return { folder, run, nulls }
}

const select = (assets: string, path = count, since = start): string =>
  `{ assets: [${assets}], paths: [${path}], since: ${since} }`
const both = select('BTC, ETH')

type Desk = ReturnType<typeof deskOf>

/** What comes first, when the feature would be computed from nothing: what it then waits for. */
const beginnings: readonly (readonly [
  name: string,
  waits: RegExp,
  begin: (own: OwnProvider, desk: Desk) => Promise<FeatureAnswer | undefined>,
])[] = [
  [
    'an import before the first fetch',
    /^blockchain\/block_count_pit at /,
    async (_, { folder, run }) => {
      writeFileSync(join(folder, 'p.csv'), `asset,t,value\nBTC,2026-01-05,1\nBTC,2026-01-06,2\n`)
      return (await run(['import', join(folder, 'p.csv'), '--as', 'p'], both)).feature
    },
  ],
  [
    'a 500 on its path in the first fetch',
    /^blockchain\/block_count_pit at /,
    async (own, { run }) => {
      own.answer((path, query) => (path === count ? { status: 500 } : answer(path, query)))
      return (await run(['fetch'], `${both}, ${select('BTC', other)}`)).feature
    },
  ],
  [
    'a fetch of a single request',
    /^blockchain\/block_count_pit /,
    async (_, { run }) => (await run(['fetch', '--max-requests', '1'], both)).feature,
  ],
  [
    'a selection without its path',
    /^blockchain\/block_count_pit at /,
    async (_, { run }) => (await run(['fetch'], select('BTC', other))).feature,
  ],
]

test.each(beginnings)(
  'after %s a feature waits, and is computed whole once what it names is resolved',
  async (_, waits, begin) =>
    withProvider(start + days * day + day / 4, async (own) => {
      own.answer(answer)
      const desk = deskOf(own)
      const waiting = await begin(own, desk)
      expect([waiting?.version, waiting?.waits_for]).toEqual([1, expect.stringMatching(waits)])
      // At its first instant nothing can be known: for that it does not wait where anything of the metric is resolved.
      const early = waiting?.rows_added ?? 0
      expect([0, 2]).toContain(early)
      own.answer(answer)
      own.clock.now += 3600
      const told = await desk.run(['fetch'], both)
      expect([told.code, told.feature?.version, told.feature?.rows_added]).toEqual([0, 1, 2 * (days + 1) - early])
      // At the first instant nothing was known; at the second what its rule allows.
      expect(await desk.nulls('v1')).toMatch(/^(?:80|78) of 82$/)
      expect((await desk.run(['features', '--check'], both)).code).toBe(0)
    }),
)

test.each([
  ['an asset', select('BTC'), both, `${count} ETH`],
  ['a history', select('BTC, ETH', count, start + 20 * day), both, `${count} BTC`],
])('%s that is requested later makes another version, and that is said', async (_, first, second, missed) =>
  withProvider(start + days * day + day / 4, async (own) => {
    own.answer(answer)
    const { run, nulls } = deskOf(own)
    expect((await run(['fetch'], first)).feature).toMatchObject({ version: 1, recomputed_for: null })
    own.clock.now += 3600
    expect((await run(['fetch'], second)).feature).toMatchObject({ version: 2, recomputed_for: missed, rows_added: 82 })
    expect(await nulls('v1')).not.toBe(await nulls('v2'))
    expect(await nulls('v2')).toMatch(/^(?:80|78) of 82$/)
    own.clock.now += 3600
    expect((await run(['features'], second)).feature).toMatchObject({ version: 2, recomputed_for: null, rows_added: 0 })
  }),
)
