import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { joinObjects } from '../helpers/joins.ts'
import { dailyMetrics, decisions, makeLake } from './joins.ts'
import { figure, judged, type Measured, median, scaled } from './measured.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))
const python = join(project, 'test/python')

/**
 * `pit_long` of twenty metrics against polars, in one join and sorted once and joined metric by metric, and against
 * pandas, all with the same exact rule on two threads, equal answers asserted in each round.
 */
export async function benchPanel(rounds = scaled(5)): Promise<Measured[]> {
  const interpreter = environment()
  const root = mkdtempSync(join(tmpdir(), 'pitlake-bench-polars-'))
  const engine = await Engine.open(':memory:', { threads: 2 })
  try {
    const metrics = dailyMetrics()
    const files = await makeLake(engine, root, metrics, 100)
    const script = join(root, 'macros.sql')
    writeFileSync(
      script,
      joinObjects(root, files)
        .map(({ sql }) => sql)
        .join('\n'),
    )
    const points = Object.fromEntries(files.map(({ metric, path }) => [metric, inLake(root, path)]))
    const measured: Measured[] = []
    for (const kind of ['random', 'midnight']) {
      const file = join(root, `${kind}.parquet`)
      await engine.run(`COPY (${decisions[kind]}) TO ${quote(file)} (FORMAT parquet)`)
      const spec = { script, points, decisions: file, interval: '24h', rounds, folder: root }
      measured.push(ask(interpreter, root, `pit_long, 20 metrics, ${kind} decisions, 1 % late`, spec))
    }
    return measured
  } finally {
    engine.close()
    rmSync(root, { recursive: true, force: true })
  }
}

function ask(interpreter: string, root: string, name: string, spec: object): Measured {
  const file = join(root, 'spec.json')
  writeFileSync(file, JSON.stringify(spec))
  const said = run(interpreter, [join(python, 'polars_join.py'), file], { POLARS_MAX_THREADS: '2' })
  const { seconds } = JSON.parse(said) as { seconds: Readonly<Record<string, readonly number[]>> }
  const { ours: pitlake = [], ...theirs } = seconds
  const named = Object.entries(theirs).map(([form, own]) => [form === 'pandas' ? form : `polars, ${form}`, own])
  figure(name, { pitlake, ...(Object.fromEntries(named) as Record<string, readonly number[]>) })
  const [ours = 0, whole = 0, tuned = 0, pandas = 0] = ['ours', 'one join', 'metric by metric', 'pandas'].map((form) =>
    median(seconds[form] ?? []),
  )
  const told = `${ours.toFixed(2)} s, polars in one join ${whole.toFixed(2)} s, metric by metric ${tuned.toFixed(2)} s, pandas ${pandas.toFixed(2)} s`
  const others = `${(ours / tuned).toFixed(2)} to polars metric by metric, ${(ours / pandas).toFixed(2)} to pandas`
  return judged(
    `${name}: ${told}; ratios ${others}, ${(ours / whole).toFixed(2)} to polars in one join`,
    ours / whole,
    1,
  )
}

/** A Python with DuckDB and polars, made below .cache when it is not there. */
const environment = (): string => run(join(project, 'scripts/peers.sh'), []).trim()

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const done = spawnSync(command, args, { encoding: 'utf8', env: { ...process.env, ...env }, timeout: 900_000 })
  if (done.status !== 0) throw new Error(`${command} ${args[0] ?? ''}: ${done.stderr || done.stdout || done.error}`)
  return done.stdout
}
