import { isLost } from '../../lake/ledger/coverage.ts'
import type { WindowAnswer } from '../../lake/ledger/entry.ts'
import { isTriedAgain, type StandingRefusal, standingRefusal } from '../../lake/ledger/refusals.ts'
import type { Instant } from '../../base/time.ts'

/** The facts of a series that decide whether it is refused. */
interface Known {
  readonly metric: string
  readonly points: number
  readonly answers: readonly WindowAnswer[]
}

/** Whether the lake holds points of a series, or held some until their file was damaged. */
export function wasHeld(known: Known | undefined): boolean {
  return known !== undefined && (known.points > 0 || known.answers.some(isLost))
}

/** Standing refusals by path. */
export interface RefusedPaths {
  /** Refusals to series without points: any such series shows them. */
  readonly fresh: ReadonlyMap<string, StandingRefusal>
  /** Refusals to series with points: the newest of a path. */
  readonly held: ReadonlyMap<string, StandingRefusal>
}

/** Which paths are refused, by what is known of every series. */
export function refusedPaths(held: ReadonlyMap<string, Known>): RefusedPaths {
  const told = [...held.values()].filter(({ answers }) => answers.length > 0)
  const byPath = (series: readonly Known[], standing: (own: readonly Known[]) => StandingRefusal | null) =>
    new Map(
      [...Map.groupBy(series, ({ metric }) => metric)].flatMap(([path, own]) => {
        const one = standing(own)
        return one?.scope === 'path' ? [[path, one] as const] : []
      }),
    )
  const newest = (own: readonly Known[]): StandingRefusal | null =>
    own
      .flatMap(({ answers }) => standingRefusal(answers) ?? [])
      .filter(({ scope }) => scope === 'path')
      .toSorted((a, b) => b.asked_at - a.asked_at)[0] ?? null
  return {
    fresh: byPath(
      told.filter(({ points }) => points <= 0),
      (own) => standingRefusal(own.flatMap(({ answers }) => answers)),
    ),
    held: byPath(
      told.filter(({ points }) => points > 0),
      newest,
    ),
  }
}

/**
 * The refusal for which a series is left alone now: its own, or its path's while it never had a point. Of a path all series
 * are tried again at once, by when any of them was asked last: one request finds out for all (`suspect`).
 */
export function refusalOf(
  path: string,
  known: Known | undefined,
  paths: RefusedPaths,
  now: Instant,
): { readonly refusal: StandingRefusal | null; readonly suspect: boolean } {
  const shared = wasHeld(known) ? undefined : paths.fresh.get(path)
  const own = known === undefined ? null : standingRefusal(known.answers)
  // Told before it had points: nothing that an alarm may rest upon.
  const told = shared ?? (own !== null && (known?.points ?? 0) > 0 && own.since === null ? null : own)
  if (told === null) return { refusal: null, suspect: false }
  // What is refused to those that have points is refused to all.
  const newest = told.scope === 'path' ? paths.held.get(path) : undefined
  const asked_at = Math.max(told.asked_at, newest?.asked_at ?? told.asked_at)
  if (!isTriedAgain({ ...told, asked_at }, now)) return { refusal: told, suspect: false }
  return { refusal: null, suspect: told.scope === 'path' }
}
