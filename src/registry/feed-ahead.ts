import { readBytes, temporaryFolder } from '../store/files.ts'
import { join } from 'node:path'
import { httpTo } from '../ledger/connection.ts'
import { describeOutcome } from '../net/outcome.ts'
import { changesAsk, registryUrl } from './api.ts'
import type { Stopped } from './asking.ts'
import { readPage } from './bodies.ts'
import { registryApi, type RegistryDeps, type RegistryInput } from './run.ts'

/** Asks whether the feed has anything after a cursor; the lake is not touched. Cursors are opaque: none is compared. */
export async function readFeedAhead(
  input: RegistryInput,
  deps: RegistryDeps,
  cursor: string,
): Promise<{ kind: 'asked'; ahead: boolean } | Stopped> {
  const { url } = input.settings.registry
  const failed = (words: string): Stopped => ({ kind: 'stopped', by: 'failed', until: null, words })
  if (url === null) return failed('no address is set')
  await using folder = await temporaryFolder()
  await using http = httpTo(registryApi(input), deps)
  const file = join(folder.path, 'page.json')
  const { outcome } = await http.get({ url: registryUrl(url, changesAsk(cursor, null)), file, signal: deps.signal })
  if (outcome.kind !== 'body') return failed(describeOutcome(outcome))
  const page = readPage(await readBytes(file), input.catalogue.resources)
  if (!page.ok) return failed(page.reason)
  return { kind: 'asked', ahead: page.value.hasMore || page.value.events.length > 0 }
}
