// @module-tag full
// @module-tag slow
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Engine, type Row } from '../../src/lake/store/engine.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import type { Interval } from '../../src/base/time.ts'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { arrivals, catalogue, type EveryViewLake, metrics, withEveryView } from '../helpers/lakes/every-view.ts'
import { randomOf } from '../helpers/random.ts'
import { withLag } from '../helpers/lags.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { knowable, type OraclePoint, oraclePoint, type Question } from '../helpers/pit-oracle.ts'
import { boundedOf, ledgerViews, type Probe, probesOf, tell, type Told } from '../helpers/probes.ts'
import { rounds, sample } from '../helpers/tiers.ts'
import { type Knowledge, truncationOf } from '../helpers/truncation.ts'
import { isoOf } from '../helpers/instants.ts'
import { makeViews, multiset } from '../helpers/views.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'

/*
 * `PITLAKE_CUTS` is at how many instants lakes are cut, a lake for each five hundred; `PITLAKE_CUTS_SEED` draws others.
 * Everything is asked at a first cut in the middle, and then each question at its turn, which is rarer where cuts are
 * many.
 */
const wanted = rounds('PITLAKE_CUTS', 2, 2)
const seed = Number(process.env['PITLAKE_CUTS_SEED'] ?? 1)
const perLake = 500
const rarer = Math.ceil(wanted / perLake)
/** Nothing but the questions whose names match: for a look at one view. */
const only = new RegExp(process.env['PITLAKE_CUTS_ONLY'] ?? '')

const zones = ['UTC', 'America/New_York', 'Asia/Kolkata', 'Pacific/Chatham']
const minute = 60_000_000

/** The same instant in every spelling that as_of takes, as SQL. */
const spellings: readonly ((at: number) => string)[] = [
  (at) => `'${isoOf(at)}'`,
  (at) => `'${isoOf(at).replace('Z', '').replace('T', ' ')}'`,
  (at) => `make_timestamptz(${at})`,
  (at) => `'${isoOf(at + 345 * minute).replace('Z', '+05:45')}'`,
  (at) => `make_timestamp(${at})`,
]

interface Cut extends Knowledge {
  readonly number: number
  readonly zone: string
  readonly asOf: string
}

/** Instants at, just before and just after what arrives, polls above all, and anywhere between. */
function cutsOf(lake: EveryViewLake, count: number, random: () => number): Cut[] {
  const all = arrivals(lake)
  const first = all[0] ?? 0
  const last = all.at(-1) ?? 0
  const [, poll = 0, , , , , middle = 0] = lake.commits
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const each = all.flatMap((at) => [at - 1, at, at + 1].map((near) => ({ near, place: random() })))
  const drawn = each.toSorted((a, b) => a.place - b.place)
  return Array.from({ length: count }, (_, number) => {
    const kind = number % 5
    const free = kind === 3 ? pick(lake.commits) + pick([-1, 0, 1]) : Math.floor(first + random() * (last - first))
    const near = drawn[number - 2 * Math.floor(number / 5)]?.near ?? free
    const at = [middle, poll - 1, poll][number] ?? (kind < 3 ? near : free)
    const zone = zones[number % zones.length] ?? 'UTC'
    const spelt = spellings[Math.floor(number / 4) % spellings.length]
    const [rule, registryBackfill] = number < 3 ? [false, false] : [random() < 0.4, random() < 0.25]
    return { at, rule, registryBackfill, parts: number % 2 === 0, number, zone, asOf: spelt?.(at) ?? '' }
  })
}

/**
 * Makes the relations that the decisions of the probes stand in: `d` anywhere, `now_0` and so on at the instant of the
 * cut.
 */
async function decide(engine: Engine): Promise<void> {
  const random = randomOf(seed + 7)
  // Most things become known at a multiple of ten minutes, those of the shortest interval within two days.
  const near = (n: number): number => {
    const slot = n % 3 === 0 ? 24 * 144 + random() * 300 : random() * 7000
    return Date.UTC(2026, 1, 1) * 1000 + Math.floor(slot) * 10 * minute + Math.floor(random() * 3) - 1
  }
  const assets = ['BTC', 'ETH', 'TOK', 'ONDO', 'unknown']
  const rows = Array.from({ length: 100 }, (_, n) => `('${assets[n % assets.length]}', make_timestamp(${near(n)}))`)
  await engine.run(
    `CREATE OR REPLACE TEMP TABLE d AS FROM (VALUES (NULL, NULL), ('BTC', NULL), ${rows.join(', ')}) AS decisions (asset, ts)`,
  )
}

/** Decisions that are made when the cut is made, by the time that they take. */
async function decideNow(engine: Engine, at: number, probes: readonly Probe[]): Promise<void> {
  for (const latency of new Set(probes.map((probe) => probe.latency)))
    await engine.run(`CREATE OR REPLACE TEMP TABLE now_${latency} AS
      SELECT asset, make_timestamptz(${at + latency}) AS ts FROM (VALUES ('BTC'), ('ETH'), ('TOK'), ('ONDO'), (NULL)) AS known (asset)`)
}

const settings = ({ rule, registryBackfill }: Knowledge): string =>
  `SET VARIABLE backfill = '${rule ? 'rule' : 'strict'}'; SET VARIABLE registry_backfill = ${registryBackfill}`

/** Where two engines answer otherwise: in full, for the first question that tells. */
async function differences(
  [one, two]: readonly [Engine, Engine],
  probes: readonly Probe[],
  fill: (probe: Probe) => string,
  about: string,
): Promise<Told[]> {
  const seen = await tell(one, probes, fill)
  const expected = await tell(two, probes, fill)
  const unlike = probes.filter((_, n) => seen[n]?.digest !== expected[n]?.digest)
  const [first] = unlike
  if (first === undefined) return expected
  const got = multiset(await one.rows(fill(first)))
  const want = multiset(await two.rows(fill(first)))
  const lines = [
    `${about}: ${unlike.map(({ name }) => name).join('; ')}`,
    ...got
      .filter((row) => !want.includes(row))
      .slice(0, 3)
      .map((row) => `too much: ${row}`),
    ...want
      .filter((row) => !got.includes(row))
      .slice(0, 3)
      .map((row) => `missing: ${row}`),
  ]
  throw new Error(lines.join('\n'))
}

/**
 * Cuts a lake at these instants: the whole one looking back answers as the one that holds no more. How many answers.
 */
async function cutLake(lake: EveryViewLake, cuts: readonly Cut[]): Promise<number> {
  using truncated = await truncationOf(lake, `${lake.root}-cut`)
  using whole = await Engine.open(inLake(lake.root, places.database), { readOnly: true, threads: 1 })
  const cut = truncated.engine
  const sides = [whole, truncated.engine] as const
  for (const engine of sides) await decide(engine)
  const every = (await probesOf(whole, ledgerViews)).filter(({ name }) => only.test(name))
  const probes = every
  const bounded = boundedOf(probes).filter(({ name }) => only.test(name))
  const all = await tell(whole, probes, anywhere)
  let count = 0
  for (const one of cuts) {
    const { at, number, zone, asOf } = one
    // What a part tells that is known before the whole is held where the cuts say so.
    const due = ({ name, turn }: Probe, n: number): boolean =>
      (number + n) % (turn * rarer) === 0 && (one.parts || !/components|own\/bars/.test(name))
    const about = `${isoOf(at)} ${zone} ${JSON.stringify(one)}`
    await truncated.cut(one)
    await cut.run(
      `${settings(one)}; SET VARIABLE as_of = ${one.registryBackfill || one.parts ? `make_timestamptz(${at})` : 'NULL'}`,
    )
    await whole.run(`SET TimeZone = '${zone}'; ${settings(one)}; SET VARIABLE as_of = ${asOf}`)
    const told = await differences(sides, number === 0 ? probes : probes.filter(due), anywhere, `as_of ${about}`)
    if (number === 0) expectBothSides(probes, told, all)
    count += told.length
    if (one.registryBackfill) continue
    await whole.run(`SET VARIABLE as_of = NULL`)
    const asked = bounded.filter(due)
    for (const engine of sides) await decideNow(engine, at, asked)
    const now = ({ sql, latency }: Probe): string =>
      sql.replaceAll('{d}', `now_${latency}`).replaceAll('{at}', `make_timestamptz(${at})`)
    count += (await differences(sides, asked, now, `decided at ${about}`)).length
    await whole.run(`SET VARIABLE as_of = ${asOf}`)
    await expectByDefinition(whole, lake, one)
  }
  return count
}

const { everyInterval, nested, plain, supply, bars, derived } = metrics

/** What is asked of the definition itself: a metric, an interval, and what its series have in common. */
const asked: readonly (readonly [string, Interval, Partial<PointRow>])[] = [
  ...(['10m', '1h', '24h', '1w', '1month'] as const).map((one) => [everyInterval, one, { network: 'eth' }] as const),
  [plain, '24h', {}],
  [nested, '24h', {}],
  [supply, '24h', { currency: 'native' }],
  ['price_usd', '24h', {}],
  ['price_usd', '1w', {}],
  [bars, '24h', {}],
  [derived, '24h', {}],
]
const options: readonly Question[] = [{}, { maxAge: 86_400_000_000 }, { latency: 900_000_000 }, { skipNulls: true }]

/** The points of a metric as the oracle sees them; a price is there when both of its parts are. */
function seenOf(lake: EveryViewLake, [metric, interval, of]: (typeof asked)[number], rule: boolean): OraclePoint[] {
  const rows = (name: string, same: Partial<PointRow>): OraclePoint[] =>
    lake.points
      .filter((row) => row.metric === name && row.interval === interval)
      .filter((row) => Object.entries(same).every(([key, value]) => row[key as keyof PointRow] === value))
      .map((row) => oraclePoint(row, 0, rule))
  if (metric !== 'price_usd') return rows(metric, of)
  const native = rows(supply, { currency: 'native' })
  return rows(supply, { currency: 'usd' }).flatMap((usd) => {
    const part = native.find((point) => point.asset === usd.asset && point.t === usd.t)
    if (part === undefined) return []
    const v = usd.v === null || part.v === null || part.v === 0 ? null : usd.v / part.v
    return [{ ...usd, v, available: Math.max(usd.available, part.available) }]
  })
}

/** A join and a window of the whole lake are what brute force finds among the points that the lake was made of. */
async function expectByDefinition(whole: Engine, lake: EveryViewLake, { at, rule, number }: Cut): Promise<void> {
  const one = asked[number % asked.length] as (typeof asked)[number]
  const question = { ...options[Math.floor(number / asked.length + number) % options.length], asOf: at }
  const points = seenOf(lake, one, rule)
  const decisions = await whole.rows<{ asset: string | null; us: bigint | null }>(
    'SELECT asset, epoch_us(ts) AS us FROM d',
  )
  const words = [
    ...(question.maxAge === undefined ? [] : [`max_age := to_microseconds(${question.maxAge})`]),
    ...(question.latency === undefined ? [] : [`latency := to_microseconds(${question.latency})`]),
    ...(question.skipNulls === undefined ? [] : ['skip_nulls := true']),
  ]
  const call = (macro: string, more: readonly string[]): string =>
    `SELECT asset, epoch_us(ts) AS us, epoch_us(t) AS t, epoch_us(available_at) AS known, v, o, epoch_us(age) AS age
     FROM ${macro}(${["'d'", `'${one[0]}'`, `'${one[1]}'`, ...more, ...words].join(', ')})`
  for (const n of [1, 4]) {
    const rows = await whole.rows(n === 1 ? call('pit_join', []) : call('pit_window', [String(n)]))
    const owing = decisions.flatMap(({ asset, us }) => {
      const ts = us === null ? null : Number(us)
      const fresh = knowable(points, asset, ts, question)
        .slice(0, n)
        .filter((point) => (ts ?? 0) - point.end <= (question.maxAge ?? Infinity))
      const told = fresh.map(({ t, available, v, o, end }) => ({ t, known: available, v, o, age: (ts ?? 0) - end }))
      const none = { t: null, known: null, v: null, o: null, age: null }
      return (told.length === 0 ? [none] : told).map((row) => ({ asset, us: ts, ...row }))
    })
    const plainly = rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, cell]) => [name, typeof cell === 'bigint' ? Number(cell) : cell]),
      ),
    )
    expect(multiset(plainly as Row[]), JSON.stringify([one, n, question])).toEqual(multiset(owing as Row[]))
  }
}

/**
 * Something is known of each question in the middle, and more or less in the end: nothing agrees because nothing is
 * there. Since when the registry is known is told once; the two cuts that follow stand on both sides of that.
 */
function expectBothSides(probes: readonly Probe[], then: readonly Told[], now: readonly Told[]): void {
  const empty = probes.filter((_, n) => then[n]?.rows === 0)
  // So it is with the notes of the registry; windows that were asked for obey no as_of before their points are due.
  const told = ({ name }: Probe): boolean => /^(?:"registry_start"|unresolved|question_notes\('\{"tables")/.test(name)
  const still = probes.filter((one, n) => then[n]?.digest === now[n]?.digest && !told(one))
  expect({ empty: empty.map(({ name }) => name), still: still.map(({ name }) => name) }).toEqual({
    empty: [],
    still: [],
  })
}

test('TIME 52: as_of = T answers like a lake that holds only what was knowable by T', async () => {
  let answers = 0
  let cuts = 0
  for (let made = 0, number = 0; made < wanted; made += perLake, number++) {
    await withEveryView(seed * 1000 + number, null, async (lake) => {
      try {
        const drawn = cutsOf(lake, Math.min(perLake, wanted - made), randomOf(seed * 77 + number))
        answers += await cutLake(lake, drawn)
        cuts += drawn.length
      } finally {
        rmSync(join(`${lake.root}-cut`), { recursive: true, force: true })
      }
    })
  }
  expect(answers).toBeGreaterThan((cuts / rarer) * 10)
  process.stdout.write(`cuts: ${cuts} of seed ${seed}, ${answers} pairs of answers alike\n`)
}, 7_200_000)

/** Which of three versions that follow one another are asked; the first one always. */
const versions = sample([0, 1, 2], 1)
/** Of how many of those one is asked again when the lake has become another one. */
const sparing = 2

/** What the newest version of a lake tells by a question of its own. */
interface Kept {
  readonly at: number
  readonly told: ReadonlyMap<string, Told>
}

async function open<T>(lake: Pick<EveryViewLake, 'root'>, work: (engine: Engine) => Promise<T>): Promise<T> {
  using engine = await Engine.open(inLake(lake.root, places.database), { readOnly: true, threads: 1 })
  return await work(engine)
}

/** The questions of the n-th version: every view, and each macro at some versions. */
async function questionsOf(engine: Engine, n: number): Promise<Probe[]> {
  await decide(engine)
  return (await probesOf(engine, [])).filter(({ turn }, i) => turn < 24 || (i + n) % 16 === 0)
}

const anywhere = ({ sql }: Probe): string => sql.replaceAll('{d}', 'd')

/** These are told by when they were, not by the commit that keeps them: between two commits there may be more. */
const byOwnClock = ['"requests"', '"runs"']

async function expectKept(
  lake: EveryViewLake,
  kept: readonly Kept[],
  [zone, after]: readonly [string, boolean],
  when: string,
  every = 1,
) {
  await open(lake, async (engine) => {
    await engine.run(`SET TimeZone = '${zone}'`)
    for (const [n, { at, told }] of kept.entries()) {
      if (n % every !== 0) continue
      const until = lake.commits.find((commit) => commit > at) ?? at + 1_000_000
      const probes = await questionsOf(engine, n)
      await engine.run(`SET VARIABLE observed_as_of = '${isoOf(after ? until - 1 : at)}'`)
      const again = await tell(engine, probes, anywhere)
      const unlike = probes
        .filter(({ name }, i) => again[i]?.digest !== told.get(name)?.digest)
        .filter(({ name }) => !after || !byOwnClock.includes(name))
      expect(
        unlike.map(({ name }) => name),
        `${when}, version of ${isoOf(at)}`,
      ).toEqual([])
    }
  })
}

test('TIME 53: observed_as_of = T answers what the newest version committed by T held', async () => {
  const kept: Kept[] = []
  let commits = 0
  const keep = async (root: string, at: number): Promise<void> => {
    const version = commits++
    if (version > 0 && !versions.includes(version % 3)) return
    await makeViews(root, { catalogue })
    const told = await open({ root }, async (engine) => {
      const probes = await questionsOf(engine, kept.length)
      const answers = await tell(engine, probes, anywhere)
      return new Map(probes.map(({ name }, n) => [name, answers[n] as Told]))
    })
    kept.push({ at, told })
  }
  await withEveryView(seed * 1000, keep, async (lake) => {
    const held = (name: string): (Told | undefined)[] => kept.map(({ told }) => told.get(name))
    for (const name of kept.at(-1)?.told.keys() ?? [])
      if (!name.startsWith('pit_') && !name.startsWith('resample'))
        expect(new Set(held(name).map((told) => told?.digest)).size, `${name} changes`).toBeGreaterThan(1)
    await expectKept(lake, kept, ['America/New_York', false], 'as it grew')
    const deps = rewriteDeps()
    deps.clock.now = (lake.commits.at(-1) ?? 0) / 1_000_000 + 86_400
    const changed = { ...withLag(plain, 86_400), links: catalogue.links }
    expect((await redate(lake.root, changed, deps)).partitions.length).toBeGreaterThan(3)
    await makeViews(lake.root, { catalogue })
    const dated = await open(lake, async (engine) => {
      const probes = await questionsOf(engine, 0)
      return (await tell(engine, probes, anywhere))[probes.findIndex(({ name }) => name === '"points"')]
    })
    expect(dated?.digest).not.toBe(kept.at(-1)?.told.get('"points"')?.digest)
    await expectKept(lake, kept, ['Asia/Kolkata', true], 'dated anew', sparing)
    await compact(lake.root, deps)
    const buildViews = async (): Promise<void> => void (await makeViews(lake.root, { catalogue }))
    // What the views name that somebody may have open stays.
    await buildViews()
    deps.clock.now += 86_400
    const freed = await vacuum({ root: lake.root, keepSeconds: 0, really: true }, { ...deps, buildViews })
    expect(freed.data.files).toBeGreaterThan(20)
    await expectKept(lake, kept, ['Pacific/Chatham', true], 'merged and freed', sparing)
  })
}, 7_200_000)
