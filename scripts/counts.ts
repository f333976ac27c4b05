import { existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

interface Result {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly {
      readonly status: string
      readonly fullName?: string
      readonly meta?: { readonly lacks?: string }
    }[]
  }[]
}

/** Tests of one file that were left out for one reason; null where nobody says why. */
export interface LeftOut {
  readonly file: string
  readonly reason: string | null
  readonly count: number
}

/** How many tests passed, failed and were left out, and why. */
export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** The failed tests, each as its file and its name; a file that could not start stands there without a name. */
  readonly failures: readonly string[]
  readonly leftOut: readonly LeftOut[]
}

/** What vitest's JSON reports say together; a test file that could not even start is one failure. */
export function countTests(reports: readonly string[]): Counts {
  const results = reports.map((text): Result => JSON.parse(text) as Result)
  const files = results.flatMap((result) => result.testResults)
  const broken = files.filter(({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0)
  const leftOut = files.flatMap(({ name: file, assertionResults }) => {
    const left = assertionResults.filter(({ status }) => !['passed', 'failed'].includes(status))
    const reasons = Map.groupBy(left, ({ meta }) => meta?.lacks ?? null)
    return [...reasons].map(([reason, tests]) => ({ file, reason, count: tests.length }))
  })
  const failures = files.flatMap(({ name: file, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName }) => `${relative('.', file)} › ${fullName ?? ''}`),
  )
  return {
    failures: [...failures, ...broken.map(({ name }) => relative('.', name))],
    passed: results.reduce((sum, result) => sum + result.numPassedTests, 0),
    failed: results.reduce((sum, result) => sum + result.numFailedTests, 0) + broken.length,
    skipped: leftOut.reduce((sum, { count }) => sum + count, 0),
    leftOut,
  }
}

/** The lines that end a run, the counts last, and whether it may count as passed: no test is left out in silence. */
export function verdictOf({ passed, failed, skipped, failures, leftOut }: Counts): {
  lines: readonly string[]
  good: boolean
} {
  const lines = leftOut.map(
    ({ file, reason, count }) => `${count} skipped in ${relative('.', file)}: ${reason ?? 'nobody says why'}`,
  )
  const failing = failures.map((failure) => `failed: ${failure}`)
  const good = failed + failures.length === 0 && passed > 0 && leftOut.every(({ reason }) => reason !== null)
  return { lines: [...lines, ...failing, `${passed} passed, ${failed} failed, ${skipped} skipped`], good }
}

if (import.meta.main) {
  const reports = process.argv.slice(2)
  const lost = reports.filter((file) => !existsSync(file))
  const told = countTests(reports.filter((file) => !lost.includes(file)).map((file) => readFileSync(file, 'utf8')))
  // A run that did not come to its end has told nothing: that is a failure, too.
  const { lines, good } = verdictOf({ ...told, failed: told.failed + lost.length })
  for (const line of [...lost.map((file) => `no report: ${file}`), ...lines]) console.log(line)
  if (!good) process.exitCode = 1
}
