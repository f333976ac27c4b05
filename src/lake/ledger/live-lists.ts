import { hash } from 'node:crypto'
import { linesDigest } from '../../base/merkle/leaf.ts'
import type { Index } from './index-rows.ts'

/*
 * A live list names the live files of one table and metric, sorted, a line for each: path, SHA-256, rows, and the label
 * if there is one. The index stores a digest for each list, so that a commit reads only the lists that it touches. The
 * log of versions (log.ts) commits to the digests of all lists.
 */

/** Table and metric of a live list. */
export interface ListName {
  readonly table: string
  /** Metric of the files; null for tables without metrics, and for recent files, which may contain several. */
  readonly metric: string | null
}

/** Formats the name of a live list as its line begins: `points supply/current_pit`, or `history.products -`. */
export function listName({ table, metric }: ListName): string {
  return `${table} ${metric ?? '-'}`
}

const lineSql = "path || ' ' || sha256 || ' ' || rows || CASE label WHEN '' THEN '' ELSE ' ' || label END"

/** Updates the digests of the lists whose files an entry added or removed. */
export function applyLiveLists(index: Index, touched: Iterable<ListName>): void {
  const lines = index.statement(
    `SELECT group_concat(${lineSql}, char(10) ORDER BY path, label) AS lines FROM files
     WHERE tbl = ? AND metric IS ? AND removed_version IS NULL`,
  )
  const put = index.statement('INSERT OR REPLACE INTO live_lists (tbl, metric, digest) VALUES (?, ?, ?)')
  const end = index.statement('DELETE FROM live_lists WHERE tbl = ? AND metric = ?')
  for (const { table, metric } of new Map(
    [...touched].map((touchedList) => [listName(touchedList), touchedList]),
  ).values()) {
    const text = lines.get(table, metric)?.['lines'] ?? null
    if (text === null) end.run(table, metric ?? '-')
    else put.run(table, metric ?? '-', hash('sha256', `${String(text)}\n`))
  }
}

/** Lines of the live lists of the newest version, sorted by their bytes: `table metric digest`. */
export function liveLines(index: Index): string[] {
  const rows = index
    .statement("SELECT tbl || ' ' || metric || ' ' || digest AS line FROM live_lists ORDER BY line")
    .all()
  return rows.map(({ line }) => String(line))
}

/** Lines of the live lists with these names: `table metric digest`, sorted by their bytes. */
export function linesOfLists(lists: ReadonlyMap<string, readonly string[]>): string[] {
  return sortedByBytes([...lists].map(([name, lines]) => `${name} ${linesDigest(lines)}`))
}

/** Lines of every live list as a version left it, by the name of the list, read from the files themselves. */
export function liveListsAt(index: Index, version: number): Map<string, string[]> {
  const rows = index.statement(
    `SELECT tbl || ' ' || coalesce(metric, '-') AS name, ${lineSql} AS line FROM files
     WHERE added_version <= ?1 AND (removed_version IS NULL OR removed_version > ?1) ORDER BY name, path, label`,
  )
  const lists = new Map<string, string[]>()
  for (const { name, line } of rows.iterate(version)) {
    const lines = lists.get(String(name)) ?? []
    lists.set(String(name), lines)
    lines.push(String(line))
  }
  return lists
}

/** Computes the digest of live lists for the leaf of their version. */
export function liveListsDigest(lists: ReadonlyMap<string, readonly string[]>): string {
  return linesDigest(linesOfLists(lists))
}

/** Sorts texts by their UTF-8 bytes, as SQLite does. */
export function sortedByBytes(texts: readonly string[]): string[] {
  return texts.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}
