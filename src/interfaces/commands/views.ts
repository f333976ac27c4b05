import { exitCode, gravest, gravestOf, LakeError } from '../../base/errors.ts'
import { lagText } from '../../lake/ledger/derived.ts'
import { listJournal } from '../../lake/ledger/journal.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { diskError } from '../../lake/store/disk.ts'
import { mirrorOf } from '../../lake/store/marker.ts'
import { readContext, settingsOf } from '../cli/context.ts'
import { programName } from '../cli/process.ts'
import type { Typed } from '../cli/spec.ts'
import { lakeWorld } from '../cli/world.ts'
import { bringViewsForward, lagOfViews, mayBringForward } from '../../query/views/current.ts'

/*
 * Views never lag silently: commands that may commit end with `leaveWithViews`, those that read views begin with
 * `openWithViews`.
 */

/**
 * Runs the work of a command that may commit, then leaves its lake with views of the newest version. If they cannot be
 * made the command ends with that, unless its own end is graver: the data are safe then, and the views are older.
 */
export async function leaveWithViews(
  command: string,
  typed: Typed,
  work: () => Promise<number | void>,
): Promise<number | void> {
  let code: number | void
  try {
    code = await work()
  } catch (error) {
    // Another job at work makes the views itself. A command that refuses one part of its work may have committed the
    // others.
    const isBusy = error instanceof LakeError && error.kind === 'busy'
    const isUsage = error instanceof LakeError && error.kind === 'usage'
    const behind = isBusy
      ? null
      : await viewsMade(command, typed).catch((cause: unknown) => {
          if (isUsage) return null
          throw cause
        })
    // An error that refuses the command refuses the views, too: it is reported once.
    const isTwice = isUsage && behind?.kind === 'usage'
    if (behind === null || isTwice || !(error instanceof LakeError)) throw error
    throw gravestOf([error, behind]) ?? error
  }
  const behind = await viewsMade(command, typed)
  if (behind === null) return code
  if (typeof code === 'number' && gravest([code, exitCode(behind)]) === code) {
    typed.stderr(`note: ${behind.message}\n`)
    return code
  }
  throw behind
}

/** Makes the views where they are behind; what keeps them from being made. */
async function viewsMade(command: string, typed: Typed): Promise<LakeError | null> {
  const { data } = settingsOf(typed)
  if (!isBegun(data) || (await listJournal(data)).newest === 0 || (await mirrorOf(data)) !== null) return null
  try {
    const { catalogue } = await readContext(typed)
    await bringViewsForward(data, { catalogue, deps: lakeWorld(typed, command) })
    return null
  } catch (thrown) {
    return await viewsFailed(data, diskError(thrown, 'making the views'))
  }
}

/** Explains that views could not be made, and which stay in place; damage of the lake is passed on unchanged. */
async function viewsFailed(data: string, cause: unknown): Promise<LakeError> {
  if (cause instanceof LakeError && ['integrity', 'usage'].includes(cause.kind)) return cause
  const lag = await lagOfViews(data).catch(() => null)
  const subject = lag === null ? 'making the views' : `the views stay at version ${lag.thing.version ?? 0}`
  const [complaint] = cause instanceof LakeError ? cause.complaints : []
  return new LakeError('incomplete', {
    subject,
    expected: lag === null ? undefined : `version ${lag.lake.newest}, which is committed`,
    got: complaint?.got ?? (cause instanceof Error ? cause.message : String(cause)),
    next: `${complaint?.next?.replace(/[,;] .*/, '') ?? 'correct that'}, then run pitlake views: the data are safe`,
    cause,
  })
}

/**
 * Makes the views of the newest version before they are read, if this user may, no job is at work that will, and they
 * were made with the same catalogue; else notes that they are older. Costs a listing of the journal if they are
 * current.
 */
export async function openWithViews(typed: Typed): Promise<void> {
  const words = await lagLeft(typed, settingsOf(typed).data)
  if (words !== null) typed.stderr(`note: ${words}\n`)
}

/** Builds the look of a long-running process before each question; it reports once what it cannot correct. */
export function lookingAtViews(typed: Typed): () => Promise<void> {
  const { data } = settingsOf(typed)
  let looking: Promise<string | null> | null = null
  let last: string | null = null
  return async () => {
    // Questions that come together wait for one look.
    looking ??= lagLeft(typed, data).finally(() => (looking = null))
    const words = await looking
    if (words !== null && words !== last) typed.stderr(`note: ${words}\n`)
    last = words
  }
}

/**
 * Makes the views of a lake if they are behind and may be made; returns what remains to be reported, null if nothing.
 */
async function lagLeft(typed: Typed, data: string): Promise<string | null> {
  if (!isBegun(data)) return null
  const lag = await lagOfViews(data, programName())
  if (lag === null) return null
  if (lag.because === 'version' && (await viewsBroughtForward(typed, data))) return null
  return lagText(lag)
}

async function viewsBroughtForward(typed: Typed, data: string): Promise<boolean> {
  try {
    const { catalogue } = await readContext(typed)
    if (!(await mayBringForward(data, catalogue))) return false
    await bringViewsForward(data, { catalogue, deps: lakeWorld(typed, 'views') })
    return (await lagOfViews(data)) === null
  } catch {
    // `pitlake views` reports what keeps them from being made; readable views are read.
    return false
  }
}
