import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dispatch } from '../../src/interfaces/commands/run-command-line.ts'
import type { Deps } from '../../src/interfaces/cli/spec.ts'
import { exitCode } from '../../src/base/errors.ts'
import { leaping } from './leaping.ts'

/** How a command ended: exit code, what it printed, and the words of its refusal. */
export interface Ended {
  readonly code: number
  readonly out: string
  readonly message: string
  /** What it said on stderr beside. */
  readonly notes: string
}

/** Where processes find compiled what others loaded before them, wherever their own temporary folder is. */
export const compiled = { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') }

/** Runs one command line in this process; nothing of the world around it unless a test gives it. */
export async function pitlake(cwd: string, argv: readonly string[], env: Deps['env'] = {}, world: Partial<Deps> = {}) {
  let out = ''
  let notes = ''
  const deps: Deps = {
    ...leaping(),
    now: Date.now,
    random: Math.random,
    env: { ...compiled, ...env },
    stdout: (text) => void (out += text),
    stderr: (text) => void (notes += text),
    live: () => undefined,
    isTerminal: false,
    signal: new AbortController().signal,
    cwd,
    ...world,
  }
  try {
    return { code: (await dispatch(argv, deps)) ?? 0, out, message: '', notes }
  } catch (error) {
    return { code: exitCode(error), out, notes, message: error instanceof Error ? error.message : '' }
  }
}
