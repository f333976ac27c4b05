import type { Held, HeldEntity, HeldTexts } from './history.ts'
import { addKey, type KnownKeys, noKeys } from './keys.ts'
import { type Engine, quote } from '../store/engine.ts'
import { liveFiles } from '../ledger/held.ts'
import { inLake } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { statement, relation } from './sql.ts'

/** The live files of a registry table, absolute, each once. */
export function tableFiles(ledger: Ledger, table: string): string[] {
  return [...new Set(liveFiles(ledger, { table }).map((file) => inLake(ledger.root, file.path)))]
}

function relationOf(ledger: Ledger, table: string): string {
  return relation(table, tableFiles(ledger, table))
}

/** The newest state of every entity of the named resources. */
export async function readHeld(ledger: Ledger, engine: Engine, resources: readonly string[]): Promise<Held> {
  const held = new Map<string, Map<string, HeldEntity>>()
  for (const resource of resources) {
    const entities = new Map<string, HeldEntity>()
    held.set(resource, entities)
    if (tableFiles(ledger, `history.${resource}`).length === 0) continue
    const deployments = resource === 'deployments'
    const sql = statement('held', {
      steps: relationOf(ledger, `history.${resource}`),
      absorbed: relationOf(ledger, 'absorbed'),
      resource: quote(resource),
      product: deployments ? 'product_id' : 'CAST(NULL AS VARCHAR)',
      verified: deployments ? `verification_status = 'verified'` : 'false',
    })
    for await (const { rows, columns } of (await engine.stream(sql)).chunks) {
      const [ids = [], open = [], products = [], verified = [], hashes = [], at = []] = columns
      for (let n = 0; n < rows; n++) {
        const id = ids[n] as string
        const seen = { hash: (hashes[n] ?? null) as string | null, at: at[n] as number }
        const rest = { product: (products[n] ?? null) as string | null, verified: verified[n] === true }
        entities.set(id, { id, open: open[n] === true, ...seen, ...rest })
      }
    }
  }
  return held
}

/** The texts of the named entities. */
export async function readTexts(
  ledger: Ledger,
  engine: Engine,
  wanted: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<(resource: string, id: string) => HeldTexts | undefined> {
  const texts = new Map<string, Map<string, HeldTexts>>()
  for (const [resource, ids] of wanted) {
    const found = new Map<string, HeldTexts>()
    texts.set(resource, found)
    const sql = statement('texts', {
      steps: relationOf(ledger, `history.${resource}`),
      absorbed: relationOf(ledger, 'absorbed'),
      resource: quote(resource),
      ids: quote(JSON.stringify([...ids])),
    })
    for await (const { rows, columns } of (await engine.stream(sql)).chunks) {
      const [names = [], versions = [], latest = []] = columns
      for (let n = 0; n < rows; n++) {
        const version = versions[n] as string
        found.set(names[n] as string, { version, latest: (latest[n] ?? version) as string })
      }
    }
  }
  return (resource, id) => texts.get(resource)?.get(id)
}

/** The keys that records of each resource are known to have. */
export async function readKeys(ledger: Ledger, engine: Engine): Promise<Map<string, KnownKeys>> {
  const known = new Map<string, KnownKeys>()
  if (tableFiles(ledger, 'schema_changes').length === 0) return known
  const rows = await engine.rows<{ resource: string; path: string; since: number }>(
    `SELECT resource, path, CAST(min(epoch_us("at")) AS DOUBLE) AS since FROM ${relationOf(ledger, 'schema_changes')}
     GROUP BY resource, path ORDER BY since, length(path)`,
  )
  for (const { resource, path, since } of rows) {
    let keys = known.get(resource)
    if (!keys) known.set(resource, (keys = noKeys()))
    addKey(keys, path, since)
  }
  return known
}

/** What the last stored event of every entity said, by `type id`. */
export async function readLastEvents(ledger: Ledger, engine: Engine): Promise<Map<string, string>> {
  if (tableFiles(ledger, 'events').length === 0) return new Map()
  const sql = statement('events_last', { events: relationOf(ledger, 'events') })
  const rows = await engine.rows<{ entity_type: string; entity_id: string; hash: string }>(sql)
  return new Map(rows.map(({ entity_type, entity_id, hash }) => [`${entity_type} ${entity_id}`, hash]))
}

/** The findings on record, each as one text. */
export async function readFindings(ledger: Ledger, engine: Engine): Promise<Set<string>> {
  if (tableFiles(ledger, 'registry_findings').length === 0) return new Set()
  const rows = await engine.rows<{ line: string }>(
    `SELECT concat_ws(chr(10), kind, resource, id, detail) AS line FROM ${relationOf(ledger, 'registry_findings')}`,
  )
  return new Set(rows.map(({ line }) => line))
}

/** Open records and versions of each table. */
export async function readCounts(
  ledger: Ledger,
  engine: Engine,
  tables: readonly string[],
): Promise<Record<string, { open: number; versions: number }>> {
  const counts: Record<string, { open: number; versions: number }> = {}
  for (const table of tables) {
    const sql = statement('counts', { resource: quote(table), steps: relationOf(ledger, `history.${table}`) })
    const [row] = await engine.rows(sql)
    counts[table] = { open: Number(row?.['open'] ?? 0), versions: Number(row?.['versions'] ?? 0) }
  }
  return counts
}

/** Stored events by type and operation. */
export async function readEventCounts(
  ledger: Ledger,
  engine: Engine,
): Promise<{ type: string; known: boolean; op: string; events: number }[]> {
  if (tableFiles(ledger, 'events').length === 0) return []
  const sql = statement('event_counts', { events: relationOf(ledger, 'events') })
  const rows = await engine.rows<{ entity_type: string; known: boolean; op: string; events: number }>(sql)
  return rows.map(({ entity_type, ...rest }) => ({ type: entity_type, ...rest }))
}
