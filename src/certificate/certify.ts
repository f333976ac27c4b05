import { usage } from '../errors.ts'
import { headNote, headOf, type KeptHead, storedHeads, storeHead } from '../heads/head.ts'
import { heldTries } from '../heads/tries.ts'
import { sha256File } from '../ledger/commit.ts'
import { canonical, type Json, sha256 } from '../ledger/entry.ts'
import { type HeldSeries, heldRules, heldSeries, heldState, liveFiles, storedInterval } from '../ledger/held.ts'
import { Ledger } from '../ledger/ledger.ts'
import { readStamp } from '../ledger/stamps.ts'
import { heldChains, heldLeaves, heldMembers, heldRoot } from '../ledger/state-tree.ts'
import { argueFromPlan } from '../lookahead/proof/prove.ts'
import type { LookaheadProof } from '../lookahead/lookahead.ts'
import { type NoteKey, noteText, publicText } from '../merkle/note.ts'
import { consistencyProof, inclusionProof } from '../merkle/tree.ts'
import { openQuery } from '../query/lake.ts'
import { folded } from '../results/folded.ts'
import { provedStamp, refuseForgotten } from '../results/stamp.ts'
import { pinnedOptions, type StampNote } from '../results/stamped.ts'
import { columnsOf, parquet } from '../store/parquet.ts'
import { Engine } from '../store/engine.ts'
import { readText } from '../store/files.ts'
import { inLake } from '../store/layout.ts'
import { type Reads, readsOf } from './reads.ts'
import { provenTree } from './state-proof.ts'

/** What is to be certified. */
export interface CertifyInput {
  readonly root: string
  /** The stamped result, absolute. */
  readonly result: string
  readonly key: NoteKey
  /** A query over the rows of the result, the table `result`. */
  readonly figure?: string | undefined
  /** Tell the months of each series, with how many points each has. */
  readonly months: boolean
  /** Heads that were kept elsewhere: the certificate leads from them to its own. */
  readonly since: readonly KeptHead[]
  readonly program: string
  /** What running the query again came to; undefined where only its plan is read. */
  readonly trials?: ((note: StampNote) => Promise<LookaheadProof>) | undefined
}

/** A certificate before it is signed. */
export type Certificate = Awaited<ReturnType<typeof certify>>

/** Gathers what a stamped result rests on, with the proofs that lead from each of it to the head of the log. */
export async function certify(input: CertifyInput) {
  const { root, result, key, program } = input
  using ledger = await Ledger.open(root)
  const { note, source } = await provedStamp(ledger, result)
  refuseForgotten(ledger, note, result)
  const digest = await sha256File(result)
  const { detail, at } = await readStamp(root, digest.slice(0, 16))
  // The state that the result was made from; where that is not the newest the journal tells it once more.
  using then =
    ledger.head().version === note.version ? null : await Ledger.inMemory(root, note.version).catch(() => null)
  const state = then ?? ledger
  using session = await openQuery(root, pinnedOptions(source))
  const single = folded(note.query)?.sql
  const reads = await readsOf(session, single, liveFiles(ledger, { version: note.version }))
  const verdict = await verdictOf(session, single, input, note)
  const leaves = heldLeaves(ledger)
  const head = headOf(ledger)
  const signed = headNote(head, key)
  await storeHead(root, signed)
  const entry = entryOf(state)
  return {
    pitlake_certificate: 1,
    algorithms: 'sha256 ed25519',
    public: publicText(key),
    made_by: { program, engine: note.engine, stamped_by: note.program },
    query: { text: note.query, sha256: sha256(note.query), variables: note.variables },
    knowledge: { version: note.version, as_of: note.variables['as_of'] ?? null, stamped_at: at },
    views: { sha256: sha256(await readText(inLake(root, note.script))), catalogue: note.catalogue },
    result: { file_sha256: digest, rows_sha256: note.result, rows: note.rows, columns: await columnsIn(result) },
    figure: input.figure === undefined ? null : await figureOf(result, input.figure),
    verdict,
    stress: note.stress === undefined ? null : ((detail as Json & { verdict?: Json }).verdict ?? null),
    assumes: note.assumes ?? [],
    tries: triesOf(ledger, note),
    reads: { complete: reads.told, own_tables: [...reads.own].toSorted() },
    head: noteText(signed),
    consistency: await consistencies(root, leaves, input.since),
    entry: { ...entry, inclusion: inclusionProof(leaves, entry.index) },
    state: stateOf(state, reads, input.months),
  }
}

/** The entry after which the state is told, as its leaf has it. */
function entryOf(ledger: Ledger) {
  const { version, digest, committed_at } = ledger.head()
  const root = heldRoot(ledger)
  return { index: heldLeaves(ledger).length - 1, version, committed_at, sha256: digest ?? '', state: root }
}

async function verdictOf(
  session: Engine,
  sql: string | undefined,
  { trials }: Pick<CertifyInput, 'trials'>,
  note: StampNote,
) {
  if (note.stress !== undefined || sql === undefined)
    return { verdict: 'not asked', tested: 0, reasons: [], unproved: null }
  if (trials !== undefined) {
    const { verdict, proved, chain, unproved, cutoffs } = await trials(note)
    return {
      verdict: proved ? 'proved' : verdict === 'clean' ? 'tested' : verdict,
      tested: cutoffs,
      reasons: chain,
      unproved,
    }
  }
  const { proved, chain, unproved } = await argueFromPlan(session, { sql, ts: 'ts', labels: [] })
  return { verdict: proved ? 'proved' : 'not proved', tested: 0, reasons: chain, unproved }
}

async function columnsIn(result: string) {
  using engine = await Engine.open(':memory:', { threads: 1 })
  return await columnsOf(engine, parquet([result]))
}

/** A figure over the rows of a result: a query of one row, every value as text. */
async function figureOf(result: string, sql: string) {
  using engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run(`CREATE TEMP TABLE result AS FROM ${parquet([result])}`)
  await engine.run('SET enable_external_access = false')
  const rows = await engine.rows(`SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (${sql}\n)`)
  const [row] = rows
  if (row === undefined || rows.length > 1)
    throw usage('--figure', { expected: 'a query with one row over the table result', got: `${rows.length} rows` })
  return { sql, values: row }
}

/** How many queries were named beforehand, and whether this one was. */
function triesOf(ledger: Ledger, { query, version }: StampNote) {
  const { queries } = heldTries(ledger)
  const own = queries.find(({ sha256: named, version: at }) => named === sha256(query) && at <= version)
  return { count: queries.length, named_in: own?.version ?? null }
}

/** What leads from heads that were kept to the one of the certificate; the newest few that the lake keeps among them. */
async function consistencies(root: string, leaves: readonly string[], since: readonly KeptHead[]) {
  const own = (await storedHeads(root)).slice(-most)
  const heads = new Map([...own, ...since].map(({ head }) => [head.size, head]))
  return [...heads.values()]
    .filter(({ size }) => size > 0 && size < leaves.length)
    .toSorted((a, b) => a.size - b.size)
    .map(({ size, root: told }) => ({ size, root: told, proof: consistencyProof(leaves, size) }))
}

const most = 16

/** Proofs of every series, table and rule that the plan reads, and of the tries. */
function stateOf(ledger: Ledger, reads: Reads, months: boolean) {
  const chosen = (series: HeldSeries): boolean =>
    !reads.told ||
    reads.points.some(
      ({ metrics, assets }) => metrics.has(series.metric) && (assets === null || assets.has(series.asset)),
    )
  const series = new Map([...heldSeries(ledger)].filter(([, one]) => one.points > 0 && chosen(one)))
  const metrics = new Set([...series.values()].map(({ metric }) => metric))
  const rules = (heldRules(ledger)?.rules ?? {}) as Readonly<Record<string, Json>>
  const more: Readonly<Record<string, (name: string) => object | undefined>> = {
    rules: (name) => (metrics.has(name) ? { text: canonical(rules[name]) } : undefined),
    registry: (name) => (!reads.told || reads.tables.has(name) ? {} : undefined),
    state: (name) => (name === 'tries' ? { text: canonical(heldState(ledger, name)) } : undefined),
  }
  const ofSeries = (name: string): object | undefined => {
    const one = series.get(name)
    return one && { series: identity(one), ...(months && { months: heldChains(ledger, name) }) }
  }
  return provenTree(heldMembers(ledger), (group) => {
    const own = provenTree(heldMembers(ledger, group), more[group] ?? ofSeries)
    return own.members.length === 0 ? undefined : own
  })
}

/** What tells a series in the published tables, in their order of columns. */
function identity(one: HeldSeries): readonly (string | null)[] {
  return [one.metric, one.asset, storedInterval(one), one.currency, one.exchange, one.network]
}
