import { expect, test } from 'vitest'
import { Ledger } from '../../src/ledger/ledger.ts'
import { requestTotals } from '../../src/ledger/held-runs.ts'
import { type Bench, withBench } from '../helpers/fetching.ts'
import { begin, commitTimes, daily, hourly, pointRequests, sightings, simulate } from '../helpers/watching.ts'

const day = 86_400
const hour = 3600
const instant = (at: number): string => new Date(at * 1000).toISOString().slice(0, 19).concat('Z')

/** Series and `t` of a line: a late point tells another `computed_at`, a rewritten one another value. */
const keyOf = (line: string): string => line.split(' ').slice(0, 7).join(' ')

test('a budget is kept by the requests that are really sent, and what it left out comes when it is renewed', async () =>
  await withBench(begin, async (bench) => {
    await bench.fetch(daily)
    await bench.fetch(hourly)
    const left = async (): Promise<number> => {
      using ledger = await Ledger.openToRead(bench.root)
      return requestTotals(ledger, (Math.floor(begin / day) + 1) * day * 1_000_000).day_credits
    }
    const spent = await left()
    const midnight = (Math.floor(begin / day) + 1) * day
    await simulate(bench, { selections: [daily, hourly], until: midnight - 60, creditsPerDay: spent + 4 })
    expect(await left()).toBeLessThanOrEqual(spent + 4)
    const sent = pointRequests(bench).filter(({ at }) => at > begin + 60)
    expect(sent.length).toBeGreaterThan(1)
    expect(sent.length).toBeLessThanOrEqual(4)
    await simulate(bench, { selections: [daily, hourly], until: midnight + 3 * hour, creditsPerDay: 30 })
    const hours = (await sightings(bench.root, begin)).filter(({ interval }) => interval === '1h')
    expect(hours.map(({ t }) => t)).toEqual(
      expect.arrayContaining(Array.from({ length: 12 }, (_, i) => begin + i * hour)),
    )
  }))

test('points that come long before their assumed rule are seen when they come', async () =>
  await withBench(begin, async (bench) => {
    const early = {
      assets: ['BTC'],
      paths: ['entities/active_count_pit'],
      intervals: ['24h'],
      since: begin - 200 * day,
    }
    await bench.fetch(early)
    const t = Math.floor(begin / day) * day
    await simulate(bench, { selections: [early], until: t + 2 * day })
    const [point] = await sightings(bench.root, t)
    const asked = pointRequests(bench).filter(({ at }) => at >= t + day)
    expect(point?.computed).toBeLessThan(t + day + 2 * hour)
    expect(asked.length).toBeLessThanOrEqual(4)
    expect(point?.observed).toBeLessThan(t + day + 2 * hour + 60)
  }))

test('stopped and begun again at any moment, a watch goes on where it was', async () =>
  await withBench(begin, async (bench) => {
    await bench.fetch(hourly)
    const until = begin + 6 * hour
    let seed = 12_345
    const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
    for (let lives = 0; bench.clock.now < until && lives < 60; lives++) {
      const stop = new AbortController()
      const [after, request] = [bench.clock.now + random() * hour, lives % 3 === 0]
      // Every third time in the middle of a request.
      bench.onRequest(() => void (request && bench.clock.now > after - hour / 2 && stop.abort()))
      await simulate(bench, {
        selections: [hourly],
        until,
        signal: stop.signal,
        onWait: (now) => void (now >= after && stop.abort()),
      })
    }
    bench.onRequest(() => undefined)
    const held = new Set(await bench.stored())
    const lost = bench.truth(hourly).filter((line) => !held.has(line) && Number(line.split(' ')[7]) < until - hour)
    expect(lost).toEqual([])
    const fresh = (await sightings(bench.root, begin - 2 * hour)).length
    expect(pointRequests(bench).length - 1).toBeLessThanOrEqual(4 * fresh)
  }))

test('where nobody answers a single due series costs three requests a poll', async () =>
  await withBench(begin, async (bench) => {
    await bench.fetch({ ...hourly, since: begin - 3 * day })
    const polls: number[] = []
    bench.faults(`reset@metrics:from=${instant(begin + 60)}`)
    const before = pointRequests(bench).length
    let seen = before
    await simulate(bench, {
      selections: [hourly],
      until: begin + 6 * hour,
      onWait: () => {
        const sent = pointRequests(bench).length
        if (sent > seen) polls.push(sent - seen)
        seen = sent
      },
    })
    expect(polls.length).toBeGreaterThan(5)
    expect([...new Set(polls)]).toEqual([3])
  }))

/** All points of the hours since the beginning that were published well before an instant. */
async function expectHours(bench: Bench, until: number): Promise<void> {
  const held = new Set((await bench.stored()).map(keyOf))
  const truth = bench
    .truth({ ...hourly, since: begin })
    .filter((line) => Number(line.split(' ')[7]) < until - 1.5 * hour)
  expect(truth.length).toBeGreaterThan(3)
  expect(truth.map(keyOf).filter((key) => !held.has(key))).toEqual([])
}

test('a spent quota is asked once, rested out for as long as the provider says, and caught up with one request', async () =>
  await withBench(begin, async (bench) => {
    await bench.fetch(hourly)
    const [from, back] = [begin + 2 * hour, begin + 6 * hour]
    bench.onRequest(() => {
      const retry = Math.ceil(back - bench.clock.now)
      bench.faults(...(retry > 0 ? [`status-429@metrics:retry=${retry}s,from=${instant(from)}`] : []))
    })
    await simulate(bench, { selections: [hourly], until: begin + 9 * hour })
    const refused = bench.sandbox.requests().filter(({ status }) => status === 429)
    expect(refused.length).toBe(1)
    const sent = pointRequests(bench).map(({ at }) => at)
    expect(sent.filter((at) => at > (refused[0]?.at ?? 0) && at < back)).toEqual([])
    expect(sent.filter((at) => at >= back && at < back + hour).length).toBeLessThanOrEqual(2)
    await expectHours(bench, begin + 9 * hour)
  }))

test('the machine clock steps back, ahead and back again: nothing is lost, and nobody is stormed', async () =>
  await withBench(begin, async (bench) => {
    await bench.fetch(hourly)
    const before = pointRequests(bench).length
    const steps = [0, -2400, -2400, 3000, 3000, -600, 0, 0, 0]
    const { events } = await simulate(bench, {
      selections: [hourly],
      until: begin + 9 * hour,
      skew: (now) => steps[Math.min(steps.length - 1, Math.floor((now - begin) / hour))] ?? 0,
    })
    expect(events.some(({ kind }) => kind === 'clock')).toBe(true)
    await expectHours(bench, begin + 9 * hour)
    expect(pointRequests(bench).length - before).toBeLessThanOrEqual(4 * 9)
    const commits = (await commitTimes(bench.root)).filter((at) => at > begin + 120)
    expect(commits.length).toBeLessThanOrEqual(5 * 9)
  }))

test('before ten points have come the lag that the provider tells says when to ask; it is asked for once a day', async () =>
  await withBench(begin, async (bench) => {
    const young = {
      assets: ['BTC'],
      paths: ['entities/active_count_pit'],
      intervals: ['24h'],
      since: Math.floor(begin / day) * day - 3 * day,
    }
    await bench.fetch(young)
    await simulate(bench, { selections: [young], until: begin + 2.5 * day })
    const hints = bench.sandbox.requests().filter(({ path }) => path === '/v1/metadata/metric/stats')
    expect(hints.map(({ status, query }) => [status, query['a']])).toEqual([
      [200, 'BTC'],
      [200, 'BTC'],
      [200, 'BTC'],
    ])
    // The rule says two hours, and half way to it is an hour; the points come 10 to 115 minutes after their interval.
    const t = Math.floor(begin / day) * day
    for (const close of [t + day, t + 2 * day]) {
      const asked = pointRequests(bench).filter(({ at }) => at > close && at < close + day / 2)
      expect(asked.length).toBeGreaterThan(0)
      expect(asked.length).toBeLessThanOrEqual(4)
      expect(asked[0]?.at).toBeGreaterThan(close + 62 * 60)
      expect(asked[0]?.at).toBeLessThan(close + 100 * 60)
    }
    const [first, second] = await sightings(bench.root, t)
    expect([first?.t, second?.t]).toEqual([t, t + day])
  }))
