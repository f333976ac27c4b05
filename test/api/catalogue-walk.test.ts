import { Agent, request } from 'undici'
import { afterAll, expect, test } from 'vitest'
import type { Endpoint } from '../../src/catalog/catalogue.ts'
import { mounts } from '../helpers/mounts.ts'
import { catalogue, noon, withSandbox } from '../helpers/sandbox-client.ts'
import { turnOf } from '../helpers/shares.ts'

type Query = Record<string, string>

const early = Date.UTC(2020, 5, 1) / 1000
const agent = new Agent({ connections: 4 })
const queryKeys = catalogue.wire.queryKeys
const range = { [queryKeys.since]: String(noon - 40 * 86_400), [queryKeys.until]: String(noon - 35 * 86_400) }

afterAll(() => agent.close())

/**
 * Every combination of the endpoint's own interval, currency, exchange and network, each also left out,
 * and every value of the two formats.
 */
function combinations(endpoint: Endpoint): Query[] {
  const start: Query = { ...(endpoint.since ? range : {}), ...endpoint.params }
  const lists = [
    [queryKeys.interval, endpoint.intervals],
    [queryKeys.currency, endpoint.currencies],
    [queryKeys.exchange, endpoint.exchanges],
    [queryKeys.network, endpoint.networks],
  ] as const
  const crossed = lists.reduce(
    (queries, [key, values]) => [
      ...queries,
      ...queries.flatMap((q) => values.map((value) => ({ ...q, [key]: value }))),
    ],
    [start],
  )
  const coarsest = endpoint.intervals.at(-1)
  const once: Query = coarsest === undefined ? start : { ...start, [queryKeys.interval]: coarsest }
  const formats = endpoint.format ? ['json', 'csv'].map((value) => ({ ...once, [queryKeys.format]: value })) : []
  const times = endpoint.timestampFormat
    ? ['unix', 'humanized'].map((value) => ({ ...once, [queryKeys.timestamp_format]: value }))
    : []
  return [...crossed, ...formats, ...times]
}

/** The first asset that the provider says it has for this endpoint. */
async function assetOf(base: string, path: string): Promise<string> {
  const told = await get(`${base}/v1/metadata/metric?path=/${path}`)
  return String((JSON.parse(told.text) as { parameters: { a: string[] } }).parameters.a[0])
}

async function get(url: string): Promise<{ status: number; text: string }> {
  const { statusCode, body } = await request(url, { dispatcher: agent, headers: { 'x-api-key': 'metrics-key' } })
  return { status: statusCode, text: await body.text() }
}

/** What is wrong with an answer; undefined when it is 200 with a body that can be read. */
function defect(status: number, text: string, query: Query): string | undefined {
  if (status !== 200) return `${status} ${text.slice(0, 200)}`
  if (query[queryKeys.format] === 'csv') {
    return text.startsWith('timestamp,value\n') && text.endsWith('\n') ? undefined : `csv ${text.slice(0, 80)}`
  }
  const points = JSON.parse(text) as { t: unknown }[]
  const kind = query[queryKeys.timestamp_format] === 'humanized' ? 'string' : 'number'
  return Array.isArray(points) && points.every(({ t }) => typeof t === kind) ? undefined : `json ${text.slice(0, 80)}`
}

const port = mounts.filter(({ name }) => name === 'port')

test.each(port)('every endpoint with all its parameter values answers 200 over the $name', (mount) => {
  let clock = noon
  return withSandbox(mount, { now: () => clock }, async ({ metricsUrl, sandbox }) => {
    const defects: string[] = []
    let asked = 0
    const endpoints = turnOf([...catalogue.endpoints.values()], 1, 112)
    for (const endpoint of endpoints) {
      // Endpoints without a range send all they have: asked early, that is little.
      clock = endpoint.since ? noon : early
      const asset = await assetOf(metricsUrl, endpoint.ask)
      const urls = combinations(endpoint).map((query) => {
        const search = new URLSearchParams({ [queryKeys.asset]: asset, ...query })
        return { query, url: `${metricsUrl}/v1/metrics/${endpoint.path}?${search}` }
      })
      const answers = await Promise.all(urls.map(({ url }) => get(url)))
      for (const [index, { status, text }] of answers.entries()) {
        const wrong = defect(status, text, urls[index]?.query ?? {})
        if (wrong !== undefined) defects.push(`${urls[index]?.url}: ${wrong}`)
      }
      asked += urls.length
    }
    expect(defects).toEqual([])
    expect(catalogue.endpoints.size).toBe(112)
    expect(asked).toBeGreaterThan(15 * endpoints.length)
    expect(sandbox.requests().filter(({ status }) => status === 200)).toHaveLength(asked + endpoints.length)
  })
})
