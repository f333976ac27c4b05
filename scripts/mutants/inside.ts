import { appendFileSync, readFileSync } from 'node:fs'
import { configureGlobal } from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import type { RunnerTask, RunnerTestSuite } from 'vitest'

/** What a run inside Vitest writes down, a line each. */
export type Line =
  /** The mutants that a test came by, in this process or in a child of it; without a test in hooks and imports. */
  | { readonly file: string; readonly test: string; readonly ids: readonly string[]; readonly ms: number }
  | { readonly file: string; readonly test: string; readonly unfit: true }
  | { readonly file: string; readonly test: string; readonly ids: readonly string[]; readonly child: true }
  | { readonly started: string; readonly file: string; readonly test: string }
  | { readonly killed: readonly string[]; readonly file: string; readonly test: string }
  /** A test that fails without a mutant after some were tried: none of its verdicts counts. */
  | { readonly spoiled: readonly string[]; readonly file: string; readonly test: string }
  | { readonly done: string }

/** Which mutants are tried by which test of which file. */
export type Job = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>

const { PITLAKE_MUTANTS_SEEN, PITLAKE_MUTANTS_JOB, PITLAKE_MUTANTS_LOG = '', __STRYKER_ACTIVE_MUTANT__ } = process.env

interface State {
  active: string | undefined
  hits: number
  seen: Set<string> | undefined
}

const state: State = { active: __STRYKER_ACTIVE_MUTANT__, hits: 0, seen: undefined }
Object.assign(globalThis, { mutants: state })

// The same examples whichever mutant is active, and the first that fails is enough.
configureGlobal({ seed: 1, endOnFailure: true })

function write(line: Line): void {
  appendFileSync(PITLAKE_MUTANTS_LOG, `${JSON.stringify(line)}\n`)
}

function nameOf(task: RunnerTask): string {
  const above = task.suite === undefined || 'filepath' in task.suite ? [] : [nameOf(task.suite)]
  return [...above, task.name].join(' ')
}

function fileOf(task: RunnerTask): string {
  return task.file.name
}

/** Which mutants each test comes by. */
function look(): void {
  const outside = new Set<string>()
  state.seen = outside
  let file = ''
  let begun = process.cpuUsage()
  const tellChildren = (test: string): void => {
    process.env['PITLAKE_MUTANTS_TEST'] = JSON.stringify({ file, test })
  }
  // oxlint-disable-next-line no-empty-pattern
  beforeAll(({}, suite) => {
    file = suite.file.name
    tellChildren('')
  })
  beforeEach(({ task }) => {
    file = fileOf(task)
    tellChildren(nameOf(task))
    state.seen = new Set()
    begun = process.cpuUsage()
  })
  afterEach(({ task }) => {
    const ids = [...(state.seen ?? [])]
    state.seen = outside
    const test = nameOf(task)
    if (task.result?.state === 'fail') write({ file, test, unfit: true })
    else {
      // Of its own work, not of the clock: what else the machine does at the time says nothing of a test.
      const { user, system } = process.cpuUsage(begun)
      write({ file, test, ids, ms: (user + system) / 1000 })
    }
  })
  afterAll(() => write({ file, test: '', ids: [...outside], ms: 0 }))
}

/** Runs every test once without a mutant, once with each that it is to try, and once more without. */
function loop(job: Job): void {
  const killed = new Set(
    readFileSync(PITLAKE_MUTANTS_LOG, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{"killed"'))
      .flatMap((line) => (JSON.parse(line) as { killed: readonly string[] }).killed),
  )
  let spoiled = false
  let open: string | undefined
  let tried: readonly string[] = []
  let dead: string[] = []
  let file = ''
  const left = (task: RunnerTask): readonly string[] =>
    spoiled ? [] : (job[fileOf(task)]?.[nameOf(task)] ?? []).filter((id) => !killed.has(id))

  // Vitest reads from the text of a hook what it is to be given: an object taken apart, then the suite.
  // oxlint-disable-next-line no-empty-pattern
  beforeAll(({}, suite) => {
    file = suite.file.name
    for (const test of testsIn(suite)) {
      if (left(test).length === 0) test.mode = 'skip'
      // By then others may have killed what it was to try.
      const turns = (): number => (left(test).length === 0 ? 0 : left(test).length + 1)
      Object.defineProperty(test, 'repeats', { enumerable: true, get: turns })
    }
  })
  beforeEach(({ task }) => {
    const turn = task.result?.repeatCount ?? 0
    if (turn === 0) {
      tried = left(task)
      dead = []
    } else if (open !== undefined) {
      // A hook of the test itself failed, so that none of ours was called.
      dead.push(open)
    }
    open = tried[turn - 1]
    if (open !== undefined) write({ started: open, file, test: nameOf(task) })
    activate(open)
  })
  afterEach(({ task }) => {
    activate(undefined)
    const failed = task.result?.state === 'fail'
    const turn = task.result?.repeatCount ?? 0
    if (open !== undefined && failed) dead.push(open)
    if (open === undefined && failed) spoiled = true
    open = undefined
    if (turn !== tried.length + 1 || tried.length === 0) return
    if (spoiled) return write({ spoiled: tried, file, test: nameOf(task) })
    for (const id of dead) killed.add(id)
    if (dead.length > 0) write({ killed: dead, file, test: nameOf(task) })
  })
  afterAll(() => write({ done: file }))
}

function activate(id: string | undefined): void {
  state.active = id
  state.hits = 0
  if (id === undefined) delete process.env['__STRYKER_ACTIVE_MUTANT__']
  else process.env['__STRYKER_ACTIVE_MUTANT__'] = id
}

function testsIn(suite: RunnerTestSuite): readonly RunnerTask[] {
  return suite.tasks.flatMap((task) => (task.type === 'suite' ? testsIn(task) : [task]))
}

if (PITLAKE_MUTANTS_SEEN !== undefined) look()
if (PITLAKE_MUTANTS_JOB !== undefined) loop(JSON.parse(readFileSync(PITLAKE_MUTANTS_JOB, 'utf8')) as Job)
