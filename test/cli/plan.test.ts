import { existsSync, readdirSync, rmSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { dispatch } from '../../src/commands/cli.ts'
import { heldVersions } from '../../src/ledger/held.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { type Bench, fetchKey, withBench } from '../helpers/fetching.ts'

const now = Date.UTC(2026, 2, 10, 12) / 1000
const day = 86_400

/** Runs a command against the bench; its JSON, its text and what it said beside. */
async function run(bench: Bench, ...argv: readonly string[]) {
  let out = ''
  let notes = ''
  await dispatch([...argv, '--data', `${bench.root}/lake`], {
    now: () => bench.clock.now * 1000,
    sleep: async (ms) => await setTimeout(Math.min(ms, 20)),
    random: Math.random,
    env: { PITLAKE_METRICS_URL: bench.url, PITLAKE_METRICS_KEY: fetchKey },
    stdout: (text) => (out += text),
    stderr: (text) => (notes += text),
    live: () => undefined,
    isTerminal: false,
    signal: new AbortController().signal,
    cwd: bench.root,
  })
  return { out, notes, json: argv.includes('--json') ? JSON.parse(out) : null }
}

const asked = ({ sandbox }: Bench, api = 'metadata') =>
  sandbox.requests().filter((request) => request.api === api).length
const selected = ['--assets', 'BTC,ETH', '--paths', 'supply/*', '--since', '2026-03-01']

async function versions(bench: Bench): Promise<number> {
  const ledger = await Ledger.openToRead(`${bench.root}/lake`)
  const list = heldVersions(ledger)
  ledger.close()
  return list.length
}

test('plan asks for metadata as fetch does, and plans the requests that fetch sends', async () =>
  await withBench(now, async (bench) => {
    const offline = await run(bench, 'plan', ...selected, '--offline', '--json')
    expect(asked(bench)).toBe(0)
    expect(offline.json).toMatchObject({ not_asked: 0, metadata: { paths: 0, asked: 0, offline: true } })
    expect(offline.notes).toContain('--offline: planned by the metadata that the lake holds')
    const first = await run(bench, 'plan', ...selected, '--requests', '--json')
    expect([asked(bench), asked(bench, 'metrics')]).toEqual([5, 0])
    expect(existsSync(`${bench.root}/lake`)).toBe(false)
    expect(first.json).toMatchObject({ metadata: { paths: 5, asked: 5, offline: false } })
    expect(first.json.requests).toBeLessThan(offline.json.requests)
    expect(first.json.requests + first.json.not_asked).toBeGreaterThanOrEqual(offline.json.requests)
    expect(first.notes).toBe('')
    const fetched = await run(bench, 'fetch', ...selected, '--json')
    expect(fetched.json).toMatchObject({ requests: first.json.requests, stopped_by: null })
    expect(asked(bench)).toBe(10)
    const sent = bench.sandbox.requests().filter(({ api, path }) => api === 'metrics' && !path.endsWith('/assets'))
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
  await withBench(now, async (bench) => {
    await run(bench, 'fetch', ...selected)
    const made = await versions(bench)
    bench.clock.now += 8 * day
    const old = await run(bench, 'plan', ...selected, '--offline')
    expect([asked(bench), old.out]).toEqual([5, expect.stringMatching(/^metadata +of 5 paths, 0 asked for now$/m)])
    expect(old.out).toMatch(/^not asked +\d+ windows$/m)
    expect(old.notes).toContain('not in the metadata of 2026-03-10')
    const plan = await run(bench, 'plan', ...selected)
    expect(await versions(bench)).toBe(made)
    expect([asked(bench), plan.out]).toEqual([10, expect.stringMatching(/^metadata +of 5 paths, 5 asked for now$/m)])
    await run(bench, 'plan', ...selected)
    await run(bench, 'fetch', ...selected, '--max-requests', '1').catch(() => undefined)
    expect(asked(bench)).toBe(10)
    bench.faults('metadata-says@metadata/supply/burned_pit:parameter=a,values=BTC+ETH')
    bench.clock.now += 8 * day
    const before = await versions(bench)
    await run(bench, 'plan', ...selected)
    expect(await versions(bench)).toBe(before + 1)
  }))

test('a plan that cannot ask, or is wrong, leaves nothing behind', async () =>
  await withBench(now, async (bench) => {
    bench.faults('reset@metadata')
    const { json } = await run(bench, 'plan', ...selected, '--json')
    expect(json).toMatchObject({ not_asked: 0, metadata: { paths: 0 } })
    await expect(run(bench, 'plan', '--assets', 'BTC', '--intervals', '2h')).rejects.toThrow(/2h/)
    expect(readdirSync(bench.root)).toEqual([])
    rmSync(bench.root, { recursive: true, force: true })
  }))
