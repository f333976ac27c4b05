import { leafText, linesDigest, type LogLeaf } from '../../base/merkle/leaf.ts'
import { leafHash } from '../../base/merkle/tree.ts'
import { listOf, shape, text, wholeNumber } from '../../base/value-checks.ts'
import { canonical, type Entry, type Json, sha256 } from './entry.ts'
import { checkedValue, type Index, parseCell } from './index-rows.ts'
import { liveLines, sortedByBytes } from './live-lists.ts'

/** Name of the piece of state that lists the preregistered queries. */
export const preregisteredKey = 'preregistered'

const preregisteredShape = shape({ queries: listOf(shape({ sha256: text, version: wholeNumber })) })

/** A query that was named before its result was seen. */
export interface PreregisteredQuery {
  /** SHA-256 of its text. */
  readonly sha256: string
  /** Version of the lake that names it. */
  readonly version: number
}

/** Queries that were named before their results were seen, the earliest first; with a version those that it knew. */
export function storedPreregistered(index: Index, version = Number.POSITIVE_INFINITY): readonly PreregisteredQuery[] {
  const row = index.statement('SELECT value FROM state WHERE key = ?').get(preregisteredKey)
  if (row === undefined) return []
  const { queries } = checkedValue(preregisteredShape, parseCell(row['value'], preregisteredKey), preregisteredKey)
  return queries.filter((preregistered) => preregistered.version <= version)
}

/** Formats preregistered queries as lines of the log: `hash version`. */
export function preregisteredLines(queries: readonly PreregisteredQuery[]): string[] {
  return queries.map(({ sha256: digest, version }) => `${digest} ${version}`)
}

/** Availability rules of each metric. */
export type MetricRules = Readonly<Record<string, Json>>

/** Reads the rules in force at a version (the newest by default), by metric; empty before the first. */
export function rulesByMetric(index: Index, version = Number.MAX_SAFE_INTEGER): MetricRules {
  const newest = index.statement('SELECT rules FROM rules WHERE version <= ? ORDER BY version DESC LIMIT 1')
  const row = newest.get(version)
  return row === undefined ? {} : (parseCell(row['rules'], 'rules') as MetricRules)
}

/** Formats availability rules as lines of the log, sorted by metric: `metric hash`. */
export function rulesLines(rules: MetricRules): string[] {
  const lines = Object.entries(rules).map(([metric, rule]) => `${metric} ${sha256(canonical(rule))}`)
  return sortedByBytes(lines)
}

/** Marker in the index for a digest that equals that of the version before; rules seldom change. */
const asBefore = '='

/**
 * Builds the leaf of an entry as the index stores it: commit time and digests. The caller has applied the rest of the
 * entry.
 */
export function storedLeaf(index: Index, { version, committed_at, rules, state, files }: Entry): string {
  const isFirst = index.statement('SELECT 1 FROM versions WHERE version = ?').get(version - 1) === undefined
  const unless = (isSame: boolean, digest: () => string): string => (isSame && !isFirst ? asBefore : digest())
  const digests = [
    unless(rules === null, () => linesDigest(rulesLines(rulesByMetric(index)))),
    unless(state[preregisteredKey] === undefined, () => linesDigest(preregisteredLines(storedPreregistered(index)))),
    unless(files.add.length + files.remove.length === 0, () => linesDigest(liveLines(index))),
  ]
  return `${committed_at} ${digests.join(' ')}`
}

/** Reads every leaf of the log, the first version first. */
export function storedLeaves(index: Index): LogLeaf[] {
  const rows = index.statement('SELECT version, digest, leaf FROM versions ORDER BY version').all()
  let before: readonly string[] = []
  return rows.map(({ version, digest, leaf }) => {
    const [committed_at, ...digests] = String(leaf).split(' ')
    before = digests.map((digest, n) => (digest === asBefore ? (before[n] ?? '') : digest))
    const [rules = '', preregistered = '', live = ''] = before
    const entry = String(digest)
    return { version: Number(version), committed_at: Number(committed_at), entry, rules, preregistered, live }
  })
}

/** Computes the hash of a leaf in the log. */
export function logHash(leaf: LogLeaf): string {
  return leafHash(leafText(leaf))
}

/** Hashes of all leaves of the log, the first version first. */
export function logHashes(index: Index): string[] {
  return storedLeaves(index).map(logHash)
}
