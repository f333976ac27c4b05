import { existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

interface Result {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

/** How many tests passed, failed and were left out, and of each file how many were left out. */
export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly skippedIn: ReadonlyMap<string, number>
}

/** What vitest's JSON reports say together; a test file that could not even start is one failure. */
export function countTests(reports: readonly string[]): Counts {
  const results = reports.map((text): Result => JSON.parse(text) as Result)
  const files = results.flatMap((result) => result.testResults)
  const broken = files.filter(({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0)
  const left = files.map(({ name, assertionResults }): [string, number] => [
    name,
    assertionResults.filter(({ status }) => !['passed', 'failed'].includes(status)).length,
  ])
  return {
    passed: results.reduce((sum, result) => sum + result.numPassedTests, 0),
    failed: results.reduce((sum, result) => sum + result.numFailedTests, 0) + broken.length,
    skipped: left.reduce((sum, [, count]) => sum + count, 0),
    skippedIn: new Map(left.filter(([, count]) => count > 0)),
  }
}

if (import.meta.main) {
  const reports = process.argv.slice(2)
  const lost = reports.filter((file) => !existsSync(file))
  const told = countTests(reports.filter((file) => !lost.includes(file)).map((file) => readFileSync(file, 'utf8')))
  const { passed, skipped, skippedIn } = told
  // A run that did not come to its end has told nothing: that is a failure, too.
  const failed = told.failed + lost.length
  for (const file of lost) console.log(`no report: ${file}`)
  for (const [file, count] of skippedIn)
    console.log(`${count} skipped in ${relative('.', file)}: what its first lines ask for is not on this machine`)
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`)
  if (failed > 0 || passed === 0) process.exitCode = 1
}
