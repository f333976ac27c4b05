import { execFileSync } from 'node:child_process'
import type { TestContext } from 'vitest'
import type { SourceMapping } from '../../src/catalog/sources.ts'
import { givenBy } from '../../src/sources/user-files/files.ts'
import { readRows } from '../../src/sources/user-files/rows.ts'
import { Engine, type Row } from '../../src/lake/store/engine.ts'
import { need } from './needs.ts'

const head = `import datetime, json, math
from decimal import Decimal as D
import pyarrow as pa, pyarrow.parquet as pq
day = lambda n, **more: datetime.datetime(2024, 3, n, **more)
utc = datetime.timezone.utc
`

/**
 * Writes files into a folder with other libraries than the reader's: lines of Python that know pyarrow, pandas and
 * polars.
 */
export function writeWithPython(context: Pick<TestContext, 'task' | 'skip'>, folder: string, lines: string): void {
  execFileSync(need(context, 'peers'), ['-c', head + lines], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] })
}

/**
 * Reads files as an import in the folder `cwd` does, without a lake: the rows that it would compare with what is stored,
 * by their instants.
 */
export async function readUserRows(paths: readonly string[], mapping: SourceMapping, cwd = '/'): Promise<Row[]> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const given = await givenBy(engine, paths, { cwd, maxBytes: Number.POSITIVE_INFINITY }, mapping)
  await readRows(engine, { given, mapping: { interval: '24h', ...given.mapping }, weekStart: 'monday' })
  return await engine.rows('SELECT * FROM user_rows ORDER BY mark')
}

/** The refusal of files, in one line. */
export async function refusalOf(paths: readonly string[], mapping: SourceMapping): Promise<string> {
  return await readUserRows(paths, mapping).then(
    (rows) => `${rows.length} rows were read`,
    (error: unknown) => String(error instanceof Error ? error.message : error),
  )
}
