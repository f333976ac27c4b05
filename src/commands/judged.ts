import { LakeError } from '../errors.ts'

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
