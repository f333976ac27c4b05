import type { Engine } from '../store/engine.ts'

/** Does work on a session as if no `as_of` were set, and sets it again. */
export async function withoutAsOf<T>(engine: Engine, work: () => Promise<T>): Promise<T> {
  const [held] = await engine.rows<{ was: string | null; type: string }>(
    `SELECT getvariable('as_of')::VARCHAR AS was, typeof(getvariable('as_of')) AS type`,
  )
  const was = held?.was
  try {
    await engine.run('SET VARIABLE as_of = NULL')
    return await work()
  } finally {
    if (typeof was === 'string') await engine.run(`SET VARIABLE as_of = $1::${held?.type ?? 'VARCHAR'}`, [was])
  }
}
