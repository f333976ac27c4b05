import { expect, test } from 'vitest'
import { lookAtAlarms } from '../helpers/alarms.ts'
import { inWindow } from '../helpers/days.ts'
import { withProvider } from '../helpers/provider.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const selection = { assets: ['BTC'], paths: ['blockchain/block_count_pit'], intervals: ['24h'], since: start }
const key = 'the provider refused the key'
const quota = "the provider's quota was spent"
const failed = 'the provider gave no usable answer, most often '

/** What a provider does one morning, the sentence of `--check`, and what its advice is. */
const mornings: readonly (readonly [string, unknown, string, RegExp])[] = [
  ['refuses the key', { status: 401, text: '{}' }, key, /PITLAKE_METRICS_KEY/],
  [
    'has a spent quota',
    { status: 429, text: '{}', headers: { 'x-quota-daily-remaining': '0' } },
    quota,
    /quota is renewed/,
  ],
  ['closes the connection', { closed: true }, failed, /next pitlake fetch/],
  [
    'cuts its answers',
    { status: 200, text: '[{"t":', headers: { 'content-length': '500', connection: 'close' } },
    failed,
    /next pitlake fetch/,
  ],
  ['answers with a page', { status: 200, text: '<html>Sign in</html>' }, failed, /next pitlake fetch/],
  ['answers 500', { status: 500, text: 'Oops' }, failed, /next pitlake fetch/],
]

test.each(mornings)(
  'after a provider that %s, every interface names it with an advice',
  async (_, answer, text, advice) =>
    withProvider(start + 10 * day + 6.25 * 3600, async (own) => {
      let isWell = true
      own.answer((path, query) => {
        if (!isWell) return answer
        if (path === 'assets') return { status: 404 }
        const points = Array.from({ length: Math.floor((own.clock.now - start) / day) }, (__, n) => n)
        return inWindow(
          query,
          points.map((n) => ({ t: start + n * day, v: n })),
        )
      })
      await own.fetch(selection)
      own.clock.now += 60
      expect(await lookAtAlarms(own)).toMatchObject({ code: 0, ok: true, told: [] })
      isWell = false
      own.clock.now += day
      await own.fetch(selection)
      const { code, ok, lines, told } = await lookAtAlarms(own)
      expect([code, ok]).toEqual([6, false])
      expect(lines.join('\n')).toContain(text)
      expect(lines.join('\n')).toMatch(advice)
      expect(lines.join('\n')).not.toMatch(/no fetch requested|; pitlake fetch$/m)
      expect(told).toHaveLength(1)
      isWell = true
      own.clock.now += day
      await own.fetch(selection)
      expect(await lookAtAlarms(own)).toMatchObject({ code: 0, ok: true, told: [] })
    }),
)
