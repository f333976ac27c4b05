import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { backfillAfter, type Rule } from '../../src/catalog/availability.ts'
import type { Catalogue } from '../../src/catalog/catalogue.ts'
import { parseConfig } from '../../src/catalog/config.ts'
import { arrivalsOf, auditAvailability, judgeRule, proposalOf } from '../../src/trust/availability-audit.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { applySettings, resolveSettings } from '../../src/catalog/settings.ts'
import { end, type Interval, step } from '../../src/base/time.ts'
import { withRig } from '../helpers/fetching.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { scratch } from '../helpers/scratch.ts'
import { partOf } from '../helpers/part-of.ts'

type AuditedRule = ReturnType<typeof judgeRule>

const rules: readonly Rule[] = [
  { kind: 'lag', seconds: 600, basis: 'assumed', quote: null, reason: 'test', until: null, trust: 'provider' },
]
const folder = scratch('audit')
let engine: Engine

beforeAll(async () => (engine = await Engine.open()))

afterAll(() => {
  engine.close()
})

interface Point {
  readonly t: string
  readonly computed?: string
  readonly observed?: string
  readonly rule?: string
  readonly stored?: string
}

let files = 0

/** Daily points of one series; `observed` makes one that was seen to be late, `rule` one that was backfilled. */
async function audited(points: readonly Point[], interval: Interval = '24h'): Promise<AuditedRule> {
  const file = join(folder, `${++files}.parquet`)
  const rows = points.map(({ t, computed, observed, rule, stored }) => {
    const available = computed ?? observed ?? t
    const basis = observed === undefined ? (computed === undefined ? 'assumed' : 'provider') : 'observed'
    const stamps = [t, available, rule ?? available, observed ?? stored ?? '2026-01-01 00:00:00', computed]
    return `(${[...stamps.map((stamp) => (stamp === undefined ? 'NULL' : quote(`${stamp}+00`))), quote(basis)].join(', ')})`
  })
  const instants = ['t', 'available_at', 'available_rule_at', 'observed_at', 'computed_at']
  const typed = instants.map((name) => `CAST(${name} AS TIMESTAMPTZ) AS ${name}`)
  await engine.run(`COPY (SELECT 'm' AS metric, 'BTC' AS asset, NULL::VARCHAR AS currency, NULL::VARCHAR AS exchange,
    NULL::VARCHAR AS network, NULL::VARCHAR AS params, ${typed.join(', ')}, basis
    FROM (VALUES ${rows.join(', ')}) AS told (${instants.join(', ')}, basis)) TO ${quote(file)} (FORMAT parquet)`)
  const arrivals = (await arrivalsOf(engine, `read_parquet(${quote(file)})`, interval, rules)).get('m')
  if (!arrivals) throw new Error('no arrivals')
  return judgeRule('m', interval, rules, arrivals)
}

/** Points of 100 days, each computed so many seconds after its day. */
function days(lag: (i: number) => number, length = 100): Point[] {
  return Array.from({ length }, (_, i) => {
    const t = Date.UTC(2024, 0, 1 + i)
    const text = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
    return { t: text(t), computed: text(t + 86_400_000 + lag(i) * 1000) }
  })
}

test('a lake of weeks and months: no rule is doubted, a pasted block leaves the other intervals as they were', async () => {
  const now = Date.UTC(2026, 2, 10, 12) / 1000
  await withRig(now, async (rig) => {
    const metric = 'addresses/active_count_pit'
    await rig.fetch({ assets: ['BTC', 'ETH'], paths: [metric], intervals: ['24h', '1w', '1month'] })
    using ledger = await Ledger.openToRead(rig.root)
    const input = { catalogue, paths: [metric], overrides: {}, now }
    const held = await auditAvailability(ledger, input)
    expect(held).toMatchObject({ contradicted: 0, proposal: null, changes: [] })
    expect(held.rows.map(({ interval, backfilled }) => [interval, backfilled > 0])).toEqual(
      expect.arrayContaining([
        ['1month', true],
        ['1w', true],
      ]),
    )
    const broken = applied(catalogue, `metrics: { availability: { ${metric}: { 1w: { lag: 1m } } } }`)
    const report = await auditAvailability(ledger, { ...input, catalogue: broken })
    expect(report.changes).toEqual([
      {
        metric,
        interval: '1w',
        lag: expect.stringMatching(/m$/),
        redated: 0,
        newest_before: '2026-03-02T00:00Z',
        newest_after: '2026-03-02T00:00Z',
      },
    ])
    const rules = (of: Catalogue, interval: Interval) => of.endpoints.get(metric)?.rules[interval]
    const pasted = applied(catalogue, report.proposal ?? '')
    for (const interval of ['10m', '1h', '24h', '1month'] as const)
      expect(rules(pasted, interval)).toEqual(rules(catalogue, interval))
    expect(rules(pasted, '1w')?.[0]).toMatchObject({ basis: 'override' })
    expect((await auditAvailability(ledger, { ...input, catalogue: pasted })).contradicted).toBe(0)
  })
})

/** The catalogue as a configuration changes it. */
function applied(own: Catalogue, yaml: string): Catalogue {
  writeFileSync(join(folder, 'pitlake.yaml'), yaml)
  return applySettings(own, resolveSettings({ flags: {}, env: {}, cwd: folder }))
}

test('lag bars count an arrival at the rule as in time and a second later as late, each metric apart', async () => {
  const at = (metric: string, i: number, lag: number): string => {
    const close = Date.UTC(2024, 0, 2 + i) / 1000
    const stamp = (seconds: number): string => `make_timestamptz(${seconds * 1_000_000})`
    return `SELECT ${quote(metric)} AS metric, 'BTC' AS asset, NULL AS currency, NULL AS exchange, NULL AS network,
      NULL AS params, ${stamp(close - 86_400)} AS t, ${stamp(close + lag)} AS available_at, ${stamp(close + lag)} AS available_rule_at,
      now() AS observed_at, ${stamp(close + lag)} AS computed_at, 'provider' AS basis`
  }
  const start = [600, 601, 60, 6000, 6]
  const year = 300 * 86_400
  const rows = [...start.map((lag, i) => at('steady', i, lag)), ...start.map((_, i) => at('launched', i, year))]
  const found = await arrivalsOf(engine, `(${rows.join(' UNION ALL ')})`, '24h', rules)
  const bars = new Map(found.get('steady')?.bars.map(({ bar, points }) => [bar, points]))
  expect(bars).toEqual(
    new Map([
      [-25, 1],
      [-13, 1],
      [-1, 1],
      [0, 1],
      [11, 1],
    ]),
  )
  expect(found.get('steady')).toMatchObject({ points: 5, backfilled: 0, late: 2 })
  expect(found.get('launched')).toMatchObject({ points: 5, backfilled: 5, bars: [] })
})

describe('availability rules against arrivals', () => {
  test('TIME 9: a point computed after the rule disproves it, with the point as evidence', async () => {
    const row = await audited([
      { t: '2024-03-01 00:00:00', computed: '2024-03-02 00:20:00' },
      { t: '2024-03-02 00:00:00', computed: '2024-03-03 00:05:00' },
    ])
    expect(row).toMatchObject({ verdict: 'contradicted', late: 1, observations: 2, max: 1200, proposed_lag: '20m' })
    expect(row.worst).toMatchObject({ asset: 'BTC', arrived_at: '2024-03-02T00:20:00.000000Z' })
  })

  test('one late point in a hundred is an exception, seven contradict the rule', async () => {
    expect((await audited(days((i) => (i === 50 ? 7200 : 300)))).verdict).toBe('kept')
    const row = await audited(days((i) => (i % 16 === 0 ? 7200 : 300)))
    expect(row).toMatchObject({ verdict: 'contradicted', late: 7, soon: 0, proposed_lag: '2h' })
  })

  test('a rule is judged to the microsecond and called conservative if it is far too long', async () => {
    expect((await audited(days(() => 600))).verdict).toBe('kept')
    expect((await audited(days(() => 601))).verdict).toBe('imprecise')
    expect((await audited(days(() => 90))).verdict).toBe('conservative')
  })

  test('imprecise: 95 in a hundred come less than five minutes after the rule, to the point and to the second', async () => {
    const late = async (lag: number): Promise<AuditedRule> => await audited(days(() => 600 + lag))
    expect(await late(299)).toMatchObject({ verdict: 'imprecise', late: 100, soon: 100, proposed_lag: '15m' })
    expect(await late(300)).toMatchObject({ verdict: 'contradicted', late: 100, soon: 0, proposed_lag: '15m' })
    expect(await late(301)).toMatchObject({ verdict: 'contradicted', late: 100, soon: 0, proposed_lag: '20m' })
    const share = async (later: number, others: number): Promise<AuditedRule> =>
      await audited(days((i) => (i % 19 === 0 && i / 19 < later ? 600 + 300 : others), 1000))
    expect(await share(50, 600)).toMatchObject({ verdict: 'imprecise', late: 50, soon: 0 })
    expect(await share(50, 601)).toMatchObject({ verdict: 'imprecise', late: 1000, soon: 950 })
    expect(await share(51, 600)).toMatchObject({ verdict: 'contradicted', late: 51, soon: 0 })
    expect(await share(51, 601)).toMatchObject({ verdict: 'contradicted', late: 1000, soon: 949 })
    expect(await share(20, 600)).toMatchObject({ verdict: 'kept', late: 20, proposed_lag: null })
    expect(await share(21, 600)).toMatchObject({ verdict: 'imprecise', late: 21, proposed_lag: '15m' })
  })

  test('a rule that a few late points contradict is only imprecise if more points arrived in time unseen', async () => {
    const first = '2024-01-02 00:00:00'
    const quiet = days(() => 0).map(({ t }, i) => ({ t, stored: i === 0 ? first : '2024-05-01 00:00:00' }))
    const seen = (many: number) =>
      quiet.map((point, i) => (i < 50 || i >= 50 + many ? point : { t: point.t, observed: text(at(point.t) + 90_000) }))
    expect(await audited(seen(5))).toMatchObject({ verdict: 'imprecise', observations: 5, watched: 95, soon: 0 })
    expect(await audited(seen(6))).toMatchObject({ verdict: 'contradicted', observations: 6, watched: 94, soon: 0 })
  })

  test('history that was computed before the metric began does not count, nor its last days', async () => {
    const launch = '2024-03-01 00:00:00'
    const old = days(() => 0).slice(0, 60)
    const row = await audited([
      ...old.map(({ t }) => ({ t, computed: launch, ...(t < '2024-01-20' ? { rule: '2024-02-01 00:00:00' } : {}) })),
      ...days(() => 300).slice(60),
    ])
    expect(row).toMatchObject({ verdict: 'kept', backfilled: 60, observations: 40, late: 0 })
  })

  test('without computed_at an observed late arrival contradicts the rule, and missing ones confirm nothing', async () => {
    const quiet = [{ t: '2024-03-01 00:00:00' }, { t: '2024-03-02 00:00:00' }]
    expect((await audited(quiet)).verdict).toBe('unconfirmed')
    const row = await audited([...quiet, { t: '2024-03-03 00:00:00', observed: '2024-03-05 00:00:00' }])
    expect(row).toMatchObject({ verdict: 'contradicted', observations: 1, late: 1 })
  })

  test('history from before a launch is left out at every interval, however few intervals it goes back', async () => {
    for (const [interval, before] of [
      ['1month', 9],
      ['1w', 20],
      ['24h', 25],
      ['1h', 40],
    ] as const) {
      const launch = Date.UTC(2024, 0, 1) / 1000
      // Computed over an hour in no order, then a point soon after the end of each interval.
      const points = Array.from({ length: before + 80 }, (_, i) => {
        const t = step(launch, interval, i - before)
        const close = end(t, interval)
        return { t: text(t), computed: text(close <= launch ? launch + ((i * 1237) % 3600) : close + 300) }
      })
      const row = await audited(points, interval)
      expect(row).toMatchObject({ verdict: 'kept', late: 0, max: 300, proposed_lag: null })
      expect(row.observations).toBeGreaterThanOrEqual(79)
      const late = points.map((point, i) =>
        i < before ? point : { ...point, computed: text(at(point.computed) + 1800) },
      )
      expect(await audited(late, interval)).toMatchObject({ verdict: 'contradicted', max: 2100, proposed_lag: '45m' })
    }
  })

  test('history that a provider adds later takes no evidence away', async () => {
    const added = days(() => 0).slice(0, 40)
    const live = days(() => 1500).slice(40)
    const row = await audited([...added.map(({ t }) => ({ t, computed: '2025-06-01 00:00:00' })), ...live])
    expect(row).toMatchObject({ verdict: 'contradicted', late: 59, observations: 59, proposed_lag: '30m' })
  })

  test('a launch that took days, and older history added years later, leave the evidence of the points between', async () => {
    const launch = at('2024-01-01 00:00:00')
    const day = 86_400
    const row = await audited(
      Array.from({ length: 160 }, (_, i) => {
        const t = launch + (i - 60) * day
        // Thirty days added in 2025, thirty computed at launch until January 5, and what became due meanwhile with
        // them.
        const told = i < 30 ? launch + 500 * day : i < 60 ? launch + (i - 30) * 0.15 * day : t + day + 300
        return { t: text(t), computed: text(i === 60 || i === 61 ? launch + 3.5 * day + i : told) }
      }),
    )
    expect(row).toMatchObject({ verdict: 'kept', late: 0, max: 300, backfilled: 64, observations: 96 })
  })

  test('points that arrived in time unseen outweigh one observed late point', async () => {
    const first = '2024-01-03 00:00:00'
    const quiet = days(() => 0).map(({ t }, i) => ({ t, stored: i < 2 ? first : '2024-05-01 00:00:00' }))
    const seen = (many: number) =>
      quiet.map((point, i) => (i < 50 || i >= 50 + many ? point : { t: point.t, observed: text(at(point.t) + 90_000) }))
    expect(await audited(seen(1))).toMatchObject({ verdict: 'kept', observations: 1, late: 1, proposed_lag: null })
    expect(await audited(seen(8))).toMatchObject({ verdict: 'contradicted', late: 8, watched: 91, proposed_lag: '1h' })
  })

  test('a point that is seen to come beyond the backfill threshold is history, one at the threshold is late', async () => {
    const first = '2024-01-03 00:00:00'
    const seen = (after: number) =>
      days(() => 0).map(({ t }, i) =>
        i === 50 ? { t, observed: text(at(t) + 86_400 + after) } : { t, stored: i < 2 ? first : '2024-05-01 00:00:00' },
      )
    const threshold = backfillAfter('24h')
    expect(await audited(seen(threshold))).toMatchObject({ observations: 1, late: 1, backfilled: 0 })
    expect(await audited(seen(threshold + 1))).toMatchObject({ observations: 0, late: 0, backfilled: 1 })
  })

  test('a top-up long after the rule shows that a point was late, and proposes nothing', async () => {
    const seen = (after: number) => days(() => 0).map(({ t }) => ({ t, observed: text(at(t) + 86_400 + after) }))
    expect(await audited(seen(5 * 86_400))).toMatchObject({
      verdict: 'contradicted',
      backfilled: 6,
      late: 94,
      proposed_lag: null,
    })
    // An interval behind the rule's instant is no longer than it may be to tell how late.
    expect(await audited(seen(87_000))).toMatchObject({ verdict: 'contradicted', proposed_lag: expect.any(String) })
    expect(await audited(seen(87_001))).toMatchObject({ verdict: 'contradicted', proposed_lag: null })
  })

  test('a proposal names its intervals, keeps what the row says already, and reads as configuration', () => {
    const row = (metric: string, interval: Interval, lag: string | null) =>
      partOf<AuditedRule>({ metric, interval, proposed_lag: lag })
    const rows = [row('a/b', '1w', '2h'), row('c', '24h', '3h'), row('a/b', '10m', '20m'), row('d', '24h', null)]
    const yaml =
      'metrics: { availability: { a/b: { lag: 7m, until: 2024-03-01, 1w: { lag: 5m }, 1h: { daily_at: "10:15", days: 2 } } } }'
    const held = parseConfig('x', yaml).config.metrics?.availability ?? {}
    const text = proposalOf(rows, held) ?? ''
    expect(text.split('\n')[2]).toMatch(/^ {4}"a\/b": \{.*10m: \{ lag: 20m \}, 1w: \{ lag: 2h \} \}$/)
    expect(parseConfig('y', text).config.metrics?.availability).toEqual({
      'a/b': {
        lag: 420,
        until: at('2024-03-01 00:00:00'),
        '10m': { lag: 1200 },
        '1h': { daily_at: '10:15', days: 2 },
        '1w': { lag: 7200 },
      },
      c: { '24h': { lag: 10_800 } },
    })
    expect(proposalOf([row('d', '24h', null)], {})).toBeNull()
  })
})

const at = (stamp: string): number => Date.parse(`${stamp.replace(' ', 'T')}Z`) / 1000
const text = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' ')
