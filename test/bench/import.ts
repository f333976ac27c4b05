import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Engine, quote } from '../../src/store/engine.ts'
import { engineMemory } from '../../src/store/memory.ts'
import { byTurns, figure, judged, type Measured, median, sameRows, scaled } from './measured.ts'
import { runScript } from './programs.ts'
import { root as project } from './provider.ts'

/*
 * A first import of ten million rows of a user's Parquet, in the order of time, against DuckDB's bare sorted COPY of them
 * within the same memory: processor time, and the memory that the import held.
 */

const assets = 100
const hours = scaled(100_000)
const rounds = scaled(5)
const gigabyte = 1e9

/** Processor time of both, the same rows in each round, and the peak. */
export async function benchImport(): Promise<Measured[]> {
  const home = mkdtempSync(join(tmpdir(), 'pitlake-import-'))
  const [file, bare] = [join(home, 'rows.parquet'), join(home, 'bare.parquet')]
  const processor = async (work: (engine: Engine) => Promise<unknown>): Promise<number> => {
    using engine = await Engine.open(':memory:', { memoryLimit: engineMemory(1, gigabyte) })
    const before = process.cpuUsage()
    await work(engine)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1e6
  }
  try {
    await processor(async (engine) => await engine.run(`COPY (${rowsSql}) TO ${quote(file)} (FORMAT parquet)`))
    const times: [number, number][] = []
    let peak = 0
    for (let round = -1; round < rounds; round++) {
      const lake = join(home, `lake${round}`)
      const flags = ['--as', 'x', '--value', 'value', '--available', 'end+5m', '--memory', '1GB', '--data', lake]
      const ours = async () => {
        const { cpu, megabytes } = runScript(project, ['src/main.ts', 'import', file, ...flags], {})
        peak = Math.max(peak, megabytes)
        return cpu
      }
      const sorted = `COPY (FROM read_parquet(${quote(file)}) ORDER BY asset, t) TO ${quote(bare)} (FORMAT parquet, COMPRESSION zstd)`
      const theirs = async () => await processor(async (engine) => await engine.run(sorted))
      const [a = 0, b = 0] = await byTurns(round, [ours, theirs])
      using engine = await Engine.open()
      const points = `(SELECT asset, t, v FROM read_parquet(${quote(join(lake, 'points/**/*.parquet'))}))`
      await sameRows(engine, 'import', points, `(SELECT asset, t, value AS v FROM read_parquet(${quote(bare)}))`)
      if (round >= 0) times.push([a, b])
      rmSync(lake, { recursive: true })
    }
    const name = `import of ${(assets * hours).toLocaleString('en-US')} rows`
    figure(name, { pitlake: times.map(([a]) => a), 'bare sorted COPY': times.map(([, b]) => b) })
    const ratio = median(times.map(([a, b]) => a / b))
    const seconds = `${median(times.map(([a]) => a)).toFixed(1)} s of processor, bare sorted COPY ${median(times.map(([, b]) => b)).toFixed(1)} s`
    return [
      judged(`${name}: ${seconds}, ratio ${ratio.toFixed(2)}`, ratio, 1.5),
      judged(`${name} with --memory 1GB: ${peak} MB`, peak, 1000, ' MB'),
    ]
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

const rowsSql = `SELECT 'A' || a AS asset, make_timestamptz((1400000400 + h * 3600)::BIGINT * 1000000) AS t, hash(a * 1000000 + h) / 1e15 AS value
  FROM (SELECT unnest(range(${hours})) AS h) CROSS JOIN (SELECT unnest(range(${assets})) AS a) ORDER BY h, a`
