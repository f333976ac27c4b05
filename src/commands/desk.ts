import { randomUUID } from 'node:crypto'
import { Desk } from '../door/desk.ts'
import { usage } from '../errors.ts'
import { Ledger } from '../ledger/ledger.ts'
import { check } from '../report/check.ts'
import { formatDuration } from '../time.ts'
import { readStanding } from '../report/status.ts'
import { kinds } from '../kinds.ts'
import type { Context } from './context.ts'
import { leave } from './leave.ts'
import { memoryBound, watchMemory } from './query.ts'
import { type Deps, type Input, numberOption, type OptionSpec, textOption } from './spec.ts'

/** The options of every command that answers many questions. */
export function deskOptions(timeout: string): readonly OptionSpec[] {
  return [
    {
      flags: '--timeout TIME',
      kind: kinds.span('90s or 10m'),
      about: 'cancel an answer that takes longer: 90s, 10m',
      default: timeout,
    },
    { flags: '--memory SIZE', about: 'memory of DuckDB, for all answers together', default: '2GB' },
    {
      flags: '--spill SIZE',
      about: 'what DuckDB may put on the disk beside it, for all answers together',
      default: '16GB',
    },
    { flags: '--threads N', about: 'threads of DuckDB (default: all cores)' },
    {
      flags: '--ledger WHEN',
      about: 'where coverage, gaps, violations, requests, runs and versions stand under as_of: as_of, or now',
      default: 'as_of',
    },
  ]
}

/** A desk at a lake, with what else its command needs. */
export interface OpenDesk extends AsyncDisposable {
  readonly desk: Desk
  readonly elapsed: () => number
  readonly draw: () => string
}

/**
 * Opens the desk of a command; a lake that cannot be opened is told before anybody asks. `beside`: bytes that the command
 * needs beside the answers' own.
 */
export async function openDesk(input: Input, deps: Deps, folder: string, beside = 0): Promise<OpenDesk> {
  const seconds = numberOption(input, 'timeout') ?? 0
  if (seconds === 0) throw usage('--timeout', { expected: 'a time such as 90s or 10m', got: '0' })
  const memory = textOption(input, 'memory') ?? ''
  const end = (words: string): void => {
    deps.stderr(`error: ${words}\n`)
    leave(1)
  }
  // Whoever asked is told before the process ends: nothing else stops a single call of a function in the engine.
  const stuck = (): void => void deps.sleep(lastWords).then(() => end('a cancelled query did not end by itself'))
  const spill = textOption(input, 'spill') ?? ''
  if (!/^\d+(\.\d+)?\s*[kmgt]i?b$/i.test(spill))
    throw usage('--spill', { expected: 'a size such as 512MB or 16GB', got: spill })
  const ledger = textOption(input, 'ledger') ?? ''
  if (ledger !== 'as_of' && ledger !== 'now') throw usage('--ledger', { expected: 'as_of or now', got: ledger })
  const means = {
    folder,
    memory,
    spill,
    threads: numberOption(input, 'threads'),
    seconds,
    told: formatDuration(seconds),
    ledgerNow: ledger === 'now',
  }
  const bound = memoryBound(memory) + beside
  await using opening = new AsyncDisposableStack()
  opening.defer(watchMemory(bound, () => end('the answers took more memory than they may; raise --memory')))
  const desk = opening.use(new Desk(means, { signal: deps.signal, sleep: deps.sleep, stuck, draw: randomUUID }))
  const seat = await desk.sit({})
  seat[Symbol.dispose]()
  const open = opening.move()
  return { desk, elapsed: deps.elapsed, draw: randomUUID, [Symbol.asyncDispose]: async () => await open.disposeAsync() }
}

/** Milliseconds for the last answer to go out. */
const lastWords = 500

/** The standing of the lake now, with the line of `status --check`. */
export async function standingNow({ settings, catalogue }: Context, deps: Deps): Promise<object> {
  using ledger = await Ledger.openToRead(settings.data)
  const now = Math.floor(deps.now() / 1000)
  const { standing } = await readStanding(ledger, { settings, catalogue, now, arrivals: false })
  return { check: check(standing).lines.join('\n'), ...standing }
}
