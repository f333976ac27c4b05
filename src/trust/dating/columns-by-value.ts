import { type Engine, quote, quoteList } from '../../lake/store/engine.ts'
import { type ComparedColumn, type IgnoredColumn, type TableMapping, unknownReason } from './column-roles.ts'
import type { DatingOptions } from './options.ts'
import type { TableFile } from './table-file.ts'
import { countDigits } from './value-matcher.ts'

/** Different numbers of a column that are looked up, at most. */
const mostNumbers = 200
/** Different numbers that a metric must share with a column, and their share of all. */
const fewestShared = 3
const leastShare = 0.6

/** Numbers of a column whose name is not known. */
interface UnknownColumn {
  readonly column: string
  readonly numbers: readonly number[]
  /** Most digits behind the point that any of the numbers has. */
  readonly digits: number
}

/** Series that shares numbers with a column. */
interface SharedSeries {
  readonly metric: string
  readonly interval: string
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
  readonly shared: number
}

/**
 * Finds the metrics of columns with unknown names by their numbers: the one series that shares most of them. Columns of
 * which this shows nothing stay ignored.
 */
export async function findColumnsByValue(
  engine: Engine,
  file: TableFile,
  mapping: TableMapping,
  options: DatingOptions,
): Promise<TableMapping> {
  const open = mapping.ignored.filter(({ reason }) => reason === unknownReason)
  const isSearched = mapping.kind !== 'universe' && mapping.long === null && (options.metrics ?? []).length === 0
  if (!isSearched || open.length === 0 || (mapping.asset === null && mapping.oneAsset === null)) return mapping
  const { assets, columns } = await readUnknown(file, mapping, open)
  const found: ComparedColumn[] = []
  for (const { column, numbers, digits } of columns) {
    const need = Math.max(fewestShared, numbers.length * leastShare)
    const request = { assets, numbers, interval: options.interval }
    const exact = await findSeries(engine, request, null)
    const series = (exact?.shared ?? 0) >= need ? exact : await findSeries(engine, request, digits)
    if (series === undefined || series.shared < need) continue
    const { metric, interval, currency, exchange, network } = series
    const dimensions = { interval, currency, exchange, network }
    found.push({ column, metric, field: null, asset: null, by: 'values', dimensions })
  }
  const names = new Set(found.map(({ column }) => column))
  const ignored: IgnoredColumn[] = mapping.ignored.filter(({ column }) => !names.has(column))
  return { ...mapping, compared: [...mapping.compared, ...found], ignored }
}

/** Reads different numbers of columns, and the assets of the table. */
async function readUnknown(file: TableFile, { asset, oneAsset }: TableMapping, open: readonly IgnoredColumn[]) {
  const assets = new Set<string>(oneAsset === null ? [] : [oneAsset])
  const numbers = new Map(open.map(({ column }) => [column, new Set<number>()]))
  const strange = new Set<string>()
  const before = asset === null ? [] : [{ name: asset, as: 'text' } as const]
  const columns = open.map(({ column }) => ({ name: column, as: 'number' }) as const)
  for await (const values of file.rows([...before, ...columns])) {
    const [own] = values
    if (asset !== null && typeof own === 'string') assets.add(own)
    for (const [n, { name }] of columns.entries()) {
      const value = values[before.length + n] ?? null
      const set = numbers.get(name)
      if (typeof value === 'string') strange.add(name)
      if (typeof value === 'number' && set !== undefined && set.size < mostNumbers) set.add(value)
    }
  }
  const found = [...numbers].flatMap(([column, set]): UnknownColumn[] => {
    if (strange.has(column) || set.size < fewestShared) return []
    const counts = [...set].map((value) => countDigits(value)?.decimals ?? 0)
    return [{ column, numbers: [...set], digits: Math.max(...counts) }]
  })
  return { assets: [...assets], columns: found }
}

/** Numbers to look up, of which assets. */
interface SharedRequest {
  readonly assets: readonly string[]
  readonly numbers: readonly number[]
  readonly interval: string | undefined
}

/** Finds the series with the most of these numbers, exact or rounded; undefined if there is none, or several. */
async function findSeries(
  engine: Engine,
  { assets, numbers, interval }: SharedRequest,
  digits: number | null,
): Promise<SharedSeries | undefined> {
  const rounded = (value: string): string => (digits === null ? value : `round(${value}, ${digits})`)
  const list = numbers.map((number) => `CAST(${quote(String(number))} AS DOUBLE)`).join(', ')
  const rows = await engine.rows<
    SharedSeries & { shared: number; metric: string; [name: string]: string | number | null }
  >(
    `SELECT metric, "interval", currency, exchange, network, CAST(count(DISTINCT ${rounded('v')}) AS INTEGER) AS shared
FROM points
WHERE asset IN (SELECT unnest(${quoteList(assets)}))
  AND ${interval === undefined ? 'true' : `"interval" = ${quote(interval)}`}
  AND ${rounded('v')} IN (SELECT ${rounded('number')} FROM (SELECT unnest([${list}]) AS number))
GROUP BY ALL ORDER BY shared DESC, metric, "interval", currency, exchange, network LIMIT 2`,
  )
  const [first, second] = rows
  return first !== undefined && first.shared > (second?.shared ?? 0) ? first : undefined
}
