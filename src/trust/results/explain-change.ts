import { requireFileError } from '../../lake/store/file-errors.ts'
import { resolve } from 'node:path'
import { LakeError } from '../../base/errors.ts'
import { canonical } from '../../lake/ledger/entry.ts'
import { storedRules, storedVersions, type StoredVersion } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { ownScript } from '../../query/altered-lake.ts'
import { carryFile } from '../../query/row-comparison.ts'
import { refuseOthers } from '../../query/changed-files.ts'
import { makersOf, type RowCauses, type VersionPair } from './explain-points.ts'
import { isSameRun, openViewSession, type KeptRun, type ViewSession } from './explain-runs.ts'
import { changedText, type ViewsChange } from './explain-text.ts'
import { strangeViews } from '../../query/lake.ts'
import type { RunDeps } from '../../query/run.ts'
import { changesSince, loadProvedStamp, refuseOutcome } from './stamp.ts'
import {
  bringKept,
  type ChangedRow,
  engineVersion,
  firstRow,
  keptRows,
  sameRows,
  type StampNote,
} from './stamped-rows.ts'
import { fileReadIn } from '../../query/parse-tree.ts'

/** Two results of one query whose difference is to be explained. */
export interface ExplainInput {
  readonly root: string
  /** Path of a stamped result. */
  readonly from: string
  /** Path of a second stamped result; null: the query of the first on the current lake. */
  readonly to: string | null
  /** Maximum runs to find the causes of the first row (300). */
  readonly tries?: number
  /** Name and version of this program, if it is to be compared with that of the stamps. */
  readonly program?: string
  readonly onRun?: (progress: { readonly runs: number; readonly about: string }) => void
}

/** One of the two results. */
interface Side {
  /** Path as given; null: the current lake. */
  readonly file: string | null
  readonly version: number
}

/** Commit after which the result was different. */
interface GuiltyCommit
  extends Pick<StoredVersion, 'version' | 'committed_at' | 'job' | 'run' | 'program' | 'points_added'> {
  /** Metrics whose availability rules changed with it. */
  readonly rules: readonly string[]
  /** Whether later commits changed the result further. */
  readonly further: boolean
}

/** Document of `explainChange`: why two results differ. */
export interface Explained extends RowCauses {
  /**
   * Verdict; `other query`: two different queries are not compared; `unexplained`: the results differ, and nothing in
   * the lake shows why.
   */
  readonly verdict: 'same' | 'explained' | 'unexplained' | 'other query'
  readonly reason: string | null
  readonly from: Side
  readonly to: Side
  /** Commits between the two. */
  readonly versions: number
  /** Number of runs of the query to find the commit and the text. */
  readonly runs: number
  /** Differences of the views and macros, if they alone change the result; null otherwise. */
  readonly text: ViewsChange | null
  /** The commit that changed the result; null if there is none. */
  readonly commit: GuiltyCommit | null
  /** The first row in which the commit changed the result; null if no commit did. */
  readonly row: ChangedRow | null
  readonly notes: readonly string[]
}

/** A result, and the text of the views by which it can be made again. */
interface Result extends Side {
  readonly note: StampNote
  readonly script: string
}

/**
 * Finds out why two results of one query differ. The later one's views answer for every version in between, so a
 * bisection finds a commit before which the query gives the earlier rows and after which it does not; what that commit
 * changed is then narrowed down to what makes the first row.
 */
export async function explainChange(input: ExplainInput, run: Omit<RunDeps, 'folder'>): Promise<Explained> {
  using ledger = await Ledger.openToRead(input.root)
  const digests = await Promise.all([
    loadStamped(ledger, input.from),
    input.to === null ? null : loadStamped(ledger, input.to),
  ])
  const first = digests[0]
  const second = digests[1] ?? (await runToday(ledger, digests[0]))
  const [from, to] = first.version <= second.version ? [first, second] : [second, first]
  const story = storyOf(from, to)
  const other = differentQueryReason(from.note, to.note)
  if (other !== null) return { ...story, verdict: 'other query', reason: other }
  if (digests[1] !== null && from.note.result === to.note.result) return { ...story, verdict: 'same' }
  await refuseOthers(ledger, undefined, to.version)
  const { query, variables } = from.note
  using later = await openViewSession({ root: input.root, script: to.script, query, variables }, run)
  const search: Search = { ledger, input, run, from, to, later, runs: 0, notes: await notesOf(later, digests, input) }
  const found = await searchVersions(search)
  return { ...story, ...found, runs: search.runs, notes: search.notes }
}

/** State that the parts of one search share. */
interface Search {
  readonly ledger: Ledger
  readonly input: ExplainInput
  readonly run: Omit<RunDeps, 'folder'>
  readonly from: Result
  readonly to: Result
  readonly later: ViewSession
  readonly notes: string[]
  runs: number
}

const nothing: RowCauses = { points: [], records: [], minimal: true }

function storyOf(from: Result, to: Result): Explained {
  const side = ({ file, version }: Side): Side => ({ file, version })
  const none = { reason: null, runs: 0, text: null, commit: null, row: null, notes: [] }
  return { verdict: 'same', from: side(from), to: side(to), versions: to.version - from.version, ...none, ...nothing }
}

async function loadStamped(ledger: Ledger, file: string): Promise<Result> {
  const { note, source } = await loadProvedStamp(ledger, resolve(file))
  refuseOutcome(note, file)
  return { file, version: note.version, note, script: source.script }
}

/** Returns the query of a result over the current views. */
async function runToday(ledger: Ledger, { note }: Result): Promise<Result> {
  const script = await ownScript(ledger.root)
  const [, version] = /^-- The lake in .* as of version (\d+):/.exec(script) ?? []
  if (version !== undefined) return { file: null, version: Number(version), note, script }
  throw strangeViews(ledger.root, 'views of this program', 'others')
}

/** Explains why two results are not those of one query; null if they are. */
function differentQueryReason(a: StampNote, b: StampNote): string | null {
  const plain = (text: string): string => text.trim().replace(/;$/, '').trimEnd()
  const lines = [plain(a.query).split('\n'), plain(b.query).split('\n')] as const
  const at = lines[0].findIndex((line, n) => line !== lines[1][n])
  const place = at === -1 && lines[0].length !== lines[1].length ? lines[0].length : at
  if (place !== -1)
    return `the queries differ in line ${place + 1}: ${lineText(lines[0][place])}, ${lineText(lines[1][place])}`
  const names = [...new Set([...Object.keys(a.variables), ...Object.keys(b.variables)])]
  const name = names.find((variable) => canonical(a.variables[variable]) !== canonical(b.variables[variable]))
  if (name === undefined) return null
  const valueText = (value: unknown): string => (value === undefined ? 'not set' : JSON.stringify(value))
  return `the variable ${name} differs: ${valueText(a.variables[name])}, ${valueText(b.variables[name])}`
}

function lineText(line: string | undefined): string {
  return line === undefined ? 'nothing' : JSON.stringify(line.trim())
}

/** Notes of everything else that changed since the results were stamped. */
async function notesOf(
  later: ViewSession,
  results: readonly (Result | null)[],
  input: ExplainInput,
): Promise<string[]> {
  const engine = await engineVersion(later.engine)
  const file = await fileReadIn(later.engine, results[0]?.note.query ?? '')
  const past =
    file === undefined ? [] : [`the query reads files directly (${file}), which are the same at every version`]
  const others = results.flatMap((result) =>
    result ? changesSince(result.note, engine, input.program ?? result.note.program) : [],
  )
  return [...new Set([...past, ...others])]
}

/** The parts of `Explained` that a search finds. */
type SearchResult = Pick<Explained, 'verdict' | 'reason' | 'text' | 'commit' | 'row' | keyof RowCauses>

async function searchVersions(search: Search): Promise<SearchResult> {
  const { ledger, from, to } = search
  const versions = storedVersions(ledger).filter(({ version }) => version >= from.version && version <= to.version)
  const oldest = versions.at(0)
  const newest = versions.at(-1)
  if (oldest === undefined || newest === undefined) throw new RangeError('a result of a version that is not held')
  using start = await runVersion(search, oldest)
  const { text, lost } = await differingText(search, start)
  const cause = { text, commit: null, row: null, ...nothing }
  using end = oldest === newest ? null : await runVersion(search, newest)
  if (end === null || (await isSameRun(start, end))) {
    if (lost !== null) return { ...cause, verdict: 'unexplained', reason: lost }
    return { ...cause, verdict: text === null ? 'same' : 'explained', reason: null }
  }
  const { before, after, place } = await bisectVersions(search, versions, start, end)
  const earlier = versions[place - 1]
  const guilty = versions[place]
  if (earlier === undefined || guilty === undefined) throw new RangeError('a bisection between no two versions')
  await bringKept(before.session, after.session)
  const row = await firstRow(after.session)
  const causes =
    row && (await findRowCauses(search, { earlier: earlier.committed_at, guilty: guilty.committed_at, after, row }))
  if (causes === undefined)
    search.notes.push('no point and no record by itself makes that row: it tells something else of the commit')
  const further = after !== end && !(await isSameRun(after, end))
  const reported = row === undefined ? null : { row: row.row, column: row.column, from: row.from, to: row.to }
  const commit = commitOf(ledger, earlier, guilty, further)
  return { ...cause, ...causes, verdict: 'explained', reason: lost, commit, row: reported }
}

/** Finds points and records of the commit that make the first row. */
async function findRowCauses(
  { ledger, input, run, to }: Search,
  versions: Pick<VersionPair, 'earlier' | 'guilty' | 'after' | 'row'>,
): Promise<RowCauses | undefined> {
  let tries = 0
  const onTry = (): void => {
    tries++
    input.onRun?.({ runs: tries, about: 'points and records of the commit' })
  }
  const { root, tries: most = 300 } = input
  const { script, version, note } = to
  const { query, variables } = note
  return await makersOf(
    { ...versions, ledger, root, script, version, note: { query, variables }, tries: most, onTry },
    run,
  )
}

async function runVersion(search: Search, { version, committed_at }: StoredVersion): Promise<KeptRun> {
  const outcome = await search.later.at(committed_at)
  countTry(search, `version ${version}`)
  return outcome
}

function countTry(search: Search, about: string): void {
  search.runs++
  search.input.onRun?.({ runs: search.runs, about })
}

/** Comparison of the earlier result with the later views. */
interface TextFinding {
  /** Differences of the views that change the result; null if there are none. */
  readonly text: ViewsChange | null
  /** Reason why the earlier result cannot be made again; null if it can. */
  readonly lost: string | null
}

/**
 * Examines whether the earlier result is what the later views return for its version. If not, its own views are run:
 * which part of their text makes the difference, or that the result does not repeat at all.
 */
async function differingText(search: Search, start: KeptRun): Promise<TextFinding> {
  const { from, to, input, run, ledger } = search
  if (start.result === from.note.result) return { text: null, lost: null }
  const { query, variables } = from.note
  const at = storedVersions(ledger).find(({ version }) => version === from.version)?.committed_at ?? 0
  try {
    using session = await openViewSession({ root: input.root, script: from.script, query, variables }, run)
    using again = await session.at(at)
    countTry(search, `version ${from.version} by its own views`)
    const differs = again.result !== from.note.result
    if (differs && from.file !== null) await carryFile(resolve(from.file), again.session, keptRows.brought)
    if (differs && (from.file === null || !(await sameRows(again.session)))) {
      return {
        text: null,
        lost: `${from.file ?? 'the result'} does not come again from its own version: run pitlake replay`,
      }
    }
    if (await isSameRun(again, start)) return { text: null, lost: null }
    const text = await changedText([session.engine, search.later.engine], [from.script, to.script], query)
    return { text, lost: null }
  } catch (error) {
    requireFileError(error, `reading version ${from.version}`)
    if (!(error instanceof LakeError)) throw error
    return { text: null, lost: `version ${from.version} is not whole any more: ${error.message}` }
  }
}

/** Finds two adjacent versions: at the first the query returns the rows of the start, at the second it does not. */
async function bisectVersions(search: Search, versions: readonly StoredVersion[], start: KeptRun, end: KeptRun) {
  let low = { at: 0, rows: start }
  let high = { at: versions.length - 1, rows: end }
  while (high.at - low.at > 1) {
    const at = Math.floor((low.at + high.at) / 2)
    const middle = versions[at]
    if (middle === undefined) throw new RangeError('no such version')
    const rows = await runVersion(search, middle)
    const before = await isSameRun(start, rows)
    const left = before ? low : high
    if (left.rows !== start && left.rows !== end) left.rows[Symbol.dispose]()
    if (before) low = { at, rows }
    else high = { at, rows }
  }
  return { before: low.rows, after: high.rows, place: high.at }
}

function commitOf(ledger: Ledger, earlier: StoredVersion, guilty: StoredVersion, further: boolean): GuiltyCommit {
  const { version, committed_at, job, run, program, points_added } = guilty
  const of = (version: StoredVersion) =>
    new Map(Object.entries((storedRules(ledger, version.version)?.rules ?? {}) as object))
  const before = of(earlier)
  const after = of(guilty)
  const isOther = (path: string): boolean => canonical(before.get(path) ?? null) !== canonical(after.get(path) ?? null)
  const rules = before.size === 0 ? [] : [...new Set([...before.keys(), ...after.keys()])].filter(isOther).toSorted()
  return { version, committed_at, job, run, program, points_added, rules, further }
}
