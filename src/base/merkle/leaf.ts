import { hash } from 'node:crypto'

/** Leaf of the log: the facts of one version. All hashes are SHA-256 in hex; those of lists are `linesDigest`. */
export interface LogLeaf {
  readonly version: number
  /** Commit time in microseconds, as in the journal entry. */
  readonly committed_at: number
  /** Hash of the journal entry. */
  readonly entry: string
  /** Hash of the availability rules in force, a line for each metric: `metric hash`. */
  readonly rules: string
  /** Hash of the preregistered queries, a line each: `hash version`. */
  readonly preregistered: string
  /** Hash of the live lists after the entry, a line each: `table metric hash`. */
  readonly live: string
}

/** Computes the SHA-256 of lines, each followed by a line feed. */
export function linesDigest(lines: readonly string[]): string {
  return hash('sha256', lines.map((line) => `${line}\n`).join(''))
}

/** Formats the text of a leaf, which the log hashes. */
export function leafText({ version, committed_at, entry, rules, preregistered, live }: LogLeaf): string {
  const facts = { version, committed_at, entry, rules, preregistered, live }
  return `pitlake version\n${Object.entries(facts)
    .map(([name, value]) => `${name} ${value}\n`)
    .join('')}`
}
