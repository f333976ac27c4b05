import { isLost } from '../../lake/ledger/coverage.ts'
import type { WindowAnswer } from '../../lake/ledger/entry.ts'
import { isGone, isTriedAgain, type StandingRefusal, standingRefusal } from '../../lake/ledger/refusals.ts'
import type { Instant } from '../../base/time.ts'

/** The facts of a series that decide whether it is refused. */
interface Known {
  readonly metric: string
  readonly points: number
  readonly answers: readonly WindowAnswer[]
}

/** Whether the lake has points of a series, or had some until their file was damaged. */
export function wasHeld(series: Known | undefined): boolean {
  return series !== undefined && (series.points > 0 || series.answers.some(isLost))
}

/**
 * Number of different series of a path that answer 404, with none answered, before the whole path counts as gone. A
 * provider may answer 404 for a path that it does not have, and for an asset, exchange or network that the path does
 * not have.
 */
export const seriesOfGonePath = 3

/** Standing refusals by path. A 404 is one of its path once enough series show it. */
export interface RefusedPaths {
  /** Refusals to series without points: any such series shows them. */
  readonly fresh: ReadonlyMap<string, StandingRefusal>
  /** Refusals to series with points: the newest of a path. */
  readonly held: ReadonlyMap<string, StandingRefusal>
}

/** Determines the refused paths from the records of all series. */
export function refusedPaths(bySeries: ReadonlyMap<string, Known>): RefusedPaths {
  const answered = [...bySeries.values()].filter(({ answers }) => answers.length > 0)
  const isServed = ({ points, answers }: Known): boolean => points > 0 && standingRefusal(answers) === null
  const served = new Set(answered.filter(isServed).map(({ metric }) => metric))
  const showsGone = ({ answers }: Known): boolean => {
    const refusal = standingRefusal(answers)
    return refusal?.scope === 'path' && isGone(refusal.words)
  }
  const byPath = (series: readonly Known[], standing: (ofPath: readonly Known[]) => StandingRefusal | null) =>
    new Map(
      [...Map.groupBy(series, ({ metric }) => metric)].flatMap(([path, seriesOfPath]) => {
        const refusal = standing(seriesOfPath)
        if (refusal?.scope !== 'path') return []
        const isPath =
          !isGone(refusal.words) || (!served.has(path) && seriesOfPath.filter(showsGone).length >= seriesOfGonePath)
        return isPath ? [[path, refusal] as const] : []
      }),
    )
  const newest = (ofPath: readonly Known[]): StandingRefusal | null =>
    ofPath
      .flatMap(({ answers }) => standingRefusal(answers) ?? [])
      .filter(({ scope }) => scope === 'path')
      .toSorted((a, b) => b.asked_at - a.asked_at)[0] ?? null
  return {
    fresh: byPath(
      answered.filter(({ points }) => points <= 0),
      (ofPath) => standingRefusal(ofPath.flatMap(({ answers }) => answers)),
    ),
    held: byPath(
      answered.filter(({ points }) => points > 0),
      newest,
    ),
  }
}

/** The consequences of recorded refusals for a series now. */
export interface SeriesRefusal {
  /** The refusal for which it is not requested now; null if it may be requested. */
  readonly refusal: StandingRefusal | null
  /** Whether a refusal of its path is tried again now. */
  readonly suspect: boolean
  /** Whether that refusal is one of all series of the path: one request finds out for all. */
  readonly isShared: boolean
}

/**
 * Returns the consequences of refusals for a series: its own or, while it never had a point, its path's. All series of
 * a path are tried again at the same time, counted from the last request for any of them.
 */
export function refusalOf(path: string, series: Known | undefined, paths: RefusedPaths, now: Instant): SeriesRefusal {
  const shared = wasHeld(series) ? undefined : paths.fresh.get(path)
  const seriesRefusal = series === undefined ? null : standingRefusal(series.answers)
  // It was refused before it had points, so this cannot be the start of an alarm.
  const refusal =
    shared ??
    (seriesRefusal !== null && (series?.points ?? 0) > 0 && seriesRefusal.since === null ? null : seriesRefusal)
  if (refusal === null) return { refusal: null, suspect: false, isShared: false }
  // A refusal to series with points applies to all series.
  const newest = refusal.scope === 'path' ? paths.held.get(path) : undefined
  const asked_at = Math.max(refusal.asked_at, newest?.asked_at ?? refusal.asked_at)
  if (!isTriedAgain({ ...refusal, asked_at }, now)) return { refusal, suspect: false, isShared: false }
  const suspect = refusal.scope === 'path'
  const isOfAll = shared !== undefined || newest !== undefined || !isGone(refusal.words)
  return { refusal: null, suspect, isShared: suspect && isOfAll }
}
