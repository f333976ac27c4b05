import { quote, quotePaths } from '../../lake/store/engine.ts'
import { inLake } from '../../lake/store/layout.ts'
import { computedSql } from '../../sources/points/files.ts'
import type { Interval } from '../../base/time.ts'
import { type FoundFile, type LeftOut, type LostFolder, writtenAt } from './adopt-files.ts'

/** Rows that the same files have in the same way. */
interface Overlap {
  readonly files: readonly string[]
  /** First file that dates the rows as each file does, from 1; the same for all rows of other tables. */
  readonly dated: readonly number[]
  /** The files say different things of the same point. */
  readonly contradicts: boolean
}

const superseded = 'its rows stand in other files'

/** Chooses the points files in which each (series, t) occurs once, with the newest dates. */
export async function sortPoints(folder: LostFolder, files: readonly FoundFile[]) {
  const overlaps: Overlap[] = []
  for (const partition of await partitionsIn(folder, files))
    overlaps.push(...(await overlapsOf(folder, files, partition)))
  return sortFiles(files, overlaps)
}

/** Chooses the files of another table in which each row occurs once. */
export async function sortRows({ engine, root }: LostFolder, files: readonly FoundFile[]) {
  if (files.length === 0) return { kept: [], others: [] }
  const names = [...new Set(files.flatMap(({ columns }) => columns.map(({ name }) => `"${name}"`)))]
  const overlaps = await engine.rows<{ files: readonly string[] }>(
    `SELECT DISTINCT files FROM (SELECT list(filename ORDER BY filename) AS files
       FROM read_parquet(${pathsOf(root, files)}, union_by_name = true, hive_partitioning = false, filename = true)
       GROUP BY ${names.join(', ')})`,
  )
  return sortFiles(
    files,
    overlaps.map((overlap) => ({ files: inside(root, overlap.files), dated: [], contradicts: false })),
  )
}

/** Judges contradictions and dates first, then the rest by the rule that a row occurs once. */
function sortFiles(files: readonly FoundFile[], overlaps: readonly Overlap[]) {
  const sorted = files.toSorted(byPreference)
  const byPath = new Map(sorted.map((file) => [file.path, file]))
  const why = new Map<string, string>()
  for (const overlap of overlaps)
    for (const { path, why: reason } of judge(overlap, byPath)) if (!why.has(path)) why.set(path, reason)
  const accepted = sorted.filter(({ path }) => !why.has(path))
  const number = new Map(accepted.map(({ path }, n) => [path, n]))
  const shared = overlaps
    .map(({ files: paths }): Shared => paths.flatMap((path) => number.get(path) ?? []))
    .filter((rows) => rows.length > 0)
  const { kept: keptIndexes, refused } = chooseFiles(accepted.length, shared)
  for (const [n, { path }] of accepted.entries()) {
    if (refused.has(n))
      why.set(path, 'some of its rows stand in other files, and no set of whole files holds each once')
    else if (!keptIndexes.has(n)) why.set(path, superseded)
  }
  return {
    kept: accepted.filter((_, n) => keptIndexes.has(n)),
    others: [...why].map(([path, reason]) => ({ path, why: reason })),
  }
}

/** Compares files with the same rows by preference: the one written later comes first. */
function byPreference(a: FoundFile, b: FoundFile): number {
  const later = writtenAt(b.path) - writtenAt(a.path)
  if (a.datedAt !== b.datedAt) return b.datedAt - a.datedAt
  if (later !== 0) return later
  if (a.version !== b.version) return b.version - a.version
  return a.path < b.path ? 1 : -1
}

/** Lists the files that cannot stay because others contradict or repeat the same rows. */
function judge({ files, dated, contradicts }: Overlap, byPath: ReadonlyMap<string, FoundFile>): LeftOut[] {
  const twice = files.filter((path, n) => files.indexOf(path) !== n)
  if (twice.length > 0) return twice.map((path) => ({ path, why: 'it holds a row twice' }))
  if (contradicts) {
    const unproved = files.filter((path) => (byPath.get(path)?.digest ?? null) === null)
    const losers = unproved.length < files.length ? unproved : files
    return losers.map((path) => ({ path, why: 'it contradicts another file' }))
  }
  if (new Set(dated).size <= 1) return []
  const datedAt = files.map((path) => byPath.get(path)?.datedAt ?? 0)
  const latest = Math.max(...datedAt)
  const newest = new Set(dated.filter((_, n) => datedAt[n] === latest))
  if (newest.size > 1)
    return files.map((path) => ({ path, why: 'it is unknown which of two sets of dates is the newer one' }))
  return files
    .filter((_, n) => !newest.has(dated[n] ?? 0))
    .map((path) => ({ path, why: 'it holds an earlier dating, and until when it held is lost' }))
}

interface Named {
  readonly metric: string
  readonly interval: Interval
}

async function partitionsIn({ engine, root }: LostFolder, files: readonly FoundFile[]): Promise<Named[]> {
  const named = new Map<string, Named>()
  for (const { metric, interval } of files)
    if (metric !== null && interval !== null) named.set(`${metric} ${interval}`, { metric, interval })
  const recent = files.filter(({ metric }) => metric === null)
  if (recent.length > 0)
    for (const partition of await engine.rows<{ metric: string; interval: Interval }>(
      `SELECT DISTINCT metric, "interval" FROM read_parquet(${pathsOf(root, recent)}, union_by_name = true, ` +
        'hive_partitioning = false)',
    ))
      named.set(`${partition.metric} ${partition.interval}`, partition)
  return [...named.values()]
}

async function overlapsOf(
  { engine, root, revisable }: LostFolder,
  all: readonly FoundFile[],
  { metric, interval }: Named,
) {
  const partitionFiles = all.filter((file) => file.metric === metric && file.interval === interval)
  const recent = all.filter((file) => file.metric === null)
  const rows = (files: readonly FoundFile[], where: string): string =>
    `SELECT filename, asset, currency, exchange, network, params, t,
       ${revisable?.has(metric) === true ? `(observed_at, ${computedSql()})` : 'NULL'} AS vintage,
       hash(v, signbit(v), o, extra, observed_at, ${computedSql()}) AS content, hash(available_at, basis,
         available_rule_at) AS dates
     FROM read_parquet(${pathsOf(root, files)}, union_by_name = true, hive_partitioning = false,
       filename = true)${where}`
  const levels = [
    ...(partitionFiles.length === 0 ? [] : [rows(partitionFiles, '')]),
    ...(recent.length === 0
      ? []
      : [rows(recent, ` WHERE metric = ${quote(metric)} AND "interval" = ${quote(interval)}`)]),
  ]
  const found = await engine.rows<{ [K in keyof Overlap]: Overlap[K] }>(
    `SELECT DISTINCT files, list_transform(dates, lambda each: list_position(dates, each)::INTEGER) AS dated,
       contradicts
     FROM (SELECT list(filename ORDER BY filename) AS files, list(dates ORDER BY filename) AS dates,
         count(DISTINCT content) > 1 AS contradicts
       FROM (${levels.join(' UNION ALL ')}) GROUP BY asset, currency, exchange, network, params, t, vintage)`,
  )
  return found.map((overlap) => ({ ...overlap, files: inside(root, overlap.files) }))
}

function pathsOf(root: string, files: readonly FoundFile[]): string {
  return quotePaths(files.map(({ path }) => inLake(root, path)))
}

/** Converts absolute paths to those that the lake uses. */
function inside(root: string, paths: readonly string[]): string[] {
  const start = inLake(root, 'x').length - 1
  return paths.map((path) => path.slice(start).replaceAll('\\', '/'))
}

/** Files with the same rows, of which one may stay. Files are numbers, the preferred ones low. */
type Shared = readonly number[]

/** Maximum number of steps tried for files that overlap with one another. */
const patience = 100_000

/**
 * Chooses among `count` files so that each row is in exactly one of them; of several such sets the one with the
 * preferred files. Files that overlap so that no set of whole ones fits are refused, with all that overlap with them.
 */
export function chooseFiles(count: number, shared: readonly Shared[]) {
  const keptNumbers = new Set<number>()
  const refused = new Set<number>()
  for (const group of groups(count, shared)) {
    const cover = coverOf(group)
    for (const file of group.files) {
      if (!cover) refused.add(file)
      else if (cover.has(file)) keptNumbers.add(file)
    }
  }
  return { kept: keptNumbers, refused }
}

interface Group {
  readonly files: readonly number[]
  readonly shared: readonly Shared[]
}

/** Groups files that overlap with one another, directly or through others. */
function groups(count: number, shared: readonly Shared[]): Group[] {
  const parent = Array.from({ length: count }, (_, file) => file)
  const top = (file: number): number => {
    let at = file
    while (parent[at] !== at) at = parent[at] ?? at
    parent[file] = at
    return at
  }
  for (const [first = 0, ...others] of shared) for (const other of others) parent[top(other)] = top(first)
  const files = Map.groupBy(parent.keys(), top)
  const rows = Map.groupBy(
    shared.filter((indexes) => indexes.length > 0),
    ([first = 0]) => top(first),
  )
  return [...files].map(([key, indexes]) => ({ files: indexes, shared: rows.get(key) ?? [] }))
}

/**
 * Finds the set of files to keep, with the preferred files first: the first set found is the preferred one, whatever
 * other files there are.
 */
function coverOf({ files, shared }: Group): ReadonlySet<number> | undefined {
  const byVersion = Map.groupBy(
    shared.flatMap((rows) => rows.map((file) => ({ file, rows }))),
    ({ file }) => file,
  )
  const rivals = (file: number): Set<number> => new Set((byVersion.get(file) ?? []).flatMap(({ rows }) => rows))
  let steps = 0
  const search = (
    at: number,
    keptIndexes: readonly number[],
    out: ReadonlySet<number>,
  ): ReadonlySet<number> | undefined => {
    if (++steps > patience || shared.some((rows) => rows.every((file) => out.has(file)))) return undefined
    let next = at
    while (out.has(files[next] ?? -1)) next++
    const file = files[next]
    if (file === undefined) return new Set(keptIndexes)
    const others = rivals(file)
    others.delete(file)
    const free = !keptIndexes.some((index) => others.has(index))
    return (
      (free ? search(next + 1, [...keptIndexes, file], out.union(others)) : undefined) ??
      search(next + 1, keptIndexes, new Set([...out, file]))
    )
  }
  return search(0, [], new Set())
}
