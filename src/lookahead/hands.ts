import { type Engine, quote, quoteName } from '../store/engine.ts'
import { digestSql, type Probe } from './holes.ts'
import { enter, type Subject, type World, wholeLake } from './world.ts'

/*
 * Most runs of a proof only confirm, and most of their time goes into planning, which one session does on one processor. So
 * several sessions run at once, and a digest of the rows tells which runs have to be looked at.
 */

/** A run in a world that is the whole lake up to a cut-off. */
export interface Run {
  readonly cutoff: string
  readonly world: World
}

/** Sessions beside a first one; closed with this. */
export interface Hands extends Disposable {
  readonly sessions: readonly Engine[]
}

const most = 4
const plain =
  /^(?:VARCHAR|BOOLEAN|DATE|TIME|TIMESTAMP.*|INTERVAL|DOUBLE|FLOAT|DECIMAL.*|U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER)$/

/** As many sessions as there are threads, which know the same variables; none where a variable could not be handed on. */
export async function handsOf(session: Engine): Promise<Hands> {
  const [row] = await session.rows<{ threads: bigint }>(`SELECT CAST(current_setting('threads') AS BIGINT) AS threads`)
  const variables = await session.rows<{ name: string; value: string | null; type: string }>(
    `SELECT name, CAST(value AS VARCHAR) AS value, type FROM system.main.duckdb_variables()`,
  )
  const held = variables.filter(({ type }) => type !== '"NULL"' && type !== 'NULL')
  const count = held.every(({ type }) => plain.test(type)) ? Math.min(most, Number(row?.threads ?? 1)) : 0
  const sets = held.map(
    ({ name, value, type }) =>
      `SET VARIABLE ${quoteName(name)} = CAST(${value === null ? 'NULL' : quote(value)} AS ${type})`,
  )
  const sessions: Engine[] = []
  const hands: Hands = { sessions, [Symbol.dispose]: () => sessions.forEach((one) => one.close()) }
  try {
    for (let n = 0; n < count; n++) {
      const own = await session.session()
      sessions.push(own)
      for (const set of sets) await own.run(set)
    }
    return hands
  } catch (error) {
    hands[Symbol.dispose]()
    throw error
  }
}

/**
 * The runs that may give other rows up to their cut-offs than `proof_full` has: those of which a digest does not say that
 * they are the same. One that fails is among them, and of a function all are.
 */
export async function otherRuns(probe: Probe, runs: readonly Run[], onRun: () => void): Promise<readonly Run[]> {
  const { subject } = probe
  if (subject.kind === 'function') for (const _ of runs) onRun()
  if (subject.kind === 'function' || runs.length === 0) return runs
  const expected = await wholeDigests(probe, runs)
  const other = new Set<number>()
  let next = 0
  const takeRuns = async (session: Engine): Promise<void> => {
    for (let n = next++; n < runs.length; n = next++) {
      if ((await digestIn(session, probe, runs[n] as Run)) !== expected.get(n)) other.add(n)
      onRun()
    }
  }
  await Promise.all(workers(subject).map(takeRuns))
  return runs.filter((_, n) => other.has(n))
}

function workers({ session, hands }: Subject): readonly Engine[] {
  return hands.length === 0 ? [session] : hands
}

function digested(probe: Probe, from: string, cutoff: string): string {
  return `SELECT concat_ws(' ', rows, digest) AS told FROM (SELECT ${digestSql(probe.columns)} FROM ${from} WHERE ${probe.at} <= TIMESTAMPTZ ${quote(cutoff)})`
}

async function wholeDigests(probe: Probe, runs: readonly Run[]): Promise<ReadonlyMap<number, string>> {
  const each = runs.map(({ cutoff }, n) => `SELECT ${n} AS n, told FROM (${digested(probe, 'proof_full', cutoff)})`)
  const rows = await probe.subject.session.rows<{ n: number; told: string }>(each.join(' UNION ALL '))
  return new Map(rows.map(({ n, told }) => [n, told]))
}

/** Undefined where the query fails: whoever looks at the run is told why. */
async function digestIn(session: Engine, probe: Probe, { cutoff, world }: Run): Promise<string | undefined> {
  await enter(session, world)
  try {
    const [row] = await session.rows<{ told: string }>(
      digested(probe, `(\n${probe.subject.text}\n) AS proof_rows`, cutoff),
    )
    return row?.told
  } catch {
    return undefined
  } finally {
    await enter(session, wholeLake)
  }
}
