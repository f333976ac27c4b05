import type { JobDeps } from '../../lake/ledger/job.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import { day } from '../../base/time.ts'
import { Engine } from '../../lake/store/engine.ts'
import { isOwnFile, logEntry, logFolder, type Logs, readCommit, readTable, requireOwn, type TableState } from './log.ts'
import type { Destination, Published } from './destination.ts'
import { lakeGoing, publishing } from './lake.ts'
import { publishedTables, versionsTable } from './tables.ts'

/** Input of vacuuming a destination. */
interface PublishedVacuumInput {
  readonly root: string
  readonly catalogue: Catalogue
  readonly to: Destination
  /** Seconds within which versions that were the newest can be read afterwards. */
  readonly keepSeconds: number
  /** Whether to remove anything; false: only reports what would be freed. */
  readonly really: boolean
}

/** Removes the published files that no kept version of a table needs, and what killed publishers left. */
export async function vacuumPublished(input: PublishedVacuumInput, deps: JobDeps) {
  const { root, to, really, keepSeconds } = input
  return await publishing({ root, name: 'publish vacuum' }, deps, async ({ ledger, lake, spool, begin }) => {
    using engine = await Engine.open(':memory:', { threads: 1 })
    const logs: Logs = { to, engine, local: spool.file }
    const names = publishedTables({ ...input, files: [] }).map(({ name }) => name)
    const now = Math.floor(deps.nowMicros() / 1000)
    const going = await goingOf(logs, [...names, versionsTable], lake, now, keepSeconds * 1000)
    going.push(...(await lakeGoing(to, ledger, deps.nowMicros() - keepSeconds * 1_000_000)))
    const bytes = going.reduce((sum, file) => sum + file.bytes, 0)
    if (really) await begin({ keep_seconds: keepSeconds }, () => ({ files: going.length, bytes }))
    if (really) for (const { path } of going) await to.remove(path)
    const paths = going.map(({ path }) => path)
    return { destination: to.uri, dry_run: !really, files: going.length, bytes, paths }
  })
}

/** Lists the files to remove. Every table is read before a file of any goes. */
async function goingOf(logs: Logs, names: readonly string[], lake: string, now: number, keep: number) {
  const going: Published[] = []
  for (const table of names) {
    const state = await readTable(logs, table)
    requireOwn(logs.to, table, state, lake)
    if (state.version < 0) continue
    const files = await logs.to.list(table)
    const log = files.filter(({ path }) => path.startsWith(`${logFolder(table)}/`))
    going.push(...dataGoing(table, state, files, now, keep), ...(await logGoing(logs.to, table, log, now - keep)))
  }
  return going
}

/** Milliseconds that a file which no log names stays: it may be that of a publisher at work. */
const unnamedStay = day * 1000

function dataGoing(
  table: string,
  { files, removed }: TableState,
  present: readonly Published[],
  now: number,
  keep: number,
): readonly Published[] {
  return present.filter(({ path, modified }) => {
    const uri = path.slice(table.length + 1)
    if (!isOwnFile(path) || files.has(uri)) return false
    const left = removed.get(uri)?.deletionTimestamp
    return left === undefined ? modified * 1000 <= now - Math.max(keep, unnamedStay) : left <= now - keep
  })
}

/** Lists files of a log that no kept version is read from: all before the newest checkpoint that is old enough. */
async function logGoing(to: Destination, table: string, log: readonly Published[], since: number) {
  const entries = log.flatMap((file) => {
    const entry = logEntry(file)
    return entry ? [{ file, ...entry }] : []
  })
  const checkpoints = entries.filter(({ kind }) => kind === 'checkpoint').toSorted((a, b) => b.version - a.version)
  for (const { version } of checkpoints) {
    if (!entries.some((entry) => entry.kind === 'commit' && entry.version === version)) continue
    const info = (await readCommit(to, table, version)).find(({ commitInfo }) => commitInfo)?.commitInfo
    if (typeof info?.['timestamp'] !== 'number' || info['timestamp'] > since) continue
    return entries.filter((entry) => entry.version < version).map(({ file }) => file)
  }
  return []
}
