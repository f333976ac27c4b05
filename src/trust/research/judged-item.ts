import { leakSentence } from '../lookahead/sentence.ts'
import type { LookaheadProof } from '../lookahead/lookahead.ts'
import type { ResearchItem } from './research-items.ts'

/** Verdict on an item of a research repository. */
export type ItemVerdict = 'leak' | 'undecided' | 'not checked' | 'clean' | 'skipped'

/** Findings of a proof, in the form in which they are stored for later runs. */
export interface StoredVerdict {
  /**
   * `leak`, `undecided` (no verdict is possible), `not checked` (Python is missing), `clean` or `skipped` (not a
   * query).
   */
  readonly verdict: ItemVerdict
  /** Why; for a leak the likely cause. Null if there is nothing to report. */
  readonly reason: string | null
  /** The first row that used the future, as a sentence; null without a leak. */
  readonly leak: string | null
  /** Whether the plan proves the verdict for every lake. */
  readonly proved: boolean
  /** Data on which a leak depends. */
  readonly depends_on: readonly string[]
}

/** Verdict on one query, cell or function, with its place. */
export interface JudgedItem extends StoredVerdict {
  /** Path of the file, as it was named or found. */
  readonly file: string
  /** Line at which the item begins, counted from 1. */
  readonly line: number
  /** `query`, `cell`, `function`, or `file` if there is no item in the file. */
  readonly kind: ResearchItem['kind']
  /** Name of the function, or `cell 3`; null for a whole file. */
  readonly name: string | null
  /** Whether an earlier run found the verdict for the same text, lake and program. */
  readonly cached: boolean
}

/** Document of `lookahead` over several files. */
export interface ResearchReport {
  /** The gravest verdict: `leak`, else `undecided`, else `clean`. */
  readonly verdict: 'leak' | 'undecided' | 'clean'
  /** Number of items by verdict. */
  readonly counts: Readonly<Record<ItemVerdict, number>>
  /** Number of verdicts from earlier runs. */
  readonly cached: number
  /** Each query, cell, function, and file without any of them. */
  readonly items: readonly JudgedItem[]
}

/** Extracts from a proof what is stored. */
export function storedVerdict({ verdict, reason, differences, proved, depends_on }: LookaheadProof): StoredVerdict {
  const [first] = differences
  const leak = verdict === 'leak' && first !== undefined ? leakSentence(first) : null
  return { verdict, reason, leak, proved, depends_on }
}

/** Builds a verdict without a proof. */
export function plainVerdict(verdict: ItemVerdict, reason: string): StoredVerdict {
  return { verdict, reason, leak: null, proved: false, depends_on: [] }
}

/** Places a verdict at its item. */
export function judgedItem({ file, line, kind, name }: ResearchItem, found: StoredVerdict, cached = false): JudgedItem {
  return { file, line, kind, name, ...found, cached }
}

/** Builds the report over all items. */
export function researchReport(items: readonly JudgedItem[]): ResearchReport {
  const count = (verdict: ItemVerdict): number => items.filter((item) => item.verdict === verdict).length
  const counts = {
    leak: count('leak'),
    undecided: count('undecided'),
    'not checked': count('not checked'),
    clean: count('clean'),
    skipped: count('skipped'),
  }
  const open = counts.undecided + counts['not checked']
  const verdict = counts.leak > 0 ? 'leak' : open > 0 ? 'undecided' : 'clean'
  return { verdict, counts, cached: items.filter((item) => item.cached).length, items }
}
