import type { Outcome } from '../net/outcome.ts'
import { type CoverageRow, type CoverageState, violationId } from '../ledger/entry.ts'
import type { Ask } from './plan.ts'
import { type Ended, endedBy } from '../ledger/requests.ts'
import type { Actual } from '../ledger/job.ts'
import { notAskedKey } from '../ledger/held-runs.ts'
import { isOfHeld } from '../ledger/refusals.ts'
import { type BeginsLater, beginsLater } from './begins.ts'
import type { BatchResult } from './answered.ts'
import type { AskingState, StoppedBy } from './asking-state.ts'

/** What scripts read; names are relied on. */
export interface IngestSummary extends Ended<StoppedBy> {
  readonly run: string
  readonly version: number
  readonly requests: number
  readonly points_added: number
  readonly files_added: number
  readonly windows: WindowCounts
  /** Windows, of those settled, in which points are missing for good. */
  readonly gaps: number
  /** Points of which another value came than the stored one, and that nobody has accepted; an incident counts as one. */
  readonly violations: number
  /** How many of them are incidents: of very many points at once. */
  readonly incidents: number
  /** Accepted ones that were seen again. */
  readonly accepted: number
  /** Series whose first point lies behind where they were asked from. */
  readonly begins_later: readonly BeginsLater[]
  /** Series that have points and are refused now. */
  readonly refused: number
}

/** How many windows of each state; `not_asked`: ranges of series that the run planned and did not ask. */
export type WindowCounts = Readonly<Record<Exclude<CoverageState, 'not asked'> | 'not_asked', number>>

/** How many windows of each state the rows tell of. */
export function windowsOf(rows: readonly CoverageRow[]): WindowCounts {
  const windows = { covered: 0, empty: 0, unsupported: 0, failed: 0, not_asked: 0 }
  for (const { state } of rows) windows[state === 'not asked' ? 'not_asked' : state]++
  return windows
}

/** What has come of a run so far. */
export class Tally {
  #version: number
  #points = 0
  #files = 0
  #gaps = 0
  readonly #violations = new Set<string>()
  readonly #incidents = new Set<string>()
  #recorded = 0
  #twice = 0
  readonly #accepted = new Set<string>()
  #requests = 0
  #credits = 0
  #bytes = 0
  readonly #refused = new Set<string>()
  #stopped: AskingState['stopped'] = null
  #windows = windowsOf([])
  readonly #later: BeginsLater[] = []
  #accounted = false

  constructor(version: number) {
    this.#version = version
  }

  version({ version, points_added, files_added }: BatchResult['version']): void {
    this.#version = version
    this.#points += points_added
    this.#files += files_added
  }

  add({
    version,
    coverage,
    violations,
    incidents,
    recorded,
    again,
    accepted,
  }: Pick<BatchResult, 'version' | 'coverage' | 'violations' | 'incidents' | 'recorded' | 'again' | 'accepted'>): void {
    this.version(version)
    for (const violation of violations) this.#violations.add(violationId(violation))
    for (const id of incidents) this.#incidents.add(id)
    this.#recorded += recorded
    this.#twice += again.filter(({ doubted }) => doubted !== null).length
    for (const id of accepted) this.#accepted.add(id)
    this.#later.push(...beginsLater(coverage))
    const more = windowsOf(coverage)
    const sum = (state: keyof WindowCounts): number => this.#windows[state] + more[state]
    this.#windows = {
      covered: sum('covered'),
      empty: sum('empty'),
      unsupported: sum('unsupported'),
      failed: sum('failed'),
      not_asked: sum('not_asked'),
    }
    for (const { series, state, reason } of coverage) {
      if (reason === 'gap') this.#gaps++
      if (state === 'failed' && isOfHeld(reason)) this.#refused.add(series)
    }
  }

  /** How many points that differ or lack were put on record, and how many windows are asked a second time for them. */
  get differing(): { readonly recorded: number; readonly twice: number } {
    return { recorded: this.#recorded, twice: this.#twice }
  }

  answered(ask: Ask, outcome: Outcome): void {
    if ('status' in outcome && outcome.status !== null) this.#credits += ask.credits
    if (outcome.kind === 'body') this.#bytes += outcome.bytes
  }

  close(requests: number, state: AskingState): void {
    this.#requests = requests
    this.#stopped = state.stopped
  }

  /** From now on what was not asked is on record. */
  account(): void {
    this.#accounted = true
  }

  /** What the run has really cost, beside its plan. */
  actual(): Actual & Readonly<Record<'requests' | 'credits' | 'points' | 'bytes', number>> {
    const cost = { requests: this.#requests, credits: this.#credits, points: this.#points, bytes: this.#bytes }
    return this.#accounted ? { ...cost, [notAskedKey]: this.#windows.not_asked } : cost
  }

  summary(run: string): IngestSummary {
    return {
      run,
      version: this.#version,
      requests: this.#requests,
      points_added: this.#points,
      files_added: this.#files,
      windows: { ...this.#windows },
      gaps: this.#gaps,
      violations: this.#violations.size + this.#incidents.size,
      incidents: this.#incidents.size,
      accepted: this.#accepted.size,
      refused: this.#refused.size,
      begins_later: [...this.#later],
      ...endedBy(this.#stopped),
    }
  }
}
