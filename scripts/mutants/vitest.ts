import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createVitest } from 'vitest/node'
import type { TestCase, Vitest } from 'vitest/node'

/** A mutant that runs alone: active from the first import on, in the files given, until a test fails. */
export interface Single {
  readonly id: string
  readonly files: readonly string[]
  /** A regular expression over the names of the tests that concern it. */
  readonly names?: string | undefined
}

/** How a single ended: by which test, or that none failed. */
export interface Verdict {
  readonly id: string
  readonly by: string | undefined
}

/** A process of its own runs this: `files` once, or one mutant after the other, and can be ended where it hangs. */
async function main([tree = '', timeout = '', given = '']: readonly string[]): Promise<number> {
  const todo = JSON.parse(readFileSync(given, 'utf8')) as { files?: readonly string[]; singles?: readonly Single[] }
  let failed: string | undefined
  const run: { vitest?: Vitest } = {}
  const bail = {
    onTestCaseResult: (test: TestCase) => {
      if (todo.singles === undefined || test.result().state !== 'failed') return
      failed ??= `${test.module.relativeModuleId}: ${test.fullName}`
      void run.vitest?.cancelCurrentRun('test-failure')
    },
  }
  const vitest = await createVitest('test', {
    root: tree,
    config: join(tree, 'vitest.config.ts'),
    setupFiles: [join(import.meta.dirname, 'inside.ts')],
    watch: false,
    maxWorkers: 1,
    reporters: [bail],
    testTimeout: Number(timeout),
    hookTimeout: Number(timeout),
    silent: true,
  })
  run.vitest = vitest
  const specs = await vitest.globTestSpecifications()
  const of = (files: readonly string[]) =>
    files.flatMap((file) => specs.filter(({ moduleId }) => moduleId === join(tree, file)))
  for (const spec of of(todo.files ?? [])) await vitest.runTestSpecifications([spec], false)
  for (const { id, files, names } of todo.singles ?? []) {
    log({ started: id, file: '', test: '' })
    process.env['__STRYKER_ACTIVE_MUTANT__'] = id
    if (names === undefined) vitest.resetGlobalTestNamePattern()
    else vitest.setGlobalTestNamePattern(new RegExp(names))
    failed = undefined
    for (const spec of of(files)) {
      const result = await vitest.runTestSpecifications([spec], false)
      const broken = result.unhandledErrors.length > 0 || result.testModules.some((module) => !module.ok())
      if (broken) failed ??= `${files.join(' ')}: no test of it ran to its end`
      if (failed !== undefined) break
    }
    log({ id, by: failed })
  }
  await vitest.close()
  return 0
}

function log(line: object): void {
  appendFileSync(process.env['PITLAKE_MUTANTS_LOG'] ?? '', `${JSON.stringify(line)}\n`)
}

process.exit(await main(process.argv.slice(2)))
