import type { Catalogue, Endpoint } from '../catalog/catalogue.ts'
import { exportCatalogue } from '../catalog/export.ts'
import { archivable, type Archived } from '../ledger/archive.ts'
import { acceptedToo, ofPassed } from '../ledger/differences.ts'
import { archivedState } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { acceptedPrefix } from '../registry/accepted.ts'
import { type Columns, declared } from './columns.ts'

/** A table of the lake's own knowledge: its columns and its rows, each as one JSON object in one line. */
export interface Exported {
  readonly columns: Columns
  readonly lines: (ledger: Ledger) => Iterable<string>
}

/** One whose rows the ledger gives away in time; a condition chooses among them. */
interface Chosen extends Exported {
  readonly lines: (ledger: Ledger, where?: string) => Iterable<string>
}

/** The version that first saw a violation `v` gone after another one. */
const nextOf = (after: string): string =>
  `(SELECT min(q.added_version) FROM passed q WHERE ${ofPassed.replaceAll('p.', 'q.')} AND q.added_version > ${after})`

const dimensions =
  'metric VARCHAR, asset VARCHAR, interval VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR'

/** The six dimensions of a series; the interval is the one under which its points stand. */
const ofSeries = {
  metric: 's.metric',
  asset: 's.asset',
  interval: 'coalesce(s.interval, s.settled)',
  currency: 's.currency',
  exchange: 's.exchange',
  network: 's.network',
  added_at: 'a.committed_at',
}

const coverage = table(
  `coverage c JOIN series s ON s.n = c.series JOIN versions a ON a.version = c.added_version
   LEFT JOIN versions r ON r.version = c.removed_version`,
  'c.series, c.since, c.added_version',
  `${dimensions}, since TIMESTAMPTZ, until TIMESTAMPTZ, state VARCHAR, reason VARCHAR, asked_at TIMESTAMPTZ,
   request VARCHAR, added_at TIMESTAMPTZ, removed_at TIMESTAMPTZ, verified_at TIMESTAMPTZ`,
  {
    ...ofSeries,
    since: 'c.since * 1000000',
    until: 'c.until * 1000000',
    asked_at: 'c.asked_at * 1000000',
    removed_at: 'r.committed_at',
    verified_at: `(SELECT max(v.at) FROM verified v
      WHERE v.series = s.id AND v.since < c.until AND v.until > c.since)`,
  },
)

/** Series with points of which no window tells: those of a lake that lost its journal. `until` is the start of the last point. */
const uncovered = table(
  `(SELECT * FROM series s WHERE s.points > 0 AND NOT EXISTS (SELECT 1 FROM coverage c WHERE c.series = s.n)) s`,
  's.n',
  `${dimensions}, since TIMESTAMPTZ, until TIMESTAMPTZ`,
  { ...ofSeries, since: 's.first_t * 1000000', until: 's.last_t * 1000000' },
)

/** A row for each state of a violation: from the version that told it on, until one told another (`passed`: not shown any more). */
const violations = table(
  `(SELECT *, added_version AS told, 0 AS gone, ${nextOf('v.added_version - 1')} AS ended FROM violations v
    UNION ALL SELECT v.*, p.added_version, 1, p.reopened_version FROM passed p JOIN violations v ON ${ofPassed}
    UNION ALL SELECT v.*, p.reopened_version, 0, ${nextOf('p.reopened_version')} FROM passed p
      JOIN violations v ON ${ofPassed} WHERE p.reopened_version IS NOT NULL) v
   JOIN series s ON s.n = v.series JOIN versions told ON told.version = v.told
   LEFT JOIN versions ended ON ended.version = v.ended LEFT JOIN accepted a ON ${acceptedToo}`,
  'v.told, v.series, v.t, v.kind, v.offered_key, v.incident, v.until',
  `${dimensions}, t TIMESTAMPTZ, kind VARCHAR, stored VARCHAR, offered VARCHAR, stored_at TIMESTAMPTZ,
   offered_at TIMESTAMPTZ, request VARCHAR, added_at TIMESTAMPTZ, removed_at TIMESTAMPTZ, accepted_at TIMESTAMPTZ,
   why VARCHAR, passed_at TIMESTAMPTZ, incident VARCHAR, until TIMESTAMPTZ, points BIGINT`,
  {
    ...ofSeries,
    added_at: 'told.committed_at',
    removed_at: 'ended.committed_at',
    t: 'v.t * 1000000',
    kind: 'v.kind',
    accepted_at: 'a.at',
    passed_at: 'CASE WHEN v.gone THEN told.committed_at END',
    incident: "nullif(v.incident, '')",
    until: 'nullif(v.until, 0) * 1000000',
    points: 'v.points',
  },
)

const findings = table(
  'clock_findings f JOIN series s ON s.n = f.series JOIN versions a ON a.version = f.added_version',
  'f.added_version, f.series, f.t, f.kind',
  `${dimensions}, t TIMESTAMPTZ, kind VARCHAR, detail VARCHAR, found_at TIMESTAMPTZ, added_at TIMESTAMPTZ`,
  { ...ofSeries, t: 'f.t * 1000000', found_at: 'f.at' },
)

const valueTypes = table(
  `value_types v JOIN versions a ON a.version = v.added_version LEFT JOIN versions r ON r.version = v.removed_version`,
  'v.metric, v.path, v.type, v.after_type, v.added_version',
  `metric VARCHAR, path VARCHAR, parent VARCHAR, type VARCHAR, after_type VARCHAR, available_at TIMESTAMPTZ,
   ruled_at TIMESTAMPTZ, added_at TIMESTAMPTZ, removed_at TIMESTAMPTZ`,
  { added_at: 'a.committed_at', removed_at: 'r.committed_at' },
)

const acceptedFindings = table(
  `(SELECT substr(key, ${acceptedPrefix.length + 1}) AS finding, value ->> '$.why' AS why, version FROM state
     WHERE substr(key, 1, ${acceptedPrefix.length}) = '${acceptedPrefix}') s JOIN versions a USING (version)`,
  'finding',
  'finding VARCHAR, accepted_at TIMESTAMPTZ, why VARCHAR',
  { accepted_at: 'a.committed_at' },
)

const requests = table(
  'requests',
  'asked_at, id',
  `id VARCHAR, run VARCHAR, api VARCHAR, path VARCHAR, query VARCHAR, series VARCHAR, since TIMESTAMPTZ,
   until TIMESTAMPTZ, status INTEGER, outcome VARCHAR, points BIGINT, bytes BIGINT, credits DOUBLE, attempts INTEGER,
   asked_at TIMESTAMPTZ, seconds DOUBLE, detail VARCHAR, provider_date TIMESTAMPTZ`,
  {
    since: 'since * 1000000',
    until: 'until * 1000000',
    detail: `nullif(detail, 'null')`,
    provider_date: 'CAST(provider_date * 1000000 AS INTEGER)',
  },
)

const runs = table(
  'runs',
  'started_at, id',
  `id VARCHAR, job VARCHAR, command VARCHAR, started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, stopped_by VARCHAR,
   exit_code INTEGER, plan VARCHAR, actual VARCHAR`,
)

const versions = table(
  'versions',
  'version',
  `version BIGINT, committed_at TIMESTAMPTZ, job VARCHAR, run VARCHAR, program VARCHAR, metrics_provider VARCHAR,
   registry_provider VARCHAR, synthetic BOOLEAN, files_added BIGINT, files_removed BIGINT, files_dropped BIGINT,
   points_added BIGINT, digest VARCHAR`,
  {
    metrics_provider: `provider ->> '$.metrics'`,
    registry_provider: `provider ->> '$.registry'`,
    synthetic: `json(CASE WHEN provider ->> '$.synthetic' THEN 'true' ELSE 'false' END)`,
  },
)

/** Every table that the views read from an export, by the name that `{{ledger NAME}}` asks for. */
export function exportedTables(catalogue: Catalogue): Readonly<Record<string, Exported>> {
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
  }
}

/** The tables whose old rows go into files of the lake, with the same columns. */
export const archivedTables: Readonly<Record<Archived, Chosen>> = { requests, coverage, runs, versions }

/** The rows that do not stand in files yet. */
function recent(name: Archived): Exported {
  const { columns, lines } = archivedTables[name]
  return {
    columns,
    lines: (ledger) => lines(ledger, `coalesce(NOT (${archivable(name, archivedState(ledger).before)}), true)`),
  }
}

/** A table of the ledger: FROM, ORDER BY and columns as SQL says them; instants in microseconds. `cells` are the columns that the ledger has under other names or in other units. */
function table(from: string, order: string, columns: string, cells: Readonly<Record<string, string>> = {}): Chosen {
  const told = declared(columns)
  const line = `json_object(${told.map(([name]) => `'${name}', ${cells[name] ?? name}`).join(', ')})`
  return {
    columns: told,
    lines: function* lines(ledger, where = 'true') {
      const rows = ledger.statement(`SELECT ${line} AS line FROM ${from} WHERE ${where} ORDER BY ${order}`)
      for (const row of rows.iterate()) yield String(row['line'])
    },
  }
}

function constant(columns: string, rows: readonly object[]): Exported {
  return { columns: declared(columns), lines: () => rows.map((row) => JSON.stringify(row)) }
}

function endpointsOf(catalogue: Catalogue): Exported {
  const rows = exportCatalogue(catalogue).map((endpoint) => {
    const own = catalogue.endpoints.get(endpoint.path) as Endpoint
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
      placeholders: own.placeholders,
    }
  })
  return constant(
    `path VARCHAR, about VARCHAR, intervals VARCHAR[], currencies VARCHAR[], exchanges VARCHAR[], networks VARCHAR[],
     since BOOLEAN, until BOOLEAN, format BOOLEAN, timestamp_format BOOLEAN, rule VARCHAR, lag_seconds BIGINT,
     basis VARCHAR, quote VARCHAR, reason VARCHAR, default_interval VARCHAR, default_currency VARCHAR,
     default_exchange VARCHAR, default_network VARCHAR, tolerance_seconds BIGINT, overlap VARCHAR, params VARCHAR,
     placeholders VARCHAR[], rules VARCHAR`,
    rows,
  )
}

function linksOf(catalogue: Catalogue): Exported {
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
