import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Settings } from '../config/settings.ts'
import { Answerer, type Said, type Start } from '../door/answerer.ts'
import type { SentFile, Shown } from '../door/listen.ts'
import { toldRefusal } from '../door/refusal.ts'
import type { Tool } from '../door/tools.ts'
import { kinds, mega } from '../kinds.ts'
import { realDisk } from '../store/disk.ts'
import { keptMemory, requireMemory } from '../store/memory.ts'
import { formatDuration } from '../time.ts'
import type { Beginning, DoorQuestion, MadeAnswer } from './answering.ts'
import { keylessOf } from './hooks.ts'
import { beforeLeaving } from './leave.ts'
import type { Deps, Input } from './spec.ts'

/** The options of every command that answers many questions. */
export const deskOptions = (timeout: string) =>
  ({
    '--timeout TIME': {
      kind: kinds.span('90s or 10m', true),
      about: 'cancel an answer that takes longer: 90s, 10m',
      default: timeout,
    },
    '--spill SIZE': {
      kind: kinds.size,
      about: 'what DuckDB may put on the disk beside it, for all answers together',
      default: '16GB',
    },
    '--threads N': 'threads of DuckDB (default: all cores)',
    '--ledger WHEN': {
      kind: kinds.choice(['as_of', 'now']),
      about: 'where coverage, gaps, violations, requests, runs and versions stand under as_of: as_of, or now',
      default: 'as_of',
    },
  }) as const

/** Whoever answers the questions of a command. */
export type Answers = Answerer<DoorQuestion, DoorAnswer>

/** What a command answers with. */
interface AnswersInput {
  readonly settings: Pick<Settings, 'data' | 'secrets'>
  /** A folder for answers on their way. */
  readonly scratch: string
}

/** What the process that takes the questions holds. */
const asker = 128 * mega
/** With less neither it nor the process that answers has room to work. */
const leastOfBoth = 512 * mega

/** Has a process of its own answer from the lake; whether that can be opened is known once it is ready. */
export function openAnswers(
  { options }: Input<ReturnType<typeof deskOptions>>,
  deps: Deps,
  { settings, scratch }: AnswersInput,
): Answers {
  const { timeout: seconds, spill, threads, ledger } = options
  requireMemory(leastOfBoth, keptMemory(), 'the memory of whoever answers')
  const memory = keptMemory() - asker
  const means = { folder: settings.data, memory, spill, threads, ledgerNow: ledger === 'now' }
  const start = startingAnswers({ means, scratch, env: keylessOf(deps.env, settings.secrets) })
  const note = (words: string): void => deps.stderr(`note: ${words}\n`)
  return new Answerer({ seconds, told: formatDuration(seconds) }, { start, sleep: deps.sleep, note })
}

const { url } = import.meta
/** Packed it is JavaScript. */
const program = fileURLToPath(new URL(url.endsWith('.ts') ? './answering.ts' : './answering.js', url))

/** What is answered: as it is shown at a path, or what a tool gives. */
type DoorAnswer = Shown | Awaited<ReturnType<Tool['call']>>

/** What a process of answers is started with. */
interface Starting extends Beginning {
  /** A folder in which each has one of its own, gone with it; what it hands over is brought up here. */
  readonly scratch: string
  /** Nothing that it need not know. */
  readonly env: Readonly<Record<string, string>>
}

/** Starts processes that answer from a lake. They have no terminal, and what they have to say beside goes to stderr. */
function startingAnswers({ means, scratch, env }: Starting): Start<DoorQuestion, DoorAnswer> {
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
    child.on('message', (said: Said<MadeAnswer>) => over || heard(broughtUp(said, scratch)))
    child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`))
    child.on('error', ({ message }) => {
      if (child.pid === undefined) end(message)
    })
    const send = (message: object): void => void child.send(message, () => undefined)
    send({ means } satisfies Beginning)
    return { send, kill }
  }
}

/** So many bytes of an answer are read at once. */
const small = 65_536

/** What was said; the file of an answer is read if it is small, else it goes to where it outlives the process. */
function broughtUp(said: Said<MadeAnswer>, scratch: string): Said<DoorAnswer> {
  if (!('answer' in said)) return said
  const { id, answer } = said
  if (typeof answer === 'string') return { id, answer }
  if (typeof answer.body === 'string') return { id, answer: { ...answer, body: answer.body } }
  try {
    const { path, bytes } = answer.body
    return { id, answer: { ...answer, body: bytes > small ? sentFile(path, bytes, scratch) : smallFile(path) } }
  } catch (error) {
    return { id, refused: toldRefusal(error) }
  }
}

function smallFile(path: string): Buffer {
  const bytes = readFileSync(path)
  rmSync(path)
  return bytes
}

function sentFile(made: string, bytes: number, scratch: string): SentFile {
  const path = join(scratch, basename(made))
  renameSync(made, path)
  return { path, bytes, [Symbol.asyncDispose]: async () => await realDisk.remove(path) }
}
