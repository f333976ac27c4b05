import type { StatusPage } from '../../src/interfaces/report/status-page.ts'
import type { LakeStanding } from '../../src/interfaces/report/status.ts'

type EndpointFacts = StatusPage['endpoints'][number]

const day = 86_400

/** A text that would run as a script wherever it were inserted without escaping. */
export const hostile = `"><script>window.hurt = true</script><img src=x onerror="window.hurt = true">&'`

/** The instant of the page of the tests: 2024-06-05T12:00Z. */
export const madeAt = Date.UTC(2024, 5, 5, 12) / 1000

/** A standing in which all is well, with changes. */
export function standing(changes: Partial<LakeStanding> = {}): LakeStanding {
  return {
    provider: 'sandbox:7',
    providers: { metrics: 'sandbox:7', registry: null },
    synthetic: true,
    mirror_of: null,
    version: 12,
    committed_at: '2024-06-05T11:00:00.000Z',
    series: 3,
    points: 1200,
    files: 4,
    bytes: 123_456,
    windows: { covered: 3, empty: 1, unsupported: 1, failed: 0, not_requested: 0 },
    holes: { longest: null, later: 0, begins: null },
    not_requested: { series: 0, windows: 0, since: null },
    unselected: 0,
    gaps: 2,
    pending: 1,
    violations: 0,
    incidents: 0,
    acknowledged: 0,
    reverted: 0,
    clock_findings: 0,
    schema_changes: 0,
    newest: '2024-06-04T00:00:00Z',
    coverage: { due: 1210, held: 1200, verified: 600, share: 1200 / 1210, verified_share: 0.5 },
    freshness: { fresh: 2, pending: 1, behind: 0, stopped: 0, overdue_seconds: 0 },
    refused: { series: 0, windows: 0, since: null, words: null, withdrawn: 0, unacknowledged: 0 },
    oldest: { violations: null, incidents: null, findings: null, withdrawn: null, failed: null, gaps: null },
    published: [],
    behind: [],
    verified: { windows: 3, differing: 0, refused: 0, last_at: '2024-06-05T10:00:00.000Z' },
    requests: {
      total: 30,
      credits: 45,
      day: 10,
      day_credits: 15,
      credits_today: 9,
      busiest_minute: 10,
      per_minute: 600,
      by_outcome: [{ api: 'metrics', outcome: 'body', requests: 30 }],
    },
    registry: {
      first_snapshot: '2024-05-01',
      last_snapshot: '2024-06-01',
      epoch: 1,
      feed_at: '2024-06-05T11:30:00.000Z',
      records: { products: 41, issuers: 7 },
      schema_changes: 0,
      findings: 0,
      findings_acknowledged: 0,
    },
    rules: { contradicted: 0, imprecise: 0, imprecise_points: 0 },
    stamps: 0,
    files_damaged: 0,
    observed_again: { months: 0, points: 0, waiting: 0 },
    running: [],
    last_run: null,
    last_ends: { fetch: null, held_back: null },
    failed_most: null,
    lost_user_data: [],
    user_data: [],
    unmapped: { series: 0, words: null, remedy: null },
    trust: 'yes',
    reasons: [],
    ...changes,
  }
}

/** An endpoint of thirty months, the last one short of a point. */
export function endpoint(metric: string, changes: Partial<EndpointFacts> = {}): EndpointFacts {
  const due = Array.from({ length: 30 }, (_, month) => (month < 6 ? 0 : 30))
  return {
    metric,
    series: 1,
    due,
    held: due.map((count, month) => (month === 29 ? count - 1 : count)),
    failed: due.map(() => 0),
    fresh: { fresh: 1, pending: 0, behind: 0, stopped: 0 },
    overdue: 0,
    newest: madeAt - 1.5 * day,
    lag: { points: 719, p05: 130, p50: 360, p95: 600, p99: 900, max: 4000, rule: 1800, basis: 'assumed', late: 2 },
    ...changes,
  }
}

const stamps: StatusPage['stamps'] = [
  {
    id: 'abcdef0123456789',
    file: hostile,
    version: 12,
    at: madeAt - day,
    rows: 9,
    verdict: { kind: 'stress', verdict: 'falls' },
  },
  {
    id: 'fedcba9876543210',
    file: 'r.parquet',
    version: 11,
    at: madeAt - day,
    rows: 1000,
    verdict: { kind: 'lookahead', verdict: 'proved' },
  },
  { id: '0123456789abcdef', file: 'old.parquet', version: 3, at: madeAt - day, rows: null, verdict: null },
]

/** A page with everything on it; hostile text in every place that comes from outside. */
export function page(changes: Partial<StatusPage> = {}): StatusPage {
  const one = endpoint('supply/current_pit')
  const failed = one.due.map((count, month) => (month === 12 ? count : 0))
  return {
    madeAt,
    program: 'pitlake 0.1.0',
    standing: standing({
      trust: 'look',
      violations: 2,
      acknowledged: 0,
      provider: `https://example.test/${hostile}`,
      reasons: [
        {
          kind: 'violations',
          count: 2,
          since: null,
          level: 'look',
          word: 'integrity',
          text: `2 stored values differ ${hostile}`,
          next: `pitlake sql '${hostile}'`,
        },
      ],
    }),
    firstMonth: (2022 - 1970) * 12,
    months: 30,
    endpoints: [
      one,
      endpoint('supply/other_pit', { failed, held: one.held.map((n, i) => (i === 12 || i === 13 ? 0 : n)) }),
      endpoint(`market/${hostile}`, {
        fresh: { fresh: 0, pending: 1, behind: 2, stopped: 1 },
        overdue: 3 * 3600,
        lag: null,
      }),
    ],
    silent: [{ metric: `x/${hostile}`, state: 'unsupported', reason: hostile }],
    lagBins: [
      { from: 0.1, to: 0.12, points: 100 },
      { from: 0.9, to: 1, points: 600 },
      { from: 1, to: 1.2, points: 3 },
    ],
    readable: true,
    universe: [
      { at: madeAt - 30 * day, active: 40, retired: 2, created: 42, newlyRetired: 0, removed: 0 },
      { at: madeAt - 20 * day, active: 41, retired: 2, created: 1, newlyRetired: 0, removed: 0 },
      { at: madeAt - 5 * day, active: 39, retired: 3, created: 0, newlyRetired: 1, removed: 1 },
    ],
    violations: [violation('1.25', '1.5'), violation('{"a":1}', hostile)],
    runs: [
      {
        id: 'r2',
        job: 'fetch',
        command: hostile,
        started_at: '2024-06-05T11:00:00.000Z',
        seconds: 12.5,
        stopped_by: hostile,
        plan: { requests: 20, points: 2000, credits: 30 },
        actual: { requests: 10, points: 900, credits: 15 },
      },
    ],
    versions: [
      { version: 11, committed_at: (madeAt - day) * 1e6, job: 'fetch', points_added: 1000, files_added: 3 },
      { version: 12, committed_at: (madeAt - 3600) * 1e6, job: hostile, points_added: -200, files_added: 0 },
    ],
    stamps,
    stampsAt: 'stamps',
    ...changes,
  }
}

function violation(stored: string, offered: string) {
  const when = { t: Date.UTC(2024, 2, 1) / 1000, acknowledged: null, reverted: false, offeredAt: madeAt - 3600 }
  return {
    metric: 'supply/current_pit',
    series: `BTC ${hostile}`,
    interval: '24h',
    kind: hostile,
    stored,
    offered,
    ...when,
  }
}

/** A page of a lake without anything in it. */
export function emptyPage(): StatusPage {
  const nothing = { due: 0, held: 0, verified: 0, share: null, verified_share: null }
  const none = {
    endpoints: [],
    silent: [],
    lagBins: [],
    universe: [],
    violations: [],
    runs: [],
    versions: [],
    stamps: [],
    months: 1,
  }
  const registry = {
    first_snapshot: null,
    last_snapshot: null,
    epoch: 0,
    feed_at: null,
    records: {},
    schema_changes: 0,
    findings: 0,
    findings_acknowledged: 0,
  }
  const freshness = { fresh: 0, pending: 0, behind: 0, stopped: 0, overdue_seconds: 0 }
  const verified = { windows: 0, differing: 0, refused: 0, last_at: null }
  const changes = { provider: null, synthetic: false, version: 0, committed_at: null, points: 0, newest: null }
  const standingOfNone = standing({
    ...changes,
    coverage: nothing,
    registry,
    freshness,
    verified,
    violations: 0,
    acknowledged: 0,
    gaps: 0,
  })
  return page({ ...none, standing: standingOfNone })
}
