import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createVitest, type TestModule, type TestSpecification, type Vitest } from 'vitest/node'

/** What became of a mutant, and the test file that noticed. */
export interface Verdict {
  readonly status: 'killed' | 'survived' | 'invalid' | 'timeout'
  readonly by?: string
  /** The first line of what the test said. */
  readonly said?: string
}

/** Test files go one after the other in the order given; the first failure ends the run. */
const config = `import given from './vitest.config.ts'
export default { test: { ...given.test, maxWorkers: 1, bail: 1 } }
`

/**
 * A copy of this project in which one file at a time is another: child processes of the tests see the mutant like the
 * tests themselves, and the program that is shipped knows nothing of mutants. One vitest serves all runs, because
 * starting it costs as much as most tests.
 */
export class Tree {
  readonly root: string
  private readonly vitest: Vitest
  private readonly order: string[]

  private constructor(root: string, vitest: Vitest, order: string[]) {
    this.root = root
    this.vitest = vitest
    this.order = order
  }

  static async make(): Promise<Tree> {
    // Among the temporary files: a test that takes the whole project for its own finds one project only.
    const root = join(tmpdir(), `pitlake-mutants-${process.pid}`)
    mkdirSync(root, { recursive: true })
    const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { encoding: 'utf8' }).split(
      '\0',
    )
    for (const path of listed.filter((one) => one !== '' && existsSync(one))) cpSync(path, join(root, path))
    symlinkSync(join(process.cwd(), 'node_modules'), join(root, 'node_modules'))
    writeFileSync(join(root, 'mutants.config.ts'), config)
    process.env['NODE_COMPILE_CACHE'] = join(root, 'compiled')
    const order: string[] = []
    const place = ({ moduleId }: TestSpecification): number => order.findIndex((name) => moduleId.endsWith(`/${name}`))
    class InOrder {
      async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
        return files
      }
      async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
        return files.toSorted((a, b) => place(a) - place(b))
      }
    }
    const options = { root, config: join(root, 'mutants.config.ts'), watch: false, reporters: [{}] }
    const vitest = await createVitest('test', { ...options, sequence: { sequencer: InOrder } })
    return new Tree(root, vitest, order)
  }

  /** What these tests say of the tree with this file; afterwards it is as before. */
  async ask(file: string, text: string, tests: readonly string[], seconds: number): Promise<Verdict> {
    const path = join(this.root, file)
    const before = readFileSync(path, 'utf8')
    writeFileSync(path, text)
    try {
      this.vitest.invalidateFile(path)
      return await this.run(tests, seconds)
    } finally {
      writeFileSync(path, before)
      this.vitest.invalidateFile(path)
    }
  }

  /** What these tests say of the tree as it stands. */
  async run(tests: readonly string[], seconds: number): Promise<Verdict> {
    this.order.splice(0, this.order.length, ...tests)
    let late = false
    const timer = setTimeout(() => {
      late = true
      endChildren()
    }, seconds * 1000)
    try {
      const specifications = await this.vitest.globTestSpecifications([...tests])
      const { testModules, unhandledErrors } = await this.vitest.runTestSpecifications(specifications)
      const failed = testModules.find((module) => module.state() === 'failed')
      if (late) return { status: 'timeout' }
      if (failed) return failureOf(failed, this.root)
      return unhandledErrors.length > 0
        ? { status: 'killed', by: 'an error outside of all tests', said: String(unhandledErrors[0]).slice(0, 200) }
        : { status: 'survived' }
    } finally {
      clearTimeout(timer)
      process.exitCode = 0
    }
  }

  async close(): Promise<void> {
    await this.vitest.close()
    rmSync(this.root, { recursive: true, force: true })
  }
}

/** The test process, where a mutant made it endless. */
function endChildren(): void {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean)
  for (const pid of children) {
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}

/** What says that a database could not take the statement at all. */
const unbound =
  /(?:Parser|Binder|Catalog|Syntax) Error: |near "[^"]*": syntax error|no such column: |ON CONFLICT clause does not match/

function failureOf(failed: TestModule, root: string): Verdict {
  const tests = [...failed.children.allTests('failed')].flatMap((test) => test.result().errors ?? [])
  const suites = [...failed.children.allSuites()].flatMap((suite) => suite.errors())
  const said = [...failed.errors(), ...suites, ...tests].map(({ message }) => message).join('\n')
  return {
    status: unbound.test(said) ? 'invalid' : 'killed',
    by: failed.moduleId.replace(`${root}/`, ''),
    said: said.slice(0, 200),
  }
}

/** Makes the folder of a file and writes it. */
export function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
