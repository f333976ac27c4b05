import { type Engine, quote, quoteName } from '../../lake/store/engine.ts'
import { type ColumnSpec, digestUpTo, type Probe, rowsDigestSql, type Trial, noteIfItFails } from './runs.ts'
import { closing } from '../../query/lake.ts'
import type { States } from './knowledge-states.ts'
import type { World } from './world.ts'

/*
 * A cut-off at a decision's own instant is the only proof of a leak into the next step, and tries one state at a time.
 * Holes find where to cut: the query runs without what arrived between each m-th state and the next. Honest decisions
 * change only behind a hole, as far as the query remembers; one that changes before it, or alone, is suspected and then
 * cut at. With m runs each state has stood right before a hole once.
 */

/** Returns the world in which the data between these edges are hidden or changed. */
type EdgeWorld = (edges: string) => World

/**
 * Layout of masked intervals, one after each state with the remainder `run` when divided by `every`, and their effect.
 */
interface Comb {
  readonly every: number
  readonly run: number
  /** Number of its run if several mask sets are tried. */
  readonly label?: number
  readonly world: EdgeWorld
}

/** Prepares for masked intervals: digests of `proof_full` by instant, and an empty table of the states that move. */
export async function prepareHoles({ subject: { session }, columns, at }: Probe): Promise<void> {
  await session.run(`CREATE OR REPLACE TEMP TABLE proof_sums AS ${sumsSql('proof_full', columns, at)}`)
  await session.run(
    'CREATE OR REPLACE TEMP TABLE proof_moved (run BIGINT, n BIGINT, p BIGINT); CREATE OR REPLACE TEMP TABLE ' +
      'proof_stray (instant TIMESTAMPTZ)',
  )
}

function sumsSql(table: string, columns: readonly ColumnSpec[], at: string): string {
  return `SELECT ${at} AS instant, ${rowsDigestSql(columns)} FROM ${table} WHERE ${at} IS NOT NULL GROUP BY 1`
}

/**
 * Measures how many states after a masked interval the query remembers its data, with one interval in the middle.
 * States before it that move are noted.
 */
export async function measureMemory(probe: Probe, count: number, world: EdgeWorld): Promise<number> {
  const middle = Math.floor(count / 2)
  await runHoles(probe, { every: count, run: middle, world })
  const [row] = await probe.subject.session.rows<{ n: bigint | null }>(
    `SELECT max(n) - ${middle} AS n FROM proof_moved`,
  )
  return Math.max(1, Number(row?.n ?? 1))
}

/**
 * Computes the number of mask sets with which each state is tried right before a masked interval: `usual`, at most
 * `most`; 0 if masks show nothing, or if the query remembers for too long.
 */
export async function combsFor(
  trial: Trial,
  { count, polls }: States,
  { most, usual }: { readonly most: number; readonly usual: number },
  world: EdgeWorld,
  counted: () => void,
): Promise<number> {
  if (polls !== null || most < 3) return 0
  await prepareHoles(trial)
  let memory = most
  await noteIfItFails(trial, async () => {
    memory = await measureMemory(trial, count, world)
  })
  counted()
  await prepareHoles(trial)
  return memory + 2 > most ? 0 : Math.min(most, Math.max(2 * memory + 2, usual))
}

/**
 * Runs the query with the masked intervals of a mask set and notes which states differ, and how far after the last
 * interval they are.
 */
export async function runHoles(
  { subject, columns, at }: Probe,
  { every, run, label = run, world }: Comb,
): Promise<void> {
  const { session } = subject
  const [row] = await session.rows<{ edges: string }>(
    `SELECT CAST(list(edge ORDER BY edge) AS VARCHAR) AS edges FROM (
       SELECT unnest([epoch_us(last), coalesce(lead(epoch_us(first)) OVER (ORDER BY n),
         9223372036854775807)]) AS edge, n
       FROM (SELECT n, min(instant) AS first, any_value(last) AS last FROM proof_state GROUP BY n))
     WHERE n % ${every} = ${run}`,
  )
  await subject.fill('proof_cut', world(row?.edges ?? '[]'))
  await session.run(
    `INSERT INTO proof_moved SELECT DISTINCT ${label}, n, (n - ${run} + ${every}) % ${every}
     FROM proof_sums AS whole LEFT JOIN (${sumsSql('proof_cut', columns, at)}) AS holed USING (instant)
       JOIN proof_state USING (instant)
     WHERE (whole.rows, whole.digest) IS DISTINCT FROM (holed.rows, holed.digest)`,
  )
  await session.run(
    `INSERT INTO proof_stray SELECT DISTINCT ${at} FROM proof_cut WHERE ${at} NOT IN (SELECT instant FROM proof_sums)`,
  )
}

/**
 * Lists instants of rows that exist only when something is hidden, ISO text, in the order of time: what is hidden may
 * have been later, or earlier.
 */
export async function strayInstants(session: Engine): Promise<readonly string[]> {
  const rows = await session.rows<{ instant: string }>('SELECT DISTINCT instant FROM proof_stray ORDER BY instant')
  return rows.map(({ instant }) => instant)
}

/**
 * Finds the states that moved although most others as far from a masked interval stayed, the likeliest first: those
 * right before one, then the rarest. Those that moved together with the state before them remember it.
 */
export async function suspectStates(session: Engine, count: number, most: number): Promise<number[]> {
  const rows = await session.rows<{ n: bigint }>(
    `WITH starts AS (
       SELECT run, n, p FROM proof_moved AS moved WHERE p <> 1
         AND NOT EXISTS (FROM proof_moved AS before WHERE before.run = moved.run AND before.n = moved.n - 1)
     ), shares AS (SELECT p, count(*) / ${count} AS share FROM starts GROUP BY p)
     SELECT n FROM starts JOIN shares USING (p) WHERE p = 0 OR share < 0.25
     GROUP BY n ORDER BY bool_or(p = 0) DESC, min(share), max(p) DESC, n LIMIT ${most}`,
  )
  return rows.map((row) => Number(row.n))
}

/** Returns the set of states that did not move when the data right after them were hidden. */
export async function unmovedStates(session: Engine, count: number): Promise<Set<number>> {
  const rows = await session.rows<{ n: bigint }>('SELECT DISTINCT n FROM proof_moved WHERE p = 0')
  const moved = new Set(rows.map((row) => Number(row.n)))
  return new Set(Array.from({ length: count }, (_, n) => n).filter((n) => !moved.has(n)))
}

/*
 * Most runs of a proof only confirm, and most of their time goes into planning, which one session does on one
 * processor. So several sessions run at once, and a digest of the rows tells which runs have to be looked at.
 */

/** A run in a world that is the whole lake up to a cut-off. */
export interface Run {
  readonly cutoff: string
  readonly world: World
}

const most = 4
const plain =
  /^(?:VARCHAR|BOOLEAN|DATE|TIME|TIMESTAMP.*|INTERVAL|DOUBLE|FLOAT|DECIMAL.*|U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER)$/

/** Sessions in which runs are tried side by side; they are closed with this. */
interface WorkerSessions extends Disposable {
  readonly sessions: readonly Engine[]
}

/** Opens as many sessions as there are threads, with the same variables; none if a variable cannot be passed on. */
export async function workerSessions(session: Engine): Promise<WorkerSessions> {
  const [row] = await session.rows<{ threads: bigint }>(`SELECT CAST(current_setting('threads') AS BIGINT) AS threads`)
  const variables = await session.rows<{ name: string; value: string | null; type: string }>(
    `SELECT name, CAST(value AS VARCHAR) AS value, type FROM system.main.duckdb_variables()`,
  )
  // Variables of a world are set with it; a NULL one is listed as that word.
  const isNull = (value: string | null, type: string): boolean =>
    value === null || (value === 'NULL' && type !== 'VARCHAR')
  const sessionVariables = variables.filter(
    ({ name, value, type }) => !/^(?:as_of$|proof_)/.test(name) && !isNull(value, type),
  )
  const count = sessionVariables.every(({ type }) => plain.test(type)) ? Math.min(most, Number(row?.threads ?? 1)) : 0
  const sets = sessionVariables.map(
    ({ name, value, type }) => `SET VARIABLE ${quoteName(name)} = CAST(${quote(value ?? '')} AS ${type})`,
  )
  const sessions: Engine[] = []
  const hands = { sessions, [Symbol.dispose]: () => sessions.forEach((opened) => opened.close()) }
  return closing(hands, async () => {
    for (let n = 0; n < count; n++) {
      const branch = await session.session()
      sessions.push(branch)
      for (const set of sets) await branch.run(set)
    }
    return hands
  })
}

/** How runs are searched for a leak. */
interface RunSearch {
  /** Number of runs that may differ after which those are examined. */
  readonly enough: number
  /** Called for each run. */
  readonly onRun: () => void
  /** Examines a run that may differ. */
  readonly examine: (run: Run) => Promise<void>
}

/**
 * Tries runs in their order and examines those that may differ, until a leak is certain. The first is examined at once:
 * if it shows a leak, the query looks ahead almost everywhere, and digests of the next ones would only run them twice.
 */
export async function searchRuns(
  trial: Trial,
  runs: readonly Run[],
  { enough, onRun, examine }: RunSearch,
): Promise<void> {
  const isCertain = (): boolean => trial.stories.some(({ rounding }) => !rounding)
  let waiting = runs
  for (const run of runs.slice(0, enough)) {
    await examine(run)
    onRun()
    waiting = waiting.slice(1)
    if (!isCertain()) break
  }
  while (waiting.length > 0 && !isCertain()) {
    const { other, untried } = await otherRuns(trial, waiting, enough, onRun)
    for (const run of other) await examine(run)
    waiting = untried
  }
}

/** Runs that were tried, and those that were not. */
interface TriedRuns {
  /** Runs that may return other rows up to their cut-offs than `proof_full` has, in the order of all runs. */
  readonly other: Run[]
  /** Runs after the last one that was tried. */
  readonly untried: Run[]
}

/**
 * Tries runs until `enough` of them may return other rows up to their cut-offs than `proof_full` has: those whose digest
 * is not the same. A run that fails is among them. A function has no digest, so that each of its runs may.
 */
async function otherRuns(probe: Probe, runs: readonly Run[], enough: number, onRun: () => void): Promise<TriedRuns> {
  const { subject } = probe
  if (subject.kind === 'function' || runs.length === 0) {
    for (const _ of runs.slice(0, 1)) onRun()
    return { other: runs.slice(0, 1), untried: runs.slice(1) }
  }
  const each = runs.map(({ cutoff }, n) => `SELECT ${n} AS n, told FROM (${digestUpTo(probe, 'proof_full', cutoff)})`)
  const counts = await subject.session.rows<{ n: number; told: string }>(each.join(' UNION ALL '))
  const expected = new Map(counts.map(({ n, told: fingerprint }) => [n, fingerprint]))
  const other = new Set<number>()
  let next = 0
  const takeRuns = async (session: Engine): Promise<void> => {
    while (next < runs.length && other.size < enough) {
      const n = next++
      if ((await digestIn(session, probe, runs[n] as Run)) !== expected.get(n)) other.add(n)
      onRun()
    }
  }
  const { session, hands } = subject
  await Promise.all((hands.length === 0 ? [session] : hands).map(takeRuns))
  return { other: runs.filter((_, n) => other.has(n)), untried: runs.slice(next) }
}

/** Computes the digest of a run; undefined if the query fails: code that looks at the run gets the reason. */
async function digestIn(session: Engine, probe: Probe, { cutoff, world }: Run): Promise<string | undefined> {
  try {
    return await probe.subject.within(session, world, async (rows) => {
      const [row] = await session.rows<{ told: string }>(digestUpTo(probe, rows, cutoff))
      return row?.told
    })
  } catch {
    return undefined
  }
}
