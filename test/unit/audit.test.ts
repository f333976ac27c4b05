import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Rule } from '../../src/catalog/availability.ts'
import { judge } from '../../src/jobs/audit.ts'
import { arrivalsOf } from '../../src/lake/arrivals.ts'
import { Engine, quote } from '../../src/lake/engine.ts'

const rules: readonly Rule[] = [
  { kind: 'lag', seconds: 600, basis: 'assumed', quote: null, reason: 'test', until: null, trust: 'provider' },
]
const folder = mkdtempSync(join(tmpdir(), 'pitlake-audit-'))
let engine: Engine

beforeAll(async () => {
  engine = await Engine.open()
})

afterAll(() => {
  engine.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Point {
  readonly t: string
  readonly computed?: string
  readonly observed?: string
  readonly rule?: string
}

let files = 0

/** Daily points of one series; `observed` makes one that was seen to be late, `rule` one that was backfilled. */
async function audited(points: readonly Point[]): Promise<ReturnType<typeof judge>> {
  const file = join(folder, `${++files}.parquet`)
  const rows = points.map(({ t, computed, observed, rule }) => {
    const available = computed ?? observed ?? t
    const stamp = (text: string | undefined): string =>
      text === undefined ? 'CAST(NULL AS TIMESTAMPTZ)' : `TIMESTAMPTZ ${quote(`${text}+00`)}`
    return `SELECT 'BTC' AS asset, NULL::VARCHAR AS currency, NULL::VARCHAR AS exchange, NULL::VARCHAR AS network,
      NULL::VARCHAR AS params, ${stamp(t)} AS t, ${stamp(available)} AS available_at, ${stamp(rule ?? available)} AS available_rule_at,
      ${stamp(observed ?? '2026-01-01 00:00:00')} AS observed_at, ${stamp(computed)} AS computed_at,
      ${quote(observed === undefined ? (computed === undefined ? 'assumed' : 'provider') : 'observed')} AS basis`
  })
  await engine.run(`COPY (${rows.join(' UNION ALL ')}) TO ${quote(file)} (FORMAT parquet)`)
  return judge('m', '24h', rules, await arrivalsOf(engine, [file], '24h', rules))
}

/** Points of 100 days, each computed so many seconds after its day. */
function days(lag: (i: number) => number): Point[] {
  return Array.from({ length: 100 }, (_, i) => {
    const t = Date.UTC(2024, 0, 1 + i)
    const text = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
    return { t: text(t), computed: text(t + 86_400_000 + lag(i) * 1000) }
  })
}

describe('availability rules against arrivals', () => {
  test('TIME 9: a point computed after the rule disproves it, with the point as evidence', async () => {
    const row = await audited([
      { t: '2024-03-01 00:00:00', computed: '2024-03-02 00:20:00' },
      { t: '2024-03-02 00:00:00', computed: '2024-03-03 00:05:00' },
    ])
    expect(row).toMatchObject({ verdict: 'disproved', late: 1, observations: 2, max: 1200, proposed_lag: '20m' })
    expect(row.worst).toMatchObject({ asset: 'BTC', arrived_at: '2024-03-02T00:20:00.000000Z' })
  })

  test('one late point in a hundred is a late point, three disprove the rule', async () => {
    expect((await audited(days((i) => (i === 50 ? 7200 : 300)))).verdict).toBe('kept')
    const row = await audited(days((i) => (i % 30 === 0 ? 7200 : 300)))
    expect(row).toMatchObject({ verdict: 'disproved', late: 4, proposed_lag: '2h' })
  })

  test('a rule is kept to the microsecond and called conservative when it is far too long', async () => {
    expect((await audited(days(() => 600))).verdict).toBe('kept')
    expect((await audited(days(() => 601))).verdict).toBe('disproved')
    expect((await audited(days(() => 90))).verdict).toBe('conservative')
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

  test('without computed_at a late arrival that was seen disproves, and silence proves nothing', async () => {
    const quiet = [{ t: '2024-03-01 00:00:00' }, { t: '2024-03-02 00:00:00' }]
    expect((await audited(quiet)).verdict).toBe('unproven')
    const row = await audited([...quiet, { t: '2024-03-03 00:00:00', observed: '2024-03-05 00:00:00' }])
    expect(row).toMatchObject({ verdict: 'disproved', observations: 1, late: 1 })
  })
})
