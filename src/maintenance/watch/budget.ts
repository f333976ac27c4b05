import { type Instant, longestSeconds } from '../../base/time.ts'
import type { NextPoint } from './next-points.ts'

/** Credits that may still be spent, and until when. */
interface CreditBudget {
  readonly credits: number
  readonly until: Instant
}

/**
 * Puts off the polls of points as far as the credits require; pure. The points that are dearest to miss come first:
 * those of the coarser interval, because a single later request brings all missed points of a finer one. If the credits
 * do not suffice for every poll of an interval, its polls are spread evenly over the time that is left; if they do not
 * suffice for one poll of each series, those that were due first are requested, the others when the budget is renewed.
 */
export function paceToBudget(
  points: readonly NextPoint[],
  price: (point: NextPoint) => number,
  budget: CreditBudget | null,
  at: Instant,
): readonly NextPoint[] {
  if (budget === null) return points
  const { until } = budget
  const duePoints = points.filter(({ poll }) => poll < until)
  const groups = [...Map.groupBy(duePoints, ({ interval }) => longestSeconds(interval))].toSorted(([a], [b]) => b - a)
  let creditsLeft = Math.max(0, budget.credits)
  const put = new Map<NextPoint, NextPoint>()
  for (const [seconds, group] of groups) {
    const round = total(group, price)
    const groupCredits = total(group, (point) => price(point) * pollsUntil(point, seconds, budget, at))
    if (groupCredits <= creditsLeft) {
      creditsLeft -= groupCredits
      continue
    }
    const rounds = round === 0 ? 0 : Math.floor(creditsLeft / round)
    const spacing = Math.ceil((until - at) / Math.max(1, rounds))
    for (const point of group) {
      const fits = rounds > 0 || price(point) <= creditsLeft
      if (rounds === 0 && fits) creditsLeft -= price(point)
      const poll = fits
        ? Math.max(point.poll, rounds === 0 ? point.poll : (point.lastRequested ?? at - spacing) + spacing)
        : until
      put.set(point, { ...point, poll: Math.min(until, poll) })
    }
    creditsLeft -= rounds * round
  }
  return points.map((point) => put.get(point) ?? point)
}

/** Counts how often a point and those after it are requested until the budget is renewed. */
function pollsUntil({ by, poll }: NextPoint, seconds: number, { until }: CreditBudget, at: Instant): number {
  if (by !== 'rule' && by !== 'told' && by !== 'learnt') return 1
  return 1 + Math.floor((until - 1 - Math.max(poll, at)) / seconds)
}

function total(points: readonly NextPoint[], of: (point: NextPoint) => number): number {
  let sum = 0
  for (const point of points) sum += of(point)
  return sum
}
