import { join } from 'node:path'
import { exitCode } from '../errors.ts'
import { temporaryFolder, writePrivate } from '../store/files.ts'
import { dispatch } from './cli.ts'
import type { Deps } from './spec.ts'

/** What a program says to a command. */
interface Asking {
  readonly folder: string
  /** What the process may hold, where somebody said it. */
  readonly memory: string | undefined
  /** Ends that are answers, too, beside 0. */
  readonly ends?: readonly number[]
  readonly signal: AbortSignal
  readonly sleep: Deps['sleep']
}

/** The document that a command prints with `--json`, for a program that asks it. */
export async function askCommand<Document>(line: readonly string[], asking: Asking): Promise<Document> {
  const said: string[] = []
  try {
    const memory = asking.memory === undefined ? [] : ['--memory', asking.memory]
    await dispatch([...line, ...memory, '--data', asking.folder, '--json'], {
      now: Date.now,
      elapsed: () => performance.now(),
      sleep: asking.sleep,
      random: Math.random,
      env: process.env,
      stdout: (text) => void said.push(text),
      stderr: () => undefined,
      live: () => undefined,
      isTerminal: false,
      signal: asking.signal,
      cwd: process.cwd(),
    })
  } catch (error) {
    if (said.length === 0 || asking.ends?.includes(exitCode(error)) !== true) throw error
  }
  return JSON.parse(said.join('')) as Document
}

/** The same about a query, which stands in a file while it is asked about. */
export async function askAbout<Document>(
  [name = '', ...options]: readonly string[],
  query: string,
  asking: Asking,
): Promise<Document> {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'query.sql')
  await writePrivate(file, query)
  return await askCommand([name, file, ...options], asking)
}
