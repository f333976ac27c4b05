import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Job, Said, Todo } from './sql-inside.ts'
import { type Mutant, textOf } from './sql-mutants.ts'
import { switched } from './sql-switch.ts'

/** What became of a mutant, and the test file that noticed. */
export interface Verdict {
  readonly status: 'killed' | 'survived' | 'invalid' | 'timeout'
  readonly by?: string
  /** The beginning of what the test said. */
  readonly said?: string
}

/** A mutant with what it is called in a run, and the tests that are to notice it. */
export interface Asked {
  readonly id: string
  readonly mutant: Mutant
  readonly tests: readonly string[]
}

/** Test files get what they import from Vitest from sql-inside.ts. */
const config = `import given from './vitest.config.ts'
const inside = {
  name: 'inside', enforce: 'pre',
  resolveId: (id, from = '') => id === 'vitest' && from.includes('/test/') ? new URL('scripts/mutants/sql-inside.ts', import.meta.url).pathname : undefined,
}
export default { plugins: [inside], test: { ...given.test, maxWorkers: 1, testTimeout: 0, include: ['host.test.ts'] } }
`
const host = `import { test } from 'vitest'
import { tryAll } from './scripts/mutants/sql-inside.ts'
test('mutants', async () => await tryAll(import.meta.dirname, 'jobs.json', 'log.jsonl'))
`
/** How an SQL file is read in the tree: what is active may change from one reading to the next. */
const reading = `import { existsSync, readdirSync, readFileSync as readAny } from 'node:fs'
function readFileSync(url: URL, as: 'utf8'): string {
  const id = (globalThis as any).sqlMutant ?? process.env['SQL_MUTANT']
  const root = new URL('../..', import.meta.url).pathname
  const other = root + 'mutants/' + id + '/' + url.pathname.slice(root.length)
  return readAny(id !== undefined && existsSync(other) ? other : url, as)
}
`

/** After so many the process is started anew, so that nothing adds up. */
const atOnce = 400
/** Milliseconds of silence, far beyond what one test file takes on a busy machine. */
const silence = 1_800_000

/**
 * A copy of this project that can be each of these mutants: a child process of a test sees the mutant by the environment,
 * and the program that is shipped knows nothing of mutants.
 */
export class Tree {
  readonly root: string
  private readonly fits = new Set<string>()
  private running: number | undefined

  constructor(asked: readonly Asked[]) {
    // Among the temporary files: a test that takes the whole project for its own finds one project only.
    this.root = join(tmpdir(), `pitlake-mutants-${process.pid}`)
    mkdirSync(this.root, { recursive: true })
    const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { encoding: 'utf8' }).split(
      '\0',
    )
    for (const path of listed.filter((one) => one !== '' && existsSync(one))) cpSync(path, join(this.root, path))
    for (const path of ['node_modules', ...globSync('.cache/*-venv')]) this.link(path)
    this.put('vitest.mutants.ts', config)
    this.put('host.test.ts', host)
    const loader = readFileSync('src/store/sql.ts', 'utf8')
    const patched = loader.replace(/^import .* from 'node:fs'\n/, reading).replace('texts.get(name) ?? ', '')
    this.put('src/store/sql.ts', patched)
    for (const { id, mutant } of asked)
      if (mutant.file.endsWith('.sql')) this.put(`mutants/${id}/${mutant.file}`, textOf(mutant))
    const inCode = asked.filter(({ mutant }) => mutant.file.endsWith('.ts'))
    for (const [file, own] of Map.groupBy(inCode, ({ mutant }) => mutant.file)) this.put(file, switched(own))
  }

  /** What is no part of the project, but what its tests need of the machine. */
  private link(path: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true })
    symlinkSync(join(process.cwd(), path), join(this.root, path))
  }

  private put(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true })
    writeFileSync(join(this.root, path), text)
  }

  /** Tries them all, and tells each verdict as soon as it is there. */
  async run(asked: readonly Asked[], tell: (asked: Asked, verdict: Verdict) => void, warn: (text: string) => void) {
    let left = [...asked]
    const [ended, unfit] = [new Set<string>(), new Set<string>()]
    while (left.length > 0) {
      const now = left.slice(0, atOnce)
      const judged = new Set<string>()
      const take = (lines: readonly Said[]): void => {
        for (const line of lines) {
          if (line.unfit !== undefined && !unfit.has(line.unfit)) {
            unfit.add(line.unfit)
            warn(`${line.unfit} fails without any mutant: ${line.said ?? 'no end'}`)
          }
          if (line.fit !== undefined) this.fits.add(line.fit)
          const one = now.find(({ id }) => id === line.id)
          if (!one || judged.has(one.id)) continue
          judged.add(one.id)
          tell(one, verdictOf(line))
        }
      }
      const { lines, hung } = await this.batch(now, take)
      const { started } = lines.findLast((line) => line.started !== undefined) ?? {}
      const stuck = now.find(({ id }) => id === started && !judged.has(id))
      // A process may end for reasons of its own: twice at the same mutant it does not.
      const twice = stuck !== undefined && ended.has(stuck.id)
      if (stuck) ended.add(stuck.id)
      if (stuck && (hung || twice)) {
        judged.add(stuck.id)
        tell(stuck, hung ? { status: 'timeout' } : { status: 'killed', by: 'the test process ended' })
      }
      if (judged.size === 0 && !stuck) throw new Error('nothing was judged')
      left = left.filter(({ id }) => !judged.has(id))
    }
  }

  private async batch(now: readonly Asked[], take: (lines: readonly Said[]) => void) {
    const log = join(this.root, 'log.jsonl')
    const jobs = now.map(({ id, mutant, tests }): Job => ({ id, anew: mutant.file.endsWith('.ts'), tests }))
    this.put('jobs.json', JSON.stringify({ jobs, fits: [...this.fits] } satisfies Todo))
    this.put('log.jsonl', '')
    const child = spawn('vitest', ['run', '--config', 'vitest.mutants.ts'], {
      cwd: this.root,
      stdio: ['ignore', 'ignore', 'ignore'],
      // A group of its own: what a test left running ends with it.
      detached: true,
    })
    const ended = new Promise<boolean>((resolve) => child.once('exit', () => resolve(true)))
    let [size, since, hung, over] = [0, Date.now(), false, false]
    const read = (): Said[] =>
      readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line.endsWith('}'))
        .map((line) => JSON.parse(line) as Said)
    this.running = child.pid
    while (!over && !hung) {
      over = await Promise.race([ended, setTimeout(1000, false)])
      const lines = read()
      if (lines.length !== size) [size, since] = [lines.length, Date.now()]
      take(lines)
      hung = !over && Date.now() - since > silence
    }
    endGroup(child.pid)
    this.running = undefined
    return { lines: read(), hung }
  }

  /** Ends what runs, and takes the copy away. */
  close(): void {
    endGroup(this.running)
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 })
  }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** What says that a database could not take the statement at all. */
const unbound =
  /(?:Parser|Binder|Catalog|Syntax) Error: |near "[^"]*": syntax error|no such column: |ON CONFLICT clause does not match/

function verdictOf({ by, said = '', late }: Said): Verdict {
  if (late) return { status: 'timeout', ...(by === undefined ? {} : { by }) }
  if (by === undefined) return { status: 'survived' }
  return { status: unbound.test(said) ? 'invalid' : 'killed', by, said: said.slice(0, 200) }
}
