import { expand, checkSelections, type Selection } from '../catalog/series.ts'
import { LakeError } from '../errors.ts'
import type { CoverageRow } from '../ledger/entry.ts'
import { heldCoverage } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { pendingSelections } from '../ledger/held-runs.ts'
import type { Instant } from '../time.ts'
import { intersect, minus, union, type Window } from '../windows.ts'
import type { MetricsProvider } from './api.ts'
import { withListedAssets } from './assets.ts'
import type { Ask } from './plan.ts'
import { heldSelectionsOf, planOn } from './prepare.ts'
import { type Asked, settleWhole } from './settle.ts'

/** A range of a series that was planned, and what is said of it. */
export interface NotAsked {
  readonly ask: Ask
  readonly coverage: readonly CoverageRow[]
}

/**
 * What of planned windows no answer was about, one range after the other of each series: what is due and of which nothing
 * else is on record. Where that was told before it keeps its date.
 */
export function notAsked(
  ledger: Ledger,
  asks: readonly Ask[],
  answered: ReadonlyMap<string, readonly Window[]>,
  asked: Asked,
): NotAsked[] {
  const bySeries = Map.groupBy(asks, ({ series }) => series.id)
  const held = heldCoverage(ledger, [...bySeries.keys()])
  return [...bySeries].flatMap(([id, own]) => {
    const [first] = own
    if (first === undefined) return []
    const rows = held.get(id) ?? []
    const told = rows.filter(({ state }) => state === 'not asked')
    const known = union([...(answered.get(id) ?? []), ...rows.filter(({ state }) => state !== 'not asked')])
    const coverage = minus(union(own.map(({ settles }) => settles)), known).flatMap((settles) => {
      const since = told.filter((row) => row.since < settles.until && row.until > settles.since)
      const at = since.reduce((least, row) => Math.min(least, row.asked_at), asked.at)
      const due = settleWhole({ ...first, settles }, 'not asked', null, asked)
      return due.map((row) => ({ ...row, asked_at: at, request: null }))
    })
    return coverage.length === 0 ? [] : [{ ask: first, coverage }]
  })
}

/** What fetches planned that were killed, as far as it is still to be asked; `but` is a run that is at work. */
export async function pendingAsks(
  ledger: Ledger,
  { settings, catalogue }: MetricsProvider,
  now: Instant,
  but: string | null,
): Promise<readonly Ask[]> {
  const { selections, held } = pendingSelections(ledger, now, but)
  const valid = selections.filter((one) => isValid(() => checkSelections(catalogue, [one])))
  const all = [...valid, ...(held ? heldSelectionsOf(ledger, catalogue) : [])]
  if (all.length === 0) return []
  try {
    return (await planOn({ settings, catalogue, selections: all, gapsOnly: false, now }, ledger)).asks
  } catch (error) {
    // A selection of all assets, whose listing nobody has.
    if (error instanceof LakeError && error.kind === 'usage') return []
    throw error
  }
}

/** Whether the catalogue still has what is named. */
function isValid(check: () => void): boolean {
  try {
    check()
    return true
  } catch {
    return false
  }
}

/** What of these rows lies in what is selected now; all of them where nothing is. */
export async function selectedOf(
  ledger: Ledger,
  { settings, catalogue }: MetricsProvider,
  rows: readonly CoverageRow[],
): Promise<readonly CoverageRow[]> {
  const { select } = settings
  if (select.length === 0 || rows.length === 0) return rows
  const wanted = await wantedOf(ledger, catalogue, select)
  if (wanted === null) return rows
  const ranges = new Map(wanted.map(({ series, since, until }) => [series.id, { since, until }]))
  return rows.filter((row) => {
    const range = ranges.get(row.series)
    if (range === undefined) return false
    const window = { since: range.since ?? Number.NEGATIVE_INFINITY, until: range.until ?? Infinity }
    return intersect([row], [window]).length > 0
  })
}

async function wantedOf(ledger: Ledger, catalogue: MetricsProvider['catalogue'], select: readonly Selection[]) {
  try {
    return expand(catalogue, await withListedAssets(select, ledger))
  } catch (error) {
    if (error instanceof LakeError && error.kind === 'usage') return null
    throw error
  }
}
