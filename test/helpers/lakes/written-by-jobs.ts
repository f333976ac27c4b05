import { copyFileSync, cpSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseInstant } from '../../../src/base/time.ts'
import { foldJournal } from '../../../src/lake/ledger/checkpoint-writer.ts'
import type { Engine } from '../../../src/lake/store/engine.ts'
import { compact } from '../../../src/maintenance/upkeep/merge-jobs.ts'
import { redate } from '../../../src/maintenance/upkeep/redate.ts'
import { vacuum } from '../../../src/maintenance/upkeep/vacuum.ts'
import { parseFault } from '../../../src/sandbox/faults.ts'
import { createSandbox } from '../../../src/sandbox/sandbox.ts'
import { stamp } from '../../../src/trust/results/stamp.ts'
import { fetchKey, fetchOnce } from '../fetching.ts'
import { withLag } from '../lags.ts'
import { commitDeps } from './drafts.ts'
import { reading, writing } from '../ledgers.ts'
import { mounts } from '../mounts.ts'
import { temporaryFolder } from '../folders.ts'
import { withRegistryRig } from '../registry-rig.ts'
import { catalogue } from '../sandbox-client.ts'
import { SmallRegistry } from '../small-registry.ts'
import { makeViews, withViews } from '../views.ts'

/**
 * Small lakes of every kind:
 *
 * - `plain`: two fetches; a late point, a failed window, a rewrite that was refused
 * - `redated`: `plain`, dated anew by a changed rule
 * - `stamped`: `plain` with two stamped results beside the lake, merged between them
 * - `vacuumed`: `plain`, merged, 20 small top-ups, folded into a checkpoint, vacuumed
 * - `registry`: a registry with two epochs and two dated snapshots
 * - `both`: `plain` and `registry` in one lake
 */
export const presetNames = ['plain', 'redated', 'stamped', 'vacuumed', 'registry', 'both'] as const
export type PresetName = (typeof presetNames)[number]

/** The answers of a lake: number of rows and digest by the name of the question. */
export type Answers = Readonly<Record<string, { readonly rows: number; readonly digest: string | null }>>

/** What a preset lake answered when it was made, and its newest commit. */
export interface PresetFacts {
  readonly lake: string
  readonly version: number
  /** Unix microseconds. */
  readonly committed_at: number
  readonly asked: Answers
  /**
   * The same questions by what the lake held at an earlier instant (microseconds), if its files were dated anew since.
   */
  readonly earlier?: { readonly at: number; readonly asked: Answers }
}

/** A preset lake of this process, to be copied. */
interface MadeLake {
  /** The lake is its folder `lake`; results stand beside it. */
  readonly home: string
  readonly facts: PresetFacts
}

const made = new Map<PresetName, Promise<MadeLake>>()

/**
 * Gives a work a copy of a preset lake of its own (`<home>/lake`, results beside it), and what the lake answered when
 * it was made.
 */
export async function withPreset(
  name: PresetName,
  work: (root: string, home: string, facts: PresetFacts) => Promise<void>,
): Promise<void> {
  using home = temporaryFolder('preset')
  const facts = await copyPreset(name, home.path)
  await work(join(home.path, 'lake'), home.path, facts)
}

/** Copies a preset lake into a folder, `<home>/lake`, results beside it. */
export async function copyPreset(name: PresetName, home: string): Promise<PresetFacts> {
  const making = made.get(name) ?? makePreset(name)
  made.set(name, making)
  const { home: source, facts } = await making
  for (const file of readdirSync(source))
    if (file.endsWith('.parquet')) copyFileSync(join(source, file), join(home, file))
  // What names the folder that the lake was made in is derived anew.
  const left = /^(?:locks|lake\.duckdb|ledger\.sqlite-\w+)$/
  const root = join(source, 'lake')
  for (const entry of readdirSync(root))
    if (!left.test(entry))
      cpSync(join(root, entry), join(home, 'lake', entry), { recursive: true, preserveTimestamps: true })
  return facts
}

/** The folders of the lakes that this process made; they go with it. */
const homes = new DisposableStack()
process.once('exit', () => homes.dispose())

async function makePreset(name: PresetName): Promise<MadeLake> {
  const home = homes.use(temporaryFolder(`made-${name}`)).path
  const root = join(home, 'lake')
  const earlier = await makers[name](root)
  await makeViews(root)
  const { lake, version, committed_at } = await reading(root, (ledger) => ledger.head())
  const facts = await withViews(root, async (engine): Promise<PresetFacts> => {
    const asked = await answer(engine, { ...questions, ...ledgerQuestions })
    const told = { lake: lake ?? '', version, committed_at, asked }
    if (earlier === undefined) return told
    await engine.run(`SET VARIABLE observed_as_of = make_timestamptz(${earlier})`)
    return { ...told, earlier: { at: earlier, asked: await answer(engine, questions) } }
  })
  return { home, facts }
}

const day = 86_400

/** The clock of a lake that is being made, Unix seconds. */
interface Clock {
  now: number
}

const depsAt = (clock: Clock) => ({
  ...commitDeps({ nowMicros: () => clock.now * 1_000_000 }),
  signal: new AbortController().signal,
  threads: 1,
})

/** Fetches twice, with a late point, a failed window and a rewritten point between. */
async function twoFetches(root: string, clock: Clock): Promise<void> {
  await withProviderOf(7, clock, async ({ metrics, faults }) => {
    const place = { root, url: metrics, now: () => clock.now }
    faults('late@supply/current_pit:t=2024-02-20,shown=2024-03-03T12:00Z')
    await fetchOnce(place, presetSelection)
    clock.now += 3 * day
    faults('status-500@addresses/supply*', 'rewrite@addresses/*:asset=ETH,t=2024-02-28,v=101')
    await fetchOnce(place, presetSelection)
    faults()
  })
}

/** Tells a registry in three chapters, two days apart. */
async function threeChapters(root: string, since = begun): Promise<void> {
  let told = registryStory(0).answer
  await withRegistryRig(
    since,
    async (rig) => {
      for (const chapter of [0, 1, 2]) {
        told = registryStory(chapter).answer
        if (chapter === 0) await rig.snapshot({ root })
        await rig.sync({ root })
        rig.clock.now += 2 * day
      }
    },
    { instead: (request) => told(request) },
  )
}

/** Makes each preset in a folder; gives an instant (microseconds) at which the lake shall be asked too. */
const makers: Readonly<Record<PresetName, (root: string) => Promise<number | undefined>>> = {
  plain: async (root) => {
    await twoFetches(root, { now: begun })
    return undefined
  },
  redated: async (root) => {
    const clock = { now: begun }
    await twoFetches(root, clock)
    const before = clock.now
    clock.now += day
    await redate(root, withLag('addresses/active_count_pit', 5400, 'rule'), depsAt(clock))
    return before * 1_000_000 + 60_000_000
  },
  stamped: async (root) => {
    const clock = { now: begun }
    await twoFetches(root, clock)
    await makeViews(root)
    const query = `SELECT asset, count(*) AS points, sum(v) AS v FROM points GROUP BY asset ORDER BY asset`
    const run = { sleep: async () => await Promise.resolve() }
    const result = (name: string): string => join(dirname(root), `${name}.parquet`)
    const deps = depsAt(clock)
    await stamp({ root, catalogue, query, out: result('result'), variables: {} }, run, deps)
    clock.now += day
    await compact(root, deps)
    clock.now += day
    await stamp({ root, catalogue, query, out: result('later'), variables: { as_of: '2024-02-10' } }, run, deps)
    return undefined
  },
  vacuumed: async (root) => {
    const clock = { now: begun }
    const deps = depsAt(clock)
    await twoFetches(root, clock)
    const few = { ...presetSelection, paths: ['supply/current_pit'], assets: ['BTC'] }
    const topUp = async (): Promise<void> =>
      await withProviderOf(7, clock, async ({ metrics }) => {
        clock.now += day
        await fetchOnce({ root, url: metrics, now: () => clock.now }, few)
      })
    for (let n = 0; n < 6; n++) await topUp()
    await compact(root, deps)
    for (let n = 0; n < 20; n++) await topUp()
    await writing(root, async (ledger) => await foldJournal(ledger, deps, 1))
    await makeViews(root)
    clock.now += day
    const buildViews = async (): Promise<unknown> => await makeViews(root)
    const freed = await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews })
    if (freed.data.files === 0 || freed.journal.files === 0) throw new Error('nothing was vacuumed')
    return undefined
  },
  registry: async (root) => {
    await threeChapters(root)
    return undefined
  },
  both: async (root) => {
    await twoFetches(root, { now: begun })
    await threeChapters(root, begun + 4 * day)
    return undefined
  },
}

const series = 'metric, asset, "interval", currency, exchange, network'

/**
 * The questions that every lake is asked, whatever it holds; each names its columns, since views gain some at the end.
 */
export const questions: Readonly<Record<string, string>> = {
  points: `SELECT ${series}, t, available_at, observed_at, v, o, basis, extra, computed_at FROM points`,
  components: `SELECT ${series}, t, available_at, observed_at, component, v, basis FROM components`,
  metric_assets: 'SELECT id, symbol FROM metric_assets',
  ...Object.fromEntries(
    [
      'issuers',
      'assets',
      'products',
      'deployments',
      'venues',
      'derivatives',
      'provenance',
      'documents',
      'listings',
    ].map((table) => [`history.${table}`, `SELECT valid_from, valid_to, op, record FROM history.${table}`]),
  ),
}

/** Questions about the ledger: they answer otherwise after every job. */
export const ledgerQuestions: Readonly<Record<string, string>> = {
  coverage: `SELECT ${series}, since, until, state, reason FROM coverage`,
  violations: `SELECT ${series}, t, kind, stored, offered FROM violations`,
  clock_findings: `SELECT metric, asset, t, kind FROM clock_findings`,
  snapshots: 'SELECT snapshot_date, id FROM snapshots.products',
  universe: 'SELECT product_id, status FROM universe',
}

/** Asks each question and digests the rows in the order of their text. */
export async function answer(engine: Engine, asked: Readonly<Record<string, string>>): Promise<Answers> {
  await engine.run("SET TimeZone = 'UTC'")
  const answers: Record<string, { rows: number; digest: string | null }> = {}
  for (const [name, sql] of Object.entries(asked)) {
    const text = `SELECT CAST(r AS VARCHAR) AS line FROM (${sql}) r`
    const [row] = await engine.rows(
      `SELECT count(*) AS n, md5(string_agg(line, chr(10) ORDER BY line)) AS digest FROM (${text})`,
    )
    const digest = row?.['digest']
    answers[name] = { rows: Number(row?.['n']), digest: typeof digest === 'string' ? digest : null }
  }
  return answers
}

/** The clock at which the preset lakes were begun, Unix seconds. */
export const begun = parseInstant('2024-03-01T06:00Z') as number

/** What the lakes hold: numbers of two kinds, objects, two currencies, two assets. */
export const presetSelection = {
  assets: ['BTC', 'ETH'],
  paths: ['supply/current_pit', 'addresses/active_count_pit', 'addresses/supply_distribution_relative_pit'],
  intervals: ['24h' as const],
  currencies: ['native', 'usd'],
  since: parseInstant('2024-01-01') as number,
}

/** A sandbox of a seed on a port, with a clock that is set by hand. */
export async function withProviderOf(
  seed: number,
  clock: { now: number },
  work: (urls: { metrics: string; registry: string; faults: (...texts: readonly string[]) => void }) => Promise<void>,
): Promise<void> {
  const sandbox = createSandbox({
    catalogue,
    seed,
    now: () => clock.now,
    sleep: async (ms) => await setTimeout(Math.min(ms, 50)),
    scale: 'demo',
    metricsKey: fetchKey,
    registryKey: fetchKey,
  })
  const mounted = await mounts.find((mount) => mount.name === 'port')?.start(sandbox)
  if (!mounted) throw new Error('no port mount')
  try {
    const faults = (...texts: readonly string[]): void => sandbox.setFaults(texts.map(parseFault))
    await work({ metrics: mounted.metricsUrl, registry: mounted.registryUrl, faults })
  } finally {
    await mounted.stop()
  }
}

/** The registry of the lake with two epochs, told up to a chapter (0, 1, 2; 3 is for whoever tops it up). */
export function registryStory(chapter: number): { readonly world: SmallRegistry; readonly answer: typeof said } {
  const world = new SmallRegistry()
  if (chapter >= 1) {
    world.world.put('products', 'p3', { name: 'Product 3, renamed', issuer_id: 'i3' })
    world.world.put('products', 'p20', { name: 'Product 20', issuer_id: 'i4', further: { notes: ['x', null] } })
    world.world.put('issuers', 'i29', null)
  }
  if (chapter >= 2) {
    world.epoch = 1
    world.world.put('products', 'p5', { name: 'Product 5 of the second epoch', issuer_id: 'i5' })
    world.world.put('deployments', 'd7', null)
  }
  if (chapter >= 3) world.world.put('products', 'p21', { name: 'Product 21', issuer_id: 'i1' })
  const said = (request: Request): Response => {
    const response = world.answer(request)
    response.headers.set('x-pitlake-sandbox', '5')
    return response
  }
  return { world, answer: said }
}
