import { proveNoLookahead, type LookaheadProof } from '../lookahead/lookahead.ts'
import { prepareScript } from '../lookahead/script.ts'
import { changedPoints } from '../lookahead/world.ts'
import { openAltered } from '../../query/altered-lake.ts'
import type { RunDeps } from '../../query/run.ts'
import { lowerName } from '../../lake/store/engine.ts'
import { pinnedOptions, type PinnedQuery } from './stamped-rows.ts'
import type { DecidedColumns } from './stress-delays.ts'

/** Numbers of cut-offs: for any query, and for one that the plan proves. */
const often = { cutoffs: 20, control: 5 }

/**
 * Whether the rows of a pinned query look ahead. A query that does is no strategy: it is judged before any delay is
 * tried. Its own `as_of` gives way to those of the cut-offs.
 */
export async function judgeLookahead(
  source: PinnedQuery,
  { ts, labels }: DecidedColumns,
  run: RunDeps,
): Promise<LookaheadProof> {
  const variables = Object.fromEntries(Object.entries(source.variables).filter(([name]) => lowerName(name) !== 'as_of'))
  const options = pinnedOptions({ ...source, variables })
  const open = async () => await openAltered(source.root, changedPoints, options)
  using first = await open()
  const { sql, preparation, single } = await prepareScript(first, source.query, run)
  const planned = preparation.length > 0 ? { planned: single } : {}
  const input = { sql, preparation, ...planned, ts, labels, ...often, tolerance: 1e-12 }
  return await proveNoLookahead(open, input, run)
}
