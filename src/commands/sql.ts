import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { usage } from '../errors.ts'
import type { OutFile } from '../store/output.ts'
import { openQuery } from '../query/lake.ts'
import { engineMemory } from '../store/memory.ts'
import { type Note, noteTexts } from '../query/note.ts'
import { type AskedQuestion, judgeQuestion } from '../query/question.ts'
import { formatFacts, type ResultWriting, sendFile, type WrittenResult, writeFile, writeTo } from '../query/write.ts'
import {
  type Querying,
  dataFolder,
  outputOf,
  queryOptions,
  sessionOptions,
  standardOutput,
  targetOf,
  withLimit,
  withScratch,
} from './query.ts'
import { beforeLeaving } from './leave.ts'
import { readGiven } from './given.ts'
import { type Deps, talking } from './spec.ts'

/** `sql`: one query, a script, or a session at a prompt. */
export const sqlCommand = talking({
  name: 'sql',
  ends: [4, 5, 6],
  args: [{ name: 'query', about: 'the query; without it and -f a session, or the script on standard input' }],
  options: {
    '-f, --file FILE': 'a script; the result of its last statement is written',
    ...queryOptions,
    '--history FILE': 'where a session keeps what was typed (default: ~/.pitlake_history)',
  },
  details: [
    'The lake is open for reading: temporary tables are allowed, writing and files outside the lake are not.',
    'Only tables are cut (--rows); every other format holds the whole result, without loss.',
    '',
    'Example: pitlake sql --as-of 2024-06-01 "SELECT * FROM points WHERE asset = \'BTC\' ORDER BY t DESC LIMIT 5"',
    'Example: pitlake sql -f query.sql --out result.parquet',
  ].join('\n'),
  run: async (input, deps) => {
    const folder = dataFolder(input, deps)
    const sql = await scriptOf(input.args[0], input.options.file, deps)
    if (sql === undefined) return session(input, input.options.history, deps, folder)
    await writeAnswer(input, deps, folder, { sql })
  },
})

/** The text to run; undefined when a person sits there and gave none. */
async function scriptOf(query: string | undefined, file: string | undefined, deps: Deps): Promise<string | undefined> {
  if (query !== undefined && file !== undefined) {
    throw usage('pitlake sql', { expected: 'a query or -f FILE', got: 'both' })
  }
  if (query !== undefined && /^\S+\.sql$/i.test(query))
    throw usage('pitlake sql', { expected: 'a query', got: 'the name of a file', next: `-f ${query} runs it` })
  if (query !== undefined) return query
  if (file === undefined) return process.stdin.isTTY ? undefined : readAll(process.stdin)
  if (file === '-') return readAll(process.stdin)
  return readGiven(deps.cwd, file, 'a file that can be read', `-f ${file}`)
}

/** Judges what is asked and writes its answer as the options say; used by all commands that end in a result. */
export async function writeAnswer(input: Querying, deps: Deps, folder: string, asked: AskedQuestion): Promise<void> {
  const output = outputOf(input, deps)
  const tell = (notes: readonly Note[]): void => {
    for (const text of noteTexts(notes, 'terminal')) deps.stderr(`note: ${text}\n`)
  }
  await withScratch(async (scratch) =>
    withLimit(input, deps, folder, async (run) => {
      const target = targetOf(output, folder, scratch)
      if (target !== undefined) beforeLeaving(target.discard)
      // Text is written as it comes; what becomes Parquet or Arrow is held beside the session.
      const memoryLimit = engineMemory(formatFacts[output.format].text ? 1 : 1 / 2)
      const query = 'sql' in asked ? asked.sql : ''
      using engine = await openQuery(folder, { ...sessionOptions(input), memoryLimit, query })
      const { ready, by, notes, doubts } = await judgeQuestion(asked, engine, run)
      tell(notes)
      const written = await put({ engine, ready, options: { ...output, by }, deps: run }, output.out, target, deps)
      tell(await doubts(written))
    }),
  )
}

async function put(
  answer: ResultWriting,
  out: string | undefined,
  target: OutFile | undefined,
  deps: Deps,
): Promise<WrittenResult> {
  const sink = standardOutput()
  if (target !== undefined) {
    const written = await writeFile(answer, target, out ?? target.path)
    if (out === undefined) await sendFile(target.path, sink)
    return written
  }
  const written = await writeTo(answer, sink)
  const { rows, more } = written
  if (more) deps.stderr(`the first ${rows} rows; --rows 0 shows all, --format and --out write all\n`)
  return written
}

async function session(input: Querying, history: string | undefined, deps: Deps, folder: string): Promise<void> {
  const { runSession } = await import('../door/session.ts')
  using engine = await openQuery(folder, sessionOptions(input))
  await runSession(engine, folder, {
    input: process.stdin,
    output: process.stdout,
    terminal: process.stdout.isTTY,
    size: () => ({ width: process.stdout.columns || 80, height: process.stdout.rows || 24 }),
    now: deps.elapsed,
    sleep: deps.sleep,
    historyFile: resolve(deps.cwd, history ?? join(homedir(), '.pitlake_history')),
  })
}
