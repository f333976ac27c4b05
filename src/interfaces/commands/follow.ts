import { gravestOf, LakeError } from '../../base/errors.ts'
import { listJournal } from '../../lake/ledger/journal.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { hour } from '../../base/time.ts'
import { instantNow } from '../cli/context.ts'
import type { Call, CommandAnswer } from '../cli/spec.ts'
import { lakeWorld } from '../cli/world.ts'
import type { FeatureTold } from '../../trust/features/features.ts'

/**
 * Combines the answer of a command that added data with the state of the features that it makes due, as in the step of
 * `daily`. If none is due that costs a look at the ledger, without features nothing. `say` gets the version that the
 * lake has by then: merging and features make versions, too.
 */
export async function withFeatures<Document extends object>(
  call: Call,
  say: (version: number) => CommandAnswer<Document>,
): Promise<CommandAnswer<Document & { readonly features?: readonly FeatureTold[] }>> {
  const names = await due(call)
  const features = names.length === 0 ? null : await broughtFeatures(call, names)
  const message = say((await listJournal(call.settings.data)).newest)
  if (features === null) return message
  const { told: reports, error } = features
  const busy = error?.kind === 'busy'
  if (busy) call.stderr(`note: features wait: ${error.message}\n`)
  const { inWords } = await import('./features.ts')
  return {
    ...message,
    document: { ...message.document, features: reports },
    words: () => [message.words(), ...reports.map(inWords)].join(''),
    error: gravestOf([message.error ?? null, busy ? null : error]),
  }
}

/**
 * Runs features in a long-running process: one that waits is tried again within the hour, one that is refused is not.
 */
export function followingFeatures(call: Call, say: (words: string) => void) {
  const refused = new Set<string>()
  let tried = ''
  const countLeft = async () => {
    const names = (await due(call)).filter((name) => !refused.has(`feature/${name}`))
    if (names.length === 0) return { names, key: tried }
    using ledger = await Ledger.openToRead(call.settings.data)
    return { names, key: [ledger.head().version, Math.floor(instantNow(call) / hour), ...names].join(' ') }
  }
  return {
    due: async () => (await countLeft()).key !== tried,
    bring: async () => {
      const { names, key } = await countLeft()
      tried = key
      if (names.length === 0) return
      const { told: reports, error } = await broughtFeatures(call, names)
      for (const { name, status } of reports) if (status === 'refused' || status === 'failed') refused.add(name)
      if (reports.length > 0) say((await import('./features.ts')).summarizeFeatures(reports))
      if (error !== null) for (const line of error.message.split('\n')) say(line)
    },
  }
}

async function due(call: Call): Promise<readonly string[]> {
  const { settings, catalogue, signal } = call
  if (catalogue.features.size === 0 || signal.aborted) return []
  const { dueFeatures } = await import('../../trust/features/features.ts')
  return await dueFeatures({ root: settings.data, catalogue }, instantNow(call))
}

/** Features after a run. */
interface ComputedFeatures {
  /** State of each feature. */
  readonly told: readonly FeatureTold[]
  /** The error of the run; null if there is none. */
  readonly error: LakeError | null
}

/**
 * Computes due features after data were added: a mistake in a feature does not fail a command that has finished its own
 * work.
 */
async function broughtFeatures(call: Call, names: readonly string[]): Promise<ComputedFeatures> {
  const { settings, catalogue, signal, sleep } = call
  const { bringFeatures } = await import('../../trust/features/features.ts')
  const input = { root: settings.data, catalogue, names, within: { signal, sleep } }
  const done = await bringFeatures(input, lakeWorld(call, 'features')).catch((error: unknown) => {
    if (error instanceof LakeError) return { told: [], error }
    throw error
  })
  if (done.error?.kind !== 'usage') return done
  const mended = done.error.complaints.map((complaint) => ({
    ...complaint,
    next: complaint.next ?? 'correct it, then pitlake features',
  }))
  return { ...done, error: new LakeError('incomplete', mended) }
}
