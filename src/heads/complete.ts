import { commit, type CommitDeps } from '../ledger/commit.ts'
import type { Progress } from '../ledger/entry.ts'
import { heldSeries, liveFiles, storedInterval } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { seriesNumber } from '../ledger/apply.ts'
import { heldMonths, type Months, monthsBetween } from '../ledger/month-digests.ts'
import { withChains } from '../points/chains.ts'
import { identityOf } from '../points/conversion.ts'
import { monthsIn, seriesKey } from '../points/month-sums.ts'
import { Engine } from '../store/engine.ts'

/** The series of which the ledger does not know the chain of every point: earlier programs told none. */
function unchained(ledger: Ledger): string[] {
  return ledger
    .statement(
      `SELECT id FROM series WHERE points > 0 AND points <>
         coalesce((SELECT sum(points) FILTER (WHERE chain IS NOT NULL) FROM digests WHERE series = n), 0) ORDER BY n`,
    )
    .all()
    .map(({ id }) => String(id))
}

/**
 * Reads the points of a lake of an earlier layout once, so that the state tells them all: a version of its own, after the
 * one that brought the lake forward. No data file is touched. Elsewhere it does nothing.
 */
export async function completeState(ledger: Ledger, deps: CommitDeps): Promise<void> {
  const { provider } = ledger.head()
  if (provider === null || unchained(ledger).length === 0) return
  using engine = await Engine.open()
  await commit(
    ledger,
    async ({ version }) => {
      const progress = await chainless(ledger, engine)
      if (progress.length === 0) return null
      const chained = await withChains(ledger, engine, progress, { add: [], remove: [] })
      return { job: 'tree', run: `tree-${version}`, provider, progress: chained }
    },
    deps,
  )
}

/** What their digests lack of what their files hold, every month of which the chain is not known among it. */
async function chainless(ledger: Ledger, engine: Engine): Promise<Progress[]> {
  const series = [...heldSeries(ledger, unchained(ledger)).values()]
  const ids = new Map(series.map((one) => [seriesKey(one.metric, storedInterval(one), identityOf(one)), one.id]))
  const files = liveFiles(ledger, { table: 'points' })
  const there = await monthsIn(engine, ledger.root, files, (key) => ids.get(key))
  return series.flatMap(({ id, first_t, last_t }): Progress[] => {
    const held = heldMonths(ledger, seriesNumber(ledger, id) ?? 0)
    const own: Months = there.get(id) ?? new Map<string, never>()
    const change = monthsBetween(held, own)
    const months = [...own.keys()].filter((month) => change.has(month) || held.get(month)?.chain === undefined)
    if (months.length === 0 || first_t === null || last_t === null) return []
    const told = months.map((month) => {
      const { points, digest } = change.get(month) ?? { points: 0, digest: '0'.repeat(16) }
      return [month, `${points} ${digest}`] as const
    })
    return [{ series: id, points: 0, first_t, last_t, digests: Object.fromEntries(told) }]
  })
}
