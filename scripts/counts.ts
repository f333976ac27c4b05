import { readFileSync } from 'node:fs'

interface Result {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[]
}

/** Passed and failed tests of vitest's JSON reports, summed; a test file that could not even start is one failure. */
export function countTests(reports: readonly string[]): { passed: number; failed: number } {
  const results = reports.map((text): Result => JSON.parse(text) as Result)
  const broken = results
    .flatMap((r) => r.testResults)
    .filter((f) => f.status === 'failed' && f.assertionResults.length === 0)
  return {
    passed: results.reduce((sum, r) => sum + r.numPassedTests, 0),
    failed: results.reduce((sum, r) => sum + r.numFailedTests, 0) + broken.length,
  }
}

if (import.meta.main) {
  const { passed, failed } = countTests(process.argv.slice(2).map((file) => readFileSync(file, 'utf8')))
  console.log(`${passed} passed, ${failed} failed`)
  if (failed > 0 || passed === 0) process.exitCode = 1
}
