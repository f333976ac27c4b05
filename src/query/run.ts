import { LakeError, usage } from '../base/errors.ts'
import type { Engine } from '../lake/store/engine.ts'
import type { Parameters } from '../lake/store/sql.ts'
import { admit, type Ready } from './gate.ts'
import { type Door, optionAt } from './note-texts.ts'
import { metricsOf } from './points.ts'
import { redactPaths, refusal, unknownMetricIn } from './refusal.ts'
import { type ScriptStatement, statementsOf } from './statements.ts'

/** Environment in which a script runs. */
export interface RunDeps {
  readonly folder: string
  /** Whether the program wrote the SQL: places in it tell a person nothing. */
  readonly generated?: boolean
  /** Mark of the session's views and macros if nothing else may be read; a script is then one statement. */
  readonly mark?: string | undefined
  /** Interface of the caller, in whose spelling a refusal names options; the command line by default. */
  readonly door?: Door
  /** Number of lines of the program above those of the user. */
  readonly above?: number
  /** Whether the notes of the answer are not read: then nothing is queried for them. */
  readonly withoutNotes?: boolean
  /** Cancels the statement that runs. */
  readonly signal?: AbortSignal | undefined
  /** Waits; used to repeat a cancel that came before DuckDB had begun. */
  readonly sleep: (ms: number) => Promise<unknown>
  /** Called after each statement of a script but the last, which may have set variables. */
  readonly after?: (engine: Engine) => Promise<unknown>
}

/** Runs all statements of a script but the last, which is checked and handed back; a mistake names its line. */
export async function runScript(engine: Engine, sql: string, deps: RunDeps, parameters?: Parameters): Promise<Ready> {
  const statements = statementsOf(sql)
  const last = statements.at(-1)
  if (last === undefined) throw usage('SQL', { expected: 'a statement', got: 'nothing' })
  if (deps.mark !== undefined && statements.length > 1)
    throw usage('SQL', { expected: 'one SELECT', got: 'several statements' })
  const checked = async (statement: ScriptStatement, parameters?: Parameters): Promise<Ready> => {
    const { text } = statement
    const origin = { script: sql, statement }
    return await runCancellable(engine, text, deps, async () => admit(engine, text, parameters, deps.mark), origin)
  }
  for (const statement of statements.slice(0, -1)) {
    const ready = await checked(statement)
    await runCancellable(engine, ready.text, deps, async () => engine.run(ready.text), { script: sql, statement })
    await deps.after?.(engine)
  }
  return await checked(last, parameters)
}

/** Runs work on an engine that the signal can cancel; DuckDB's complaints become one line. */
export async function runCancellable<T>(
  engine: Engine,
  text: string,
  deps: RunDeps,
  work: () => Promise<T>,
  origin?: { readonly script: string; readonly statement: ScriptStatement },
): Promise<T> {
  const { signal } = deps
  let busy = true
  const cancel = (): void => {
    if (!busy) return
    engine.interrupt()
    void deps.sleep(50).then(cancel)
  }
  try {
    if (signal?.aborted) throw cancelled()
    signal?.addEventListener('abort', cancel, { once: true })
    return await work()
  } catch (cause) {
    if (signal?.aborted) throw cancelled(cause)
    const script = origin?.script ?? text
    const memory = optionAt(deps.door ?? 'terminal', 'memory')
    const failure = { statement: text, script, offset: origin?.statement.offset ?? 0, folder: deps.folder, memory }
    const metrics = unknownMetricIn(cause) === undefined ? [] : await metricsOf(engine)
    const refused = refusal(cause, { ...failure, generated: deps.generated ?? false, above: deps.above ?? 0, metrics })
    throw deps.mark === undefined ? refused : redactPaths(refused, [deps.mark, deps.folder, engine.spill ?? ''])
  } finally {
    busy = false
    signal?.removeEventListener('abort', cancel)
  }
}

function cancelled(cause?: unknown): LakeError {
  return new LakeError('stopped', { subject: 'the query was cancelled', cause })
}

/** Whether an error is a cancel, which is no answer of a run. */
export function isCancel(error: unknown): boolean {
  if (error instanceof LakeError) return error.kind === 'stopped'
  return error instanceof Error && error.message.startsWith('INTERRUPT')
}
