import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Wanted } from '../../src/catalog/series.ts'
import { day, end, floor, hour, type Instant, type Interval, minute, step } from '../../src/base/time.ts'
import { paceToBudget } from '../../src/maintenance/watch/budget.ts'
import type { NextPoint } from '../../src/maintenance/watch/next-points.ts'
import { nextAction, restAfter } from '../../src/maintenance/watch/next.ts'
import { begin, Place, series, usual } from './watch-place.ts'

type WatchState = Parameters<typeof nextAction>[0]

/** What holds of each point: it is there, and the first poll after its publication saw it. */
function expectSharp(place: Place, until: Instant): void {
  for (const one of place.wanted) {
    const { id, interval } = one.series
    const polls = place.polls.filter((poll) => poll.id === id).map(({ at }) => at)
    for (let t = floor(begin, interval ?? '24h'); usualEnd(one, t) < until; t = step(t, interval ?? '24h', 1)) {
      const published = place.publishes(one, t)
      const first = polls.find((at) => at >= published)
      if (first === undefined) continue
      expect(place.seen.get(`${id} ${t}`), `${id} ${t}`).toBe(first)
    }
  }
}
const usualEnd = (one: Wanted, t: Instant): Instant => end(t, one.series.interval ?? '24h') + day

function missing(place: Place, until: Instant): string[] {
  return place.wanted.flatMap((one) => {
    const interval = one.series.interval ?? '24h'
    const left: string[] = []
    for (let t = floor(begin, interval); place.publishes(one, t) < until; t = step(t, interval, 1))
      if (!place.seen.has(`${one.series.id} ${t}`)) left.push(`${one.series.id} ${t}`)
    return left
  })
}

describe('sixty days of a watch', () => {
  const until = begin + 60 * day

  test('every point is there, sharp, at one request and a half; an action a minute', async () => {
    // One in fifty comes hours to days late.
    const late = (one: Wanted, t: Instant): Instant =>
      usual(one, t) + (((t / 600) * 104_729) % 50 < 1 ? hour * (1 + ((t / 3600) % 40)) : 0)
    const place = new Place(series('1h', '24h', '1w', '1month'), late)
    await place.watch(until)
    expectSharp(place, until)
    expect(missing(place, until - 3 * day)).toEqual([])
    expect(place.polls.length / place.seen.size).toBeLessThanOrEqual(1.5)
    const delays = [...place.seen]
      .map(([key, at]) => at - Number(key.split(' ').at(-1)))
      .filter((delay) => delay < 2 * hour)
    expect(delays.length).toBeGreaterThan(1300)
    for (const [i, at] of place.actions.slice(1).entries())
      expect(at - (place.actions[i] ?? 0)).toBeGreaterThanOrEqual(minute)
    for (const [i, at] of place.syncs.slice(1).entries()) {
      expect(at - (place.syncs[i] ?? 0)).toBeGreaterThanOrEqual(hour)
      expect(at - (place.syncs[i] ?? 0)).toBeLessThanOrEqual(hour + 10 * minute)
    }
    expect(place.tidiedVersion).toBe(place.version)
  })

  test('a refused poll is repeated at the time that its answer names', async () => {
    const place = new Place(series('24h'), usual)
    for (const one of place.wanted) place.refused.set(one.series.id, begin)
    const events = await place.watch(begin + 5 * day)
    const told = events.flatMap((event) => (event.kind === 'metrics' ? [event.next ?? 0] : []))
    const polls = place.polls.map(({ at }) => at)
    expect(polls.length).toBeGreaterThan(5)
    for (const [n, at] of polls.slice(1).entries()) expect(Math.abs(at - (told[n] ?? 0))).toBeLessThanOrEqual(minute)
  })

  test('while lags are being learnt: four requests a point at most', async () => {
    const place = new Place(series('1h', '24h'), usual)
    place.lag = { observations: 3, lag: null }
    await place.watch(begin + 10 * day)
    expect(missing(place, begin + 10 * day - 2 * hour)).toEqual([])
    expect(place.polls.length / place.seen.size).toBeLessThanOrEqual(4)
    expectSharp(place, begin + 10 * day)
  })

  test('outages of days, sleep, a spent quota: caught up with one request a series', async () => {
    const place = new Place(series('10m', '1h', '24h'), usual)
    const out = begin + 2 * day
    place.fault = (now) =>
      now >= out && now < out + 3 * day ? 'unreachable' : now >= out + 6.5 * day && now < out + 7 * day ? 'quota' : null
    let slept = false
    const events = await place.watch(begin + 12 * day, {
      onWait: () => {
        if (slept || place.now < out + 8 * day) return
        slept = true
        place.now += 1.5 * day
      },
    })
    expect(missing(place, begin + 12 * day - 2 * hour)).toEqual([])
    const back = place.polls.filter(({ at }) => at >= out + 3 * day && at < out + 3 * day + 11 * minute)
    expect(back.map(({ id }) => id).filter((id) => id.includes('1h') || id.includes('24h'))).toHaveLength(2)
    expect(Math.max(...back.map(({ brought }) => brought))).toBeGreaterThan(400)
    const trouble = events.filter(({ kind }) => kind === 'trouble')
    expect(trouble.length).toBeLessThanOrEqual(4)
    // While nobody answers it tries at least every ten minutes and a bit, not every minute.
    const tries = place.actions.filter((at) => at >= out + day && at < out + 2 * day).length
    expect(tries).toBeGreaterThan(100)
    expect(tries).toBeLessThanOrEqual(2 * 24 * 6 + 2)
    expect(place.actions.filter((at) => at > out + 6.5 * day + hour && at < out + 7 * day)).toEqual([])
  })

  test('while every request fails a single series finds out whether it still does; a broken one holds up no other', async () => {
    const place = new Place(series('10m', '1h', '24h'), usual)
    const out = begin + day
    place.fault = (now) => (now >= out && now < out + day ? 'silent' : null)
    await place.watch(begin + 4 * day)
    expect(missing(place, begin + 4 * day - 2 * hour)).toEqual([])
    expect(place.vain.length).toBeLessThanOrEqual(6 * 24 + 12)
    const back = place.polls.filter(({ at }) => at >= out + day && at < out + day + 14 * minute)
    expect(new Set(back.map(({ id }) => id)).size).toBe(3)

    const broken = new Place(series('1h', '24h', '1w'), usual)
    broken.broken.add(broken.wanted[0]?.series.id ?? '')
    const calm = new Place(series('24h', '1w'), usual)
    for (const one of [broken, calm]) await one.watch(begin + 20 * day)
    const own = [...broken.seen].filter(([key]) => !key.includes('|1h|'))
    expect(own.length).toBe(calm.seen.size)
    for (const [key, at] of own) expect(Math.abs(at - (calm.seen.get(key) ?? 0))).toBeLessThanOrEqual(3 * minute)
  })

  test('after an outage a series that stays broken keeps no other from being tried', async () => {
    const place = new Place(series('10m', '1h', '24h'), usual)
    const [first, ...others] = place.wanted.map(({ series: { id } }) => id)
    place.broken.add(first ?? '')
    const out = begin + day
    place.fault = (now) => (now >= out && now < out + day ? 'silent' : null)
    await place.watch(begin + 3 * day)
    const lost = missing(place, begin + 3 * day - 2 * hour).filter((key) => others.some((id) => key.startsWith(id)))
    expect(lost).toEqual([])
    const back = place.polls.filter(({ at }) => at >= out + day && at < out + day + 40 * minute)
    expect(new Set(back.map(({ id }) => id))).toEqual(new Set(others))
  })

  test('requests planned by a clock that ran ahead are dropped when it steps back', async () => {
    const place = new Place(series('1h', '24h'), usual)
    const ahead = begin + day
    const back = begin + day + 2 * hour
    let state: 'before' | 'ahead' | 'after' = 'before'
    place.fault = () => (state === 'ahead' ? 'quota' : null)
    await place.watch(begin + 34 * day, {
      onWait: () => {
        if (state === 'before' && place.now >= ahead) {
          state = 'ahead'
          place.now += 30 * day
        } else if (state === 'ahead' && place.now >= back + 30 * day) {
          state = 'after'
          place.now -= 30 * day
        }
      },
    })
    expect(state).toBe('after')
    expect(missing(place, begin + 34 * day - 2 * hour)).toEqual([])
    expect(place.polls.filter(({ at }) => at >= back && at < back + hour + 10 * minute).length).toBeGreaterThan(0)
  })

  test('clock steps both ways lose no point and cause no burst of requests', async () => {
    const place = new Place(series('1h', '24h'), usual)
    const steps = [
      { at: begin + day, by: -2 * hour },
      { at: begin + 2 * day, by: 5 * hour },
      { at: begin + 3 * day, by: -20 },
      { at: begin + 4 * day, by: -40 * minute },
    ]
    const events = await place.watch(begin + 6 * day, {
      onWait: () => {
        const [first] = steps
        if (first === undefined || place.now < first.at) return
        steps.shift()
        place.now += first.by
      },
    })
    expect(steps).toEqual([])
    expect(missing(place, begin + 6 * day - 2 * hour)).toEqual([])
    expect(events.filter(({ kind }) => kind === 'clock').length).toBeGreaterThan(0)
    expect(place.polls.length / place.seen.size).toBeLessThanOrEqual(1.5)
  })

  test('a job that finds another at work waits, and goes on', async () => {
    const place = new Place(series('1h'), usual)
    place.fault = (now) => (now > begin + hour && now < begin + 3 * hour ? 'busy' : null)
    const events = await place.watch(begin + day)
    expect(missing(place, begin + day - 2 * hour)).toEqual([])
    expect(
      events.filter((event) => event.kind === 'trouble' && event.words.startsWith('another job')).length,
    ).toBeGreaterThan(0)
  })

  test('each day keeps its budget: coarse intervals never wait, and fine ones are spread', async () => {
    const wanted = series('10m', '1h', '24h')
    for (const creditsPerDay of [1, 2, 30, 80]) {
      const place = new Place(wanted, usual)
      await place.watch(begin + 6 * day, { creditsPerDay })
      const byDay = Map.groupBy(place.polls, ({ at }) => Math.floor(at / day))
      for (const polls of byDay.values()) expect(polls.length).toBeLessThanOrEqual(creditsPerDay)
      const daily = place.polls.filter(({ id }) => id.includes('24h'))
      expect(daily.filter(({ brought }) => brought > 0).length).toBe(7)
      if (creditsPerDay < 80) continue
      const from = begin + 1.5 * day
      const to = begin + 2.5 * day
      const fine = place.polls.filter(({ id, at }) => id.includes('10m') && at >= from && at < to).map(({ at }) => at)
      const gaps = [...fine, to].map((at, i) => at - (fine[i - 1] ?? from))
      expect(fine.length).toBeGreaterThan(30)
      expect(Math.max(...gaps)).toBeLessThanOrEqual(2 * (day / fine.length))
      expect(missing(place, begin + 5 * day)).toEqual([])
    }
  })
})

describe('what comes first', () => {
  const [one] = series('24h')
  if (!one) throw new Error('no series')
  const point = (poll: Instant, change: Partial<NextPoint> = {}): NextPoint => ({
    series: { ...one.series, id: `s${poll}` },
    endpoint: one.endpoint,
    interval: '24h',
    t: 0,
    due: poll,
    by: 'learnt',
    observations: 100,
    lastRequested: null,
    poll,
    ...change,
  })
  const calm: WatchState = {
    points: [],
    registry: null,
    untidy: null,
    rests: { metrics: 0, registry: 0, tidy: 0 },
    tried: null,
    free: 0,
  }
  const now = begin

  test('watch requests all due points at once, else polls the registry, else builds views, else waits', () => {
    const due = [point(now - 5), point(now), point(now + 1)]
    expect(nextAction({ ...calm, points: due, registry: now, untidy: now - 60 }, now)).toEqual({
      kind: 'metrics',
      series: new Set([`s${now - 5}`, `s${now}`]),
    })
    expect(nextAction({ ...calm, points: due, registry: now - 6 }, now)).toEqual({ kind: 'registry' })
    expect(nextAction({ ...calm, points: [point(now + 120)], untidy: now - 60 }, now)).toEqual({ kind: 'tidy' })
    expect(nextAction({ ...calm, points: [point(now + 119)], untidy: now - 60 }, now)).toEqual({
      kind: 'wait',
      until: now + 119,
    })
    expect(nextAction({ ...calm, points: [point(now)], untidy: now - 1000 }, now)).toEqual({ kind: 'tidy' })
    expect(nextAction({ ...calm, points: [point(now + 30)] }, now)).toEqual({ kind: 'wait', until: now + 30 })
    expect(nextAction(calm, now)).toEqual({ kind: 'wait', until: now + hour })
  })

  test('watch does nothing within a minute after an action, nor while an API rests', () => {
    const points = [point(now - 100)]
    expect(nextAction({ ...calm, points, free: now + 7 }, now)).toEqual({ kind: 'wait', until: now + 7 })
    const rests = { ...calm.rests, metrics: now + 300 }
    expect(nextAction({ ...calm, points, rests }, now)).toEqual({ kind: 'wait', until: now + 300 })
    expect(nextAction({ ...calm, points, rests, registry: now }, now)).toEqual({ kind: 'registry' })
    expect([1, 2, 3, 4, 5, 50].map(restAfter)).toEqual([60, 120, 240, 480, 600, 600])
  })

  test('a budget only ever puts polls off, and no more are left at an instant than it pays', () => {
    const points = fc.array(
      fc.record({
        poll: fc.integer({ min: now - day, max: now + 2 * day }),
        interval: fc.constantFrom<Interval>('10m', '1h', '24h', '1month'),
        asked: fc.option(fc.integer({ min: now - day, max: now })),
      }),
      { maxLength: 30 },
    )
    fc.assert(
      fc.property(points, fc.integer({ min: 0, max: 40 }), fc.constantFrom(1, 2), (drawn, credits, price) => {
        const all = drawn.map(({ poll, ...rest }) => point(poll, rest))
        const until = now + 12 * hour
        const put = paceToBudget(all, () => price, { credits, until }, now)
        for (const [i, { poll }] of put.entries()) expect(poll).toBeGreaterThanOrEqual(all[i]?.poll ?? 0)
        expect(put.filter(({ poll }) => poll <= now).length * price).toBeLessThanOrEqual(credits)
        expect(paceToBudget(all, () => price, null, now)).toBe(all)
      }),
    )
  })
})
