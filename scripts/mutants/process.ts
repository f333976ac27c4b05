import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Line } from './inside.ts'
import type { Verdict } from './vitest.ts'

/** What is run, where, and how long it may be silent before it counts as hanging. */
export interface Run {
  readonly tree: string
  readonly work: string
  readonly todo: object
  readonly env: Readonly<Record<string, string>>
  /** Milliseconds for one test, and for the whole to say nothing. */
  readonly testTimeout: number
  readonly silence: number
  /** Lines that the log begins with. */
  readonly before?: readonly Line[]
}

/** Runs Vitest in a process of its own, ends it with all its children where it hangs, and answers what it wrote. */
export async function run({ tree, work, todo, env, testTimeout, silence, before = [] }: Run): Promise<{
  readonly lines: readonly (Line & Partial<Verdict>)[]
  readonly hung: boolean
}> {
  mkdirSync(work, { recursive: true })
  const [log, given] = [join(work, 'log.jsonl'), join(work, 'todo.json')]
  rmSync(join(work, 'seen.jsonl'), { force: true })
  writeFileSync(log, before.map((line) => `${JSON.stringify(line)}\n`).join(''))
  writeFileSync(given, JSON.stringify(todo))
  const script = join(import.meta.dirname, 'vitest.ts')
  const child = spawn(process.execPath, [script, tree, String(testTimeout), given], {
    cwd: tree,
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env, PITLAKE_MUTANTS_LOG: log },
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  let hung = false
  for (let over = false; !over && !hung; ) {
    over = await Promise.race([ended.then(() => true), setTimeout(500, false)])
    hung = !over && Date.now() - statSync(log).mtimeMs > silence
  }
  // What a mutant left running goes with it.
  try {
    process.kill(-(child.pid ?? 0), 'SIGKILL')
  } catch {}
  await ended
  return { lines: [...linesOf(log), ...linesOf(join(work, 'seen.jsonl'))].slice(before.length), hung }
}

function linesOf(file: string): readonly (Line & Partial<Verdict>)[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line & Partial<Verdict>)
}
