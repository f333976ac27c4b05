import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createSandbox, type SandboxOptions } from '../../src/sandbox/sandbox.ts'
import { catalogue, noon } from '../helpers/sandbox-client.ts'

/** Digest of status, headers and body of the first answer of a sandbox whose clock stands still. */
async function answerDigest(place: string, options: Partial<SandboxOptions> = {}): Promise<string> {
  const sandbox = createSandbox({
    catalogue,
    seed: 11,
    now: () => noon,
    sleep: async () => undefined,
    scale: 'demo',
    metricsKey: 'metrics-key',
    registryKey: 'registry-key',
    ...options,
  })
  const headers = { 'x-api-key': 'metrics-key', authorization: 'Bearer registry-key' }
  const answer = await sandbox.handle(new Request(`http://localhost${place}`, { headers }))
  const whole = JSON.stringify([answer.status, [...answer.headers], await answer.text()])
  return createHash('sha256').update(whole).digest('hex').slice(0, 16)
}

/** Digests written down before the sandbox knew real names. */
const answers: readonly (readonly [place: string, digest: string])[] = [
  ['/v1/metrics/assets', 'f3574a52284503ab'],
  ['/v1/metadata/metrics', '34443a160c7df8dc'],
  ['/v1/metadata/assets', '34443a160c7df8dc'],
  ['/v1/metadata/metric?path=/supply/current_pit', '3988b7b1d3d053f3'],
  ['/v1/metadata/metric?path=/options/iv_call_delta_25_pit', '0afeaaabb6fbcb51'],
  ['/v1/metadata/metric?path=/derivatives/futures_open_interest_cash_margin_sum_pit', '4d537ac2a9b68ac2'],
  ['/v1/metadata/metric?path=/market/coinbase_premium_pit', '70a7528fe29258e6'],
  ['/v1/metadata/metric/stats?path=/supply/current_pit&a=BTC', 'fda5c9f76d4ee54d'],
  ['/v1/metrics/options/iv_call_delta_25_pit?a=BTC&i=24h&e=options_exchange_2&s=1704067200', '8534351dbf560caf'],
  ['/v1/metrics/options/iv_call_delta_50_pit?a=BTC&s=1704067200', '2ceac34fc9984ff7'],
  [
    '/v1/metrics/derivatives/futures_open_interest_cash_margin_sum_pit?a=ETH&e=exchange_3&s=1704067200',
    'e61480e91b0f61a3',
  ],
  ['/v1/metrics/derivatives/futures_open_interest_cash_margin_sum_pit?a=ETH&e=binance', 'a125e54b5d81699f'],
  ['/v1/metrics/market/usexchange_premium_pit?a=BTC&s=1704067200', '4dee1ffbcd70de27'],
  ['/v1/metrics/supply/current_pit?a=AAPLX', '9aced503e4320f06'],
  ['/v1/metrics/signals/btc_sharpe_signal_pit?a=BTC&s=1704067200', 'a6f61bef62762715'],
  ['/v1/metrics/supply/current?a=BTC', '96a2d34fae499005'],
  ['/v1/metrics/estimates/idle_rate?a=BTC&i=1month', '96f6c07e9e28e8f1'],
  ['/registry/v1/snapshot', '7aee9a053b68d1b4'],
  ['/registry/v1/products?limit=500', 'e461fd0460e0072d'],
  ['/registry/v1/changes?since=0', '496fe0b8a00c2661'],
]

test.each(answers)(
  'the sandbox with placeholder names answers %s as it always has, byte for byte',
  async (place, digest) => {
    expect(await answerDigest(place)).toBe(digest)
    expect(await answerDigest(place, { names: 'placeholder' })).toBe(digest)
  },
)

test.each([
  ['/registry/v1/snapshot', 'd9e2fc1736a882ad'],
  ['/v1/metrics/assets', 'fd4f0076f6f15c30'],
])('%s of placeholder names has no asset that real names add later', async (place, digest) => {
  const now = () => Date.parse('2025-10-01T12:00Z') / 1000
  expect(await answerDigest(place, { now })).toBe(digest)
})
