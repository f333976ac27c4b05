import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { publishTo } from './delta.ts'
import { joinEdgeStages, writeJoinEdgeFacts } from './lakes/join-edges.ts'
import { makeLake } from './lakes/make-lake.ts'

const project = join(import.meta.dirname, '../..')

/** What an engine came to. */
export interface Told {
  readonly engine: string
  readonly decisions: number
  readonly answered: number
  readonly universes: number
  readonly differences: readonly string[]
}

/** Where the tables of the golden lake are published below a folder. */
export const tablesIn = (home: string): string => join(home, 'out')

/** Makes the golden lake in a folder and publishes it after each of its stages. */
export async function publishGolden(home: string): Promise<void> {
  writeJoinEdgeFacts(join(home, 'golden.json'), 6300)
  for (const steps of joinEdgeStages) {
    await makeLake(join(home, 'lake'), steps)
    await publishTo(join(home, 'lake'), tablesIn(home))
  }
}

/** What the script says of these engines or questions, a line each. */
export function askReaders<T>(python: string, home: string, words: readonly string[]): T[] {
  const said = run(python, ['test/python/readers.py', tablesIn(home), join(home, 'golden.json'), ...words])
  return said
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T)
}

/**
 * Runs a page of docs/ over the golden lake; an output that is not the one it shows is an error, unless it shall be
 * kept.
 */
export function runPage(python: string, home: string, page: string, write = false): string {
  return run(python, ['test/python/page.py', tablesIn(home), join('docs', page), ...(write ? ['--write'] : [])])
}

function run(python: string, words: readonly string[]): string {
  return execFileSync(python, words, {
    cwd: project,
    encoding: 'utf8',
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', TZ: 'UTC' },
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
