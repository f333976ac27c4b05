import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

// A registry of prepared bodies: `node registry-provider.ts FOLDER` serves FOLDER/snapshot.json and FOLDER/changes-<since>.json
// at the address that it prints, without a limit worth waiting for, until its input ends.
const [folder = ''] = process.argv.slice(2)
const tail = '{"data":[],"next_cursor":null,"has_more":false}'

function answer(url: URL, response: ServerResponse): void {
  const name = url.pathname.endsWith('/snapshot') ? 'snapshot' : `changes-${url.searchParams.get('since') ?? ''}`
  response.setHeader('content-type', 'application/json')
  for (const [key, value] of Object.entries({ limit: '600000', remaining: '599999', reset: '60' }))
    response.setHeader(`x-ratelimit-${key}`, value)
  let body: Buffer | string = tail
  try {
    body = readFileSync(join(folder, `${name}.json`))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  response.end(body)
}

const server = createServer((request, response) => answer(new URL(request.url ?? '/', 'http://localhost'), response))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/registry/v1\n`)
process.stdin.on('end', () => {
  server.closeAllConnections()
  server.close()
})
process.stdin.resume()
