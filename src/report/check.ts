import type { Standing } from './page/standing.ts'
import { percent, whole } from './page/words.ts'

const checkCodes = { integrity: 4, stale: 6, look: 6 } as const

/** The judgement in one line: the gravest reason with the command to type. */
export function check({ reasons, version, coverage }: Standing): { readonly line: string; readonly code: number } {
  for (const word of ['integrity', 'stale', 'look'] as const) {
    const own = reasons.filter((reason) => reason.word === word)
    const [first] = own
    if (!first) continue
    const others = reasons.filter((reason) => reason.word !== null).length - 1
    const more = others === 0 ? '' : ` (and ${others} more)`
    return { line: `${word}: ${first.text}${more}; ${first.next ?? 'pitlake status'}\n`, code: checkCodes[word] }
  }
  return {
    line: `trusted: version ${whole(version)}, ${percent(coverage.held, coverage.due)} of what is due\n`,
    code: 0,
  }
}
