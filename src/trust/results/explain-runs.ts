import type { Micros } from '../../base/time.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { instantSql } from '../../query/views/template.ts'
import { closing, openQuery, type SessionOptions, setVariables } from '../../query/lake.ts'
import { bringKept, type PinnedQuery, runStamped, sameRows } from './stamped-rows.ts'
import type { RunDeps } from '../../query/run.ts'

/** A query that is run again and again over one text of the views; `before` makes tables that this reads. */
type RepeatedQuery = Pick<PinnedQuery, 'root' | 'script' | 'query' | 'variables'> & Pick<SessionOptions, 'before'>

/** The rows that one run gave; they are there until it is disposed of. */
export interface KeptRun extends Disposable {
  readonly session: Engine
  readonly rows: number
  /** Digest of the rows in their order. */
  readonly result: string
}

/** Session over one text of the views, through which the lake answers as it stood at any timestamp. */
export interface ViewSession extends Disposable {
  readonly engine: Engine
  /** Runs the query on what the lake had at the instant; variables that the query sets have no further effect. */
  readonly at: (instant: Micros) => Promise<KeptRun>
}

/** Opens a text of the views on one thread, so that sums repeat. */
export async function openViewSession(
  { root, script, query, variables, before }: RepeatedQuery,
  run: Omit<RunDeps, 'folder'>,
): Promise<ViewSession> {
  const engine = await openQuery(root, { script, threads: 1, anyVariable: true, query, ...(before && { before }) })
  const at = async (instant: Micros): Promise<KeptRun> => {
    const session = await engine.session()
    return closing(session, async () => {
      await setVariables(session, { set: variables })
      await holdTo(session, instant)
      const after = async (session: Engine): Promise<void> => await holdTo(session, instant)
      const stamped = await runStamped(session, query, { ...run, folder: root, after })
      return { session, ...stamped, [Symbol.dispose]: () => session.close() }
    })
  }
  return { engine, at, [Symbol.dispose]: () => engine.close() }
}

/** Limits a session to what the lake had at the instant, even if it was set to more. */
async function holdTo(session: Engine, instant: Micros): Promise<void> {
  await session.run(
    `SET VARIABLE observed_as_of = least(${instantSql('observed_as_of')}, make_timestamptz(${instant}::BIGINT))`,
  )
}

/** Whether two runs returned the same rows; those that an ORDER BY leaves equal may be in a different order. */
export async function isSameRun(a: KeptRun, b: KeptRun): Promise<boolean> {
  if (a.result === b.result) return true
  if (a.rows !== b.rows) return false
  await bringKept(a.session, b.session)
  return await sameRows(b.session)
}
