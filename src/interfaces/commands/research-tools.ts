import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { isAbsolute, relative, resolve } from 'node:path'
import { z } from 'zod'
import { usage } from '../../base/errors.ts'
import { jsonOf } from '../../base/json.ts'
import { givenKeys } from '../../catalog/settings.ts'
import type { StoredVerdict } from '../../trust/research/judged-item.ts'
import type { Deps } from '../cli/spec.ts'
import { keylessOf } from './hooks.ts'

/*
 * The two programs of others that a look at a research repository starts: git, for the files that changed, and Python,
 * for its marked functions.
 */

/** End of a program; `code` is null if it could not be started, or was stopped. */
interface ProgramEnd {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Bytes that a program may print. */
const mostPrinted = 64_000_000

async function runProgram(
  [program = '', ...words]: readonly string[],
  { cwd, env, signal }: Pick<Deps, 'cwd' | 'env' | 'signal'>,
): Promise<ProgramEnd> {
  return await new Promise((done) => {
    const options = { cwd, env: { ...env }, signal, maxBuffer: mostPrinted, encoding: 'utf8' as const }
    execFile(program, words, options, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null
      done({ code, out, err: err === '' && error !== null ? error.message : err })
    })
  })
}

/** Lists the files that differ from a revision of their git repository: changed since they parted, or not added yet. */
export async function changedSince(revision: string, files: readonly string[], call: Deps): Promise<string[]> {
  const git = async (...words: string[]): Promise<ProgramEnd> => await runProgram(['git', ...words], call)
  const top = await git('rev-parse', '--show-toplevel')
  if (top.code !== 0) {
    const got = top.code === null ? 'no program git' : 'a folder outside one'
    throw usage('--changed-since', { expected: 'a git repository', got, next: 'name the files instead' })
  }
  const root = top.out.trimEnd()
  const knownCommit = await git('rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`)
  if (knownCommit.code !== 0)
    throw usage('--changed-since', {
      expected: 'a revision of this repository, such as origin/main',
      got: revision,
      next: 'run `git fetch`, or check out the whole history (`fetch-depth: 0`)',
    })
  const commit = knownCommit.out.trim()
  const base = await git('merge-base', commit, 'HEAD')
  const from = base.code === 0 ? base.out.trim() : commit
  const lists = await Promise.all([
    git('-C', root, 'diff', '--name-only', '--no-renames', '--diff-filter=d', '-z', from, '--'),
    git('-C', root, 'ls-files', '--others', '--exclude-standard', '-z', '--full-name', '--'),
  ])
  const changed = new Set(lists.flatMap(({ out }) => out.split('\0')).filter((path) => path !== ''))
  const here = (await git('rev-parse', '--show-prefix')).out.trimEnd()
  return files.filter((file) => {
    const path = isAbsolute(file) ? relative(root, file) : resolve('/', here, file).slice(1)
    return changed.has(path.replaceAll('\\', '/'))
  })
}

/** Results of Python for the marked functions of one file. */
export interface FunctionAnswers {
  /** Verdicts by the name of the function. */
  readonly verdicts: ReadonlyMap<string, StoredVerdict>
  /** Reason why there is no verdict on the others; null if Python looked at all. */
  readonly missing: string | null
}

const answerShape = z.object({
  name: z.string(),
  verdict: z.enum(['clean', 'leak', 'undecided']),
  reason: z.string().nullable(),
  leak: z.string().nullable(),
  depends_on: z.array(z.string()),
})

const testMarked = 'import sys; from pitlake.marked import main; main(*sys.argv[1:])'

/**
 * Runs the marked functions of a Python file with the package pitlake. The file is imported, as a test runner would.
 */
export async function askPython(file: string, folder: string, call: Deps): Promise<FunctionAnswers> {
  const python = call.env['PITLAKE_PYTHON'] ?? 'python3'
  const env = {
    ...keylessOf(call.env, givenKeys(call.env)),
    PITLAKE_COMMAND: call.env['PITLAKE_COMMAND'] ?? ownCommand(),
  }
  const words = [python, '-c', testMarked, resolve(call.cwd, file), folder]
  const ended = await runProgram(words, { ...call, env })
  const answers = ended.out.split('\n').flatMap((line) => answerShape.safeParse(jsonOf(line)).data ?? [])
  const verdicts = new Map(answers.map(({ name, ...found }) => [name, { ...found, proved: false }]))
  if (ended.code === 0) return { verdicts, missing: null }
  const last = ended.err.trimEnd().split('\n').at(-1) ?? ''
  const isAbsent = ended.code === null || /No module named '?(?:pitlake|duckdb)/.test(last)
  const missing = isAbsent
    ? `Python with the package pitlake is not at hand (${last}); name one in PITLAKE_PYTHON`
    : `Python cannot import the file: ${last}`
  return { verdicts, missing }
}

const { url } = import.meta
const program = fileURLToPath(new URL(url.endsWith('.ts') ? '../../main.ts' : '../../main.js', url))

/** Formats the command that runs this program again, as a shell reads it. */
function ownCommand(): string {
  return [process.execPath, program].map((word) => `'${word.replaceAll("'", `'"'"'`)}'`).join(' ')
}
