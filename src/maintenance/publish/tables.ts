import type { Catalogue } from '../../catalog/catalogue.ts'
import type { StoredFile } from '../../lake/ledger/index-queries.ts'
import { earlierDatings } from '../../sources/points/datings.ts'
import { computedSql, ruledSql, sharesOf } from '../../sources/points/files.ts'
import { growingTables, recordTables, relation, tableColumns } from '../../sources/registry/columns.ts'
import { type Engine, quoteName } from '../../lake/store/engine.ts'
import { inLake } from '../../lake/store/layout.ts'
import { statementsIn } from '../../lake/store/sql.ts'
import { readPoints } from '../../query/views/relations.ts'
import type { Mark } from './ranges.ts'
import { microsSql } from './write.ts'

/** A table as it is published from the views of one lake version. */
export interface PublishedTable {
  readonly name: string
  /** The SELECT of its rows; those of commits up to a version may be left out. */
  readonly rows: (after: Mark) => string
  /** Columns by which its rows are sorted. */
  readonly order: readonly string[]
  /** Growth of the table; undefined: it is written whole whenever its content changes. */
  readonly growth?: TableGrowth
  /** Table before it from which alone it is made: if that one is unchanged, so is this one. */
  readonly follows?: string
}

/** Returns the number of rows that the commits after a version added; a larger number is fine. */
type FreshRows = (engine: Engine, after: Mark) => Promise<number>

/** TableGrowth of a table whose rows are added by commits and stay. */
export interface TableGrowth {
  /** Instant of the commit that added a row, as SQL. */
  readonly at: string
  /** Whether a row may have no such instant yet: those are rewritten whenever any row is. */
  readonly open: boolean
  readonly fresh: FreshRows
  /** Column and its values whose rows changed after a version though no commit added them. */
  readonly stale?: { readonly by: string; readonly values: (engine: Engine, after: Mark) => Promise<readonly string[]> }
  /** Groups of metrics, each of which has files of its own if a portion is large. */
  readonly groups: readonly string[]
  /** Total number of rows, if the lake knows it without counting. */
  readonly total?: number
}

/** Sources of the tables: the lake's folder, absolute, and the files of one version. */
interface TableSources {
  readonly root: string
  readonly catalogue: Catalogue
  readonly files: readonly StoredFile[]
}

const statement = statementsIn(new URL('sql/', import.meta.url))
const series = ['metric', 'asset', 'interval', 'currency', 'exchange', 'network']

/** Table that maps each version of the lake to the versions of the other tables. */
export const versionsTable = 'versions'

/** Lists every table but `versions`, in the order in which they are committed. */
export function publishedTables(sources: TableSources): readonly PublishedTable[] {
  const resources = [...recordTables(sources.catalogue.resources).keys()]
  const wholeTable = (name: string, order: readonly string[]): PublishedTable => ({
    name,
    rows: () => `SELECT * FROM ${name}`,
    order,
  })
  return [
    ...pointsTables(sources),
    ...resources.map(historyTable),
    ...resources.map(snapshotTable),
    ...growingTables.flatMap((table) => grownTable(sources, table)),
    wholeTable('coverage', [...series, 'since']),
    wholeTable('violations', [...series, 't', 'kind', 'offered']),
    wholeTable('endpoints', ['metric']),
    { ...wholeTable('series', series), follows: 'points' },
    wholeTable('links', ['metric_asset', 'product_id', 'valid_from', 'basis', 'chain_id', 'address']),
  ]
}

function pointsTables({ root, files }: TableSources): readonly PublishedTable[] {
  const points = files.filter(({ table }) => table === 'points')
  const datings = earlierDatings(files)
  /** Builds the SQL that reads points added after a version; no older file contains them. */
  const read = ({ version }: Mark): string =>
    readPoints(
      root,
      points.filter((file) => file.added_version > version),
    )
  const growth = (of: string): TableGrowth => ({
    at: 'observed_at',
    open: false,
    fresh: async (engine, after) =>
      await counted(engine, `${read(after)} WHERE observed_at > ${microsSql(after.at)}${of}`),
    stale: {
      by: 'metric',
      values: async (_engine, after) => datings.flatMap(({ metric, until }) => (until > after.at ? [metric] : [])),
    },
    groups: [...new Set(points.flatMap((file) => sharesOf(file).map(({ metric }) => groupOf(metric))))].toSorted(),
  })
  const total = points.reduce((sum, { rows }) => sum + rows, 0)
  const order = [...series, 't']
  return [
    {
      name: 'points',
      rows: (after) =>
        statement('points', {
          files: read(after),
          available_by_rule: ruledSql('stored'),
          computed_at: computedSql('stored'),
        }),
      order,
      growth: { ...growth(''), total },
    },
    {
      name: 'components',
      rows: (after) => statement('components', { files: read(after) }),
      order: [...order, 'component'],
      growth: growth(' AND o IS NOT NULL'),
    },
  ]
}

/** Returns the group of a metric: the first part of its path. */
const groupOf = (metric: string): string => metric.split('/', 1)[0] ?? metric

/**
 * Builds the table of a history. Closed versions were added with the commit that closed them; open ones are rewritten
 * with each change.
 */
function historyTable(resource: string): PublishedTable {
  const view = `history.${quoteName(resource)}`
  return {
    name: `history_${resource}`,
    rows: () => `SELECT * FROM ${view}`,
    order: ['id', 'valid_from'],
    growth: {
      at: 'valid_to',
      open: true,
      fresh: async (engine, { at }) =>
        await counted(
          engine,
          `${view} WHERE valid_from > ${microsSql(at)} OR (valid_to > ${microsSql(at)} AND isfinite(valid_to))`,
        ),
      groups: [],
    },
  }
}

/** Published names of the registry's tables that only grow. */
const grownNames: Readonly<Record<string, string>> = {
  snapshots: 'registry_snapshots',
  events: 'registry_events',
  schema_changes: 'registry_schema_changes',
  registry_findings: 'registry_findings',
}

/** Columns of those tables that only the lake's files need. */
const hiddenColumns: readonly string[] = ['base', 'delta', 'hash', 'of table']

/** Builds a table of the registry other than versions and dated tables: with every snapshot of a date, too. */
function grownTable({ root, files }: TableSources, table: string): PublishedTable[] {
  const name = grownNames[table]
  if (name === undefined) return []
  const paths = files.filter((file) => file.table === table).map(({ path }) => inLake(root, path))
  const columns = tableColumns(table).flatMap(([column]) => {
    return hiddenColumns.includes(column) ? [] : [`${quoteName(column)}${column === 'at' ? ' AS observed_at' : ''}`]
  })
  const rows = `SELECT ${columns.join(', ')} FROM ${relation(table, paths)}`
  const fresh: FreshRows = async (engine, after) =>
    await counted(engine, `(${rows}) WHERE observed_at > ${microsSql(after.at)}`)
  const growth = { at: 'observed_at', open: false, fresh, groups: [] }
  return [{ name, rows: () => rows, order: ['observed_at'], growth }]
}

/**
 * Builds the table of snapshots, the last one of each date: a date is written again if an earlier snapshot of it was
 * published.
 */
function snapshotTable(resource: string): PublishedTable {
  const view = `snapshots.${quoteName(resource)}`
  return {
    name: `snapshot_${resource}`,
    rows: () => `SELECT * FROM ${view}`,
    order: ['snapshot_date', 'id'],
    growth: {
      at: 'observed_at',
      open: false,
      fresh: async (engine, { at }) => await counted(engine, `${view} WHERE observed_at > ${microsSql(at)}`),
      stale: {
        by: 'snapshot_date',
        values: async (engine, { at }) => {
          const dates =
            `SELECT DISTINCT CAST(snapshot_date AS VARCHAR) AS date FROM ${view} WHERE observed_at > ` + microsSql(at)
          return (await engine.rows<{ date: string }>(dates)).map(({ date }) => date)
        },
      },
      groups: [],
    },
  }
}

async function counted(engine: Engine, from: string): Promise<number> {
  const [row] = await engine.rows<{ rows: bigint }>(`SELECT count(*) AS rows FROM ${from}`)
  return Number(row?.rows ?? 0)
}
