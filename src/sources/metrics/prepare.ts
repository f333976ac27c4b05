import { type UnmappedName, blockedFor, selectedPlaceholders } from './unmapped.ts'
import { type Catalogue, type Dimension, dimensions, type Endpoint, isOwn } from '../../catalog/catalogue.ts'
import { checkSelections, expand, askedPaths, pathNames, type Selection, type Series } from '../../catalog/series.ts'
import type { CommitDeps } from '../../lake/ledger/commit.ts'
import { runName } from '../../lake/ledger/job.ts'
import type { CoverageRow, Provider } from '../../lake/ledger/entry.ts'
import { globTest } from '../../catalog/globs.ts'
import { openDifferences } from '../../lake/ledger/differences.ts'
import { storedAnswers, loadCoverage, storedSeries } from '../../lake/ledger/index-queries.ts'
import { pendingSelections } from '../../lake/ledger/run-queries.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { isWritable } from '../../lake/store/disk.ts'
import { mirrorOf } from '../../lake/store/marker.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { providerAt } from '../../lake/ledger/provider.ts'
import { type Ask, type Held, plan, type Plan, type PlanLimits } from './plan.ts'
import type { Settings } from '../../catalog/settings.ts'
import type { Instant } from '../../base/time.ts'
import { intersect, minus, union, type Window } from '../../base/windows.ts'
import { metricsAccess, type MetricsProvider } from './api.ts'
import { type AskedAt, settleWhole } from './settle.ts'
import { unlessUnlisted, withListedAssets } from './assets.ts'
import { askBeside, type BesideDeps } from '../http/connection.ts'
import {
  askMetadata,
  isWithout,
  keepMetadata,
  mergeMetadata,
  metadataDue,
  metadataPerMinute,
  metadataRetries,
  standingMetadata,
  loadMetadata,
  type Metadata,
  type MetadataHeard,
  type MetadataInput,
  readings,
  speaksPlaceholders,
} from './metadata.ts'
import { type DatedMetadata, saidOf } from './metadata-readings.ts'
import { resolveNames, unnamedSelections } from './names.ts'
import type { AskOne } from '../http/request-rows.ts'

/** The facts on which a plan depends, in addition to the ledger. */
export interface PlanInput extends MetadataInput {
  readonly gapsOnly: boolean
  /** Whether every interval that has ended is requested, see `PlanLimits`. */
  readonly eager?: boolean
  /** Ids of the selected series to plan for; all unless given. */
  readonly only?: ReadonlySet<string>
  readonly now: Instant
}

/** A plan, with the facts on which it is based. */
export interface PreparedPlan {
  readonly plan: Plan
  /** Selected placeholders that the configuration does not map. */
  readonly unmapped: readonly UnmappedName[]
  /** The catalogue in the provider's own names. */
  readonly catalogue: Catalogue
  /** Metadata by path, and the provider that gave them; null if no answer showed it. */
  readonly storedMetadata: Metadata
  readonly provider: Provider | null
  /** Selected paths that have metadata, and paths whose metadata were requested now. */
  readonly metadata: { readonly paths: number; readonly asked: number }
}

/**
 * Plans against the stored data; a lake that does not exist yet counts as empty, and is not created. Old metadata are
 * requested first, and stored if the lake may be written to. With `asking` null the stored ones are used.
 */
export async function preparePlan(
  input: PlanInput,
  asking: (BesideDeps & CommitDeps) | null = null,
): Promise<PreparedPlan> {
  const { settings, catalogue, selections } = input
  checkSelections(catalogue, unnamedSelections(catalogue, selections))
  using ledger = isBegun(settings.data) ? await Ledger.openToRead(settings.data) : null
  const standing = ledger === null ? new Map<string, DatedMetadata>() : standingMetadata(ledger)
  // Contradictions of the configuration are refused before anything is requested.
  const before = { ...input, catalogue: resolveNames(input, ledger, { metadata: standing, listing: null }).catalogue }
  const askedMetadata = asking === null ? nobodyAsked : await askedNow(before, ledger, asking)
  const { answers, listing } = askedMetadata.heard
  const none = ledger === null || isWithout(ledger, answers, asking?.nowMicros() ?? 0)
  const metadata = mergeMetadata(none ? new Map() : standing, answers, input.now)
  const named = resolveNames(input, ledger, { metadata, listing })
  const resolvedInput = { ...input, catalogue: named.catalogue }
  checkSelections(resolvedInput.catalogue, selections)
  const paths = new Set(
    selections.flatMap((selection) => askedPaths(resolvedInput.catalogue, selection.paths ?? ['*'])),
  )
  const knownPaths = [...paths].filter(({ ask }) => metadata.has(ask))
  const provider = askedMetadata.provider ?? ledger?.head().provider ?? null
  const plan = await planOn(resolvedInput, ledger, metadata, provider)
  const unmapped = await selectedPlaceholders(resolvedInput, ledger, provider)
  return {
    plan: { ...plan, notes: [...plan.notes, ...named.notes] },
    unmapped,
    catalogue: resolvedInput.catalogue,
    storedMetadata: metadata,
    provider,
    metadata: { paths: knownPaths.length, asked: answers.length },
  }
}

/** Plans for an empty lake, with the facts about the provider from an earlier plan. */
export async function planWith(
  input: PlanInput,
  { storedMetadata, provider }: Pick<PreparedPlan, 'storedMetadata' | 'provider'>,
): Promise<Plan> {
  return await planOn(input, null, storedMetadata, provider)
}

/** The answers to requests for metadata. */
interface AskedMetadata {
  readonly heard: MetadataHeard
  /** The provider that answered; null if no answer showed it. */
  readonly provider: Provider | null
}

const nobodyAsked: AskedMetadata = { heard: { answers: [], listing: null, listingRow: null }, provider: null }

/** Requests the metadata that are due; none without an address or a key. */
async function askedNow(
  input: PlanInput,
  ledger: Ledger | null,
  asking: BesideDeps & CommitDeps,
): Promise<AskedMetadata> {
  const { settings, catalogue } = input
  const { url, key, concurrency } = settings.metrics
  const selections = unnamedSelections(catalogue, input.selections)
  const due = metadataDue({ ...input, selections }, ledger, asking.nowMicros())
  if (url === null || key === null || due.plain.length + due.guarded.length === 0) return nobodyAsked
  const run = runName(asking, 'plan')
  const manner = { perMinute: metadataPerMinute, retry: metadataRetries, run }
  let sandbox: string | null | undefined
  const storedReadings = ledger === null ? [] : [...loadMetadata(ledger).values()]
  const metadataAnswers = await askBeside(metricsAccess(input), asking, manner, async (beside) => {
    const ask: AskOne = async (request, about) => {
      const answer = await beside.ask(request, about)
      if (sandbox === undefined && 'sandbox' in answer.outcome) sandbox = answer.outcome.sandbox
      return answer
    }
    return await askMetadata({ ...beside, ask, run, wire: catalogue.wire, concurrency }, due, {
      isSandbox: () => typeof sandbox === 'string',
      takesPlaceholders: (now) => speaksPlaceholders(catalogue, [...storedReadings, ...readings(now)]),
    })
  })
  const provider = sandbox === undefined ? null : providerAt('metrics', url, sandbox)
  if (ledger !== null && ledger.head().version > 0 && provider !== null && (await mayKeep(settings.data))) {
    using writable = await Ledger.open(settings.data)
    const keeping = { job: 'plan', run, provider, providerMoved: false } as const
    await keepMetadata({ ...keeping, ledger: writable, deps: asking }, metadataAnswers)
  }
  return { heard: metadataAnswers, provider }
}

/** Whether the lake may be written to: it is neither a mirror nor on a read-only medium. */
const mayKeep = async (root: string): Promise<boolean> => isWritable(root) && (await mirrorOf(root)) === null

/** Plans against the stored data of a ledger; null for an empty lake. */
export async function planOn(
  input: PlanInput,
  ledger: Ledger | null,
  metadata: Metadata = ledger === null ? new Map() : standingMetadata(ledger),
  provider: Provider | null = ledger?.head().provider ?? null,
): Promise<Plan> {
  const { settings, catalogue, gapsOnly, eager = false, only, now } = input
  const selections = await withListedAssets(input.selections, ledger)
  const limits: PlanLimits = {
    requestsPerMinute: settings.metrics.requestsPerMinute,
    credits: settings.metrics.credits,
    weekStart: settings.metrics.weekStart,
    gapsOnly,
    eager,
    blocked: (series, endpoint) => blockedFor(settings, catalogue, provider, series, endpoint),
    metadataOf: (series, endpoint) => {
      const dated = metadata.get(endpoint.ask)
      return dated ? saidOf(dated, catalogue.wire, { series, endpoint }, settings.metrics) : null
    },
  }
  const storedById = new Map<string, Held>(ledger === null ? [] : storedAnswers(ledger))
  for (const [id, doubtful] of ledger === null ? [] : openDifferences(ledger)) {
    const record = storedById.get(id)
    if (record) storedById.set(id, { ...record, doubtful })
  }
  const wanted = expand(catalogue, selections).filter(({ series }) => only?.has(series.id) ?? true)
  return plan(wanted, storedById, limits, now)
}

/**
 * Returns selections of every series that was ever requested for the lake, or that a killed run was going to request.
 */
export async function storedSelections({ data }: Settings, catalogue: Catalogue): Promise<Selection[]> {
  if (!isBegun(data)) return []
  using ledger = await Ledger.openToRead(data)
  const { selections } = pendingSelections(ledger, Infinity)
  const valid = selections.filter(({ paths = ['*'] }) => paths.every((path) => isTaken(catalogue, path)))
  return [...storedSelectionsOf(ledger, catalogue), ...valid]
}

/** Whether a path or glob still names an endpoint of the catalogue. */
const isTaken = ({ endpoints }: Catalogue, path: string): boolean =>
  [...endpoints.values()].flatMap(pathNames).some(globTest(path))

/** Returns selections of every series in the ledger, each from its start there. */
function storedSelectionsOf(ledger: Ledger, catalogue: Catalogue): Selection[] {
  const answers = storedAnswers(ledger)
  const bySelection = new Map<string, Selection & { readonly assets: string[] }>()
  for (const { id, first_t, ...series } of storedSeries(ledger).values()) {
    const begins = [
      ...(first_t === null ? [] : [first_t]),
      ...(answers.get(id)?.answers ?? []).map(({ since }) => since),
    ]
    const since = Math.min(...begins)
    const { asset, metric } = series
    const dimensionValues = dimensions.map(({ singular, plural }) => [
      plural,
      series[singular] === null ? undefined : [series[singular]],
    ])
    const selection = {
      paths: [metric],
      ...(Object.fromEntries(dimensionValues) as Partial<Selection>),
      since,
      held: true as const,
    }
    // Series that the catalogue no longer has cannot be requested.
    if (begins.length === 0 || !takes(catalogue.endpoints.get(metric), series)) continue
    const key = JSON.stringify(selection)
    const merged = bySelection.get(key) ?? { ...selection, assets: [] }
    bySelection.set(key, merged)
    merged.assets.push(asset)
  }
  return [...bySelection.values()]
}

/** Whether the endpoint has every value of the series' dimensions. */
function takes(endpoint: Endpoint | undefined, series: Pick<Series, Dimension['singular']>): boolean {
  if (endpoint === undefined || isOwn(endpoint)) return false
  return dimensions.every(({ singular, plural }) => {
    const allowed: readonly string[] = endpoint[plural]
    return series[singular] === null || allowed.includes(series[singular])
  })
}

/**
 * Returns the planned windows that no answer was about, joined into ranges by series: those that are due and have no
 * other record. A window that was recorded as not requested before keeps its date.
 */
export function notAsked(
  ledger: Ledger,
  asks: readonly Ask[],
  answered: ReadonlyMap<string, readonly Window[]>,
  request: AskedAt,
): { readonly ask: Ask; readonly coverage: readonly CoverageRow[] }[] {
  const bySeries = Map.groupBy(asks, ({ series }) => series.id)
  const storedCoverage = loadCoverage(ledger, [...bySeries.keys()])
  return [...bySeries].flatMap(([id, seriesAsks]) => {
    const [first] = seriesAsks
    if (first === undefined) return []
    const rows = storedCoverage.get(id) ?? []
    const recordedBefore = rows.filter(({ state }) => state === 'not requested')
    const resolved = union([...(answered.get(id) ?? []), ...rows.filter(({ state }) => state !== 'not requested')])
    const coverage = minus(union(seriesAsks.map(({ settles }) => settles)), resolved).flatMap((settles) => {
      const since = recordedBefore.filter((row) => row.since < settles.until && row.until > settles.since)
      const at = since.reduce((least, row) => Math.min(least, row.asked_at), request.at)
      const due = settleWhole({ ...first, settles }, 'not requested', null, request)
      return due.map((row) => ({ ...row, asked_at: at, request: null }))
    })
    return coverage.length === 0 ? [] : [{ ask: first, coverage }]
  })
}

/** Returns the requests that killed fetches planned and that are still due; `but` is a running fetch. */
export async function pendingAsks(
  ledger: Ledger,
  { settings, catalogue }: MetricsProvider,
  now: Instant,
  but: string | null,
): Promise<readonly Ask[]> {
  const { selections, held } = pendingSelections(ledger, now, but)
  const valid = selections.filter((selection) => isValid(() => checkSelections(catalogue, [selection])))
  const all = [...valid, ...(held ? storedSelectionsOf(ledger, catalogue) : [])]
  if (all.length === 0) return []
  const planned = planOn({ settings, catalogue, selections: all, gapsOnly: false, now }, ledger)
  return (await unlessUnlisted(planned))?.asks ?? []
}

/** Whether the catalogue still has everything that is named. */
function isValid(check: () => void): boolean {
  try {
    check()
    return true
  } catch {
    return false
  }
}

/** Ids of the series that `select` names now; null if it names none, or if that cannot be known: then all count. */
export async function selectedSeries(
  ledger: Ledger,
  { settings, catalogue }: MetricsProvider,
): Promise<ReadonlySet<string> | null> {
  if (settings.select.length === 0) return null
  const chosen = await unlessUnlisted(withListedAssets(settings.select, ledger).then((all) => expand(catalogue, all)))
  return chosen === null ? null : new Set(chosen.map(({ series }) => series.id))
}

/** Filters rows by the present selection; all of them if there is none. */
export async function selectedOf(
  ledger: Ledger,
  { settings, catalogue }: MetricsProvider,
  rows: readonly CoverageRow[],
): Promise<readonly CoverageRow[]> {
  const { select } = settings
  if (select.length === 0 || rows.length === 0) return rows
  const wanted = withListedAssets(select, ledger).then((all) => expand(catalogue, all))
  const chosen = await unlessUnlisted(wanted)
  if (chosen === null) return rows
  const ranges = new Map(chosen.map(({ series, since, until }) => [series.id, { since, until }]))
  return rows.filter((row) => {
    const range = ranges.get(row.series)
    if (range === undefined) return false
    const window = { since: range.since ?? Number.NEGATIVE_INFINITY, until: range.until ?? Infinity }
    return intersect([row], [window]).length > 0
  })
}
