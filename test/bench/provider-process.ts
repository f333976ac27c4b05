import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { ceil, end, isInterval } from '../../src/base/time.ts'

/*
 * A provider whose points are functions of path, asset and t, from 2023 to its clock; half of the paths tell when they
 * computed them; with the argument `objects` distributions are objects, with `latency=300` each answer waits so many
 * milliseconds. A line of input sets the clock, in Unix seconds.
 */

const objects = process.argv.includes('objects')
const latency = Number(process.argv.find((word) => word.startsWith('latency='))?.slice(8) ?? 0)
const start = Date.UTC(2023, 0, 1) / 1000
let set: number | undefined
const now = (): number => set ?? Date.now() / 1000

function bodyOf(request: IncomingMessage): string | undefined {
  const url = new URL(request.url ?? '/', 'http://127.0.0.1')
  if (!url.pathname.startsWith('/v1/metrics/')) return undefined
  const asked = (name: string): string => url.searchParams.get(name) ?? ''
  const interval = isInterval(asked('i')) ? asked('i') : '24h'
  return isInterval(interval) ? pointsOf(url.pathname.slice('/v1/metrics/'.length), asked, interval) : undefined
}

function pointsOf(path: string, asked: (name: string) => string, interval: Parameters<typeof end>[1]): string {
  const seed = [...path, ...asked('a')].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 1_000_003, 7)
  const many = objects && /_all_pit|distribution|heatmap|quantiles/.test(path)
  // What the catalogue quotes of signals is kept: none is computed before the morning.
  const lag = path.startsWith('signals/') ? 38_000 : 300
  const points: string[] = []
  const until = Math.min(asked('u') === '' ? Infinity : Number(asked('u')), now())
  for (let t = ceil(asked('s') === '' ? start : Number(asked('s')), interval); t < until; t = end(t, interval)) {
    const close = end(t, interval)
    const computed = close + lag + ((close / 600) % 60)
    if (computed > now()) break
    const value = Math.sin(t / 86_400 + seed) * seed
    const shown = many ? `"o":{"low":${value},"high":${value * 2}}` : `"v":${value}`
    points.push(`{"t":${t},${shown}${seed % 2 === 0 ? `,"computed_at":${computed}` : ''}}`)
  }
  return `[${points.join(',')}]`
}

const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  if (latency > 0) await setTimeout(latency)
  const body = bodyOf(request)
  response.setHeader('date', new Date(now() * 1000).toUTCString())
  if (body === undefined) response.writeHead(404).end()
  else response.writeHead(200, { 'content-type': 'application/json' }).end(body)
}

const server = createServer((request, response) => void answer(request, response))

process.stdin.on('data', (line: Buffer) => {
  set = Number(String(line).trim())
  process.stdout.write(`${set}\n`)
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
