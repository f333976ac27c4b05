import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import type { Concern, Concerned } from './concerned.ts'
import type { Job, Line } from './inside.ts'
import { run } from './process.ts'
import type { Single } from './vitest.ts'

/** By a mutant's id: the test that noticed it, or that it never came to an end. */
export type Killed = Map<string, { readonly by: string; readonly timeout: boolean }>

/** Where a room is judged. */
export interface Place {
  readonly tree: string
  readonly work: string
  readonly say: (text: string) => void
  /** Writes down what is known by now: a run that is ended goes on from there. */
  readonly keep: () => void
}

/** A mutant is first tried by the three quickest tests that come by it, then by more of them. */
const rounds: readonly (readonly [number, number])[] = [
  [0, 3],
  [3, 12],
  [12, 60],
  [60, 600],
]

/** Tests of which each run would take longer than this are left to the mutants that nothing quicker kills. */
const quick = 4000

/** Whole jobs come by nearly everything: so many milliseconds of them are tried for one mutant, the quickest first. */
const enough = 10_000

/** What is computed on import concerns every test: so many milliseconds of them are tried, the quickest first. */
const longEnough = 6000

function together(id: string, concern: Concern, from = 0, to = 600): readonly Concerned[] {
  const limit = (n: number): number => (n < 60 ? quick : quick / 20)
  let sum = 0
  return (concern.direct.get(id) ?? []).filter(({ ms }, n) => {
    sum += ms
    return n >= from && n < to && ms <= limit(n) && (n < 12 || sum <= enough)
  })
}

/** The tests by which a mutant has to be tried alone: what it is met by beside them, and those left out above. */
function alone(id: string, concern: Concern): readonly Concerned[] {
  const tried = new Set(together(id, concern))
  const left = (concern.direct.get(id) ?? []).filter((test) => !tried.has(test))
  let sum = 0
  return [...(concern.beside.get(id) ?? []), ...left]
    .toSorted((a, b) => a.ms - b.ms)
    .filter(({ ms }, n) => (sum += ms) <= longEnough || n < 3)
}

/** Tries the mutants in the tests' own process, many in one go: it takes what the test takes, without any start. */
export async function tryTogether(place: Place, ids: readonly string[], concern: Concern, killed: Killed) {
  for (const [from, to] of rounds) {
    const job: Record<string, Record<string, string[]>> = {}
    const times = new Map<string, number>()
    for (const id of ids.filter((one) => !killed.has(one))) {
      for (const { file, test, ms } of together(id, concern, from, to)) {
        ;((job[file] ??= {})[test] ??= []).push(id)
        times.set(file, (times.get(file) ?? 0) + ms)
      }
    }
    await tryJob(place, job, times, killed)
    place.say(`  together, tests ${from + 1} to ${to} of each: ${killed.size} of ${ids.length} killed`)
  }
}

/** A machine with much else to do lets a test wait: what has no end is ended by its own steps, these are for what hangs. */
const patient = { testTimeout: 120_000, silence: 600_000 }

/**
 * Runs a job to its end, the cheapest files first, in one process, which reads each module once: what hangs or takes the
 * process down is killed by that, and the rest goes on without it.
 */
async function tryJob(place: Place, given: Job, times: ReadonlyMap<string, number>, killed: Killed): Promise<void> {
  let job = given
  for (let turn = 0; turn < 200 && Object.keys(job).length > 0; turn++) {
    const todo = join(place.work, 'job.json')
    writeFileSync(todo, JSON.stringify(job))
    const files = Object.keys(job).toSorted((a, b) => (times.get(a) ?? 0) - (times.get(b) ?? 0))
    const before: Line[] = [{ killed: [...killed.keys()], file: '', test: '' }]
    const env = { PITLAKE_MUTANTS_JOB: todo }
    const { lines, hung } = await run({ ...place, todo: { files }, env, ...patient, before })
    for (const line of lines) {
      if (!('killed' in line)) continue
      for (const id of line.killed) killed.set(id, { by: `${line.file}: ${line.test}`, timeout: false })
    }
    const last = lines.at(-1)
    const stuck = last !== undefined && 'started' in last ? last : undefined
    if (stuck !== undefined) killed.set(stuck.started, { by: `${stuck.file}: ${stuck.test}`, timeout: true })
    // A machine with much else to do may not even have begun.
    job = rest(job, lines, hung || stuck !== undefined)
    place.keep()
  }
}

/** The job without the files that are done; without the mutants that spoiled one of these for those that came after. */
function rest(job: Job, lines: readonly Line[], broken: boolean): Job {
  const spoiled = new Map(lines.flatMap((line) => ('spoiled' in line ? [[line.file, new Set(line.spoiled)]] : [])))
  const done = new Set(lines.flatMap((line) => ('done' in line && !spoiled.has(line.done) ? [line.done] : [])))
  // Files that were never begun, although nothing hung, have no test left to run.
  const begun = new Set(lines.flatMap((line) => ('started' in line ? [line.file] : [])))
  const left = Object.entries(job).filter(([file]) => !done.has(file) && (broken || begun.has(file)))
  return Object.fromEntries(
    left.map(([file, tests]) => [
      file,
      Object.fromEntries(
        Object.entries(tests).map(([test, ids]) => [test, ids.filter((id) => spoiled.get(file)?.has(id) !== true)]),
      ),
    ]),
  )
}

/** Tries each mutant alone, in processes that know of it from their first import on, until a test fails. */
export async function tryAlone(place: Place, ids: readonly string[], concern: Concern, killed: Killed): Promise<void> {
  let left: readonly Single[] = ids
    .filter((id) => !killed.has(id) && alone(id, concern).length > 0)
    .map((id) => single(id, alone(id, concern)))
  const longest = Math.max(0, ...left.flatMap(({ id }) => alone(id, concern)).map(({ ms }) => ms))
  const testTimeout = patient.testTimeout + 6 * longest
  for (let turn = 0; turn < 200 && left.length > 0; turn++) {
    place.say(`  alone: ${left.length} left`)
    const silence = 3 * testTimeout + 60_000
    const { lines } = await run({ ...place, todo: { singles: left }, env: {}, testTimeout, silence })
    const judged = new Set<string>()
    for (const { id, by } of lines) {
      if (id === undefined) continue
      judged.add(id)
      if (by !== undefined) killed.set(id, { by, timeout: false })
    }
    place.keep()
    const last = lines.at(-1)
    if (last !== undefined && 'started' in last) {
      killed.set(last.started, { by: 'no end', timeout: true })
      judged.add(last.started)
    }
    if (judged.size === 0) throw new Error(`nothing was judged: see ${place.work}`)
    left = left.filter(({ id }) => !judged.has(id))
  }
}

function single(id: string, tests: readonly Concerned[]): Single {
  const cost = new Map<string, number>()
  for (const { file, ms } of tests) cost.set(file, (cost.get(file) ?? 0) + ms)
  const files = [...cost.keys()].toSorted((a, b) => (cost.get(a) ?? 0) - (cost.get(b) ?? 0))
  return { id, files, names: `(?:^|\\s)(?:${[...new Set(tests.map(({ test }) => escaped(test)))].join('|')})$` }
}

function escaped(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')
}
