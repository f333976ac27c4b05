import { type LakeError, usage } from '../base/errors.ts'
import type { Engine, Prepared } from '../lake/store/engine.ts'
import { liesIn } from '../lake/store/disk.ts'
import type { Parameters } from '../lake/store/sql.ts'
import { countWords, formOf, opening, openingWords, writesInside } from './statements.ts'
import { computingSteps, readingFunctions, refusedFunctions, refusedScalars, reportedSettings } from './gate-lists.ts'
import { joinOptions } from './options.ts'
import { settingsFixed, temporaryOnly } from './refusal.ts'
import { judgeScans, preparedBy } from './gate-plan.ts'
import {
  callsIn,
  comparedOptions,
  computedIn,
  constantText,
  fileRead,
  filesNamed,
  nodesOf,
  parsedSql,
} from './parse-tree.ts'

/** Statement that was read and may run, with its result columns. */
export interface Ready extends Prepared {
  readonly text: string
}

/**
 * Admits a statement that only reads the lake, or makes temporary things of the session; everything else is refused.
 * First the engine's parser shows which functions the words call, and nothing is bound until these are known to read;
 * then its plan shows what views and macros made of them. A part that neither shows is refused. With a mark the
 * statement reads the views and macros that bear it (`markedViews`) and nothing past them.
 */
export async function admit(engine: Engine, statement: string, parameters?: Parameters, mark?: string): Promise<Ready> {
  if (statement.includes('\0')) throw refusalOf('a NUL sign')
  if (mark !== undefined) refuseManyParts(statement)
  const text = statement.slice(opening(statement) ?? 0)
  const explains = explainHead.exec(text)
  // A plan that is shown reveals files and marks.
  if (explains && mark !== undefined) throw refusalOf('EXPLAIN', pastViews)
  if (writesInside(text)) throw refusalOf('a statement that writes, in a WITH')
  if (explains) return explanation(engine, statement, text.slice(explains[0].length), parameters)
  const form = formOf(text)
  const macro = /^CREATE\b.*?\b(?:MACRO|FUNCTION)\b/i.test(openingWords(text, 5).join(' '))
  for (const probe of form.probes) await judgeWords(engine, statement, probe, macro, mark)
  let prepared: Prepared | undefined
  if (mark !== undefined)
    for (const probe of form.probes) {
      const plan = await judgeScans(engine, probe, mark, (what) => refusalOf(what, pastViews))
      if (form.kind === 'SELECT') prepared = await preparedBy(engine, plan)
    }
  const { kind, columns } = prepared ?? (await engine.prepared(statement))
  if (form.kind !== kind) throw refusalOf(openingWords(text, 1)[0] ?? kind)
  if (mark === undefined && form.planned) await judgePlan(engine, statement, parameters)
  return { text: statement, kind, columns }
}

/** Words that combine the operands on both sides of them, and how often they may be written. */
interface BoundedWords {
  readonly words: ReadonlySet<string>
  /** Maximum parts that an untrusted client may combine with them. */
  readonly most: number
  /** The parts, as a refusal calls them. */
  readonly parts: string
  /** Alternative to suggest. */
  readonly next: string
}

/** The engine's parser and binder take time that grows with the square of these parts, and hear no cancel meanwhile. */
const boundedWords: readonly BoundedWords[] = [
  {
    words: new Set(['UNION', 'INTERSECT', 'EXCEPT']),
    most: 1000,
    parts: 'SELECTs combined by UNION',
    next: 'write rows as VALUES, or use several queries',
  },
  {
    words: new Set(['AND', 'OR']),
    most: 10_000,
    parts: 'terms joined by AND and OR',
    next: 'compare with a list, such as x IN (…), or join VALUES',
  },
]

/** Refuses a text that takes the engine's parser too long; called before any of it is parsed. */
export function refuseManyParts(statement: string): void {
  for (const { words, most, parts, next } of boundedWords) {
    const count = 1 + countWords(statement, words)
    if (count > most) throw usage('SQL', { expected: `at most ${most} ${parts}`, got: String(count), next })
  }
}

const explainHead =
  /^EXPLAIN(?:[ \t\r\n]+ANALY[SZ]E(?![\w$])|[ \t\r\n]*\([ \t\r\n]*(?:ANALYZE|FORMAT[ \t\r\n]+\w+)(?:[ \t\r\n]*,[ \t\r\n]*(?:ANALYZE|FORMAT[ \t\r\n]+\w+))*[ \t\r\n]*\))?(?=[\s("]|--|\/\*|$)/i

/** Admits an EXPLAIN. It runs its statement if it says ANALYZE, so that statement must pass by itself. */
async function explanation(engine: Engine, whole: string, inner: string, parameters: Parameters | undefined) {
  if (opening(inner) !== undefined) await admit(engine, inner, parameters)
  const { kind, columns } = await engine.prepared(whole)
  if (kind !== 'EXPLAIN') throw refusalOf('EXPLAIN')
  return { text: whole, kind, columns }
}

/** Judges the statement's words as the engine's parser takes them: one SELECT, and functions that read. */
async function judgeWords(engine: Engine, statement: string, probe: string, macro: boolean, mark?: string) {
  const tree = await parsedSql(engine, probe)
  if ('error' in tree) {
    const whole = probe === statement ? tree : await parsedSql(engine, statement)
    // No SQL at all: the engine reports it in its own words, with the place.
    if ('error' in whole && whole.error === 'parser') await engine.parse(statement)
    throw refusalOf(openingWords(statement, 1)[0] ?? tree.error)
  }
  if (tree.statements.length !== 1) throw refusalOf('several statements in one')
  for (const call of callsIn(tree.statements)) {
    if (call.name === 'current_setting') {
      const setting = constantText(call.arguments[0]) ?? 'a value'
      if (!reportedSettings.has(setting.toLowerCase())) throw refusalOf(`current_setting of ${setting}`)
    }
    // With `=` an option is a comparison, which takes the place of the next option; a later error would not show that.
    const [name] = timeMacros.has(call.name) ? comparedOptions(call, macroOptions) : []
    if (name !== undefined) {
      const next = 'an option is named with :='
      throw usage(`SQL: ${call.name}`, { expected: `${name} := …`, got: `${name} = …`, next })
    }
    if (refusedScalars.has(call.name) || refusedFunctions.has(call.name)) throw refusalOf(call.name)
  }
  const past = mark === undefined ? undefined : await fileRead(engine, tree.statements)
  if (past !== undefined) throw refusalOf(past, pastViews)
  const computedCalls = mark === undefined ? undefined : computedIn(tree.statements)
  if (computedCalls !== undefined) throw refusalOf(`a computed argument of ${computedCalls}`, 'write it as it is')
  const { names, computed } = filesNamed(tree.statements, macro)
  if (computed?.startsWith('pit_') === true)
    throw usage(`SQL: ${computed}`, {
      expected: 'decisions as the name of a table, view or CTE',
      got: 'a subquery or a computed value',
      next: `write WITH d AS (SELECT …) SELECT … FROM ${computed}('d', …)`,
    })
  if (computed !== undefined) throw refusalOf('a computed name of a file')
  const { spill } = engine
  if (spill !== undefined && names.some((name) => name.includes('/') && liesIn(spill, name)))
    throw refusalOf('a path of the session itself')
}

/** The macros with options, and those that they have. */
const timeMacros: ReadonlySet<string> = new Set(['pit_join', 'pit_long', 'pit_window', 'resample', 'bars', 'calendar'])
const macroOptions: ReadonlySet<string> = new Set([
  ...Object.keys(joinOptions),
  'agg',
  'min_parts',
  'since',
  'step',
  'until',
])

/** Judges the plan, in which views and macros are resolved: steps that compute, and functions that read. */
async function judgePlan(engine: Engine, statement: string, parameters?: Parameters): Promise<void> {
  const rows = await engine.rows<{ explain_value: string }>(`EXPLAIN (FORMAT json) ${statement}`, parameters)
  const texts = rows.map((row) => row.explain_value)
  if (texts.length === 0) throw refusalOf('a statement without a plan')
  for (const step of texts.flatMap((text) => [...nodesOf(JSON.parse(text))])) {
    const { name, extra_info: facts } = step
    if (typeof name !== 'string' || facts === undefined) continue
    const called = (facts as { readonly [fact: string]: unknown } | null)?.['Function']
    const isKnown = typeof called === 'string' ? readingFunctions.has(plain(called)) : computingSteps.has(plain(name))
    if (!isKnown && !readingFunctions.has(plain(name))) throw refusalOf(plain(name))
  }
}

function plain(name: string): string {
  return name.trim().toLowerCase().replaceAll(' ', '_')
}

/** Builds the refusal of a statement, of one of its functions, or of a step of its plan. */
export function refusalOf(what: string, next = remedies[what] ?? temporaryOnly): LakeError {
  if (['SET', 'RESET', 'PRAGMA', 'USE'].includes(what)) {
    return usage('SQL', { expected: 'SET VARIABLE only', got: what, next: settingsFixed })
  }
  return usage('SQL', { expected: 'a query that only reads', got: what, next })
}

const pastViews = 'only the views and macros of the lake are read here: they obey as_of, files do not'
const written = 'write a result with `--out FILE`, in a session with `.out FILE`'
const remedies: Readonly<Record<string, string>> = {
  COPY: written,
  EXPORT: written,
  PIVOT: "name the values: PIVOT … ON asset IN ('BTC', 'ETH') USING …",
  stats: 'use min and max: they describe the rows that exist',
  ALTER: 'replace the temporary table with CREATE OR REPLACE TEMP TABLE',
  'a computed name of a file': 'write the path of the file, or those of a list, as they are',
  'several statements in one': 'end each statement with `;`',
}
