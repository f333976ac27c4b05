import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { storedVersions } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { pitlake } from '../helpers/command.ts'
import { type Rig, fetchKey, withRig } from '../helpers/fetching.ts'
import { need } from '../helpers/needs.ts'

const now = Date.UTC(2026, 2, 10, 12) / 1000
const day = 86_400

/** Runs a command against the rig; its JSON, its text and what it said beside. */
async function run(rig: Rig, ...argv: readonly string[]) {
  const data = argv.includes('--data') ? [] : ['--data', `${rig.root}/lake`]
  const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey }
  const ended = await pitlake(rig.root, [...argv, ...data], env, { now: () => rig.clock.now * 1000 })
  if (ended.message !== '') throw new Error(ended.message)
  return { ...ended, json: argv.includes('--json') ? JSON.parse(ended.out) : null }
}

const asked = ({ sandbox }: Rig, api = 'metadata') => sandbox.requests().filter((request) => request.api === api).length
const selected = ['--assets', 'BTC,ETH', '--paths', 'supply/*', '--since', '2026-03-01']

async function versions(rig: Rig): Promise<number> {
  using ledger = await Ledger.openToRead(`${rig.root}/lake`)
  const list = storedVersions(ledger)
  return list.length
}

test('plan asks for metadata as fetch does, and plans the requests that fetch sends', async () =>
  await withRig(now, async (rig) => {
    const offline = await run(rig, 'plan', ...selected, '--offline', '--json')
    expect(asked(rig)).toBe(0)
    expect(offline.json).toMatchObject({ not_requested: 0, metadata: { paths: 0, asked: 0, offline: true } })
    expect(offline.notes).toContain('--offline: planned with the metadata in the lake')
    const first = await run(rig, 'plan', ...selected, '--requests', '--json')
    expect([asked(rig), asked(rig, 'metrics')]).toEqual([5, 0])
    expect(existsSync(`${rig.root}/lake`)).toBe(false)
    expect(first.json).toMatchObject({ metadata: { paths: 5, asked: 5, offline: false } })
    expect(first.json.requests).toBeLessThan(offline.json.requests)
    expect(first.json.requests + first.json.not_requested).toBeGreaterThanOrEqual(offline.json.requests)
    expect(first.notes).toBe('')
    const fetched = await run(rig, 'fetch', ...selected, '--json')
    expect(fetched.json).toMatchObject({ requests: first.json.requests, stopped_by: null })
    expect(asked(rig)).toBe(10)
    const sent = rig.sandbox.requests().filter(({ api, path }) => api === 'metrics' && !path.endsWith('/assets'))
    expect(
      sent.map(({ path, query }) => `${path.slice('/v1/metrics/'.length)} ${query['a']} ${query['s']}`).toSorted(),
    ).toEqual(
      first.json.asks
        .map(
          ({ series, since }: { series: string; since: number }) =>
            `${series.split('|').slice(0, 2).join(' ')} ${since}`,
        )
        .toSorted(),
    )
  }))

test('plan keeps metadata in a lake after seven days, without a version where they say the same', async () =>
  await withRig(now, async (rig) => {
    await run(rig, 'fetch', ...selected)
    const made = await versions(rig)
    rig.clock.now += 8 * day
    const old = await run(rig, 'plan', ...selected, '--offline')
    expect([asked(rig), old.out]).toEqual([5, expect.stringMatching(/^metadata +of 5 paths, 0 requested now$/m)])
    expect(old.out).toMatch(/^not requested +\d+ windows?$/m)
    expect(old.notes).toContain('not in the metadata of 2026-03-10')
    const plan = await run(rig, 'plan', ...selected)
    expect(await versions(rig)).toBe(made)
    expect([asked(rig), plan.out]).toEqual([10, expect.stringMatching(/^metadata +of 5 paths, 5 requested now$/m)])
    await run(rig, 'plan', ...selected)
    await run(rig, 'fetch', ...selected, '--max-requests', '1').catch(() => undefined)
    expect(asked(rig)).toBe(10)
    rig.faults('metadata-says@metadata/supply/burned_pit:parameter=a,values=BTC+ETH')
    rig.clock.now += 8 * day
    const before = await versions(rig)
    await run(rig, 'plan', ...selected)
    expect(await versions(rig)).toBe(before + 1)
  }))

test('plan in a mirror or a read-only lake requests metadata and stores nothing', async (context) => {
  need(context, 'mount')
  await withRig(now, async (rig) => {
    const lake = `${rig.root}/lake`
    const mirror = `${rig.root}/mirror`
    await run(rig, 'fetch', ...selected)
    await run(rig, 'pull', lake, '--data', mirror)
    const others = ['--assets', 'BTC', '--paths', 'addresses/*', '--since', '2026-03-01']
    const planned = await run(rig, 'plan', ...others, '--json')
    const journal = (root: string): string[] => readdirSync(`${root}/journal`)
    const before = journal(mirror)
    const inMirror = await run(rig, 'plan', ...others, '--json', '--data', mirror)
    expect([inMirror.json, journal(mirror)]).toEqual([planned.json, before])
    expect(planned.json.metadata.asked).toBeGreaterThan(5)
    expect(spawnSync('mount', ['--bind', mirror, mirror]).status).toBe(0)
    try {
      const own = JSON.parse(readFileSync(`${mirror}/lake.json`, 'utf8')) as object
      writeFileSync(`${mirror}/lake.json`, JSON.stringify({ ...own, mirror_of: undefined }))
      expect(spawnSync('mount', ['-o', 'remount,ro,bind', mirror]).status).toBe(0)
      const readOnly = await run(rig, 'plan', ...others, '--json', '--data', mirror)
      expect([readOnly.json, journal(mirror)]).toEqual([planned.json, before])
    } finally {
      spawnSync('umount', [mirror])
    }
  })
})

test('only what flags name one by one is planned whatever metadata say', async () =>
  await withRig(now, async (rig) => {
    rig.faults('metadata-says:parameter=a,values=BTC')
    const config = `${rig.root}/pitlake.yaml`
    writeFileSync(config, 'select: [{ assets: [BTC, ETH], paths: [supply/current_pit], since: 2026-03-01 }]\n')
    const left = async (...argv: readonly string[]) => {
      const planned = await run(rig, 'plan', '--since', '2026-03-01', '--json', '--config', config, ...argv)
      return planned.json.not_requested
    }
    const both = ['--assets', 'BTC,ETH', '--paths']
    expect(await left(...both, 'supply/current_pit')).toBe(0)
    expect(await left(...both, 'supply/current_pit', '--intervals', '24h', '--currencies', 'native')).toBe(0)
    expect(await left(...both, 'supply/current_pi*')).toBe(1)
    expect(await left(...both, 'supply/current_pit', '--currencies', '*')).toBe(2)
    expect(await left(...both, 'supply/current_pit,supply/burned*')).toBe(1)
    expect(await left('--assets', 'ETH')).toBeGreaterThan(100)
    // What the config selects is a plan for every day.
    expect(await left()).toBe(1)
  }))

test('a plan that cannot ask, or is wrong, leaves nothing behind', async () =>
  await withRig(now, async (rig) => {
    rig.faults('reset@metadata')
    const { json } = await run(rig, 'plan', ...selected, '--json')
    expect(json).toMatchObject({ not_requested: 0, metadata: { paths: 0 } })
    await expect(run(rig, 'plan', '--assets', 'BTC', '--intervals', '2h')).rejects.toThrow(/2h/)
    expect(readdirSync(rig.root)).toEqual([])
    rmSync(rig.root, { recursive: true, force: true })
  }))

test('plan --due prints what is due next in 80 columns and sends no request', async () =>
  await withRig(now, async (rig) => {
    const metrics = [
      '--assets',
      'BTC,ETH',
      '--paths',
      'supply/current_pit,indicators/asol_pit',
      '--intervals',
      '24h,1h',
    ]
    const fresh = await run(rig, 'plan', '--due', ...metrics, '--json')
    expect(fresh.json).toMatchObject({ at: '2026-03-10T12:00:00Z', series: 8, overdue: 0, registry: null })
    expect(new Set(fresh.json.due.map((row: { by: string; t: null }) => `${row.by} ${row.t}`))).toEqual(
      new Set(['new null']),
    )
    expect(existsSync(`${rig.root}/lake`)).toBe(false)
    await run(rig, 'fetch', ...metrics, '--since', '2026-02-01')
    const before = rig.sandbox.requests().length
    const { json } = await run(rig, 'plan', '--due', '--json')
    const daily = json.due.filter((row: { interval: string; metric: string }) => row.interval === '24h')
    expect(daily).toHaveLength(4)
    for (const row of daily) {
      expect(row).toMatchObject({ t: '2026-03-10T00:00:00Z', by: 'learnt', overdue: false })
      const [from, to] = row.metric.startsWith('supply') ? [120, 660] : [22 * 60, 46 * 60]
      const lag = Date.parse(row.due) / 1000 - (now + day / 2)
      expect(lag).toBeGreaterThan(from ?? 0)
      expect(lag).toBeLessThanOrEqual(to ?? 0)
    }
    const later = await run(rig, 'plan', '--due', '--at', '2026-03-14', '--json')
    expect(later.json).toMatchObject({ at: '2026-03-14T00:00:00Z', overdue: 8 })
    const { out } = await run(rig, 'plan', '--due')
    expect(out).toContain('24h of 2026-03-10 00:00Z, by the lag learnt\n  supply/current_pit  BTC, ETH\n')
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    await expect(run(rig, 'plan', '--due', '--at', 'soon')).rejects.toThrow('--at: expected a date')
    await expect(run(rig, 'plan', '--at', '2026-03-14')).rejects.toThrow('--at: expected --due with it')
    await expect(run(rig, 'plan', '--due', '--gaps')).rejects.toThrow('--due: expected no flag that is about requests')
    expect(rig.sandbox.requests().length).toBe(before)
  }))
