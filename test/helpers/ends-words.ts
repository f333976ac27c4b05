const day = 86_400_000
const since = new Date(Date.now() - 6 * day).toISOString().slice(0, 10)
const before = new Date(Date.now() - 3 * day).toISOString().slice(0, 10)
const now = new Date(Date.now() + day).toISOString().slice(0, 10)

/** What lies beside the lake. */
export const files: Readonly<Record<string, string>> = {
  'pitlake.yaml': `metrics: { requests_per_minute: 60000 }
select:
  - { assets: [BTC], paths: [supply/current_pit, addresses/active_count_pit], since: ${since} }
`,
  'hasty.yaml': 'metrics: { availability: { "*": { lag: 1s } } }\n',
  'trusting.yaml': 'metrics: { availability: { "*": { lag: 1s, trust: rule } } }\n',
  'hooks.yaml': 'hooks:\n  on_dine: echo\n',
  'broken.yaml': 'metrics: { a: [ }\n',
  'clean.sql': `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('${since}', '${now}', '1d'))
SELECT ts, v FROM pit_join('d', 'supply/current_pit', '24h') ORDER BY ts`,
  'leak.sql': 'SELECT t AS ts, asset, v FROM points ORDER BY ALL',
  'dateless.sql': 'SELECT 1 AS one',
  'd.csv': `asset,ts\nBTC,${new Date(Date.now() - 2 * day).toISOString()}\n`,
  'level.yaml': `features:
  level: { why: a test, grid: 24h, assets: [BTC], sql: "SELECT ts, asset, v FROM pit_join('grid', 'supply/current_pit', '24h')" }
`,
  'ahead.yaml': `features: { far: { why: a test, grid: 24h, sql: "SELECT ts, count(*) OVER () AS n FROM grid" } }\n`,
  'features.yaml': 'catalogs: [level.yaml]\n',
  'leaking.yaml': 'catalogs: [ahead.yaml]\n',
  'listing.json': '["new/one_pit"]',
  'known.csv': 'asset,ts,supply/current_pit\nBTC,1990-01-01T00:00:00Z,\n',
  'never.csv': `asset,ts,supply/current_pit\nBTC,${new Date(Date.now() - 2 * day).toISOString()},-1.5\n`,
  'own.csv': 'asset,t,v\nBTC,2024-01-01,1\nBTC,2024-01-02,2\n',
  'changed.csv': 'asset,t,v\nBTC,2024-01-01,1\nBTC,2024-01-02,3\n',
}

/** A command that is run before, of which provider, and the code that it ends with. */
export type Prepared = readonly [from: string, code: number, ...argv: string[]]

/** A lake that lacks its last days. */
export const aLake: Prepared = ['sound', 0, 'fetch', '--until', before]

/** A lake that follows the registry. */
export const followed: Prepared = ['sound', 0, 'registry', 'sync', '--data', 'followed']

/** The lake in other places. */
export const published: readonly Prepared[] = [
  ['sound', 0, 'publish', 'pub', '--lake'],
  ['sound', 0, 'pull', 'pub', '--data', 'mirror'],
]

/** A stamped result, a lake that lacks nothing, and one that differs upstream. */
export const stampedAndFresh: readonly Prepared[] = [
  ['sound', 0, 'stamp', 'leak.sql', '--out', 'r.parquet'],
  ['sound', 0, 'stamp', 'clean.sql', '--out', 'c.parquet'],
  ['sound', 0, 'keygen', '--out', 'lake.key'],
  ['sound', 0, 'import', 'own.csv', '--as', 'x', '--asset', 'asset', '--t', 't', '--value', 'v', '--data', 'owned'],
  ['sound', 0, 'fetch', '--data', 'fresh'],
  ['sound', 0, 'fetch', '--data', 'differing'],
  ['rewritten', 4, 'verify', '--data', 'differing'],
]
