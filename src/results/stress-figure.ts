import { usage } from '../errors.ts'
import type { Engine } from '../store/engine.ts'
import { carry } from '../query/carry.ts'
import { admit } from '../query/gate.ts'
import { guarded, type RunDeps, runScript } from '../query/run.ts'
import { rowsBeside } from '../query/beside.ts'
import { parsed } from '../query/tree.ts'

/** The table that a figure reads, and the one with the rows of another run. */
const own = 'result'
const other = 'result_before'

/** Keeps the rows of a script's last statement for figures; gives their number. */
export async function keepRows(session: Engine, script: string, run: RunDeps): Promise<number> {
  const ready = await runScript(session, script, run)
  if (ready.kind !== 'SELECT') throw usage('SQL', { expected: 'a query, which gives rows', got: ready.kind })
  await guarded(session, ready.text, run, async () =>
    session.run(`CREATE OR REPLACE TEMP TABLE ${own} AS ${ready.text}`),
  )
  const [row] = await session.rows<{ n: bigint }>(`SELECT count(*) AS n FROM ${own}`)
  return Number(row?.n)
}

/** The figure over the kept rows: a SELECT of one number, or an expression over them. Null where it is no finite number. */
export async function figureOf(session: Engine, figure: string, run: RunDeps): Promise<number | null> {
  const tree = await parsed(session, figure)
  const sql = 'error' in tree && tree.error === 'parser' ? `SELECT ${figure}\nFROM ${own}` : figure
  const { text, kind, columns } = await guarded(session, sql, run, async () => admit(session, sql))
  const [column] = columns
  if (kind !== 'SELECT' || column === undefined || columns.length > 1)
    throw usage('--figure', { expected: 'SQL of one number', got: `${kind} of ${columns.length} columns` })
  const rows = await guarded(session, sql, run, async () =>
    session.rows<{ figure: number | null }>(
      `SELECT CAST(figure AS DOUBLE) AS figure FROM (${text}\n) AS told (figure) LIMIT 2`,
    ),
  )
  if (rows.length !== 1)
    throw usage('--figure', { expected: 'SQL of one number', got: rows.length === 0 ? 'no row' : 'several rows' })
  const value = rows[0]?.figure ?? null
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** How many rows of either run the other does not have, whichever are more. */
export async function rowsApart(before: Engine, session: Engine): Promise<number> {
  await carry(before, `FROM ${own}`, session, other)
  const beside = await rowsBeside(session, own, other)
  return beside === undefined ? Infinity : Math.max(...beside)
}
