import { quote } from '../../lake/store/engine.ts'
import { places } from '../../lake/store/layout.ts'

/** Options to read a file whose folders have no meaning. */
export const bareOptions = 'hive_partitioning = false'
/** Options to read files of partitions. */
export const placedOptions = 'hive_partitioning = true, hive_types = {metric: VARCHAR, interval: VARCHAR}'
/** Prefix of the paths of files of partitions. */
export const placedFolder = `${places.points}/metric=`

/**
 * Whether no folder above the lake looks like a partition: then the engine finds ours alone, and opens no other file.
 */
export function isPlain(root: string): boolean {
  return !root.includes('=')
}

/**
 * Builds the SELECT over files of partitions, identified by their last two folders, from a list of absolute paths as
 * SQL.
 */
export function placedSql(root: string, list: string): string {
  if (isPlain(root)) return `SELECT * FROM read_parquet(${list}, ${placedOptions})`
  const folder = (key: string, behind: string): string =>
    `url_decode(regexp_extract(path_of_file, '/${key}=([^/]*)/${behind}[^/]*$', 1))`
  return `SELECT * EXCLUDE (path_of_file), ${folder('metric', '[^/]*/')} AS metric, ${folder('interval', '')} AS "interval"
    FROM read_parquet(${list}, ${bareOptions}, filename = 'path_of_file')`
}

/** Builds the SELECT over recent files, which have both names as columns. */
export function mixedSql(list: string): string {
  return `SELECT * FROM read_parquet(${list}, ${bareOptions})`
}

/**
 * Builds an SQL expression of the text of a relation over points files: `paths` is an SQL list of paths in the lake,
 * and `listed` makes of an SQL list the text of the list of their absolute paths. `mixed` is true if there are recent
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
  // The expression of the paths is bound once, not at each use.
  return `'(' || list_transform([${paths}], lambda all_paths: ${both})[1] || ')'`
}
