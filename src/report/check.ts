import type { Reason, Standing } from './page/standing.ts'
import { percent, whole } from '../words/figures.ts'
import { restsOn } from './trust.ts'

const checkCodes = { integrity: 4, stale: 6, look: 6 } as const
const gravest = ['integrity', 'stale', 'look'] as const

/** What is judged: the reasons that are no mere remark, the gravest first. */
export function judgedReasons(reasons: readonly Reason[]): readonly Reason[] {
  return gravest.flatMap((word) => reasons.filter((reason) => reason.word === word))
}

/** Remarks that are told all the same: data that are missing. */
const missing: readonly Reason['kind'][] = ['gaps', 'begins']

/** The judgement: a line for each kind of reason, the gravest first, with the command to type; one where all is well. */
export function check(standing: Standing): { readonly lines: readonly string[]; readonly code: number } {
  const judged = judgedReasons(standing.reasons)
  const notes = standing.reasons
    .filter(({ level, kind }) => level === 'note' && missing.includes(kind))
    .map(({ text, next }) => `note: ${text}; ${next ?? 'pitlake status'}`)
  const [first] = judged
  if (!first?.word) {
    const { version, coverage } = standing
    const share = percent(coverage.held, coverage.due)
    const { against, looked } = restsOn(standing)
    const line = `trusted: version ${whole(version)}, ${share} of what is due; ${against}; ${looked}`
    return { lines: [line, ...notes], code: 0 }
  }
  const lines = judged.map(({ word, text, since, next }) => {
    const oldest = since === null ? '' : ` (since ${since.slice(0, 16)}Z)`
    return `${word}: ${text}${oldest}; ${next ?? 'pitlake status'}`
  })
  return { lines: [...lines, ...notes], code: checkCodes[first.word] }
}
