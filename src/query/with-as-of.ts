import type { Engine } from '../store/engine.ts'
import { setMoment } from './lake.ts'
import type { Moment } from './options.ts'

/** Does work on a session as if `as_of` were another instant, or none, and sets it again; `subject` is what named it. */
export async function withAsOf<T>(
  engine: Engine,
  at: Moment | undefined,
  work: () => Promise<T>,
  subject?: string,
): Promise<T> {
  const [held] = await engine.rows<{ was: string | null; type: string }>(
    `SELECT getvariable('as_of')::VARCHAR AS was, typeof(getvariable('as_of')) AS type`,
  )
  const was = held?.was ?? null
  try {
    await setMoment(engine, 'as_of', at, subject)
    return await work()
  } finally {
    if (was === null) await setMoment(engine, 'as_of', undefined)
    else await engine.run(`SET VARIABLE as_of = $1::${held?.type ?? 'VARCHAR'}`, [was])
  }
}
