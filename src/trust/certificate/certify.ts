import { hash } from 'node:crypto'
import { LakeError, usage } from '../../base/errors.ts'
import { headNote, headOf, type KeptHead, storedHeads, storeHead } from '../heads/head.ts'
import { type CommitDeps, sha256File } from '../../lake/ledger/commit.ts'
import { canonical, type Json, sha256 } from '../../lake/ledger/entry.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { linesOfLists, liveListsAt } from '../../lake/ledger/live-lists.ts'
import {
  storedLeaves,
  storedPreregistered,
  logHash,
  preregisteredLines,
  rulesByMetric,
  rulesLines,
} from '../../lake/ledger/log.ts'
import { readStamp, stampFile } from '../../lake/ledger/stamps.ts'
import type { AssumedRows } from '../lookahead/assumptions.ts'
import type { LookaheadProof } from '../lookahead/lookahead.ts'
import type { Obstacle } from '../lookahead/proof/values.ts'
import { argueFromPlan } from '../lookahead/proof/prove.ts'
import { linesDigest } from '../../base/merkle/leaf.ts'
import { isSigned, type NoteKey, publicText, signedNote, signedText } from '../../base/merkle/note.ts'
import { consistencyProof, inclusionProof, treeRoot } from '../../base/merkle/tree.ts'
import { openQuery, type SessionVariables, type VariableValue } from '../../query/lake.ts'
import { scriptAsSelect } from '../../query/script-as-select.ts'
import { loadProvedStamp, refuseForgotten } from '../results/stamp.ts'
import { pinnedOptions, type StampNote } from '../results/stamped-rows.ts'
import { Engine, quoteList, type Row } from '../../lake/store/engine.ts'
import { ctesIn, namesIn, nodesOf, treeOf, treesOf } from '../../query/parse-tree.ts'
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
  /** A query over the rows of the result, the table `result`. */
  readonly statistic?: string | undefined
  /** Heads that were kept elsewhere: the certificate leads from them to its head. */
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
  readonly stamp: StampSummary
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
  readonly statistic: { readonly sql: string; readonly values: Row } | null
  readonly verdict: CertifiedVerdict & { readonly basis: Readonly<Record<string, number>> }
  /** Verdict of the stress for a stamped statistic; null for the rows of a query. */
  readonly stress: Json
  /** Assumptions of the result. */
  readonly assumes: readonly AssumedRows[]
  readonly preregistered: {
    /** Preregistered queries by the stamped version, a line each: `hash version`. */
    readonly queries: readonly string[]
    /** Version in which this query was named; null if it was not named by the version that it read. */
    readonly named_in: number | null
  }
  readonly rules: {
    /** Hash of the availability rules of each metric, a line each: `metric hash`. */
    readonly lines: readonly string[]
    /** Rules of the metrics that the query reads, as JSON with sorted keys. */
    readonly text: Readonly<Record<string, string>>
  }
  readonly reads: {
    /** Whether the plan shows everything that the query reads. */
    readonly complete: boolean
    /** Metrics whose points it reads. */
    readonly metrics: readonly string[]
    /** Tables of the ledger and the catalogue that the query reads; null if `complete` is false. */
    readonly own_tables: readonly string[] | null
  }
  readonly live: {
    /** Hash of each live list of the stamped version, a line each: `table metric hash`. */
    readonly lines: readonly string[]
    /** Lists of the tables and metrics that the query reads, by name; a line for each file: path, hash, rows, label. */
    readonly lists: Readonly<Record<string, readonly string[]>>
  }
  /** Signed head of the log. */
  readonly head: string
  /** Proof for each earlier head that the log continues it. */
  readonly consistency: readonly { readonly size: number; readonly root: string; readonly proof: readonly string[] }[]
  /** Signed earlier heads with the reply of their time-stamp authority (RFC 3161), base64. */
  readonly time_stamps: readonly { readonly note: string; readonly reply: string }[]
  /** Leaf of the stamped version; its other facts are the hashes of `rules`, `preregistered` and `live`. */
  readonly leaf: {
    /** Position in the log, from 0. */
    readonly index: number
    /** Microseconds. */
    readonly committed_at: number
    /** Digest of the journal entry. */
    readonly entry: string
    readonly inclusion: readonly string[]
  }
}

/** Facts of the stamp's note in the lake, from which `knowledge` follows. */
interface StampSummary {
  /** Path of the note, relative to the lake. */
  readonly path: string
  /** Digest of the note's file. */
  readonly sha256: string
  readonly version: number
  /** Time when the result was stamped, microseconds. */
  readonly at: number
  /** Digest of the result file. */
  readonly digest: string
  readonly query_digest: string
  readonly variables: Json
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
  /** `proved`, `tested`, `not proved`, `no plan`, or the verdict of the trials. */
  readonly verdict: string
  /** Number of cut-offs at which the query ran; 0 if only its plan was read. */
  readonly tested: number
  /** Reasons from the plan, a line each. */
  readonly reasons: readonly string[]
  /** Expression that prevents a proof; null if there is none. */
  readonly unproved: Obstacle | null
}

/** A certificate and its file. */
interface SignedCertificate {
  /** Content without the signature. */
  readonly told: Certificate
  /** Text of the file: the content, then its signature. */
  readonly text: string
}

/**
 * Collects everything that a stamped result depends on, with the proofs that lead from it to the head of the log, and
 * signs it.
 */
export async function certify({
  root,
  result,
  key,
  deps,
  statistic,
  since,
  trials,
}: CertifyInput): Promise<SignedCertificate> {
  using ledger = await Ledger.open(root)
  const stamped = await loadProvedStamp(ledger, result)
  await refuseForgotten(ledger, stamped, result)
  const { note, source } = stamped
  const { query, variables, version } = note
  const digest = await sha256File(result)
  const { id, detail, at, query_digest } = await readStamp(root, digest.slice(0, 16))
  const lists = liveListsAt(ledger, version)
  using session = await openQuery(root, { ...pinnedOptions(source), wholePlans: true })
  const single = note.stress === undefined ? scriptAsSelect(query)?.sql : undefined
  const reads = await readsOf(session, single, liveFiles(ledger, { version }))
  const log = storedLeaves(ledger)
  const leaves = log.map(logHash)
  const index = log.findIndex((leaf) => leaf.version === version)
  const leaf = log[index]
  const lines = linesOfLists(lists)
  const rules = rulesByMetric(ledger, version)
  const preregistered = storedPreregistered(ledger, version)
  if (leaf === undefined || linesDigest(lines) !== leaf.live || linesDigest(rulesLines(rules)) !== leaf.rules)
    throw new LakeError('integrity', {
      subject: `version ${version}`,
      expected: 'the files and rules that its leaf of the log names',
      got: 'others',
      next: 'run pitlake verify --head, and pitlake doctor --rebuild-ledger',
    })
  const head = headNote(headOf(ledger), key)
  const holds = ({ head: { size, root: was } }: Pick<KeptHead, 'head'>): boolean =>
    treeRoot(leaves.slice(0, size)) === was
  if (!since.every(holds))
    throw usage('--since', { expected: 'a head of this history', got: 'another', next: 'run pitlake verify --head' })
  const stored = (await storedHeads(root)).filter(holds)
  const stamps = stored.flatMap(({ head: of, note: { text, signatures }, reply }) => {
    // As this key signed it, which is what was stamped.
    const ownNote = { text, signatures: signatures.slice(0, 1) }
    return reply !== null && isSigned(ownNote, key)
      ? [{ head: of, note: signedText(ownNote), reply: reply.toString('base64') }]
      : []
  })
  const headsBySize = new Map(
    [...stored.slice(-16), ...stamps, ...since].map((stored) => [stored.head.size, stored.head]),
  )
  const older = [...headsBySize.values()].filter(({ size }) => size > 0 && size < leaves.length)
  const certificate: Certificate = {
    pitlake_certificate: 2,
    algorithms: 'sha256 ed25519',
    public: publicText(key),
    made_by: { program: deps.program, engine: note.engine, stamped_by: note.program },
    query: { text: query, sha256: sha256(query), variables },
    knowledge: { version, as_of: variables['as_of'] ?? null, stamped_at: at },
    stamp: {
      path: stampFile(id),
      sha256: await sha256File(inLake(root, stampFile(id))),
      version,
      at,
      digest,
      query_digest,
      variables: (detail as { readonly variables?: Json }).variables ?? {},
    },
    views: { script: note.script, catalogue: note.catalogue, text: await viewsOf(session, root, note) },
    ...(await resultOf(result, { file_sha256: digest, rows_sha256: note.result, rows: note.rows }, statistic)),
    verdict: { ...(await verdictOf(session, single, await trials?.(note))), basis: await basisOf(session, reads) },
    stress: note.stress === undefined ? null : ((detail as { readonly verdict?: Json }).verdict ?? null),
    assumes: note.assumes ?? [],
    preregistered: {
      queries: preregisteredLines(preregistered),
      named_in: preregistered.find((one) => one.sha256 === sha256(query))?.version ?? null,
    },
    rules: { lines: rulesLines(rules), text: textsOf(rules, reads.metrics) },
    // Null: unknown.
    reads: {
      complete: reads.complete,
      metrics: [...reads.metrics].toSorted(),
      own_tables: reads.complete ? [...reads.ownTables].toSorted() : null,
    },
    live: { lines, lists: Object.fromEntries([...lists].filter(([name]) => reads.lists.has(name))) },
    head: signedText(head),
    consistency: older.map((checkpoint) => ({
      size: checkpoint.size,
      root: checkpoint.root,
      proof: consistencyProof(leaves, checkpoint.size),
    })),
    time_stamps: stamps.map(({ note, reply }) => ({ note, reply })),
    leaf: {
      index,
      committed_at: leaf.committed_at,
      entry: leaf.entry,
      inclusion: inclusionProof(leaves, index),
    },
  }
  await storeHead(ledger, head, deps)
  return { told: certificate, text: signCertificate(certificate, key) }
}

/**
 * Formats a certificate as a file: one JSON object, a key a line, whose last key is its signature: a signed note over
 * the SHA-256 of all bytes before that key. No byte of it is free.
 */
function signCertificate(certificate: object, key: NoteKey): string {
  const lines = Object.entries(certificate).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  const body = `{\n${lines.join(',\n')}`
  const note = signedNote(key, `pitlake certificate\nsha256 ${hash('sha256', body)}\n`)
  return `${body},\n"signature": ${JSON.stringify(signedText(note))}\n}\n`
}

/**
 * Reads the text of every view and macro that the query names, as its stamp keeps them, by name; they name no others.
 */
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

/** Computes the look-ahead verdict of the query, from trials (`tried`) or from its plan alone. */
async function verdictOf(
  session: Engine,
  sql: string | undefined,
  tried: LookaheadProof | undefined,
): Promise<CertifiedVerdict> {
  const found = tried ?? (sql === undefined ? undefined : await argueFromPlan(session, { sql, ts: 'ts', labels: [] }))
  const untried = found === undefined ? 'no plan' : 'not proved'
  const verdict = found?.proved ? 'proved' : tried?.verdict === 'clean' ? 'tested' : (tried?.verdict ?? untried)
  return { verdict, tested: tried?.cutoffs ?? 0, reasons: found?.chain ?? [], unproved: found?.unproved ?? null }
}

/** Counts the points of the metrics that it reads, by basis. */
async function basisOf(session: Engine, { metrics }: QueryReads): Promise<Readonly<Record<string, number>>> {
  const rows =
    `SELECT basis, count(*) AS n FROM points WHERE metric IN (SELECT unnest(${quoteList([...metrics])})) GROUP ` +
    'BY ALL ORDER BY ALL'
  const found = metrics.size === 0 ? [] : await session.rows<{ basis: string; n: bigint }>(rows)
  return Object.fromEntries(found.map(({ basis, n }) => [basis, Number(n)]))
}

/**
 * Computes columns and digests of a result, and the statistic over its rows: a query of one row, every value as text.
 */
async function resultOf(
  path: string,
  digests: ResultDigests,
  sql: string | undefined,
): Promise<Pick<Certificate, 'result' | 'statistic'>> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run(`CREATE TEMP TABLE result AS FROM ${parquet([path])}`)
  await engine.run('SET enable_external_access = false')
  const result = { ...digests, columns: await columnsOf(engine, 'result') }
  if (sql === undefined) return { result, statistic: null }
  const why = await otherRead(engine, sql)
  if (why !== undefined)
    throw usage('--statistic', { expected: 'one SELECT that reads the table result and nothing else', got: why })
  const [values, ...more] = await engine.rows(`SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (${sql}\n)`)
  if (values !== undefined && more.length === 0) return { result, statistic: { sql, values } }
  throw usage('--statistic', { expected: 'a query with one row over the table result', got: `${more.length} rows` })
}

/**
 * Explains why a statistic does not read the table `result` and nothing else; undefined if it does. Both checkers judge
 * alike.
 */
async function otherRead(engine: Engine, sql: string): Promise<string | undefined> {
  const trees = await treeOf(engine, sql)
  if (trees.length !== 1) return 'no single SELECT'
  const nodes = [...nodesOf(trees)]
  const ctes = new Set(ctesIn(trees))
  if (ctes.has('result')) return 'a WITH that names its own result'
  if (nodes.some(({ type }) => type === 'EXPRESSION_LIST')) return 'VALUES'
  const functions = nodes.flatMap(({ type, function: call }) =>
    type === 'TABLE_FUNCTION' ? [String((call as { readonly function_name?: unknown }).function_name)] : [],
  )
  const strange = functions.find((name) => name !== 'unnest')
  if (strange !== undefined) return strange
  const tables = nodes.filter(({ type }) => type === 'BASE_TABLE')
  const names = tables.map((table) =>
    [table['catalog_name'], table['schema_name'], table['table_name']].filter(Boolean).join('.'),
  )
  const other = names.find((name) => name.toLowerCase() !== 'result' && !ctes.has(name.toLowerCase()))
  if (other !== undefined) return other
  return names.some((name) => name.toLowerCase() === 'result') ? undefined : 'no table'
}

/** Rules of the metrics that have any, as JSON with sorted keys. */
function textsOf(rules: Readonly<Record<string, Json>>, metrics: ReadonlySet<string>): Record<string, string> {
  const ruledMetrics = [...metrics].toSorted().filter((metric) => rules[metric] !== undefined)
  return Object.fromEntries(ruledMetrics.map((metric) => [metric, canonical(rules[metric])]))
}
