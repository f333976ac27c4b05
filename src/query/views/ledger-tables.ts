import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { withCleanup } from '../../base/cleanup.ts'
import { type Catalogue, type Endpoint, imported, isOwn } from '../../catalog/catalogue.ts'
import { exportCatalogue } from '../../catalog/export.ts'
import { archivable, type Archived } from '../../lake/ledger/archived-rows.ts'
import { acceptedToo, ofPassed } from '../../lake/ledger/differences.ts'
import { type LedgerColumn, type LedgerColumns, ledgerTables, seriesColumns } from '../../lake/ledger/columns.ts'
import { archivedState } from '../../lake/ledger/index-queries.ts'
import { acceptedPrefix } from '../../sources/registry/columns.ts'
import { parseColumns, type TypedColumns } from './relations.ts'
import { footerSql } from '../../lake/store/parquet.ts'
import { writeStream } from '../../lake/store/files.ts'
import { sha256File } from '../../lake/ledger/commit.ts'
import { type Disk, makeFolder, namesIn } from '../../lake/store/disk.ts'
import { type Engine, quote, quotePath } from '../../lake/store/engine.ts'
import { inLake, places } from '../../lake/store/layout.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'

/** A column of a view over an exported table. */
export interface ViewColumn {
  readonly name: string
  /** Comment. */
  readonly about: string
  /** SQL with placeholders; undefined if it is the column of the file. */
  readonly sql: string | undefined
}

/** A table of the ledger or the catalogue that the views read from an exported file. */
export interface ExportTable {
  readonly columns: TypedColumns
  /** Columns of its view; left out if the declaration has no comments for them. */
  readonly viewed?: readonly ViewColumn[]
  /** Rows, each as one JSON object in one line. */
  readonly lines: (ledger: Ledger) => Iterable<string>
}

/** A table whose old rows move into files; `where` selects among its rows. */
interface FilteredTable extends ExportTable {
  readonly lines: (ledger: Ledger, where?: string) => Iterable<string>
}

/** Builds the version that first recorded a violation `v` as gone after a given one. */
const nextOf = (after: string): string =>
  `(SELECT min(q.added_version) FROM passed q WHERE ${ofPassed.replaceAll('p.', 'q.')} AND q.added_version > ${after})`

/** SQL of the six dimensions of a series; the interval is the one under which its points are stored. */
const seriesCells = {
  metric: 's.metric',
  asset: 's.asset',
  interval: 'coalesce(s.interval, s.settled)',
  currency: 's.currency',
  exchange: 's.exchange',
  network: 's.network',
}

const coverage = declaredTable(
  `coverage c JOIN series s ON s.n = c.series JOIN versions a ON a.version = c.added_version
   LEFT JOIN versions r ON r.version = c.removed_version`,
  'c',
  'c.series, c.since, c.added_version',
  ledgerTables.coverage.columns,
  {
    ...seriesCells,
    added_at: 'a.committed_at',
    removed_at: 'r.committed_at',
    verified_at: `(SELECT max(v.at) FROM verified v
      WHERE v.series = s.id AND v.since < c.until AND v.until > c.since AND v.result NOT IN ('refused', 'unanswered'))`,
  },
)

/**
 * Series with points but without any window: those of a lake that lost its journal. `until` is the start of the last
 * point.
 */
const uncovered = table(
  `(SELECT * FROM series s WHERE s.points > 0 AND NOT EXISTS (SELECT 1 FROM coverage c WHERE c.series = s.n)) s`,
  's.n',
  `${Object.keys(seriesColumns)
    .map((name) => `${name} VARCHAR`)
    .join(', ')}, since TIMESTAMPTZ, until TIMESTAMPTZ`,
  { ...seriesCells, since: 's.first_t * 1000000', until: 's.last_t * 1000000' },
)

/**
 * Row for each state of a violation: from the version that recorded it until the next recorded a different one
 * (`passed`: not shown any more).
 */
const violations = declaredTable(
  `(SELECT *, added_version AS told, 0 AS gone, ${nextOf('v.added_version - 1')} AS ended FROM violations v
    UNION ALL SELECT v.*, p.added_version, 1, p.reopened_version FROM passed p JOIN violations v ON ${ofPassed}
    UNION ALL SELECT v.*, p.reopened_version, 0, ${nextOf('p.reopened_version')} FROM passed p
      JOIN violations v ON ${ofPassed} WHERE p.reopened_version IS NOT NULL) v
   JOIN series s ON s.n = v.series JOIN versions told ON told.version = v.told
   LEFT JOIN versions ended ON ended.version = v.ended LEFT JOIN accepted a ON ${acceptedToo}`,
  'v',
  'v.told, v.series, v.t, v.kind, v.offered_key, v.incident, v.until',
  ledgerTables.violations.columns,
  {
    ...seriesCells,
    added_at: 'told.committed_at',
    removed_at: 'ended.committed_at',
    acknowledged_at: 'a.at',
    why: 'a.why',
    reverted_at: 'CASE WHEN v.gone THEN told.committed_at END',
  },
)

const findings = declaredTable(
  'clock_findings f JOIN series s ON s.n = f.series JOIN versions a ON a.version = f.added_version',
  'f',
  'f.added_version, f.series, f.t, f.kind',
  ledgerTables.clock_findings.columns,
  { ...seriesCells, found_at: 'f.at', added_at: 'a.committed_at' },
)

const valueTypes = declaredTable(
  `value_types v JOIN versions a ON a.version = v.added_version LEFT JOIN versions r ON r.version = v.removed_version`,
  'v',
  'v.metric, v.path, v.type, v.after_type, v.added_version',
  ledgerTables.value_types.columns,
  { added_at: 'a.committed_at', removed_at: 'r.committed_at' },
)

const acceptedFindings = table(
  `(SELECT substr(key, ${acceptedPrefix.length + 1}) AS finding, value ->> '$.why' AS why, version FROM state
     WHERE substr(key, 1, ${acceptedPrefix.length}) = '${acceptedPrefix}') s JOIN versions a USING (version)`,
  'finding',
  'finding VARCHAR, acknowledged_at TIMESTAMPTZ, why VARCHAR',
  { acknowledged_at: 'a.committed_at' },
)

const requests = declaredTable('requests', 'requests', 'asked_at, id', ledgerTables.requests.columns, {})

const runs = declaredTable('runs', 'runs', 'started_at, id', ledgerTables.runs.columns, {})

const versions = declaredTable('versions', 'versions', 'version', ledgerTables.versions.columns, {
  metrics_provider: `provider ->> '$.metrics'`,
  registry_provider: `provider ->> '$.registry'`,
  synthetic: `json(CASE WHEN provider ->> '$.synthetic' THEN 'true' ELSE 'false' END)`,
})

/** Lists the tables that the views read from an export, by the name in `{{ledger NAME}}`. */
export function exportedTables(catalogue: Catalogue): Readonly<Record<string, ExportTable>> {
  return {
    coverage,
    uncovered,
    violations,
    clock_findings: findings,
    value_types: valueTypes,
    accepted_findings: acceptedFindings,
    requests,
    runs: recent('runs'),
    versions: recent('versions'),
    endpoints: endpointsOf(catalogue),
    links: linksOf(catalogue),
    symbol_variants: constant('metrics VARCHAR, registry VARCHAR', [...catalogue.symbolVariants]),
  }
}

/** The tables whose old rows go into files of the lake, with the same columns. */
export const archivedTables: Readonly<Record<Archived, FilteredTable>> = { requests, coverage, runs, versions }

/** Builds the table of rows that are not in files yet. */
function recent(name: Archived): ExportTable {
  const { lines, ...table } = archivedTables[name]
  return {
    ...table,
    lines: (ledger) => lines(ledger, `coalesce(NOT (${archivable(name, archivedState(ledger).before)}), true)`),
  }
}

/**
 * Builds a table of the ledger: FROM, ORDER BY and columns as SQL; instants in microseconds. `cells` are the columns
 * that the ledger has under other names or in other units.
 */
function table(
  from: string,
  order: string,
  columns: string,
  cells: Readonly<Record<string, string>> = {},
): FilteredTable {
  const parsedColumns = parseColumns(columns)
  const line = `json_object(${parsedColumns.map(([name]) => `'${name}', ${cells[name] ?? name}`).join(', ')})`
  return {
    columns: parsedColumns,
    lines: function* lines(ledger, where = 'true') {
      const rows = ledger.statement(`SELECT ${line} AS line FROM ${from} WHERE ${where} ORDER BY ${order}`)
      for (const row of rows.iterate()) yield String(row['line'])
    },
  }
}

/** Names of the exported columns of a declaration that the index does not have: their SQL is written with the table. */
type ComputedColumn<C extends LedgerColumns> = {
  [K in keyof C]: C[K] extends { readonly stored: unknown }
    ? never
    : C[K] extends { readonly shown: unknown }
      ? K
      : never
}[keyof C]

/**
 * Builds a table of the ledger whose columns are declared (src/lake/ledger/columns.ts). `alias` is its name in FROM;
 * `computed` has the SQL of the columns that the index does not have.
 */
function declaredTable<C extends LedgerColumns>(
  from: string,
  alias: string,
  order: string,
  declaration: C,
  computed: Readonly<Record<ComputedColumn<C>, string>>,
): FilteredTable {
  const all: readonly (readonly [string, LedgerColumn])[] = Object.entries(declaration)
  const exported = all.filter(([, { shown }]) => shown !== undefined)
  const cells = exported.flatMap(([name, { stored, value = (column: string) => column }]) =>
    stored === undefined ? [] : [[name, value(`${alias}.${name}`)] as const],
  )
  const types = exported.map(([name, { shown }]) => `${name} ${shown}`).join(', ')
  const { lines } = table(from, order, types, { ...Object.fromEntries(cells), ...computed })
  return {
    columns: exported.map(([name, { shown = 'VARCHAR', about = '' }]) => [name, shown, about] as const),
    viewed: all.flatMap(([name, { about, viewed }]) => (about === undefined ? [] : [{ name, about, sql: viewed }])),
    lines,
  }
}

function constant(columns: string, rows: readonly object[]): ExportTable {
  return { columns: parseColumns(columns), lines: () => rows.map((row) => JSON.stringify(row)) }
}

function endpointsOf(catalogue: Catalogue): ExportTable {
  const rows = exportCatalogue(catalogue).map((endpoint) => {
    const listed = catalogue.endpoints.get(endpoint.path) as Endpoint
    const { availability, default: defaults, ...rest } = endpoint
    return {
      ...rest,
      rule: availability.rule,
      lag_seconds: availability.lag_seconds ?? null,
      basis: availability.basis,
      quote: availability.quote ?? null,
      reason: availability.reason ?? null,
      default_interval: defaults.interval,
      default_currency: defaults.currency,
      default_exchange: defaults.exchange,
      default_network: defaults.network,
      tolerance_seconds: endpoint.tolerance,
      rules: JSON.stringify(endpoint.availability_by_interval),
      params: JSON.stringify(endpoint.params),
      placeholders: listed.placeholders,
      source: isOwn(listed) ? imported : 'catalogue',
    }
  })
  return constant(
    `path VARCHAR, about VARCHAR, intervals VARCHAR[], currencies VARCHAR[], exchanges VARCHAR[], networks VARCHAR[],
     since BOOLEAN, until BOOLEAN, format BOOLEAN, timestamp_format BOOLEAN, rule VARCHAR, lag_seconds BIGINT,
     basis VARCHAR, quote VARCHAR, reason VARCHAR, default_interval VARCHAR, default_currency VARCHAR,
     default_exchange VARCHAR, default_network VARCHAR, tolerance_seconds BIGINT, overlap VARCHAR, params VARCHAR,
     placeholders VARCHAR[], rules VARCHAR, revisable BOOLEAN, source VARCHAR`,
    rows,
  )
}

function linksOf(catalogue: Catalogue): ExportTable {
  const micros = (at: number | null): number | null => (at === null ? null : at * 1_000_000)
  const rows = catalogue.links.map((link) => ({
    metric_asset: link.metricAsset,
    product_id: link.productId,
    chain_id: link.chainId,
    address: link.address,
    since: micros(link.from),
    until: micros(link.until),
  }))
  return constant(
    'metric_asset VARCHAR, product_id VARCHAR, chain_id VARCHAR, address VARCHAR, since TIMESTAMPTZ, until TIMESTAMPTZ',
    rows,
  )
}

/** Folder of the files made for the views: the ledger's tables. The journal names none of them. */
export const exportsFolder = places.exports

/** Resources for writing exports. */
export interface ExportDeps {
  /** Returns the engine; it is opened with the first table that is written. */
  readonly engine: () => Promise<Engine>
  readonly disk: Disk
  /** Part of the names of temporary files, different for every running builder. */
  readonly mark: string
}

/** The Parquet file of an exported table. */
export interface ExportedFile {
  /** Absolute path. */
  readonly path: string
  /** Whether the file was written now; false if an earlier one has the same rows. */
  readonly written: boolean
}

/**
 * Writes the table as Parquet, unless a file with exactly these rows exists. It never overwrites or removes files: an
 * open session continues to read the ones that it knows.
 */
export async function exportTable(
  ledger: Ledger,
  table: string,
  { columns, lines }: ExportTable,
  { engine, disk, mark }: ExportDeps,
): Promise<ExportedFile> {
  const folder = inLake(ledger.root, exportsFolder)
  await makeFolder(disk, folder)
  const text = inLake(ledger.root, `${exportsFolder}/.tmp-${mark}-${table}.jsonl`)
  const temporary = inLake(ledger.root, `${exportsFolder}/.tmp-${mark}-${table}.parquet`)
  const digest = digestOf(lines(ledger), columns)
  const earlier = await existingExport(ledger.root, table, digest)
  if (earlier !== undefined) return { path: inLake(ledger.root, `${exportsFolder}/${earlier}`), written: false }
  const write = async (): Promise<ExportedFile> => {
    const written = await writeLines(text, lines(ledger))
    await (await engine()).run(copySql(written, temporary, columns))
    const name = await placeExport(ledger, table, digest, temporary, disk)
    return { path: inLake(ledger.root, `${exportsFolder}/${name}`), written: true }
  }
  return await withCleanup(write, async () => {
    await disk.remove(text)
    await disk.remove(temporary)
  })
}

/**
 * Computes the digest of columns and rows, by which an earlier file is found; most tables are unchanged, and need not
 * be written.
 */
function digestOf(lines: Iterable<string>, columns: TypedColumns): string {
  const hash = createHash('sha256').update(JSON.stringify(columns))
  for (const block of blocksOf(lines)) hash.update(block)
  return hash.digest('hex').slice(0, 16)
}

/**
 * Finds the intact file of a table for a given state: names begin with the checksum of the bytes, so that a file torn
 * by a power cut is not used.
 */
async function existingExport(root: string, table: string, stands: string): Promise<string | undefined> {
  for (const name of await namesIn(inLake(root, exportsFolder))) {
    if (!name.startsWith(`${table}-`) || !name.endsWith(`-${stands}.parquet`)) continue
    const checksum = await sha256File(inLake(root, `${exportsFolder}/${name}`))
    if (name.startsWith(`${table}-${checksum.slice(0, 16)}-`)) return name
  }
  return undefined
}

/**
 * Renames a written file into the folder of exports; its name has the checksum of its bytes, the version and the state.
 */
async function placeExport(
  ledger: Ledger,
  table: string,
  stands: string,
  temporary: string,
  disk: Disk,
): Promise<string> {
  const bytes = (await sha256File(temporary)).slice(0, 16)
  const name = `${table}-${bytes}-${String(ledger.head().version).padStart(10, '0')}-${stands}.parquet`
  await disk.sync(temporary)
  await disk.move(temporary, inLake(ledger.root, `${exportsFolder}/${name}`))
  return name
}

/** Whether a name is one that `placeExport` makes. */
export function isExport(name: string): boolean {
  return /^[a-z_]+-[0-9a-f]{16}-\d{10,}-[0-9a-f]{16}\.parquet$/.test(name)
}

const blockCharacters = 1 << 20

/** A file of lines, and the bytes that the longest has at most: twice as much is what their reader takes at once. */
interface WrittenLines {
  readonly path: string
  longest: number
}

/** Writes one line a row. */
export async function writeLines(path: string, lines: Iterable<string>): Promise<WrittenLines> {
  const written = { path, longest: 1 << 20 }
  function* measured(): Generator<string> {
    for (const line of lines) {
      written.longest = Math.max(written.longest, 3 * line.length + 1)
      yield line
    }
  }
  await pipeline(blocksOf(measured()), writeStream(path))
  return written
}

/** Joins the lines, each with its end, into texts of some size. */
function* blocksOf(lines: Iterable<string>): Generator<string> {
  let block = ''
  for (const line of lines) {
    block += `${line}\n`
    if (block.length < blockCharacters) continue
    yield block
    block = ''
  }
  yield block
}

/** Builds the statement that makes Parquet of written lines; instants stand in them as microseconds. */
export function copySql(
  { path, longest }: WrittenLines,
  to: string,
  columns: TypedColumns,
  footer: Readonly<Record<string, string>> = {},
): string {
  const raw = columns.map(([name, type]) => `${quote(name)}: ${quote(type === 'TIMESTAMPTZ' ? 'BIGINT' : type)}`)
  const typed = columns.map(([name, type]) =>
    type === 'TIMESTAMPTZ' ? `make_timestamptz("${name}") AS "${name}"` : `"${name}"`,
  )
  return `COPY (SELECT ${typed.join(', ')} FROM read_json(${quotePath(path)}, format = 'newline_delimited', hive_partitioning = false,
    maximum_object_size = ${longest}, columns = {${raw.join(', ')}}))
    TO ${quote(to)} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd${footerSql(footer)})`
}
