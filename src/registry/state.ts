import type { Json } from '../ledger/entry.ts'
import { heldSoft, heldState } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Layers } from './layers.ts'

/** The last snapshot that was applied. */
export interface LastSnapshot {
  /** `YYYY-MM-DD`, UTC. */
  readonly date: string
  /** Microseconds. */
  readonly observed_at: number
  readonly as_of: string | null
  readonly source: 'snapshot' | 'lists'
}

/**
 * Stands for a cursor that is lost: nobody can send it back, so that a sync begins with a snapshot in a new epoch, and what
 * that shows changed some time before.
 */
export const lostCursor = '\uFFFD'

/** Where the registry stands, as the last commit said. */
export interface RegistryState {
  readonly cursor: string | null
  /** Counts the epochs of the feed that this lake has seen, from 1; 0 before the first snapshot. */
  readonly epoch: number
  readonly first: LastSnapshot | null
  readonly last: LastSnapshot | null
  readonly layers: Readonly<Record<string, Layers>>
  /** Open rows of each table. */
  readonly records: Readonly<Record<string, number>>
}

/** The cursor of the last commit. */
export function committedCursor(ledger: Ledger): string | null {
  return (heldState(ledger, 'registry.cursor') as string | null | undefined) ?? null
}

/** Reads the committed state; the cursor is that of a later poll which brought no news, where there was one. */
export function registryState(ledger: Ledger): RegistryState {
  const read = <T>(key: string, otherwise: T): T => (heldState(ledger, `registry.${key}`) as T | undefined) ?? otherwise
  const committed = committedCursor(ledger)
  const { further } = softFacts(ledger)
  return {
    cursor: further !== null && further.after === committed ? further.cursor : committed,
    epoch: Number(read('epoch', '0')),
    first: read<LastSnapshot | null>('first_snapshot', null),
    last: read<LastSnapshot | null>('last_snapshot', null),
    layers: read<RegistryState['layers']>('layers', {}),
    records: read<RegistryState['records']>('records', {}),
  }
}

/** The state as a commit names it. */
export function stateDraft(state: Partial<RegistryState>): { [key: string]: Json } {
  const named: Readonly<Record<string, unknown>> = {
    'registry.cursor': state.cursor,
    'registry.epoch': state.epoch === undefined ? undefined : String(state.epoch),
    'registry.first_snapshot': state.first,
    'registry.last_snapshot': state.last,
    'registry.layers': state.layers,
    'registry.records': state.records,
  }
  const set = Object.entries(named).filter(([, value]) => value !== undefined)
  return Object.fromEntries(set) as { [key: string]: Json }
}

/** The entity tags of answers, by path and query, with the raw file that holds the body. */
export type Tags = Readonly<Record<string, { readonly etag: string; readonly raw: string }>>

/** Facts that make no version. */
export interface SoftFacts {
  /** Where the feed goes on after polls that brought no news since the commit of that cursor. */
  readonly further: { readonly after: string | null; readonly cursor: string } | null
  readonly tags: Tags
  /** The last complete poll of the feed, Unix milliseconds. */
  readonly polled: number | null
  /** What the last answers said about limits, by header. */
  readonly limits: Readonly<Record<string, string>>
  /** Until when the provider refuses snapshots, Unix milliseconds. */
  readonly snapshotLimit: number | null
  readonly notModified: number
}

/** Reads the facts that make no version. */
export function softFacts(ledger: Ledger): SoftFacts {
  const read = <T>(key: string, otherwise: T): T =>
    (heldSoft(ledger, `registry.${key}`)?.value as T | undefined) ?? otherwise
  return {
    further: read<SoftFacts['further']>('further', null),
    tags: read<Tags>('tags', {}),
    polled: read<number | null>('polled', null),
    limits: read<SoftFacts['limits']>('limits', {}),
    snapshotLimit: read<number | null>('snapshot_limit', null),
    notModified: read('not_modified', 0),
  }
}

/** The facts as a commit notes them. */
export function softDraft(facts: Partial<SoftFacts>): { [key: string]: Json } {
  const named: Readonly<Record<string, unknown>> = {
    'registry.further': facts.further,
    'registry.tags': facts.tags,
    'registry.polled': facts.polled,
    'registry.limits': facts.limits,
    'registry.snapshot_limit': facts.snapshotLimit,
    'registry.not_modified': facts.notModified,
  }
  const set = Object.entries(named).filter(([, value]) => value !== undefined)
  return Object.fromEntries(set) as { [key: string]: Json }
}
