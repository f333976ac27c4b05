import { heldState } from '../ledger/held.ts'
import type { Index } from '../ledger/row.ts'
import type { Json } from '../ledger/entry.ts'
import { revisableKey } from '../ledger/draft.ts'

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
