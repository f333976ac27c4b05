// @module-tag full
// @module-tag slow
import { expect, test } from 'vitest'
import { requestTotals } from '../../src/lake/ledger/run-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { readManifest } from '../../src/query/views/manifest.ts'
import { pitlake } from '../helpers/command.ts'
import { unlike } from '../helpers/delta.ts'
import { type Rig, storedPoints, withRig } from '../helpers/fetching.ts'
import type { Life } from '../helpers/lives.ts'
import { begun, finished, type Soak, young } from '../helpers/soaking.ts'
import {
  begin,
  commitTimes,
  daily,
  hourly,
  instant,
  keyOf,
  lineOf,
  pointRequests,
  sightings,
  type Sighted,
} from '../helpers/watching.ts'

const day = 86_400
const hour = 3600
const days = Number(process.env['PITLAKE_WATCH_DAYS'] ?? 1)
const seed = Number(process.env['PITLAKE_SEED'] ?? 1)
const end = begin + days * day
const dayOf = (at: number): number => Math.floor(at / day) * day

/** What is done to a watch. */
type Blow = 'kill' | 'kill in a request' | 'sleep' | 'sleep in a request' | 'stop' | 'second'
const blows: readonly Blow[] = ['kill', 'kill in a request', 'sleep', 'sleep in a request', 'stop', 'second']

/** What the days brought, beside what the sandbox and the lake know. */
interface Diary {
  /** When a watch was killed or sent to sleep: what was under way then is not counted. */
  readonly broken: number[]
  readonly begun: number[]
  /** Credits that a watch was given, by the UTC day. */
  readonly budgets: Map<number, number>
  /** Instants from which, and until which, the quota was spent. */
  readonly quotas: (readonly [number, number])[]
  readonly done: Blow[]
}

/** A point of each day that is hidden, and until when. */
const latePoint = (from: number) => ({ t: dayOf(from), shown: from + 13.5 * hour })

/**
 * Each day nobody answers for two hours, each tenth for a day and a half; a point comes late, one is rewritten, the
 * feed begins anew; each fifth day the quota is spent.
 */
function weather(rig: Rig, from: number, diary: Diary): void {
  const nth = Math.round((from - begin) / day)
  const { t, shown } = latePoint(from)
  const outage = `from=${instant(from + 3 * hour)},until=${instant(from + (nth % 10 === 7 ? 20 : 5) * hour)}`
  const quota = [from + 18 * hour, from + 21 * hour] as const
  if (nth % 5 === 0) diary.quotas.push(quota)
  rig.faults(
    `reset@metrics:${outage}`,
    `reset@registry:${outage}`,
    `late@supply/current_pit:asset=ETH,t=${instant(t)},shown=${instant(shown)}`,
    `rewrite@supply/current_pit:asset=BTC,t=${instant(t - 2 * day)},v=7,from=${instant(from + 2 * hour)}`,
    `new-epoch:at=${instant(from + 14 * hour)}`,
    ...(nth % 5 === 0
      ? [`status-429@metrics:retry=${3 * hour}s,times=1,from=${instant(quota[0])},until=${instant(quota[1])}`]
      : []),
  )
}

/** Numbers from 0 to 1 that come again with the seed. */
function chance(): () => number {
  let state = seed
  return () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
}

/**
 * Runs one watch after the other through the days; every tenth and at the end what is promised of them is looked at:
 * how often it was.
 */
async function soakThrough(rig: Rig, soak: Soak, diary: Diary): Promise<number> {
  const { lives } = soak
  const random = chance()
  const anew = (): Life => {
    const credits = random() < 0.2 ? 60 : 100
    const publishing = random() < 0.2 ? ['--publish', `${rig.root}/published`] : []
    for (let at = dayOf(lives.now); at <= end; at += day)
      diary.budgets.set(at, Math.max(credits, at === dayOf(lives.now) ? (diary.budgets.get(at) ?? 0) : 0))
    diary.begun.push(lives.now)
    return soak.run(['watch', '--credits-per-day', String(credits), ...publishing])
  }
  let life = anew()
  let today = begin
  let next = begin + 2 * hour
  let looked = Math.min(end, begin + 10 * day)
  let struck: Blow | null = null
  let looks = 0
  rig.onRequest(async ({ url }) => {
    if (struck === null || url.includes('/metadata/')) return
    const how = struck
    struck = null
    diary.broken.push(lives.now)
    if (how === 'sleep in a request') return lives.stop(life)
    life.child.kill('SIGKILL')
    await lives.ended(life)
  })
  weather(rig, today, diary)
  while (looked <= end) {
    await lives.quiet()
    if (lives.now >= today + day) weather(rig, (today += day), diary)
    // The last hours before a look are for what was missed.
    const late = looked - 3 * hour
    if (life.stopped) {
      lives.now = Math.max(lives.now, Math.min(late, lives.now + (random() < 0.1 ? 20 : 3) * random() * hour))
      lives.wake(life)
    } else if (life.code !== undefined) {
      expect(life.code, life.said()).toBe(null)
      life = anew()
    } else if (lives.now >= looked) {
      await stopped(soak, life)
      await expectPromises(rig, soak, diary)
      looks++
      looked = looked < end ? Math.min(end, looked + 10 * day) : Infinity
      if (looked <= end) life = anew()
    } else if (lives.now >= next && lives.now < late) {
      next = lives.now + (2 + 12 * random()) * hour
      const blow = blows[Math.floor(random() * blows.length)] ?? 'kill'
      diary.done.push(blow)
      if (blow.endsWith('in a request')) struck = blow
      else life = await strike(blow, { soak, life, diary, anew })
    } else lives.pass(Math.min(looked, lives.now < late ? Math.max(next, lives.now) : looked, today + day))
  }
  return looks
}

interface Struck {
  readonly soak: Soak
  readonly life: Life
  readonly diary: Diary
  readonly anew: () => Life
}

/** Does something to a watch that waits; gives the one that lives on. */
async function strike(blow: Blow, { soak, life, diary, anew }: Struck): Promise<Life> {
  const { lives } = soak
  if (blow === 'stop') {
    await stopped(soak, life)
    return anew()
  }
  if (blow === 'second') {
    const second = soak.run(['watch'])
    expect(await lives.ended(second)).toBe(7)
    expect(second.said()).toContain('another watch job is at work on this lake')
    return life
  }
  diary.broken.push(lives.now)
  if (blow === 'sleep') lives.stop(life)
  else life.child.kill('SIGKILL')
  if (blow === 'kill') await lives.ended(life)
  return life
}

/** SIGTERM ends a watch within seconds of its clock, with everything committed and the views made. */
async function stopped(soak: Soak, life: Life): Promise<void> {
  const told = soak.lives.now
  await soak.lives.interrupt(life)
  expect([0, 4], life.said()).toContain(await finished(soak, life))
  expect(soak.lives.now - told).toBeLessThanOrEqual(60)
  using ledger = await Ledger.openToRead(soak.data)
  expect((await readManifest(soak.data))?.version).toBe(ledger.head().version)
}

/** A point that comes later than that is a gap by then: it is asked for weekly. */
const tolerance = 2 * day
const widths = new Map([
  ['1h', hour],
  ['24h', day],
])

/** Whether a point of this interval and `t` came when it was a gap already. */
function wasGap(interval: string, t: number, published: number): boolean {
  return published > t + (widths.get(interval) ?? 0) + tolerance
}

/** Whether something was broken off at this instant or soon after. */
const brokenOff = ({ broken }: Diary, at: number): boolean => broken.some((then) => at > then - 120 && at <= then)

/**
 * What the first request after its publication brought must have been held within seconds of it. One that was broken
 * off may have brought it all the same: then it was that one, and none came after it so far.
 */
function expectSharp(rig: Rig, points: readonly Sighted[], diary: Diary): void {
  const asked = Map.groupBy(
    pointRequests(rig).filter(({ status, at }) => status === 200 && at >= begin),
    ({ series }) => series,
  )
  for (const point of points) {
    const published = point.shown ?? point.computed ?? 0
    if (wasGap(point.interval, point.t, published)) continue
    const since = (asked.get(lineOf(point)) ?? []).filter(({ at }) => at >= published)
    const first = since.find(({ at }) => !brokenOff(diary, at)) ?? since.at(-1)
    const { observed } = point
    expect(observed - (first?.at ?? 0), `${lineOf(point)} ${instant(point.t)} ${instant(observed)}`).toBeLessThan(120)
  }
}

/**
 * What the points cost in requests: of series whose lag is learnt, and of the one that was begun lately until ten have
 * come.
 */
function expectCheap(rig: Rig, points: readonly Sighted[], diary: Diary): object {
  const learning = points
    .filter(({ metric }) => young.paths.includes(metric))
    .toSorted((a, b) => a.observed - b.observed)
  const tenth = learning[Math.min(learning.length, 7) - 1]?.observed ?? begin
  const answered = pointRequests(rig).filter(
    ({ status, at }) => status === 200 && at > begin + 30 && !brokenOff(diary, at),
  )
  const isYoung = ({ series, at }: (typeof answered)[number]): boolean =>
    young.paths.some((path) => series.startsWith(path)) && at <= tenth + 60
  const few = learning.filter(({ observed }) => observed <= tenth)
  expect(few.length).toBeGreaterThan(0)
  const learnt = answered.filter((request) => !isYoung(request)).length / (points.length - few.length)
  const whileLearning = answered.filter(isYoung).length / few.length
  expect(whileLearning).toBeLessThanOrEqual(4)
  expect(learnt).toBeLessThanOrEqual(1.5)
  return { learnt, whileLearning }
}

/** Of requests the sandbox and the lake think alike: no day is dearer than its watches were told. */
async function expectWithin(rig: Rig, soak: Soak, diary: Diary): Promise<void> {
  using ledger = await Ledger.openToRead(soak.data)
  const answered = pointRequests(rig).filter(({ status, at }) => status === 200 && !brokenOff(diary, at))
  const { now } = soak.lives
  for (const [from, credits] of diary.budgets) {
    const spent = answered.filter(({ at }) => dayOf(at) === from).length
    expect(spent, instant(from)).toBeLessThanOrEqual(credits)
    // The lake itself tells what was spent since an instant.
    if (from !== dayOf(now)) continue
    const { day_credits } = requestTotals(ledger, (from + day) * 1_000_000)
    expect(day_credits, instant(from)).toBeLessThanOrEqual(credits)
    expect(day_credits).toBeGreaterThanOrEqual(spent)
  }
}

/** Whether a point must be there: an hour and a half after its publication, eight days where it was a gap. */
function isDue(line: string, now: number): boolean {
  const [, , interval = '', , , , t, published] = line.split(' ')
  return Number(published) < now - (wasGap(interval, Number(t), Number(published)) ? 8 * day : 1.5 * hour)
}

/** Of all days so far: every point, as soon as it was asked for, at the price and the pace that were promised. */
async function expectPromises(rig: Rig, soak: Soak, diary: Diary): Promise<void> {
  const { now } = soak.lives
  const past = (now - begin) / day
  const truth = [daily, hourly, young].flatMap((selection) => rig.truth(selection)).filter((line) => isDue(line, now))
  const held = new Set((await storedPoints(soak.data)).map(keyOf))
  expect(truth.map(keyOf).filter((key) => !held.has(key))).toEqual([])
  const shown = new Map(
    Array.from({ length: days }, (_, nth) => latePoint(begin + nth * day)).map((late) => [late.t, late.shown]),
  )
  const fresh = (await sightings(soak.data, 0))
    .filter(({ observed }) => observed >= begin + 30)
    .map((point) => {
      const late = lineOf(point) === 'supply/current_pit ETH 24h' ? (shown.get(point.t) ?? null) : null
      return { ...point, shown: late }
    })
  expect(fresh.length).toBeGreaterThan(25 * past)
  expectSharp(rig, fresh, diary)
  const cost = expectCheap(rig, fresh, diary)
  await expectWithin(rig, soak, diary)
  expectPolite(rig, diary, past)
  await expectCommits(soak, diary)
  const world = { now: () => now * 1000 }
  const checked = await pitlake(rig.root, ['doctor', '--data', soak.data], {}, world)
  expect([checked.code, checked.message]).toEqual([0, ''])
  const published = `${rig.root}/published`
  const told = await pitlake(rig.root, ['publish', published, '--data', soak.data], {}, world)
  expect([told.code, told.message]).toEqual([0, ''])
  expect(await unlike(soak.data, published)).toEqual([])
  const blows = diary.done.length
  const lives = diary.begun.length
  process.stderr.write(`${JSON.stringify({ days: past, points: fresh.length, cost, blows, lives })}\n`)
}

/**
 * Refused is only what the spent quota refused, once each time; nobody is asked in vain every minute while nobody
 * answers.
 */
function expectPolite(rig: Rig, diary: Diary, past: number): void {
  const all = rig.sandbox.requests()
  const refused = all.filter(({ status }) => status === 429)
  expect(refused.filter(({ at }) => !diary.quotas.some(([from, until]) => at >= from && at < until))).toEqual([])
  expect(refused.length).toBeLessThanOrEqual(diary.quotas.length)
  const vain = pointRequests(rig).filter(({ status, at }) => status === 0 && !brokenOff(diary, at))
  expect(vain.length).toBeLessThanOrEqual(150 * past)
  const registry = all.filter(
    ({ api, path, status }) => api === 'registry' && path.endsWith('/changes') && status === 200,
  )
  expect(registry.length).toBeGreaterThanOrEqual(10 * past)
  expect(registry.length).toBeLessThanOrEqual(50 * past)
}

/** At most one commit a minute, as far as one and the same watch made them. */
async function expectCommits(soak: Soak, diary: Diary): Promise<void> {
  const commits = (await commitTimes(soak.data)).filter((at) => at > begin + 120)
  let runs = 0
  for (const [i, at] of commits.entries()) {
    const tenth = commits[i + 10]
    if (tenth === undefined || diary.begun.some((from) => from >= at - 60 && from <= tenth)) continue
    runs++
    expect(tenth - at).toBeGreaterThan(9 * 60)
  }
  expect(runs).toBeGreaterThan(0)
}

test(
  'simulated days with kills, sleeps and faults store every point when requested, at the promised price and pace',
  async () =>
    await withRig(begin, async (rig) => {
      const soak = await begun(rig)
      using _ = soak.lives
      const diary: Diary = { broken: [], begun: [], budgets: new Map(), quotas: [], done: [] }
      expect(await soakThrough(rig, soak, diary)).toBe(Math.ceil(days / 10))
    }),
  300_000 + days * 600_000,
)
