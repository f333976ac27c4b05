import type { FoundLeak, FutureKind, TrialInput, WatchedTrialInput } from '../../trust/lookahead/runs.ts'
import type { ResearchItem } from '../../trust/research/research-items.ts'
import { closing, type SessionVariables } from '../../query/lake.ts'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { LakeError, usage } from '../../base/errors.ts'
import { formatCount, several } from '../../base/figures.ts'
import { jsonOf, jsonText } from '../../base/json.ts'
import { assumptionText } from '../../trust/lookahead/assumptions.ts'
import { type PreparedQuery, prepareScript } from '../../trust/lookahead/script.ts'
import { bringUserFiles, type OwnFile, refuseTakenNames, storeUserTable } from '../../trust/lookahead/own-files.ts'
import { changedPoints, openWorlds, wholeLake, withoutAsOf } from '../../trust/lookahead/world.ts'
import { kinds } from '../../base/option-kinds.ts'
import { withoutLaterPoints, proveFunction, Raised } from '../../trust/lookahead/function.ts'
import { type LookaheadProof, proveNoLookahead } from '../../trust/lookahead/lookahead.ts'
import { leakSentence } from '../../trust/lookahead/sentence.ts'
import { openAltered } from '../../query/altered-lake.ts'
import { carryFile } from '../../query/row-comparison.ts'
import type { RunDeps } from '../../query/run.ts'
import type { StampNote } from '../../trust/results/stamped-rows.ts'
import { realDisk, statOf } from '../../lake/store/disk.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { temporaryFolder } from '../../lake/store/files.ts'
import { verdictError, readGiven, stampedPath, withinTime } from '../cli/context.ts'
import { reportFormats } from '../report/lookahead-report.ts'
import type { ResearchLook } from './lookahead-files.ts'
import { setOption, variablesOf } from './query.ts'
import { answering, type Call, type Deps, showLive, type Typed } from '../cli/spec.ts'

const tolerated = kinds.number('a number from 0 to 1', (value) => value >= 0 && value < 1)

/** Seconds that a trial may take by default. */
export const lookaheadSeconds = 600

const lookaheadOptions = {
  '--ts COL': ['column with the decision time of each row', 'ts'],
  '--labels LIST': 'columns that may look ahead, by comma, such as the return that a model learns',
  '--cutoffs N': 'number of runs in which a part of the future is hidden (default: 50; 5 if the plan proves the query)',
  '--tolerance X': ['relative difference up to which two doubles count as equal', tolerated, '0'],
  '--explain': 'show every reason of a proof (default: the first 6)',
  '--function': 'FILE is the name of a function, whose program is on standard input and output',
  '--own NAME=FILE': {
    kind: kinds.pair('a name and its file, such as signal=signal.csv', /^[a-z]\w*$/i),
    about:
      'file of yours that the query names: rows with available_at are known from then on (a date: from the end of its ' +
      'day), rows with ts are decisions',
    repeatable: true,
  },
  ...setOption,
  '--timeout SECONDS': ['stop after this time, for each query', `${lookaheadSeconds}`],
  '--changed-since REV': 'judge only files that differ from this revision of git',
  '--junit FILE': 'also write the verdicts on several files as JUnit XML',
  '--format FORMAT': ['github: also print annotations for a GitHub workflow', kinds.choice(reportFormats), 'text'],
  '--cache FILE': 'file with verdicts of earlier runs (default: pitlake/lookahead.json in your cache folder)',
  '--fresh': 'judge again what an earlier run judged',
  '--reproduce DIR': 'for a leak, write a folder in which Python with DuckDB alone shows it',
  '--tries N': ['most attempts to leave rows out of that folder', '100'],
} as const

export const lookaheadCommand = answering({
  viewsBefore: true,
  args: {
    '<file...>':
      'the query, or a Parquet file that pitlake stamp wrote; `-`: standard input; several files and folders ' +
      'are judged together',
  },
  options: lookaheadOptions,
  details: `The query runs on the whole lake, and again at many timestamps T as if nothing after T were known. Its rows up to T must be
the same in both. Some runs hide the data that arrived right after each of many decisions, and find where to cut.

pitlake also reads the plan of the query. If each row and value is known at its own time on any lake, the query is proved, with
the reasons. Otherwise the output names the obstacle, and the query also runs on altered data: later points with larger or smaller
values, some of them missing, or decisions that end earlier. A leak shows whether it depends on the values of later points, on their
existence, on the registry, or on later decisions of its calendar.

Statements before the query may set variables and make temporary tables, views and macros. They run again in each run, so that
they read only what was known. panel --explain prints such a script.

Exit 0: clean. Exit 4: a row or value was not knowable; its time and both values are shown. Exit 6: undecided, because the query
has no time column or too few rows, or is not deterministic.

Several files, a folder, a notebook or a Python file are judged together, with a table at the end. Folders are searched for *.sql,
*.py and *.ipynb. In a notebook the %%pit cells count, in a Python file the functions marked with @pitlake.point_in_time. A file
that is not a query is skipped, with the reason. Exit 6 then means that at least one query has no verdict.

  pitlake lookahead signal.sql                            judge one query
  pitlake lookahead research --changed-since origin/main  judge what a branch changed
  pitlake lookahead research --junit look.xml             write a report for CI
  pitlake lookahead signal.sql --reproduce leak           write a folder that shows a leak to others

With --function, a program in a different language runs its own function on the same data. pitlake.lookahead in Python and
lookahead in TypeScript use this option.`,
  answer: async (call) => {
    const { options, settings } = call
    const [file = ''] = call.args
    const { ts, labels = [], cutoffs, tolerance, explain, own } = options
    const files = own.map(([name, path]): OwnFile => [name, resolve(call.cwd, path)])
    if (await isResearch(call)) {
      const set = withoutAsOf(variablesOf(call))
      const defaults = { ts, labels, cutoffs, tolerance, set, own: files }
      const prove: ResearchLook['prove'] = async (item, { set, own: given, cutoffs: size, ...trial }) => {
        const into = options.reproduce && join(options.reproduce, folderName(item))
        const query = { text: item.text, set, trial: { ...trial, ...trialSize(size) }, files: given }
        return await proveAndReproduce(query, into, { ...call, ...withinTime(call) })
      }
      // Loaded only here: a look at many files needs git, Python and their hooks.
      const { answerFiles } = await import('./lookahead-files.ts')
      return await answerFiles({ ...options, named: call.args, folder: settings.data, defaults, prove }, call)
    }
    const within = withinTime(call)
    const onCutoff = (done: number, all: number) => showLive(call, done === all ? '' : `${done} of ${all} cut-offs`)
    const trial: TrialInput = { ts, labels, ...trialSize(cutoffs), tolerance, onCutoff }
    if (options.function && options.reproduce !== undefined)
      throw usage('--reproduce', { expected: 'a query', got: '--function', next: 'name a file with SQL' })
    const proof = options.function
      ? await proveProgram(settings.data, trial, { ...call, ...within }, files)
      : await proveAndReproduce({ ...(await givenQuery(call, file)), trial, files }, options.reproduce, {
          ...call,
          ...within,
        })
    return {
      document: proof,
      words: () => verdictText(proof, file, explain),
      error: verdictError(file, proof, outcome),
    }
  },
})

/** Whether a call is about the files of a research repository, not about one query. */
async function isResearch({ args, options, cwd }: Typed<typeof lookaheadOptions>): Promise<boolean> {
  const { changedSince, junit, format } = options
  const [file = ''] = args
  const isMany = args.length > 1 || /\.(?:py|ipynb)$/i.test(file)
  const isLook =
    changedSince !== undefined ||
    junit !== undefined ||
    format !== 'text' ||
    isMany ||
    (await statOf(resolve(cwd, file)))?.isDirectory() === true
  if (options.function && isLook)
    throw usage('--function', { expected: 'the name of one function', got: 'several files, or an option for them' })
  return isLook && !options.function
}

/** A query and how to try it. */
interface TriedQuery extends GivenQuery {
  readonly trial: TrialInput
  readonly files: readonly OwnFile[]
}

/** Tries a query and, if it leaks and a folder is named, writes the folder that shows the leak. */
async function proveAndReproduce(
  { trial, files, ...query }: TriedQuery,
  into: string | undefined,
  call: Call<typeof lookaheadOptions>,
): Promise<LookaheadProof> {
  const { settings, cwd, signal, sleep, stderr, options } = call
  const run = { folder: settings.data, signal, sleep }
  if (into === undefined) return await proveQuery(query, trial, run, files)
  const folder = resolve(cwd, into)
  const { refuseFilledFolder, reproduceLeak } = await import('../../trust/reproduction/reproduction.ts')
  await refuseFilledFolder(folder, '--reproduce')
  const found: FoundLeak[] = []
  const proof = await proveQuery(query, { ...trial, onLeak: (leak) => void found.push(leak) }, run, files)
  const [leak] = found
  if (proof.verdict !== 'leak' || leak === undefined) {
    stderr(`note: no leak, so nothing is written to ${into}\n`)
    return proof
  }
  try {
    const given = { ...query, files, tolerance: trial.tolerance, leak, tries: options.tries }
    const { rows, rowsBefore } = await reproduceLeak(given, run, folder)
    stderr(
      `wrote ${into}: ${several(rows, 'row')} of ${formatCount(rowsBefore)} ${rows === 1 ? 'shows' : 'show'} the leak; python ` +
        `${join(into, 'reproduce.py')}\n`,
    )
  } catch (error) {
    // The verdict is valid whether or not the folder can be written.
    if (!(error instanceof LakeError) || error.kind !== 'incomplete') throw error
    stderr(`note: ${error.message}\n`)
  }
  return proof
}

/** Names the folder for the leak of an item: its file and name in plain signs. */
function folderName({ file, name }: ResearchItem): string {
  return [file, name ?? '']
    .join(' ')
    .replaceAll(/[^\w.]+/g, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
}

/** A script that was judged, in the session that is to try it. */
interface PreparedTrial extends Disposable {
  readonly session: Engine
  readonly query: PreparedQuery
  /** Notes on the times in the user's files. */
  readonly notes: readonly string[]
  /** The script for which the session has its views; undefined if it has all. */
  readonly script: string | undefined
}

/** Where a script is to be tried. */
interface TrialSession {
  readonly set: SessionVariables
  readonly files: readonly OwnFile[]
  /** The script for which the session gets its views; undefined: it gets all. */
  readonly script?: string
}

/** Opens a session for a script, with the user's files, and judges the script there. */
async function prepareTrial(text: string, { set, files, script }: TrialSession, run: RunDeps): Promise<PreparedTrial> {
  const session = await openWorlds(run.folder, { set }, script)
  return await closing(session, async () => {
    await refuseTakenNames(
      session,
      files.map(([name]) => name),
    )
    const notes = await bringUserFiles(session, files)
    const query = await prepareScript(session, text, run)
    return { session, query, notes, script, [Symbol.dispose]: () => session.close() }
  })
}

/** Tries a query on the whole lake and without parts of its future. */
export async function proveQuery(
  { text, set }: GivenQuery,
  trial: WatchedTrialInput,
  run: RunDeps,
  files: readonly OwnFile[] = [],
): Promise<LookaheadProof> {
  // Variables and files of the user are judged by the names of all views.
  const isPlain = Object.keys(set).length === 0 && files.length === 0
  // An error names objects that the script does not: it comes from a session with all of them.
  const small = isPlain ? await prepareTrial(text, { set, files, script: text }, run).catch(() => undefined) : undefined
  using prepared = small ?? (await prepareTrial(text, { set, files }, run))
  const { sql, preparation, single } = prepared.query
  const open = async (threads: number | undefined): Promise<Engine> => {
    if (threads === undefined) return prepared.session
    const session = await openWorlds(run.folder, { threads, set }, prepared.script)
    await bringUserFiles(session, files)
    return session
  }
  const planned = preparation.length > 0 ? { planned: single } : {}
  const proof = await proveNoLookahead(open, { ...trial, ...planned, sql, preparation }, run)
  return { ...proof, notes: [...prepared.notes, ...proof.notes] }
}

/**
 * Returns the number of runs in which a part of the future is hidden; unless the caller sets it, a proved query has
 * only a few.
 */
export function trialSize(cutoffs: number | undefined): Pick<TrialInput, 'cutoffs' | 'control'> {
  return cutoffs === undefined ? { cutoffs: 50, control: 5 } : { cutoffs }
}

/** Proves a stamped result, for a certificate. */
export async function proveStamped(
  folder: string,
  { query, variables }: StampNote,
  cutoffs: number,
  within: Pick<Deps, 'signal' | 'sleep'>,
): Promise<LookaheadProof> {
  const set = withoutAsOf(variables)
  const trial = { ts: 'ts', labels: [], cutoffs, tolerance: 0 }
  return await proveQuery({ text: query, set }, trial, { folder, ...within })
}

const outcome = {
  good: 'clean',
  command: 'lookahead',
  bad: 'looks ahead',
  next: 'use the pit joins; docs/explanation/trust.md shows how, then run pitlake lookahead again',
} as const

/** A query with its session variables. */
interface GivenQuery {
  readonly text: string
  /** Variables, without `as_of`. */
  readonly set: SessionVariables
}

/** Reads the query of a file or of a stamped result, without `as_of`, which the proof sets itself. */
async function givenQuery(call: Typed<typeof setOption>, file: string): Promise<GivenQuery> {
  const { query, variables } = /\.(?:parquet|parq|pq)$/i.test(file)
    ? await (await import('../../trust/results/stamp.ts')).noteOf(stampedPath(call, file))
    : { query: readGiven(call, file, 'a file with a query'), variables: {} }
  return { text: query, set: withoutAsOf({ ...variables, ...variablesOf(call) }) }
}

/** Number of reasons that are shown without --explain. */
const shortProof = 6

const sides: Readonly<Record<FutureKind, string>> = {
  cut: 'as known then       ',
  'other values': 'with altered values ',
  'other points': 'with altered points ',
  calendar: 'no later decisions  ',
}

const dependences: Readonly<Record<string, string>> = {
  values: 'the values of later points',
  existence: 'whether later points exist',
  registry: 'later records of the registry',
  calendar: 'how many decisions come later, or when',
}

function verdictText(proof: LookaheadProof, file: string, isWhole: boolean): string {
  const { verdict, reason, cutoffs, changed, rows, differing, differences, notes, proved, depends_on } = proof
  const assumptions = assumptionText(proof.assumes, rows)
  const always = proved && assumptions === '' ? ', proved for every lake and every instant' : proved ? ', proved' : ''
  const others = changed === 0 ? '' : ` and ${changed} on altered data`
  const tried = `${rows} rows tried in ${cutoffs} runs${others}, ${differing} rows differ`
  return [
    `${file}: ${verdict}${always}${assumptions === '' ? '' : `, ${assumptions}`}${reason === null ? '' : `, ${reason}`}`,
    ...differences.slice(0, 1).map(leakSentence),
    ...(verdict === 'undecided' ? [] : [tried]),
    ...(depends_on.length > 0
      ? [
          'the difference depends on ' +
            depends_on
              .map((name) => dependences[name] ?? `later rows of ${name.slice(4)}, which are your own`)
              .join(', and on '),
        ]
      : []),
    ...notes.map((note) => `note: ${note}`),
    ...proofLines(proof, isWhole),
    ...differences.flatMap(({ as_of, row, column, full, truncated, future }) => {
      const key = Object.entries(row).map(([name, value]) => `${name}=${text(value)}`)
      const shownValue = (value: unknown): string =>
        column !== null ? text(value) : value === null ? 'no such row' : 'the row is there'
      return [
        `\nas of ${as_of}`,
        `  row        ${key.join(' ')}`,
        `  differs in ${column ?? 'the whole row'}`,
        `  with the future     ${shownValue(full)}`,
        `  ${sides[future]}${shownValue(truncated)}`,
      ]
    }),
    '',
  ].join('\n')
}

function proofLines({ verdict, proved, chain, unproved }: LookaheadProof, whole: boolean): readonly string[] {
  const left = whole ? 0 : Math.max(0, chain.length - shortProof)
  const shown = chain.slice(0, chain.length - left).map((line) => `  ${line}`)
  if (proved) return ['because', ...shown, ...(left === 0 ? [] : [`  and ${left} more (--explain)`])]
  if (verdict !== 'clean' || !unproved) return []
  const { what, line, column, why } = unproved
  return [`tested, not proved: ${line === null ? '' : `line ${line} column ${column}, `}${what}: ${why}`]
}

const text = (value: unknown): string => (typeof value === 'string' ? value : jsonText(value))

/*
 * A function of another language, tried by its own program: a line of JSON each way. That one begins with `{"text"}`,
 * which names the metrics that the function reads. Then, as often as is wanted, `{"database", "variables", "rows"}`: it
 * opens this throw-away `lake.duckdb`, which also has the user's files as views, sets these session variables to these texts, runs the function, writes its rows
 * to that Parquet file and says `{"done": true}`, with the texts that it `asked` and the `notes` of the answers, or
 * `{"raised": "why"}`. At the end stands what came of it.
 */

const opening = z.object({ text: z.string() })
const reply = z.union([
  z.object({
    done: z.literal(true),
    notes: z.array(z.string()).default([]),
    asked: z.array(z.string()).default([]),
  }),
  z.object({ raised: z.string() }),
])

/** Tries a function whose program is on the other side of standard input and output. */
async function proveProgram(
  folder: string,
  input: TrialInput,
  { stdout, signal }: Deps,
  files: readonly OwnFile[],
): Promise<LookaheadProof> {
  const lines = createInterface({ input: process.stdin, signal })[Symbol.asyncIterator]()
  const receive = async <T>(shape: z.ZodType<T>): Promise<T> => {
    const line = await lines.next()
    if (signal.aborted) throw new LakeError('stopped', { subject: 'the look-ahead was cancelled' })
    const reply = line.done === true ? undefined : shape.safeParse(jsonOf(line.value)).data
    if (reply !== undefined) return reply
    const got = line.done === true ? 'the end of standard input' : line.value.slice(0, 80)
    throw usage('lookahead --function', {
      expected: 'a line of JSON from the program that runs the function',
      got,
      next: 'call pitlake.lookahead(…) of the Python package',
    })
  }
  await using scratch = await temporaryFolder()
  const database = join(scratch.path, 'lake.duckdb')
  using engine = await openWorlds(folder)
  await refuseTakenNames(
    engine,
    files.map(([name]) => name),
  )
  const ownNotes = await bringUserFiles(engine, files)
  const altered = await openAltered(folder, changedPoints, { into: database, threads: 1 })
  await closing(altered, async () => {
    for (const [name] of files) await storeUserTable(engine, altered, name)
  })
  altered.close()
  const { text } = await receive(opening)
  let runs = 0
  try {
    const proof = await proveFunction(engine, text, input, async (table, world) => {
      const rows = join(scratch.path, `${runs++}.parquet`)
      const whole = world === wholeLake
      stdout(`${JSON.stringify({ database, variables: withoutLaterPoints(world), rows, whole })}\n`)
      const answer = await receive(reply)
      if ('raised' in answer) throw new Raised(answer.raised, world)
      await carryFile(rows, engine, table)
      await realDisk.remove(rows)
      return { notes: answer.notes, asked: answer.asked }
    })
    return { ...proof, notes: [...ownNotes, ...proof.notes] }
  } finally {
    await lines.return?.()
    // The process that waits for the end of this program has the other end of it.
    process.stdin.destroy()
  }
}
