import { expect, test } from 'vitest'
import { Ledger } from '../../src/ledger/ledger.ts'
import { readManifest } from '../../src/views/manifest.ts'
import { type Bench, withBench } from '../helpers/fetching.ts'
import {
  begin,
  commitTimes,
  daily,
  hourly,
  lineOf,
  pointRequests,
  sightings,
  type Sighted,
  simulate,
} from '../helpers/watching.ts'

const day = 86_400
const hour = 3600
const days = Number(process.env['PITLAKE_WATCH_DAYS'] ?? 1)
const instant = (at: number): string => new Date(at * 1000).toISOString().slice(0, 19).concat('Z')

/** Two hours in which nobody answers, a point that comes late, one that is rewritten, a new epoch: each day. */
function weather(bench: Bench, from: number): void {
  const t = Math.floor((from - day) / day) * day
  bench.faults(
    `reset@metrics:from=${instant(from + 3 * hour)},until=${instant(from + 5 * hour)}`,
    `reset@registry:from=${instant(from + 3 * hour)},until=${instant(from + 5 * hour)}`,
    `late@supply/current_pit:asset=ETH,t=${instant(t + day)},shown=${instant(from + 13.5 * hour)}`,
    `rewrite@supply/current_pit:asset=BTC,t=${instant(t - day)},v=7,from=${instant(from + 2 * hour)}`,
    `new-epoch:at=${instant(from + 14 * hour)}`,
  )
}

/** Series and `t` of a line: a late point tells another `computed_at`, a rewritten one another value. */
const keyOf = (line: string): string => line.split(' ').slice(0, 7).join(' ')

/** What the first request after its publication brought must have been held within seconds of it. */
function expectSharp(bench: Bench, points: readonly Sighted[], from: number): void {
  const asked = Map.groupBy(
    pointRequests(bench).filter(({ status, at }) => status === 200 && at >= from),
    ({ series }) => series,
  )
  for (const point of points) {
    const published = point.shown ?? point.computed ?? 0
    const first = asked.get(lineOf(point))?.find(({ at }) => at >= published)
    expect(point.observed - (first?.at ?? 0), `${lineOf(point)} ${instant(point.t)}`).toBeLessThan(120)
  }
}

test(
  'simulated days: everything is there as soon as it was asked for, at the price and pace that were promised',
  async () =>
    await withBench(begin, async (bench) => {
      await bench.fetch(daily)
      await bench.fetch(hourly)
      const before = pointRequests(bench).length
      const end = begin + days * day
      weather(bench, begin)
      let today = begin
      const { code, events } = await simulate(bench, {
        selections: [daily, hourly],
        until: end,
        registry: true,
        onWait: (now) => {
          if (now < today + day) return
          today += day
          weather(bench, today)
        },
      })
      expect(code).toBe(4)
      const shown = new Map([[`supply/current_pit ETH 24h ${Math.floor(begin / day) * day}`, begin + 13.5 * hour]])
      const all = await sightings(bench.root, 0)
      const fresh = all
        .filter(({ observed }) => observed >= begin + 30)
        .map((point) => ({ ...point, shown: shown.get(`${lineOf(point)} ${point.t}`) ?? null }))
      const requests = pointRequests(bench).slice(before)

      // Everything that was published an hour and a half before the end, and was not late.
      const truth = [...bench.truth(daily), ...bench.truth(hourly)].filter(
        (line) => Number(line.split(' ')[7]) < end - 1.5 * hour,
      )
      const held = new Set((await bench.stored()).map(keyOf))
      expect(truth.map(keyOf).filter((key) => !held.has(key))).toEqual([])
      expect(fresh.length).toBeGreaterThan(25 * days)
      if (days <= 1) expectSharp(bench, fresh, begin)

      expect(bench.sandbox.requests().filter(({ status }) => status === 429)).toEqual([])
      const answered = requests.filter(({ status }) => status !== 0)
      expect(answered.length / fresh.length).toBeLessThanOrEqual(1.5)
      // Nobody is asked in vain every minute while nobody answers.
      expect(requests.length - answered.length).toBeLessThanOrEqual(100 * days)

      const commits = (await commitTimes(bench.root)).filter((at) => at > begin + 120)
      for (const [i, at] of commits.entries()) {
        const tenth = commits[i + 10]
        if (tenth !== undefined) expect(tenth - at).toBeGreaterThan(9 * 60)
      }
      const registry = bench.sandbox
        .requests()
        .filter(({ api, path, status }) => api === 'registry' && path.endsWith('/changes') && status !== 0)
      expect(registry.length).toBeGreaterThanOrEqual(19 * days)
      expect(registry.length).toBeLessThanOrEqual(40 * days)
      expect(events.filter(({ kind }) => kind === 'trouble').length).toBeGreaterThan(0)
      using ledger = await Ledger.openToRead(bench.root)
      expect((await readManifest(bench.root))?.version).toBe(ledger.head().version)
    }),
  300_000 + days * 600_000,
)
