import { mkdirSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CommitDeps, Draft, StagedFile } from '../../../src/lake/ledger/commit.ts'
import type { CoverageRow, RequestRow, SeriesRow, Violation } from '../../../src/lake/ledger/entry.ts'
import { inLake, pointsFile } from '../../../src/lake/store/layout.ts'
import type { Ledger } from '../../../src/lake/ledger/ledger.ts'

/** Real time and sleep; anything may be replaced. */
export function commitDeps(changes: Partial<CommitDeps> = {}): CommitDeps {
  return {
    nowMicros: () => Date.now() * 1000,
    sleep: (milliseconds) => sleep(milliseconds),
    random: Math.random,
    holder: { pid: process.pid, host: hostname(), command: 'test' },
    program: 'pitlake test',
    ...changes,
  }
}

/** The n-th test series. */
export function seriesRow(n: number, changes: Partial<SeriesRow> = {}): SeriesRow {
  const own = { id: `m/x|A${n}|24h`, metric: 'm/x', asset: `A${n}`, interval: '24h', settled: '24h' } as const
  return { ...own, currency: null, exchange: null, network: null, params: {}, ...changes }
}

/** A window of the n-th test series. */
export function coverageRow(n: number, since: number, until: number, changes: Partial<CoverageRow> = {}): CoverageRow {
  const asked = { asked_at: 1000, request: null, reason: null, state: 'covered' } as const
  return { series: seriesRow(n).id, since, until, ...asked, ...changes }
}

/** A request that brought a point. */
export function requestRow(id: string, changes: Partial<RequestRow> = {}): RequestRow {
  const about = { run: 'a', api: 'metrics', path: '/x', query: {}, series: null, since: null, until: null } as const
  const cost = { status: 200, outcome: 'body', points: 1, bytes: 9, credits: 2, attempts: 1, seconds: null } as const
  return { id, ...about, ...cost, asked_at: 1, detail: null, ...changes }
}

/** A point of the n-th test series that is offered as `2` where `1` is stored. */
export function violationRow(n: number, t: number, changes: Partial<Violation> = {}): Violation {
  const values = { kind: 'changed', stored: '1', offered: '2', stored_at: 1, offered_at: 2 } as const
  return { series: seriesRow(n).id, t, ...values, request: null, ...changes }
}

/** Writes a file into the spool and says what it will be. */
export function stage(root: string, name: string, content: string, changes: Partial<StagedFile> = {}, run = 'r') {
  const temporary = `spool/${run}/${name}`
  mkdirSync(dirname(inLake(root, temporary)), { recursive: true })
  writeFileSync(inLake(root, temporary), content)
  const path = pointsFile('m/x', '24h', name)
  const about = { table: 'points', label: '', metric: 'm/x', interval: '24h', digest: null, meta: {} } as const
  return { temporary, path, ...about, rows: 1, min_t: 0, max_t: 0, ...changes }
}

/** A draft with a file, a window and its points. */
export function draftOf(root: string, n: number, run = 'r'): Draft {
  const day = 86_400
  return {
    job: 'fetch',
    run,
    provider: { metrics: 'sandbox:1', synthetic: true },
    add: [stage(root, `f-${run}-${n}`, `content ${n}`, {}, run)],
    series: [seriesRow(n % 5)],
    progress: [{ series: seriesRow(n % 5).id, points: 1, first_t: n * day, last_t: n * day }],
    coverage: [coverageRow(n % 5, n * day, (n + 1) * day, { asked_at: 1000 + n })],
  }
}

/** Everything that the index holds, table by table, in the order of the keys. */
export function dump(ledger: Ledger): Record<string, unknown[]> {
  return Object.fromEntries(
    ledger.tables().map((table) => [table, [...ledger.rowsOf(table)].map((row) => ({ ...row }))]),
  )
}
