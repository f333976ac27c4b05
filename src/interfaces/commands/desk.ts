import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Answerer, type StartWorker, type WorkerMessage } from '../server/query-worker.ts'
import { type DeskMeans, lateSettings } from '../server/session-manager.ts'
import type { HttpResponse } from '../server/listen.ts'
import { reportedRefusal } from '../server/refusal.ts'
import { kinds, mega } from '../../base/option-kinds.ts'
import { realDisk } from '../../lake/store/disk.ts'
import { keptMemory, requireMemory } from '../../lake/store/memory.ts'
import { formatDuration } from '../../base/time.ts'
import type { DoorQuestion, MadeAnswer } from './answering.ts'
import { keylessOf } from './hooks.ts'
import { beforeLeaving } from '../cli/process.ts'
import type { Call } from '../cli/spec.ts'

const ledgerAbout = 'under as_of, show coverage, gaps, violations, requests, runs and versions as of: as_of, or now'

/** Builds the options of every command that answers many questions. */
export const deskOptions = (timeout: string) =>
  ({
    '--timeout TIME': ['cancel an answer that takes longer: 90s, 10m', kinds.span('90s or 10m', true), timeout],
    '--spill SIZE': ['disk space for temporary files of DuckDB, for all answers together', kinds.size, '16GB'],
    '--threads N': 'threads of DuckDB (default: all cores)',
    '--allow LIST': {
      kind: kinds.listOf(kinds.choice(lateSettings)),
      about: 'settings that a query may use although they show facts from after as_of (default: none)',
    },
    '--ledger WHEN': [ledgerAbout, kinds.choice(['as_of', 'now']), 'as_of'],
  }) as const

/** The table of these options. Derived, so that `deskOptions` is the one list of them. */
type DeskOptions = ReturnType<typeof deskOptions>

/** Answerer of the questions of a command. */
export type Answers = Answerer<DoorQuestion, DoorAnswer>

/** Bytes of the process that takes the questions. */
const asker = 128 * mega
/** Minimum bytes for both that process and the query worker. */
const leastOfBoth = 512 * mega

/**
 * Starts a separate process that answers from the lake; whether that can be opened is known once it is ready. `scratch`
 * is the folder for answers in transfer.
 */
export function openAnswers(
  call: Call<DeskOptions>,
  scratch: string,
  limit: Pick<DeskMeans, 'wall' | 'limited'>,
): Answers {
  const { settings, options, env, sleep, stderr } = call
  const { timeout: seconds, spill, threads, ledger, allow: allowed = [] } = options
  requireMemory(leastOfBoth, keptMemory(), 'the memory of whoever answers')
  const ledgerNow = ledger === 'now'
  const means = { folder: settings.data, memory: keptMemory() - asker, spill, threads, ledgerNow, allowed, ...limit }
  const start = startingAnswers(means, scratch, keylessOf(env, settings.secrets))
  const note = (words: string): void => stderr(`note: ${words}\n`)
  return new Answerer({ seconds, told: formatDuration(seconds) }, { start, sleep, note })
}

const { url } = import.meta
/** Packed it is JavaScript. */
const program = fileURLToPath(new URL(url.endsWith('.ts') ? './answering.ts' : './answering.js', url))

/** Answer of a path, or the JSON text of a tool. */
type DoorAnswer = HttpResponse | string

/**
 * Starts processes that answer from a lake. They have no terminal, and their other messages go to stderr. Each has a
 * folder of its own in `scratch`, removed with it; the files that it hands over are moved up from there.
 */
function startingAnswers(
  means: DeskMeans,
  scratch: string,
  env: Readonly<Record<string, string>>,
): StartWorker<DoorQuestion, DoorAnswer> {
  return (onMessage, ended) => {
    const home = join(scratch, randomUUID())
    mkdirSync(home, { mode: 0o700 })
    const compiled = getCompileCacheDir()
    const child = fork(program, [scratch], {
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
    // Its last message may come after its end, when its folder is gone.
    child.on('message', (message: WorkerMessage<MadeAnswer>) => over || onMessage(broughtUp(message, scratch)))
    child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`))
    child.on('error', ({ message }) => {
      if (child.pid === undefined) end(message)
    })
    const send = (message: object): void => void child.send(message, () => undefined)
    send(means)
    return { send, kill }
  }
}

/** Number of bytes of an answer that are read at once. */
const small = 65_536

/** Prepares a message: the file of an answer is read if it is small, else moved to where it outlives the process. */
function broughtUp(message: WorkerMessage<MadeAnswer>, scratch: string): WorkerMessage<DoorAnswer> {
  if (!('answer' in message)) return message
  const { id, answer } = message
  if (typeof answer === 'string') return { id, answer }
  const { body } = answer
  try {
    if (typeof body === 'string') return { id, answer: { ...answer, body } }
    if (body.bytes <= small) {
      const bytes = readFileSync(body.path)
      rmSync(body.path)
      return { id, answer: { ...answer, body: bytes } }
    }
    const path = join(scratch, basename(body.path))
    renameSync(body.path, path)
    const sent = { path, bytes: body.bytes, [Symbol.asyncDispose]: async () => await realDisk.remove(path) }
    return { id, answer: { ...answer, body: sent } }
  } catch (error) {
    return { id, refused: reportedRefusal(error) }
  }
}
