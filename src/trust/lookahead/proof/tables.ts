import { type Node, part, parts, says, word } from './nodes.ts'
import { type Reading, type Relation, alwaysKnown, neverKnown, textRows } from './relations.ts'
import { addValue, always, type Bound, type Obstacle } from './values.ts'
import { Engine, lowerName, quoteName } from '../../../lake/store/engine.ts'
import type { Columns } from '../../../lake/store/parquet.ts'
import { decisionColumn, type OwnRelation } from '../own-files.ts'
import type { Assumption } from '../assumptions.ts'
import { closing } from '../../../query/lake.ts'
import { Remembered } from '../../../query/parse-tree.ts'

/** Clock and columns of a view of the lake. */
interface TableLabel {
  /** The instant of a row from which on it is known; null: always, the same on every cut. */
  readonly clock: string | null
  /** Columns with the end of a version. */
  readonly until?: readonly string[]
  /** Columns that become known later than their row. */
  readonly later?: readonly string[]
  /** Columns that are never NULL. */
  readonly present?: readonly string[]
  /** Column that must be true for a row to be known at `clock`. */
  readonly guard?: string
  /** Set if the next vintage of its point replaces a row of a revisable series: then it is known at no instant. */
  readonly revised?: true
}

const ofPoints: TableLabel = { clock: 'available_at', present: ['metric', 'asset', 'interval', 't', 'available_at'] }
const ofLast: TableLabel = { ...ofPoints, revised: true }

/** Tables of the shadow catalogue whose rows are dated. A table that is missing here is never known. */
export const tableLabels: Readonly<Record<string, TableLabel>> = {
  points: ofLast,
  components: ofLast,
  price_usd: ofLast,
  vintages: ofPoints,
  proof_points: ofPoints,
  proof_calendar: { clock: 'ts', present: ['ts'] },
  proof_sessions: { clock: 'closes_at', present: ['session', 'opens_at', 'closes_at', 'early'] },
  proof_versions: { clock: '_pit_since', until: ['_pit_ended'], present: ['valid_from', '_pit_since', '_pit_ended'] },
  proof_coarse: { ...ofLast, guard: 'complete' },
  endpoints: { clock: null },
  registry_start: { clock: 'known_since' },
  registry_events: { clock: 'polled_at' },
  registry_findings: { clock: 'found_at' },
}

const ofHistory: TableLabel = {
  clock: 'valid_from',
  until: ['valid_to'],
  later: ['closed_by'],
  present: ['id', 'valid_from', 'valid_to'],
}

/** Returns the label of a table; undefined if its rows are not dated. */
export function labelOf(schema: string, table: string): TableLabel | undefined {
  if (schema === 'history') return ofHistory
  return schema === 'main' && Object.hasOwn(tableLabels, table) ? tableLabels[table] : undefined
}

/** Schema of the shadow catalogue with the tables of user data. */
const ownSchema = 'own_files'

/** Builds the label of user data: dated by their clock, or decisions dated by `ts`, or given. */
function labelOfOwn({ columns, clock }: OwnRelation): TableLabel {
  return { clock: clock ?? decisionColumn(columns) ?? null }
}

/** Reads the rows of a table of the shadow catalogue, or of a function that makes rows of constants. */
export function readScan(reading: Reading, node: Node): Relation {
  const names = Array.isArray(node['names']) ? (node['names'] as readonly unknown[]).map(String) : []
  const types = parts(node, 'returned_types').map((type) => word(type, 'id'))
  const places = parts(node, 'column_indexes').map((columnIndex) => Number(columnIndex['index']))
  const newIds = (): number[] =>
    places.map((at) => {
      const name = names[at]
      return addValue(reading.values, name ?? 'rowid', types[at] ?? '', name === undefined ? rowid : always)
    })
  const about = part(node, 'function_data')
  const table = word(about, 'table')
  const odd =
    says(node, 'projection_ids') || says(part(node, 'table_filters'), 'filters') || parts(node, 'children').length > 0
  if (odd || says(part(node, 'extra_info'), 'sample_options'))
    return neverKnown(
      { what: table || word(node, 'name'), why: 'it is read in a way for which no rule is known' },
      newIds(),
    )
  if (/^(?:range|generate_series)$/.test(word(node, 'name'))) {
    const columns = newIds()
    // Rows of which no column is read are counted all the same.
    const counted = columns.length > 0 ? [] : [addValue(reading.values, names[0] ?? '', types[0] ?? '', always)]
    return { ...textRows(reading, node, [...columns, ...counted]), columns }
  }
  const ownTable = word(about, 'schema') === ownSchema ? reading.ownTables.get(lowerName(table)) : undefined
  const label =
    word(node, 'name') !== 'seq_scan'
      ? undefined
      : ownTable
        ? labelOfOwn(ownTable)
        : labelOf(word(about, 'schema'), table)
  if (label === undefined)
    return neverKnown(undatedObstacle(word(about, 'schema'), table || `${word(node, 'name')}()`), newIds())
  if (label.revised && reading.revised) return neverKnown(revisedObstacle(table), newIds())
  const { clock, until = [], later = [], present = [], guard } = label
  const ids = new Map(
    names.map((name, at) => {
      const obstacle: Obstacle = { what: `${table}.${name}`, why: 'it is told when the next version comes' }
      const bound = until.includes(name) || later.includes(name) ? obstacle : always
      return [name, addValue(reading.values, shownClock(name), types[at] ?? '', bound, { until: until.includes(name) })]
    }),
  )
  const idOf = (name: string | undefined): number =>
    ids.get(name ?? '') ?? addValue(reading.values, 'rowid', 'BIGINT', rowid)
  const rows: Bound = clock === null ? always : new Set([idOf(clock)])
  const columns = places.map((at) => idOf(names[at]))
  const knownRelation = { ...alwaysKnown(columns), present: new Set(present.flatMap((name) => ids.get(name) ?? [])) }
  const where = guard === undefined ? '' : ` where ${guard}`
  if (clock !== null)
    reading.reasons.add(
      `${shownTable(table)}: a row is known at its ` +
        `${shownClock(clock)}${where}${assumptionText(reading, table, clock, ownTable !== undefined)}`,
    )
  if (guard === undefined) return { ...knownRelation, rows }
  const why = `a row that lacks parts changes when they come; keep those that are ${guard}`
  return { ...knownRelation, rows: { what: shownTable(table), why }, guard: { id: idOf(guard), rows } }
}

const rowid: Obstacle = { what: 'rowid', why: 'the place of a row depends on what came later' }

function revisedObstacle(table: string): Obstacle {
  const why =
    'in this lake a point may be revised, and its row gives way to the next vintage; pit_join and vintages ' +
    'tell what was known when'
  return { what: shownTable(table), why }
}

const revisedLakes = new Remembered<boolean>()

/** Whether points of a lake may have several vintages: then its view shows the last. */
export async function mayBeRevised(session: Engine): Promise<boolean> {
  return await revisedLakes.of(session, 'points', async () => {
    const [row] = await session.rows<{ last: boolean | null }>(
      `SELECT bool_or(contains(sql, 'row_number() OVER')) AS last FROM system.main.duckdb_views()
       WHERE view_name = 'points' AND schema_name = 'main' AND database_name = current_database()`,
    )
    return row?.last === true
  })
}

function undatedObstacle(schema: string, table: string): Obstacle {
  const name = schema === 'main' || schema === '' ? table : `${schema}.${table}`
  return { what: name, why: 'it shows a state as it is now, whose rows are not dated one by one' }
}

/** Returns the clock of a column: a state of a product is known as soon as the version that made it. */
function shownClock(name: string): string {
  return name === '_pit_since' ? 'valid_from' : name
}

/** Words the assumption for data that count as known earlier by a setting; empty if there is none. */
function assumptionText({ settings }: Reading, table: string, clock: string, isOwn: boolean): string {
  if (table === 'proof_versions' && settings.has('registry_backfill'))
    return ', before the first snapshot assumed to be what that says'
  return clock === 'available_at' && settings.has('backfill') && !isOwn
    ? ', where it was backfilled assumed to be by its rule'
    : ''
}

const shownNames: Readonly<Record<string, string>> = {
  proof_calendar: 'calendar',
  proof_points: 'the lake’s joins',
  proof_sessions: 'sessions',
  proof_versions: 'pit_universe',
  proof_coarse: 'resample',
}

function shownTable(table: string): string {
  return shownNames[table] ?? table
}

/*
 * The catalogue against which a plan is made for a proof: empty tables of the names and columns of the lake's views,
 * and the lake's macros as what they promise, in one line each. The laws of time hold the real macros to the same
 * promise.
 */

/** The options of the joins, as the lake's macros name them. */
const options =
  'currency := NULL, exchange := NULL, network := NULL, component := NULL, max_age := NULL, latency := NULL, ' +
  `skip_nulls := false, unresolved := 'value', vintage := 'last', follow_renames := false, back := NULL`
const questionText =
  'concat("interval", currency, exchange, network, component, CAST(max_age AS VARCHAR), CAST(latency AS ' +
  'VARCHAR), CAST(skip_nulls AS VARCHAR), CAST(unresolved AS VARCHAR), CAST(vintage AS VARCHAR), ' +
  'CAST(follow_renames AS VARCHAR), CAST(back AS VARCHAR))'
const clocks = 't TIMESTAMPTZ, available_at TIMESTAMPTZ'
const foundColumns = 'p.t, p.available_at, p.v, p.o, p.age'
const series = 'metric VARCHAR, asset VARCHAR, "interval" VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR'
const product = 'product_id, name, symbol, isin, status, issuer_id, asset_id'
const contract = 'id VARCHAR, chain_id VARCHAR, address VARCHAR, status VARCHAR, verification_status VARCHAR'
const state = `${product}, issuer_name, issuer_status, jurisdiction, asset_name, asset_class, ticker`

/** Builds the SQL of the points that a join finds for a decision: those known by then. */
function joinOf(metric: string): string {
  return `LEFT JOIN proof_points AS p ON p.available_at <= yours.ts AND p.asset = CAST(yours.asset AS VARCHAR)
    AND p.metric = ${metric} AND p.asked IS NOT DISTINCT FROM ${questionText}`
}

/**
 * Builds the SQL of the products of a decision. While the first snapshot replaces the time before it a version may be
 * older than the poll that delivered it: then nothing is known of its `valid_from`.
 */
function membersOf(from: string, settings: ReadonlySet<Assumption>): string {
  const knownSql = settings.has('registry_backfill') ? '' : 'p.valid_from <= yours.ts AND '
  return `SELECT yours.*, ${product.replaceAll(/\w+/g, 'p.$&')}, p.valid_from, false AS assumed
    FROM query_table(decisions) AS yours JOIN ${from} AS p ON ${knownSql}p._pit_since <= yours.ts
      AND yours.ts < p._pit_ended`
}

const macrosUnder = (settings: ReadonlySet<Assumption>): readonly string[] => [
  `CREATE TABLE proof_calendar (ts TIMESTAMPTZ, step VARCHAR)`,
  'CREATE TABLE proof_sessions (exchange VARCHAR, session DATE, opens_at TIMESTAMPTZ, closes_at TIMESTAMPTZ, ' +
    'early BOOLEAN)',
  `CREATE MACRO sessions(since, until, exchange) AS TABLE SELECT s.session, s.opens_at, s.closes_at, s.early FROM proof_sessions AS s
    WHERE s.closes_at >= since AND s.closes_at < until AND s.exchange = CAST(exchange AS VARCHAR)`,
  `CREATE TABLE proof_points (metric VARCHAR, asset VARCHAR, asked VARCHAR, ${clocks}, v DOUBLE, o VARCHAR, ` +
    'age INTERVAL, nth BIGINT)',
  `CREATE TABLE proof_coarse (${series}, ${clocks}, parts BIGINT, complete BOOLEAN, v DOUBLE, asked VARCHAR)`,
  `CREATE TABLE proof_versions (${state.split(', ').join(' VARCHAR, ')} VARCHAR, deployments STRUCT(${contract})[], chains VARCHAR[],
    valid_from TIMESTAMPTZ, first_seen TIMESTAMPTZ, _pit_since TIMESTAMPTZ, _pit_ended TIMESTAMPTZ)`,
  `CREATE MACRO calendar(since, until, step := '1 day') AS TABLE SELECT c.ts FROM proof_calendar AS c
    WHERE c.ts >= since AND c.ts < until AND c.step IS NOT DISTINCT FROM CAST(step AS VARCHAR)`,
  `CREATE MACRO pit_join(decisions, metric, "interval", ${options}) AS TABLE
    SELECT yours.*, ${foundColumns} FROM query_table(decisions) AS yours ${joinOf('CAST(metric AS VARCHAR)')}`,
  `CREATE MACRO pit_window(decisions, metric, "interval", n, ${options}) AS TABLE
    SELECT yours.*, ${foundColumns}, p.nth FROM query_table(decisions) AS yours ${joinOf('concat(metric, n)')}`,
  `CREATE MACRO pit_long(decisions, metrics, "interval", ${options}) AS TABLE
    SELECT yours.*, one.name AS metric, ${foundColumns} FROM query_table(decisions) AS yours
    CROSS JOIN (SELECT DISTINCT unnest(CAST(metrics AS VARCHAR[])) AS name) AS one ${joinOf('one.name')}`,
  `CREATE MACRO pit_universe(decisions) AS TABLE (${membersOf('proof_versions', settings)}),
    (decisions, members) AS TABLE (${membersOf('(FROM proof_versions WHERE members)', settings)})`,
  `CREATE MACRO resample(metric, from_interval, to_interval, agg := 'mean', currency := NULL, exchange := NULL,
     network := NULL,
    component := NULL, skip_nulls := false, min_parts := NULL, since := NULL, until := NULL,
    follow_renames := false) AS TABLE
    SELECT p.metric, p.asset, p."interval", p.currency, p.exchange, p.network, p.t, p.available_at, p.parts,
      p.complete, p.v
    FROM proof_coarse AS p WHERE p.metric = CAST(metric AS VARCHAR) AND p.asked = concat(from_interval,
      to_interval, agg,
      currency, exchange, network, component, CAST(skip_nulls AS VARCHAR), CAST(min_parts AS VARCHAR), since, until,
      follow_renames)`,
  `CREATE MACRO bars(metric, from_interval, to_interval, currency := NULL, exchange := NULL, network := NULL,
    component := NULL, skip_nulls := false, min_parts := NULL, since := NULL, until := NULL,
    follow_renames := false) AS TABLE
    SELECT p.metric, p.asset, p."interval", p.currency, p.exchange, p.network, p.t, p.available_at, p.parts,
      p.complete, p.v AS open, p.v AS high, p.v AS low, p.v AS close
    FROM proof_coarse AS p WHERE p.metric = CAST(metric AS VARCHAR) AND p.asked = concat(from_interval,
      to_interval, 'bars',
      currency, exchange, network, component, CAST(skip_nulls AS VARCHAR), CAST(min_parts AS VARCHAR), since, until,
      follow_renames)`,
  `CREATE MACRO lake_version() AS (SELECT version FROM lake_info)`,
  `CREATE MACRO lake_digest() AS (SELECT CAST(version AS VARCHAR) FROM lake_info)`,
]

/** Builds the statements that make the shadow catalogue of the lake that a session reads, under these settings. */
export async function shadowSql(
  session: Engine,
  settings: ReadonlySet<Assumption> = new Set(),
  ownTables: readonly OwnRelation[] = [],
): Promise<string> {
  const columns = await session.rows<{ schema: string; view: string; name: string; type: string }>(
    `SELECT c.schema_name AS schema, c.table_name AS view, c.column_name AS name, c.data_type AS type
     FROM system.main.duckdb_columns() AS c WHERE NOT c.internal AND c.database_name = current_database()
     ORDER BY c.schema_name, c.table_name, c.column_index`,
  )
  const views = Map.groupBy(columns, ({ schema, view }) => `${quoteName(schema)}.${quoteName(view)}`)
  const schemas = new Set(columns.map(({ schema }) => schema))
  const tableSql = (name: string, columns: Columns): string =>
    `CREATE TABLE ${name} (${columns.map((column) => `${quoteName(column.name)} ${column.type}`).join(', ')})`
  const viewTables = [...views].map(([name, columns]) => tableSql(name, columns))
  // Their names exist nowhere else in the lake, so that a name alone identifies them.
  const userTables = ownTables.flatMap((relation) => {
    const table = `${ownSchema}.${quoteName(relation.name)}`
    return [tableSql(table, relation.columns), `CREATE VIEW ${quoteName(relation.name)} AS FROM ${table}`]
  })
  const rooms = [...schemas].map((schema) => `CREATE SCHEMA IF NOT EXISTS ${quoteName(schema)}`)
  return [...rooms, ...viewTables, `CREATE SCHEMA ${ownSchema}`, ...userTables, ...macrosUnder(settings)].join(';\n')
}

/** Opens that catalogue; close it when done. */
export async function openShadow(
  session: Engine,
  settings: ReadonlySet<Assumption> = new Set(),
  userRelations: readonly OwnRelation[] = [],
): Promise<Engine> {
  const text = await shadowSql(session, settings, userRelations)
  const shadow = await Engine.open(':memory:', { threads: 1 })
  return closing(shadow, async () => {
    await shadow.run(text)
    return shadow
  })
}
