import { median } from './measured.ts'

/** Processor seconds of one figure on both sides, a number for each round. */
export interface ComparedFigure {
  readonly name: string
  readonly base: readonly number[]
  readonly ours: readonly number[]
}

/** Judgement of a figure against the base commit. */
export interface Comparison {
  /** Ratio of the medians, ours to the base. */
  readonly ratio: number
  /** Ratio of the smallest values, which other work on the machine disturbs least. */
  readonly ratioOfSmallest: number
  /** Whether both ratios are above `mostSlower`. */
  readonly slower: boolean
}

/** Largest ratio that is not a regression. */
export const mostSlower = 1.1

/** Compares a figure. One ratio alone may be noise, so a regression must show in both. */
export function compareFigure({ base, ours }: ComparedFigure): Comparison {
  const ratio = median(ours) / median(base)
  const ratioOfSmallest = Math.min(...ours) / Math.min(...base)
  return { ratio, ratioOfSmallest, slower: ratio > mostSlower && ratioOfSmallest > mostSlower }
}

/** Formats a figure and its judgement as a line. */
export function comparedLine(figure: ComparedFigure): string {
  const { ratio, ratioOfSmallest, slower } = compareFigure(figure)
  const seconds = `${median(figure.base).toFixed(2)} s before, ${median(figure.ours).toFixed(2)} s now`
  const verdict = slower ? `SLOWER by more than ${Math.round((mostSlower - 1) * 100)} %` : 'kept'
  return `${figure.name}: ${seconds}, ratio ${ratio.toFixed(2)} (smallest ${ratioOfSmallest.toFixed(2)}), ${verdict}`
}
