import { describe, expect, test } from 'vitest'
import { defaultLimits, parseLimit } from '../../src/sandbox/limits.ts'
import { parseFault } from '../../src/sandbox/faults.ts'
import { worldAssets } from '../../src/sandbox/world/assets.ts'
import { worldPoints } from '../../src/sandbox/world/points.ts'
import { mounts } from '../helpers/mounts.ts'
import { ask, catalogue, noon, withSandbox } from '../helpers/sandbox-client.ts'

const path = 'addresses/active_count_pit'
const key = { 'x-api-key': 'metrics-key' }
const at = (url: string, of = path) => `${url}/v1/metadata/metric?path=/${of}`

describe.each(mounts)('metadata under $name', (mount) => {
  test('list the parameters of a path under their query keys, and its first point', async () =>
    withSandbox(mount, {}, async ({ metricsUrl, sandbox }) => {
      const { status, json, headers } = await ask(at(metricsUrl), key)
      expect([status, headers['x-pitlake-sandbox']]).toEqual([200, '11'])
      expect(json).toMatchObject({ path: `/${path}`, is_pit: true })
      expect(Object.keys(json.parameters)).toEqual(['a', 'i', 'network'])
      expect(json.parameters.i).toEqual(['10m', '1h', '24h', '1w', '1month'])
      expect(json.parameters.a).toContain('BTC')
      expect((await ask(at(metricsUrl))).status).toBe(401)
      expect((await ask(at(metricsUrl, 'no/such_pit'), key)).status).toBe(404)
      expect(sandbox.requests().map(({ api }) => api)).toEqual(['metadata', 'metadata', 'metadata'])
    }))

  test('have a rate limit apart from points, and only faults that name metadata hit them', async () => {
    const limits = parseLimit('metadata=fixed:2/60s', parseLimit('metrics=fixed:1/60s', defaultLimits))
    await withSandbox(mount, { limits }, async ({ metricsUrl, metrics }) => {
      const asked = { a: 'BTC', i: '24h', s: noon - 400_000 }
      expect((await metrics(path, asked)).status).toBe(200)
      expect((await metrics(path, asked)).status).toBe(429)
      const answers = [await ask(at(metricsUrl), key), await ask(at(metricsUrl), key), await ask(at(metricsUrl), key)]
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    })
    await withSandbox(
      mount,
      { faults: [parseFault('status-500:first=1')] },
      async ({ metricsUrl, metrics, sandbox }) => {
        expect((await ask(at(metricsUrl), key)).status).toBe(200)
        expect((await metrics(path, { a: 'BTC', i: '24h', s: noon })).status).toBe(500)
        sandbox.setFaults([parseFault('gone-404@metadata/addresses/*')])
        expect((await ask(at(metricsUrl), key)).status).toBe(404)
        expect((await ask(at(metricsUrl, 'supply/current_pit'), key)).status).toBe(200)
      },
    )
    await withSandbox(mount, { metadata: false }, async ({ metricsUrl, sandbox }) => {
      expect((await ask(at(metricsUrl), key)).status).toBe(404)
      expect(sandbox.requests().map(({ api }) => api)).toEqual(['none'])
    })
  })
})

test('no series of any path begins before the first point of its metadata', async () =>
  withSandbox(mounts[1] as (typeof mounts)[1] & object, {}, async ({ metricsUrl }) => {
    const early: string[] = []
    let tight = 0
    for (const endpoint of catalogue.endpoints.values()) {
      const { json } = await ask(at(metricsUrl, endpoint.ask), key)
      const { min } = json.timerange as { min: number }
      let first = Infinity
      for (const { id: asset } of worldAssets)
        for (const interval of endpoint.intervals.length === 0 ? [null] : endpoint.intervals)
          for (const currency of endpoint.currencies.length === 0 ? [null] : endpoint.currencies)
            for (const network of endpoint.networks.length === 0 ? [null] : endpoint.networks) {
              const [exchange = null] = endpoint.exchanges
              const series = { endpoint, asset, interval, currency, exchange, network, seed: 11 }
              const [point] = worldPoints(series, 0, min + 40 * 86_400, noon)
              if (point) first = Math.min(first, point.t)
            }
      if (first < min) early.push(`${endpoint.path} ${first} ${min}`)
      if (first === min) tight++
    }
    expect(early).toEqual([])
    expect(tight).toBeGreaterThan(90)
  }))
