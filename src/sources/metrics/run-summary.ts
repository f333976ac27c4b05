import { readableSeries, type SeriesName } from '../../catalog/series.ts'
import { gravestOf, LakeError } from '../../base/errors.ts'
import { beforeFirst } from '../../lake/ledger/coverage.ts'
import { type Ended, endedBy, endedEarly } from '../http/request-rows.ts'
import { type CoverageRow, type CoverageState, violationId } from '../../lake/ledger/entry.ts'
import { type Ask, historyStart } from './plan.ts'
import { notAskedKey } from '../../lake/ledger/run-queries.ts'
import { isOfHeld, type RefusalScope } from '../../lake/ledger/refusals.ts'
import type { Outcome } from '../http/outcome.ts'
import { several } from '../../base/figures.ts'
import { day, formatDate } from '../../base/time.ts'
import type { Window } from '../../base/windows.ts'
import type { BatchResult } from './answers.ts'
import type { Version } from '../../lake/ledger/draft.ts'
import type { MistypedAsset } from './assets.ts'
import { unmappedError, type UnmappedName } from './unmapped.ts'

/** Reason for ending a run before its plan. */
export type StoppedBy = 'signal' | 'max_requests' | 'budget' | 'quota' | 'unauthorised' | 'unreachable'

/** A refusal, with its subject. */
export interface RefusedAsk {
  readonly scope: RefusalScope
  readonly words: string
}

/** The early end of a run. */
export interface EarlyStop {
  readonly by: StoppedBy
  /** Time at which a spent quota is renewed, milliseconds since 1970; null for any other reason. */
  readonly until: number | null
  /** The provider's words; null if there are none. */
  readonly words: string | null
}

/** The results of a run's requests so far; each answer updates them. */
export interface AskingState {
  /** Requests sent so far. */
  requestCount: number
  /**
   * Parts that are not requested any more, with the refusal: a path (403, 404) to series without points, a path to
   * those with points, or one series (400, 404). A refusal of a series that was never answered does not concern those
   * that were.
   */
  readonly closed: Map<string, RefusedAsk>
  /** Ids of series that answered 404, by the key of their path in `closed`. */
  readonly goneSeries: Map<string, Set<string>>
  /** Paths with stored points at the time of the first 404; null before. */
  storedPaths: ReadonlySet<string> | null
  /** The first request of a refused path, by path: all others wait for its answer. */
  readonly probes: Map<string, Promise<unknown>>
  /** Ids of series that were answered in this run. */
  readonly answering: Set<string>
  /** End (seconds) of the range in which short windows of a series were refused although others are answered. */
  readonly refusedBefore: Map<string, { readonly until: number; readonly words: string }>
  /** The windows that were answered, whatever the answers resolve, by series. */
  readonly resolvedWindows: Map<string, Window[]>
  /** Failures to connect in a row. */
  unreachable: number
  /** Whether anything at all has been answered. */
  reached: boolean
  /** Credits of the windows requested so far, by their plan. */
  priced: number
  /** First answers, and how many of them were 403 on how many paths. */
  readonly first: { answers: number; forbidden: number; readonly paths: Set<string> }
  /** The early end of the run; null while it continues. */
  stopped: EarlyStop | null
}

/** Creates the state of a run before its first answer. */
export function newAskingState(): AskingState {
  return {
    requestCount: 0,
    closed: new Map<string, RefusedAsk>(),
    goneSeries: new Map<string, Set<string>>(),
    storedPaths: null,
    probes: new Map<string, Promise<unknown>>(),
    answering: new Set<string>(),
    refusedBefore: new Map<string, { readonly until: number; readonly words: string }>(),
    resolvedWindows: new Map<string, Window[]>(),
    unreachable: 0,
    reached: false,
    priced: 0,
    first: { answers: 0, forbidden: 0, paths: new Set<string>() },
    stopped: null,
  }
}

/** The result of a fetch for scripts; they rely on the names. */
export interface IngestSummary extends Ended<StoppedBy> {
  /** Id of the run. */
  readonly run: string
  /** The newest version after the run. */
  readonly version: number
  /** Requests sent, repeats included. */
  readonly requests: number
  /** New points. */
  readonly points_added: number
  /** New vintages of revisable series. */
  readonly vintages_added: number
  /** New data files. */
  readonly files_added: number
  /**
   * Coverage ranges that the answers resolved, by state: `covered`, `empty`, `unsupported`, `failed`, `not_requested`.
   */
  readonly windows: WindowCounts
  /** Resolved ranges in which points are missing for good. */
  readonly gaps: number
  /** Points whose new value differs from the stored one, without acknowledged ones; an incident counts as one. */
  readonly violations: number
  /** Incidents among `violations`. */
  readonly incidents: number
  /** Acknowledged violations that were seen again. */
  readonly acknowledged: number
  /** Series that have points and are refused now. */
  readonly refused: number
  /** Series whose first point is later than the start of the requested range. */
  readonly begins_later: readonly BeginsLater[]
  /** Selected series that are never requested, by the name that the configuration does not map. */
  readonly unmapped: readonly UnmappedName[]
  /** Selected assets that are probably typing errors. */
  readonly mistyped_assets: readonly MistypedAsset[]
}

/** Coverage ranges by state; `not_requested` counts ranges that the run planned and did not request. */
export type WindowCounts = Readonly<Record<Exclude<CoverageState, 'not requested'> | 'not_requested', number>>

/** Counts coverage ranges by state. */
export function windowsOf(rows: readonly CoverageRow[]): WindowCounts {
  const windows = { covered: 0, empty: 0, unsupported: 0, failed: 0, not_requested: 0 }
  for (const { state } of rows) windows[state === 'not requested' ? 'not_requested' : state]++
  return windows
}

/** The results of a run so far. */
export class RunTally {
  /**
   * Number of differing or missing points that were recorded, and of windows that are requested a second time for them.
   */
  readonly differing = { recorded: 0, twice: 0 }
  readonly #made: Record<'version' | 'points_added' | 'vintages_added' | 'files_added' | 'gaps', number>
  readonly #seen = { violations: new Set<string>(), incidents: new Set<string>(), accepted: new Set<string>() }
  readonly #refused = new Set<string>()
  readonly #later: BeginsLater[] = []
  readonly #cost = { requests: 0, credits: 0, bytes: 0 }
  #windows = windowsOf([])
  #stopped: EarlyStop | null = null
  #accounted = false
  #unmapped: readonly UnmappedName[] = []
  #mistyped: readonly MistypedAsset[] = []

  constructor(version: number) {
    this.#made = { version, points_added: 0, vintages_added: 0, files_added: 0, gaps: 0 }
  }

  version({ version, points_added, vintages_added, files_added }: Version): void {
    this.#made.version = version
    this.#made.points_added += points_added - vintages_added
    this.#made.vintages_added += vintages_added
    this.#made.files_added += files_added
  }

  add(done: BatchResult): void {
    this.version(done.version)
    for (const violation of done.violations) this.#seen.violations.add(violationId(violation))
    for (const id of done.incidents) this.#seen.incidents.add(id)
    for (const id of done.accepted) this.#seen.accepted.add(id)
    this.differing.recorded += done.recorded
    this.differing.twice += done.again.filter(({ doubted }) => doubted !== null).length
    this.#later.push(...beginsLater(done.coverage))
    const more = Object.entries(windowsOf(done.coverage)) as [keyof WindowCounts, number][]
    this.#windows = more.reduce((sum, [state, count]) => ({ ...sum, [state]: sum[state] + count }), this.#windows)
    for (const { series, state, reason } of done.coverage) {
      if (reason === 'gap') this.#made.gaps++
      if (state === 'failed' && isOfHeld(reason)) this.#refused.add(series)
    }
  }

  answered({ credits }: Ask, outcome: Outcome): void {
    if ('status' in outcome && outcome.status !== null) this.#cost.credits += credits
    if (outcome.kind === 'body') this.#cost.bytes += outcome.bytes
  }

  close(requests: number, { stopped }: AskingState): void {
    this.#cost.requests = requests
    this.#stopped = stopped
  }

  /** Marks the planned windows that were not requested as recorded. */
  account(): void {
    this.#accounted = true
  }

  /** Sets the selected placeholders that are not requested from this provider. */
  unmapped(names: readonly UnmappedName[]): void {
    this.#unmapped = names
  }

  /** Sets the selected assets that are probably typing errors. */
  mistyped(assets: readonly MistypedAsset[]): void {
    this.#mistyped = assets
  }

  /** Returns the actual cost of the run, to compare with its plan. */
  actual() {
    const { requests, credits, bytes } = this.#cost
    const cost = { requests, credits, points: this.#made.points_added + this.#made.vintages_added, bytes }
    return this.#accounted ? { ...cost, [notAskedKey]: this.#windows.not_requested } : cost
  }

  summary(run: string): IngestSummary {
    const { version, points_added, vintages_added, files_added, gaps } = this.#made
    const { requests } = this.#cost
    return {
      run,
      version,
      requests,
      points_added,
      vintages_added,
      files_added,
      windows: this.#windows,
      gaps,
      violations: this.#seen.violations.size + this.#seen.incidents.size,
      incidents: this.#seen.incidents.size,
      acknowledged: this.#seen.accepted.size,
      refused: this.#refused.size,
      begins_later: this.#later,
      unmapped: this.#unmapped,
      mistyped_assets: this.#mistyped,
      ...endedBy(this.#stopped),
    }
  }
}

/** A series whose first point is later than the start of the requested range. */
export type BeginsLater = Pick<SeriesName, 'metric' | 'asset' | 'interval'> & {
  /** Date of the first point. */
  readonly begins: string
  /** Date from which it was requested. */
  readonly asked_from: string
}

/**
 * Time after the start of all history within which a request counts as one from the beginning, so that a later first
 * point is normal.
 */
const longest = 40 * day

/** Finds the series that begin later than requested, from the answers about the time before their first points. */
export function beginsLater(rows: readonly CoverageRow[]): BeginsLater[] {
  return rows.flatMap(({ series, since, until, reason }) => {
    if (reason !== beforeFirst || since < historyStart + longest) return []
    const { metric, asset, interval } = readableSeries(series)
    return [{ metric, asset, interval, begins: formatDate(until), asked_from: formatDate(since) }]
  })
}

/** Describes a series that begins later than requested. */
export function beginsInWords({ metric, asset, begins, asked_from }: BeginsLater): string {
  return `${metric} ${asset} begins ${begins}, requested from ${asked_from}`
}

/** Returns the error of a job that requested points and ended early; null if it did not. */
export function stoppedEarly(summary: Ended): LakeError | null {
  const next = 'see that PITLAKE_METRICS_URL is right and the network is up, then run the same command again'
  return endedEarly('metrics', summary, { subject: 'the provider cannot be reached', next })
}

/** Returns the error with which a fetch ends after its work, with the next step; null if all is well. */
export function verdict(summary: IngestSummary): LakeError | null {
  const { violations, incidents } = summary
  return gravestOf([
    differingPoints(violations - incidents, 'upstream'),
    differingAtOnce(incidents),
    stoppedEarly(summary),
    unresolved(summary),
    unmappedError(summary.unmapped),
  ])
}

/** Returns the error for single stored values that differ, with the place where they do; null if there are none. */
export function differingPoints(violations: number, where: string): LakeError | null {
  if (violations === 0) return null
  const next = 'nothing stored was changed: see pitlake violations list, then pitlake violations acknowledge'
  return new LakeError('integrity', {
    subject: `${several(violations, 'stored value differs', 'stored values differ')} ${where}`,
    next,
  })
}

/** Returns the error for very many stored values that differ at once; null if there is no incident. */
export function differingAtOnce(incidents: number): LakeError | null {
  if (incidents === 0) return null
  const subject =
    `${incidents === 1 ? 'an incident' : `${incidents} incidents`}: very many stored values differ or are ` +
    'missing upstream at once'
  const next =
    'nothing stored was changed: the next fetch asks again, and what it finds as it was is reverted upstream; ' +
    'pitlake violations list tells how many'
  return new LakeError('integrity', { subject, next })
}

function unresolved({ windows, refused }: IngestSummary): LakeError | null {
  if (refused > 0) {
    const [has, is] = refused === 1 ? ['has', 'is'] : ['have', 'are']
    const subject = `${refused} series that ${has} points ${is} refused`
    const next =
      'pitlake requests them again each day; see pitlake violations list, then pitlake violations acknowledge'
    return new LakeError('incomplete', { subject, next })
  }
  if (windows.failed === 0) return null
  const next = 'run the same command again; pitlake sql "FROM coverage WHERE state = \'failed\'" gives the reasons'
  return new LakeError('incomplete', { subject: `${several(windows.failed, 'window')} failed`, next })
}
