import { Engine, quoteName } from '../../store/engine.ts'
import type { Setting } from '../assumption.ts'
import { closing } from '../../query/lake.ts'

/*
 * The catalogue against which a plan is made for a proof: empty tables of the names and columns of the lake's views, and
 * the lake's macros as what they promise, in one line each. The laws of time hold the real macros to the same promise.
 */

/** The options of the joins, as the lake's macros name them. */
const options = `currency := NULL, exchange := NULL, network := NULL, component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, beyond := 'value'`
const asked = `concat("interval", currency, exchange, network, component, CAST(max_age AS VARCHAR), CAST(latency AS VARCHAR), CAST(skip_nulls AS VARCHAR), CAST(beyond AS VARCHAR))`
const clocks = 't TIMESTAMPTZ, available_at TIMESTAMPTZ'
const found = 'p.t, p.available_at, p.v, p.o, p.age'
const series = 'metric VARCHAR, asset VARCHAR, "interval" VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR'
const product = 'product_id, name, symbol, isin, status, issuer_id, asset_id'
const contract = 'id VARCHAR, chain_id VARCHAR, address VARCHAR, status VARCHAR, verification_status VARCHAR'
const state = `${product}, issuer_name, issuer_status, jurisdiction, asset_name, asset_class, ticker`

/** What a join finds for a decision: points that were known by then. */
function joinOf(metric: string): string {
  return `LEFT JOIN proof_points AS p ON p.available_at <= yours.ts AND p.asset = CAST(yours.asset AS VARCHAR)
    AND p.metric = ${metric} AND p.asked IS NOT DISTINCT FROM ${asked}`
}

/**
 * The products of a decision. While the first snapshot stands in for the time before it a version may be older than the
 * poll that brought it: then nothing is said of its `valid_from`.
 */
function membersOf(from: string, settings: ReadonlySet<Setting>): string {
  const known = settings.has('registry_backfill') ? '' : 'p.valid_from <= yours.ts AND '
  return `SELECT yours.*, ${product.replaceAll(/\w+/g, 'p.$&')}, p.valid_from, false AS assumed
    FROM query_table(decisions) AS yours JOIN ${from} AS p ON ${known}p._pit_since <= yours.ts AND yours.ts < p._pit_ended`
}

const macrosUnder = (settings: ReadonlySet<Setting>): readonly string[] => [
  `CREATE TABLE proof_calendar (ts TIMESTAMPTZ, step VARCHAR)`,
  `CREATE TABLE proof_points (metric VARCHAR, asset VARCHAR, asked VARCHAR, ${clocks}, v DOUBLE, o VARCHAR, age INTERVAL, place BIGINT)`,
  `CREATE TABLE proof_coarse (${series}, ${clocks}, parts BIGINT, complete BOOLEAN, v DOUBLE, asked VARCHAR)`,
  `CREATE TABLE proof_versions (${state.split(', ').join(' VARCHAR, ')} VARCHAR, deployments STRUCT(${contract})[],
    valid_from TIMESTAMPTZ, first_seen TIMESTAMPTZ, _pit_since TIMESTAMPTZ, _pit_ended TIMESTAMPTZ)`,
  `CREATE MACRO calendar(since, until, step := '1 day') AS TABLE SELECT c.ts FROM proof_calendar AS c
    WHERE c.ts >= since AND c.ts < until AND c.step IS NOT DISTINCT FROM CAST(step AS VARCHAR)`,
  `CREATE MACRO pit_join(decisions, metric, "interval", ${options}) AS TABLE
    SELECT yours.*, ${found} FROM query_table(decisions) AS yours ${joinOf('CAST(metric AS VARCHAR)')}`,
  `CREATE MACRO pit_window(decisions, metric, "interval", n, ${options}) AS TABLE
    SELECT yours.*, ${found}, p.place FROM query_table(decisions) AS yours ${joinOf('concat(metric, n)')}`,
  `CREATE MACRO pit_long(decisions, metrics, "interval", ${options}) AS TABLE
    SELECT yours.*, one.name AS metric, ${found} FROM query_table(decisions) AS yours
    CROSS JOIN (SELECT DISTINCT unnest(CAST(metrics AS VARCHAR[])) AS name) AS one ${joinOf('one.name')}`,
  `CREATE MACRO pit_universe(decisions) AS TABLE (${membersOf('proof_versions', settings)}),
    (decisions, members) AS TABLE (${membersOf('(FROM proof_versions WHERE members)', settings)})`,
  `CREATE MACRO resample(metric, from_interval, to_interval, agg := 'mean', currency := NULL, exchange := NULL, network := NULL,
    component := NULL, skip_nulls := false, min_parts := NULL) AS TABLE
    SELECT p.metric, p.asset, p."interval", p.currency, p.exchange, p.network, p.t, p.available_at, p.parts, p.complete, p.v
    FROM proof_coarse AS p WHERE p.metric = CAST(metric AS VARCHAR) AND p.asked = concat(from_interval, to_interval, agg,
      currency, exchange, network, component, CAST(skip_nulls AS VARCHAR), CAST(min_parts AS VARCHAR))`,
  `CREATE MACRO lake_version() AS (SELECT version FROM lake_info)`,
  `CREATE MACRO lake_digest() AS (SELECT CAST(version AS VARCHAR) FROM lake_info)`,
]

/** Opens the shadow catalogue of the lake that a session reads, under these settings; close it when done. */
export async function openShadow(session: Engine, settings: ReadonlySet<Setting> = new Set()): Promise<Engine> {
  const columns = await session.rows<{ schema: string; view: string; name: string; type: string }>(
    `SELECT c.schema_name AS schema, c.table_name AS view, c.column_name AS name, c.data_type AS type
     FROM system.main.duckdb_columns() AS c WHERE NOT c.internal AND c.database_name = current_database()
     ORDER BY c.schema_name, c.table_name, c.column_index`,
  )
  const shadow = await Engine.open(':memory:', { threads: 1 })
  return closing(shadow, async () => {
    const views = Map.groupBy(columns, ({ schema, view }) => `${quoteName(schema)}.${quoteName(view)}`)
    const schemas = new Set(columns.map(({ schema }) => schema))
    const made = [...views].map(
      ([name, own]) => `CREATE TABLE ${name} (${own.map((one) => `${quoteName(one.name)} ${one.type}`).join(', ')})`,
    )
    const rooms = [...schemas].map((schema) => `CREATE SCHEMA IF NOT EXISTS ${quoteName(schema)}`)
    await shadow.run([...rooms, ...made, ...macrosUnder(settings)].join(';\n'))
    return shadow
  })
}
