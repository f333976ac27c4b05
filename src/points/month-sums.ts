import { type Identity, identityColumns } from '../store/parquet.ts'
import type { Engine } from '../store/engine.ts'
import { inLake } from '../store/layout.ts'
import type { FileEntry, Progress } from '../ledger/entry.ts'
import { heldSeries, liveFiles, storedInterval } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { StagedFile } from '../ledger/draft.ts'
import { identityOf } from './conversion.ts'
import { addDigests, asDigests, digestOfSum, type MonthDigest, monthsBetween } from '../ledger/month-digests.ts'
import { namedSql } from './files.ts'
import { statement } from './sql.ts'

/** SQL of what of a point makes its hash: instants in microseconds, `v` and `o` as they stand in files. */
interface Hashed {
  readonly t: string
  readonly available: string
  readonly observed: string
  readonly basis: string
  readonly computed: string
  readonly rule: string
  /** The number as text. */
  readonly value?: string
}

/** SQL of the hash of a point: of its t, its value as text and its clocks; the same whichever program computes it. */
export function hashSql(hashed: Hashed): string {
  const { t, available, observed, basis, computed, rule, value = 'CAST(v AS VARCHAR)' } = hashed
  const optional = [computed, rule].map((one) => `coalesce(CAST(${one} AS VARCHAR), '')`)
  const told = `CASE WHEN o IS NOT NULL THEN 'o' || o ELSE coalesce('v' || ${value}, '') END`
  const parts = [t, told, `coalesce(extra, '')`, basis, available, observed, ...optional]
  return `md5_number_lower(concat_ws(chr(31), ${parts.join(', ')}))`
}

/** The columns that `months` reads it from. */
const stored: Hashed = {
  t: 'ut',
  available: 'ua',
  observed: 'uo',
  basis: 'basis',
  computed: 'uc',
  rule: 'ur',
  value: 'vt',
}

/** What a month holds, and what each commit brought to it: when (milliseconds, as published), rows, SHA-256 of their lines. */
export interface MonthSum extends MonthDigest {
  readonly steps: readonly { readonly seen: number; readonly points: number; readonly digest: string }[]
}

/** The months of a series of a partition. */
interface SeriesSums extends Identity {
  readonly metric: string
  readonly interval: string
  readonly months: ReadonlyMap<string, MonthSum>
}

/** What a relation of points with metric and interval holds of each month of each series. */
export async function monthSums(engine: Engine, source: string): Promise<SeriesSums[]> {
  const identity = identityColumns.join(', ')
  const rows = await engine.rows<Omit<SeriesSums, 'months'> & { months: string }>(
    statement('months', { source, identity, hash: hashSql(stored) }),
  )
  return rows.map(({ months, ...own }) => ({ ...own, months: monthsOf(months.split(',')) }))
}

/** The months of a series as the statement tells them, a commit after the other. */
function monthsOf(told: readonly string[]): Map<string, MonthSum> {
  const found = new Map<string, MonthSum>()
  for (const one of told) {
    const [month = '', seen, count, sum = '0', digest = ''] = one.split(' ')
    const points = Number(count)
    const { steps = [], ...before } = found.get(month) ?? { points: 0, digest: digestOfSum('0') }
    const step = { seen: Number(seen), points, digest }
    found.set(month, { ...addDigests(before, { points, digest: digestOfSum(sum) }), steps: [...steps, step] })
  }
  return found
}

/** What tells the series of a lake apart in its files: the interval is the one under which its points stand. */
export function seriesKey(metric: string, interval: string, identity: Identity): string {
  return JSON.stringify([metric, interval, ...identityColumns.map((name) => identity[name])])
}

/** A file that stands in the lake, or (`temporary`) waits for its commit. */
export type PointsFile = Pick<FileEntry, 'path' | 'table' | 'metric' | 'interval'> & {
  readonly temporary?: string | null
}

/** What those of these files that hold points hold of each month of each series that `find` gives the id of. */
export async function monthsIn(
  engine: Engine,
  root: string,
  files: readonly PointsFile[],
  find: (key: string) => string | undefined,
): Promise<Map<string, SeriesSums['months']>> {
  const found = new Map<string, SeriesSums['months']>()
  const points = files.filter(({ table }) => table === 'points')
  if (points.length === 0) return found
  const source = namedSql(points.map((file) => ({ ...file, path: inLake(root, file.temporary ?? file.path) })))
  for (const { months, ...one } of await monthSums(engine, source)) {
    const id = find(seriesKey(one.metric, one.interval, one))
    if (id !== undefined) found.set(id, months)
  }
  return found
}

/** What it does to the digests of each series that files stand for others, whose rows bear other clocks. */
export async function digestShift(
  ledger: Ledger,
  engine: Engine,
  { add, remove }: { readonly add: readonly StagedFile[]; readonly remove: readonly string[] },
): Promise<Progress[]> {
  const held = heldSeries(ledger)
  const named = new Map(
    [...held.values()].map((one) => [seriesKey(one.metric, storedInterval(one), identityOf(one)), one.id]),
  )
  const gone = new Set(remove)
  const old = liveFiles(ledger, { table: 'points' }).filter(({ path }) => gone.has(path))
  const [before, after] = [
    await monthsIn(engine, ledger.root, old, (key) => named.get(key)),
    await monthsIn(engine, ledger.root, add, (key) => named.get(key)),
  ]
  return [...before].flatMap(([series, months]): Progress[] => {
    const digests = asDigests(monthsBetween(months, after.get(series) ?? new Map<string, never>()))
    const { first_t = null, last_t = null } = held.get(series) ?? {}
    return first_t === null || last_t === null || digests.digests === undefined
      ? []
      : [{ series, points: 0, first_t, last_t, ...digests }]
  })
}
