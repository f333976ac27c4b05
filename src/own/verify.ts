import type { Catalogue } from '../catalog/catalogue.ts'
import { ownEndpoint } from '../catalog/own-endpoint.ts'
import type { OwnRow } from '../catalog/sources.ts'
import { LakeError } from '../errors.ts'
import { commit } from '../ledger/commit.ts'
import { heldWeekStart } from '../ledger/held.ts'
import { type JobDeps, type Run, withLake } from '../ledger/job.ts'
import { openSpool } from '../ledger/sweep.ts'
import { type Difference, Findings } from '../metrics/verify-findings.ts'
import { ownRows } from '../points/own-rows.ts'
import { statOf } from '../store/disk.ts'
import { Engine } from '../store/engine.ts'
import { drafted, type Drafted } from './draft.ts'
import { givenBy, isQuery, refuseGrown } from './files.ts'
import { portionsOf } from './import.ts'
import { readRows } from './rows.ts'
import { unfolded } from './triangle.ts'

/** What came of a file, a glob or a SELECT that own data were imported from. */
interface OwnCompared {
  readonly metric: string
  readonly file: string
  /** `gone`: it is no longer there; `unreadable`: it is, and cannot be used any more. */
  readonly state: 'held' | 'differs' | 'gone' | 'unreadable'
  readonly rows: number
  /** Rows that the lake lacks, which an import would bring. */
  readonly news: number
  readonly reason: string | null
}

/** What came of own data: their files, and each stored value that a file tells otherwise now. */
export interface OwnVerified {
  readonly version: number
  readonly files: readonly OwnCompared[]
  /** Files for the next time. */
  readonly left: number
  readonly differences: readonly Difference[]
  readonly incidents: number
}

interface VerifyOwn {
  readonly root: string
  readonly catalogue: Catalogue
  readonly isWanted: (metric: string) => boolean
  /** So many files, others with each day; null: all. */
  readonly most: number | null
  readonly cwd: string
}

interface Source {
  readonly metric: string
  readonly row: OwnRow
  readonly file: string
}

const day = 86_400_000_000

/**
 * Compares own data with the files from which they were imported, where these are still there. A difference is put on
 * record and never applied, and nothing new is taken.
 */
export async function verifyOwn(input: VerifyOwn, deps: JobDeps): Promise<OwnVerified> {
  return await withLake({ root: input.root, name: 'verify', lock: 'import' }, deps, async (run) => {
    const all = [...ownRows(run.ledger)].flatMap(([metric, row]) =>
      input.isWanted(metric) ? row.files.map((file): Source => ({ metric, row, file })) : [],
    )
    const most = Math.min(all.length, input.most ?? all.length)
    const first = most === all.length ? 0 : Math.floor(deps.nowMicros() / day) * most
    const chosen = Array.from({ length: most }, (_, n) => all[(first + n) % all.length] as Source)
    await run.begin({ files: chosen.map(({ file }) => file) }, () => ({}))
    const findings = new Findings()
    const files: OwnCompared[] = []
    let incidents = 0
    for (const one of chosen) {
      const { compared, seen } = await fileCompared(input, run, deps, one)
      files.push(compared)
      incidents += seen?.incidents ?? 0
      findings.add({ violations: seen?.differing ?? [], verified: [], unused: new Map(), asked: [] })
    }
    const differences = findings.differences(run.ledger, { base: '', secrets: [] })
    const { version } = run.ledger.head()
    const value = { version, files, left: all.length - most, differences, incidents }
    return { value, stopped_by: null, error: null }
  })
}

async function fileCompared(input: VerifyOwn, run: Run, deps: JobDeps, source: Source) {
  const { metric, file } = source
  const found = (state: OwnCompared['state'], more: Partial<OwnCompared> = {}, seen?: Drafted) => ({
    compared: { metric, file, state, rows: 0, news: 0, reason: null, ...more },
    seen,
  })
  if (!isQuery(file) && !/[*?[]/.test(file) && (await statOf(file)) === undefined) return found('gone')
  try {
    const { rows, done } = await comparedRows(input, run, deps, source)
    const news = (done.draft.add ?? []).reduce((sum, one) => sum + one.rows, 0)
    return found(done.violations > 0 ? 'differs' : 'held', { rows, news }, done)
  } catch (error) {
    if (!(error instanceof LakeError) || error.kind === 'stopped') throw error
    const [complaint] = error.complaints
    return complaint?.got === 'no such file' ? found('gone') : found('unreadable', { reason: error.message })
  }
}

/** Compares the rows of a file as an import does; of its draft what differs alone is committed. */
async function comparedRows({ root, catalogue, cwd }: VerifyOwn, run: Run, deps: JobDeps, source: Source) {
  await using spool = await openSpool(root, run.id, deps)
  using engine = await Engine.open(':memory:', { tempDirectory: spool.file('duckdb') })
  const { metric: path, row, file } = source
  const found = await givenBy(engine, [file], { cwd, maxBytes: Number.POSITIVE_INFINITY })
  const { given, mapping } = unfolded(found, row.mapping)
  const rows = await readRows(engine, given, mapping, heldWeekStart(run.ledger))
  await refuseGrown(given.files)
  const importing = { run, deps, spool, engine, catalogue, rows, path, row }
  const portions = await portionsOf(importing)
  let done: Drafted | undefined
  await commit(
    run.ledger,
    async (ticket) => {
      done = await drafted(importing, ownEndpoint(path, row), portions, ticket)
      const { provider, violations = [], passed = [] } = done.draft
      return { job: 'verify', run: run.id, provider, violations, passed }
    },
    deps,
  )
  if (!done) throw new RangeError('a comparison that nobody drafted')
  return { rows: rows.rows, done }
}
