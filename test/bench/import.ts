import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { engineMemory } from '../../src/lake/store/memory.ts'
import { byTurns, figure, judged, type Measured, median, sameRows, scaled } from './measured.ts'
import { runScript, type Took } from './programs.ts'
import { root as project } from './provider.ts'

/*
 * A first import of ten million rows of a user's Parquet, in the order of time, against DuckDB's bare sorted COPY of
 * them within the same memory: by the clock and in processor time, and the memory that the import held. The clock of
 * the import counts its start, its commit and its views.
 */

const assets = 100
const hours = scaled(100_000)
const rounds = scaled(5)
const gigabyte = 1e9

type Taken = Pick<Took, 'wall' | 'cpu'>

/** What both took, the same rows in each round, and the peak. */
export async function benchImport(): Promise<Measured[]> {
  const home = mkdtempSync(join(tmpdir(), 'pitlake-import-'))
  const file = join(home, 'rows.parquet')
  const bare = join(home, 'bare.parquet')
  const within = async (work: (engine: Engine) => Promise<unknown>): Promise<Taken> => {
    using engine = await Engine.open(':memory:', { memoryLimit: engineMemory(1, gigabyte) })
    const before = process.cpuUsage()
    const begun = performance.now()
    await work(engine)
    const { user, system } = process.cpuUsage(before)
    return { cpu: (user + system) / 1e6, wall: (performance.now() - begun) / 1000 }
  }
  try {
    await within(async (engine) => await engine.run(`COPY (${rowsSql}) TO ${quote(file)} (FORMAT parquet)`))
    const times: [ours: Taken, theirs: Taken][] = []
    let peak = 0
    for (let round = -1; round < rounds; round++) {
      const lake = join(home, `lake${round}`)
      const flags = ['--as', 'x', '--value', 'value', '--available', 'end+5m', '--memory', '1GB', '--data', lake]
      const ours = async () => {
        const took = runScript(project, ['src/main.ts', 'import', file, ...flags], {})
        peak = Math.max(peak, took.megabytes)
        return took
      }
      const sorted = `COPY (FROM read_parquet(${quote(file)}) ORDER BY asset, t) TO ${quote(bare)} (FORMAT parquet, COMPRESSION zstd)`
      const theirs = async () => await within(async (engine) => await engine.run(sorted))
      const [a, b] = await byTurns<Taken>(round, [ours, theirs])
      using engine = await Engine.open()
      const points = `(SELECT asset, t, v FROM read_parquet(${quote(join(lake, 'points/**/*.parquet'))}))`
      await sameRows(engine, 'import', points, `(SELECT asset, t, value AS v FROM read_parquet(${quote(bare)}))`)
      if (round >= 0 && a && b) times.push([a, b])
      rmSync(lake, { recursive: true })
    }
    const name = `import of ${(assets * hours).toLocaleString('en-US')} rows`
    const told = (words: string, key: keyof Taken): Measured => {
      const ours = times.map(([a]) => a[key])
      const theirs = times.map(([, b]) => b[key])
      figure(`${name}, ${words}`, { pitlake: ours, 'bare sorted COPY': theirs })
      const ratio = median(times.map(([a, b]) => a[key] / b[key]))
      const seconds = `${median(ours).toFixed(1)} s, bare sorted COPY ${median(theirs).toFixed(1)} s`
      return judged(`${name}, ${words}: ${seconds}, ratio ${ratio.toFixed(2)}`, ratio, 1.5)
    }
    return [
      told('by the clock', 'wall'),
      told('of the processor', 'cpu'),
      judged(`${name} with --memory 1GB: ${peak} MB`, peak, 1000, ' MB'),
    ]
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

const rowsSql = `SELECT 'A' || a AS asset, make_timestamptz((1400000400 + h * 3600)::BIGINT * 1000000) AS t, hash(a * 1000000 + h) / 1e15 AS value
  FROM (SELECT unnest(range(${hours})) AS h) CROSS JOIN (SELECT unnest(range(${assets})) AS a) ORDER BY h, a`
