import type { Catalogue } from '../catalog/catalogue.ts'
import { accessTo, type BesideDeps } from '../ledger/connection.ts'
import { Ledger } from '../ledger/ledger.ts'
import { providerAt } from '../ledger/provider.ts'
import type { Settings } from '../config/settings.ts'
import {
  changesAsk,
  headAsk,
  listAsk,
  type RegistryAsk,
  registryParameters,
  registryUrl,
  snapshotAsk,
} from '../registry/reading.ts'
import { readHead, readSnapshot } from '../registry/bodies.ts'
import { canBeAsked } from '../registry/json.ts'
import { registryState } from '../registry/state.ts'
import { inLake, places } from '../store/layout.ts'
import { isThere } from '../store/files.ts'
import { type Budget, type HeardAnswer, type Listener, listening } from './hear.ts'

/** All that was heard of the registry API. */
export type RegistrySeen = Awaited<ReturnType<typeof hearRegistry>>

/** Where the lake stands with this provider. */
interface Standing {
  readonly cursor: string | null
  readonly held: string | null
}

/** How many requests listening to the registry may take. */
export const registryRequests = 4

/** Asks the registry few cheap things; a lake that has a snapshot of it spares asking for one. */
export async function hearRegistry(
  { settings, catalogue }: { readonly settings: Settings; readonly catalogue: Catalogue },
  deps: BesideDeps,
  budget: Budget,
) {
  const access = {
    name: 'registry',
    settings,
    keyHeader: 'Authorization',
    connections: 1,
    maxBytes: 400_000_000,
  } as const
  const { url } = accessTo('registry', settings)
  const { pageLimit } = settings.registry
  const { resources } = catalogue
  const standing = async (sandbox: string | null): Promise<Standing> => await standingOf(settings.data, url, sandbox)
  return await listening(access, deps, budget, async (listener) => ({
    resources,
    pageLimit,
    ...(await conversation(listener, resources, pageLimit, standing)),
  }))
}

/** What the lake holds of the provider at the address, which calls itself this sandbox or none. */
async function standingOf(root: string, url: string, sandbox: string | null): Promise<Standing> {
  const nothing = { cursor: null, held: null }
  if (!isThere(inLake(root, places.journal))) return nothing
  using ledger = await Ledger.openToRead(root)
  const provider = ledger.head().provider?.registry
  if (provider === undefined || provider !== providerAt('registry', url, sandbox).registry) return nothing
  const { cursor, last } = registryState(ledger)
  return { cursor: cursor !== null && canBeAsked(cursor) ? cursor : null, held: last?.date ?? null }
}

async function conversation(
  { base, hear, ended, left }: Listener,
  resources: Catalogue['resources'],
  pageLimit: number,
  standing: (sandbox: string | null) => Promise<Standing>,
) {
  const ask = async (request: RegistryAsk, etag?: string): Promise<HeardAnswer | null> =>
    await hear(registryUrl(base, request), { parameters: registryParameters, ...(etag !== undefined && { etag }) })
  const [first] = resources.values()
  const request = listAsk(first?.path ?? '/issuers', null, pageLimit)
  const list = await ask(request)
  const tag = list?.outcome.kind === 'body' ? list.outcome.etag : null
  // The same list by its entity tag.
  const again = tag === null ? null : await ask(request, tag)
  const sandbox = list !== null && 'sandbox' in list.outcome ? list.outcome.sandbox : null
  // A lake that holds a snapshot of this provider spares asking for one.
  const { cursor: own, held } = await standing(sandbox)
  const snapshot = own === null ? await ask(snapshotAsk) : null
  const since = own ?? cursorOf(snapshot, resources) ?? (left() > 1 ? headOf(await ask(headAsk), resources) : null)
  const changes = since === null ? null : await ask(changesAsk(since, pageLimit))
  const refused =
    changes?.outcome.kind === 'refused' &&
    changes.outcome.parameter !== 'since' &&
    changes.outcome.code !== 'invalid_cursor'
  // The same page without a limit, where the provider refuses one.
  const unlimited = refused && since !== null ? await ask(changesAsk(since, null)) : null
  return { held, list, again, snapshot, changes, unlimited, ended: ended() }
}

function cursorOf(snapshot: HeardAnswer | null, resources: Catalogue['resources']): string | null {
  const read = snapshot?.bytes ? readSnapshot(snapshot.bytes, resources) : null
  return read?.ok ? read.value.cursor : null
}

function headOf(head: HeardAnswer | null, resources: Catalogue['resources']): string | null {
  const read = head?.bytes ? readHead(head.bytes, resources) : null
  return read?.ok ? read.value : null
}
