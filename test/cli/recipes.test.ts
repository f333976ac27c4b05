import { spawn } from 'node:child_process'
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { lockJob } from '../../src/lake/store/lock.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { pitlake } from '../helpers/command.ts'
import { apisAt, fetchKey, otherKey, type Rig, withRig } from '../helpers/fetching.ts'
import { inFolder } from '../helpers/folders.ts'
import { need } from '../helpers/needs.ts'

/** Orchestrators take their time to start, and each is started more than once. */
vi.setConfig({ testTimeout: 900_000 })

const deploy = fileURLToPath(new URL('../../deploy', import.meta.url))
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const scripts = fileURLToPath(new URL('../python', import.meta.url))
const day = 86_400
const now = Math.floor(Date.now() / 1000)
const since = now - 10 * day
const selection = { assets: ['BTC', 'ETH'], paths: ['supply/current_pit'], intervals: ['24h'] as const, since }

interface Ended {
  readonly code: number | null
  readonly out: string
  /** Both streams. */
  readonly said: string
}

/** A process with nothing of this one's environment but what finding programs needs. */
async function run(command: string, argv: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const { PATH = '' } = process.env
  const child = spawn(command, argv, { cwd, env: { PATH, HOME: cwd, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let said = ''
  child.stdout.on('data', (part: Buffer) => (out += part.toString()))
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += part.toString()))
  const code = await new Promise<number | null>((done) => child.on('close', done))
  return { code, out, said }
}

/** Works on a lake of ten days, in a folder beside it that holds a copy of a recipe. */
async function withRecipe(name: string, work: (rig: Rig, folder: string) => Promise<void>): Promise<void> {
  await withRig(now, async (rig) => {
    await inFolder(async (folder) => {
      cpSync(join(deploy, name), folder, { recursive: true })
      await work(rig, folder)
    })
  })
}

test('dbt: sources parse, their tests hold, freshness is that of the rules, models are as of an instant', async (context) => {
  const python = need(context, 'dbt')
  await withRecipe('dbt', async (rig, folder) => {
    const env = { PITLAKE_DATA: rig.root, DBT_PROFILES_DIR: folder }
    // Several calls in one process, as dbt takes seconds to begin.
    const dbt = async (...calls: readonly (readonly string[])[]): Promise<Omit<Ended, 'out'>[]> => {
      const { said } = await run(python, [join(scripts, 'dbt_run.py'), JSON.stringify(calls)], folder, env)
      return said.split('\0').map((part) => ({ code: Number(/\d$/.exec(part)?.[0] ?? 1), said: part }))
    }
    const views = async (): Promise<void> => expect((await pitlake(folder, ['views', '--data', rig.root])).code).toBe(0)
    await rig.fetch({ ...selection, until: now - 3 * day })
    await views()
    const made = await pitlake(folder, ['catalog', 'export', '--dbt', '-o', 'models/sources.yml', '--data', rig.root])
    expect([made.code, made.message]).toEqual([0, ''])
    const [parsed, late] = await dbt(['parse', '--show-all-deprecations'], ['source', 'freshness'])
    expect(parsed).toEqual({ code: 0, said: expect.not.stringMatching(/deprecat|warning|error/i) })
    expect(late?.said).toMatch(/WARN freshness of lake_endpoints\.supply__current_pit__24h/)
    expect(late?.said).toMatch(/PASS freshness of lake\.points/)
    await rig.fetch(selection)
    await views()
    const asOf = new Date((now - 5 * day) * 1000).toISOString()
    const build = ['build', '--select', 'source:lake.points+', '--vars', JSON.stringify({ as_of: asOf })]
    const [fresh, built] = await dbt(['source', 'freshness'], build)
    expect(fresh).toEqual({ code: 0, said: expect.stringMatching(/PASS freshness of lake_endpoints\.supply/) })
    expect(fresh?.said).not.toMatch(/ (?:WARN|ERROR)/)
    expect(built).toEqual({ code: 0, said: expect.stringMatching(/PASS=10 WARN=0 ERROR=0 SKIP=0/) })
    using engine = await Engine.open(join(folder, 'research.duckdb'), { readOnly: true })
    await engine.run(`ATTACH ${quote(join(rig.root, 'lake.duckdb'))} AS lake (READ_ONLY)`)
    const [told] = await engine.rows('SELECT points, newest_t FROM coverage_by_metric')
    const [held] = await engine.rows(
      `SELECT count(*) AS points, max(t) AS newest_t FROM lake.points WHERE available_at <= ${quote(asOf)}`,
    )
    expect(told).toEqual(held)
    expect(Number(told?.['points'])).toBeGreaterThan(5)
  })
})

/** What a recipe finds in its environment: this program, a config that selects, both APIs, and where it publishes. */
function around(rig: Rig, folder: string): Readonly<Record<string, string>> {
  const select = `[{ assets: [BTC, ETH], paths: [supply/current_pit], since: ${new Date(since * 1000).toISOString()} }]`
  writeFileSync(join(folder, 'pitlake.yaml'), `data: ${rig.root}\nselect: ${select}\n`)
  return {
    PITLAKE_COMMAND: `${process.execPath} ${main}`,
    PITLAKE_HOME: folder,
    ...apisAt(rig.url),
    PITLAKE_PUBLISH: join(folder, 'published'),
    PYTHONPATH: folder,
  }
}

/**
 * A lake of some days whose newest points the provider tells otherwise by now, and whose registry another job holds.
 */
async function withTrouble(rig: Rig, work: () => Promise<void>): Promise<void> {
  await rig.fetch({ ...selection, until: now - 3 * day })
  rig.faults(`rewrite@supply/*:t=${(Math.floor(now / day) - 4) * day},v=101`)
  await using _ = await lockJob(rig.root, 'registry', { pid: 1, host: 'h', command: 'pitlake x', since: 1 })
  await work()
}

/** The provider tells again what it told before, and a person has taken note of it. */
async function settled(rig: Rig): Promise<void> {
  rig.faults()
  const { out } = await pitlake(rig.root, ['violations', 'list', '--json', '--data', rig.root])
  const { violations } = JSON.parse(out) as { violations: readonly { id: string }[] }
  expect(violations.length).toBeGreaterThan(0)
  const ids = violations.map(({ id }) => id)
  const accepted = await pitlake(rig.root, ['violations', 'acknowledge', ...ids, '--why', 'x', '--data', rig.root])
  expect([accepted.code, accepted.message]).toEqual([0, ''])
}

/** What test/python/dagster_run.py tells. */
interface Materialised {
  readonly success: boolean
  readonly assets: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly checks: Readonly<Record<string, readonly [boolean, string]>>
  readonly failures: Readonly<Record<string, string>>
  readonly retries: readonly string[]
}

test('Dagster: jobs are assets, findings checks; what is held is tried again, what a person must mend fails', async (context) => {
  const python = need(context, 'dagster')
  await withRecipe('orchestrators', async (rig, folder) => {
    const env = around(rig, folder)
    const materialise = async (more: Readonly<Record<string, string>> = {}): Promise<Materialised> => {
      const { out, said } = await run(python, [join(scripts, 'dagster_run.py')], folder, { ...env, ...more })
      expect(said).not.toMatch(new RegExp(`${fetchKey}|${otherKey.replaceAll(/\W/g, String.raw`\$&`)}`))
      if (!out.startsWith('{')) throw new Error(said)
      return JSON.parse(out) as Materialised
    }
    await withTrouble(rig, async () => {
      const told = await materialise()
      expect(told).toMatchObject({ success: false, retries: ['registry', 'registry', 'registry'] })
      expect(told.assets).toEqual({ metrics: expect.objectContaining({ exit_code: 4, violations: 2 }) as unknown })
      expect(told.checks).toEqual({ 'metrics integrity': [false, 'ERROR'], 'metrics complete': [true, 'WARN'] })
    })
    const found = await materialise()
    expect([found.success, Object.keys(found.assets).toSorted(), found.failures, found.retries]).toEqual([
      true,
      ['metrics', 'published', 'registry', 'views'],
      {},
      [],
    ])
    const failed = Object.entries(found.checks).filter(([, [passed]]) => !passed)
    // The violation stands until somebody accepts it; verify sees it once more.
    expect(failed.map(([name]) => name)).toEqual(expect.arrayContaining(['views status', 'views verify']))
    await settled(rig)
    const refused = await materialise({ PITLAKE_METRICS_KEY: 'not-the-right-key' })
    expect([refused.success, refused.retries, Object.keys(refused.failures)]).toEqual([false, [], ['views_verify']])
    expect(refused.failures['views_verify']).toContain('check PITLAKE_METRICS_KEY')
    expect(refused.checks).toMatchObject({ 'views status': [true, 'ERROR'], 'views availability': [true, 'ERROR'] })
  })
})

test('Airflow: each job runs whatever the others said, findings fail the run, a good one passes', async (context) => {
  const python = need(context, 'airflow')
  await withRecipe('orchestrators', async (rig, folder) => {
    const env = {
      ...around(rig, folder),
      AIRFLOW_HOME: join(folder, 'home'),
      AIRFLOW__CORE__LOAD_EXAMPLES: 'False',
      AIRFLOW__CORE__DAGS_FOLDER: folder,
    }
    const dag = async (): Promise<unknown> => {
      const told = join(folder, 'told.json')
      rmSync(told, { force: true })
      const { said } = await run(python, [join(scripts, 'airflow_run.py'), told], folder, env)
      if (!existsSync(told)) throw new Error(said)
      expect(said).not.toMatch(new RegExp(`${fetchKey}|${otherKey.replaceAll(/\W/g, String.raw`\$&`)}`))
      return JSON.parse(readFileSync(told, 'utf8'))
    }
    const good = { views: 'success', publish: 'success', availability: 'success' }
    await withTrouble(rig, async () => {
      const bad = { fetch: 'failed', registry_sync: 'failed', verify: 'failed', status: 'failed', told: 'failed' }
      expect(await dag()).toEqual({ run: 'failed', tasks: { ...good, ...bad } })
    })
    await settled(rig)
    const more = { fetch: 'success', registry_sync: 'success', verify: 'success', status: 'success', told: 'skipped' }
    expect(await dag()).toEqual({ run: 'success', tasks: { ...good, ...more } })
  })
})
