import { type Engine, quote } from '../../src/lake/store/engine.ts'

/** How the columns of a Parquet file are compressed. */
export async function codecsOf(engine: Engine, path: string): Promise<unknown> {
  const codecs = 'list_sort(list(DISTINCT compression)) AS codecs'
  const [row] = await engine.rows(`SELECT ${codecs} FROM parquet_metadata(${quote(path)})`)
  return row?.['codecs']
}
