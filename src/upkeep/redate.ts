import { createHash } from 'node:crypto'
import type { Catalogue } from '../catalog/catalogue.ts'
import { commit, type StagedFile, type Ticket, type RewriteDeps } from '../ledger/commit.ts'
import type { Json, Rules } from '../ledger/entry.ts'
import { type HeldFile, liveFiles } from '../ledger/held.ts'
import { Ledger } from '../ledger/ledger.ts'
import { busy, tryLock } from '../store/lock.ts'
import { redateFiles } from './redate-files.ts'
import { redatedLabel } from '../ledger/redated.ts'
import { isRecent } from '../points/files.ts'
import { sweep } from '../ledger/sweep.ts'
import type { Interval } from '../time.ts'
import { dissolveRecent } from './compact.ts'
import { type Bench, footerOf, replacement, withBench } from './rewrite.ts'
import { providerOf } from '../ledger/provider.ts'

/** A partition that got other dates. */
export interface RedatedPart {
  readonly metric: string
  readonly interval: Interval
  readonly points: number
  readonly redated: number
}

/** What came of applying changed availability rules. */
export interface RedateSummary {
  readonly version: number
  readonly made: boolean
  readonly partitions: readonly RedatedPart[]
  /** Stored metrics that the catalogue does not know: they keep their dates. */
  readonly unknown: readonly string[]
}

/**
 * Dates every stored point by the rules of the catalogue, as one version. The files with the earlier dates stay in the
 * lake under the table `redated`, so that every earlier `observed_as_of` answers as before.
 */
export async function redate(root: string, catalogue: Catalogue, deps: RewriteDeps): Promise<RedateSummary> {
  const lock = await tryLock(root, 'merge', { ...deps.holder, since: deps.nowMicros() })
  if (!lock) throw await busy(root, 'merge', 'this lake is being merged')
  try {
    const ledger = await Ledger.open(root)
    try {
      await sweep(ledger, deps)
      return await redateSettled(ledger, catalogue, deps)
    } finally {
      ledger.close()
    }
  } finally {
    await lock.release()
  }
}

/** A fetch may bring recent points while partitions are dated: those move to their partitions too, then all begins anew. */
const attempts = 5

async function redateSettled(ledger: Ledger, catalogue: Catalogue, deps: RewriteDeps): Promise<RedateSummary> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    await dissolveRecent(ledger, deps, 'redate')
    const done = await redateAll(ledger, catalogue, deps)
    if (done !== null) return done
  }
  throw await busy(ledger.root, 'metrics', 'this lake grows while it is dated anew')
}

interface Dated {
  readonly inputs: readonly HeldFile[]
  /** Null where every point has its date already. */
  readonly staged: StagedFile | null
  readonly part: RedatedPart
}

/** Null where recent points came meanwhile. */
async function redateAll(ledger: Ledger, catalogue: Catalogue, deps: RewriteDeps): Promise<RedateSummary | null> {
  const { version, provider } = ledger.head()
  if (!provider) return { version, made: false, partitions: [], unknown: [] }
  const unknown = new Set<string>()
  const made: Dated[] = []
  let overtaken = false
  const done = await withBench(ledger, deps, 'redate', async (bench) => {
    let count = 0
    const dateNow = async (files: readonly HeldFile[]): Promise<Dated | null> =>
      await dateOne(bench, catalogue, count++, files)
    const prepared = new Map<string, Dated>()
    for (const [key, files] of pointsParts(ledger)) {
      const dated = await dateNow(files)
      if (dated) prepared.set(key, dated)
      else unknown.add(files[0]?.metric ?? '')
    }
    return await commit(
      ledger,
      async (ticket) => {
        overtaken = liveFiles(ledger, { table: 'points' }).some(isRecent)
        if (overtaken) return null
        // What was fetched or merged meanwhile is dated again: from this instant on all of a partition counts as dated.
        for (const [key, files] of pointsParts(ledger)) {
          const early = prepared.get(key)
          const current = early && sameFiles(early.inputs, files) ? early : await dateNow(files)
          if (current?.staged) made.push(current)
        }
        return draftOf(bench, catalogue, ticket, made)
      },
      deps,
    )
  })
  if (overtaken) return null
  const partitions = made.map(({ part }) => part)
  return { version: done.version, made: done.made, partitions, unknown: [...unknown].toSorted() }
}

function draftOf(bench: Bench, catalogue: Catalogue, ticket: Ticket, made: readonly Dated[]) {
  const label = redatedLabel(ticket.committed_at)
  const kept = made.flatMap(({ inputs }) => inputs.map((file) => relisted(file, label)))
  return {
    job: 'redate',
    run: bench.run,
    provider: providerOf(bench.ledger),
    add: [...made.flatMap(({ staged }) => (staged ? [staged] : [])), ...kept],
    remove: made.flatMap(({ inputs }) => inputs.map((file) => file.path)),
    rules: rulesOf(catalogue),
  }
}

/** The same bytes under another name of table: what the points were dated until then. */
function relisted(file: HeldFile, label: string): StagedFile {
  const { path, metric, interval, rows, min_t, max_t, digest, meta } = file
  return { temporary: null, path, table: 'redated', label, metric, interval, rows, min_t, max_t, digest, meta }
}

function pointsParts(ledger: Ledger): Map<string, HeldFile[]> {
  return Map.groupBy(liveFiles(ledger, { table: 'points' }), ({ metric, interval }) => `${metric} ${interval}`)
}

function sameFiles(a: readonly HeldFile[], b: readonly HeldFile[]): boolean {
  const paths = new Set(a.map((file) => file.path))
  return a.length === b.length && b.every((file) => paths.has(file.path))
}

async function dateOne(
  bench: Bench,
  catalogue: Catalogue,
  n: number,
  files: readonly HeldFile[],
): Promise<Dated | null> {
  const { metric = null, interval = null } = files[0] ?? {}
  const endpoint = metric === null ? undefined : catalogue.endpoints.get(metric)
  if (!endpoint || metric === null || interval === null) return null
  const dated_at = Math.floor(bench.deps.nowMicros())
  const done = await redateFiles(bench.engine, {
    root: bench.ledger.root,
    interval,
    rules: endpoint.rules[interval],
    files,
    out: bench.spool.file(`${n}.parquet`),
    metadata: { ...footerOf(bench.ledger, files), pitlake_dated: String(dated_at) },
  })
  const points = files.reduce((sum, file) => sum + file.rows, 0)
  const staged = done ? replacement(bench, n, files, { ...done.file, meta: { ...done.file.meta, dated_at } }) : null
  return { inputs: files, staged, part: { metric, interval, points, redated: done?.changed ?? 0 } }
}

/** The availability rules of the catalogue, as the journal keeps them. */
function rulesOf(catalogue: Catalogue): Rules {
  const text = JSON.stringify(
    Object.fromEntries([...catalogue.endpoints].map(([path, endpoint]) => [path, endpoint.rules])),
  )
  return { digest: createHash('sha256').update(text).digest('hex'), rules: JSON.parse(text) as Json }
}
