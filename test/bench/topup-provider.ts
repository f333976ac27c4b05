import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A provider of daily points that are functions of path, asset and day; half of the paths tell when they computed them. */
const day = 86_400

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://127.0.0.1')
  const [path, asset] = [url.pathname.replace('/v1/metrics/', ''), url.searchParams.get('a') ?? '']
  if (!url.pathname.startsWith('/v1/metrics/')) {
    response.writeHead(404).end()
    return
  }
  const seed = [...path, ...asset].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 1_000_003, 7)
  const points: string[] = []
  for (let t = Number(url.searchParams.get('s')); t < Number(url.searchParams.get('u')); t += day) {
    const told = seed % 2 === 0 ? `,"computed_at":${t + day + 300 + ((t / day) % 60)}` : ''
    points.push(`{"t":${t},"v":${(Math.sin(t / day + seed) * seed).toString()}${told}}`)
  }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(`[${points.join(',')}]`)
})

server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
