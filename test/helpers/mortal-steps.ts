import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What processes that lived have compiled: half of what one of the next costs. */
const compiled = join(tmpdir(), 'node-compile-cache')

const preload = fileURLToPath(new URL('mortal.ts', import.meta.url))
const programs = {
  committer: new URL('committer.ts', import.meta.url),
  compactor: new URL('compactor.ts', import.meta.url),
  copier: new URL('copier.ts', import.meta.url),
  pitlake: new URL('../../src/main.ts', import.meta.url),
}

/**
 * Runs one of these in a process that dies before a step of its disk or its ledger (0: it lives), or so many
 * milliseconds after its first word; its steps where it lived, null where it died.
 */
export async function mortal(
  program: keyof typeof programs,
  argv: readonly string[],
  dieAt = 0,
  killAfter?: number,
): Promise<number | null> {
  const told = join(tmpdir(), `pitlake-steps-${randomUUID()}`)
  const child = spawn(process.execPath, ['--import', preload, fileURLToPath(programs[program]), ...argv], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DIE_AT: String(dieAt), STEPS_TO: told, NODE_COMPILE_CACHE: compiled },
  })
  let said = ''
  child.stderr.on('data', (part: Buffer) => (said += part.toString()))
  child.stdout.once('data', () => {
    if (killAfter !== undefined) setTimeout(() => child.kill('SIGKILL'), killAfter)
  })
  child.stdout.resume()
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (signal === 'SIGKILL') return null
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${said}`)
  const steps = Number(readFileSync(told, 'utf8'))
  rmSync(told)
  return steps
}

/** Copies in such a process. */
export const stepsOf = async (how: string, source: string, target: string, dieAt: number): Promise<number | null> =>
  await mortal('copier', [how, source, target], dieAt)

/** How a command line ended whose process may die on its way. */
export interface MortalEnd {
  /** Exit code; null where it was killed. */
  readonly code: number | null
  /** Steps that it took after its first commit; null where it was killed. */
  readonly steps: number | null
  /** What it said on stderr. */
  readonly notes: string
}

/** Runs a command line that dies before the n-th step after its first commit (0: it lives). */
export async function dyingAfterCommit(
  argv: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
  dieAt: number,
): Promise<MortalEnd> {
  const counted = join(tmpdir(), `pitlake-steps-${randomUUID()}`)
  const { PATH = '', HOME = '', TMPDIR = '/tmp' } = process.env
  const counting = { COUNT_FROM: 'commit', DIE_AT: String(dieAt), STEPS_TO: counted, NODE_COMPILE_CACHE: compiled }
  const child = spawn(process.execPath, ['--import', preload, fileURLToPath(programs.pitlake), ...argv], {
    cwd,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH, HOME, TMPDIR, ...env, ...counting },
  })
  let notes = ''
  child.stderr.setEncoding('utf8').on('data', (part: string) => (notes += part))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (signal === 'SIGKILL') return { code: null, steps: null, notes }
  const steps = Number(readFileSync(counted, 'utf8'))
  rmSync(counted)
  return { code, steps, notes }
}
