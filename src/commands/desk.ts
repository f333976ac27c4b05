import type { Settings } from '../config/settings.ts'
import { Answerer } from '../door/answerer.ts'
import { Ledger } from '../ledger/ledger.ts'
import { formatDuration } from '../time.ts'
import { check, readStanding } from '../report/status.ts'
import { kinds } from '../kinds.ts'
import type { DoorQuestion } from './answering.ts'
import { type DoorAnswer, startingAnswers } from './answers.ts'
import type { Context } from './context.ts'
import { keylessOf } from './hooks.ts'
import { memoryBound } from './query.ts'
import type { Deps, Input } from './spec.ts'

/** The options of every command that answers many questions. */
export const deskOptions = (timeout: string) =>
  ({
    '--timeout TIME': {
      kind: kinds.span('90s or 10m', true),
      about: 'cancel an answer that takes longer: 90s, 10m',
      default: timeout,
    },
    '--memory SIZE': { about: 'memory of DuckDB, for all answers together', default: '2GB' },
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
export interface AnswersInput {
  readonly settings: Pick<Settings, 'data' | 'secrets'>
  /** A folder for answers on their way. */
  readonly scratch: string
  /** Bytes that the command needs beside the answers' own. */
  readonly beside: number
}

/** Has a process of its own answer from the lake; whether that can be opened is known once it is ready. */
export function openAnswers(
  { options }: Input<ReturnType<typeof deskOptions>>,
  deps: Deps,
  { settings, scratch, beside }: AnswersInput,
): Answers {
  const { timeout: seconds, memory, spill, threads, ledger } = options
  const means = { folder: settings.data, memory, spill, threads, ledgerNow: ledger === 'now' }
  const bound = memoryBound(memory) + beside
  const start = startingAnswers({ means, bound, scratch, env: keylessOf(deps.env, settings.secrets) })
  const note = (words: string): void => deps.stderr(`note: ${words}\n`)
  return new Answerer({ seconds, told: formatDuration(seconds) }, { start, sleep: deps.sleep, note })
}

/** The standing of the lake now, with the line of `status --check`. */
export async function standingNow({ settings, catalogue }: Context, deps: Deps): Promise<object> {
  using ledger = await Ledger.openToRead(settings.data)
  const now = Math.floor(deps.now() / 1000)
  const { standing } = await readStanding(ledger, { settings, catalogue, now, arrivals: false })
  return { check: check(standing).lines.join('\n'), ...standing }
}
