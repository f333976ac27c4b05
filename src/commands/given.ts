import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { LakeError, usage } from '../errors.ts'

/** The text of a file that the user names, `-` for standard input; `subject` is what named it. */
export function readGiven(cwd: string, file: string, expected: string, subject = file): string {
  try {
    return readFileSync(file === '-' ? 0 : resolve(cwd, file), 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw usage(subject, { expected, got: code === 'ENOENT' ? 'no such file' : (code ?? String(cause)), cause })
  }
}

/** The path of a stamped result that the user names. */
export function stampedPath(cwd: string, file: string): string {
  const path = resolve(cwd, file)
  if (existsSync(path)) return path
  throw usage(file, { expected: 'a stamped result', got: 'no such file' })
}

/** What a command that judges a file ends with where it is not well: the words and the advice of its verdict. */
interface Verdict {
  readonly subject: string
  readonly next: string
}

/** The error of a verdict on a file, null for a good one: undecided is unfinished, a bad one contradicts. */
export function judged(
  file: string,
  { verdict, reason }: { readonly verdict: string; readonly reason: string | null },
  { good, bad, command }: { readonly good: string; readonly bad: Verdict; readonly command: string },
): LakeError | null {
  if (verdict === good) return null
  const got = reason ?? undefined
  const again = `then run pitlake ${command} again`
  if (verdict === 'undecided')
    return new LakeError('incomplete', {
      subject: `${file} is undecided`,
      got,
      next: `mend what the reason names, ${again}`,
    })
  return new LakeError('integrity', { subject: `${file} ${bad.subject}`, got, next: bad.next })
}
