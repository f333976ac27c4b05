import { formatMicros, parseMicros } from '../time.ts'
import { heldVersions } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { PinnedQuery } from './pinned.ts'
import type { Vintage } from './stress-delays.ts'
import type { StressSource } from './stress.ts'

/** A pinned query with so many earlier versions to try. */
export function withVintages(ledger: Ledger, source: PinnedQuery, wanted: number): StressSource {
  return { ...source, vintages: vintagesOf(ledger, source, wanted) }
}

/**
 * So many of the versions before this one, and before what the query sees at most, that brought something (merges and
 * redatings take files away): evenly among them, the last with them.
 */
function vintagesOf(
  ledger: Ledger,
  { version, variables: { observed_as_of: seen } }: PinnedQuery,
  wanted: number,
): readonly Vintage[] {
  const until = (typeof seen === 'string' ? parseMicros(seen) : undefined) ?? Infinity
  const told = heldVersions(ledger).filter(
    (one) => one.version < version && one.files_added > 0 && one.files_removed === 0 && one.committed_at < until,
  )
  const count = Math.min(wanted, told.length)
  const places = Array.from({ length: count }, (_, i) => Math.floor(((i + 1) * told.length) / count) - 1)
  return places.flatMap((place) => {
    const one = told[place]
    return one === undefined ? [] : [{ version: one.version, at: formatMicros(one.committed_at) }]
  })
}
