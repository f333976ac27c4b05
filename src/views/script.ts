import type { Statements } from './compile.ts'

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
  return `${head.join('\n')}\n\n${objects.map(({ file, sql }) => `-- ${file}\n${sql}\n`).join('\n')}`
}
