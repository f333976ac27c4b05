import { usage } from '../errors.ts'
import { doubtsOfPanel, doubtsOfQuery, isDoubtful } from '../query/doubts.ts'
import type { Empty } from '../query/filled.ts'
import type { Ready } from '../query/gate.ts'
import { notesOn } from '../query/notes.ts'
import { bringDecisions, type Panel, panelSql, specOf } from '../query/panel.ts'
import { guarded, runScript, type RunDeps } from '../query/run.ts'
import { openingWords } from '../query/statements.ts'
import { parsed } from '../query/tree.ts'
import type { Knowledge, Seat } from './desk.ts'

/** What somebody asks: one SELECT, or a panel. */
export type Question = { readonly knowledge: Knowledge } & (
  | { readonly sql: string /** Written by the program. */; readonly generated?: boolean }
  | { readonly panel: Panel }
)

/** A question that was checked and may run. */
export interface Prepared {
  /** The SQL that runs: in any session on the lake it gives the same. */
  readonly sql: string
  readonly ready: Ready
  /** The column with the asset of each row. */
  readonly by: string | undefined
  readonly notes: readonly string[]
  /** What may be wrong with an answer that tells so little; it looks past `as_of`, so nothing is told where that is set. */
  readonly doubts: (told: { readonly rows: number; readonly empty: readonly Empty[] }) => Promise<readonly string[]>
}

/** Checks a question and makes what it needs in the session; `run` says how far its words may reach. */
export async function prepare(question: Question, { engine }: Seat, run: RunDeps): Promise<Prepared> {
  const whole = question.knowledge.asOf === undefined
  if ('panel' in question) {
    const spec = specOf(question.panel)
    const { decisions, query } = panelSql(spec)
    await bringDecisions(engine, spec, run)
    const ready = await runScript(engine, query, { ...run, generated: true })
    const doubts: Prepared['doubts'] = async (told) =>
      whole ? await guarded(engine, query, run, async () => doubtsOfPanel(engine, spec, told)) : []
    return { sql: `${decisions};\n${query}`, ready, by: 'asset', notes: [], doubts }
  }
  const { sql, generated = false } = question
  const tree = await parsed(engine, sql)
  if ('error' in tree && tree.error !== 'parser')
    throw usage('SQL', { expected: 'one SELECT', got: openingWords(sql, 1)[0] ?? 'nothing' })
  const ready = await runScript(engine, sql, { ...run, generated })
  const doubts: Prepared['doubts'] = async ({ rows, empty }) =>
    whole && isDoubtful(rows, empty) ? await guarded(engine, sql, run, async () => doubtsOfQuery(engine, sql)) : []
  const notes = await guarded(engine, sql, run, async () => notesOn(engine, sql))
  return { sql: ready.text, ready, by: undefined, notes, doubts }
}
