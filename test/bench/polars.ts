import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Engine, quote } from '../../src/store/engine.ts'
import { inLake } from '../../src/store/layout.ts'
import { joinObjects } from '../helpers/joins.ts'
import { dailyMetrics, decisions, makeLake } from './joins.ts'

/** Medians in seconds of one question asked of the lake and of polars in two forms, in turn in one process. */
export interface PolarsRatio {
  readonly name: string
  readonly ours: number
  /** One join for all metrics, as one would write it. */
  readonly whole: number
  /** Sorted once and joined metric by metric, tuned by hand. */
  readonly tuned: number
}

const project = fileURLToPath(new URL('../..', import.meta.url))
const python = join(project, 'test/python')

/** `pit_long` of twenty metrics against polars with the same exact rule, both on two threads, equal answers asserted. */
export async function benchPolars(rounds = 5): Promise<PolarsRatio[]> {
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
    const ratios: PolarsRatio[] = []
    for (const kind of ['random', 'midnight']) {
      const file = join(root, `${kind}.parquet`)
      await engine.run(`COPY (${decisions[kind]}) TO ${quote(file)} (FORMAT parquet)`)
      const spec = { script, points, decisions: file, interval: '24h', rounds, folder: root }
      ratios.push({ name: `pit_long, 20 metrics, ${kind} decisions, 1 % late`, ...ask(interpreter, root, spec) })
    }
    return ratios
  } finally {
    engine.close()
    rmSync(root, { recursive: true, force: true })
  }
}

function ask(interpreter: string, root: string, spec: object): Omit<PolarsRatio, 'name'> {
  const file = join(root, 'spec.json')
  writeFileSync(file, JSON.stringify(spec))
  const said = run(interpreter, [join(python, 'polars_join.py'), file], { POLARS_MAX_THREADS: '2' })
  const { seconds } = JSON.parse(said) as { seconds: Readonly<Record<string, readonly number[]>> }
  const median = (form: string): number =>
    (seconds[form] ?? []).toSorted((a, b) => a - b)[Math.floor((seconds[form]?.length ?? 0) / 2)] ?? Number.NaN
  return { ours: median('ours'), whole: median('one join'), tuned: median('metric by metric') }
}

/** A Python with DuckDB and polars, made below .cache when it is not there. */
function environment(): string {
  return run(join(project, 'scripts/peers.sh'), []).trim()
}

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const done = spawnSync(command, args, { encoding: 'utf8', env: { ...process.env, ...env }, timeout: 900_000 })
  if (done.status !== 0) throw new Error(`${command} ${args[0] ?? ''}: ${done.stderr || done.stdout || done.error}`)
  return done.stdout
}
