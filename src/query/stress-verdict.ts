import { formatDuration } from '../time.ts'

/** One run beside the one that it is held against. */
export interface StressRun {
  readonly kind: 'lag' | 'latency' | 'version'
  /** The delay as it was asked for, or the number of the version. */
  readonly name: string
  /** Seconds added to every instant; null where a quantile or a version was asked for. */
  readonly seconds: number | null
  /** When the version was committed. */
  readonly at: string | null
  readonly rows: number
  /** Rows that the other run does not have. */
  readonly changed: number
  /** Null where it is no number. */
  readonly figure: number | null
  /** The figure that it is held against: on the lake as it is; for a version what the lake says now that was knowable then. */
  readonly before: number | null
  /** By which part of itself the figure moved; null where that cannot be said. */
  readonly moved: number | null
  readonly falls: boolean
}

/** What a delay of one metric alone does to the figure. */
export interface MetricShare {
  readonly metric: string
  readonly figure: number | null
  readonly moved: number | null
  /** Of all that metrics move it by, each alone. */
  readonly share: number
}

/** Whether the figure bears what was tried. */
export interface Verdict {
  readonly verdict: 'holds' | 'falls' | 'undecided'
  readonly reason: string | null
}

/** The part of itself by which a figure moved. */
export function shareOf(figure: number | null, before: number | null): number | null {
  if (figure === null || before === null) return null
  if (figure === before) return 0
  return before === 0 ? null : (figure - before) / Math.abs(before)
}

/** Whether a figure moved, up or down, by more than a part of itself; what is no number any more did. */
export function isFallen(figure: number | null, before: number | null, within: number): boolean {
  if (figure === null || before === null) return figure !== before
  return Math.abs(figure - before) > within * Math.abs(before)
}

/** Delays judge a figure; earlier versions, which may only have held less, are told. */
export function judge(
  runs: readonly StressRun[],
  figure: number,
  edge: number | null,
  shares: readonly MetricShare[],
): Verdict {
  const fallen = runs.find(({ kind, falls }) => falls && kind !== 'version')
  if (fallen === undefined) return { verdict: 'holds', reason: null }
  const [first] = shares
  const from = `the figure goes from ${brief(figure)} to ${fallen.figure === null ? 'nothing' : brief(fallen.figure)} ${inWords(fallen)}`
  const whose = first === undefined || first.share === 0 ? '' : ` of ${first.metric}`
  const lives =
    edge === null
      ? whose === ''
        ? ''
        : `; it lives on those${whose}`
      : `; it lives on ${formatDuration(edge)}${whose}`
  return { verdict: 'falls', reason: `${from}${lives}` }
}

/** What a run tries, in words. */
export function inWords({ kind, name }: Pick<StressRun, 'kind' | 'name'>): string {
  if (kind === 'version') return `at version ${name}`
  if (kind === 'latency') return `with ${name} more to act`
  if (name === 'max') return 'with points as late as the latest of their metric'
  return name.startsWith('p') ? `with points as late as ${name} of their metric` : `with points ${name} later`
}

/** Four digits that count. */
export function brief(value: number): string {
  return String(Number(value.toPrecision(4)))
}

/**
 * The shortest added lag with which the figure falls, to a minute or a twentieth: between the longest that it bore and the
 * first that it did not. Null where it bore all.
 */
export async function edgeOf(
  runs: readonly StressRun[],
  tryLag: (seconds: number) => Promise<StressRun>,
): Promise<number | null> {
  const added = runs.flatMap(({ kind, seconds, falls }) =>
    kind === 'lag' && seconds !== null ? [{ seconds, falls }] : [],
  )
  const first = added.find(({ falls }) => falls)
  if (first === undefined) return null
  let borne = Math.max(0, ...added.filter(({ seconds }) => seconds < first.seconds).map(({ seconds }) => seconds))
  let edge = first.seconds
  while (edge - borne > Math.max(60, borne / 20)) {
    const middle = Math.round((borne + edge) / 2 / 60) * 60
    if (middle <= borne || middle >= edge) break
    const { falls } = await tryLag(middle)
    if (falls) edge = middle
    else borne = middle
  }
  return edge
}
