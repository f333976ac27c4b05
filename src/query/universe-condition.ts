import { usage } from '../base/errors.ts'
import type { Engine } from '../lake/store/engine.ts'
import { refuseManyParts } from './gate.ts'
import { optionAt } from './note-texts.ts'
import { isOneExpression, parsedSql } from './parse-tree.ts'
import { type RunDeps, runScript } from './run.ts'
import { statementsOf } from './statements.ts'

/** Refuses a caller's condition on the view `universe` that is not one condition; no part of it runs. */
export async function judgeCondition(
  engine: Engine,
  condition: string,
  deps: RunDeps,
  name = 'universe',
): Promise<void> {
  const select = `SELECT product_id FROM universe WHERE (\n${condition}\n)`
  if (deps.mark !== undefined) refuseManyParts(select)
  if (statementsOf(select).length > 1 || !(await mayBeCondition(engine, select, condition)))
    throw usage(optionAt(deps.door ?? 'terminal', name), { expected: 'one condition', got: condition })
  // As the last statement it is judged and does not run.
  await runScript(engine, select, { ...deps, generated: false, above: 1 })
}

/** Whether a text is one expression, or no SQL at all: that the engine reports with its place. */
async function mayBeCondition(engine: Engine, select: string, condition: string): Promise<boolean> {
  if (await isOneExpression(engine, condition)) return true
  const parsed = await parsedSql(engine, select)
  return 'error' in parsed && parsed.error === 'parser'
}
