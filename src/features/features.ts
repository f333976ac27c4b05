import { type Catalogue, isOwn } from '../catalog/catalogue.ts'
import { definitionText, type FeatureVersion, keptFeature, type PlacedFeature } from '../catalog/features.ts'
import { exportRule } from '../catalog/sources.ts'
import { gravestOf, LakeError, usage } from '../errors.ts'
import { commit } from '../ledger/commit.ts'
import type { Json } from '../ledger/entry.ts'
import { heldState, heldSeries, heldWeekStart } from '../ledger/held.ts'
import { type JobDeps, type Run, withLake } from '../ledger/job.ts'
import { Ledger } from '../ledger/ledger.ts'
import { heldLost } from '../ledger/lost.ts'
import { openSpool } from '../ledger/sweep.ts'
import { type Difference, proveNoLookahead } from '../lookahead/lookahead.ts'
import { leakSentence } from '../lookahead/sentence.ts'
import { openWorlds } from '../lookahead/world.ts'
import { commitRows } from '../own/import.ts'
import { readRows } from '../own/rows.ts'
import { featurePrefix, ownPrefix, ownRows } from '../points/own-rows.ts'
import { carry } from '../query/beside.ts'
import { openQuery, versionOf } from '../query/lake.ts'
import type { RunDeps } from '../query/run.ts'
import { isBegun } from '../store/begin.ts'
import { columnsOf } from '../store/parquet.ts'
import { Engine } from '../store/engine.ts'
import { hint } from '../suggestion.ts'
import { ceil, floor, formatInstant, type Instant, step } from '../time.ts'
import { buildViews } from '../views/build.ts'
import { arguedOf, bringGrid, featuresIn, namedFeatures, plannedOver } from './grid.ts'
import { type Due, selectOf, valuesOf, waitsFor } from './values.ts'

type KeptFeature = Readonly<ReturnType<typeof keptFeature.parse>>

/** What features are brought up to date with. */
interface FeaturesInput {
  readonly root: string
  readonly catalogue: Catalogue
  /** All where none is named. */
  readonly names: readonly string[]
  readonly within: Pick<RunDeps, 'signal' | 'sleep'>
}

/** How a feature stands. */
export interface FeatureTold {
  /** The metric. */
  readonly name: string
  /** Which of its definitions it is, counted from 1. */
  readonly version: number
  /** Whether its plan proves that it looks nowhere ahead, or trials have not met that it does; `failed`: it cannot run. */
  readonly status: 'proved' | 'tested' | 'refused' | 'undecided' | 'failed'
  /** Why it is not computed, or what stands in the way of a proof. */
  readonly reason: string | null
  /** Of a leak: the first row that gives it away. */
  readonly difference: Difference | null
  readonly rows_added: number
  /** The last instant of its grid that was computed. */
  readonly until: string | null
  readonly waits_for: string | null
}

interface Job extends FeaturesInput {
  readonly run: Run
  readonly deps: JobDeps
}

/** A feature with what its lake keeps of it, and which of its versions the catalogue declares. */
interface Known extends PlacedFeature {
  readonly name: string
  readonly path: string
  readonly kept: KeptFeature
  /** Its place among the versions. */
  readonly at: number
  /** Whether it was accepted before. */
  readonly held: boolean
  readonly current: FeatureVersion
}

/** Computes what is due of the declared features, one after the other; what is wrong with one leaves the others alone. */
export async function bringFeatures(input: FeaturesInput, deps: JobDeps) {
  return await withLake({ root: input.root, name: 'features', lock: 'import' }, deps, async (run) => {
    const names = chosen(input)
    const told: FeatureTold[] = []
    const rows = (): number => told.reduce((sum, { rows_added }) => sum + rows_added, 0)
    await run.begin({ features: names }, () => ({ points: rows() }))
    const errors: LakeError[] = []
    for (const name of names) {
      const found = input.catalogue.features.get(name)
      if (found === undefined) continue
      const known = knownAs(run.ledger, name, found)
      const taken = input.catalogue.endpoints.get(known.path)
      try {
        const ring = ringOf(input.catalogue, [name])
        if (ring !== undefined)
          throw usage('sql', {
            expected: 'what others tell',
            got: ring.length > 2 ? `a ring: ${ring.join(' reads ')}` : `${known.path} itself`,
          })
        if (taken && !isOwn(taken)) throw usage(known.path, { expected: 'a name of its own', got: taken.source })
        told.push(await brought({ ...input, run, deps }, known))
      } catch (error) {
        if (!(error instanceof LakeError) || error.kind !== 'usage') throw error
        const complaints = error.complaints.map((one) => ({ ...one, subject: `${found.where}: ${one.subject}` }))
        errors.push(new LakeError('usage', complaints))
        told.push({ ...bare(known), status: 'failed', reason: error.message })
      }
    }
    const error = gravestOf([...told.map(verdictOf), ...errors])
    return { value: { told, error }, stopped_by: null, error }
  })
}

/** The features of which something is to be computed, or that were not accepted yet; a lake without any is not even opened. */
export async function dueFeatures({ root, catalogue }: Pick<FeaturesInput, 'root' | 'catalogue'>, now: Instant) {
  if (catalogue.features.size === 0 || !isBegun(root)) return []
  using ledger = await Ledger.openToRead(root)
  if (ledger.head().version === 0) return []
  return chosen({ catalogue, names: [] }).filter((name) => {
    const placed = catalogue.features.get(name)
    const known = placed && knownAs(ledger, name, placed)
    if (!known?.held || !isCurrent(known)) return true
    const { from, to } = dueOf(known, now, ledger)
    return from <= to
  })
}

function verdictOf({ name, status, reason }: FeatureTold): LakeError | null {
  const got = reason ?? undefined
  if (status === 'refused')
    return new LakeError('integrity', {
      subject: `${name} looks ahead`,
      got,
      next: 'docs/trust.md shows how to mend it',
    })
  if (status !== 'undecided') return null
  return new LakeError('incomplete', { subject: `${name} is undecided`, got, next: 'mend it, then pitlake features' })
}

/** The features that are named, each behind those that it reads. */
function chosen({ catalogue, names }: Pick<FeaturesInput, 'catalogue' | 'names'>): string[] {
  const all = [...catalogue.features.keys()]
  const bareNames = names.map((name) => name.replace(new RegExp(`^${featurePrefix}`), ''))
  const [unknown = 'none'] = bareNames.filter((name) => !all.includes(name))
  if (all.length === 0)
    throw usage('features', {
      expected: '`features:` in a catalogue that pitlake.yaml names',
      got: 'none',
      next: 'docs/features.md shows how',
    })
  if (unknown !== 'none')
    throw usage('features', { expected: `one of ${all.join(', ')}`, got: unknown, next: hint(unknown, all) })
  const sorted: string[] = []
  const seen = new Set<string>()
  const take = (name: string): void => {
    if (seen.has(name)) return
    seen.add(name)
    readBy(catalogue, name).forEach(take)
    if (bareNames.length === 0 || bareNames.includes(name)) sorted.push(name)
  }
  all.forEach(take)
  return sorted
}

const readBy = ({ features }: Catalogue, name: string): string[] =>
  [...namedFeatures(features.get(name)?.feature.sql ?? '')].filter((other) => features.has(other))

/** The way from a feature over those that each reads back to itself; undefined where there is none. */
function ringOf(catalogue: Catalogue, via: readonly string[], seen = new Set<string>()): readonly string[] | undefined {
  for (const name of readBy(catalogue, via.at(-1) ?? '')) {
    if (name === via[0]) return [...via, name].map((one) => `${featurePrefix}${one}`)
    const ring = seen.has(name) ? undefined : ringOf(catalogue, [...via, name], seen.add(name))
    if (ring !== undefined) return ring
  }
  return undefined
}

function knownAs(ledger: Ledger, name: string, placed: PlacedFeature): Known {
  const { feature } = placed
  const path = `${featurePrefix}${name}`
  const state = heldState(ledger, path)
  const none = { mapping: {}, files: [], intervals: [], currencies: [], exchanges: [], networks: [], versions: [] }
  const kept: KeptFeature = state === undefined ? none : keptFeature.parse(state)
  const reads = featuresIn(ledger, feature.sql)
  const place = kept.versions.findIndex((one) => definitionText(one, one.reads) === definitionText(feature, reads))
  const at = place < 0 ? kept.versions.length : place
  const current = kept.versions[at] ?? { ...feature, reads, first: firstOf(ledger, feature), through: null }
  return { ...placed, name, path, kept, at, held: place >= 0, current }
}

/** Where the grid of a new version begins. */
function firstOf(ledger: Ledger, { since, grid }: PlacedFeature['feature']): Instant {
  const read = [...heldSeries(ledger).values()].filter(({ metric }) => !metric.startsWith(featurePrefix))
  const begins = since ?? read.reduce((least, { first_t }) => Math.min(least, first_t ?? least), Infinity)
  return Number.isFinite(begins) ? ceil(begins, grid, heldWeekStart(ledger)) : 0
}

/** The version as the series are told apart by it. */
const numberOf = ({ at }: Known): string => `v${at + 1}`

/** Whether joins take this version already, or it has no value yet. */
const isCurrent = (known: Known): boolean =>
  known.current.through === null || known.kept.networks[0] === numberOf(known)

const bare = ({ path, at, current }: Known): FeatureTold => ({
  name: path,
  version: at + 1,
  status: 'undecided',
  reason: null,
  difference: null,
  rows_added: 0,
  until: current.through === null ? null : formatInstant(current.through),
  waits_for: null,
})

/** Computes what is due of one feature, if it looks nowhere ahead; again where another commit came in between. */
async function brought(job: Job, known: Known): Promise<FeatureTold> {
  const { run, deps, catalogue, root, within } = job
  for (let tries = 0; tries < 5; tries++) {
    await buildViews(run.ledger, { catalogue, deps })
    using session = await openQuery(root, { threads: 1 })
    const rundeps: RunDeps = { folder: root, ...within }
    const now = Math.floor(deps.nowMicros() / 1_000_000)
    const due = dueOf(known, now, run.ledger)
    const judged = await judge(session, known, due, rundeps)
    const proved = judged.status === 'proved'
    if (!proved && judged.status !== 'tested') return judged
    const waits = await waitsFor(session, due, now, datedIn(run.ledger))
    const to = waits === null ? due.to : step(waits.at, known.current.grid, -1)
    const told = { ...judged, waits_for: waits && `${waits.metric} ${waits.asset} at ${formatInstant(waits.at)}` }
    if (to < due.from && isCurrent(known)) return told
    const added = await computed(job, known, session, { ...due, to, proved })
    if (added !== undefined) return { ...told, ...added }
  }
  throw new LakeError('busy', { subject: known.path, got: 'a lake that others change', next: 'pitlake features' })
}

/** Own data that says itself when it was known: no rule tells for what to wait. */
function datedIn(ledger: Ledger): string[] {
  const own = [...ownRows(ledger)].filter(([path]) => path.startsWith(ownPrefix))
  const dated = own.filter(
    ([, { mapping }]) => mapping.available_at ?? mapping.vintage ?? mapping.available === exportRule,
  )
  return dated.map(([path]) => path)
}

function dueOf({ current, path }: Known, now: Instant, ledger: Ledger): Due {
  const { grid, latency, first, through } = current
  const weekStart = heldWeekStart(ledger)
  const own = [...heldSeries(ledger).values()].flatMap(({ id, metric }) => (metric === path ? [id] : []))
  // What was lost with a file is computed again.
  const from = through === null || heldLost(ledger, own).size > 0 ? first : step(through, grid, 1)
  return { feature: current, from, to: floor(now - latency, grid, weekStart), weekStart }
}

/** Whether a feature may be computed. One that was accepted stays so: whether its plan proves it is seen at each run. */
async function judge(session: Engine, known: Known, due: Due, run: RunDeps): Promise<FeatureTold> {
  const { current } = known
  const { sql, assets } = current
  await bringGrid(session, { ...current, last: due.to })
  await selectOf(session, sql, run)
  const planned = await plannedOver(session, sql, assets)
  const open = async (threads = 1): Promise<Engine> => {
    const worlds = await openWorlds(run.folder, { threads })
    await bringGrid(worlds, { ...current, last: due.to })
    return worlds
  }
  const trial = { ts: 'ts', labels: [], tolerance: 0, cutoffs: 50, control: 5 }
  const proof = known.held
    ? { ...(await arguedOf(session, current)), ...accepted }
    : await proveNoLookahead(open, { ...trial, sql, ...(planned && { planned }) }, run)
  const { verdict, proved, unproved, differences } = proof
  const told = bare(known)
  if (verdict === 'clean')
    return { ...told, status: proved ? 'proved' : 'tested', reason: unproved && `${unproved.what}: ${unproved.why}` }
  const [difference = null] = differences
  const reason = [proof.reason, difference && leakSentence(difference)].filter((part) => part !== null).join(': ')
  return { ...told, status: verdict === 'leak' ? 'refused' : 'undecided', reason, difference }
}

const accepted = { verdict: 'clean', differences: [], reason: null } as const

/** Computes and commits; undefined where the lake went on meanwhile. */
async function computed(job: Job, known: Known, session: Engine, due: Parameters<typeof valuesOf>[1]) {
  const { run, deps, catalogue, root, within } = job
  const version = await versionOf(session)
  await using spool = await openSpool(root, run.id, deps)
  using engine = await Engine.open(':memory:', { tempDirectory: spool.file('duckdb') })
  const { table, values, keys } = await valuesOf(session, due, { folder: root, ...within })
  const count = await carry(session, `FROM ${table} ORDER BY ALL`, engine, 'feature_rows')
  const number = numberOf(known)
  const through = Math.max(due.to, known.current.through ?? due.to)
  const until = formatInstant(through)
  const [value] = values
  const mapping = {
    ...Object.fromEntries(keys.map((key) => [key, key])),
    ...(!keys.includes('asset') && { asset: '=MARKET' }),
    network: `=${number}`,
    t: 'ts',
    timestamp: 'interval_end' as const,
    interval: due.feature.grid,
    ...(values.length === 1 ? { value } : { components: [...values] }),
    // The rule, too: what is not computed yet is not late before.
    available: `end+${due.feature.latency}s`,
    available_at: 'known',
  }
  const { kept, feature, at } = known
  const versions = kept.versions.toSpliced(at, 1, { ...known.current, through })
  const first = <T>(one: T, all: readonly T[]): T[] => [...new Set([one, ...all])]
  const row: KeptFeature = {
    ...kept,
    about: feature.why,
    mapping,
    intervals: first(due.feature.grid, kept.intervals),
    networks: first(number, kept.networks),
    versions,
  }
  if (count === 0) {
    const state = { [known.path]: JSON.parse(JSON.stringify(row)) as Json }
    const synthetic = run.ledger.head().provider?.synthetic ?? false
    const draft = { job: run.job, run: run.id, provider: { synthetic }, state }
    const made = await commit(run.ledger, async (ticket) => (ticket.version === version + 1 ? draft : null), deps)
    return made.made ? { until, rows_added: 0 } : undefined
  }
  const given = {
    format: 'query',
    relation: 'feature_rows',
    files: [],
    columns: await columnsOf(engine, 'feature_rows'),
  } as const
  const rows = await readRows(engine, given, mapping, due.weekStart)
  const importing = { run, deps, spool, engine, catalogue, rows, path: known.path, row, renewed: true }
  const { done, version: made } = await commitRows(importing, version)
  // After a loss of files they were computed anew.
  if (done && done.violations > 0)
    throw new LakeError('integrity', {
      subject: `stored values of ${known.path} differ`,
      next: 'pitlake violations list',
    })
  return done && { until, rows_added: made.points_added }
}
