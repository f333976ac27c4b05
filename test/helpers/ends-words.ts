import type { ExitCode } from '../../src/errors.ts'
import type { Scene } from './ends-stage.ts'

/**
 * A command as it is typed behind its name, where, and how it ends: code, standard output (the words; an object: with
 * `--json`, what the one document holds; '': nothing), and what stands on stderr ('': nothing).
 */
export type Row = readonly [command: string, ...Rest]
type Rest = readonly [rest: string, scene: Scene, code: ExitCode | 0, out: RegExp | object | '', err: RegExp | '']

/** The rows of commands, each of which is named once. */
export function rowsOf(table: Readonly<Record<string, readonly Rest[]>>): Row[] {
  return Object.entries(table).flatMap(([command, rows]) => rows.map((rest): Row => [command, ...rest]))
}

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
  ['sound', 0, 'key', 'new', '--out', 'lake.key'],
  ['sound', 0, 'import', 'own.csv', '--as', 'x', '--asset', 'asset', '--t', 't', '--value', 'v', '--data', 'owned'],
  ['sound', 0, 'fetch', '--data', 'fresh'],
  ['sound', 0, 'fetch', '--data', 'differing'],
  ['rewritten', 4, 'verify', '--data', 'differing'],
]

/** Nothing on stderr but notes. */
export const notes = /^(?:note: .*\n)*$/
/** The lake ends before some of the decisions. */
export const late = /^note: decisions later than what is settled of 'supply\/current_pit' get its newest value: .*\n$/
export const noRoom = /ENOSPC: no space left on the disk; make room, then run the same command again/
export const newer =
  /schema_version (?:up to \d, got )?99; this lake was written by a newer pitlake: update the program/
export const torn = /journal entry journal\/\d+\.json is damaged: .*; run pitlake doctor, or put the file back/
export const lost = /ledger\.sqlite.*; run pitlake doctor --rebuild-ledger/
export const damaged = /points\/.*\.parquet: .*got others; run pitlake doctor/
export const noSuchFile = /points\/.*\.parquet: .*got no such file; run pitlake doctor/
export const noLake = /no lake in .*; run pitlake fetch to begin one/
export const atWork =
  /another \w+ job is at work on this lake: got process \d+ on .* \(pitlake test\) since .*; wait until it has/
export const committing = /another commit has been under way for 600 s: got process \d+ .*; wait until it has ended/
export const cancelled = /^pitlake: the query was cancelled\n$/
export const noKey = /the provider refuses the key: got .*invalid or missing API key.*; check PITLAKE_METRICS_KEY\n$/
export const noRegistryKey = /the registry refuses the key: got 401.*; check PITLAKE_REGISTRY_KEY\n$/
export const differ = /pitlake: 1 stored values differ upstream; .*pitlake violations accept\n/
export const wrongBucketKey = /SignatureDoesNotMatch.*; see AWS_ACCESS_KEY_ID/
export const error = (kind: string, exit_code: number): object => ({ error: { kind, exit_code } })
export const usage = error('usage', 2)
export const integrity = error('integrity', 4)
export const incomplete = error('incomplete', 6)
export const stopped = error('stopped', 5)
export const busy = error('busy', 7)

export const full = { with: 'full-disk' } as const
export const stop = { with: 'interrupted' } as const
export const waits = { held: 'commit', with: 'impatient' } as const
export const none = { lake: 'none' } as const
export const bucket = { bucket: true } as const
