import { expect, test } from 'vitest'
import type { auditAvailability } from '../../src/trust/availability-audit.ts'
import { type Line, withTimedLake } from '../helpers/lakes/timed-lake.ts'
import { endOf, startAfter } from '../helpers/time-twin.ts'
import { withViews } from '../helpers/views.ts'

type AuditReport = Awaited<ReturnType<typeof auditAvailability>>

const sopr = 'indicators/sopr_adjusted_pit'
const day = 86_400
const start = Date.UTC(2024, 1, 1) / 1000
/** A year of days: their number decides how much a percent is. */
const days = Array.from({ length: 200 }, (_, i) => startAfter(start, '24h', i))

/**
 * Days that say when they were computed: so many come `lag` seconds after their end, the others a minute after the
 * rule.
 */
function told(asset: string, many: number, lag: number): Line {
  const points = days.map((t, i) => {
    const after = i % 15 === 0 && i / 15 < many ? lag : 1860
    return { t, v: i, shown: endOf(t, '24h') + after, computed: endOf(t, '24h') + after }
  })
  return { path: sopr, asset, interval: '24h', points }
}

/** Days of which the rule alone says when they were known. */
const mute: Line = { path: sopr, asset: 'MUTE', interval: '24h', points: days.map((t, i) => ({ t, v: i, shown: t })) }

const config = (availability: string): string => `metrics:
  metadata: false
  concurrency: 1
  requests_per_minute: 1000000
${availability}select: [{ assets: [TOLD, MUTE], paths: [${sopr}], since: 2024-02-01 }]
`

test.each([
  ['ten of two hundred are later than five minutes', 10, 0, 'imprecise', '45m'],
  ['eleven are', 11, 4, 'contradicted', '45m'],
] as const)('%s: the verdict, what status says, and the pasted proposal', async (_, many, code, verdict, lag) =>
  withTimedLake(config(''), { lines: [told('TOLD', many, 1800 + 300), mute] }, async (lake) => {
    const now = start + 203 * day
    await lake.fetchAt(now)
    const audited = async (): Promise<{ code: number; report: AuditReport }> => {
      const { code, out } = await lake.run(['audit', 'availability', '--json'], now)
      return { code, report: JSON.parse(out) as AuditReport }
    }
    const first = await audited()
    expect(first.code).toBe(code)
    expect(first.report).toMatchObject({
      rows: [{ metric: sopr, interval: '24h', verdict, late: 200, soon: 200 - many, ruled: 200, proposed_lag: lag }],
      contradicted: verdict === 'contradicted' ? 1 : 0,
      imprecise: verdict === 'imprecise' ? 1 : 0,
      next: 'put the proposed block into pitlake.yaml, then run pitlake redate',
    })
    const words = await lake.run(['audit', 'availability'], now)
    expect(words.code).toBe(code)
    expect(words.out).toMatch(
      verdict === 'imprecise' ? /^1 rule: 0 contradicted, 1 imprecise/ : /^1 rule: 1 contradicted, 0/,
    )
    expect(words.out).toMatch(new RegExp(`${verdict} +${sopr.replace('/', '/')} +24h +200 +200`))
    expect(words.out).toContain(`"${sopr}": { 24h: { lag: ${lag} } }`)
    const advice = `${words.out}${words.message}`
    expect(advice).toContain('put the proposed block into pitlake.yaml, then run pitlake redate')

    const status = async (...flags: string[]): Promise<string> => (await lake.run(['status', ...flags], now)).out
    const said = async (): Promise<unknown> => (JSON.parse(await status('--json')) as { rules: unknown }).rules
    const early = verdict === 'imprecise' ? 200 : 0
    expect(await said()).toEqual({
      contradicted: verdict === 'contradicted' ? 1 : 0,
      imprecise: verdict === 'imprecise' ? 1 : 0,
      imprecise_points: early,
    })
    expect((await status()).replaceAll(/\s+/g, ' ')).toContain(
      verdict === 'imprecise'
        ? '- 1 availability rule is imprecise: 200 points without computed_at may count as known minutes too early: pitlake audit availability'
        : '- 1 availability rule is contradicted by arrivals: pitlake audit availability',
    )

    // Pasted as it stands, under the key that is there already.
    lake.configure(config((first.report.proposal ?? '').replace('metrics:\n', '')))
    expect((await lake.run(['redate'], now)).code).toBe(0)
    const second = await audited()
    expect(second.code).toBe(0)
    expect(second.report).toMatchObject({
      rows: [{ verdict: 'kept', late: 0 }],
      contradicted: 0,
      imprecise: 0,
      next: null,
    })
    expect(await said()).toEqual({ contradicted: 0, imprecise: 0, imprecise_points: 0 })
    expect(await status()).not.toMatch(/imprecise|contradicted/)
    await lake.views()
    await withViews(lake.root, async (engine) => {
      const rows = await engine.rows(
        `SELECT asset, basis, min(epoch(available_at) - epoch(t))::INT AS least, max(epoch(available_at) - epoch(t))::INT AS most FROM points GROUP BY ALL ORDER BY asset`,
      )
      expect(rows).toEqual([
        { asset: 'MUTE', basis: 'override', least: day + 2700, most: day + 2700 },
        { asset: 'TOLD', basis: 'provider', least: day + 1860, most: day + 2100 },
      ])
    })
  }),
)
