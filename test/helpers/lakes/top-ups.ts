import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { commit, type Draft, type RewriteDeps, type StagedFile, type Ticket } from '../../../src/lake/ledger/commit.ts'
import { revisableKey } from '../../../src/lake/ledger/draft.ts'
import { compressionSql, fewRows } from '../../../src/lake/store/parquet.ts'
import { digestSql } from '../../../src/sources/points/write.ts'
import { Engine, quote, quoteList } from '../../../src/lake/store/engine.ts'
import type { SeriesRow } from '../../../src/lake/ledger/entry.ts'
import { inLake, pointsFile, recentFile } from '../../../src/lake/store/layout.ts'
import type { Ledger } from '../../../src/lake/ledger/ledger.ts'
import { commitDeps } from './drafts.ts'

/** Two endpoints of the catalogue: one without the provider's own instants, one with them. */
export const metrics = ['supply/current_pit', 'market/beta_btc_7d_pit'] as const
/** Beside them a revisable one, bars of somebody's own whose open is known early, and a feature. */
export const everyKind = [...metrics, 'blockchain/block_count_pit', 'own/bars', 'feature/level'] as const
const [, , revised, bars, derived] = everyKind
const ownRow = { files: [], intervals: ['24h'], currencies: ['native'], exchanges: [], networks: [] }
const known = { timestamp: 'interval_end', available: 'end+900s', available_at: 'known' }
/** What a lake knows of them. */
const kept = {
  [revisableKey]: [revised],
  [bars]: { ...ownRow, mapping: { components: ['x'], available: 'x=start,y=end+10m' } },
  [derived]: { ...ownRow, mapping: known },
}
export const day = 86_400
/** 2024-01-01, the first t of every lake here. */
export const start = 1_704_067_200

/** A clock that stands until it is set, and everything else that rewriting needs. */
export function rewriteDeps(changes: Partial<RewriteDeps> = {}): RewriteDeps & { clock: { now: number } } {
  const clock = { now: start + 400 * day }
  const signal = new AbortController().signal
  return { ...commitDeps({ nowMicros: () => clock.now * 1_000_000 }), signal, threads: 1, clock, ...changes }
}

/** What one top-up brings: points of every asset from one day to another, and points that came late. */
export interface TopUp {
  readonly metric: string
  readonly since: number
  readonly days: number
  readonly assets?: number
  /** Days whose points are left out now, or brought as late arrivals. */
  readonly skip?: readonly number[]
  readonly late?: readonly number[]
  /**
   * Whether some of the provider's points bear further instants: computed earlier than they are known, or backfilled.
   */
  readonly clocks?: boolean
  readonly more?: Partial<Draft>
}

/** Commits points that are functions of asset, day and metric, dated as a conversion dates them. */
export async function topUp(ledger: Ledger, deps: RewriteDeps, what: TopUp): Promise<void> {
  await topUps(ledger, deps, [what])
}

/** In which level of files points come. */
export type Level = 'own' | 'recent'

/** The same for several metrics in one commit. */
export async function topUps(ledger: Ledger, deps: RewriteDeps, whats: readonly TopUp[], level: Level = 'own') {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const draft = async (ticket: Ticket): Promise<Draft> => {
    const { add = [], ...rest } = await topUpDraft(engine, ledger, ticket, whats)
    return { ...rest, add: level === 'own' ? add : [await recentOf(engine, ledger, ticket, add)] }
  }
  await commit(ledger, draft, deps)
}

async function topUpDraft(engine: Engine, ledger: Ledger, ticket: Ticket, whats: readonly TopUp[]): Promise<Draft> {
  const add: StagedFile[] = []
  for (const [n, what] of whats.entries()) add.push(await topUpFile(engine, ledger, ticket, what, n))
  const series = whats.flatMap(({ metric, assets = 2 }) => seriesOf(metric, assets))
  const more: Partial<Draft> = Object.assign({}, ...whats.map((what) => what.more))
  const isKept = whats.some(({ metric }) => !metrics.some((one) => one === metric))
  const state = { ...(isKept && kept), ...more.state }
  return { job: 'fetch', run: 'top-up', provider, add, series, ...more, state }
}

/** As the program names files. */
const nameOf = ({ version }: Ticket): string => `${String(version).padStart(10, '0')}-t`

async function topUpFile(engine: Engine, ledger: Ledger, ticket: Ticket, what: TopUp, n: number): Promise<StagedFile> {
  const { metric, since, days, assets = 2, skip = [], late = [], clocks = false } = what
  const name = `${nameOf(ticket)}-${n}`
  const temporary = `spool/top-up/${name}.parquet`
  const out = inLake(ledger.root, temporary)
  mkdirSync(dirname(out), { recursive: true })
  const provided = ![metrics[0], revised, bars].some((one) => one === metric)
  const row = (d: string, tardy: string): string => {
    const t = `(${start} + ${d} * ${day})`
    const rule = `(${t} + ${day} + 600) * 1000000`
    const at = tardy === 'true' ? `greatest(${ticket.committed_at}, ${rule})` : rule
    const known = provided ? `(${t} + ${day} + 900 + ${d} % 7) * 1000000` : at
    const basis = provided ? 'provider' : tardy === 'true' ? 'observed' : 'assumed'
    return `SELECT 'A' || a AS asset, 'native' AS currency, NULL::VARCHAR AS exchange, NULL::VARCHAR AS network,
      make_timestamptz((${t} * 1000000)::BIGINT) AS t, make_timestamptz((${known})::BIGINT) AS available_at,
      make_timestamptz(${ticket.committed_at}::BIGINT) AS observed_at,
      CASE WHEN ${d} % 11 = 3 THEN '-0.0'::DOUBLE WHEN ${d} % 11 = 8 THEN 0 WHEN ${d} % 11 = 5 THEN NULL ELSE sin(a * 1000 + ${d}) END::DOUBLE AS v,
      CASE WHEN ${d} % 13 = 1 THEN '{"x":' || ${d} || '}' END AS o, '${basis}' AS basis, NULL::VARCHAR AS extra,
      CASE WHEN ${clocks} AND ${d} % 5 = 2 THEN make_timestamptz((${known} - 60000000)::BIGINT) END AS computed_at,
      CASE WHEN ${clocks} AND ${d} % 5 = 3 THEN make_timestamptz((${rule})::BIGINT) END AS available_rule_at,
      NULL::VARCHAR AS params
      FROM range(${assets}) q(a)`
  }
  const list = (numbers: readonly number[]): string => `CAST([${numbers.join(', ')}] AS BIGINT[])`
  const own = `${row('d', 'false')}, range(${since}, ${since + days}) r(d) WHERE NOT list_contains(${list(skip)}, d)`
  const tardy = `${row('d', 'true')}, (SELECT unnest(${list(late)}) AS d) r`
  await engine.run(
    `COPY (${own} UNION ALL ${tardy} ORDER BY asset, t) TO ${quote(out)} (FORMAT parquet, PARQUET_VERSION v2,
       ${compressionSql(days * assets <= fewRows)}, DICTIONARY_SIZE_LIMIT 0)`,
  )
  const [facts] = await engine.rows<{ rows: bigint; digest: string; lo: bigint; hi: bigint }>(
    `SELECT count(*) AS rows, ${digestSql} AS digest, epoch_us(min(t)) // 1000000 AS lo, epoch_us(max(t)) // 1000000 AS hi
       FROM read_parquet(${quoteList([out])})`,
  )
  if (!facts) throw new Error('no facts')
  return {
    temporary,
    path: pointsFile(metric, '24h', name),
    table: 'points',
    label: '',
    metric,
    interval: '24h',
    rows: Number(facts.rows),
    digest: facts.digest,
    min_t: Number(facts.lo),
    max_t: Number(facts.hi),
    meta: { min_available: 0, max_available: 0, min_lag: provided ? 900_000_000 : 600_000_000 },
  }
}

/** The rows of these files in one recent file. */
async function recentOf(engine: Engine, ledger: Ledger, ticket: Ticket, files: readonly StagedFile[]) {
  const temporary = `spool/top-up/recent-${ticket.version}.parquet`
  const all = files.map(
    ({ metric, temporary: from }) =>
      `SELECT ${quote(metric ?? '')} AS metric, '24h' AS "interval", * FROM read_parquet(${quote(inLake(ledger.root, from ?? ''))})`,
  )
  await engine.run(
    `COPY (${all.join(' UNION ALL ')} ORDER BY metric, asset, t) TO ${quote(inLake(ledger.root, temporary))}
      (FORMAT parquet, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 0)`,
  )
  const shares = Object.fromEntries(
    files.map(({ metric, rows, meta }) => [metric, { '24h': [rows, meta['min_lag'] ?? 0] }]),
  )
  const numbers = (of: (file: StagedFile) => number | null): number[] => files.map((file) => of(file) ?? 0)
  return {
    temporary,
    path: recentFile(nameOf(ticket)),
    table: 'points',
    label: '',
    metric: null,
    interval: null,
    rows: numbers(({ rows }) => rows).reduce((sum, rows) => sum + rows, 0),
    digest: String(files.reduce((sum, { digest }) => sum + BigInt(digest ?? 0), 0n)),
    min_t: Math.min(...numbers(({ min_t }) => min_t)),
    max_t: Math.max(...numbers(({ max_t }) => max_t)),
    meta: { min_available: 0, max_available: 0, min_lag: 600_000_000, shares },
  }
}

/** Who provides the lakes here. */
export const provider = { metrics: 'sandbox:1', synthetic: true }

function seriesOf(metric: string, assets: number): SeriesRow[] {
  return Array.from({ length: assets }, (_, a) => ({
    id: seriesId(metric, a),
    metric,
    asset: `A${a}`,
    interval: '24h',
    currency: 'native',
    exchange: null,
    network: null,
    params: {},
    settled: '24h',
  }))
}

/** The id of the series of an asset. */
export const seriesId = (metric: string, asset: number): string => `${metric}|A${asset}|24h|native`
