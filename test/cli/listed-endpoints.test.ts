// @module-tag full
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withRealProvider } from '../helpers/real-provider.ts'

const further = 26

test('catalog import without a file takes every new point-in-time path of the provider, which a fetch then stores', async () =>
  withRealProvider({}, async ({ cwd, run, requests, config, placeholdersSent }) => {
    const { code, message, out } = await run('catalog', 'import')
    expect([code, message]).toEqual([0, ''])
    expect(out).toMatch(/^276 listed, 110 known already, 138 not point-in-time, 26 added to my-endpoints\.yaml\n/)
    expect(out).toMatch(/^taken +options\/open_interest_sum_pit {2}tier 2$/m)
    expect(out).toMatch(
      /^left +distribution\/balance_strike_pit: may be distribution\/balance_paymentapp_pit: write which in metrics\.paths$/m,
    )
    expect(out).toMatch(/^requests +27, free\nwrote +my-endpoints\.yaml\nnext +name it in pitlake\.yaml: catalogs: /m)
    // One request for the list and one for each path, none of which costs credits.
    expect(requests().map(({ path }) => path.replace(/\?.*/, ''))).toEqual([
      '/v1/metadata/metrics',
      ...Array.from({ length: further }, () => '/v1/metadata/metric'),
    ])
    config(
      'catalogs: [my-endpoints.yaml]\nselect:\n  - assets: [BTC]\n    paths: [options/open_interest_sum_pit, market/mvrv_pit]\n    since: 2026-02-20\n',
    )
    expect((await run('catalog', 'show', 'market/mvrv_pit')).out).toMatch(
      /about +market value divided by realized value[^]*intervals +10m, 1h, 24h/,
    )
    const fetched = await run('fetch')
    expect([fetched.code, fetched.message]).toEqual([0, ''])
    expect(
      (await run('sql', '--out', 'stored.csv', 'SELECT DISTINCT metric, exchange FROM points ORDER BY ALL')).code,
    ).toBe(0)
    expect(readFileSync(join(cwd, 'stored.csv'), 'utf8')).toBe(
      'metric,exchange\nmarket/mvrv_pit,\noptions/open_interest_sum_pit,deribit\n',
    )
    expect(placeholdersSent()).toEqual([])
  }))

test('catalog import stopped by a limit goes on with --add, keeps what was written, and then adds nothing', async () =>
  withRealProvider({}, async ({ cwd, run, requests }) => {
    const file = join(cwd, 'my-endpoints.yaml')
    const text = (): string => readFileSync(file, 'utf8')
    const first = await run('catalog', 'import', '--max-requests', '10')
    expect(first.out).toMatch(/ 10 added to /)
    expect(first.out).toMatch(/^left .*: not requested: beyond --max-requests$/m)
    writeFileSync(file, `# mine\n${text()}`)
    const before = requests().length
    const refused = await run('catalog', 'import')
    expect([refused.code, requests().length]).toEqual([2, before])
    const second = await run('catalog', 'import', '--add')
    expect([second.code, second.out]).toEqual([0, expect.stringMatching(/ 16 added to /)])
    expect(text()).toMatch(/^# mine\n/)
    expect(text().match(/- path: /g)).toHaveLength(further)
    const written = text()
    const third = await run('catalog', 'import', '--add', '--json')
    expect(JSON.parse(third.out)).toMatchObject({ added: 0, file: null, requests: 1, taken: [] })
    expect(text()).toBe(written)
  }))

test('catalog import that the provider stops midway writes what it has, and ends with 5 and the way on', async () =>
  withRealProvider({ faults: ['status-429:path=metadata/supply/lth_sum_pit,retry=5h'] }, async ({ cwd, run }) => {
    const { code, message, out } = await run('catalog', 'import')
    expect([code, message]).toEqual([5, expect.stringContaining('--add')])
    expect(out).toMatch(/^left .*: not requested: /m)
    expect(existsSync(join(cwd, 'my-endpoints.yaml'))).toBe(true)
  }))

test('catalog import with a refused key ends with 3, and writes nothing', async () =>
  withRealProvider({ options: { metricsKey: 'another-key' } }, async ({ cwd, run }) => {
    expect((await run('catalog', 'import')).code).toBe(3)
    expect(existsSync(join(cwd, 'my-endpoints.yaml'))).toBe(false)
  }))
