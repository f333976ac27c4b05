import { isDeepStrictEqual } from 'node:util'
import { type Catalogue, isOwn, type Placed } from '../../catalog/catalogue.ts'
import {
  definitionOf,
  type FeatureVersion,
  keptFeature,
  type DeclaredFeature,
  type Unrequested,
} from '../../catalog/features.ts'
import { exportRule } from '../../catalog/sources.ts'
import { gravestOf, LakeError, usage } from '../../base/errors.ts'
import { loadCoverage, storedState, storedSeries, storedWeekStart } from '../../lake/ledger/index-queries.ts'
import { type JobDeps, type Run, withLake } from '../../lake/ledger/job.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { storedLosses } from '../../lake/ledger/lost-points.ts'
import { type Difference, proveNoLookahead } from '../lookahead/lookahead.ts'
import { leakSentence } from '../lookahead/sentence.ts'
import { openWorlds } from '../lookahead/world.ts'
import { takeRows } from '../../sources/user-files/draft.ts'
import { readRows } from '../../sources/user-files/rows.ts'
import { featurePrefix, ownPrefix, ownRows } from '../../sources/points/own-rows.ts'
import { carry } from '../../query/row-comparison.ts'
import { openQuery, versionOf } from '../../query/lake.ts'
import type { RunDeps } from '../../query/run.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { hint } from '../../base/suggestion.ts'
import { ceil, floor, formatInstant, type Instant, step } from '../../base/time.ts'
import { buildViews } from '../../query/views/build.ts'
import { arguedOf, bringGrid, featuresIn, namedFeatures, plannedOver } from './grid.ts'
import { type Due, type DueValues, readFeatureQuery, unrequestedBy, valuesOf, waitsFor } from './values.ts'

/** A feature as the lake stores it. Derived from its zod shape, which reads it. */
type KeptFeature = Readonly<ReturnType<typeof keptFeature.parse>>

/** A lake, its catalogue and the features to bring up to date. */
interface FeaturesInput {
  readonly root: string
  readonly catalogue: Catalogue
  /** Names of the features; all if none is named. */
  readonly names: readonly string[]
  readonly within: Pick<RunDeps, 'signal' | 'sleep'>
}

/** State of a feature. */
export interface FeatureTold {
  /** Path of the series, `feature/NAME`. */
  readonly name: string
  /** Number of its definition, from 1. */
  readonly version: number
  /** `proved`, `tested`, `refused` (it looks ahead), `undecided` or `failed` (it cannot run). */
  readonly status: 'proved' | 'tested' | 'refused' | 'undecided' | 'failed'
  /** Why it was not computed, or what prevents a proof; null if there is nothing to report. */
  readonly reason: string | null
  /** First row that differs; null unless the verdict is a leak. */
  readonly difference: Difference | null
  /** New points. */
  readonly rows_added: number
  /** Last `ts` of its grid that was computed; null if none was. */
  readonly until: string | null
  /** What it waits for; null if nothing. */
  readonly waits_for: string | null
  /** Series that the earlier version lacked and for which this version is computed; null if there is none. */
  readonly recomputed_for: string | null
}

interface Job extends FeaturesInput {
  readonly run: Run
  readonly deps: JobDeps
}

/** A feature with what its lake keeps of it, and which of its versions the catalogue declares. */
interface KnownFeature {
  readonly feature: DeclaredFeature
  readonly name: string
  readonly path: string
  readonly kept: KeptFeature
  /** Position among the versions. */
  readonly at: number
  /** Whether it was accepted before. */
  readonly held: boolean
  readonly current: FeatureVersion
  /** Series that the earlier version lacked and that are resolved now; null if that is no reason for this version. */
  readonly missed: Unrequested | null
}

/** Computes the due values of the declared features, one after the other; an error in one leaves the others alone. */
export async function bringFeatures(input: FeaturesInput, deps: JobDeps) {
  return await withLake({ root: input.root, name: 'features', lock: 'import' }, deps, async (run) => {
    const all = chooseFeatures(input.catalogue, input.names)
    const reports: FeatureTold[] = []
    const rows = (): number => reports.reduce((sum, { rows_added }) => sum + rows_added, 0)
    await run.begin({ features: all.map(([name]) => name) }, () => ({ points: rows() }))
    const errors: LakeError[] = []
    for (const [name, { row, where }] of all) {
      const feature = loadFeature(run.ledger, name, row)
      try {
        refuseRingOrTakenName(input.catalogue, feature)
        const awaited = waitForImport(run.ledger, feature)
        reports.push(awaited ?? (await computeFeature({ ...input, run, deps }, feature)))
      } catch (error) {
        if (!(error instanceof LakeError) || error.kind !== 'usage') throw error
        const complaints = error.complaints.map((complaint) => ({
          ...complaint,
          subject: `${where}: ${complaint.subject}`,
        }))
        errors.push(new LakeError('usage', complaints))
        reports.push({ ...bare(feature), status: 'failed', reason: error.message })
      }
    }
    const error = gravestOf([...reports.map(verdictOf), ...errors])
    return { value: { told: reports, error }, stopped_by: null, error }
  })
}

/**
 * Reports a feature that reads user data which this lake has not imported yet: it waits, and is no mistake. Null for
 * any other feature.
 */
function waitForImport(ledger: Ledger, feature: KnownFeature): FeatureTold | null {
  const named = feature.feature.sql.match(new RegExp(`\\b${ownPrefix}[\\w/]+`, 'g')) ?? []
  const imported = ownRows(ledger)
  const missing = [...new Set(named)].filter((metric) => !imported.has(metric))
  if (missing.length === 0) return null
  return { ...bare(feature), waits_for: `${missing.join(', ')}: no import has brought it yet (pitlake import)` }
}

/** Refuses one that reads itself, and one whose name a catalogue has otherwise. */
function refuseRingOrTakenName({ features, endpoints }: Catalogue, { name, path }: KnownFeature): void {
  const ring = dependenciesOf(features, name).get(name)
  const names = ring?.map((ringName) => `${featurePrefix}${ringName}`) ?? []
  if (ring)
    throw usage('sql', {
      expected: 'a query over other data than its own values',
      got: names.length > 2 ? `a circle: ${names.join(' reads ')}` : `${path} itself`,
    })
  const endpoint = endpoints.get(path)
  if (endpoint && !isOwn(endpoint)) throw usage(path, { expected: 'a name of its own', got: endpoint.source })
}

/**
 * Names of the features of which something is to be computed, or that were not accepted yet. A lake is not opened
 * without features.
 */
export async function dueFeatures(
  { root, catalogue }: Pick<FeaturesInput, 'root' | 'catalogue'>,
  now: Instant,
): Promise<readonly string[]> {
  if (catalogue.features.size === 0 || !isBegun(root)) return []
  using ledger = await Ledger.openToRead(root)
  if (ledger.head().version === 0) return []
  return chooseFeatures(catalogue, []).flatMap(([name, { row }]) => {
    const known = loadFeature(ledger, name, row)
    const { from, to } = dueOf(known, now, ledger)
    return known.held && isCurrent(known) && from > to ? [] : [name]
  })
}

function verdictOf({ name, status, reason, waits_for }: FeatureTold): LakeError | null {
  if (status === 'undecided' && waits_for !== null) return null
  const got = reason ?? undefined
  if (status === 'refused')
    return new LakeError('integrity', {
      subject: `${name} looks ahead`,
      got,
      next: 'docs/explanation/trust.md shows how to correct it',
    })
  if (status !== 'undecided') return null
  return new LakeError('incomplete', {
    subject: `${name} is undecided`,
    got,
    next: 'correct it, then pitlake features',
  })
}

/** Chooses the features that are named, each after those that it reads. */
function chooseFeatures(
  { features }: Catalogue,
  names: readonly string[],
): (readonly [name: string, Placed<DeclaredFeature>])[] {
  const all = [...features.keys()]
  const bareNames = names.map((name) => name.replace(new RegExp(`^${featurePrefix}`), ''))
  const unknown = bareNames.find((name) => !all.includes(name))
  if (all.length === 0)
    throw usage('features', {
      expected: '`features:` in a catalogue that pitlake.yaml names',
      got: 'none',
      next: 'docs/how-to/features.md shows how',
    })
  if (unknown !== undefined)
    throw usage('features', { expected: `one of ${all.join(', ')}`, got: unknown, next: hint(unknown, all) })
  const others = (name: string): number =>
    [...dependenciesOf(features, name).keys()].filter((dependency) => dependency !== name).length
  const wanted = [...features].filter(([name]) => bareNames.length === 0 || bareNames.includes(name))
  return wanted.toSorted(([a], [b]) => others(a) - others(b))
}

/**
 * Finds the features that a feature reads, directly or not, each with the way there. The feature itself is among them
 * if a ring leads back to it.
 */
function dependenciesOf(
  features: ReadonlyMap<string, Placed<DeclaredFeature>>,
  name: string,
): ReadonlyMap<string, readonly string[]> {
  const ways = new Map<string, readonly string[]>()
  const ends: (readonly string[])[] = [[name]]
  for (const way of ends)
    for (const next of namedFeatures(features.get(way.at(-1) ?? '')?.row.sql ?? '')) {
      if (!features.has(next) || ways.has(next)) continue
      ways.set(next, [...way, next])
      ends.push([...way, next])
    }
  return ways
}

function loadFeature(ledger: Ledger, name: string, feature: DeclaredFeature): KnownFeature {
  const path = `${featurePrefix}${name}`
  const keptRow: KeptFeature = keptFeature.parse(storedState(ledger, path) ?? { mapping: {} })
  const reads = featuresIn(ledger, feature.sql)
  const declared = definitionOf.parse({ ...feature, reads })
  const place = keptRow.versions.findLastIndex((version) => isDeepStrictEqual(definitionOf.parse(version), declared))
  const missed = findMissedSeries(ledger, keptRow.versions[place])
  const at = place < 0 || missed !== null ? keptRow.versions.length : place
  const current = keptRow.versions[at] ?? {
    ...feature,
    reads,
    first: firstTimestamp(ledger, feature),
    through: null,
    without: [],
  }
  return { feature, name, path, kept: keptRow, at, held: place >= 0, current, missed }
}

/**
 * Finds series that a version lacked because they were not requested, and that have points by now; null if there are
 * none.
 */
function findMissedSeries(ledger: Ledger, version: FeatureVersion | undefined): Unrequested | null {
  const { through = null, without = [] } = version ?? {}
  if (through === null || without.length === 0) return null
  const metrics = new Set(without.map(({ metric }) => metric))
  const series = [...storedSeries(ledger).values()].filter((row) => metrics.has(row.metric))
  const coverage = loadCoverage(
    ledger,
    series.map(({ id }) => id),
  )
  const isMissed = ({ metric, interval, asset, before }: Unrequested): boolean =>
    series.some((row) => {
      const stored = row.interval ?? row.settled
      if (row.metric !== metric || (interval !== null && stored !== interval)) return false
      if (asset !== null && row.asset !== asset) return false
      const rows = coverage.get(row.id) ?? []
      return rows.some(
        ({ state, reason, since }) =>
          state === 'covered' && reason === null && since < (before ?? Infinity) && since < through,
      )
    })
  return without.find(isMissed) ?? null
}

/** Computes the first timestamp of the grid of a new version. */
function firstTimestamp(ledger: Ledger, { since, grid }: DeclaredFeature): Instant {
  const read = [...storedSeries(ledger).values()].filter(({ metric }) => !metric.startsWith(featurePrefix))
  const begins = since ?? read.reduce((least, { first_t }) => Math.min(least, first_t ?? least), Infinity)
  return Number.isFinite(begins) ? ceil(begins, grid, storedWeekStart(ledger)) : 0
}

/** Formats the version by which the series are distinguished. */
const numberOf = ({ at }: KnownFeature): string => `v${at + 1}`

/** Whether joins take this version already, or it has no value yet. */
const isCurrent = (feature: KnownFeature): boolean =>
  feature.current.through === null || feature.kept.networks[0] === numberOf(feature)

const bare = ({ path, at, current, missed }: KnownFeature): FeatureTold => ({
  name: path,
  version: at + 1,
  status: 'undecided',
  reason: null,
  difference: null,
  rows_added: 0,
  until: current.through === null ? null : formatInstant(current.through),
  waits_for: null,
  recomputed_for: missed && `${missed.metric}${missed.asset === null ? '' : ` ${missed.asset}`}`,
})

/** Computes the due values of one feature, if it does not look ahead; again if another commit came in between. */
async function computeFeature(job: Job, feature: KnownFeature): Promise<FeatureTold> {
  const { run, deps, catalogue, root, within } = job
  for (let tries = 0; tries < 5; tries++) {
    await buildViews(run.ledger, { catalogue, deps })
    using session = await openQuery(root, { threads: 1 })
    const rundeps: RunDeps = { folder: root, ...within }
    const now = Math.floor(deps.nowMicros() / 1_000_000)
    const due = dueOf(feature, now, run.ledger)
    const judged = await judge(session, feature, due, rundeps)
    const proved = judged.status === 'proved'
    if (!proved && judged.status !== 'tested') return judged
    const waits = await waitsFor(session, due, now, datedUserMetrics(run.ledger))
    const to = waits === null ? due.to : step(waits.at, feature.current.grid, -1)
    const waiting =
      waits && `${waits.metric}${waits.asset === null ? '' : ` ${waits.asset}`} at ${formatInstant(waits.at)}`
    const reported = { ...judged, waits_for: waiting }
    if (to < due.from && isCurrent(feature)) return reported
    const added = await commitValues(job, feature, session, { ...due, to, proved })
    if (added !== undefined) return { ...reported, ...added }
  }
  throw new LakeError('busy', { subject: feature.path, got: 'a lake that others change', next: 'pitlake features' })
}

/** Lists user metrics that carry the time when they were known: no rule shows what to wait for. */
function datedUserMetrics(ledger: Ledger): string[] {
  return [...ownRows(ledger)].flatMap(([path, { mapping }]) => {
    const isDated = mapping.available_at ?? mapping.vintage ?? mapping.available === exportRule
    return path.startsWith(ownPrefix) && isDated ? [path] : []
  })
}

function dueOf({ current, path }: KnownFeature, now: Instant, ledger: Ledger): Due {
  const { grid, latency, first, through } = current
  const weekStart = storedWeekStart(ledger)
  const seriesIds = [...storedSeries(ledger).values()].flatMap(({ id, metric }) => (metric === path ? [id] : []))
  // Values that were lost with a file are computed again.
  const from = through === null || storedLosses(ledger, seriesIds).size > 0 ? first : step(through, grid, 1)
  return { feature: current, from, to: floor(now - latency, grid, weekStart), weekStart }
}

/**
 * Judges whether a feature may be computed. One that was accepted stays so: each run checks whether its plan proves it.
 */
async function judge(session: Engine, feature: KnownFeature, due: Due, run: RunDeps): Promise<FeatureTold> {
  const { current } = feature
  const { sql } = current
  await bringGrid(session, current, due.to)
  await readFeatureQuery(session, sql, run)
  const planned = await plannedOver(session, current)
  const open = async (threads = 1): Promise<Engine> => {
    const worlds = await openWorlds(run.folder, { threads })
    await bringGrid(worlds, current, due.to)
    return worlds
  }
  const trial = { ts: 'ts', labels: [], tolerance: 0, cutoffs: 50, control: 5 }
  const proof = feature.held
    ? { ...(await arguedOf(session, current)), ...accepted }
    : await proveNoLookahead(open, { ...trial, sql, ...(planned && { planned }) }, run)
  const { verdict, proved, unproved, differences } = proof
  const reported = bare(feature)
  if (verdict === 'clean')
    return {
      ...reported,
      status: proved ? 'proved' : 'tested',
      reason: unproved && `${unproved.what}: ${unproved.why}`,
    }
  const [difference = null] = differences
  const reason = [proof.reason, difference && leakSentence(difference)].filter((part) => part !== null).join(': ')
  return { ...reported, status: verdict === 'leak' ? 'refused' : 'undecided', reason, difference }
}

const accepted = { verdict: 'clean', differences: [], reason: null } as const

/** Computes and commits; undefined where the lake went on meanwhile. */
async function commitValues(job: Job, knownFeature: KnownFeature, session: Engine, due: DueValues) {
  const { kept, feature, at, path } = knownFeature
  const of = await versionOf(session)
  const { table, values, keys } = await valuesOf(session, due, { folder: job.root, ...job.within })
  const without = await unrequestedBy(session, knownFeature.current, datedUserMetrics(job.run.ledger))
  const number = numberOf(knownFeature)
  const through = Math.max(due.to, knownFeature.current.through ?? due.to)
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
  const first = <T>(head: T, all: readonly T[]): T[] => [...new Set([head, ...all])]
  const row: KeptFeature = {
    ...kept,
    about: feature.why,
    mapping,
    intervals: first(due.feature.grid, kept.intervals),
    networks: first(number, kept.networks),
    versions: kept.versions.toSpliced(at, 1, { ...knownFeature.current, through, without }),
  }
  const { done, version } = await takeRows({ ...job, path, of }, async (engine) => {
    const relation = 'feature_rows'
    await carry(session, `FROM ${table} ORDER BY ALL`, engine, relation)
    const givenFiles = { format: 'table', relation, files: [], columns: await columnsOf(engine, relation) } as const
    return {
      rows: await readRows(engine, { given: givenFiles, mapping, weekStart: due.weekStart }),
      row,
      renewed: true,
    }
  })
  // After a loss of files the values were recomputed.
  if (done && done.violations > 0)
    throw new LakeError('integrity', { subject: `stored values of ${path} differ`, next: 'pitlake violations list' })
  return done && { until: formatInstant(through), rows_added: version.points_added }
}
