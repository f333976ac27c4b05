import type { Json } from '../ledger/entry.ts'
import { heldPassing, heldState } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { proven } from '../ledger/row.ts'
import { type ValueCheck, mapOf, oneOf, orNull, real, shape, text } from '../ledger/shape.ts'
import { layersShape } from './layers.ts'

/** What is kept of a snapshot: its date (`YYYY-MM-DD`, UTC), and the microsecond at which it was observed. */
export const snapshotFields = { date: text, observed_at: real, as_of: orNull(text), source: oneOf('snapshot', 'lists') }
const snapshot = shape(snapshotFields)

/**
 * Stands for a cursor that is lost: nobody can send it back, so that a sync begins with a snapshot in a new epoch, and what
 * that shows changed some time before.
 */
export const lostCursor = '\uFFFD'

const none: { readonly [key: string]: never } = {}

type Reading = <T>(key: string, check: ValueCheck<T>) => T | null

/** The cursor of the last commit. */
export function committedCursor(ledger: Ledger): string | null {
  return stateOf(ledger)('cursor', text)
}

function stateOf(ledger: Ledger): Reading {
  return (key, check) => provenOr(check, heldState(ledger, `registry.${key}`), key)
}

function provenOr<T>(check: ValueCheck<T>, value: Json | undefined, key: string): T | null {
  return value === undefined || value === null ? null : proven(check, value, `registry.${key}`)
}

/** Where the registry stands, as the last commit said; the cursor is that of a later poll which brought no news, if any. */
export function registryState(ledger: Ledger) {
  const read = stateOf(ledger)
  const committed = committedCursor(ledger)
  const { further } = passingFacts(ledger)
  return {
    cursor: further !== null && further.after === committed ? further.cursor : committed,
    /** Counts the epochs of the feed that this lake has seen, from 1; 0 before the first snapshot. */
    epoch: Number(read('epoch', text) ?? 0),
    first: read('first_snapshot', snapshot),
    last: read('last_snapshot', snapshot),
    layers: read('layers', mapOf(layersShape)) ?? none,
    /** Open rows of each table. */
    records: read('records', mapOf(real)) ?? none,
  }
}

export type RegistryState = Readonly<ReturnType<typeof registryState>>

/** The state as a commit names it. */
export function stateDraft({ epoch, first, last, ...rest }: Partial<RegistryState>): { [key: string]: Json } {
  const counted = epoch === undefined ? undefined : String(epoch)
  return named({ ...rest, epoch: counted, first_snapshot: first, last_snapshot: last })
}

function named(facts: Readonly<Record<string, unknown>>): { [key: string]: Json } {
  const set = Object.entries(facts).filter(([, value]) => value !== undefined)
  return Object.fromEntries(set.map(([key, value]) => [`registry.${key}`, value])) as { [key: string]: Json }
}

/** Reads the facts that make no version. */
export function passingFacts(ledger: Ledger) {
  const read: Reading = (key, check) => provenOr(check, heldPassing(ledger, `registry.${key}`)?.value, key)
  return {
    /** Where the feed goes on after polls that brought no news since the commit of that cursor. */
    further: read('further', shape({ after: orNull(text), cursor: text })),
    tags: read('tags', mapOf(shape({ etag: text, raw: text }))) ?? none,
    /** The last complete poll of the feed, Unix milliseconds. */
    polled: read('polled', real),
    /** What the last answers said about limits, by header. */
    limits: read('limits', mapOf(text)) ?? none,
    /** Until when the provider refuses snapshots, Unix milliseconds. */
    snapshotLimit: read('snapshot_limit', real),
    notModified: read('not_modified', real) ?? 0,
  }
}

export type PassingFacts = Readonly<ReturnType<typeof passingFacts>>

/** The entity tags of answers, by path and query, with the raw file that holds the body. */
export type Tags = PassingFacts['tags']

/** The facts as a commit notes them. */
export function passingDraft({ snapshotLimit, notModified, ...rest }: Partial<PassingFacts>): { [key: string]: Json } {
  return named({ ...rest, snapshot_limit: snapshotLimit, not_modified: notModified })
}
