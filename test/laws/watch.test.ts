// @module-tag full
// @module-tag slow
import { expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { requestTotals } from '../../src/lake/ledger/run-queries.ts'
import { type Rig, withRig } from '../helpers/fetching.ts'
import {
  begin,
  commitTimes,
  daily,
  hourly,
  instant,
  keyOf,
  pointRequests,
  sightings,
  simulate,
} from '../helpers/watching.ts'

const day = 86_400
const hour = 3600

test('a budget counts sent requests, and windows that it left out are requested when it is renewed', async () =>
  await withRig(begin, async (rig) => {
    await rig.fetch(daily)
    await rig.fetch(hourly)
    const left = async (): Promise<number> => {
      using ledger = await Ledger.openToRead(rig.root)
      return requestTotals(ledger, (Math.floor(begin / day) + 1) * day * 1_000_000).day_credits
    }
    const spent = await left()
    const midnight = (Math.floor(begin / day) + 1) * day
    await simulate(rig, { selections: [daily, hourly], until: midnight - 60, creditsPerDay: spent + 4 })
    expect(await left()).toBeLessThanOrEqual(spent + 4)
    const sent = pointRequests(rig).filter(({ at }) => at > begin + 60)
    expect(sent.length).toBeGreaterThan(1)
    expect(sent.length).toBeLessThanOrEqual(4)
    await simulate(rig, { selections: [daily, hourly], until: midnight + 3 * hour, creditsPerDay: 30 })
    const hours = (await sightings(rig.root, begin)).filter(({ interval }) => interval === '1h')
    expect(hours.map(({ t }) => t)).toEqual(
      expect.arrayContaining(Array.from({ length: 12 }, (_, i) => begin + i * hour)),
    )
  }))

test('points that come long before their assumed rule are seen when they come', async () =>
  await withRig(begin, async (rig) => {
    const early = {
      assets: ['BTC'],
      paths: ['entities/active_count_pit'],
      intervals: ['24h'],
      since: begin - 200 * day,
    }
    await rig.fetch(early)
    const t = Math.floor(begin / day) * day
    await simulate(rig, { selections: [early], until: t + 2 * day })
    const [point] = await sightings(rig.root, t)
    const asked = pointRequests(rig).filter(({ at }) => at >= t + day)
    expect(point?.computed).toBeLessThan(t + day + 2 * hour)
    expect(asked.length).toBeLessThanOrEqual(4)
    expect(point?.observed).toBeLessThan(t + day + 2 * hour + 60)
  }))

test('stopped and begun again at any moment, a watch goes on where it was', async () =>
  await withRig(begin, async (rig) => {
    await rig.fetch(hourly)
    const until = begin + 6 * hour
    let seed = 12_345
    const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
    for (let lives = 0; rig.clock.now < until && lives < 60; lives++) {
      const stop = new AbortController()
      const after = rig.clock.now + random() * hour
      const request = lives % 3 === 0
      // Every third time in the middle of a request.
      rig.onRequest(() => void (request && rig.clock.now > after - hour / 2 && stop.abort()))
      await simulate(rig, {
        selections: [hourly],
        until,
        signal: stop.signal,
        onWait: (now) => void (now >= after && stop.abort()),
      })
    }
    rig.onRequest(() => undefined)
    const held = new Set(await rig.stored())
    const lost = rig.truth(hourly).filter((line) => !held.has(line) && Number(line.split(' ')[7]) < until - hour)
    expect(lost).toEqual([])
    const fresh = (await sightings(rig.root, begin - 2 * hour)).length
    expect(pointRequests(rig).length - 1).toBeLessThanOrEqual(4 * fresh)
  }))

test('a single due series costs three requests a poll if no provider answers', async () =>
  await withRig(begin, async (rig) => {
    await rig.fetch({ ...hourly, since: begin - 3 * day })
    const polls: number[] = []
    rig.faults(`reset@metrics:from=${instant(begin + 60)}`)
    const before = pointRequests(rig).length
    let seen = before
    await simulate(rig, {
      selections: [hourly],
      until: begin + 6 * hour,
      onWait: () => {
        const sent = pointRequests(rig).length
        if (sent > seen) polls.push(sent - seen)
        seen = sent
      },
    })
    expect(polls.length).toBeGreaterThan(5)
    expect([...new Set(polls)]).toEqual([3])
  }))

/** All points of the hours since the beginning that were published well before an instant. */
async function expectHours(rig: Rig, until: number): Promise<void> {
  const held = new Set((await rig.stored()).map(keyOf))
  const truth = rig.truth({ ...hourly, since: begin }).filter((line) => Number(line.split(' ')[7]) < until - 1.5 * hour)
  expect(truth.length).toBeGreaterThan(3)
  expect(truth.map(keyOf).filter((key) => !held.has(key))).toEqual([])
}

test('a spent quota costs one request, a rest as long as the provider says, and one request to catch up', async () =>
  await withRig(begin, async (rig) => {
    await rig.fetch(hourly)
    const from = begin + 2 * hour
    const back = begin + 6 * hour
    rig.onRequest(() => {
      const retry = Math.ceil(back - rig.clock.now)
      rig.faults(...(retry > 0 ? [`status-429@metrics:retry=${retry}s,from=${instant(from)}`] : []))
    })
    await simulate(rig, { selections: [hourly], until: begin + 9 * hour })
    const refused = rig.sandbox.requests().filter(({ status }) => status === 429)
    expect(refused.length).toBe(1)
    const sent = pointRequests(rig).map(({ at }) => at)
    expect(sent.filter((at) => at > (refused[0]?.at ?? 0) && at < back)).toEqual([])
    expect(sent.filter((at) => at >= back && at < back + hour).length).toBeLessThanOrEqual(2)
    await expectHours(rig, begin + 9 * hour)
  }))

test('machine clock steps back, ahead and back again lose no point and cause no burst of requests', async () =>
  await withRig(begin, async (rig) => {
    await rig.fetch(hourly)
    const before = pointRequests(rig).length
    const steps = [0, -2400, -2400, 3000, 3000, -600, 0, 0, 0]
    const { events } = await simulate(rig, {
      selections: [hourly],
      until: begin + 9 * hour,
      skew: (now) => steps[Math.min(steps.length - 1, Math.floor((now - begin) / hour))] ?? 0,
    })
    expect(events.some(({ kind }) => kind === 'clock')).toBe(true)
    await expectHours(rig, begin + 9 * hour)
    expect(pointRequests(rig).length - before).toBeLessThanOrEqual(4 * 9)
    const commits = (await commitTimes(rig.root)).filter((at) => at > begin + 120)
    expect(commits.length).toBeLessThanOrEqual(5 * 9)
  }))

test('before ten points arrived the lag of the provider decides when to request, and is requested once a day', async () =>
  await withRig(begin, async (rig) => {
    const young = {
      assets: ['BTC'],
      paths: ['entities/active_count_pit'],
      intervals: ['24h'],
      since: Math.floor(begin / day) * day - 3 * day,
    }
    await rig.fetch(young)
    await simulate(rig, { selections: [young], until: begin + 2.5 * day })
    const hints = rig.sandbox.requests().filter(({ path }) => path === '/v1/metadata/metric/stats')
    expect(hints.map(({ status, query }) => [status, query['a']])).toEqual([
      [200, 'BTC'],
      [200, 'BTC'],
      [200, 'BTC'],
    ])
    // The rule says two hours, and half way to it is an hour; the points come 10 to 115 minutes after their interval.
    const t = Math.floor(begin / day) * day
    for (const close of [t + day, t + 2 * day]) {
      const asked = pointRequests(rig).filter(({ at }) => at > close && at < close + day / 2)
      expect(asked.length).toBeGreaterThan(0)
      expect(asked.length).toBeLessThanOrEqual(4)
      expect(asked[0]?.at).toBeGreaterThan(close + 62 * 60)
      expect(asked[0]?.at).toBeLessThan(close + 100 * 60)
    }
    const [first, second] = await sightings(rig.root, t)
    expect([first?.t, second?.t]).toEqual([t, t + day])
  }))
