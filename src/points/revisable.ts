import { heldState } from '../ledger/held.ts'
import type { Index } from '../ledger/row.ts'
import type { Json } from '../ledger/entry.ts'
import { revisableKey } from '../ledger/draft.ts'
import { type Engine, quote } from '../store/engine.ts'
import { type Counted, countSeries, identityColumns } from '../store/parquet.ts'

/** The metrics whose points may have several vintages in this lake: a point of any other one has one row. */
export function heldRevisable(index: Index): readonly string[] {
  const held = heldState(index, revisableKey)
  return Array.isArray(held) ? held.map(String) : []
}

/** The state of a draft that brings points of these metrics as revisable ones. */
export function revisableState(index: Index, metrics: Iterable<string>): { readonly [key: string]: Json } {
  const all = new Set([...heldRevisable(index), ...metrics])
  return all.size === 0 ? {} : { [revisableKey]: [...all].toSorted() }
}

/** How many points series have in a relation over points files, of those that may have several vintages of one. */
export async function countStarts(engine: Engine, index: Index, points: string): Promise<Counted[]> {
  const names = heldRevisable(index).map(quote).join(', ')
  if (names === '') return []
  const series = `metric, "interval", ${identityColumns.join(', ')}`
  return await countSeries(engine, `(SELECT DISTINCT ${series}, t FROM ${points} WHERE metric IN (${names}))`)
}
