import { expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { alarmsOf, newAlarms, rhythmOf } from '../../src/interfaces/report/freshness.ts'
import { check, readStanding } from '../../src/interfaces/report/status.ts'
import { inWindow } from '../helpers/days.ts'
import { settingsAt } from '../helpers/fetching.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const day = 86_400
const hour = 3600
const start = Date.UTC(2026, 0, 5) / 1000
const count = 'blockchain/block_count_pit'
const assets = ['BTC', 'ETH']
const selection = { assets, paths: [count], intervals: ['1h', '24h'], since: start }
const days = Number(process.env['PITLAKE_FRESHNESS'] ?? 24)

/** What `status --check` says, and what hooks would tell anew. */
async function look(own: OwnProvider): Promise<{ code: number; lines: readonly string[]; told: readonly string[] }> {
  using ledger = await Ledger.openToRead(own.root)
  const settings = settingsAt({ root: own.root, url: own.url, now: () => own.clock.now })
  const input = { settings, catalogue, now: own.clock.now, arrivals: false }
  const { standing } = await readStanding(ledger, input)
  const alarms = await alarmsOf(ledger, { catalogue, check: settings.check, now: own.clock.now })
  const fresh = await newAlarms(own.root, alarms, [])
  const told = fresh.stale.map((one) => ('registry' in one ? 'registry' : `${one.metric} ${one.interval}`))
  return { ...check(standing), told }
}

/** A provider of points by the day and by the hour; of `silent` assets nothing after the instant. */
function answerDaily(own: OwnProvider, silent: ReadonlyMap<string, number>): void {
  own.answer((path, query) => {
    if (path === 'assets') return { status: 404 }
    const length = query.get('i') === '1h' ? hour : day
    const until = Math.min(own.clock.now, silent.get(query.get('a') ?? '') ?? Infinity)
    const points = Array.from({ length: Math.floor((until - start) / length) }, (_, n) => ({
      t: start + n * length,
      v: n,
    }))
    return inWindow(query, points)
  })
}

test(
  'a lake that is fetched each morning pages on no healthy day, and once for each outage, with its reason',
  async () =>
    withProvider(start + 10 * day + 6.25 * hour, async (own) => {
      const silent = new Map<string, number>()
      answerDaily(own, silent)
      const paged: string[] = []
      const outage = days - 10
      for (let n = 0; n < days; n++) {
        const isDown = n === outage
        const fetched = isDown ? own.away(async () => await own.fetch(selection)) : own.fetch(selection)
        await fetched.catch(() => undefined)
        if (n === outage + 3) silent.set('ETH', own.clock.now)
        for (const later of [60, 12 * hour, 18.5 * hour, 23.9 * hour]) {
          const at = own.clock.now
          own.clock.now += later
          const { code, lines, told } = await look(own)
          own.clock.now = at
          for (const name of told) paged.push(`day ${n}: ${name}`)
          if (n < outage || n === outage + 1 || n === outage + 2)
            expect([n, later, code, lines]).toEqual([n, later, 0, lines])
          if (isDown) expect([code, lines.join('\n')]).toEqual([6, expect.stringContaining('could not be reached')])
        }
        own.clock.now += day
      }
      // The outage of a day is over before the next run is late; the silent series is told once for each interval.
      const ofSilent = paged.filter((line) => line.endsWith('1h') || line.endsWith('24h'))
      expect(new Set(ofSilent.map((line) => line.split(': ')[1])).size).toBe(ofSilent.length)
      expect(paged.map((line) => Number(/\d+/.exec(line)?.[0])).every((n) => n > outage)).toBe(true)
      expect((await look(own)).lines.join('\n')).toMatch(/no new point for longer than tolerated/)
    }),
  240_000,
)

test('a rhythm is the second longest pause of two weeks, and none before two days of runs', () => {
  const at = (...hours: number[]): number[] => hours.map((one) => one * hour)
  expect(rhythmOf([])).toBeNull()
  expect(rhythmOf(at(0, 24))).toBeNull()
  expect(rhythmOf(at(0, 0.1, 0.2, 0.3))).toBeNull()
  expect(rhythmOf(at(0, 24, 48))).toBe(day)
  // One outage is no habit, a weekend without runs is one.
  expect(rhythmOf(at(0, 24, 48, 144, 168))).toBe(day)
  expect(rhythmOf(at(0, 24, 96, 120, 144, 168, 192, 264))).toBe(3 * day)
  expect(rhythmOf(at(0, 1000, 1001, 1024, 1048))).toBe(23 * hour)
})
