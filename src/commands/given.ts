import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { LakeError, usage } from '../errors.ts'
import type { Deps } from './spec.ts'

/** The text of a file that the user names, `-` for standard input; `subject` is what named it. */
export function readGiven({ cwd }: Pick<Deps, 'cwd'>, file: string, expected: string, subject = file): string {
  try {
    return readFileSync(file === '-' ? 0 : resolve(cwd, file), 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw usage(subject, { expected, got: code === 'ENOENT' ? 'no such file' : (code ?? String(cause)), cause })
  }
}

/** The path of a stamped result that the user names. */
export function stampedPath({ cwd }: Pick<Deps, 'cwd'>, file: string): string {
  const path = resolve(cwd, file)
  if (existsSync(path)) return path
  throw usage(file, { expected: 'a stamped result', got: 'no such file' })
}

/** The error of a verdict on a file, null for a good one: undecided is unfinished, a bad one contradicts. */
export function judged(
  file: string,
  { verdict, reason }: { readonly verdict: string; readonly reason: string | null },
  { good, bad, next, command }: Readonly<Record<'good' | 'bad' | 'next' | 'command', string>>,
): LakeError | null {
  if (verdict === good) return null
  const got = reason ?? undefined
  const mend = `mend what the reason names, then run pitlake ${command} again`
  return verdict === 'undecided'
    ? new LakeError('incomplete', { subject: `${file} is undecided`, got, next: mend })
    : new LakeError('integrity', { subject: `${file} ${bad}`, got, next })
}
