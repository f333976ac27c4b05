import type { Compiled, Statements } from './compile.ts'

/** The text of `lake.sql`: the same objects as `lake.duckdb`, for any DuckDB session. */
export function scriptText({ root, version, objects }: Statements): string {
  const head = [
    `-- The lake in ${root.replaceAll(/[\r\n]/g, ' ')} as of version ${version}: views and macros only, made by \`pitlake views\`.`,
    '-- Use it with the official duckdb command line: duckdb -init lake.sql',
    "-- SET VARIABLE as_of = '2024-06-01' moves every view back to what was knowable then, observed_as_of to what this",
    "-- lake held then; SET VARIABLE backfill = 'rule' lets the rule stand in for backfilled points.",
    '-- The files are named by their full path. "No files found that match the pattern": the lake was moved or copied, or',
    '-- vacuumed since. Run `pitlake views` and read the new lake.sql.',
    "SET TimeZone = 'UTC';",
    'SET parquet_metadata_cache = true;',
  ]
  return `${head.join('\n')}\n\n${objects.map(section).join('\n')}`
}

function section({ file, sql }: Compiled): string {
  return `-- ${file}\n${sql}\n`
}

const header = /^(?=-- \d\d_\w+\.sql$)/m
const created = /^-- \S+\nCREATE (?:OR REPLACE )?\w+(?: IF NOT EXISTS)? [\w."]+/

/**
 * The objects that an earlier script tells otherwise. Undefined where it makes other objects, by kind or by name: then
 * replacing those that changed would not give what the new script gives.
 */
export function changedObjects(objects: readonly Compiled[], earlier: string): readonly Compiled[] | undefined {
  const [, ...stood] = earlier.split(header).map((text) => text.trimEnd())
  const isNew = (text: string, i: number): boolean => created.exec(text)?.[0] !== created.exec(stood[i] ?? '')?.[0]
  const texts = objects.map((object) => section(object).trimEnd())
  if (texts.length !== stood.length || texts.some(isNew)) return undefined
  return objects.filter((_, i) => texts[i] !== stood[i])
}
