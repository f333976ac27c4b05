import { appendFileSync, readFileSync } from 'node:fs'
import { expect as given, vi } from 'vitest'

type Work = (...args: never[]) => unknown

interface Suite {
  readonly hooks: Readonly<Record<Hook, Work[]>>
  readonly parts: (Suite | { readonly name: string; readonly run: Work })[]
}
type Hook = 'beforeAll' | 'afterAll' | 'beforeEach' | 'afterEach'

/** A mutant and the test files that are to notice it. */
export interface Job {
  readonly id: string
  /** Whether modules must be read anew: a text in TypeScript may be put together on import. */
  readonly anew: boolean
  readonly tests: readonly string[]
}

/** Mutants, and the test files of which it is known that they pass without any. */
export interface Todo {
  readonly jobs: readonly Job[]
  readonly fits: readonly string[]
}

/** What is written down: that a mutant begins, what became of it, that a file fails without any. */
export interface Said {
  readonly started?: string
  readonly id?: string
  readonly by?: string
  readonly said?: string
  readonly late?: boolean
  readonly unfit?: string
  readonly fit?: string
}

/** Shared by all copies of this module, as modules are read anew. */
const shared = globalThis as unknown as { collecting: Suite; sqlMutant: string | undefined }

function suite(): Suite {
  return { hooks: { beforeAll: [], afterAll: [], beforeEach: [], afterEach: [] }, parts: [] }
}

/** In place of Vitest's own: what test files define is kept, so that it can be run again for each mutant. */
const hook =
  (name: Hook) =>
  (work: Work): void => {
    shared.collecting.hooks[name].push(work)
  }
/** See `hook`. */
export const [beforeAll, afterAll] = [hook('beforeAll'), hook('afterAll')]
/** See `hook`. */
export const [beforeEach, afterEach] = [hook('beforeEach'), hook('afterEach')]

type Define = (name: string, ...rest: unknown[]) => void

function workOf(rest: readonly unknown[]): Work {
  return rest.find((one) => typeof one === 'function') as Work
}

function several(define: Define) {
  const never: Define = () => undefined
  return Object.assign(define, {
    each:
      (cases: readonly unknown[]): Define =>
      (name, ...rest) => {
        for (const one of cases) define(name, () => workOf(rest)(...((Array.isArray(one) ? one : [one]) as never[])))
      },
    for:
      (cases: readonly unknown[]): Define =>
      (name, ...rest) => {
        for (const one of cases) define(name, (context: never) => workOf(rest)(one as never, context))
      },
    runIf: (is: unknown) => (is ? define : never),
    skipIf: (is: unknown) => (is ? never : define),
    skip: never,
  })
}

const define: Define = (name, ...rest) => {
  shared.collecting.parts.push({ name, run: workOf(rest) })
}
/** See `hook`. */
export const test = several(define)
/** See `hook`. */
export const it = several(define)
/** See `hook`. */
export const describe = several((_, ...rest) => {
  const outer = shared.collecting
  shared.collecting = suite()
  outer.parts.push(shared.collecting)
  workOf(rest)()
  shared.collecting = outer
})
/** A soft expectation would only be told at the end of the run. */
export const expect = new Proxy(given, { get: (own, key) => (key === 'soft' ? own : Reflect.get(own, key)) })
/** Vitest's own. */
export { vi }

async function collect(file: string): Promise<Suite> {
  const whole = suite()
  shared.collecting = whole
  await import(/* @vite-ignore */ file)
  return whole
}

const left = new Error('left out')

/** Runs a suite until something of it fails, and always what it does at the end. */
async function run(own: Suite, before: readonly Work[] = [], after: readonly Work[] = []): Promise<void> {
  const ends = [...own.hooks.afterAll]
  const [befores, afters] = [
    [...before, ...own.hooks.beforeEach],
    [...own.hooks.afterEach, ...after],
  ]
  await always(
    async () => {
      for (const work of own.hooks.beforeAll) {
        const end = await work()
        if (typeof end === 'function') ends.push(end as Work)
      }
      for (const part of own.parts) {
        if ('parts' in part) await run(part, befores, afters)
        else await runOne(part.name, part.run, befores, afters)
      }
    },
    () => ends,
  )
}

async function runOne(name: string, work: Work, befores: readonly Work[], afters: readonly Work[]): Promise<void> {
  const ends: Work[] = [...afters]
  const context = {
    expect,
    task: { name, meta: {} },
    signal: new AbortController().signal,
    onTestFinished: (end: Work) => ends.unshift(end),
    skip: () => {
      throw left
    },
  }
  await always(
    async () => {
      for (const one of befores) {
        const end = await one(context as never)
        if (typeof end === 'function') ends.unshift(end as Work)
      }
      try {
        await work(context as never)
      } catch (error) {
        if (error !== left) throw error
      }
    },
    () => ends,
  )
}

async function always(work: () => Promise<void>, ends: () => readonly Work[]): Promise<void> {
  const errors: unknown[] = []
  await work().catch((error: unknown) => errors.push(error))
  for (const end of ends()) {
    try {
      await end()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

/** Seconds of work after which a run has no end, however busy the machine is; and of waiting, where it does not even work. */
const [work, waiting] = [90, 1200]

/** What a run of these ends with: nothing, what failed, or that it has no end. */
async function outcome(own: () => Promise<Suite>): Promise<Pick<Said, 'said' | 'late'> | undefined> {
  const [begun, before] = [Date.now(), process.cpuUsage()]
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Pick<Said, 'late'>>((resolve) => {
    timer = setInterval(() => {
      const { user, system } = process.cpuUsage(before)
      if ((user + system) / 1e6 > work || (Date.now() - begun) / 1000 > waiting) resolve({ late: true })
    }, 1000)
  })
  const done = own()
    .then(run)
    .then(
      () => undefined,
      (error: unknown) => ({ said: String(error instanceof Error ? error.message : error).slice(0, 1500) }),
    )
  const first = await Promise.race([done, late])
  clearInterval(timer)
  return first
}

function activate(id: string | undefined): void {
  shared.sqlMutant = id
  if (id === undefined) delete process.env['SQL_MUTANT']
  else process.env['SQL_MUTANT'] = id
}

/** Tries each mutant in this one process, and writes down what became of it; a test file that fails without any has no say. */
export async function tryAll(root: string, jobsPath: string, logPath: string): Promise<void> {
  const log = (line: Said): void => appendFileSync(logPath, `${JSON.stringify(line)}\n`)
  const { jobs, fits } = JSON.parse(readFileSync(jobsPath, 'utf8')) as Todo
  const suites = new Map<string, Suite>()
  const trusted = new Set(fits)
  const unfit = new Set<string>()
  const read = async (file: string): Promise<Suite> => {
    const own = suites.get(file) ?? (await collect(`${root}/${file}`))
    suites.set(file, own)
    return own
  }
  /** All modules at once: what was read before and what reads more as it runs would not be of one piece. */
  const forget = (): void => {
    vi.resetModules()
    suites.clear()
  }
  /** A file that fails without any mutant has no say: it is asked the first time that it notices one. */
  const isFit = async (file: string): Promise<boolean> => {
    if (trusted.has(file)) return true
    forget()
    const wrong = await outcome(async () => await read(file))
    if (!wrong) trusted.add(file)
    log(wrong ? { unfit: file, ...wrong } : { fit: file })
    return !wrong
  }
  for (const { id, anew, tests } of jobs.toSorted((a, b) => Number(a.anew) - Number(b.anew))) {
    log({ started: id })
    let death: Said | undefined
    for (const file of tests) {
      if (unfit.has(file)) continue
      const own = anew ? undefined : await read(file)
      activate(id)
      if (anew) forget()
      const wrong = await outcome(async () => own ?? (await collect(`${root}/${file}`)))
      activate(undefined)
      if (wrong?.late === true || (wrong && (await isFit(file)))) death = { id, by: file, ...wrong }
      else if (wrong) unfit.add(file)
      if (death) break
    }
    log(death ?? { id })
    // What did not end goes on: only the end of the process ends it.
    if (death?.late === true) process.exit(3)
  }
}
