/** The outcomes of a run other than success, named after the exit codes. */
export type ErrorKind = 'unexpected' | 'usage' | 'unauthorised' | 'integrity' | 'stopped' | 'incomplete' | 'busy'

const exitCodes = {
  unexpected: 1,
  usage: 2,
  unauthorised: 3,
  integrity: 4,
  stopped: 5,
  incomplete: 6,
  busy: 7,
} as const satisfies Readonly<Record<ErrorKind, number>>

/** Exit code of a process that did not complete everything; 0 is the success code. */
type ExitCode = (typeof exitCodes)[ErrorKind]

/** The meaning of each exit code, for people. */
export const exitMeanings: Readonly<Record<ExitCode | 0, string>> = {
  0: 'done',
  1: 'unexpected',
  2: 'usage or configuration',
  3: 'not authorised',
  4: 'integrity: violation, damage, leak, contradicted rule, replay differs',
  5: 'stopped early, resumable',
  6: 'finished, needs attention: failed windows, undecided, stale, memory, disk',
  7: 'another job is running',
}

/** Exit codes in order of gravity: of several, a run ends with the first that occurred, or with 0 if none did. */
const byWeight: readonly number[] = [4, 3, 1, 2, 6, 5, 7]

/** Returns the exit code of a run with several results: that of the gravest; 0 for none. */
export function gravest(codes: readonly number[]): number {
  return byWeight.find((code) => codes.includes(code)) ?? codes.find((code) => code !== 0) ?? 0
}

/** The parts of a message: its subject, the expected value, the actual value, the command to type next. */
export interface Complaint {
  readonly subject: string
  readonly expected?: string | undefined
  readonly got?: string | undefined
  readonly next?: string | undefined
  readonly cause?: unknown
}

/** Adds one complaint to those that are reported together. */
export type Complain = (subject: string, expected: string, got: string, next?: string) => void

/** The endings after which a person has to do something about the lake: their messages name the next command. */
export type AdvisedKind = 'integrity' | 'incomplete' | 'busy'
export type Advised = Complaint & { readonly next: string }

/**
 * The one error class. Its message has a line for each complaint: the expected value, the given value and a remedy.
 * `kind` is the kind of the exit code, such as `usage` or `stopped`.
 */
export class LakeError extends Error {
  readonly kind: ErrorKind
  readonly complaints: readonly Complaint[]

  constructor(kind: ErrorKind, complaint: Advised | readonly Advised[])
  constructor(kind: Exclude<ErrorKind, AdvisedKind>, complaint: Complaint | readonly Complaint[])
  constructor(kind: ErrorKind, complaint: Complaint | readonly Complaint[]) {
    const all: readonly Complaint[] = Array.isArray(complaint) ? complaint : [complaint as Complaint]
    super(all.map(sentence).join('\n'), { cause: all[0]?.cause })
    this.name = 'LakeError'
    this.kind = kind
    this.complaints = all
  }
}

/**
 * Combines the errors of a run into one, with the kind of the gravest and every complaint, gravest first; null for
 * none.
 */
export function gravestOf(found: readonly (LakeError | null)[]): LakeError | null {
  const errors = found.filter((error) => error !== null)
  const [first, ...furtherErrors] = errors.toSorted(
    (a, b) => byWeight.indexOf(exitCode(a)) - byWeight.indexOf(exitCode(b)),
  )
  if (!first || furtherErrors.length === 0) return first ?? null
  const all = [first, ...furtherErrors].flatMap(({ complaints }) => complaints)
  return new LakeError(first.kind, all as readonly Advised[])
}

/** Builds the usual error of a command: exit code 2, nothing written. */
export function usage(
  subject: string,
  parts: { expected?: string | undefined; got?: string | undefined; next?: string | undefined; cause?: unknown } = {},
): LakeError {
  return new LakeError('usage', { subject, ...parts })
}

/** Builds the error about a file or folder of the user that the system does not allow pitlake to read. */
export function unreadable(subject: string, expected: string, cause: unknown): LakeError {
  const { code } = cause as { readonly code?: string }
  return usage(subject, { expected, got: code ?? String(cause), cause })
}

/** Returns the process exit code for a thrown value; anything that is not a LakeError counts as unexpected. */
export function exitCode(error: unknown): number {
  return error instanceof LakeError ? exitCodes[error.kind] : exitCodes.unexpected
}

/** Describes the problem without a remedy: `subject: expected …, got …`, or without an expected value `subject: …`. */
export function reasonIn(complaint: Complaint): string {
  const { subject, expected, got } = complaint
  if (expected === undefined) return got === undefined ? subject : `${subject}: ${got}`
  return got === undefined ? `${subject}: expected ${expected}` : `${subject}: expected ${expected}, got ${got}`
}

/** Formats a complaint as one line: the reason, then the command to type next. */
function sentence(complaint: Complaint): string {
  const body = reasonIn(complaint)
  const line = complaint.next === undefined ? body : `${body}; ${complaint.next}`
  return line.replaceAll(/\s*\n\s*/g, ' ')
}
