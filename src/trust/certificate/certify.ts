import { hash } from 'node:crypto'
import { usage } from '../../base/errors.ts'
import { completeState, isStateComplete } from '../heads/complete.ts'
import { headNote, headOf, type KeptHead, storedHeads, storeHead } from '../heads/head.ts'
import { heldTries } from '../heads/tries.ts'
import { type CommitDeps, sha256File } from '../../lake/ledger/commit.ts'
import { canonical, type Json, sha256 } from '../../lake/ledger/entry.ts'
import { heldRules, heldSeries, heldState, liveFiles, storedInterval } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { readStamp } from '../../lake/ledger/stamps.ts'
import { heldChains, heldLeaves, heldMembers, heldRoot } from '../../lake/ledger/state-tree.ts'
import type { Assumed } from '../lookahead/assumed.ts'
import type { LookaheadProof } from '../lookahead/lookahead.ts'
import type { Obstacle } from '../lookahead/proof/values.ts'
import { argueFromPlan } from '../lookahead/proof/prove.ts'
import { isSigned, type NoteKey, publicText, signedNote, signedText } from '../../base/merkle/note.ts'
import { type Named, namedLeaves } from '../../base/merkle/state.ts'
import { consistencyProof, inclusionProof, rangeProof, treeRoot } from '../../base/merkle/tree.ts'
import { openQuery, type SessionVariables, type VariableValue } from '../../query/lake.ts'
import { publishedName } from '../../sources/registry/digests.ts'
import { scriptAsSelect } from '../../query/script-as-select.ts'
import { loadProvedStamp, refuseForgotten } from '../results/stamp.ts'
import { pinnedOptions, type StampNote } from '../results/stamped.ts'
import { Engine, quoteList, type Row } from '../../lake/store/engine.ts'
import { namesIn, treesOf } from '../../query/parse-tree.ts'
import { textOf } from '../../lake/store/files.ts'
import { inLake } from '../../lake/store/layout.ts'
import { type Columns, columnsOf, parquet } from '../../lake/store/parquet.ts'
import { type QueryReads, readsOf } from './reads.ts'

/** A stamped result to certify, with the key and the proofs to add. */
interface CertifyInput {
  readonly root: string
  /** The stamped result, absolute. */
  readonly result: string
  readonly key: NoteKey
  /** A query over the rows of the result, the table `result`; whether to tell the months of each series. */
  readonly figure?: string | undefined
  readonly months: boolean
  /** Heads that were kept elsewhere: the certificate leads from them to its own. */
  readonly since: readonly KeptHead[]
  readonly deps: CommitDeps
  /** Runs the query again without parts of the future; undefined: only its plan is read. */
  readonly trials?: ((note: StampNote) => Promise<LookaheadProof>) | undefined
}

/** The content of a certificate, in the order of its file, without the signature. Digests are SHA-256 in hex. */
export interface Certificate {
  /** Version of the format. */
  readonly pitlake_certificate: number
  /** Algorithms of all digests and signatures. */
  readonly algorithms: string
  /** Public key that signs the certificate. */
  readonly public: string
  readonly made_by: {
    /** Program that made the certificate. */
    readonly program: string
    /** Version of DuckDB that made the result. */
    readonly engine: string
    /** Program that stamped the result. */
    readonly stamped_by: string
  }
  readonly query: { readonly text: string; readonly sha256: string; readonly variables: SessionVariables }
  readonly knowledge: {
    /** Version of the lake that the query read. */
    readonly version: number
    /** The `as_of` of the query; null if it set none. */
    readonly as_of: VariableValue
    /** Microseconds. */
    readonly stamped_at: number
  }
  readonly views: {
    /** Path of the stored views' text, relative to the lake. */
    readonly script: string
    /** Digest of the catalogue. */
    readonly catalogue: string
    /** Statement of each view and macro that the query names, by name. */
    readonly text: Readonly<Record<string, string>>
  }
  readonly result: CertifiedResult
  /** A query of one row over the result, and its values as text; null if none was requested. */
  readonly figure: { readonly sql: string; readonly values: Row } | null
  readonly verdict: CertifiedVerdict & { readonly basis: Readonly<Record<string, number>> }
  /** Verdict of the stress for a stamped statistic; null for the rows of a query. */
  readonly stress: Json
  /** Assumptions of the result. */
  readonly assumes: readonly Assumed[]
  readonly tries: {
    /** Number of queries named beforehand. */
    readonly count: number
    /** Version in which this query was named; null if it was not named by the version that it read. */
    readonly named_in: number | null
  }
  readonly reads: {
    /** Whether the plan shows everything that the query reads. */
    readonly complete: boolean
    /** Tables of the ledger and the catalogue that the query reads; null if `complete` is false. */
    readonly own_tables: readonly string[] | null
  }
  /** Signed head of the log. */
  readonly head: string
  /** Proof for each earlier head that the log continues it. */
  readonly consistency: readonly { readonly size: number; readonly root: string; readonly proof: readonly string[] }[]
  /** Signed earlier heads with the reply of their time-stamp authority (RFC 3161), base64. */
  readonly time_stamps: readonly { readonly note: string; readonly reply: string }[]
  /** Journal entry whose state contains everything that the result reads, with its proof in the log. */
  readonly entry: {
    /** Position of the entry in the log, from 0. */
    readonly index: number
    readonly version: number
    /** Microseconds. */
    readonly committed_at: number
    /** Digest of the entry; null for an entry without one. */
    readonly sha256: string | null
    /** Root of the state tree. */
    readonly state: string
    readonly inclusion: readonly string[]
  }
  /** Proofs that lead from series, rules, registry tables and tries to the root of the state tree. */
  readonly state: ProvenMembers<ProvenMembers<object>>
}

/** Digests and size of a result. */
interface ResultDigests {
  readonly file_sha256: string
  /** Digest over all rows in their order. */
  readonly rows_sha256: string
  readonly rows: number
}

/** A result, with its columns. */
interface CertifiedResult extends ResultDigests {
  readonly columns: Columns
}

/** Look-ahead verdict of a certified query. */
interface CertifiedVerdict {
  /** `proved`, `tested`, `not proved`, `not asked`, or the verdict of the trials. */
  readonly verdict: string
  /** Number of cut-offs at which the query ran; 0 if only its plan was read. */
  readonly tested: number
  /** Reasons from the plan, a line each. */
  readonly reasons: readonly string[]
  /** Expression that prevents a proof; null if there is none. */
  readonly unproved: Obstacle | null
}

/** Members of a hash tree with the proof that leads from them to the root. */
type ProvenMembers<More extends object> = {
  /** Each member with its position, name and digest, and with the facts of `More`. */
  readonly members: readonly (More & { readonly index: number; readonly name: string; readonly value: string })[]
  readonly proof: readonly string[]
}

/** A certificate and its file. */
interface SignedCertificate {
  /** Content without the signature. */
  readonly told: Certificate
  /** Text of the file: the content, then its signature. */
  readonly text: string
}

/** Collects everything that a stamped result depends on, with the proofs that lead from it to the head of the log, and signs it. */
export async function certify({
  root,
  result,
  key,
  deps,
  figure,
  months,
  since,
  trials,
}: CertifyInput): Promise<SignedCertificate> {
  using ledger = await Ledger.open(root)
  await completeState(ledger, deps)
  const stamped = await loadProvedStamp(ledger, result)
  await refuseForgotten(ledger, stamped, result)
  const { note, source } = stamped
  const { query, variables, version } = note
  const digest = await sha256File(result)
  const { detail, at } = await readStamp(root, digest.slice(0, 16))
  // The state that the result was made from; where that is not the newest, and was whole, the journal tells it once more.
  using then = ledger.head().version === version ? null : await Ledger.inMemory(root, version).catch(() => null)
  const state = then !== null && isStateComplete(then) ? then : ledger
  using session = await openQuery(root, { ...pinnedOptions(source), wholePlans: true })
  const single = note.stress === undefined ? scriptAsSelect(query)?.sql : undefined
  const reads = await readsOf(session, single, liveFiles(ledger, { version }))
  const leaves = heldLeaves(ledger)
  const head = headNote(headOf(ledger), key)
  const tries = heldTries(state)
  const { version: newest, digest: sum, committed_at } = state.head()
  const entry = { index: heldLeaves(state).length - 1, version: newest, committed_at, sha256: sum }
  const holds = ({ head: { size, root: was } }: Pick<KeptHead, 'head'>): boolean =>
    treeRoot(leaves.slice(0, size)) === was
  if (!since.every(holds))
    throw usage('--since', { expected: 'a head of this history', got: 'another', next: 'run pitlake verify --head' })
  const stored = (await storedHeads(root)).filter(holds)
  const stamps = stored.flatMap(({ head: of, note: { text, signatures }, reply }) => {
    // As this key signed it, which is what was stamped.
    const own = { text, signatures: signatures.slice(0, 1) }
    return reply !== null && isSigned(own, key)
      ? [{ head: of, note: signedText(own), reply: reply.toString('base64') }]
      : []
  })
  const kept = new Map([...stored.slice(-16), ...stamps, ...since].map((one) => [one.head.size, one.head]))
  const older = [...kept.values()].filter(({ size }) => size > 0 && size < leaves.length)
  const told: Certificate = {
    pitlake_certificate: 1,
    algorithms: 'sha256 ed25519',
    public: publicText(key),
    made_by: { program: deps.program, engine: note.engine, stamped_by: note.program },
    query: { text: query, sha256: sha256(query), variables },
    knowledge: { version, as_of: variables['as_of'] ?? null, stamped_at: at },
    views: { script: note.script, catalogue: note.catalogue, text: await viewsOf(session, root, note) },
    ...(await resultOf(result, { file_sha256: digest, rows_sha256: note.result, rows: note.rows }, figure)),
    verdict: { ...(await verdictOf(session, single, await trials?.(note))), basis: await basisOf(session, reads) },
    stress: note.stress === undefined ? null : ((detail as { readonly verdict?: Json }).verdict ?? null),
    assumes: note.assumes ?? [],
    tries: {
      count: tries.length,
      named_in: tries.find((one) => one.sha256 === sha256(query) && one.version <= version)?.version ?? null,
    },
    // Null: nobody knows which, and no state tells of any.
    reads: { complete: reads.told, own_tables: reads.told ? [...reads.own].toSorted() : null },
    head: signedText(head),
    consistency: older.map((one) => ({ size: one.size, root: one.root, proof: consistencyProof(leaves, one.size) })),
    time_stamps: stamps.map(({ note, reply }) => ({ note, reply })),
    entry: { ...entry, state: heldRoot(state), inclusion: inclusionProof(leaves, entry.index) },
    state: stateOf(state, reads, months),
  }
  await storeHead(ledger, head, deps)
  return { told, text: signCertificate(told, key) }
}

/**
 * A certificate as a file: one JSON object, a key a line, whose last key is its signature: a signed note over the SHA-256
 * of all bytes before that key. No byte of it is free.
 */
function signCertificate(certificate: object, key: NoteKey): string {
  const lines = Object.entries(certificate).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  const body = `{\n${lines.join(',\n')}`
  const note = signedNote(key, `pitlake certificate\nsha256 ${hash('sha256', body)}\n`)
  return `${body},\n"signature": ${JSON.stringify(signedText(note))}\n}\n`
}

/** The text of every view and macro that the query names, as its stamp keeps them, by name; they name no others. */
async function viewsOf(
  session: Engine,
  root: string,
  { script, query }: StampNote,
): Promise<Readonly<Record<string, string>>> {
  const names = namesIn(await treesOf(session, query))
  const text = (await textOf(inLake(root, script))) ?? ''
  const sections = text.replaceAll(/^COMMENT ON [^\n]*;$\n?/gm, '').split(/^(?=-- \d\d_\w+\.sql$)/m)
  return Object.fromEntries(
    sections.flatMap((section): [string, string][] => {
      const name = /^CREATE OR REPLACE (?:VIEW|MACRO) ([\w."]+)/m.exec(section)?.[1]?.replaceAll('"', '')
      return name !== undefined && names.has(name.replace(/^.*\./, '')) ? [[name, section.trim()]] : []
    }),
  )
}

/** Look-ahead verdict of the query, from trials (`tried`) or from its plan alone. */
async function verdictOf(
  session: Engine,
  sql: string | undefined,
  tried: LookaheadProof | undefined,
): Promise<CertifiedVerdict> {
  const found = tried ?? (sql === undefined ? undefined : await argueFromPlan(session, { sql, ts: 'ts', labels: [] }))
  const untried = found === undefined ? 'not asked' : 'not proved'
  const verdict = found?.proved ? 'proved' : tried?.verdict === 'clean' ? 'tested' : (tried?.verdict ?? untried)
  return { verdict, tested: tried?.cutoffs ?? 0, reasons: found?.chain ?? [], unproved: found?.unproved ?? null }
}

/** How many points of the metrics that it reads are known by which basis. */
async function basisOf(session: Engine, { points }: QueryReads): Promise<Readonly<Record<string, number>>> {
  const metrics = [...new Set(points.flatMap((one) => [...one.metrics]))]
  const rows = `SELECT basis, count(*) AS n FROM points WHERE metric IN (SELECT unnest(${quoteList(metrics)})) GROUP BY ALL ORDER BY ALL`
  const found = metrics.length === 0 ? [] : await session.rows<{ basis: string; n: bigint }>(rows)
  return Object.fromEntries(found.map(({ basis, n }) => [basis, Number(n)]))
}

/** Columns and digests of a result, and the figure over its rows: a query of one row, every value as text. */
async function resultOf(
  path: string,
  digests: ResultDigests,
  sql: string | undefined,
): Promise<Pick<Certificate, 'result' | 'figure'>> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run(`CREATE TEMP TABLE result AS FROM ${parquet([path])}`)
  await engine.run('SET enable_external_access = false')
  const result = { ...digests, columns: await columnsOf(engine, 'result') }
  if (sql === undefined) return { result, figure: null }
  const [values, ...more] = await engine.rows(`SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (${sql}\n)`)
  if (values !== undefined && more.length === 0) return { result, figure: { sql, values } }
  throw usage('--figure', { expected: 'a query with one row over the table result', got: `${more.length} rows` })
}

/** Some members of a tree, each with its place and what else is told of it, and what leads from them to the root. */
function provenMembers<More extends object>(
  all: readonly Named[],
  more: (name: string) => More | undefined,
): ProvenMembers<More> {
  const members = all.flatMap(([name, value], index) => {
    const own = more(name)
    return own === undefined ? [] : [{ index, name, value, ...own }]
  })
  const indices = members.map(({ index }) => index)
  return { members, proof: rangeProof(namedLeaves(all), indices) }
}

/** The members of these names; of those that are not there the neighbours between which they would stand. */
function membersAround(all: readonly Named[], names: Iterable<string>): ReadonlySet<string> {
  const near = [...names].flatMap((name) => {
    const at = all.filter(([own]) => own < name).length
    return all[at]?.[0] === name ? all.slice(at, at + 1) : all.slice(Math.max(0, at - 1), at + 1)
  })
  return new Set(near.map(([own]) => own))
}

/** Proofs of every series, table and rule that the plan reads, and of the tries, or that there are none. */
function stateOf(
  ledger: Ledger,
  { told, points, tables }: QueryReads,
  months: boolean,
): ProvenMembers<ProvenMembers<object>> {
  const isRead = ({ metric, asset }: { readonly metric: string; readonly asset: string }): boolean =>
    !told || points.some(({ metrics, assets }) => metrics.has(metric) && (assets === null || assets.has(asset)))
  const series = new Map([...heldSeries(ledger)].filter(([, one]) => isRead(one)))
  const chains = months ? heldChains(ledger, [...series.keys()]) : undefined
  const metrics = new Set([...series.values()].map(({ metric }) => metric))
  const rules = (heldRules(ledger)?.rules ?? {}) as Readonly<Record<string, Json>>
  const groups = membersAround(heldMembers(ledger), ['rules', 'state'])
  const [ruled, tried] = [
    membersAround(heldMembers(ledger, 'rules'), metrics),
    membersAround(heldMembers(ledger, 'state'), ['tries']),
  ]
  const read = new Set([...tables].map(publishedName))
  const more: Readonly<Record<string, (name: string) => object | undefined>> = {
    rules: (name) => (ruled.has(name) ? { text: canonical(rules[name]) } : undefined),
    registry: (name) => (!told || read.has(name) ? {} : undefined),
    state: (name) =>
      tried.has(name) ? { ...(name === 'tries' && { text: canonical(heldState(ledger, name)) }) } : undefined,
  }
  const ofSeries = (id: string): object | undefined => {
    const one = series.get(id)
    if (one === undefined) return undefined
    const identity = [one.metric, one.asset, storedInterval(one), one.currency, one.exchange, one.network]
    return { series: identity, ...(chains && { months: chains.get(id) }) }
  }
  return provenMembers(heldMembers(ledger), (group) => {
    const all = heldMembers(ledger, group)
    const own = provenMembers(all, more[group] ?? ofSeries)
    if (own.members.length > 0) return own
    return !told || groups.has(group)
      ? provenMembers(all, (name) => (name === all[0]?.[0] ? {} : undefined))
      : undefined
  })
}
