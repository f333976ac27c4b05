import { mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { inLake, parsePointsFile } from '../../src/lake/store/layout.ts'
import { withOwn } from '../../src/sources/points/own-rows.ts'
import { compile } from '../../src/query/views/compile.ts'
import { exportsFolder } from '../../src/query/views/ledger-tables.ts'
import { catalogue, type EveryViewLake, metrics } from './lakes/every-view.ts'

/*
 * A second lake that physically holds only what was knowable by an instant: its files are those of the first one
 * without the rows that became known later. Which these are is said here once more, by the columns of the files alone.
 */

/** What decides which rows were knowable. */
export interface Knowledge {
  /** Microseconds. */
  readonly at: number
  /** The rule stands in for backfilled points. */
  readonly rule: boolean
  /** The earliest state of the registry, and of each asset in the listing, stands in for the time before it. */
  readonly registryBackfill: boolean
  /**
   * Of own data the parts are held that are known before the whole, without the others; `as_of` keeps the whole back.
   */
  readonly parts: boolean
}

/** A lake that can be cut again and again. */
export interface Truncation extends Disposable {
  /** The views over what is left. */
  readonly engine: Engine
  cut(knowledge: Knowledge): Promise<void>
}

interface Part {
  readonly path: string
  readonly table: string
  /** All rows of the file, in memory. */
  readonly rows: string
  /** What the file holds now: an equal cut writes nothing. */
  held: string
}

/** Makes the lake that can be cut, in a folder of its own, with the database of views that the whole one has. */
export async function truncationOf({ root }: EveryViewLake, folder: string): Promise<Truncation> {
  const ledger = await Ledger.openToRead(root)
  const files = liveFiles(ledger).filter(({ path, table }) => path.endsWith('.parquet') && table !== 'redated')
  const head = ledger.head()
  const known = withOwn(catalogue, ledger)
  ledger.close()
  const store = await Engine.open(':memory:', { threads: 1 })
  const engine = await Engine.open(':memory:', { threads: 1 })
  const parts: Part[] = []
  const kept = readdirSync(inLake(root, exportsFolder))
  const types = kept
    .filter((name) => name.startsWith('value_types-'))
    .map((name) => ({ path: `${exportsFolder}/${name}`, table: 'value_types' }))
  for (const { path, table } of [...new Map(files.map((file) => [file.path, file])).values(), ...types]) {
    const rows = `part_${parts.length}`
    await store.run(`CREATE TABLE ${rows} AS FROM read_parquet(${quote(join(root, path))}, hive_partitioning = false)`)
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    parts.push({ path, table, rows, held: '' })
  }
  const all = (of: string): string =>
    parts.flatMap(({ table, rows }) => (table === of ? [`SELECT * FROM ${rows}`] : [])).join(' UNION ALL ')
  await store.run(`CREATE TABLE first_listed AS
    SELECT id, min(observed_at) AS observed_at FROM (${all('metric_assets')}) GROUP BY id`)
  const [first] = await store.rows<{ at: bigint }>(`SELECT epoch_us(min(observed_at)) AS at FROM (${all('snapshots')})`)
  const cut = async (knowledge: Knowledge): Promise<void> => {
    for (const part of parts) await write(store, folder, part, leftOf(part, knowledge, Number(first?.at)))
  }
  await cut({ at: Number.MAX_SAFE_INTEGER, rule: false, registryBackfill: false, parts: false })
  const cutToo = new Set(types.map(({ path }) => path))
  const placeOf = (path: string): string => inLake(cutToo.has(path) ? folder : root, path)
  const exports = new Map(kept.map((name) => [name.split('-')[0] ?? '', placeOf(`${exportsFolder}/${name}`)]))
  const { objects } = compile({
    root: folder,
    head,
    catalogue: known,
    files,
    earlier: [],
    exports,
    weekStart: 'monday',
    revisable: [metrics.revised],
  })
  await engine.run('BEGIN')
  for (const { sql } of objects) await engine.run(sql.replace(/\nCOMMENT ON [\s\S]*$/, ''))
  await engine.run('COMMIT')
  const close = (): void => [engine, store].forEach((one) => one.close())
  return { engine, cut, [Symbol.dispose]: close }
}

/** The tables whose rows have their instant in `at`. */
const polled = ['events', 'schema_changes', 'registry_findings', 'absorbed']

/** The rows that were knowable, for FROM, as they then stood. */
function leftOf({ path, table, rows }: Part, { at, rule, registryBackfill, parts }: Knowledge, start: number): string {
  const registryAt = registryBackfill ? Math.max(at, start) : at
  const known = (clock: string, by = registryAt): string => `FROM ${rows} WHERE epoch_us(${clock}) <= ${by}`
  if (table === 'points' && parts && parsePointsFile(path)?.metric === metrics.bars) {
    const part = `CASE WHEN epoch_us(available_at) <= ${at} THEN o ELSE json_object('open', json_extract(o, '$.open'))::VARCHAR END`
    return `SELECT * REPLACE (${part} AS o) FROM ${rows} WHERE epoch_us(CASE WHEN basis = 'stated' THEN t ELSE available_at END) <= ${at}`
  }
  if (table === 'points')
    return `SELECT * ${known(rule ? 'coalesce(available_rule_at, available_at)' : 'available_at', at)}`
  if (table === 'value_types') return `SELECT * ${known(rule ? 'ruled_at' : 'available_at', at)}`
  if (table === 'metric_assets')
    return `SELECT * ${known('observed_at', at)} OR (${registryBackfill} AND (id, observed_at) IN (FROM first_listed))`
  // Merging notes on a step when a later one came.
  const told = `CASE WHEN epoch_us(superseded_at) <= ${registryAt} THEN superseded_at END`
  if (table.startsWith('history.')) return `SELECT * REPLACE (${told} AS superseded_at) ${known('"at"')}`
  return `SELECT * ${known(polled.includes(table) ? '"at"' : 'observed_at')}`
}

async function write(store: Engine, folder: string, part: Part, left: string): Promise<void> {
  const [row] = await store.rows<{ held: string }>(
    `SELECT count(*) || ' ' || CAST(coalesce(sum(CAST(hash(r) AS HUGEINT)), 0) AS VARCHAR) AS held FROM (${left}) AS r`,
  )
  if (row === undefined || row.held === part.held) return
  await store.run(`COPY (${left}) TO ${quote(join(folder, part.path))} (FORMAT parquet)`)
  part.held = row.held
}
