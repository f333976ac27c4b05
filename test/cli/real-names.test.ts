// @module-tag full
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Deps } from '../../src/interfaces/cli/spec.ts'
import { pitlake } from '../helpers/command.ts'
import { withRealProvider } from '../helpers/real-provider.ts'

const skew = 'options/25delta_skew_call_put_all_pit'
const payment = 'distribution/balance_paymentapp_pit'
const placeholder = /exchange_\d|lendingprotocol|paymentapp|usexchange/

/** Command line of a fetch of two weeks of one asset. */
const fetch = (paths: string, ...more: string[]) => {
  return ['fetch', '--assets', 'BTC', '--paths', paths, '--since', '2026-02-20', ...more]
}

const select = (mapped: string, selected: string) =>
  `metrics: { ${mapped} }\nselect: [{ assets: [BTC], since: 2026-02-20, ${selected} }]\n`

test('a fetch without a configuration stores series under the real paths and exchanges, and sends no placeholder', async () =>
  withRealProvider({}, async ({ cwd, run, requests, placeholdersSent }) => {
    const plan = await run(
      'plan',
      '--assets',
      'BTC',
      '--paths',
      '*',
      '--exchanges',
      '*',
      '--since',
      '2026-02-20',
      '--json',
    )
    expect([plan.code, plan.message]).toEqual([0, ''])
    // Each options path has its four exchanges in the plan.
    expect(JSON.parse(plan.out).requests).toBeGreaterThan(150)
    const { code, message } = await run(...fetch(`${skew},market/*_premium_pit`, '--exchanges', 'deribit,okx'))
    expect([code, message]).toEqual([0, ''])
    const stored = 'SELECT DISTINCT metric, exchange FROM points ORDER BY ALL'
    expect((await run('sql', '--out', 'stored.csv', stored)).code).toBe(0)
    expect(readFileSync(join(cwd, 'stored.csv'), 'utf8').trim().split('\n').slice(1)).toEqual([
      'market/coinbase_premium_pit,',
      `${skew},deribit`,
      `${skew},okx`,
    ])
    expect((await run('sql', '--out', 'endpoints.csv', 'FROM endpoints')).code).toBe(0)
    expect(readFileSync(join(cwd, 'endpoints.csv'), 'utf8')).toContain('market/coinbase_premium_pit')
    expect(placeholdersSent()).toEqual([])
    const files = readdirSync(join(cwd, 'data'), { recursive: true }).map(String)
    expect(files.filter((file) => placeholder.test(file))).toEqual([])
    const before = requests().length
    expect((await run(...fetch(skew, '--exchanges', 'deribit'))).code).toBe(0)
    expect(requests()).toHaveLength(before)
  }))

test('an exchange that the provider does not list is refused with its real names', async () =>
  withRealProvider({}, async ({ run, placeholdersSent }) => {
    const { code, message } = await run(...fetch('options/iv_call_delta_5_pit', '--exchanges', 'deribitt'))
    expect([code, message]).toEqual([2, expect.stringContaining('did you mean `deribit`?')])
    expect(placeholdersSent()).toEqual([])
  }))

test('a path that two of the provider fit is refused with both where it is named, before a point is requested', async () =>
  withRealProvider({}, async ({ run, requests }) => {
    const { code, message } = await run(...fetch(payment))
    expect([code, message]).toEqual([
      2,
      expect.stringMatching(
        /expected one path of the provider, got distribution\/balance_cashapp_pit and .*strike_pit/,
      ),
    ])
    expect(requests().filter(({ path }) => path.includes('/metrics/distribution'))).toEqual([])
  }))

test('a configuration that changes the meaning of a name with points ends with 2 and both meanings, before any request', async () =>
  withRealProvider({}, async ({ cwd, run, config, requests }) => {
    const own = `paths: [${skew}, ${payment}], exchanges: [options_exchange_1]`
    const mapped = (exchange: string, app: string) =>
      config(
        select(
          `exchanges: { options_exchange_1: ${exchange} }, paths: { ${payment}: distribution/balance_${app}_pit }`,
          own,
        ),
      )
    mapped('deribit', 'cashapp')
    expect((await run('fetch')).code).toBe(0)
    const before = requests().length
    for (const [exchange, app, words] of [
      ['bybit', 'cashapp', 'expected deribit, which options_exchange_1 means in this lake, got bybit'],
      ['deribit', 'strike', 'got distribution/balance_strike_pit'],
    ] as const) {
      mapped(exchange, app)
      for (const command of ['plan', 'fetch']) {
        const { code, message } = await run(command)
        expect([code, message]).toEqual([2, expect.stringContaining(words)])
      }
    }
    expect(requests()).toHaveLength(before)
    config(select('', `paths: [${skew}], exchanges: [deribit, bybit]`))
    expect((await run('fetch')).code).toBe(0)
    expect((await run('sql', '--out', 'stored.csv', 'SELECT DISTINCT exchange FROM points ORDER BY ALL')).code).toBe(0)
    expect(readFileSync(join(cwd, 'stored.csv'), 'utf8')).toMatch(/^exchange\nbybit\nderibit\n/)
  }))

test('catalog show reports plan tier and bulk support from the metadata in the lake, and that they are not known before', async () =>
  withRealProvider({}, async ({ run }) => {
    const supply = 'supply/current_pit'
    const before = await run('catalog', 'show', supply)
    expect(before.out).toMatch(/plan tier +not known: the lake has no metadata of it yet\n +bulk +not known: /)
    expect(JSON.parse((await run('catalog', 'show', supply, '--json')).out)).toMatchObject({ tier: null, bulk: null })
    expect((await run(...fetch(`${supply},${skew}`, '--exchanges', 'deribit'))).code).toBe(0)
    expect((await run('catalog', 'show', supply)).out).toMatch(
      /plan tier +1 {2}\(metadata of 2026-03-04\)\n +bulk +yes {2}\(metadata of 2026-03-04\)\n/,
    )
    const nested = JSON.parse((await run('catalog', 'show', skew, '--json')).out)
    expect(nested).toMatchObject({ tier: 2, bulk: false, metadata_at: expect.stringMatching(/^2026-03-04/) })
    expect((await run('catalog', 'show', 'market/btc_dominance_pit')).out).toMatch(/plan tier +not known/)
  }))

test('a watch begun before the real names are known stores the series under these names, and asks again when points are due', async () =>
  withRealProvider({}, async ({ cwd, env, clock, run, requests, placeholdersSent }) => {
    expect(await run(...fetch('supply/current_pit'))).toMatchObject({ code: 0, message: '' })
    const before = requests().length
    const stop = new AbortController()
    const end = clock.now + 2 * 86_400
    const world: Partial<Deps> = {
      now: () => clock.now * 1000,
      elapsed: () => clock.now * 1000,
      sleep: async (ms) => {
        await setTimeout(1)
        clock.now += ms / 1000
        if (clock.now > end) stop.abort()
      },
      signal: stop.signal,
    }
    const paths = `${skew},market/usexchange_premium_pit`
    const selected = ['--assets', 'BTC', '--paths', paths, '--exchanges', 'deribit', '--since', '2026-02-20']
    const { code, message } = await pitlake(cwd, ['watch', ...selected], env, world)
    expect([code, message]).toEqual([0, ''])
    const stored = 'SELECT metric, exchange, max(t) AS t FROM points GROUP BY ALL ORDER BY ALL'
    expect((await run('sql', '--out', 'watched.csv', stored)).code).toBe(0)
    const [, ...rows] = readFileSync(join(cwd, 'watched.csv'), 'utf8').trim().split('\n')
    // The second day of the watch brought a point: the recorded names are those that it waits for.
    expect(rows).toEqual([
      expect.stringMatching(/^market\/coinbase_premium_pit,,2026-03-05/),
      expect.stringMatching(new RegExp(`^${skew},deribit,2026-03-05`)),
      expect.stringMatching(/^supply\/current_pit,/),
    ])
    expect(placeholdersSent()).toEqual([])
    expect(
      requests()
        .slice(before)
        .filter(({ path }) => path.includes('/v1/metrics/')).length,
    ).toBeLessThan(40)
  }))

test('the default exchange of a join stays as it was chosen, whatever the provider and the catalogue say later, at every observed_as_of', async () =>
  withRealProvider(
    { faults: ['metadata-says:path=metadata/options/*,parameter=e,values=bybit+okx,from=2026-03-10'] },
    async ({ cwd, run, config, clock }) => {
      const own = 'options/open_interest_sum_pit'
      const row = (exchanges: string, standard: string) =>
        writeFileSync(
          join(cwd, 'mine.yaml'),
          `endpoints:\n  - { path: ${own}, intervals: [24h], exchanges: [${exchanges}], default: { exchange: ${standard} } }\n`,
        )
      const moment = (): string => new Date(clock.now * 1000 + 3_600_000).toISOString()
      expect(await run(...fetch('supply/current_pit'))).toMatchObject({ code: 0, message: '' })
      const unknown = moment()
      clock.now += 86_400
      row('deribit, okx', 'deribit')
      config(`catalogs: [mine.yaml]\n${select('', `paths: [${skew}, ${own}]`)}`)
      expect(await run('fetch')).toMatchObject({ code: 0, message: '' })
      const first = moment()
      row('okx', 'okx')
      clock.now += 8 * 86_400
      const again = await run('fetch')
      expect(again).toMatchObject({ code: 0, message: '' })
      expect(again.out + again.notes).toContain(
        `${own}: the catalogue's default exchange is okx; this lake keeps deribit`,
      )
      const stored = 'SELECT DISTINCT metric, exchange FROM points ORDER BY ALL'
      expect((await run('sql', '--out', 'stored.csv', stored)).code).toBe(0)
      expect(readFileSync(join(cwd, 'stored.csv'), 'utf8').trim().split('\n').slice(1)).toEqual([
        `${skew},deribit`,
        `${own},deribit`,
        'supply/current_pit,',
      ])
      const decision = `(SELECT 'BTC' AS asset, TIMESTAMPTZ '2026-03-02' AS ts)`
      const found = async (metric: string, ...state: readonly string[]): Promise<string> => {
        const sql = `WITH d AS ${decision} SELECT count(*) AS n FROM pit_join('d', '${metric}', '24h') WHERE o IS NOT NULL OR v IS NOT NULL`
        const { code } = await run('sql', ...state, '--out', 'found.csv', sql)
        return `${code} ${readFileSync(join(cwd, 'found.csv'), 'utf8').trim().split('\n').at(-1)}`
      }
      for (const metric of [skew, own])
        expect([await found(metric), await found(metric, '--observed-as-of', first)]).toEqual(['0 1', '0 1'])
      // Before it was chosen the lake had no point of the metric, so that no default could answer otherwise.
      expect(await found(skew, '--observed-as-of', unknown)).toBe('0 0')
    },
  ))

test('tokenized stocks are linked to their products by contract, else by a variant of the symbol, and not if two products have it', async () =>
  withRealProvider({}, async ({ cwd, run }) => {
    const stocks = ['--assets', '*', '--paths', 'supply/current_pit', '--since', '2026-03-01']
    expect(await run('fetch', ...stocks)).toMatchObject({ code: 0, message: '' })
    expect(await run('registry', 'sync')).toMatchObject({ code: 0, message: '' })
    const sql = `SELECT DISTINCT metric_asset, basis, product_id IS NULL AS open, ambiguous FROM links
      WHERE metric_asset IN ('AAPLX', 'SPYX', 'TSLAX', 'NVDAX') ORDER BY ALL`
    expect(await run('sql', '--out', 'links.csv', sql)).toMatchObject({ code: 0, message: '' })
    expect(readFileSync(join(cwd, 'links.csv'), 'utf8').trim().split('\n').slice(1)).toEqual([
      'AAPLX,address,false,false',
      'NVDAX,symbol,true,true',
      'SPYX,address,false,false',
      'TSLAX,symbol,false,false',
    ])
  }))
