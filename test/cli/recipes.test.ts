import { spawn } from 'node:child_process'
import { cpSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { Engine, quote } from '../../src/store/engine.ts'
import { pitlake } from '../helpers/command.ts'
import { type Bench, withBench } from '../helpers/fetching.ts'
import { inFolder } from '../helpers/lakes.ts'
import { need } from '../helpers/needs.ts'

const deploy = fileURLToPath(new URL('../../deploy', import.meta.url))
const day = 86_400
const now = Math.floor(Date.now() / 1000)
const since = now - 10 * day
const selection = { assets: ['BTC', 'ETH'], paths: ['supply/current_pit'], intervals: ['24h'] as const, since }

interface Ended {
  readonly code: number | null
  readonly said: string
}

/** A process with nothing of this one's environment but what finding programs needs. */
async function run(command: string, argv: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const { PATH = '' } = process.env
  const child = spawn(command, argv, { cwd, env: { PATH, HOME: cwd, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += part.toString()))
  const code = await new Promise<number | null>((done) => child.on('close', done))
  return { code, said }
}

/** Works on a lake of ten days, in a folder beside it that holds a copy of a recipe. */
async function withRecipe(name: string, work: (bench: Bench, folder: string) => Promise<void>): Promise<void> {
  await withBench(now, async (bench) => {
    await inFolder(async (folder) => {
      cpSync(join(deploy, name), folder, { recursive: true })
      await work(bench, folder)
    })
  })
}

test('dbt: sources parse, their tests hold, freshness is that of the rules, models are as of an instant', async (context) => {
  const program = join(dirname(need(context, 'dbt')), 'dbt')
  await withRecipe('dbt', async (bench, folder) => {
    const env = { PITLAKE_DATA: bench.root, DBT_PROFILES_DIR: folder }
    const dbt = async (...argv: readonly string[]): Promise<Ended> =>
      await run(program, ['--no-use-colors', ...argv], folder, env)
    const views = async (): Promise<void> =>
      expect((await pitlake(folder, ['views', '--data', bench.root])).code).toBe(0)
    await bench.fetch({ ...selection, until: now - 3 * day })
    await views()
    const made = await pitlake(folder, ['catalog', 'export', '--dbt', '-o', 'models/sources.yml', '--data', bench.root])
    expect([made.code, made.message]).toEqual([0, ''])
    const parsed = await dbt('parse', '--show-all-deprecations')
    expect([parsed.code, parsed.said]).toEqual([0, expect.not.stringMatching(/deprecat|warning|error/i)])
    const late = await dbt('source', 'freshness')
    expect(late.said).toMatch(/WARN freshness of lake_endpoints\.supply__current_pit__24h/)
    expect(late.said).toMatch(/PASS freshness of lake\.points/)
    await bench.fetch(selection)
    await views()
    const fresh = await dbt('source', 'freshness')
    expect([fresh.code, fresh.said]).toEqual([0, expect.stringMatching(/PASS freshness of lake_endpoints\.supply/)])
    expect(fresh.said).not.toMatch(/ (?:WARN|ERROR)/)
    const asOf = new Date((now - 5 * day) * 1000).toISOString()
    const built = await dbt('build', '--select', 'source:lake.points+', '--vars', JSON.stringify({ as_of: asOf }))
    expect([built.code, built.said]).toEqual([0, expect.stringMatching(/PASS=10 WARN=0 ERROR=0 SKIP=0/)])
    using engine = await Engine.open(join(folder, 'research.duckdb'), { readOnly: true })
    await engine.run(`ATTACH ${quote(join(bench.root, 'lake.duckdb'))} AS lake (READ_ONLY)`)
    const [told] = await engine.rows('SELECT points, newest_t FROM coverage_by_metric')
    const [held] = await engine.rows(
      `SELECT count(*) AS points, max(t) AS newest_t FROM lake.points WHERE available_at <= ${quote(asOf)}`,
    )
    expect(told).toEqual(held)
    expect(Number(told?.['points'])).toBeGreaterThan(5)
  })
})
