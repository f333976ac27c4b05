import { spawnSync } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { proveQuery } from '../../src/interfaces/commands/lookahead.ts'
import type { FoundLeak } from '../../src/trust/lookahead/runs.ts'
import { type Reproduction, reproduceLeak } from '../../src/trust/reproduction/reproduction.ts'
import type { SessionVariables } from '../../src/query/lake.ts'
import type { OwnFile } from '../../src/trust/lookahead/own-files.ts'

/** What a test of a reproduction may choose. */
interface Choices {
  readonly cutoffs?: number
  readonly set?: SessionVariables
  readonly files?: readonly OwnFile[]
  readonly labels?: readonly string[]
}

/** Finds the leak of a query and writes its folder. */
export async function writeReproduction(
  root: string,
  text: string,
  folder: string,
  { cutoffs = 50, set = {}, files = [], labels = [] }: Choices = {},
): Promise<Reproduction> {
  const run = { folder: root, sleep: setTimeout }
  const found: FoundLeak[] = []
  const onLeak = (leak: FoundLeak): void => void found.push(leak)
  const proof = await proveQuery({ text, set }, { ts: 'ts', labels, cutoffs, tolerance: 1e-12, onLeak }, run, files)
  const [leak] = found
  if (leak === undefined) throw new Error(`no leak was found: ${proof.verdict} ${proof.reason ?? ''}`)
  return await reproduceLeak({ text, set, files, tolerance: 1e-12, leak, tries: 30 }, run, folder)
}

/** How a folder's script ends, in a Python with DuckDB alone, and its last line. */
export function runReproduction(python: string, folder: string): readonly [code: number | null, last: string] {
  const { PATH = '' } = process.env
  const ended = spawnSync(python, ['-I', `${folder}/reproduce.py`], { cwd: '/', env: { PATH }, encoding: 'utf8' })
  return [
    ended.status,
    ended.status === null || ended.stdout === '' ? ended.stderr : (ended.stdout.trimEnd().split('\n').at(-1) ?? ''),
  ]
}
