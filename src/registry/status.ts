import type { Catalogue } from '../catalog/catalogue.ts'
import { Engine } from '../store/engine.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { recordTables } from './columns.ts'
import { countSchemaChanges, readCounts, readEventCounts, tableFiles } from './held.ts'
import { registryState, passingFacts } from './state.ts'
import { askBeside, type BesideDeps } from '../ledger/connection.ts'
import { describeOutcome } from '../net/outcome.ts'
import { usualRetries } from '../net/retry.ts'
import { readBytes } from '../store/files.ts'
import { changesAsk, registryUrl, stop, type Stopped } from './reading.ts'
import { readPage } from './bodies.ts'
import { registryApi, type RegistryInput } from './run.ts'

/** Where the registry stands by what its jobs committed; instants are ISO text, UTC. Names are relied on by scripts. */
export type RegistryFacts = Readonly<ReturnType<typeof registryFacts>>

/** Reads them. */
export function registryFacts(ledger: Ledger) {
  const { first, last, epoch } = registryState(ledger)
  return {
    first_snapshot: first?.date ?? null,
    last_snapshot: last?.date ?? null,
    /** Epochs of the feed seen, from 1; 0 before the first snapshot. */
    epoch,
    /** The last poll of the feed that came to its tail. */
    feed_at: iso(passingFacts(ledger).polled),
  }
}

/** The same with what the files and the last answers tell. */
export type RegistryStatus = Readonly<Awaited<ReturnType<typeof registryStatus>>>

/** Reads what the lake knows; `behind` is what the feed says after the held cursor, if it was asked. `now` in Unix milliseconds. */
export async function registryStatus(ledger: Ledger, catalogue: Catalogue, now: number, behind: boolean | null) {
  const state = registryState(ledger)
  const { polled, limits, snapshotLimit, notModified } = passingFacts(ledger)
  const tables = [...recordTables(catalogue.resources).keys()]
  using engine = await Engine.open(':memory:', { threads: 2 })
  const counts = await readCounts(ledger, engine, tables)
  const events = await readEventCounts(ledger, engine)
  const countsOf = (what: 'open' | 'versions'): Readonly<Record<string, number>> =>
    Object.fromEntries(tables.map((table) => [table, counts[table]?.[what] ?? 0]))
  const limit = (name: string): number | null => {
    const value = limits[name]
    return value !== undefined && /^\d+/.test(value) ? Number.parseInt(value, 10) : null
  }
  return {
    ...registryFacts(ledger),
    last_snapshot_source: state.last?.source ?? null,
    /** Seconds since the poll of `feed_at`. */
    cursor_age: polled === null ? null : Math.max(0, Math.round((now - polled) / 1000)),
    cursor: state.cursor,
    /** Whether the provider's feed has gone on since; null where it was not asked or does not answer. */
    behind,
    records: countsOf('open'),
    versions: countsOf('versions'),
    events,
    limits: {
      per_minute: limit('x-ratelimit-limit'),
      per_minute_remaining: limit('x-ratelimit-remaining'),
      daily: limit('x-quota-daily-limit'),
      daily_remaining: limit('x-quota-daily-remaining'),
      /** Until when the provider refuses snapshots. */
      snapshots_from: iso(snapshotLimit !== null && snapshotLimit > now ? snapshotLimit : null),
    },
    /** Changes of the schema that were told (view `schema_changes`). */
    schema_changes: await countSchemaChanges(ledger, engine),
    /** Answers 304 so far. */
    not_modified: notModified,
  }
}

/** How many changes of the schema of registry records were told; null where that cannot be read. */
export async function schemaChanges(ledger: Ledger): Promise<number | null> {
  if (tableFiles(ledger, 'schema_changes').length === 0) return 0
  using engine = await Engine.open(':memory:', { threads: 1 })
  return await countSchemaChanges(ledger, engine).catch(() => null)
}

function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** Asks once whether the feed has anything after a cursor; the lake is not touched. Cursors are opaque: none is compared. */
export async function readFeedAhead(
  input: RegistryInput,
  deps: BesideDeps,
  cursor: string,
): Promise<{ kind: 'asked'; ahead: boolean } | Stopped> {
  const api = registryApi(input)
  const retry = { ...usualRetries, attempts: 1, limitedAttempts: 1 }
  return await askBeside(api, deps, { perMinute: api.perMinute, retry }, async ({ ask, base, file }) => {
    const url = registryUrl(base, changesAsk(cursor, null))
    const { outcome } = await ask({ id: 'page', url, file: file('page.json') })
    if (outcome.kind !== 'body') return stop('failed', describeOutcome(outcome))
    const page = readPage(await readBytes(outcome.file), input.catalogue.resources)
    if (!page.ok) return stop('failed', page.reason)
    return { kind: 'asked', ahead: page.value.hasMore || page.value.events.length > 0 }
  })
}
