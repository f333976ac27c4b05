import { resolve } from 'node:path'
import { usage } from '../../base/errors.ts'
import type { SessionVariables } from '../../query/lake.ts'
import type { Options } from '../../query/options.ts'
import { readOptions } from '../../query/read-options.ts'
import type { LookaheadProof } from '../../trust/lookahead/lookahead.ts'
import { withoutAsOf } from '../../trust/lookahead/world.ts'
import type { Preregistration } from '../../trust/heads/preregister.ts'
import { type DatedTable, dateFile } from '../../trust/dating/dating.ts'
import { datingOptions, type WhenOptions } from '../../trust/dating/options.ts'
import { engineMemory } from '../../lake/store/memory.ts'
import { replay, type Replayed, type Stamped } from '../../trust/results/stamp.ts'
import { ownWorld, programName } from '../cli/process.ts'
import type { Call, Deps, Typed } from '../cli/spec.ts'
import { readContext, stampSeconds, withinSeconds } from '../cli/context.ts'
import { openedLake } from '../cli/world.ts'
import { explainThrown } from './frame.ts'
import { preregisterTexts } from './head.ts'
import { lookaheadSeconds, proveQuery, trialSize } from './lookahead.ts'
import { stampQuery } from './stamp.ts'
import { leaveWithViews, openWithViews } from './views.ts'

/*
 * What commands do for a program that has a lake open in its own process: the same functions, without a command line,
 * and silent.
 */

/** A program that calls, and the lake that it has open. */
export interface LibraryCaller extends Pick<Deps, 'signal' | 'sleep'> {
  readonly folder: string
  /** Maximum bytes that the process may take; undefined if the program did not set it. */
  readonly memory: number | undefined
}

/** A query to stamp. */
export interface LibraryStamp {
  readonly query: string
  /** The Parquet file to write. */
  readonly out: string
  /** Session variables, `as_of` and `observed_as_of` among them. */
  readonly variables: SessionVariables
}

/** A query to try for look-ahead. */
export interface LibraryTrial {
  readonly query: string
  /** Session variables; the trial sets `as_of` itself. */
  readonly variables: SessionVariables
  /** Column with the timestamp of each row. */
  readonly ts: string
  /** Columns that may look ahead. */
  readonly labels: readonly string[]
  /** Number of runs in which a part of the future is hidden; undefined: 50, or 5 if the plan proves the query. */
  readonly cutoffs: number | undefined
  /** Files of the user by the names under which the query reads them. */
  readonly files: Readonly<Record<string, string>>
}

/** Runs a query and stamps its result, as `pitlake stamp` does. */
export async function stampFor(caller: LibraryCaller, request: LibraryStamp): Promise<Stamped> {
  const typed = callOf(caller)
  return await answeredFor('stamp', typed, async (call) => {
    const stamps: Stamped[] = []
    await leaveWithViews('stamp', typed, async () => {
      stamps.push(await stampQuery(call, request, withinSeconds(call, stampSeconds)))
    })
    const [stamped] = stamps
    if (stamped === undefined) throw new RangeError('a stamp without a result')
    return stamped
  })
}

/** Runs a stamped result again and compares it, as `pitlake replay` does. */
export async function replayFor(caller: LibraryCaller, file: string): Promise<Replayed> {
  return await answeredFor('replay', callOf(caller), async (call) =>
    replay(call.settings.data, resolve(file), withinSeconds(call, stampSeconds), programName()),
  )
}

/** Records queries before their results are seen, as `pitlake preregister` does. */
export async function preregisterFor(caller: LibraryCaller, texts: readonly string[]): Promise<Preregistration> {
  const typed = callOf(caller)
  return await answeredFor('preregister', typed, async (call) => {
    const preregistrations: Preregistration[] = []
    await leaveWithViews('preregister', typed, async () => {
      await openedLake(call)
      preregistrations.push(await preregisterTexts(call, texts))
    })
    const [recorded] = preregistrations
    if (recorded === undefined) throw new RangeError('a preregistration without an answer')
    return recorded
  })
}

/** Finds the time from whose knowledge a table comes, as `pitlake when` does. */
export async function whenFor(caller: LibraryCaller, file: string, given: WhenOptions): Promise<DatedTable> {
  const options = readOptions(datingOptions, { ...given }, 'typescript')
  const typed = callOf(caller)
  return await answeredFor('when', typed, async (call) => {
    await openWithViews(typed)
    const run = { folder: call.settings.data, ...withinSeconds(call, stampSeconds) }
    return await dateFile({ path: resolve(file), subject: file, options }, run, engineMemory(1 / 2))
  })
}

const trialOptions = {
  cutoffs: { kind: 'count', about: 'number of runs in which a part of the future is hidden' },
} as const satisfies Options

/** Tries whether a query looks ahead, as `pitlake lookahead` does. */
export async function lookaheadFor(caller: LibraryCaller, trial: LibraryTrial): Promise<LookaheadProof> {
  const { query, variables, ts, labels, files } = trial
  const { cutoffs } = readOptions(trialOptions, { cutoffs: trial.cutoffs }, 'typescript')
  const named = Object.entries(files).map(([name, file]) => [name, resolve(file)] as const)
  const strange = named.find(([name]) => !/^[a-z]\w*$/i.test(name))
  if (strange !== undefined) throw usage('own', { expected: 'letters, digits and _ as a name', got: strange[0] })
  const set = withoutAsOf(variables)
  const typed = callOf(caller)
  return await answeredFor('lookahead', typed, async (call) => {
    await openWithViews(typed)
    const run = { folder: call.settings.data, ...withinSeconds(call, lookaheadSeconds) }
    const input = { ts, labels, tolerance: 0, ...trialSize(cutoffs) }
    return await proveQuery({ text: query, set }, input, run, named)
  })
}

/** Builds the call of a program: settings as a command line in its folder would find them, without output. */
function callOf({ folder, memory, signal, sleep }: LibraryCaller): Typed {
  const ignored = (): void => undefined
  const silent = { stdout: ignored, stderr: ignored, live: ignored, isTerminal: false }
  const options = { data: folder, memory, config: undefined, verbose: false }
  return { ...ownWorld(), ...silent, sleep, signal, args: [], options }
}

/** Runs the work of a command; an unforeseen error becomes the damage that caused it. */
async function answeredFor<T>(command: string, typed: Typed, work: (call: Call) => Promise<T>): Promise<T> {
  const call = await readContext(typed)
  try {
    return await work(call)
  } catch (error) {
    throw await explainThrown(error, command, call.settings.data)
  }
}
