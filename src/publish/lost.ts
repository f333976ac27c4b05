import { LakeError } from '../errors.ts'
import { sha256File } from '../ledger/commit.ts'
import type { Add, TableState } from './actions.ts'
import type { Destination, Published } from './destination.ts'
import type { Logs } from './log.ts'

/** What of a table's files does not stand at the destination as the log says, by the path that it has there. */
export interface Lost {
  /** No such file, or one of another size. */
  readonly missing: ReadonlySet<string>
  /** As long as it should be, with other bytes. */
  readonly changed: ReadonlySet<string>
}

/** Compares what the log of a table names with what is there: names and sizes, and the bytes where they are read. */
export async function lostOf(logs: Logs, table: string, state: TableState, reading: boolean): Promise<Lost> {
  const adds = [...state.files.values()]
  if (adds.length === 0) return { missing: new Set(), changed: new Set() }
  const missing = new Set(lacking(await logs.to.list(table), table, adds).map(({ path }) => path))
  const changed = new Set<string>()
  for (const { path, tags } of reading ? adds : []) {
    const digest = tags['sha256']
    if (missing.has(path) || digest === undefined) continue
    const local = logs.local('compared')
    if (!(await logs.to.get(`${table}/${path}`, local))) missing.add(path)
    else if ((await sha256File(local)) !== digest) changed.add(path)
  }
  return { missing, changed }
}

/** Refuses to name files in a log that were taken and are not there: a destination that does not keep what it answers for. */
export async function requireThere(to: Destination, table: string, adds: readonly Add[]): Promise<void> {
  const [first, ...others] = adds.length === 0 ? [] : lacking(await to.list(table), table, adds)
  if (first === undefined) return
  const more = others.length === 0 ? '' : `, nor ${others.length} others`
  throw new LakeError('incomplete', {
    subject: `${to.uri}/${table}/${first.path}`,
    expected: `the ${first.size} bytes that it took`,
    got: `a list without them${more}`,
    next: 'no reader was told of them; look at that storage, then run the same command again',
  })
}

function lacking(there: readonly Published[], table: string, adds: readonly Add[]): readonly Add[] {
  const sizes = new Map(there.map(({ path, bytes }) => [path, bytes]))
  return adds.filter(({ path, size }) => sizes.get(`${table}/${path}`) !== size)
}
