import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { existsSync } from 'node:fs'
import { usage } from '../../base/errors.ts'
import { openQuery } from '../../query/lake.ts'
import { type Querying, dataFolder, flagsOf, givenOptions, queryOptions, sessionOptions, writeAnswer } from './query.ts'
import { readGiven } from '../cli/context.ts'
import { talking, type Typed } from '../cli/spec.ts'
import { gridOptions, panelOptions } from '../../query/options.ts'
import { panelSpec, panelSql, readDecisionTypes } from '../../query/panel.ts'

export const sqlCommand = talking({
  viewsBefore: true,
  args: { '[query]': 'the query; without it and -f a session, or the script on standard input' },
  options: {
    '-f, --file FILE': 'run a script and print the result of its last statement',
    ...queryOptions,
    '--history FILE': 'file for the history of a session (default: ~/.pitlake_history)',
  },
  details: `SQL only reads the lake. You can make temporary tables, but you cannot write to the lake or read files outside of it. Only tables on
the screen are cut (--rows); every other format has the whole result.

Example: pitlake sql --as-of 2024-06-01 "SELECT * FROM points WHERE asset = 'BTC' ORDER BY t DESC LIMIT 5"

Example: pitlake sql -f query.sql --out result.parquet`,
  run: async (call) => {
    const sql = await scriptOf(call, call.args[0], call.options.file)
    await (sql === undefined ? session(call, call.options.history) : writeAnswer(call, { sql }))
  },
})

/** Reads the text to run; undefined if a person at a terminal gave none. */
async function scriptOf(call: Typed, query: string | undefined, file: string | undefined): Promise<string | undefined> {
  const wrong = (expected: string, got: string, next?: string) => usage('pitlake sql', { expected, got, next })
  if (query !== undefined && file !== undefined) throw wrong('a query or -f FILE', 'both')
  if (query !== undefined && /^\S+\.sql$/i.test(query))
    throw wrong('a query', 'the name of a file', `-f ${query} runs it`)
  if (query !== undefined) return query
  if (file === undefined && process.stdin.isTTY) return undefined
  return file === undefined || file === '-'
    ? readAll(process.stdin)
    : readGiven(call, file, 'a file that can be read', `-f ${file}`)
}

async function session(call: Querying, history = join(homedir(), '.pitlake_history')): Promise<void> {
  const { runSession } = await import('../server/session.ts')
  const folder = dataFolder(call)
  using engine = await openQuery(folder, sessionOptions(call))
  await runSession(engine, folder, {
    input: process.stdin,
    output: process.stdout,
    terminal: process.stdout.isTTY,
    size: () => ({ width: process.stdout.columns || 80, height: process.stdout.rows || 24 }),
    now: call.elapsed,
    sleep: call.sleep,
    historyFile: resolve(call.cwd, history),
    reopen: async () => await openQuery(folder, sessionOptions(call)),
  })
}

const describedOptions = { ...gridOptions, ...panelOptions }

export const panelCommand = talking({
  viewsBefore: true,
  options: {
    '--decisions FILE':
      'CSV or Parquet with the columns asset and ts (only ts with --universe); all its columns are kept',
    ...flagsOf(describedOptions),
    '--explain': 'print the SQL instead of running it',
    ...queryOptions,
  },
  details: `A ts without a zone is UTC. The result has one row for each decision, in the order of the file.

Example: pitlake panel --calendar 2024-01-01,2024-07-01,1d --assets BTC,ETH --metrics 'supply/current_pit' --out panel.parquet

Example: pitlake panel --calendar 2024-07-01,2024-10-01,1d --assets USDC,BUIDL --metrics price_usd --with status,chains`,
  run: async (call) => {
    const { decisions, explain } = call.options
    const given = givenOptions(describedOptions, call.options)
    const path = resolve(call.cwd, decisions ?? '')
    if (decisions !== undefined && !existsSync(path))
      throw usage('--decisions', { expected: 'a CSV or Parquet file', got: `no file ${path}` })
    const source = decisions === undefined ? undefined : ({ kind: 'file', path } as const)
    const panel = await readDecisionTypes(panelSpec(given, 'terminal', source))
    const sql = panelSql(panel)
    if (explain) return call.stdout(`${sql.decisions};\n${sql.query};\n`)
    await writeAnswer(call, { panel })
  },
})
