import { machineLack } from '../../lake/store/file-errors.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import type { OwnRow } from '../../catalog/sources.ts'
import { LakeError } from '../../base/errors.ts'
import { storedWeekStart, liveFiles } from '../../lake/ledger/index-queries.ts'
import { type JobDeps, type Run, withLake } from '../../lake/ledger/job.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { type Difference, Findings } from '../metrics/verify-findings.ts'
import { partitionsOf } from '../points/files.ts'
import { ownRows } from '../points/own-rows.ts'
import { statOf } from '../../lake/store/disk.ts'
import { type DraftedImport, takeRows } from './draft.ts'
import { givenBy, isQuery } from './files.ts'
import { readRows } from './rows.ts'

/**
 * The state of a file relative to the lake. `gone`: it no longer exists; `unreadable`: it exists but can no longer be
 * used.
 */
export type FileState = 'held' | 'differs' | 'gone' | 'unreadable'

/** A file of user data, compared with the lake. */
export interface FileComparison {
  readonly metric: string
  /** The file, glob or SELECT. */
  readonly file: string
  readonly state: FileState
  /** Rows of the file; 0 if it was not read. */
  readonly rows: number
  /** Rows that an import would add. */
  readonly news: number
  /** Reason for which it cannot be used; null if it can, or does not exist. */
  readonly reason: string | null
}

/** User data, compared with the files from which they were imported. */
export interface OwnVerified {
  /** Newest version of the lake. */
  readonly version: number
  /** Each compared file. */
  readonly files: readonly FileComparison[]
  /** Number of files left for the next run. */
  readonly left: number
  /** Stored values that differ from a file. */
  readonly differences: readonly Difference[]
  /** Incidents: very many differences at once. */
  readonly incidents: number
}

interface VerifyOwn {
  readonly root: string
  readonly catalogue: Catalogue
  readonly isWanted: (metric: string) => boolean
  /** Maximum number of files, different ones each day; null for all. */
  readonly most: number | null
  readonly cwd: string
  /** Paths of files that are lost or damaged: metrics with points in them are not compared. */
  readonly damaged: ReadonlySet<string>
}

/** A file, a glob or a SELECT that own data were imported from. */
interface Source {
  readonly metric: string
  readonly row: OwnRow
  readonly file: string
}

const day = 86_400_000_000

/**
 * Compares user data with the files from which they were imported, as far as these still exist. A difference is
 * recorded but never applied, and nothing new is imported.
 */
export async function verifyOwn(input: VerifyOwn, deps: JobDeps): Promise<OwnVerified> {
  return await withLake({ root: input.root, name: 'verify', lock: 'import' }, deps, async (run) => {
    const harmed = harmedMetrics(run.ledger, input.damaged)
    const all = [...ownRows(run.ledger)].flatMap(([metric, row]) =>
      input.isWanted(metric) && !harmed.has(metric) ? row.files.map((file): Source => ({ metric, row, file })) : [],
    )
    const most = Math.min(all.length, input.most ?? all.length)
    const first = most === all.length ? 0 : Math.floor(deps.nowMicros() / day) * most
    const chosen = Array.from({ length: most }, (_, n) => all[(first + n) % all.length] as Source)
    await run.begin({ files: chosen.map(({ file }) => file) }, () => ({}))
    const findings = new Findings()
    const files: FileComparison[] = []
    let incidents = 0
    for (const source of chosen) {
      const { told: comparison, done } = await compared(input, run, deps, source)
      files.push(comparison)
      incidents += done?.incidents ?? 0
      findings.add({ violations: done?.differing ?? [], verified: [], unused: new Map(), answersWithBody: [] })
    }
    const differences = findings.differences(run.ledger, { base: '', secrets: [] })
    const value = { version: run.ledger.head().version, files, left: all.length - most, differences, incidents }
    return { value, stopped_by: null, error: null }
  })
}

/** Returns the metrics that have points in these files. */
function harmedMetrics(ledger: Ledger, damaged: ReadonlySet<string>): ReadonlySet<string> {
  const files = liveFiles(ledger, { table: 'points' }).filter(({ path }) => damaged.has(path))
  return new Set([...partitionsOf(files).values()].map(({ metric }) => metric))
}

/** A compared file, with the draft of its differences; without one if it was not read. */
interface ComparedFile {
  readonly told: FileComparison
  readonly done?: DraftedImport | undefined
}

/** Compares the rows of a file as an import does. */
async function compared(
  { root, catalogue, cwd }: VerifyOwn,
  run: Run,
  deps: JobDeps,
  { metric, row, file }: Source,
): Promise<ComparedFile> {
  const comparison = (state: FileState, reason: string | null, rows = 0, news = 0): FileComparison => {
    return { metric, file, state, rows, news, reason }
  }
  if (!isQuery(file) && !/[*?[]/.test(file) && (await statOf(file)) === undefined)
    return { told: comparison('gone', null) }
  try {
    const { rows, done } = await takeRows({ run, deps, root, catalogue, path: metric }, async (engine) => {
      const givenFiles = await givenBy(engine, [file], { cwd, maxBytes: Number.POSITIVE_INFINITY }, row.mapping)
      const rows = await readRows(engine, {
        given: givenFiles,
        mapping: givenFiles.mapping,
        weekStart: storedWeekStart(run.ledger),
        storedIntervals: row.intervals,
        sessions: catalogue.sessions,
      })
      return { rows, row }
    })
    const { violations = 0, added = 0 } = done ?? {}
    return { told: comparison(violations > 0 ? 'differs' : 'held', null, rows.rows, added), done }
  } catch (error) {
    if (!(error instanceof LakeError) || error.kind === 'stopped' || machineLack(error.cause, '') !== undefined)
      throw error
    const isGone = error.complaints[0]?.got === 'no such file'
    return { told: isGone ? comparison('gone', null) : comparison('unreadable', error.message) }
  }
}
