import { askBeside, type BesideDeps } from '../ledger/beside.ts'
import { describeOutcome } from '../net/outcome.ts'
import { usualRetries } from '../net/retry.ts'
import { readBytes } from '../store/files.ts'
import { changesAsk, registryUrl } from './api.ts'
import type { Stopped } from './asking.ts'
import { readPage } from './bodies.ts'
import { registryApi, type RegistryInput } from './run.ts'

/** Asks once whether the feed has anything after a cursor; the lake is not touched. Cursors are opaque: none is compared. */
export async function readFeedAhead(
  input: RegistryInput,
  deps: BesideDeps,
  cursor: string,
): Promise<{ kind: 'asked'; ahead: boolean } | Stopped> {
  const failed = (words: string): Stopped => ({ kind: 'stopped', by: 'failed', until: null, words })
  const api = registryApi(input)
  const retry = { ...usualRetries, attempts: 1, limitedAttempts: 1 }
  return await askBeside(api, deps, { perMinute: api.perMinute, retry }, async ({ ask, base, file }) => {
    const url = registryUrl(base, changesAsk(cursor, null))
    const { outcome } = await ask({ id: 'page', url, file: file('page.json') })
    if (outcome.kind !== 'body') return failed(describeOutcome(outcome))
    const page = readPage(await readBytes(outcome.file), input.catalogue.resources)
    if (!page.ok) return failed(page.reason)
    return { kind: 'asked', ahead: page.value.hasMore || page.value.events.length > 0 }
  })
}
