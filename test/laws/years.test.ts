// @module-tag named
import { expect, test } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import type { Diagnosis } from '../../src/maintenance/upkeep/doctor.ts'
import { registryState } from '../../src/sources/registry/staging.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { loadCoverage, storedVersions, storedViolations } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { inWindow } from '../helpers/days.ts'
import { heldPoints } from '../helpers/ledgers.ts'
import { depsAt } from '../helpers/fetching.ts'
import { askedAgain, examined } from '../helpers/looking.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { type RegistryRig, withRegistryRig } from '../helpers/registry-rig.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { seeded } from '../helpers/random.ts'
import { makeViews, withViews } from '../helpers/views.ts'

const day = 86_400
const hour = 3600
const start = Date.UTC(2025, 0, 6) / 1000
const paths = ['blockchain/block_count_pit', 'addresses/active_count_pit']
/** `PITLAKE_YEARS_DAYS=365 PITLAKE_YEARS_SEED=7` for another and longer time. */
const days = Number(process.env['PITLAKE_YEARS_DAYS'] ?? 183)
const seed = Number(process.env['PITLAKE_YEARS_SEED'] ?? 20_251)

/** What is wrong today. */
type Fault =
  | { readonly kind: 'none' | 'outage' | 'midway' }
  | { readonly kind: 'refusal'; readonly status: 400 | 403 | 404; readonly path: string | null }
  | { readonly kind: 'stale'; readonly ago: number; readonly told: boolean }
  | { readonly kind: 'clock'; readonly off: number }
  /** The clock is ahead and the answers tell no time: nobody can know it then. */
  | { readonly kind: 'ahead'; readonly off: number }
  | { readonly kind: 'rewrite'; readonly n: number }

/** The provider's own history, and what happens to its answers. */
class World {
  readonly #random: () => number
  /** Points (path and day) that are not shown before an instant. */
  readonly late = new Map<string, number>()
  fault: Fault = { kind: 'none' }
  /** Days up to which every point was answered in full on a day without faults. */
  sound = 0
  /**
   * Runs until somebody asks doctor to mend what a clock ahead has dated; null while nothing of the future stands
   * there.
   */
  mendIn: number | null = null
  /** Points of the days between two runs of one wrong clock: to it they came late, and late is safe. */
  readonly doubtful = new Set<string>()
  /** The day of the run before. */
  asked = 0
  /** A few records of the other API. */
  readonly registry = new SmallRegistry()
  #left = 0
  answers = 0

  constructor(random: () => number) {
    this.#random = random
  }

  value(path: string, n: number): number {
    return n * 10 + paths.indexOf(path)
  }

  /** What stands in the history as it could be known at an instant. */
  shown(path: string, at: number): number[] {
    const ended = Math.floor((at - start) / day)
    return Array.from({ length: Math.max(0, ended) }, (_, n) => n).filter(
      (n) => (this.late.get(`${path} ${n}`) ?? 0) <= at,
    )
  }

  answer(own: OwnProvider, path: string, query: URLSearchParams): unknown {
    const { fault } = this
    const now = own.clock.now
    const stale = fault.kind === 'stale' ? fault.ago : fault.kind === 'midway' && this.answers++ > 0 ? 5 * day : 0
    const made = now - stale
    const date = new Date(made * 1000).toUTCString()
    const headers = {
      date: fault.kind === 'ahead' ? '' : date,
      ...(fault.kind === 'stale' && fault.told && { age: String(stale) }),
    }
    if (path === 'assets') return { status: 404, headers }
    if (fault.kind === 'outage') return { status: 503, headers }
    if (fault.kind === 'refusal' && (fault.path ?? path) === path) return { status: fault.status, text: 'no', headers }
    const all = this.shown(path, made).map((n) => ({
      t: start + n * day,
      v: this.value(path, n) + (fault.kind === 'rewrite' && fault.n === n ? 0.5 : 0),
    }))
    return { body: inWindow(query, all), headers }
  }

  /** Decides what happens on a day; some faults last. */
  begin(n: number): void {
    const random = this.#random
    this.answers = 0
    if (this.#left-- > 0) return
    this.#left = Math.floor(random() * 4)
    const draw = random()
    if (draw < 0.08) this.fault = { kind: 'outage' }
    else if (draw < 0.18)
      this.fault = {
        kind: 'refusal',
        status: ([400, 403, 404] as const)[Math.floor(random() * 3)] ?? 404,
        path: random() < 0.5 ? null : (paths[Math.floor(random() * paths.length)] ?? null),
      }
    else if (draw < 0.26) this.fault = { kind: 'stale', ago: Math.ceil(random() * 20) * day, told: random() < 0.6 }
    else if (draw < 0.3) this.fault = { kind: 'midway' }
    else if (draw < 0.4) {
      const offs = [50 * 365 * day, 40 * day, 2 * hour, 1800, -1800, -2 * hour, -3 * day]
      this.fault = { kind: 'clock', off: offs[Math.floor(random() * offs.length)] ?? 0 }
    } else if (draw < 0.42) this.fault = { kind: 'ahead', off: random() < 0.5 ? 50 * 365 * day : 40 * day }
    else if (draw < 0.52 && this.sound === n - 1 && n > 20 && !paths.some((path) => this.late.has(`${path} ${n - 4}`)))
      this.fault = { kind: 'rewrite', n: n - 4 }
    else this.fault = { kind: 'none' }
    if (random() < 0.15) {
      const path = paths[Math.floor(random() * paths.length)] ?? ''
      this.late.set(`${path} ${n - 1}`, start + n * day + Math.ceil(random() * 6) * day)
    }
  }
}

type Point = {
  readonly path: string
  readonly n: number
  readonly v: number
  readonly basis: string
}

const stored = async (root: string): Promise<Point[]> =>
  await heldPoints(root, `metric AS path, ((epoch(t)::BIGINT - ${start}) // ${day})::INTEGER AS n, v, basis`)

/** No window is settled behind the provider's now, and where all is said to be there each point is. */
async function proveCoverage(own: OwnProvider, points: readonly Point[]): Promise<void> {
  const ledger = await Ledger.openToRead(own.root)
  const coverage = loadCoverage(ledger)
  const committed = storedVersions(ledger).map(({ committed_at }) => committed_at)
  ledger.close()
  expect(committed).toEqual([...new Set(committed)].toSorted((a, b) => a - b))
  for (const path of paths) {
    const held = new Set(points.filter((point) => point.path === path).map(({ n }) => n))
    for (const row of [...coverage].flatMap(([id, rows]) => (id.startsWith(path) ? rows : []))) {
      expect(row.until).toBeLessThanOrEqual(own.clock.now)
      expect(row.asked_at).toBeLessThanOrEqual(own.clock.now + hour)
      if (row.state !== 'covered' || row.reason !== null) continue
      for (let n = (row.since - start) / day; n < (row.until - start) / day; n++)
        expect([path, n, held.has(n)]).toEqual([path, n, true])
    }
  }
}

const selection = { assets: ['BTC'], paths, since: start }

const offOf = ({ fault }: World): number => (fault.kind === 'clock' || fault.kind === 'ahead' ? fault.off : 0)

/** What becomes of the registry: changes that the feed tells, and once an epoch in whose blind window more changed. */
function tellRegistry({ registry }: World, n: number, random: () => number): void {
  const any = (most: number): number => Math.floor(random() * most)
  registry.world.put('products', `p${any(25)}`, { name: `Product of day ${n}`, issuer_id: `i${any(30)}` })
  if (random() < 0.3) registry.world.put('deployments', `d${any(40)}`, null)
  if (n < days / 2 || registry.epoch > 0) return
  registry.epoch = 1
  registry.world.put('products', `p${any(25)}`, null)
}

/** The names of its products, as the provider has them. */
function productsOf({ registry }: World): string[] {
  const held = [...registry.world.rows].filter(([key]) => key.startsWith('products '))
  return held.map(([key, { name }]) => `${key.slice('products '.length)} ${JSON.stringify(name)}`).toSorted()
}

/** One run on one day; runs that refuse to date anything by a wrong clock are what is wanted of them. */
async function fetchToday(own: OwnProvider, world: World): Promise<void> {
  const off = offOf(world)
  const local = (): number => own.clock.now + off
  const begun = performance.now()
  const ms = (): number => local() * 1000 + (performance.now() - begun)
  const deps = { now: ms, nowMicros: () => Math.floor(ms() * 1000) }
  const refused =
    (world.fault.kind === 'clock' && Math.abs(off) > hour) || (world.fault.kind === 'stale' && !world.fault.told)
  const run = own.fetch(selection, { deps, input: { now: Math.floor(local()) } })
  if (!refused) {
    await run
    return
  }
  // With nothing to ask nobody answers: then nothing is dated by any clock either.
  const ended = await run.then(
    ({ requests }) => `asked ${requests}`,
    (error: unknown) => (error instanceof LakeError ? error.kind : String(error)),
  )
  expect(['incomplete', 'asked 0']).toContain(ended)
}

async function upkeep(own: OwnProvider, n: number, world: World): Promise<void> {
  const place = { root: own.root, url: own.url, now: () => own.clock.now }
  const deps = { ...depsAt(place), signal: new AbortController().signal, threads: 1 }
  if (n % 7 === 3) {
    using ledger = await Ledger.open(own.root)
    await mergeSmallFiles(ledger, deps)
  }
  if (n % 7 === 5 && world.fault.kind === 'none') await askedAgain(own, { budget: 20 }, deps)
  if (n % 30 === 20)
    await vacuum(
      { root: own.root, keepSeconds: 30 * day, really: true },
      { ...deps, buildViews: async () => undefined },
    )
}

/** What a person does who reads what doctor says. */
const mend = async (own: OwnProvider): Promise<Diagnosis> => await examined(own.root, own.clock.now, { repair: true })

/** A year of days; `registry` polls the other API beside it. */
async function live(own: OwnProvider, world: World, registry: RegistryRig, random: () => number) {
  let rewrites = 0
  for (let n = 1; n <= days; n++) {
    own.clock.now = start + n * day + 2 * hour + Math.floor(random() * 6 * hour)
    // A machine that is off now and then.
    if (random() < 0.5) continue
    world.begin(n)
    const ahead = world.fault.kind === 'ahead'
    if (!ahead && world.mendIn !== null && world.mendIn-- <= 0) {
      await mend(own)
      world.mendIn = null
    }
    if (world.fault.kind === 'rewrite') rewrites++
    if (ahead && world.mendIn !== null)
      for (let day = world.asked - 1; day <= n; day++) for (const path of paths) world.doubtful.add(`${path} ${day}`)
    await fetchToday(own, world)
    world.asked = n
    if (n % 18 === 4 || (ahead && world.mendIn === null)) {
      tellRegistry(world, n, random)
      registry.clock.now = own.clock.now + (ahead ? offOf(world) : 0)
      await registry.sync({ root: own.root })
    }
    if (ahead) world.mendIn = Math.floor(random() * 3)
    if (world.fault.kind === 'none' && world.mendIn === null) world.sound = n
    await upkeep(own, n, world)
    if (n % 20 === 0 && world.mendIn === null) await proveCoverage(own, await stored(own.root))
  }
  return rewrites
}

test(`${days} days with whatever may happen (seed ${seed})`, { timeout: 600_000 }, async () =>
  withProvider(start + day + 2 * hour, async (own) => {
    const random = seeded(seed)
    const world = new World(random)
    own.answer((path, query) => world.answer(own, path, query))
    await withRegistryRig(
      start,
      async (registry) => {
        const rewrites = await live(own, world, registry, random)
        // Then all is well again: gaps are asked weekly.
        world.fault = { kind: 'none' }
        await mend(own)
        for (let n = 1; n <= 10; n++) {
          own.clock.now += day
          await own.fetch(selection)
        }
        await own.fetch(selection, { input: { gapsOnly: true } })
        registry.clock.now = own.clock.now
        await registry.sync({ root: own.root })
        await proveYear(own, world, rewrites)
        expect((await mend(own)).findings).toEqual([])
      },
      { instead: world.registry.answer },
    )
  }),
)

/** At the end the lake is what the providers have, and says of itself that it is sound. */
async function proveYear(own: OwnProvider, world: World, rewrites: number): Promise<void> {
  const points = await stored(own.root)
  await proveCoverage(own, points)
  const truth = paths
    .toSorted()
    .flatMap((path) => world.shown(path, own.clock.now).map((n) => `${path} ${n} ${world.value(path, n)}`))
  expect(points.map(({ path, n, v }) => `${path} ${n} ${v}`).toSorted()).toEqual(truth.toSorted())
  // Only what was hidden when it was due came late.
  const late = points.filter(({ basis }) => basis === 'observed').map(({ path, n }) => `${path} ${n}`)
  expect(late.filter((point) => !world.late.has(point) && !world.doubtful.has(point))).toEqual([])
  await makeViews(own.root)
  const now = `make_timestamptz(${(own.clock.now + hour) * 1_000_000}::BIGINT)`
  await withViews(own.root, async (engine) => {
    const products = await engine.rows<{ told: string }>(`SELECT concat(id, ' ', to_json(name)) AS told FROM products`)
    expect(products.map(({ told }) => told).toSorted()).toEqual(productsOf(world))
    // No instant of a clock ahead is left, and nothing that is missing is silent.
    for (const [view, column] of Object.entries({
      points: 'observed_at',
      versions: 'committed_at',
      'history.products': 'valid_from',
    }))
      expect([view, await engine.rows(`SELECT count(*) AS n FROM ${view} WHERE ${column} > ${now}`)]).toEqual([
        view,
        [{ n: 0n }],
      ])
    expect(await engine.rows('FROM gaps')).toEqual([])
  })
  using ledger = await Ledger.openToRead(own.root)
  expect(registryState(ledger).epoch).toBe(2)
  const clocks = ledger.statement("SELECT count(*) AS n FROM clock_findings WHERE kind = 'clock_ahead'").get()
  expect(clocks?.['n']).not.toBe(0)
  const violations = storedViolations(ledger).map(({ stored: was, offered }) => Number(offered) - Number(was))
  expect(violations.every((difference) => difference === 0.5)).toBe(true)
  expect(violations.length > 0).toBe(rewrites > 0)
}
