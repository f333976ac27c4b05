/** The outputs to which a job reports its progress. */
export interface ProgressReporter {
  /** Returns the current time, Unix milliseconds. */
  readonly now: () => number
  readonly stderr: (text: string) => void
  /** Shows one line on stderr in place of the last live one; the empty text clears it. For terminals only. */
  readonly live: (text: string) => void
  /** Whether stderr is a terminal that may show colours and progress. */
  readonly isTerminal: boolean
}

/** Shortest time between two lines, in milliseconds: live ones on a terminal, plain ones elsewhere. */
const liveMs = 100
const plainMs = 5_000
const lineWidth = 118

/**
 * Cuts a live line so that it fits into the terminal: a line that wraps could not be replaced by the next one. A
 * terminal without a known width counts as wide.
 */
export function fitLive(line: string, columns: number | undefined): string {
  return line.slice(0, Math.min(lineWidth, (columns || lineWidth + 1) - 1))
}

/**
 * Creates a line of progress that is replaced on a terminal, and written every few seconds elsewhere, between permanent
 * lines.
 */
export function passingLine({ now, stderr, live, isTerminal }: ProgressReporter) {
  let shownAt = now()
  let isLive = false
  return {
    /** Writes a permanent line. */
    say: (line: string): void => {
      if (isLive) live('')
      stderr(`${line}\n`)
      isLive = false
    },
    /** Shows the line of progress, unless it was shown a moment ago. */
    show: (line: () => string, forced: boolean): void => {
      if (!forced && now() - shownAt < (isTerminal ? liveMs : plainMs)) return
      if (isTerminal) live(line())
      else stderr(`${line()}\n`)
      isLive = isTerminal
      shownAt = now()
    },
    end: (): void => void (isLive && stderr('\n')),
  }
}
