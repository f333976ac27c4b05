import { resolve } from 'node:path'
import type { Catalogue } from '../catalog/catalogue.ts'
import { Engine } from '../store/engine.ts'
import { compile } from './compile.ts'

/** A column of a view, as the engine tells it. */
export interface DescribedColumn {
  readonly name: string
  readonly type: string
  readonly about: string
}

/** A view of the lake with what its own file says of it. */
export interface DescribedView {
  readonly schema: string
  readonly name: string
  readonly about: string
  readonly columns: readonly DescribedColumn[]
}

/** Every view that a lake of this catalogue has, in the order in which they are made; no lake is needed for it. */
export async function describeViews(catalogue: Catalogue): Promise<readonly DescribedView[]> {
  const head = { lake: null, version: 0, schema: 0, digest: null, committed_at: 0, provider: null }
  const nothing = {
    root: resolve('/'),
    head,
    catalogue,
    files: [],
    earlier: [],
    exports: null,
    weekStart: 'monday',
  } as const
  using engine = await Engine.open(':memory:', { threads: 1 })
  const { objects } = compile(nothing)
  for (const { sql } of objects) await engine.run(sql)
  const rows = await engine.rows<{ view: string; about: string; name: string; type: string; told: string }>(
    `SELECT CASE views.schema_name WHEN 'main' THEN '' ELSE views.schema_name || '.' END || view_name AS view,
       coalesce(views.comment, '') AS about, column_name AS name, data_type AS type, coalesce(columns.comment, '') AS told
     FROM duckdb_views() AS views
     JOIN duckdb_columns() AS columns ON columns.schema_name = views.schema_name AND columns.table_name = view_name
     WHERE NOT views.internal ORDER BY column_index`,
  )
  const columns = Map.groupBy(rows, ({ view }) => view)
  return objects.flatMap(({ name: view, kind }) => {
    if (kind !== 'view') return []
    const own = columns.get(view) ?? []
    const [name = '', schema = 'main'] = view.split('.').toReversed()
    const told = own.map((column) => ({ name: column.name, type: column.type, about: column.told }))
    return [{ schema, name, about: own[0]?.about ?? '', columns: told }]
  })
}
