// @module-tag full
// @module-tag slow
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { withViews } from '../helpers/views.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'
import { need } from '../helpers/needs.ts'
import { sample } from '../helpers/tiers.ts'

const project = join(import.meta.dirname, '../..')
const metric = 'indicators/sopr_adjusted_pit'
const zones = ['UTC', 'America/New_York', 'Asia/Kolkata', 'Pacific/Kiritimati']

/** Settings that move a session in time, and the days whose points are known then. */
const settings: readonly (readonly [set: string, flags: readonly string[], days: readonly string[]])[] = [
  ["SET VARIABLE as_of = '2024-03-03 00:10'", ['--as-of', '2024-03-03 00:10'], ['03-01', '03-02']],
  ["SET VARIABLE as_of = '2024-03-02T19:09:59-05:00'", ['--as-of', '2024-03-02T19:09:59-05:00'], ['03-01']],
  ["SET VARIABLE as_of = TIMESTAMP '2024-03-03 00:10'", [], ['03-01', '03-02']],
  ["SET VARIABLE as_of = DATE '2024-03-04'", ['--as-of', '2024-03-04'], ['03-01', '03-02']],
  ["SET VARIABLE as_of = TIMESTAMPTZ '2024-03-03 05:40:00+05:30'", [], ['03-01', '03-02']],
  ["SET VARIABLE observed_as_of = '2024-04-01 12:00'", ['--observed-as-of', '2024-04-01 12:00'], ['03-01', '03-02']],
  ["SET VARIABLE observed_as_of = TIMESTAMP '2024-04-01 11:59'", [], []],
]

const point = (day: number): PointRow => ({
  metric,
  asset: 'BTC',
  interval: '24h',
  t: `2024-03-0${day}`,
  available_at: `2024-03-0${day + 1}T00:10:00Z`,
  v: day,
})

const { root } = lakeOfFile({
  name: 'peers',
  commits: [
    { at: '2024-04-01T12:00:00Z', points: [point(1), point(2)] },
    { at: '2024-04-02T12:00:00Z', points: [point(3)] },
  ],
})

const views = `SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || '"' || view_name || '"' AS name
  FROM duckdb_views() WHERE NOT internal AND view_name <> 'lake_info' ORDER BY 1`

type Told = Record<string, [number, string]>
const told = new Map<string, Promise<Told>>()

/** Rows and digest of every view by Node, the same in every zone; looked up once. */
async function byNode(set: string): Promise<Told> {
  const known = told.get(set) ?? inZones(set)
  told.set(set, known)
  return await known
}

async function inZones(set: string): Promise<Told> {
  const seen: Told[] = []
  for (const zone of zones)
    seen.push(
      await withViews(root, async (engine) => {
        await engine.run(`SET TimeZone = '${zone}'; ${set}`)
        const found: Told = {}
        for (const { name } of await engine.rows<{ name: string }>(views)) {
          const [row] = await engine.rows<{ n: number; h: string }>(
            `SELECT count(*)::INTEGER AS n, coalesce(sum(hash(r)), 0)::VARCHAR AS h FROM ${name} r`,
          )
          if (row) found[name] = [row.n, row.h]
        }
        return found
      }),
    )
  const [first = {}] = seen
  for (const other of seen) expect(other).toEqual(first)
  return first
}

test.each(sample(settings, settings.length))(
  'TIME 29: %s is the same in four zones, in every view',
  async (set, _flags, days) => {
    expect((await byNode(set))['"points"']?.[0]).toBe(days.length)
  },
)

const asked = "SELECT list(strftime(timezone('UTC', t), '%m-%d') ORDER BY t) AS days FROM points"

/** The days that `pitlake sql` shows in a process of that zone; its sessions are in UTC. */
function bySql(zone: string, words: readonly string[]): unknown {
  const command = ['src/main.ts', 'sql', '--data', root, '--format', 'jsonl', ...words]
  const env = { ...process.env, TZ: zone }
  const said = execFileSync(process.execPath, command, { cwd: project, encoding: 'utf8', env, stdio: 'pipe' })
  return (JSON.parse(said) as { days: unknown }).days ?? []
}

test.each(sample(zones, zones.length))('TIME 28: `pitlake sql` sees the same in %s', (zone) => {
  for (const n of [0, 5]) {
    const [set, flags, days] = settings[n] ?? ['', [], []]
    // Every other zone by the flag, the others by the statement.
    const words = (n + zones.indexOf(zone)) % 2 === 0 ? [`${set}; ${asked}`] : [...flags, asked]
    expect(bySql(zone, words)).toEqual(days)
  }
})

test('TIME 28, TIME 29: Python and the duckdb command line see what Node sees, in four zones', async (context) => {
  const python = need(context, 'peers')
  const some = sample(settings, 2, Math.ceil(settings.length / 2)).map(([set]) => set)
  const said = execFileSync(python, ['test/python/peers.py', root, ...some], { cwd: project, encoding: 'utf8' })
  const lines = said.trim().split('\n')
  expect(lines).toHaveLength(some.length)
  for (const [n, set] of some.entries()) expect(JSON.parse(lines[n] ?? '')).toEqual(await byNode(set))
})

test('the functions of the notebooks give the same with pandas and with polars', (context) => {
  const python = need(context, 'peers')
  const said = execFileSync(python, ['test/python/frames.py', metric], {
    cwd: project,
    encoding: 'utf8',
    env: { ...process.env, PITLAKE_DATA: root, PYTHONDONTWRITEBYTECODE: '1' },
  })
  expect(said.trim().split('\n')).toEqual(['sql 2', 'points 2', 'panel 2', 'universe 0'])
})
