import type { Catalogue, Resource } from '../../catalog/catalogue.ts'
import {
  type StoredEntities,
  type StoredEntity,
  type StoredTexts,
  type RecordFinding,
  type EntityName,
  verifyKinds,
} from './history.ts'
import { addKey, changeLine, type KnownKeys, noKeys } from './keys.ts'
import { Engine, quote } from '../../lake/store/engine.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import { inLake } from '../../lake/store/layout.ts'
import { parquet } from '../../lake/store/parquet.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { textHash } from './record.ts'
import { filterFields } from './verify-plan.ts'
import { recordTables, registryStatement, relation } from './columns.ts'
import { count, flag, oneOf, orNull, real, type Shaped, text } from '../../base/value-checks.ts'
import { rowsAs } from '../../lake/ledger/index-rows.ts'
import { passingFacts, registryState } from './staging.ts'
import { askBeside, type BesideDeps } from '../http/connection.ts'
import { describeOutcome } from '../http/outcome.ts'
import { usualRetries } from '../http/retry.ts'
import { readBytes } from '../../lake/store/files.ts'
import { changesAsk, registryUrl, stop, type Stopped } from './reading.ts'
import { readPage } from './bodies.ts'
import { registryApi, type RegistryInput } from './run.ts'

/** Lists the live files of a registry table, absolute, each once. */
export function tableFiles(ledger: Ledger, table: string): string[] {
  return [...new Set(liveFiles(ledger, { table }).map((file) => inLake(ledger.root, file.path)))]
}

const relationOf = (ledger: Ledger, table: string): string => relation(table, tableFiles(ledger, table))

/** Reads the rows of a large result one by one, each as the values of its columns. */
async function eachRow(engine: Engine, sql: string, take: (...values: readonly unknown[]) => void): Promise<void> {
  for await (const { rows, columns } of (await engine.stream(sql)).chunks)
    for (let n = 0; n < rows; n++) take(...columns.map((column) => column[n] ?? null))
}

/**
 * Reads the newest state of every entity of the named resources; for those that are `filtered`, with the fields of
 * their filters.
 */
export async function readHeld(
  ledger: Ledger,
  engine: Engine,
  resources: readonly string[],
  filtered: readonly Resource[] = [],
): Promise<StoredEntities> {
  const byResource = new Map<string, Map<string, StoredEntity>>()
  for (const resource of resources) {
    const entities = new Map<string, StoredEntity>()
    byResource.set(resource, entities)
    if (tableFiles(ledger, `history.${resource}`).length === 0) continue
    const deployments = resource === 'deployments'
    const filteredResource = filtered.find(({ name }) => name === resource)
    const columns = filteredResource && filterFields(filteredResource).map(([, field]) => `"${field}"`)
    const sql = registryStatement('entity_states', {
      steps: relationOf(ledger, `history.${resource}`),
      absorbed: relationOf(ledger, 'absorbed'),
      resource: quote(resource),
      product: deployments ? 'product_id' : 'CAST(NULL AS VARCHAR)',
      verified: deployments ? `verification_status = 'verified'` : 'false',
      fields: columns ? `[${columns.join(', ')}]::VARCHAR[]` : 'CAST(NULL AS VARCHAR[])',
    })
    await eachRow(engine, sql, (id, open, product, verified, hash, at, pollReason) => {
      const seen = { hash: hash as string | null, at: at as number }
      const rest = { product: product as string | null, verified: verified === true }
      const fields =
        pollReason === null ? {} : { fields: JSON.parse(pollReason as string) as readonly (string | null)[] }
      entities.set(id as string, { id: id as string, open: open === true, ...seen, ...rest, ...fields })
    })
  }
  return byResource
}

/** Reads the texts of the named entities. */
export async function readTexts(
  ledger: Ledger,
  engine: Engine,
  wanted: readonly EntityName[],
): Promise<(resource: string, id: string) => StoredTexts | undefined> {
  const texts = new Map<string, Map<string, StoredTexts>>()
  for (const [resource, names] of Map.groupBy(wanted, (entityName) => entityName.resource)) {
    const textsById = new Map<string, StoredTexts>()
    texts.set(resource, textsById)
    const sql = registryStatement('entity_records', {
      steps: relationOf(ledger, `history.${resource}`),
      absorbed: relationOf(ledger, 'absorbed'),
      resource: quote(resource),
      ids: quote(JSON.stringify([...new Set(names.map(({ id }) => id))])),
    })
    await eachRow(engine, sql, (id, version, latest) => {
      textsById.set(id as string, { version: version as string, latest: (latest ?? version) as string })
    })
  }
  return (resource, id) => texts.get(resource)?.get(id)
}

const changeFields = { resource: text, path: text, since: real, kind: text, value: orNull(text) }

/** Reads the known keys of the records of each resource, and the reported changes of its schema. */
export async function readKeys(ledger: Ledger, engine: Engine): Promise<Map<string, KnownKeys>> {
  const keysByResource = new Map<string, KnownKeys>()
  const rows = await rowsAs(
    engine,
    changeFields,
    `SELECT resource, path, CAST(min(epoch_us("at")) AS DOUBLE) AS since, coalesce(kind, 'key') AS kind, value
     FROM ${relationOf(ledger, 'schema_changes')}
     GROUP BY resource, path, coalesce(kind, 'key'), value ORDER BY since, length(path)`,
  )
  for (const { resource, path, since, kind, value } of rows) {
    let keys = keysByResource.get(resource)
    if (!keys) keysByResource.set(resource, (keys = noKeys()))
    if (kind === 'key') addKey(keys, path, since)
    else keys.reportedChanges.add(changeLine(kind, path, value))
  }
  return keysByResource
}

/** Counts the recorded changes of the schema, without those of the first snapshot. */
export async function countSchemaChanges(ledger: Ledger, engine: Engine): Promise<number> {
  const [row] = await rowsAs(
    engine,
    { changes: count },
    `SELECT count(*) AS changes FROM (SELECT path FROM ${relationOf(ledger, 'schema_changes')}
     GROUP BY resource, path, coalesce(kind, 'key'), value HAVING NOT bool_or(initial))`,
  )
  return row?.changes ?? 0
}

/** Reads the last stored event of every entity as a hash, by `type id`. */
export async function readLastEvents(ledger: Ledger, engine: Engine): Promise<Map<string, string>> {
  const sql = registryStatement('last_events', { events: relationOf(ledger, 'events') })
  const rows = await rowsAs(engine, { entity_type: text, entity_id: text, hash: text }, sql)
  return new Map(rows.map(({ entity_type, entity_id, hash }) => [`${entity_type} ${entity_id}`, hash]))
}

/** Reads the findings on record, each as one text (`findingLine`). */
export async function readFindings(ledger: Ledger, engine: Engine): Promise<Set<string>> {
  const rows = await rowsAs(
    engine,
    { line: text },
    `SELECT concat_ws(chr(10), kind, resource, id, detail, md5(held), md5(offered)) AS line
     FROM ${relationOf(ledger, 'registry_findings')}`,
  )
  return new Set(rows.map(({ line }) => line))
}

const findingFields = {
  found_at: real,
  kind: oneOf(...verifyKinds),
  resource: text,
  id: text,
  detail: text,
  held: orNull(text),
  offered: orNull(text),
}

/** Reads the findings of verifies, oldest first. */
export async function readVerifyFindings(ledger: Ledger, engine: Engine): Promise<Shaped<typeof findingFields>[]> {
  return await rowsAs(
    engine,
    findingFields,
    `SELECT CAST(epoch_us("at") AS DOUBLE) AS found_at, kind, resource, id, detail, held, offered
     FROM ${relationOf(ledger, 'registry_findings')} WHERE kind IN (${verifyKinds.map(quote).join(', ')})
     ORDER BY "at", resource, id, detail`,
  )
}

/** Returns a text that identifies a finding. */
export function findingLine({ kind, resource, id, detail, held = null, offered = null }: RecordFinding): string {
  const records = [held, offered].filter((record) => record !== null).map(textHash)
  return [kind, resource, id, detail, ...records].join('\n')
}

const countsFields = { resource: text, open: count, versions: count }

/** Counts of one table of records. */
export interface RecordCounts {
  /** Records that are not removed. */
  readonly open: number
  /** Versions of all records. */
  readonly versions: number
}

/** Counts the records of a table, given its steps for FROM. */
export async function countRecords(engine: Engine, table: string, steps: string): Promise<RecordCounts> {
  const [counts] = await rowsAs(
    engine,
    countsFields,
    registryStatement('version_counts', { resource: quote(table), steps }),
  )
  return counts ?? { open: 0, versions: 0 }
}

/** Counts the open records and the versions of every table. */
async function readCounts(ledger: Ledger, engine: Engine, tables: readonly string[]) {
  const counts: Record<string, RecordCounts> = {}
  for (const table of tables) counts[table] = await countRecords(engine, table, relationOf(ledger, `history.${table}`))
  return counts
}

const eventsFields = { type: text, known: flag, op: text, events: count }

/** Counts stored events by type and operation; `known`: whether this program knows the type. */
async function readEventCounts(ledger: Ledger, engine: Engine): Promise<EventCount[]> {
  return await rowsAs(engine, eventsFields, registryStatement('event_counts', { events: relationOf(ledger, 'events') }))
}

const stepFields = {
  /** Unix seconds. */
  at: real,
  active: count,
  retired: count,
  /** Products created since the previous step. */
  created: count,
  newlyRetired: count,
  removed: count,
}

/** The registry's products after one point in time. */
export type UniverseStep = Shaped<typeof stepFields>

/** Reads the products over time, one step for every time at which something changed; empty if nothing is known. */
export async function universeSteps(ledger: Ledger): Promise<UniverseStep[]> {
  const paths = tableFiles(ledger, 'history.products')
  if (paths.length === 0) return []
  using engine = await Engine.open()
  return await rowsAs(engine, stepFields, universeSql(paths))
}

/**
 * SQL of the products over time: each step, one of a product in a poll, turns one state into another; the running sums
 * are the universe.
 */
function universeSql(paths: readonly string[]): string {
  return `
    WITH step AS (
      SELECT id, "at",
        CASE WHEN closed_by IS NOT NULL THEN 'gone' WHEN lower(status) = 'inactive' THEN 'retired'
          ELSE 'active' END AS state
      FROM ${parquet(paths)}
    ), move AS (
      SELECT "at", state, coalesce(lag(state) OVER (PARTITION BY id ORDER BY "at"), 'gone') AS before FROM step
    ), change AS (
      SELECT "at",
        count(*) FILTER (WHERE state = 'active') - count(*) FILTER (WHERE before = 'active') AS active,
        count(*) FILTER (WHERE state = 'retired') - count(*) FILTER (WHERE before = 'retired') AS retired,
        count(*) FILTER (WHERE before = 'gone' AND state <> 'gone') AS created,
        count(*) FILTER (WHERE before = 'active' AND state = 'retired') AS newly_retired,
        count(*) FILTER (WHERE before <> 'gone' AND state = 'gone') AS removed
      FROM move WHERE state <> before GROUP BY "at"
    )
    SELECT epoch("at")::DOUBLE AS "at", (sum(active) OVER w)::BIGINT AS active,
      (sum(retired) OVER w)::BIGINT AS retired,
      created, newly_retired AS "newlyRetired", removed
    FROM change WINDOW w AS (ORDER BY "at") ORDER BY "at"`
}

/** The committed state of the registry, for scripts; they rely on the names. */
export interface RegistryFacts {
  /** The date of the first snapshot; null before it. */
  readonly first_snapshot: string | null
  /** The date of the last snapshot; null before the first. */
  readonly last_snapshot: string | null
  /** Epochs of the feed seen, from 1; 0 before the first snapshot. */
  readonly epoch: number
  /** Time of the last poll of the feed that reached its tail, ISO text, UTC; null before the first. */
  readonly feed_at: string | null
}

/** Reads the committed state of the registry. */
export function registryFacts(ledger: Ledger): RegistryFacts {
  const { first, last, epoch } = registryState(ledger)
  return {
    first_snapshot: first?.date ?? null,
    last_snapshot: last?.date ?? null,
    epoch,
    feed_at: iso(passingFacts(ledger).polled),
  }
}

/** Stored events of one type and operation. */
export interface EventCount {
  readonly type: string
  /** Whether this program knows the type. */
  readonly known: boolean
  /** The change of the entity, such as `updated`. */
  readonly op: string
  readonly events: number
}

/** The limits that the registry's last answers reported; null for each that none reported. */
export interface RegistryLimits {
  readonly per_minute: number | null
  readonly per_minute_remaining: number | null
  readonly daily: number | null
  readonly daily_remaining: number | null
  /** Time until which the provider refuses snapshots, ISO text, UTC; null if it does not. */
  readonly snapshots_from: string | null
}

/** The state of the registry in the lake, for scripts; they rely on the names. */
export interface RegistryStatus extends RegistryFacts {
  /** Source of the last snapshot; null before the first. */
  readonly last_snapshot_source: 'snapshot' | 'lists' | null
  /** Seconds since the poll of `feed_at`; null before the first. */
  readonly cursor_age: number | null
  /** Cursor of the feed; null before the first snapshot. */
  readonly cursor: string | null
  /** Whether the provider's feed has new events since; null if it was not requested or did not answer. */
  readonly behind: boolean | null
  /** Open records by table. */
  readonly records: Readonly<Record<string, number>>
  /** Versions of records by table. */
  readonly versions: Readonly<Record<string, number>>
  readonly events: readonly EventCount[]
  readonly limits: RegistryLimits
  /** Changes of the schema on record (view `schema_changes`). */
  readonly schema_changes: number
  /** Answers 304 so far. */
  readonly not_modified: number
}

/**
 * Reads the state of the registry; `behind` is whether the feed has new events after the stored cursor. `now` in Unix
 * milliseconds.
 */
export async function registryStatus(
  ledger: Ledger,
  catalogue: Catalogue,
  now: number,
  behind: boolean | null,
): Promise<RegistryStatus> {
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
    cursor_age: polled === null ? null : Math.max(0, Math.round((now - polled) / 1000)),
    cursor: state.cursor,
    behind,
    records: countsOf('open'),
    versions: countsOf('versions'),
    events,
    limits: {
      per_minute: limit('x-ratelimit-limit'),
      per_minute_remaining: limit('x-ratelimit-remaining'),
      daily: limit('x-quota-daily-limit'),
      daily_remaining: limit('x-quota-daily-remaining'),
      snapshots_from: iso(snapshotLimit !== null && snapshotLimit > now ? snapshotLimit : null),
    },
    schema_changes: await countSchemaChanges(ledger, engine),
    not_modified: notModified,
  }
}

/** Counts the recorded changes of the schema of registry records; null if they cannot be read. */
export async function schemaChanges(ledger: Ledger): Promise<number | null> {
  if (tableFiles(ledger, 'schema_changes').length === 0) return 0
  using engine = await Engine.open(':memory:', { threads: 1 })
  return await countSchemaChanges(ledger, engine).catch(() => null)
}

const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

/**
 * Requests once whether the feed has anything after a cursor, without changing the lake. Cursors are opaque and are not
 * compared.
 */
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
