import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { openQuery } from '../../src/query/lake.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { readPoints } from '../../src/query/views/relations.ts'
import { pitlake } from '../helpers/command.ts'
import { byTurns, figure, type Measured, median, scaled, told } from './measured.ts'
import { root as project } from './provider.ts'
import { big, buildLake, paths, rangeOf } from './scale-lake.ts'
import { asOf, type Asked, type Place, shared } from './scale-questions.ts'

/** Who is asked beside pitlake: name, engine of the script, and the Python that has it. */
const peers = [
  ['DuckDB 1.5', 'duckdb', 'peers'],
  ['DuckDB 2.0', 'duckdb', 'python-newest'],
  ['polars', 'polars', 'peers'],
  ['pandas', 'pandas', 'readers'],
  ['chdb', 'chdb', 'readers'],
  ['polars over Delta', 'delta', 'readers'],
] as const

/** A peer that waits for questions. */
interface Peer {
  readonly name: string
  readonly ask: (spec: object) => Promise<Said>
  readonly end: () => void
}

interface Said {
  /** Of the processor: the same on a machine that has other work. */
  readonly seconds: number
  readonly answer?: readonly Readonly<Record<string, unknown>>[]
  readonly failed?: string
}

/**
 * The questions of the bench of sizes, by every engine at its best over the same points: bare DuckDB and polars over
 * the lake's own files, pandas, chdb and polars through deltalake over its published table; equal answers asserted,
 * each first by turns.
 */
export async function benchQueries(tell: (measured: readonly Measured[]) => void): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'pitlake-bench-peers-'))
  const lake = process.env['PITLAKE_BENCH_LAKE']
  const points = lake === undefined ? Math.max(200_000, scaled(2_000_000)) : Number(process.env['POINTS'])
  const place: Place = { root: lake ?? join(home, 'lake'), copy: '', out: home, points }
  const open = peers.flatMap((peer) => opened(peer, tell))
  try {
    if (lake === undefined) await buildLake(place.root, points, 3)
    const published = await pitlake(home, ['publish', join(home, 'tables'), '--data', place.root, '--json'])
    if (published.code !== 0) throw new Error(published.message)
    using engine = await openQuery(place.root)
    const files = filesOf(place.root)
    for (const question of shared) tell([await compare({ engine, open, place, files, home }, question)])
  } finally {
    for (const { end } of open) end()
    rmSync(home, { recursive: true, force: true })
  }
}

interface Bench {
  readonly engine: Engine
  readonly open: readonly Peer[]
  readonly place: Place
  readonly files: ReturnType<typeof filesOf>
  readonly home: string
}

function filesOf(root: string) {
  using ledger = Ledger.asLeft(root)
  const held = ledger === undefined ? [] : liveFiles(ledger, { table: 'points' })
  const files = held.map(({ path }) => inLake(root, path))
  const isRecent = (path: string): boolean => path.includes('/recent/')
  const own = files.filter((path) => !isRecent(path))
  return { relation: readPoints(root, held), recent: files.filter(isRecent), own }
}

async function compare({ engine, open, place, files, home }: Bench, question: Asked): Promise<Measured> {
  const at = asOf(question, place)
  await engine.run(`SET VARIABLE as_of = ${at === undefined ? 'NULL' : `'${at}'`}`)
  const ours = async (): Promise<Said> => {
    const begun = process.cpuUsage()
    const answer = await engine.rows(question.sql(place))
    const { user, system } = process.cpuUsage(begun)
    return { seconds: (user + system) / 1e6, answer }
  }
  const table = join(home, 'tables', 'points')
  const spec = { name: question.name, sql: question.bare(place), ...files, ...rangeOf(place.points), big, table }
  const names = ['pitlake', ...open.map(({ name }) => name)]
  const ways = [ours, ...open.map((peer) => async () => await peer.ask({ ...spec, hourly: paths }))]
  const times: Record<string, number[]> = {}
  const failed: Record<string, string> = {}
  for (let round = -1; round < scaled(5); round++) {
    const said = await byTurns(round, ways)
    const texts = said.flatMap(({ answer }) => (answer === undefined ? [] : [textOf(answer)]))
    if (new Set(texts).size > 1) throw new Error(`${question.name}: the answers differ: ${texts.join(' ')}`)
    for (const [n, { seconds, failed: why }] of said.entries()) {
      const name = names[n] ?? ''
      if (why !== undefined) failed[name] = why
      else if (round >= 0) (times[name] ??= []).push(seconds)
    }
  }
  figure(`${question.name}, ${(place.points / 1e6).toFixed(1)} M points (processor)`, times)
  const took = Object.entries(times).map(([name, own]) => `${name} ${median(own).toFixed(3)} s`)
  const not = Object.entries(failed).map(([name, why]) => `${name} failed: ${why.split('\n').at(-1)}`)
  return told(`${question.name}: ${[...took, ...not].join(', ')}`)
}

const textOf = (rows: NonNullable<Said['answer']>): string =>
  JSON.stringify(
    rows.map((row) =>
      Object.entries(row)
        .map(([name, value]) => `${name} ${String(value)}`)
        .toSorted(),
    ),
  )

/** Starts a peer; who cannot be had is told. */
function opened([name, engine, venv]: (typeof peers)[number], tell: (measured: readonly Measured[]) => void): Peer[] {
  const made = spawnSync(join(project, 'scripts/peers.sh'), venv === 'peers' ? [] : [venv], { encoding: 'utf8' })
  if (made.status !== 0) {
    tell([told(`${name} cannot be had here`)])
    return []
  }
  const env = { ...process.env, POLARS_MAX_THREADS: '2' }
  const script = join(project, 'test/python/scale_peers.py')
  const child = spawn(made.stdout.trim(), [script, engine], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const ask = async (spec: object): Promise<Said> => {
    if (child.exitCode !== null) return { seconds: 0, failed: `ended with ${child.exitCode}` }
    child.stdin.write(`${JSON.stringify(spec)}\n`)
    const ended = new AbortController()
    const line = once(lines, 'line', { signal: ended.signal }).then(([text]) => JSON.parse(String(text)) as Said)
    const exit = once(child, 'exit', { signal: ended.signal }).then((): Said => ({ seconds: 0, failed: 'it ended' }))
    return await Promise.race([line, exit]).finally(() => {
      line.catch(() => undefined)
      exit.catch(() => undefined)
      ended.abort()
    })
  }
  return [{ name, ask, end: () => void child.kill() }]
}
