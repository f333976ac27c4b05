import { formatDuration } from '../../base/time.ts'

/** Run, and its comparison with another one. */
export interface StressRun {
  /** `lag`, `latency` or `version`. */
  readonly kind: 'lag' | 'latency' | 'version'
  /** The delay as given, or the number of the version. */
  readonly name: string
  /** Seconds added to each timestamp; null for a quantile or a version. */
  readonly seconds: number | null
  /** When the version was committed; null for a delay. */
  readonly at: string | null
  /** Rows of the result. */
  readonly rows: number
  /** Rows that the compared run does not have. */
  readonly changed: number
  /** The statistic; null if it is not a number. */
  readonly statistic: number | null
  /** The statistic that it is compared with; null if it is not a number. */
  readonly before: number | null
  /** Relative change of the statistic; null if it is not known. */
  readonly moved: number | null
  /** Whether the statistic changed by more than `--within` allows. */
  readonly falls: boolean
}

/** Effect of a delay of one metric alone on the statistic. */
export interface MetricShare {
  /** Path of the metric. */
  readonly metric: string
  /** Statistic under the delay; null if it is not a number. */
  readonly statistic: number | null
  /** Relative change of the statistic; null if it is not known. */
  readonly moved: number | null
  /** Share of this metric in the sum of the changes of all metrics, each delayed alone. */
  readonly share: number
}

/** Rating of a statistic under stress; `leak`: its query looks ahead. */
export type StressRating = 'holds' | 'falls' | 'leak' | 'undecided'

/** Verdict on a statistic under stress. */
export interface StressVerdict {
  /** `holds`, `falls`, `leak` or `undecided`. */
  readonly verdict: StressRating
  /** Why; null if the statistic holds. */
  readonly reason: string | null
}

/** Verdicts in words for people. */
export const stressWords: Readonly<Record<StressRating, string>> = {
  holds: 'holds',
  falls: 'falls apart',
  leak: 'looks ahead',
  undecided: 'undecided',
}

/** Computes the share of itself by which a statistic moved. */
export function movedShare(statistic: number | null, before: number | null): number | null {
  if (statistic === null || before === null) return null
  if (statistic === before) return 0
  return before === 0 ? null : (statistic - before) / Math.abs(before)
}

/** Whether a statistic moved, up or down, by more than a part of itself; one that is no number any more did. */
export function isFallen(statistic: number | null, before: number | null, within: number): boolean {
  if (statistic === null || before === null) return statistic !== before
  return Math.abs(statistic - before) > within * Math.abs(before)
}

/**
 * Judges a statistic by delays; earlier versions, which may only have had less data, are reported without judgement.
 */
export function stressVerdict(
  runs: readonly StressRun[],
  statistic: number,
  borne: number | null,
  shares: readonly MetricShare[],
): StressVerdict {
  const fallen = runs.find(({ kind, falls }) => falls && kind !== 'version')
  if (fallen === undefined) return { verdict: 'holds', reason: null }
  const fallenStatistic = fallen.statistic === null ? 'nothing' : briefFigure(fallen.statistic)
  const [first] = shares
  const lag = borne === null ? [] : [borne === 0 ? 'less than a minute' : formatDuration(borne)]
  const limits = [
    ...lag.map((safe) => `survives a delay of ${safe}`),
    ...(first === undefined || first.share === 0 ? [] : [`depends most on ${first.metric}`]),
  ]
  const lives = limits.length === 0 ? '' : `; it ${limits.join(' and ')}`
  return {
    verdict: 'falls',
    reason: `the statistic goes from ${briefFigure(statistic)} to ${fallenStatistic} ${describeRun(fallen)}${lives}`,
  }
}

/** Describes the delay or version that a run tries. */
export function describeRun({ kind, name }: Pick<StressRun, 'kind' | 'name'>): string {
  if (kind === 'version') return `at version ${name}`
  if (kind === 'latency') return `with ${name} more to act`
  if (name === 'max') return 'with points as late as the latest of their metric'
  return name.startsWith('p') ? `with points as late as ${name} of their metric` : `with points ${name} later`
}

/** Formats a statistic with four significant digits. */
export function briefFigure(value: number): string {
  return String(Number(value.toPrecision(4)))
}

/**
 * Finds the longest added lag, in seconds, under which a statistic holds that falls under a longer one, to within a
 * minute or 5 %. Null if it fell under no lag that was tried.
 */
export async function longestSafeLag(
  runs: readonly StressRun[],
  falls: (seconds: number) => Promise<boolean>,
): Promise<number | null> {
  const added = runs.flatMap((run) => (run.kind === 'lag' && run.seconds !== null ? [{ ...run, by: run.seconds }] : []))
  const first = added.find((run) => run.falls)
  if (first === undefined) return null
  let borne = Math.max(0, ...added.filter(({ by }) => by < first.by).map(({ by }) => by))
  let fallen = first.by
  while (fallen - borne > Math.max(60, borne / 20)) {
    const middle = Math.round((borne + fallen) / 120) * 60
    if (middle <= borne || middle >= fallen) break
    if (await falls(middle)) fallen = middle
    else borne = middle
  }
  return borne
}
