import { quote } from '../../lake/store/engine.ts'
import { places } from '../../lake/store/layout.ts'

/** How a file is read whose folders say nothing. */
export const bareOptions = 'hive_partitioning = false'
/** How files of partitions are read. */
export const placedOptions = 'hive_partitioning = true, hive_types = {metric: VARCHAR, interval: VARCHAR}'
/** What the paths of files of partitions begin with. */
export const placedFolder = `${places.points}/metric=`

/**
 * Whether no folder above the lake looks like a partition: then the engine finds ours alone, and opens no other file.
 */
export function isPlain(root: string): boolean {
  return !root.includes('=')
}

/** The SELECT over files of partitions, told by their last two folders: a list of absolute paths, as SQL. */
export function placedSql(root: string, list: string): string {
  if (isPlain(root)) return `SELECT * FROM read_parquet(${list}, ${placedOptions})`
  const folder = (key: string, behind: string): string =>
    `url_decode(regexp_extract(path_of_file, '/${key}=([^/]*)/${behind}[^/]*$', 1))`
  return `SELECT * EXCLUDE (path_of_file), ${folder('metric', '[^/]*/')} AS metric, ${folder('interval', '')} AS "interval"
    FROM read_parquet(${list}, ${bareOptions}, filename = 'path_of_file')`
}

/** The SELECT over recent files, which hold both names as columns. */
export function mixedSql(list: string): string {
  return `SELECT * FROM read_parquet(${list}, ${bareOptions})`
}

/**
 * An SQL expression of the text of a relation over points files: `paths` is an SQL list of paths in the lake, and
 * `listed` makes of an SQL list the text of the list of their absolute paths. `mixed` says whether there are recent
 * ones.
 */
export function relationText(root: string, paths: string, listed: (list: string) => string, mixed: boolean): string {
  if (isPlain(root) && !mixed) return `concat('read_parquet(', ${listed(paths)}, ', ${placedOptions})')`
  const part = (sql: (list: string) => string, condition: string): string => {
    const list = `list_filter(all_paths, lambda path_listed: ${condition}starts_with(path_listed, ${quote(placedFolder)}))`
    const [before = '', after = ''] = sql('\u0002').split('\u0002')
    return `CASE WHEN len(${list}) > 0 THEN concat(${quote(before)}, ${listed(list)}, ${quote(after)}) END`
  }
  const both = `concat_ws(' UNION ALL BY NAME ', ${part((list) => placedSql(root, list), '')}, ${part(mixedSql, 'NOT ')})`
  // Whatever tells the paths is bound once, not wherever it is read.
  return `'(' || list_transform([${paths}], lambda all_paths: ${both})[1] || ')'`
}

/** The path with what DuckDB would take for a pattern made literal. */
export function literalPath(path: string): string {
  return path.replaceAll(/[*?[]/g, (character) => `[${character}]`)
}

/** The path that `literalPath` was given. */
export function plainPath(literal: string): string {
  return literal.replaceAll(/\[([*?[])\]/g, '$1')
}
