import { type Engine, quoteName } from '../store/engine.ts'
import { statement } from './sql.ts'

/** The column of history files that merging fills; a commit leaves it NULL, and so may every file. */
export const supersededColumn = 'superseded_at'

/** Whether a table holds the steps of a history. */
export function isHistory(table: string): boolean {
  return table.startsWith('history.')
}

/** The steps of a relation, for FROM, with what is known of their end: what a question about later need not read. */
export function withSuperseded(source: string, columns: readonly { readonly name: string }[]): string {
  const names = columns.map(({ name }) => `steps.${quoteName(name)}`).join(', ')
  return `(${statement('superseded', { columns: names, source })})`
}

/** How many steps of written files claim an end that is not there. */
export async function unproved(session: Engine, source: string): Promise<number> {
  const [row] = await session.rows<{ rows: bigint }>(statement('unproved', { source }))
  return Number(row?.rows)
}
