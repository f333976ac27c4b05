// @module-tag full
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { realKeys, withRealProvider } from '../helpers/real-provider.ts'

const isPoints = ({ api, path }: { readonly api: string; readonly path: string }): boolean =>
  api === 'metrics' && !path.endsWith('/assets')

test('four environment variables and an empty folder give a panel, without an edit and within 300 credits', async () =>
  withRealProvider({}, async ({ cwd, run, requests, placeholdersSent }) => {
    const texts: string[] = []
    const step = async (...argv: string[]) => {
      const before = requests().length
      const { code, message, out, notes } = await run(...argv)
      texts.push(message, out, notes)
      expect([argv[0], code, message]).toEqual([argv[0], 0, ''])
      return { out, notes, points: requests().slice(before).filter(isPoints).length }
    }
    const init = await step('init')
    expect(init.notes).toMatch(/asking for a few points: 3 requests, 3 credits[^]*15 paths are beyond your plan/)
    expect(init.points).toBe(3)
    const config = readFileSync(join(cwd, 'pitlake.yaml'), 'utf8')
    expect(config).toContain('market/usexchange_premium_pit: market/coinbase_premium_pit')
    expect(config).toContain('# distribution/balance_paymentapp_pit: distribution/balance_cashapp_pit')
    const plan = JSON.parse((await step('plan', '--json')).out)
    expect(plan.credits).toBeLessThanOrEqual(300)
    expect(config).toContain(`${plan.series} series, ${plan.requests} requests, ${plan.credits} credits`)
    expect((await step('fetch')).points).toBeLessThan(plan.requests + 10)
    await step('registry', 'sync')
    const days = ['--calendar', '2026-02-25,2026-03-01,1d', '--assets', 'BTC,ETH', '--out', 'panel.csv']
    await step('panel', ...days, '--metrics', 'market/coinbase_premium_pit,supply/current_pit')
    expect(readFileSync(join(cwd, 'panel.csv'), 'utf8')).toMatch(/^BTC,2026-02-25[^,]*,0\.\d+,\d+/m)
    // Every endpoint that the tier allows and the provider knows is in the plan, under real names.
    const all = await step('plan', '--assets', 'BTC', '--paths', '*', '--exchanges', '*', '--requests', '--json')
    expect(JSON.stringify(JSON.parse(all.out))).not.toMatch(/exchange_\d|lendingprotocol|usexchange/)
    expect(placeholdersSent()).toEqual([])
    const files = readdirSync(join(cwd, 'data'), { recursive: true }).map(String)
    expect(files.filter((file) => /exchange_\d|lendingprotocol|paymentapp|usexchange/.test(file))).toEqual([])
    const written = [...texts, config].join('\n')
    for (const key of Object.values(realKeys)) expect(written).not.toContain(key)
  }))

test('init with a refused key ends with 3, and writes nothing', async () =>
  withRealProvider({ options: { metricsKey: 'another-key' } }, async ({ cwd, run }) => {
    const { code, message } = await run('init')
    expect([code, message]).toEqual([3, expect.stringContaining('PITLAKE_METRICS_KEY')])
    expect(readdirSync(cwd)).toEqual([])
  }))

test('init with a base address at which everything is 404 ends with 6, and writes nothing', async () =>
  withRealProvider({ faults: ['gone-404@metrics', 'gone-404@metadata'] }, async ({ cwd, run }) => {
    const { code, message } = await run('init')
    expect([code, message]).toEqual([6, expect.stringContaining('expected the address before /v1/metrics/')])
    expect(readdirSync(cwd)).toEqual([])
  }))

test('init keeps an existing configuration unless forced, and sends no request before that', async () =>
  withRealProvider({}, async ({ run, config, requests }) => {
    config('data: mine\n')
    const { code, message } = await run('init')
    expect([code, message]).toEqual([2, expect.stringContaining('--force')])
    expect(requests()).toEqual([])
    expect((await run('init', '--force')).code).toBe(0)
  }))

test('init writes a named folder of the lake, which later commands use without the variable', async () =>
  withRealProvider({}, async ({ cwd, run }) => {
    const { code, notes } = await run('init', '--data', 'my lake')
    expect([code, notes]).toEqual([0, expect.stringMatching(/^data {6}my lake, also without --data/m)])
    expect(readFileSync(join(cwd, 'pitlake.yaml'), 'utf8')).toMatch(/^data: "my lake"$/m)
    expect((await run('fetch', '--max-requests', '1')).code).toBe(5)
    expect(readdirSync(cwd)).toContain('my lake')
    expect(readdirSync(cwd)).not.toContain('data')
  }))

test('init with few credits selects one asset', async () =>
  withRealProvider({}, async ({ cwd, run }) => {
    expect((await run('init', '--max-credits', '120')).code).toBe(0)
    expect(readFileSync(join(cwd, 'pitlake.yaml'), 'utf8')).toContain('- assets: [BTC]')
  }))

test('the check of a provider sends no placeholder, judges nested values, and counts endpoints without names', async () =>
  withRealProvider({ options: { tier: 3 } }, async ({ run, requests, placeholdersSent }) => {
    const { code, out } = await run('doctor', '--provider')
    expect([code, requests().length <= 10, placeholdersSent()]).toEqual([0, true, []])
    expect(out).toContain('object and array values: under `o`')
    expect(out).toMatch(/names that stand for real ones: 3 paths and the exchanges of \d+ endpoints: init or fetch/)
  }))
