import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** How a process of the program ended, and what it said. */
export interface Ended {
  /** Null if a signal ended it. */
  readonly code: number | null
  /** The signal that ended it. */
  readonly signal?: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

/** Where a process of the program runs, with nothing of this one's environment but what finding programs needs. */
export interface Around {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** A module that is loaded before the program. */
  readonly preload?: string
}

/** One command line as a process of its own, with nothing on standard input. */
export async function program(argv: readonly string[], { cwd, env = {}, preload }: Around): Promise<Ended> {
  const { PATH = '', HOME = '', TMPDIR = '/tmp' } = process.env
  const before = preload === undefined ? [] : ['--import', preload]
  const child = spawn(process.execPath, [...before, main, ...argv], {
    cwd,
    env: { PATH, HOME, TMPDIR, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((done) =>
    child.on('close', (...end) => done(end)),
  )
  return { code, signal, out, err }
}
