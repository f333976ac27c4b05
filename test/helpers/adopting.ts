import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Diagnosis } from '../../src/maintenance/upkeep/doctor.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { storedState } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { journalEntries } from './entries.ts'
import { commitDeps } from './lakes/drafts.ts'
import { filesIn } from './key-search.ts'
import { examined } from './looking.ts'
import { catalogue } from './sandbox-client.ts'
import { makeViews } from './views.ts'

/** The world of a job at an instant, Unix seconds. */
export function world(now: number, disk: Disk = realDisk) {
  const deps = commitDeps({ nowMicros: () => now * 1_000_000, disk })
  return { ...deps, signal: new AbortController().signal, threads: 1 }
}

/** Runs the doctor, by default to adopt; `bare`: without making the views. */
export async function doctor(
  root: string,
  now: number,
  how: {
    readonly adopt?: boolean
    readonly synthetic?: boolean | null
    readonly disk?: Disk
    readonly bare?: boolean
  } = {},
): Promise<Diagnosis> {
  const { adopt = true, synthetic = true, disk = realDisk, bare = false } = how
  const views = async (ledger: Ledger): Promise<unknown> => (bare ? undefined : await makeViews(ledger.root))
  return await examined(root, now, { adopt: adopt ? { catalogue, synthetic } : null }, { disk, views })
}

/** Journal, ledger and the lines of runs are gone. */
export function lose(root: string): void {
  for (const path of ['journal', 'runs', 'ledger.sqlite', 'ledger.sqlite-wal', 'ledger.sqlite-shm'])
    rmSync(join(root, path), { recursive: true, force: true })
}

/** The points files that the journal's entries add and nothing took out again, as it stands on disk. */
export function liveByJournal(root: string): { path: string; metric: string | null; interval: string | null }[] {
  const live = new Map<string, { path: string; metric: string | null; interval: string | null }>()
  for (const { files } of journalEntries(root)) {
    for (const path of files.remove) live.delete(path)
    for (const { path, table, metric, interval } of files.add)
      if (table === 'points') live.set(path, { path, metric, interval })
  }
  return [...live.values()]
}

/** Every point with all its columns, straight from the files that the journal names. */
export async function points(root: string): Promise<string[]> {
  const files = liveByJournal(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  const lines: string[] = []
  for (const { path, metric, interval } of files) {
    const rows = await engine.rows(`FROM read_parquet('${join(root, path)}', hive_partitioning = false)`)
    for (const row of rows)
      lines.push(JSON.stringify(Object.entries({ metric, interval, ...row }).toSorted(([a], [b]) => (a < b ? -1 : 1))))
  }
  return lines.toSorted()
}

/** The files of data, those in found folders too. */
export const data = (root: string): string[] =>
  filesIn(root).filter((path) => /^(points|assets|registry)\//.test(path.replace(/^found-[^/]*\//, '')))

/** The files of data that were moved, by the path that they had. */
export const inFound = (root: string): string[] =>
  filesIn(root).flatMap((path) => /^found-[^/]+\/((?:points|assets|registry)\/.*)/.exec(path)?.[1] ?? [])

/** Every file of data by its bytes: nothing of it may be gone. */
export const bytesOf = (root: string): string[] =>
  data(root)
    .map((path) => readFileSync(join(root, path), 'latin1'))
    .toSorted()

/** What the lake knows of where the registry stands. */
export async function state(root: string): Promise<Record<string, unknown>> {
  using ledger = await Ledger.open(root)
  const keys = ['cursor', 'epoch', 'first_snapshot', 'last_snapshot', 'layers', 'records']
  const told = Object.fromEntries(keys.map((key) => [key, storedState(ledger, `registry.${key}`)]))
  return told
}
