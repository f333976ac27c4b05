import type { Resource } from '../../catalog/catalogue.ts'
import { askBeside, type BesideDeps } from '../http/connection.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { Engine } from '../../lake/store/engine.ts'
import type { Filters, RegistryAsking, Stopped } from './reading.ts'
import { differingMembers } from './keys.ts'
import { readHeld, readKeys, readTexts } from './status.ts'
import type { StoredEntity } from './history.ts'
import type { Fields } from './json.ts'
import { registryApi, type RegistryInput } from './run.ts'
import { askList, askOwn } from './verify-compare.ts'
import { isShown, listAddress } from './verify-plan.ts'

/** The result of comparing one record of the lake with the provider's. */
type Mark = 'same' | 'differs' | 'only_held' | 'only_upstream'

/** One record on both sides; names are relied on by scripts. */
export interface RecordBeside {
  readonly id: string
  readonly mark: Mark
  /** The members that differ. */
  readonly differences: readonly string[]
  readonly held: Fields | null
  readonly offered: Fields | null
}

/** The stored records of one resource, for comparing with an answer; none without a lake. */
export interface StoredRecords {
  readonly entities: ReadonlyMap<string, StoredEntity>
  /** Returns the ids of records that match filters, as stored. */
  readonly fitting: (filters: Filters) => ReadonlySet<string>
  /** Compares records of an answer with the stored ones; null if the answer has none under that id. */
  readonly beside: (records: ReadonlyMap<string, Fields | null>) => Promise<RecordBeside[]>
}

/** Reads the stored records of a resource and lends them, for comparing with an answer; none without a lake. */
export async function withHeldSide<T>(
  ledger: Ledger | null,
  resource: Resource,
  use: (side: StoredRecords) => Promise<T>,
): Promise<T> {
  using engine = ledger && (await Engine.open(':memory:', { threads: 1 }))
  return await use(await storedSide(ledger && engine && { ledger, engine }, resource))
}

/** A lake to read from. */
interface LakeReader {
  readonly ledger: Ledger
  readonly engine: Engine
}

async function storedSide(lake: LakeReader | null, resource: Resource): Promise<StoredRecords> {
  const { name } = resource
  const storedRecords = lake && (await readHeld(lake.ledger, lake.engine, [name], [resource])).get(name)
  const entities = storedRecords ?? new Map<string, StoredEntity>()
  const keys = lake ? (await readKeys(lake.ledger, lake.engine)).get(name) : undefined
  const beside = async (records: ReadonlyMap<string, Fields | null>): Promise<RecordBeside[]> => {
    const wanted = [...records.keys()].map((id) => ({ resource: name, id }))
    const texts = lake && (await readTexts(lake.ledger, lake.engine, wanted))
    return [...records].map(([id, offered]) => {
      const entity = entities.get(id)
      const text = entity?.open === true ? texts?.(name, id)?.latest : undefined
      const record = text === undefined ? null : (JSON.parse(text) as Fields)
      const differences =
        record && offered ? differingMembers(resource, { record, at: entity?.at ?? 0, keys }, offered) : []
      return { id, mark: markOf(record, offered, differences), differences, held: record, offered }
    })
  }
  const fitting = (filters: Filters): ReadonlySet<string> => {
    const shown = [...entities.values()].filter(
      ({ open, verified, fields }) => open && isShown(resource, filters, verified, (_, place) => fields?.[place]),
    )
    return new Set(shown.map(({ id }) => id))
  }
  return { entities, fitting, beside }
}

function markOf(stored: Fields | null, offered: Fields | null, differences: readonly string[]): Mark {
  if (stored === null) return 'only_upstream'
  return offered === null ? 'only_held' : differences.length === 0 ? 'same' : 'differs'
}

/** The records to compare. */
interface Look {
  readonly resource: Resource
  /** One record by its id, or the list by these filters. */
  readonly what: { readonly id: string } | { readonly filters: Filters }
}

/** Requests a record or a list from the provider, without changing the lake. */
export async function fetchLive(
  input: RegistryInput,
  deps: BesideDeps,
  { resource, what }: Look,
): Promise<
  | { readonly kind: 'shown'; readonly address: string; readonly records: ReadonlyMap<string, Fields> }
  | { readonly kind: 'refused' }
  | Stopped
> {
  const api = registryApi(input)
  const { pageLimit } = input.settings.registry
  return await askBeside(api, deps, { perMinute: api.perMinute }, async ({ ask, base, file }) => {
    let requestCount = 0
    const asking: RegistryAsking = {
      connection: { ask, base, spool: { file } },
      requests: [],
      nextId: () => `look-${++requestCount}`,
      storedAnswer: () => undefined,
      onOutcome: () => undefined,
      quarantine: async () => await Promise.resolve(),
      now: deps.now,
    }
    if ('id' in what && resource.detail) {
      const answer = await askOwn(asking, { resource, id: what.id })
      if (answer.kind === 'stopped') return answer
      const { value } = answer
      const records = value === null || value === 'unchanged' ? [] : [[what.id, fieldsOf(value.text)] as const]
      return { kind: 'shown', address: `${resource.path}/${what.id}`, records: new Map(records) }
    }
    const filters = 'id' in what ? {} : what.filters
    const answer = await askList(asking, { resource, filters }, pageLimit)
    if (answer.kind !== 'said') return answer.kind === 'stopped' ? answer : { kind: 'refused' }
    const all = answer.value === 'unchanged' ? [] : [...answer.value.values()]
    const matching = 'id' in what ? all.filter(({ id }) => id === what.id) : all
    const records = new Map(matching.map(({ id, text }) => [id, fieldsOf(text)]))
    return { kind: 'shown', address: listAddress(resource, filters), records }
  })
}

const fieldsOf = (text: string): Fields => JSON.parse(text) as Fields
