import { seriesNumber } from '../ledger/apply.ts'
import { commit, type CommitDeps } from '../ledger/commit.ts'
import type { Progress } from '../ledger/entry.ts'
import { heldSeries, liveFiles, storedInterval } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { heldMonths, monthsBetween } from '../ledger/month-digests.ts'
import { chained } from '../points/chains.ts'
import { identityOf } from '../points/conversion.ts'
import { monthsIn, seriesKey } from '../points/month-sums.ts'
import { Engine } from '../store/engine.ts'

/** The series of which the ledger does not know the chain of every point: earlier programs told none, or of lines. */
function unchained(ledger: Ledger): string[] {
  const known = "coalesce((SELECT sum(points) FILTER (WHERE chain LIKE 'b%') FROM digests WHERE series = n), 0)"
  const rows = ledger.statement(`SELECT id FROM series WHERE points > 0 AND points <> ${known} ORDER BY n`).all()
  return rows.map(({ id }) => String(id))
}

/** Reads the points of a lake of an earlier layout once, so that the state tells all: a version, but no data file. */
export async function completeState(ledger: Ledger, deps: CommitDeps): Promise<void> {
  const { provider } = ledger.head()
  if (provider === null || unchained(ledger).length === 0) return
  using engine = await Engine.open()
  const draft = async ({ version }: { readonly version: number }) => {
    const progress = await chainless(ledger, engine)
    return progress.length === 0 ? null : { job: 'tree', run: `tree-${version}`, provider, progress }
  }
  await commit(ledger, draft, deps)
}

/** What the ledger lacks of what their files hold: every month of which the chain is not known. */
async function chainless(ledger: Ledger, engine: Engine): Promise<Progress[]> {
  const series = [...heldSeries(ledger, unchained(ledger)).values()]
  const ids = new Map(series.map((one) => [seriesKey(one.metric, storedInterval(one), identityOf(one)), one.id]))
  const there = await monthsIn(engine, ledger.root, liveFiles(ledger, { table: 'points' }), (key) => ids.get(key))
  return series.flatMap(({ id, first_t, last_t }): Progress[] => {
    const held = heldMonths(ledger, seriesNumber(ledger, id) ?? 0)
    const own = there.get(id)
    const change = monthsBetween(held, own ?? new Map<string, never>())
    const digests = [...(own?.keys() ?? [])].flatMap((month): [string, string][] => {
      const { points, digest } = change.get(month) ?? { points: 0, digest: '0'.repeat(16) }
      return change.has(month) || held.get(month)?.chain === undefined ? [[month, `${points} ${digest}`]] : []
    })
    if (digests.length === 0 || first_t === null || last_t === null) return []
    return [chained({ series: id, points: 0, first_t, last_t, digests: Object.fromEntries(digests) }, own)]
  })
}
