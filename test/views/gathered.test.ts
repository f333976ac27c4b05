import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compact } from '../../src/jobs/compact.ts'
import { examine } from '../../src/jobs/doctor.ts'
import { redate } from '../../src/jobs/redate.ts'
import { replay, stamp } from '../../src/jobs/stamp.ts'
import { vacuum } from '../../src/jobs/vacuum.ts'
import { Engine } from '../../src/lake/engine.ts'
import { liveFiles } from '../../src/lake/held.ts'
import { inLake } from '../../src/lake/layout.ts'
import { Ledger } from '../../src/lake/ledger.ts'
import { buildViews } from '../../src/lake/views/build.ts'
import { openQuery } from '../../src/query/lake.ts'
import { commitDeps, inFolder } from '../helpers/lakes.ts'
import { day, metrics, rewriteDeps, start, topUps } from '../helpers/merging.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeViews } from '../helpers/views.ts'

const endpoints = [...new Set([...metrics, ...[...catalogue.endpoints.keys()].slice(0, 5)])]
const topUpDays = 5
const timeout = { timeout: 300_000 }

/** A history of each endpoint and so many top-ups, every one of them with points that came late: -0.0, null and objects inside. */
async function grow(root: string, deps: ReturnType<typeof rewriteDeps>, topped: number): Promise<void> {
  const ledger = await Ledger.open(root)
  try {
    const skip = [7]
    await topUps(
      ledger,
      deps,
      endpoints.map((metric) => ({ metric, since: 0, days: 40, skip })),
    )
    for (let n = 0; n < topped; n++) {
      deps.clock.now += day
      const since = 40 + n * topUpDays
      const late = n === 0 ? skip : []
      await topUps(
        ledger,
        deps,
        endpoints.map((metric) => ({ metric, since, days: topUpDays, late })),
      )
    }
  } finally {
    ledger.close()
  }
}

const gatheredIn = (root: string): string[] =>
  readdirSync(join(root, 'exports')).filter((name) => name.startsWith('gathered-'))

/** The names of points files in the view `points`. */
async function namedIn(engine: Engine): Promise<number> {
  const [row] = await engine.rows<{ sql: string }>(`SELECT sql FROM duckdb_views() WHERE view_name = 'points'`)
  return row?.sql.match(/points\/metric=/g)?.length ?? 0
}

/** Every row of points and what is made of them, in each state of knowledge. */
async function told(engine: Engine, observed: readonly number[]): Promise<string[]> {
  const answers: string[] = []
  const states = [
    '',
    `SET VARIABLE as_of = make_timestamptz(${(start + 43 * day) * 1_000_000}::BIGINT)`,
    ...observed.map((at) => `SET VARIABLE observed_as_of = make_timestamptz(${at}::BIGINT)`),
  ]
  for (const state of states)
    for (const backfill of ['strict', 'rule']) {
      await engine.run(`RESET VARIABLE as_of; RESET VARIABLE observed_as_of; SET VARIABLE backfill = '${backfill}'`)
      if (state !== '') await engine.run(state)
      for (const sql of [
        'SELECT *, signbit(v) AS sign FROM points ORDER BY ALL',
        'SELECT * FROM series ORDER BY ALL',
        'SELECT metric, "interval", component, count(*)::INTEGER AS n, sum(v) AS v FROM components GROUP BY ALL ORDER BY ALL',
        'SELECT metric, count(*)::INTEGER AS n FROM points GROUP BY ALL ORDER BY ALL',
      ]) {
        const rows = await engine.rows(sql)
        answers.push(JSON.stringify(rows, (_, cell: unknown) => (typeof cell === 'bigint' ? String(cell) : cell)))
      }
    }
  return answers
}

async function toldBy(database: string, observed: readonly number[]): Promise<{ answers: string[]; named: number }> {
  const engine = await Engine.open(database, { readOnly: true })
  try {
    return { answers: await told(engine, observed), named: await namedIn(engine) }
  } finally {
    engine.close()
  }
}

/** What the views say that gather, against views that name every file. */
async function bothTell(root: string, observed: readonly number[]): Promise<{ named: number; files: number }> {
  const plain = mkdtempSync(join(tmpdir(), 'pitlake-plain-'))
  try {
    await makeViews(root)
    await makeViews(root, { into: plain })
    const own = await toldBy(join(root, 'lake.duckdb'), observed)
    const other = await toldBy(join(plain, 'lake.duckdb'), observed)
    expect(own.answers).toEqual(other.answers)
    expect(own.answers[0]?.length).toBeGreaterThan(10_000)
    return { named: own.named, files: other.named }
  } finally {
    rmSync(plain, { recursive: true, force: true })
  }
}

test(
  'small files are gathered in one: every answer is that of the files, -0.0 and earlier datings included',
  timeout,
  async () => {
    await inFolder(async (root) => {
      const deps = rewriteDeps()
      await grow(root, deps, 3)
      const observed = (start + 402 * day) * 1_000_000
      const [many, few] = [endpoints.length * 4, endpoints.length]
      expect(await bothTell(root, [observed])).toEqual({ named: few, files: many })
      expect(gatheredIn(root)).toHaveLength(1)
      const lag = { kind: 'lag', seconds: 7200, basis: 'override', quote: null, reason: null, until: null } as const
      const path = metrics[0]
      const endpoint = catalogue.endpoints.get(path)
      if (!endpoint) throw new Error(path)
      const own = { ...endpoint, rules: { ...endpoint.rules, '24h': [{ ...lag, trust: 'provider' as const }] } }
      deps.clock.now += day
      await redate(root, { ...catalogue, endpoints: new Map([...catalogue.endpoints, [path, own]]) }, deps)
      // The files of the earlier dating are named beside those of now.
      const { named, files } = await bothTell(root, [observed, deps.clock.now * 1_000_000])
      expect(files).toBeGreaterThan(many)
      expect(files - named).toBeGreaterThanOrEqual(16)
    })
  },
)

test('a gathered file serves as long as its files do, is proved, and goes with vacuum', timeout, async () => {
  await inFolder(async (root) => {
    const deps = rewriteDeps()
    await grow(root, deps, 3)
    expect((await makeViews(root)).exports).toBeGreaterThan(0)
    const [first = ''] = gatheredIn(root)
    const path = join(root, 'exports', first)
    expect(await makeViews(root)).toMatchObject({ made: false, exports: 0 })
    // What was changed since, or lost, is made anew.
    const whole = readFileSync(path)
    writeFileSync(path, 'torn')
    expect(await makeViews(root)).toMatchObject({ made: false, exports: 1 })
    expect(readFileSync(path).equals(whole)).toBe(true)
    rmSync(path)
    expect(await makeViews(root)).toMatchObject({ exports: 1 })
    expect(statSync(path).size).toBe(whole.length)
    const out = join(root, 'counted.parquet')
    const run = { sleep: async () => await Promise.resolve() }
    const query = 'SELECT metric, asset, count(*) AS n, sum(v) AS v FROM points GROUP BY ALL ORDER BY ALL'
    await stamp({ root, catalogue, query, out, variables: {} }, run, deps)
    const session = await openQuery(root)
    try {
      const count = 'SELECT count(*)::INTEGER AS n FROM points'
      const [before] = await session.rows(count)
      await compact(root, deps)
      deps.clock.now += 30 * day
      const build = async (ledger: Ledger): Promise<void> => void (await buildViews(ledger, { catalogue, deps }))
      // What is younger than a week stays for the sessions that name it.
      const keeps = { root, keepSeconds: 90 * day, really: true }
      await vacuum(keeps, { ...deps, buildViews: build })
      expect(gatheredIn(root)).toEqual([first])
      expect(await session.rows(count)).toEqual([before])
      await vacuum({ ...keeps, keepSeconds: 0 }, { ...deps, buildViews: build })
      expect(gatheredIn(root)).toEqual([])
    } finally {
      session.close()
    }
    // A stamped result names the files themselves, and they stay for it.
    expect(readdirSync(join(root, 'stamps')).filter((name) => name.startsWith('gathered-'))).toEqual([])
    expect(await replay(root, out, run, deps.program)).toMatchObject({ same: true, notes: [] })
    const again = await openQuery(root)
    try {
      expect(await namedIn(again)).toBe(endpoints.length)
    } finally {
      again.close()
    }
  })
})

test('doctor and verify meet a gathered file that was lost or changed, and views mend it', timeout, async () => {
  await inFolder(async (root) => {
    await grow(root, rewriteDeps(), 3)
    await makeViews(root)
    const deps = {
      ...commitDeps(),
      views: async (ledger: Ledger) => await buildViews(ledger, { catalogue, deps: commitDeps(), force: true }),
      space: async () => await Promise.resolve({ free: Infinity, total: Infinity }),
    }
    const look = { data: root, thorough: true, rebuildLedger: false, repair: false, forgetLost: false }
    const found = async (changes: Partial<typeof look> = {}): Promise<string[]> => {
      const { findings } = await examine({ ...look, ...changes }, deps)
      return findings.map(({ kind, severity, path }) => `${severity} ${kind} ${path}`)
    }
    await found({ repair: true })
    expect(await found()).toEqual([])
    const [name = ''] = gatheredIn(root)
    const path = join(root, 'exports', name)
    const whole = readFileSync(path)
    // One bit: DuckDB may read it without a word.
    const changed = Buffer.from(whole)
    changed[200] = (changed[200] ?? 0) ^ 1
    writeFileSync(path, changed)
    expect(await found()).toEqual([`damage file_changed exports/${name}`])
    expect(await found({ repair: true })).toEqual([])
    expect(readFileSync(path).equals(whole)).toBe(true)
    rmSync(path)
    expect(await found({ thorough: false })).toEqual([`damage views_missing exports/${name}`])
    expect(await found({ repair: true })).toEqual([])
    expect(readFileSync(path).equals(whole)).toBe(true)
  })
})

test(
  'what cannot be gathered is named: too few files, a damaged one, one with another number of rows',
  timeout,
  async () => {
    await inFolder(async (root) => {
      await grow(root, rewriteDeps(), 2)
      await makeViews(root)
      expect(gatheredIn(root)).toEqual([])
    })
    await inFolder(async (root) => {
      await grow(root, rewriteDeps(), 3)
      const ledger = await Ledger.open(root)
      const [largest, ...others] = liveFiles(ledger, { table: 'points' }).toSorted((a, b) => b.rows - a.rows)
      ledger.close()
      const small = others.at(-1)
      if (largest === undefined || small === undefined) throw new Error('no files')
      const path = inLake(root, small.path)
      const whole = readFileSync(path)
      for (const bytes of [Buffer.from('torn'), readFileSync(inLake(root, largest.path)), whole]) {
        writeFileSync(path, bytes)
        await makeViews(root)
        const engine = await Engine.open(join(root, 'lake.duckdb'), { readOnly: true })
        expect(await namedIn(engine)).toBe(endpoints.length * (bytes === whole ? 1 : 4))
        engine.close()
      }
    })
  },
)
