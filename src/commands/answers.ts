import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Said, Start } from '../door/answerer.ts'
import type { Beginning, DoorAnswer, DoorQuestion } from './answering.ts'
import { beforeLeaving } from './leave.ts'

const { url } = import.meta
/** Packed it is JavaScript. */
const program = fileURLToPath(new URL(url.endsWith('.ts') ? './answering.ts' : './answering.js', url))

/** What a process of answers is started with. */
export interface Starting extends Beginning {
  /** A folder in which each has one of its own, gone with it; what it hands over is brought up here. */
  readonly scratch: string
  /** Nothing that it need not know. */
  readonly env: Readonly<Record<string, string>>
}

/** Starts processes that answer from a lake. They have no terminal, and what they have to say beside goes to stderr. */
export function startingAnswers({ means, bound, scratch, env }: Starting): Start<DoorQuestion, DoorAnswer> {
  return (heard, ended) => {
    const home = join(scratch, randomUUID())
    mkdirSync(home, { mode: 0o700 })
    const compiled = getCompileCacheDir()
    const child = fork(program, [], {
      env: { ...env, TMPDIR: home, TEMP: home, TMP: home, ...(compiled && { NODE_COMPILE_CACHE: dirname(compiled) }) },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    let over = false
    const kill = (): void => {
      over = true
      child.kill('SIGKILL')
    }
    const forget = beforeLeaving(kill)
    const end = (how: string): void => {
      over = true
      forget()
      rmSync(home, { recursive: true, force: true })
      ended(how)
    }
    // What it said last may come after its end, when its folder is gone.
    child.on('message', (said: Said<DoorAnswer>) => over || heard(broughtUp(said, scratch)))
    child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`))
    child.on('error', ({ message }) => {
      if (child.pid === undefined) end(message)
    })
    const send = (message: object): void => void child.send(message, () => undefined)
    send({ means, bound } satisfies Beginning)
    return { send, kill }
  }
}

/** What was said, with its file in the folder that outlives the process. */
function broughtUp(said: Said<DoorAnswer>, scratch: string): Said<DoorAnswer> {
  if (!('answer' in said) || !('body' in said.answer) || typeof said.answer.body === 'string') return said
  const { path, bytes } = said.answer.body
  const place = join(scratch, basename(path))
  renameSync(path, place)
  return { ...said, answer: { ...said.answer, body: { path: place, bytes } } }
}
