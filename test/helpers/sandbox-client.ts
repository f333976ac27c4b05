import { setTimeout } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { request } from 'undici'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { parseInstant } from '../../src/base/time.ts'
import type { Mount } from './mounts.ts'

/** The built-in catalogue. */
export const catalogue = loadCatalogue()

/** The clock of every sandbox here unless a test sets another: 2024-06-05T12:00Z, standing still. */
export const noon = parseInstant('2024-06-05T12:00Z') as number

/** A whole answer as it came over the wire. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
  /** The body as text, gzip undone. */
  readonly text: string
  readonly json: any
}

/** A sandbox behind a mount and the ways to ask it. */
export interface Client {
  readonly sandbox: Sandbox
  readonly metricsUrl: string
  readonly registryUrl: string
  /** Asks the metrics API with the key in the header. */
  metrics(path: string, query?: Record<string, string | number>, headers?: Record<string, string>): Promise<Answer>
  /** Asks the registry API with the key in the header. */
  registry(path: string, headers?: Record<string, string>): Promise<Answer>
}

/** Runs the test against a sandbox behind this mount, and always takes both down again. */
export async function withSandbox(
  mount: Mount,
  options: Partial<Parameters<typeof createSandbox>[0]>,
  test: (client: Client) => Promise<void>,
): Promise<void> {
  const sandbox = createSandbox({
    catalogue,
    seed: 11,
    now: () => noon,
    sleep: (ms) => setTimeout(ms),
    scale: 'demo',
    metricsKey: 'metrics-key',
    registryKey: 'registry-key',
    ...options,
  })
  const mounted = await mount.start(sandbox)
  try {
    await test({
      sandbox,
      metricsUrl: mounted.metricsUrl,
      registryUrl: mounted.registryUrl,
      metrics: (path, query = {}, headers = {}) => {
        const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))
        return ask(`${mounted.metricsUrl}/v1/metrics/${path}?${search}`, { 'x-api-key': 'metrics-key', ...headers })
      },
      registry: (path, headers = {}) =>
        ask(`${mounted.registryUrl}${path}`, { authorization: 'Bearer registry-key', ...headers }),
    })
  } finally {
    await mounted.stop()
  }
}

/** One GET through undici; a broken connection rejects. */
export async function ask(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await request(url, { headers })
  const bytes = Buffer.from(await response.body.arrayBuffer())
  const text = () => (response.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString()
  return {
    status: response.statusCode,
    headers: response.headers,
    bytes,
    get text() {
      return text()
    },
    get json() {
      return JSON.parse(text())
    },
  }
}
