/**
 * The text of views for askers that are not trusted: each scan of a file gets the mark, a plain word that nobody guesses,
 * as the name of its file column, and each cut by `as_of` holds it as a text, so that a bound plan tells the scans of the
 * views from any other. What names the folder is left out.
 */
export function markedViews(script: string, mark: string): string {
  return script
    .replaceAll('rows_read.filename', `rows_read.${mark}`)
    .replaceAll(/(?<![\w/.-])path_of_file(?![\w/.-])/g, mark)
    .replaceAll(scan, (_, options: string) => `${options}, filename = $$${mark}$$`)
    .replaceAll(
      /getvariable\(('+)as_of\1\) IS NULL/g,
      (unset, q: string) => `(${unset} AND ${q}${mark}${q} <> ${q}${q})`,
    )
    .replaceAll(/'(?:[^']|'')*' AS folder/g, 'CAST(NULL AS VARCHAR) AS folder')
    .replaceAll(/\(SELECT count\(\*\) FROM glob\('(?:[^']|'')*'\)\) = 0/g, 'false')
}

/** The end of the options of a scan; the mark stands between dollars, which mean the same in a text of a text. */
const scan = /(hive_partitioning = \w+(?:, hive_types = \{[^}]*\})?)(?:, filename = '*\w+'*)?/g
