import { usage } from '../base/errors.ts'
import { type Engine, quote } from '../lake/store/engine.ts'

/** Session variables that choose the state of knowledge, with their options in TypeScript. */
const stateOptions = {
  as_of: 'asOf',
  observed_as_of: 'observedAsOf',
  backfill: 'backfill',
  registry_backfill: 'registryBackfill',
} as const

/** The value of a session variable: its type and its text. */
interface Variable {
  readonly name: keyof typeof stateOptions
  readonly type: string
  /** Null if the variable is not set. */
  readonly text: string | null
}

const stateSql = Object.keys(stateOptions)
  .map(
    (name) =>
      `SELECT '${name}' AS name, typeof(getvariable('${name}')) AS type, CAST(getvariable('${name}') AS VARCHAR) AS text`,
  )
  .join(' UNION ALL ')

/**
 * Does work that runs SQL of a caller, and refuses SQL that moves the session to a different state of knowledge. The
 * session is compared, not the text, because there are many ways to write such a statement. `work` calls `check` between
 * the statements of a script.
 */
export async function keepingState<T>(
  engine: Engine,
  work: (check: (engine: Engine) => Promise<void>) => Promise<T>,
): Promise<T> {
  const opened = await readState(engine)
  const check = async (): Promise<void> => {
    const moved = await restoreState(engine, opened)
    if (moved === undefined) return
    throw usage('SQL', {
      expected: `a query that leaves ${moved} alone`,
      next: `open the lake in that state: openLake(…, { ${stateOptions[moved]}: … })`,
    })
  }
  try {
    const answer = await work(check)
    await check()
    return answer
  } catch (error) {
    await restoreState(engine, opened)
    throw error
  }
}

/** Reads the state of knowledge as the views read it; a macro may hide a variable from them. */
async function readState(engine: Engine): Promise<readonly Variable[]> {
  return await engine.rows<{ [K in keyof Variable]: Variable[K] }>(stateSql)
}

/** Moves a session back to the state in which it was, and returns the first variable that was different. */
async function restoreState(engine: Engine, opened: readonly Variable[]): Promise<Variable['name'] | undefined> {
  const state = await readState(engine).catch(() => [])
  const moved = opened.find(({ type, text }, i) => state[i]?.type !== type || state[i]?.text !== text)
  if (moved === undefined) return undefined
  await engine.run('DROP MACRO IF EXISTS temp.main.getvariable')
  for (const { name, type, text } of opened)
    await engine.run(
      text === null ? `RESET VARIABLE ${name}` : `SET VARIABLE ${name} = CAST(${quote(text)} AS ${type})`,
    )
  return moved.name
}
