// @module-tag full
import { expect, test } from 'vitest'
import { lookAtAlarms } from '../helpers/alarms.ts'
import { inWindow } from '../helpers/days.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { rounds } from '../helpers/tiers.ts'

const day = 86_400
const hour = 3600
const start = Date.UTC(2026, 0, 5) / 1000
const count = 'blockchain/block_count_pit'
const selection = { assets: ['BTC', 'ETH'], paths: [count], intervals: ['1h', '24h'], since: start }
/** Days of the simulation; the outages are at its end. */
const days = rounds('PITLAKE_ALARM_DAYS', 30, 30)
const looks = rounds('PITLAKE_ALARM_LOOKS', 4, 4)

/** What happens at the run of a day: nobody answers, the key is refused, the quota is spent. */
const outages = new Map([
  [days - 16, { kind: 'provider', answer: null }],
  [days - 13, { kind: 'key', answer: { status: 401, text: '{}' } }],
  [days - 10, { kind: 'quota', answer: { status: 429, text: '{}', headers: { 'x-quota-daily-remaining': '0' } } }],
])
const silentFrom = days - 7

/** A provider of points by the day and by the hour, but for what an outage answers; nothing of ETH after `silent`. */
function answerDaily(own: OwnProvider, state: { silent: number; answer: unknown }): void {
  own.answer((path, query) => {
    if (state.answer !== null) return state.answer
    if (path === 'assets') return { status: 404 }
    const length = query.get('i') === '1h' ? hour : day
    const until = Math.min(own.clock.now, query.get('a') === 'ETH' ? state.silent : Infinity)
    const points = Math.floor((until - start) / length)
    return inWindow(
      query,
      Array.from({ length: points }, (_, n) => ({ t: start + n * length, v: n })),
    )
  })
}

test(
  'a lake fetched at 06:15 alarms on no healthy day, and once for each outage, in time and with its reason',
  async () =>
    withProvider(start + 10 * day + 6.25 * hour, async (own) => {
      const state = { silent: Infinity, answer: null as unknown }
      answerDaily(own, state)
      const reported: string[] = []
      for (let n = 0; n < days; n++) {
        const outage = outages.get(n)
        state.answer = outage?.answer ?? null
        if (n === silentFrom) state.silent = own.clock.now
        await (outage?.kind === 'provider' ? own.away(async () => await own.fetch(selection)) : own.fetch(selection))
        const morning = own.clock.now
        for (let look = 0; look < looks; look++) {
          own.clock.now = Math.floor(morning + 60 + (look * (day - 120)) / (looks - 1))
          const { code, lines, ok, kinds, told } = await lookAtAlarms(own)
          reported.push(...told.map((name) => `${n} ${name}`))
          expect([n, look, ok, kinds.length > 0], lines.join('\n')).toEqual([n, look, code === 0, code !== 0])
          if (outage) expect([n, look, code, kinds]).toEqual([n, look, 6, expect.arrayContaining([outage.kind])])
          else if (n < silentFrom) expect([n, look, code, lines]).toEqual([n, look, 0, lines])
        }
        own.clock.now = morning + day
      }
      expect(reported.filter((line) => line.includes('last run'))).toEqual(
        [...outages].map(([n, { kind }]) => `${n} last run: ${kind}`),
      )
      const silent = reported.filter((line) => !line.includes('last run'))
      expect(silent.map((line) => line.replace(/^\d+ /, '')).toSorted()).toEqual([`${count} 1h`, `${count} 24h`])
      // In time: a daily point is tolerated for three days after it is due, an hourly one for two.
      for (const line of silent) expect(Number(/^\d+/.exec(line)?.[0]) - silentFrom).toBeLessThanOrEqual(4)
      expect((await lookAtAlarms(own)).lines.join('\n')).toMatch(/no new point for longer than tolerated/)
    }),
  900_000,
)

test.each([
  ['no alarm within the schedule that the configuration names', 3 * day, 0],
  ['an alarm once it is exceeded', 12 * hour, 6],
])('a lake without a rhythm of its own gives %s', async (_, schedule, code) =>
  withProvider(start + 10 * day + 6.25 * hour, async (own) => {
    answerDaily(own, { silent: Infinity, answer: null })
    await own.fetch(selection)
    own.clock.now += 60
    expect((await lookAtAlarms(own, schedule)).code).toBe(0)
    own.clock.now += 2 * day
    expect(await lookAtAlarms(own, schedule)).toMatchObject({ code, ok: code === 0 })
  }),
)
