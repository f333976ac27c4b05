import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createSandbox } from '../../src/sandbox/sandbox.ts'
import { serve } from '../../src/sandbox/server.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { readPoints } from '../../src/query/views/relations.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { cache } from './programs.ts'
import { root as project } from './provider.ts'
import { median } from './measured.ts'
import { big, builtAt, heldOf, paths, rangeOf } from './scale-lake.ts'
import { writePage } from './scale-page.ts'
import { asOf, type Place, provedQuery, type Question, questions } from './scale-questions.ts'

/*
 * One lake of so many points (POINTS, 50 million unless set) and all that is asked of it, each question in a process of
 * its own with its seconds, those of the processor and its largest memory; the same of bare DuckDB and polars over the
 * same files where they can do it. `PITLAKE_SCALE_LAKES` names the folder of lakes; with `PITLAKE_SCALE_UNFINISHED` a
 * lake is asked as it is. What was answered is kept, and not asked again.
 */

/** What one process came to; a question that failed says why. */
export interface Took {
  readonly wall: number
  readonly cpu: number
  readonly megabytes: number
  readonly answer: string
  readonly failed?: string
}

/** By question, and by who answered. */
export type Answers = Record<string, Partial<Record<'ours' | 'duckdb' | 'polars', Took>>>

const size = Number(process.env['POINTS'] ?? 50_000_000)
const name = `${size / 1e6}M`
const lakes = process.env['PITLAKE_SCALE_LAKES'] ?? join(cache, 'scale')
const place: Place = {
  root: join(lakes, name),
  copy: join(lakes, `${name}-copy`),
  out: join(lakes, `${name}-out`),
  points: size,
}
const program = join(project, 'src/main.ts')
/** What is asked where not all is: `PITLAKE_SCALE_ASK='count|latest'`. */
const wanted = new RegExp(process.env['PITLAKE_SCALE_ASK'] ?? '')
/** What is asked of the copy, once. */
const changes = /top-up|publish|backup|compact/
/** What each of ours may hold. */
const promise = ['--memory', '2GB']
/**
 * A question may take so many milliseconds of the clock; `PITLAKE_SCALE_PATIENCE=3600` on a machine with other work.
 */
const patience = Number(process.env['PITLAKE_SCALE_PATIENCE'] ?? 900) * 1000

const answersFile = join(lakes, `${name}.answers.json`)
const answers: Answers = existsSync(answersFile) ? (JSON.parse(readFileSync(answersFile, 'utf8')) as Answers) : {}

async function main(): Promise<void> {
  const unfinished = process.env['PITLAKE_SCALE_UNFINISHED'] !== undefined
  if (!unfinished && builtAt(place.root).points < heldOf(size)) {
    const built = spawnSync(process.execPath, [scriptOf('scale-lake'), place.root, String(size)], { stdio: 'inherit' })
    if (built.status !== 0) throw new Error(`the lake of ${size} points was not built`)
  }
  if (!unfinished) await bringRegistry()
  mkdirSync(place.out, { recursive: true })
  writeFileSync(join(place.out, 'query.sql'), provedQuery(place))
  copyLake()
  keep('copy of the largest metric', 'duckdb', () => bareCopy())
  for (const question of questions) askAll(question)
  rmSync(place.copy, { recursive: true, force: true })
  rmSync(place.out, { recursive: true, force: true })
  await writePage(lakes)
}

const scriptOf = (script: string): string => join(project, 'test/bench', `${script}.ts`)

/** The registry of the sandbox, once. */
async function bringRegistry(): Promise<void> {
  using ledger = await Ledger.openToRead(place.root)
  if (ledger.head().provider?.registry !== undefined) return
  const metricsKey = 'key-of-the-metrics'
  const registryKey = 'key-of-the-registry'
  const sandbox = createSandbox({
    catalogue,
    seed: 1,
    now: () => Date.UTC(2026, 0, 3) / 1000,
    sleep: async () => undefined,
    scale: 'demo',
    metricsKey,
    registryKey,
  })
  await using served = await serve(sandbox, { port: 0 })
  const env = { PITLAKE_REGISTRY_URL: `${served.url}/registry/v1`, PITLAKE_REGISTRY_KEY: registryKey }
  const { spawn } = await import('node:child_process')
  const child = spawn(process.execPath, [program, 'registry', 'sync', '--data', place.root], {
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
  await new Promise((resolve) => child.on('close', resolve))
}

/** A second lake whose Parquet files are the same files. */
function copyLake(): void {
  const changing = questions.filter(({ name: asked }) => changes.test(asked) && wanted.test(asked))
  if (changing.every(({ name: asked }) => answers[asked]?.ours !== undefined)) return
  rmSync(place.copy, { recursive: true, force: true })
  for (const entry of readdirSync(place.root, { recursive: true, withFileTypes: true })) {
    const from = join(entry.parentPath, entry.name)
    const to = join(place.copy, from.slice(place.root.length))
    if (entry.isDirectory()) mkdirSync(to, { recursive: true })
    else if (entry.isFile()) {
      mkdirSync(join(to, '..'), { recursive: true })
      if (entry.name.endsWith('.parquet')) linkSync(from, to)
      else copyFileSync(from, to)
    }
  }
  run([program, 'views', '--data', place.copy])
}

/** Asks everybody who can answer; equal answers are asserted. */
function askAll(question: Question): void {
  const { name: asked } = question
  if ('ours' in question) {
    const [script = '', ...rest] = question.ours(place)
    const file = script === 'scale-lake' ? scriptOf(script) : program
    keep(asked, 'ours', () => run(script === 'scale-lake' ? [file, ...rest] : [file, script, ...rest, ...promise]))
    return
  }
  const at = asOf(question, place)
  const flags = ['--data', place.root, '--format', 'json', ...(at === undefined ? [] : ['--as-of', at])]
  keep(asked, 'ours', () => run([program, 'sql', ...flags, ...promise, question.sql(place)]))
  for (const by of ['duckdb', 'polars'] as const) keep(asked, by, () => peer(by, asked, question.bare(place)))
  const told = Object.values(answers[asked] ?? {}).filter(({ failed }) => failed === undefined)
  if (new Set(told.map(({ answer }) => answer)).size > 1)
    throw new Error(`${asked}: the answers differ: ${told.map(({ answer }) => answer).join(', ')}`)
}

/** Three rounds of what is short, one of what is long; kept at once. */
function keep(asked: string, by: 'ours' | 'duckdb' | 'polars', work: () => Took): void {
  if (answers[asked]?.[by] !== undefined || !wanted.test(asked)) return
  const rounds = [work()]
  while (!changes.test(asked) && rounds.length < 3 && (rounds[0]?.wall ?? 0) < 5) rounds.push(work())
  const middle = (of: (took: Took) => number): number => median(rounds.map(of))
  const [first] = rounds
  if (first === undefined) return
  const took = { ...first, wall: middle(({ wall }) => wall), cpu: middle(({ cpu }) => cpu) }
  answers[asked] = { ...answers[asked], [by]: took }
  writeFileSync(answersFile, JSON.stringify(answers, null, 1))
  const said = took.failed ?? `${took.cpu.toFixed(2)} s of processor, ${took.wall.toFixed(2)} s, ${took.megabytes} MB`
  console.log(`${name} ${asked}, ${by}: ${said}`)
}

function run(args: readonly string[]): Took {
  const usage = join(lakes, `usage-${process.pid}.json`)
  const preloaded = ['--import', scriptOf('usage'), '-r', join(project, 'scripts/fixed-node.cjs')]
  const env = { ...process.env, PITLAKE_BENCH_USAGE: usage }
  const begun = performance.now()
  const done = spawnSync(process.execPath, [...preloaded, ...args], {
    encoding: 'utf8',
    env,
    timeout: patience,
    maxBuffer: 1 << 28,
  })
  const wall = (performance.now() - begun) / 1000
  const failed = done.status === 0 ? {} : { failed: reasonOf(done) }
  const own = existsSync(usage) ? (JSON.parse(readFileSync(usage, 'utf8')) as Pick<Took, 'cpu' | 'megabytes'>) : null
  rmSync(usage, { force: true })
  return { wall, cpu: own?.cpu ?? wall, megabytes: own?.megabytes ?? 0, answer: answerOf(done.stdout), ...failed }
}

/** Whoever is told to end may do so by itself; a peer that gets no more memory is ended by the kernel or by itself. */
function reasonOf({ signal, stderr, error }: Pick<SpawnSyncReturns<string>, 'signal' | 'stderr' | 'error'>): string {
  const late = signal === 'SIGTERM' || (error !== undefined && 'code' in error && error.code === 'ETIMEDOUT')
  if (late) return `ended after ${patience / 1000} s`
  return signal !== null || /out of memory/i.test(stderr) ? 'out of memory' : stderr.trim().slice(-300)
}

/** Rows as every engine writes them; other documents are no answer to compare. */
function answerOf(stdout: string): string {
  const text =
    stdout
      .trim()
      .split('\n')
      .findLast((line) => line.startsWith('[{') || line.startsWith('{"rows"')) ?? ''
  return text === '' ? stdout.replaceAll(/\s/g, '').slice(0, 200) : text.replaceAll(/[\s[\]]/g, '').replaceAll('"', '')
}

/** Bare DuckDB or polars, as Python brings them, over the files of the lake. */
function peer(by: 'duckdb' | 'polars', asked: string, sql: string): Took {
  const held = livePoints()
  const files = held.map((path) => inLake(place.root, path))
  const spec = join(place.out, 'spec.json')
  const [recent, own] = [
    files.filter((path) => path.includes('/recent/')),
    files.filter((path) => !path.includes('/recent/')),
  ]
  const relation = readPoints(
    place.root,
    held.map((path) => ({ path })),
  )
  const range = rangeOf(size)
  writeFileSync(spec, JSON.stringify({ name: asked, sql, relation, own, recent, ...range, big, hourly: paths }))
  const python = spawnSync(join(project, 'scripts/peers.sh'), { encoding: 'utf8' }).stdout.trim()
  const begun = performance.now()
  const done = spawnSync(python, [join(project, 'test/python/scale_peers.py'), by, spec], {
    encoding: 'utf8',
    timeout: patience,
  })
  const wall = (performance.now() - begun) / 1000
  if (done.status !== 0) return { wall, cpu: wall, megabytes: 0, answer: '', failed: reasonOf(done) }
  const usage = JSON.parse(done.stderr.trim().split('\n').at(-1) ?? '') as Pick<Took, 'cpu' | 'megabytes'>
  return { wall, ...usage, answer: answerOf(done.stdout) }
}

function livePoints(): readonly string[] {
  using ledger = Ledger.asLeft(place.root)
  return ledger === undefined ? [] : liveFiles(ledger, { table: 'points' }).map(({ path }) => path)
}

/** What writing the rows of the largest metric takes DuckDB alone: the floor of a build. */
function bareCopy(): Took {
  const rows = `(FROM p WHERE metric = '${big}' AND "interval" = '10m' ORDER BY asset, t)`
  const to = `'${join(place.out, 'bare.parquet')}' (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd)`
  return peer('duckdb', 'copy of the largest metric', `COPY ${rows} TO ${to}`)
}

await main()
