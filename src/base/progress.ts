/** Where a job reports its progress. */
export interface ProgressReporter {
  /** Unix milliseconds. */
  readonly now: () => number
  readonly stderr: (text: string) => void
  /** Shows one line on stderr in place of the last live one; the empty text clears it. For terminals only. */
  readonly live: (text: string) => void
  /** Whether stderr is a terminal that may show colours and progress. */
  readonly isTerminal: boolean
}

/** How often a line is shown, in milliseconds: the live one on a terminal, plain ones elsewhere. */
const liveMs = 100
const plainMs = 5_000
const lineWidth = 118

/** One line that passes on a terminal, else a plain line every few seconds, among lines that stay. */
export function passingLine({ now, stderr, live, isTerminal }: ProgressReporter) {
  let shownAt = now()
  let isLive = false
  return {
    /** A line that stays. */
    say: (line: string): void => {
      if (isLive) live('')
      stderr(`${line}\n`)
      isLive = false
    },
    /** A line that passes, unless one was shown a moment ago. */
    show: (line: () => string, forced: boolean): void => {
      if (!forced && now() - shownAt < (isTerminal ? liveMs : plainMs)) return
      if (isTerminal) live(line().slice(0, lineWidth))
      else stderr(`${line()}\n`)
      isLive = isTerminal
      shownAt = now()
    },
    end: (): void => void (isLive && stderr('\n')),
  }
}
