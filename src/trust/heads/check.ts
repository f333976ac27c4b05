import { usage } from '../../base/errors.ts'
import { bytesProblem, commit, type CommitDeps } from '../../lake/ledger/commit.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import { listJournal, readEntry } from '../../lake/ledger/journal.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { liveListsAt, liveListsDigest } from '../../lake/ledger/live-lists.ts'
import { storedLeaves, logHash, rulesByMetric, rulesLines } from '../../lake/ledger/log.ts'
import { type Checkpoint, isSigned, type NoteKey } from '../../base/merkle/note.ts'
import { linesDigest, type LogLeaf } from '../../base/merkle/leaf.ts'
import { treeRoot } from '../../base/merkle/tree.ts'
import { headOf, storedLog, type KeptHead, originOf, storedHeads } from './head.ts'

/** A range of versions, both included. */
export interface VersionRange {
  readonly from: number
  readonly to: number
}

/** Result of comparing a lake with a head. */
export interface HeadCheck {
  /** `unsigned`, `damaged`, `behind`, `fork` or `extends`. */
  readonly verdict: string
  readonly head: Checkpoint
  /** Number of entries in the log of the lake. */
  readonly size: number
  /** Number of entries of the head that the lake lacks. */
  readonly behind: number
  /** Versions among which the first differs from the history of the head; null if none differs. */
  readonly first: VersionRange | null
  /** Whether the key signed the head; null if no key was given. */
  readonly signed: boolean | null
  /** The verdict in words. */
  readonly reason: string
}

/**
 * Compares a lake with a head that was kept elsewhere: log, journal, live lists and the bytes of its files
 * (docs/explanation/proof.md). `first` is the range of versions with the first difference from the head.
 */
export async function checkHead(
  ledger: Ledger,
  { head, note }: KeptHead,
  key: NoteKey | undefined,
): Promise<HeadCheck> {
  const { lake } = ledger.head()
  const start = storedLog(ledger)
  const origins = Array.from({ length: start?.number ?? 1 }, (_, n) => originOf(lake ?? '', n + 1))
  if (!origins.includes(head.origin))
    throw usage('--head', {
      expected: `a head of ${origins.at(-1)}`,
      got: `one of ${head.origin}`,
      next: 'name the lake of this head with --data',
    })
  const log = storedLeaves(ledger)
  const leaves = log.map(logHash)
  const size = leaves.length
  const behind = Math.max(0, head.size - size)
  const signed = key === undefined ? null : isSigned(note, key)
  const is = (verdict: string, reason: string, first: VersionRange | null = null): HeadCheck => {
    return { verdict, head, size, behind, first, signed, reason }
  }
  if (signed === false) return is('unsigned', 'the head bears no sound signature of the key')
  const exchanged = await exchangedEntry(ledger, log)
  const only = exchanged === undefined ? null : { from: exchanged, to: exchanged }
  if (only !== null) return is('damaged', `the entry of version ${only.from} is not the one that was committed`, only)
  if (behind > 0)
    return is('behind', `the lake is behind by ${behind}: an older copy, or cut; it forks with its next commit`)
  if (treeRoot(leaves.slice(0, head.size)) !== head.root) {
    const first = await narrowDifference(ledger.root, leaves, head, key)
    const begun = start === undefined ? '' : `; the lake began a new log behind version ${start.size} (--adopt)`
    const where = first.from === first.to ? `version ${first.from}` : `a version from ${first.from} to ${first.to}`
    return is('fork', `another history than that of the head from ${where} on${begun}`, first)
  }
  const damage = await damageOf(ledger, log.at(-1))
  if (damage !== undefined) return is('damaged', damage)
  return is('extends', `the lake extends the head: ${head.size} entries stand, ${size - head.size} came since`)
}

/** Finds the first entry of the journal whose leaf is not the one in the log. */
async function exchangedEntry(ledger: Ledger, log: readonly LogLeaf[]): Promise<number | undefined> {
  const { version: newest } = ledger.head()
  const leaves = new Map(log.map((leaf) => [leaf.version, leaf]))
  for (const version of (await listJournal(ledger.root)).entries.filter((version) => version <= newest)) {
    const { entry, digest } = await readEntry(ledger.root, version)
    const leaf = leaves.get(version)
    if (leaf?.entry !== digest || leaf.committed_at !== entry.committed_at) return version
  }
  return undefined
}

/** Finds the versions between which a history leaves that of a head: stored heads of that history narrow it down. */
async function narrowDifference(
  root: string,
  leaves: readonly string[],
  of: Checkpoint,
  key: NoteKey | undefined,
): Promise<VersionRange> {
  const { origin, size } = of
  let from = 1
  let to = size
  for (const { head, note } of await storedHeads(root)) {
    if (head.origin !== origin || head.size > size || (key && !isSigned(note, key))) continue
    if (treeRoot(leaves.slice(0, head.size)) === head.root) from = Math.max(from, head.size + 1)
    else to = Math.min(to, head.size)
  }
  return { from: Math.min(from, to), to }
}

/** Finds where the lake differs from the newest leaf of its log: its live lists, its rules, or the bytes of a file. */
export async function damageOf(ledger: Ledger, leaf = storedLeaves(ledger).at(-1)): Promise<string | undefined> {
  if (leaf === undefined) return undefined
  const { version } = leaf
  if (liveListsDigest(liveListsAt(ledger, version)) !== leaf.live)
    return `the ledger does not list the files of version ${version}`
  if (linesDigest(rulesLines(rulesByMetric(ledger))) !== leaf.rules)
    return `the ledger does not have the rules of version ${version}`
  for (const file of liveFiles(ledger)) {
    const problem = await bytesProblem(ledger.root, file)
    if (problem) return `${problem.path}: ${problem.found}`
  }
  return undefined
}

/** Begins a new log where the one of a head is not that of the lake any more: heads are named otherwise from now on. */
export async function adoptLog(ledger: Ledger, { head }: KeptHead, deps: CommitDeps): Promise<Checkpoint> {
  const { provider, version } = ledger.head()
  if (provider === null)
    throw usage('--adopt', {
      expected: 'a lake with at least one version',
      got: 'an empty one',
      next: 'run pitlake fetch or pitlake import first',
    })
  const log = { ...head, number: (storedLog(ledger)?.number ?? 1) + 1, size: Math.min(head.size, version) }
  await commit(ledger, { job: 'adopt log', run: `adopt-log-${version + 1}`, provider, state: { log } }, deps)
  return headOf(ledger)
}
