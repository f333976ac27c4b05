// @module-tag full
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Deps } from '../../src/interfaces/cli/spec.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { inWindow } from '../helpers/days.ts'
import { fetchKey, withRig } from '../helpers/fetching.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'

const day = 86_400
const start = Date.UTC(2026, 2, 1) / 1000
const now = start + 9.5 * day
const count = 'blockchain/block_count_pit'
const margin = 'derivatives/futures_open_interest_cash_margin_sum_pit'
const payment = 'distribution/balance_paymentapp_pit'
const skew = 'options/25delta_skew_call_put_all_pit'
const exact = `{ assets: [BTC], paths: [${count}], since: 2026-03-01 }`

/** What a provider on loopback that is no sandbox answers: a point a day. */
function answerDaily(own: OwnProvider): void {
  own.answer((path, query) => {
    if (path === 'assets' || path.includes('metadata')) return { status: 404 }
    const days = Array.from({ length: Math.floor((own.clock.now - start) / day) }, (_, n) => start + n * day)
    return inWindow(
      query,
      days.map((t) => ({ t, v: 1 })),
    )
  })
}

/** Runs a command with a configuration that selects this, and maps that. */
async function run(
  own: Pick<OwnProvider, 'root' | 'url' | 'clock'>,
  argv: readonly string[],
  select: readonly string[],
  {
    maps = '{}',
    hooks = '{}',
    world = {},
  }: { readonly maps?: string; readonly hooks?: string; readonly world?: Partial<Deps> } = {},
): Promise<Ended> {
  const selected = select.length === 0 ? '' : `select: [${select.join(', ')}]\n`
  writeFileSync(join(own.root, 'pitlake.yaml'), `metrics: ${maps}\nhooks: ${hooks}\n${selected}`)
  const env = {
    PATH: process.env['PATH'],
    PITLAKE_METRICS_URL: own.url,
    PITLAKE_METRICS_KEY: fetchKey,
    PITLAKE_DATA: join(own.root, 'lake'),
  }
  return await pitlake(own.root, argv, env, { now: () => own.clock.now * 1000, ...world })
}

/** A selection, the series of it that are never requested, and what the configuration lacks. */
const selections: readonly (readonly [title: string, select: string, series: string, remedy: string])[] = [
  [
    'an exchange named in select',
    `{ assets: [BTC], paths: ['derivatives/futures_*'], exchanges: [aggregated, exchange_2], since: 2026-03-01 }`,
    `${margin} BTC 24h native exchange_2`,
    'metrics: { exchanges: { exchange_2: NAME } }',
  ],
  [
    'the exchange that a path takes by default',
    `{ assets: [BTC], paths: [${skew}], since: 2026-03-01 }`,
    `${skew} BTC 24h options_exchange_1`,
    'metrics: { exchanges: { options_exchange_1: NAME } }',
  ],
  [
    'a path named in select',
    `{ assets: [BTC, ETH], paths: [${count}, ${payment}], since: 2026-03-01 }`,
    `${payment} BTC 24h native, ${payment} ETH 24h native`,
    `metrics: { paths: { ${payment}: NAME } }`,
  ],
  [
    'all that a glob names',
    `{ assets: [BTC], paths: ['distribution/balance_pay*'], since: 2026-03-01 }`,
    `${payment} BTC 24h native`,
    `metrics: { paths: { ${payment}: NAME } }`,
  ],
]

test.each(selections)(
  '%s that is an unmapped placeholder ends plan, fetch and status with 6',
  async (_, own, series, remedy) =>
    withProvider(now, async (provider) => {
      answerDaily(provider)
      const select = [exact, own]
      expect(await run(provider, ['fetch'], [exact])).toMatchObject({ code: 0, message: '' })
      for (const argv of [['plan'], ['fetch'], ['plan'], ['fetch'], ['plan', '--due']]) {
        const { code, message } = await run(provider, argv, select)
        expect([argv, code, message]).toEqual([argv, 6, expect.stringContaining('never requested: ')])
        expect(message).toContain(series)
        expect(message).toContain(remedy)
      }
      const status = await run(provider, ['status', '--check'], select)
      expect([status.code, status.out]).toEqual([6, expect.stringContaining(series)])
      expect(status.out).toContain(remedy)
      expect(provider.seen.join('\n')).not.toMatch(/exchange_\d|paymentapp/)
    }),
)

test('a plan and a fetch name unmapped series in their documents', async () =>
  withProvider(now, async (own) => {
    answerDaily(own)
    const select = [exact, `{ assets: [BTC], paths: [${margin}], exchanges: [exchange_2], since: 2026-03-01 }`]
    const unmapped = [
      { setting: 'metrics.exchanges', name: 'exchange_2', series: [`${margin}|BTC|24h|native|exchange_2||`] },
    ]
    for (const command of ['fetch', 'plan']) {
      const { code, out } = await run(own, [command, '--json'], select)
      expect([code, JSON.parse(out)]).toEqual([6, expect.objectContaining({ unmapped })])
    }
    const status = await run(own, ['status', '--json'], select)
    expect(JSON.parse(status.out)).toMatchObject({ unmapped: { series: 1 } })
  }))

test('a placeholder that a wide glob names among others, that is mapped, or that the sandbox has, ends nothing with 6', async () => {
  const named = `{ assets: [BTC], paths: [${margin}], exchanges: [exchange_2], since: 2026-03-01 }`
  await withProvider(now, async (own) => {
    answerDaily(own)
    const wide = [`{ assets: [BTC], paths: ['distribution/*'], since: 2026-03-01 }`]
    const mapped = { maps: '{ exchanges: { exchange_2: binance } }' }
    for (const argv of [['fetch'], ['plan'], ['status', '--check']]) {
      const { message, out } = await run(own, argv, wide)
      expect(message + out).not.toContain('never requested')
      expect(await run(own, argv, [named], mapped)).toMatchObject({ code: 0, message: '' })
    }
    // What the lake was asked for before is no selection of a person.
    await run(own, ['fetch'], [named])
    const { code, notes } = await run(own, ['fetch'], [])
    expect([code, notes]).toEqual([0, expect.stringContaining('not requested: placeholder')])
  })
  await withRig(now, async (rig) => {
    expect(await run(rig, ['plan'], [named])).toMatchObject({ code: 0, message: '' })
    expect(await run(rig, ['fetch'], [named])).toMatchObject({ code: 0, message: '' })
    expect(await run(rig, ['status', '--check'], [named])).toMatchObject({ code: 0 })
  })
})

test('a daily run and a watch name each selected series whose exchange is not mapped', async () =>
  withProvider(now, async (own) => {
    answerDaily(own)
    const select = [exact, `{ assets: [BTC], paths: [${margin}], exchanges: [exchange_2], since: 2026-03-01 }`]
    await run(own, ['fetch'], select)
    const line = /never requested: .* BTC 24h native exchange_2; .*metrics: \{ exchanges: \{ exchange_2: NAME \} \}/
    for (const dry of [[], ['--dry-run']]) {
      const daily = await run(own, ['daily', ...dry], select)
      expect([daily.code, daily.out.split('\n')[0]]).toEqual([6, expect.stringMatching(/^fetch +6 /)])
      expect(daily.out.split('\n')[0]).toMatch(line)
    }
    const stop = new AbortController()
    const sleep = async (): Promise<void> => {
      await setImmediate()
      stop.abort()
    }
    const watched = await run(own, ['watch', '--json'], select, { world: { signal: stop.signal, sleep } })
    const events = watched.out
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as Record<string, unknown>)
    expect(events[0]).toMatchObject({ kind: 'unmapped', words: expect.stringMatching(line) })
  }))

test('hooks name unmapped series once, and again if others are selected', async () =>
  withProvider(now, async (own) => {
    answerDaily(own)
    const hooks = '{ on_stale: cat >> stale.jsonl }'
    const file = join(own.root, 'stale.jsonl')
    const named = (exchange: string): string =>
      `{ assets: [BTC], paths: [${margin}], exchanges: [${exchange}], since: 2026-03-01 }`
    const reports = (): readonly unknown[] => {
      const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
      return lines.flatMap((line) => (JSON.parse(line) as { stale: readonly unknown[] }).stale)
    }
    await run(own, ['fetch'], [exact], { hooks })
    expect(reports()).toEqual([])
    const unmapped = { kind: 'unmapped', next: expect.stringContaining('metrics: { exchanges: ') }
    const [second, third] = ['exchange_2', 'exchange_3'].map((name) => {
      return { ...unmapped, text: expect.stringContaining(`BTC 24h native ${name}`) }
    })
    for (let times = 0; times < 2; times++) await run(own, ['fetch'], [exact, named('exchange_2')], { hooks })
    expect(reports()).toMatchObject([second])
    await run(own, ['fetch'], [exact, named('exchange_3')], { hooks })
    expect(reports()).toMatchObject([second, third])
  }))
