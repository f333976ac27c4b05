import { z } from 'zod'

/*
 * What Delta's log is made of (PROTOCOL.md of delta-io/delta): each line of a commit is one action. Only what we write is
 * named here; what somebody else's table says beside it is passed over, for such a table is refused anyway.
 */

const texts = z.record(z.string(), z.string().nullable()).readonly()
const some = texts.nullish().transform((held) => held ?? {})

/** Text by key. */
export type Texts = z.infer<typeof texts>

const addShape = z.object({
  /** The URI of the file's name, relative to the table. */
  path: z.string(),
  partitionValues: some,
  size: z.number(),
  /** Milliseconds since 1970. */
  modificationTime: z.number(),
  dataChange: z.boolean(),
  /** JSON: records, smallest and largest values, NULLs. */
  stats: z
    .string()
    .nullish()
    .transform((held) => held ?? '{}'),
  tags: some,
})

const removeShape = z.object({
  path: z.string(),
  /** Milliseconds since 1970. */
  deletionTimestamp: z
    .number()
    .nullish()
    .transform((held) => held ?? 0),
  dataChange: z.boolean(),
})

const metaDataShape = z.object({
  id: z.string(),
  name: z.string().nullish(),
  format: z.object({ provider: z.string(), options: some }),
  schemaString: z.string(),
  partitionColumns: z.array(z.string()).readonly(),
  createdTime: z.number().nullish(),
  configuration: some,
})

const txnShape = z.object({ appId: z.string(), version: z.number() })

const protocolShape = z.object({
  minReaderVersion: z.number(),
  minWriterVersion: z.number(),
  writerFeatures: z.array(z.string()).readonly().nullish(),
})

const actionShape = z.object({
  add: addShape.nullish(),
  remove: removeShape.nullish(),
  metaData: metaDataShape.nullish(),
  txn: txnShape.nullish(),
  protocol: protocolShape.nullish(),
  commitInfo: z.record(z.string(), z.unknown()).nullish(),
})

/** A file that belongs to the table from this version on. */
export type Add = Readonly<z.infer<typeof addShape>>
/** A file that has left the table. */
type Remove = Readonly<z.infer<typeof removeShape>>
/** What the table is. */
type MetaData = Readonly<z.infer<typeof metaDataShape>>
/** Who may read and write the table. */
type Protocol = Readonly<z.infer<typeof protocolShape>>
/** One line of the log: one of its keys is set. */
export type Action = Readonly<z.infer<typeof actionShape>>

/** An action as the log holds it; throws on what is none. */
export function parseAction(text: string): Action {
  return actionShape.parse(JSON.parse(text))
}

/** A feature that nobody else knows: others read the tables, and write nothing into them. */
export const ownFeature = 'pitlake'

/** Every reader of Delta may read, no other writer may write. */
export const ownProtocol: Protocol = { minReaderVersion: 1, minWriterVersion: 7, writerFeatures: [ownFeature] }

/** What a table holds at one of its versions. */
export interface TableState {
  /** -1: there is no table yet. */
  readonly version: number
  readonly metaData: MetaData | undefined
  readonly protocol: Protocol | undefined
  readonly txns: ReadonlyMap<string, number>
  readonly files: ReadonlyMap<string, Add>
  /** Files that left the table and may still be there. */
  readonly removed: ReadonlyMap<string, Remove>
  /** The version of the newest checkpoint; -1 for none. */
  readonly checkpoint: number
}

/** A table that is not there. */
export const noTable: TableState = {
  version: -1,
  metaData: undefined,
  protocol: undefined,
  txns: new Map(),
  files: new Map(),
  removed: new Map(),
  checkpoint: -1,
}

/** The state after the actions of a version. */
export function applied(state: TableState, version: number, actions: readonly Action[]): TableState {
  const [txns, files, removed] = [new Map(state.txns), new Map(state.files), new Map(state.removed)]
  let { metaData, protocol } = state
  for (const action of actions) {
    const { add, remove, txn } = action
    if (add) files.set(add.path, add)
    if (add) removed.delete(add.path)
    if (remove) files.delete(remove.path)
    if (remove) removed.set(remove.path, remove)
    if (txn) txns.set(txn.appId, txn.version)
    metaData = action.metaData ?? metaData
    protocol = action.protocol ?? protocol
  }
  return { ...state, version, metaData, protocol, txns, files, removed }
}
