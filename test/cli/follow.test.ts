// @module-tag full
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Deps } from '../../src/interfaces/cli/spec.ts'
import { pitlake } from '../helpers/command.ts'
import { fetchKey, type Rig, withRig } from '../helpers/fetching.ts'
import { withDesk } from '../helpers/importing.ts'

/* Features come along with whatever brings points, and cost nothing where nothing is due. */

const day = 86_400
const now = Date.UTC(2026, 2, 10, 12) / 1000

async function run(rig: Rig, argv: readonly string[], features: string, world: Partial<Deps> = {}) {
  writeFileSync(join(rig.root, 'f.yaml'), `features:\n${features}`)
  const select = `select: [{ assets: [BTC], paths: [supply/current_pit], since: ${now - 9 * day} }]`
  writeFileSync(join(rig.root, 'pitlake.yaml'), `${select}\ncatalogs: [f.yaml]\n`)
  const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey }
  const config = ['--config', join(rig.root, 'pitlake.yaml'), '--data', join(rig.root, 'lake')]
  return await pitlake(rig.root, [...argv, ...config], env, { now: () => rig.clock.now * 1000, ...world })
}

const sql = `SELECT ts, asset, v FROM pit_join('grid', 'supply/current_pit', '24h')`
const level = `  level: { why: a test, grid: 24h, assets: [BTC], sql: "${sql}" }\n`
const ahead = `  ahead: { why: a test, grid: 24h, sql: "SELECT ts, (SELECT max(v) FROM points) AS v FROM grid" }\n`
const wrong = `  wrong: { why: a test, grid: 24h, sql: "SELECT ts, v FROM nowhere" }\n`

test('a fetch and a watch bring features up to date and report each of them', async () =>
  await withRig(now, async (rig) => {
    const first = await run(rig, ['fetch', '--json'], level)
    expect([first.code, first.message]).toEqual([0, ''])
    expect(JSON.parse(first.out)).toMatchObject({
      points_added: 8,
      features: [{ name: 'feature/level', status: 'proved', rows_added: 9, until: '2026-03-10T00:00:00Z' }],
    })
    const again = JSON.parse((await run(rig, ['fetch', '--json'], level)).out)
    expect([again.features, again.version]).toEqual([undefined, JSON.parse(first.out).version])
    const told = await run(rig, ['fetch'], `${level}${ahead}`)
    expect([told.code, told.message]).toEqual([4, expect.stringMatching(/^feature\/ahead looks ahead: .*: on 2026-/)])
    expect(told.out).toMatch(/^version[^]*feature\/ahead v1: refused, /)
    const other = await run(rig, ['fetch'], `${level}${wrong}`)
    expect([other.code, other.message]).toEqual([6, expect.stringMatching(/f\.yaml:3: .*nowhere/)])
    const stop = new AbortController()
    const watched = await run(rig, ['watch', '--json'], `${level}${ahead}`, {
      signal: stop.signal,
      sleep: async (ms) => {
        await setImmediate()
        rig.clock.now += ms / 1000
        if (rig.clock.now > now + day) stop.abort()
      },
    })
    expect([watched.code, watched.message]).toEqual([0, ''])
    const events = watched.out.trim().split('\n')
    const words = events.map((line) => JSON.parse(line)).filter(({ kind }) => kind === 'features')
    // What is refused is told once.
    expect(words.map((one) => one.words.replace(/looks ahead: .*/s, 'looks ahead'))).toEqual([
      '0 rows of 1 feature added',
      'feature/ahead looks ahead',
      '1 row of 1 feature added',
    ])
  }))

test('an import brings features up to date', async () =>
  await withDesk(async (desk) => {
    const yaml = desk.put('f.yaml', `features:\n${level.replace('supply/current_pit', 'own/p')}`)
    const config = ['--config', desk.put('pitlake.yaml', `catalogs: [${yaml}]\n`)]
    const file = desk.put('p.csv', 'asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-02,2\n')
    const argv = [file, '--as', 'p', ...config]
    const at = '2024-03-03T06:00:00Z'
    expect(await desk.take(argv, at)).toMatchObject({ code: 0, told: { features: [{ rows_added: 3 }], version: 2 } })
    expect((await desk.take(argv, at)).told).toEqual(expect.not.objectContaining({ features: expect.anything() }))
    expect((await desk.run(['import', '--guess', file, ...config], '2024-03-04T06:00:00Z')).code).toBe(0)
    expect(await desk.rows(`SELECT max(version) AS n FROM versions`)).toEqual([{ n: 2n }])
  }))
