import { type SeriesCount, countSeries, identityColumns } from '../../lake/store/parquet.ts'
import { storedState } from '../../lake/ledger/index-queries.ts'
import type { Index } from '../../lake/ledger/index-rows.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import type { FileEntry, Json } from '../../lake/ledger/entry.ts'
import { sharesOf } from './files.ts'
import { revisableKey } from '../../lake/ledger/draft.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'

/** Returns the metrics whose points may have several vintages in this lake; any other point has one row. */
export function storedRevisable(index: Index): readonly string[] {
  const state = storedState(index, revisableKey)
  return Array.isArray(state) ? state.map(String) : []
}

/** The part of an entry's state that names the revisable metrics; empty if there are none. */
export type RevisableState = { readonly [key: string]: Json }

function stateOf(metrics: Iterable<string>): RevisableState {
  const all = [...new Set(metrics)].toSorted()
  return all.length === 0 ? {} : { [revisableKey]: all }
}

/** Builds the state of a draft that adds points of these metrics as revisable ones. */
export const revisableState = (index: Index, metrics: readonly string[]): RevisableState =>
  stateOf([...storedRevisable(index), ...metrics])

/** Returns the metrics that a catalogue declares revisable. */
export function revisableIn({ endpoints }: Pick<Catalogue, 'endpoints'>): ReadonlySet<string> {
  return new Set([...endpoints.values()].flatMap(({ path, revisable }) => (revisable ? [path] : [])))
}

/** Builds the state of a lake that is rebuilt from these files. */
export function revisableAnew(names: ReadonlySet<string>, files: readonly FileEntry[]): RevisableState {
  return stateOf(files.flatMap(sharesOf).flatMap(({ metric }) => (names.has(metric) ? [metric] : [])))
}

/**
 * Counts the points of series in a relation over points files, for metrics that may have several vintages of a point.
 */
export async function countStarts(engine: Engine, index: Index, points: string): Promise<SeriesCount[]> {
  const names = storedRevisable(index).map(quote).join(', ')
  if (names === '') return []
  const series = `metric, "interval", ${identityColumns.join(', ')}`
  return await countSeries(engine, `(SELECT DISTINCT ${series}, t FROM ${points} WHERE metric IN (${names}))`)
}
