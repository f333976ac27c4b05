import { LakeError, usage } from '../errors.ts'
import type { Engine, Prepared } from '../lake/engine.ts'
import { refusal } from './refusal.ts'
import { explained, namesIn, openingWords, type Statement, statementsOf } from './statements.ts'

/** A statement that was read and may run, with the columns that it gives. */
export interface Ready {
  readonly text: string
  readonly kind: string
  readonly columns: Prepared['columns']
}

/** What a script is run with. */
export interface RunDeps {
  readonly folder: string
  /** Whether the program wrote the SQL: places in it tell a person nothing. */
  readonly generated?: boolean
  /** Cancels the statement that runs. */
  readonly signal?: AbortSignal | undefined
  /** Waits; used to repeat a cancel that came before DuckDB had begun. */
  readonly sleep: (ms: number) => Promise<unknown>
}

/** What a session may do: read, and make temporary things of its own. The lake itself is open for reading only. */
const allowed: ReadonlySet<string> = new Set([
  'SELECT',
  'EXPLAIN',
  'SET',
  'VARIABLE_SET',
  'PRAGMA',
  'CREATE',
  'CREATE_FUNC',
  'INSERT',
  'UPDATE',
  'DELETE',
  'MERGE_INTO',
  'DROP',
  'ALTER',
  'TRANSACTION',
  'ANALYZE',
  'RELATION',
])

/** Functions that write files although a SELECT may call them. */
const writers = ['enable_logging', 'disable_logging', 'set_logging_level', 'truncate_duckdb_logs']

/** Runs all statements of a script but the last, which is checked and handed back; a mistake names its line. */
export async function runScript(engine: Engine, sql: string, deps: RunDeps): Promise<Ready> {
  const statements = statementsOf(sql)
  const last = statements.at(-1)
  if (last === undefined) throw usage('SQL', { expected: 'a statement', got: 'nothing' })
  for (const statement of statements.slice(0, -1)) {
    const ready = await checked(engine, statement, sql, deps)
    await guarded(engine, ready.text, deps, async () => engine.run(ready.text), { script: sql, statement })
  }
  return checked(engine, last, sql, deps)
}

/** Does work on an engine that the signal can cancel; DuckDB's complaints come as one line. */
export async function guarded<T>(
  engine: Engine,
  text: string,
  deps: RunDeps,
  work: () => Promise<T>,
  origin?: { readonly script: string; readonly statement: Statement },
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
    const failure = { statement: text, script, offset: origin?.statement.offset ?? 0, folder: deps.folder }
    throw refusal(cause, { ...failure, generated: deps.generated ?? false })
  } finally {
    busy = false
    signal?.removeEventListener('abort', cancel)
  }
}

function cancelled(cause?: unknown): LakeError {
  return new LakeError('stopped', { subject: 'the query was cancelled', cause })
}

async function checked(engine: Engine, statement: Statement, script: string, deps: RunDeps): Promise<Ready> {
  const { text } = statement
  refuseWords(text)
  const prepared = await guarded(engine, text, deps, async () => engine.prepared(text), { script, statement })
  refuseKind(prepared.kind, text)
  const inner = prepared.kind === 'EXPLAIN' ? explained(text) : undefined
  if (inner !== undefined && inner !== '') {
    const { kind } = await guarded(engine, inner, deps, async () => engine.prepared(inner))
    refuseKind(kind, inner)
  }
  return { text, kind: prepared.kind, columns: prepared.columns }
}

function refuseKind(kind: string, text: string): void {
  if (allowed.has(kind)) return
  throw refused(openingWords(text, 1)[0] ?? kind)
}

/** Before DuckDB reads it: some statements already touch files while they are read. */
function refuseWords(text: string): void {
  const [first = ''] = openingWords(text, 1)
  if (
    ['COPY', 'EXPORT', 'IMPORT', 'ATTACH', 'DETACH', 'INSTALL', 'LOAD', 'CALL', 'PREPARE', 'EXECUTE'].includes(first)
  ) {
    throw refused(first)
  }
  const names = namesIn(text)
  const writer = writers.find((name) => names.has(name))
  if (writer !== undefined) throw refused(writer)
}

function refused(what: string): LakeError {
  const next =
    what === 'COPY' || what === 'EXPORT'
      ? 'write a result with `--out FILE`, in a session with `.out FILE`'
      : 'the lake is read-only; CREATE TEMP TABLE is allowed'
  return usage('SQL', { expected: 'a query that only reads', got: what, next })
}
