import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { rmSync } from 'node:fs'
import { fetchOnce } from '../helpers/fetching.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { withProvider } from '../helpers/provider.ts'
import { leaping, askingBy } from '../helpers/leaping.ts'
import { makeFolder } from '../helpers/folders.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const now = start + 400 * day
const count = 'blockchain/block_count_pit'
const assets = Array.from({ length: 25 }, (_, i) => `A${i}`)
const selection = { assets, paths: [count], since: start, until: start + 300 * day }

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

/** A provider that does this to each connection, and a lake for it. */
async function socketServer(handle: (socket: Socket) => void) {
  let seen = 0
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => void seen++)
    handle(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const root = makeFolder('nobody')
  open.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
    rmSync(root, { recursive: true, force: true })
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, root, seen: () => seen }
}

const silent: Record<string, (socket: Socket) => void> = {
  'closes each connection': (socket) => socket.once('data', () => socket.end()),
  'resets each connection': (socket) => socket.once('data', () => socket.resetAndDestroy()),
  'speaks no HTTP': (socket) => socket.once('data', () => socket.end('220 mail ready\r\n')),
  'cuts each body': (socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n[{"t":')),
  'answers with a page': (socket) =>
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n<html>Sign in</html>')),
  'answers with nothing in it': (socket) =>
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')),
  'answers 500': (socket) => socket.on('data', () => socket.write('HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n')),
  'answers 504': (socket) => socket.on('data', () => socket.write('HTTP/1.1 504 Timeout\r\ncontent-length: 0\r\n\r\n')),
  'leads elsewhere': (socket) =>
    socket.on('data', () => socket.write('HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n')),
}

test.each(Object.keys(silent))('a provider that %s ends a run of 25 series after at most 20 requests', async (name) => {
  const own = await socketServer(silent[name] ?? (() => undefined))
  const clock = leaping(() => now)
  const asking = askingBy(clock, 'pitlake fetch')
  const summary = await fetchOnce({ ...own, now: () => now }, selection, { input: { catalogue }, deps: asking })
  expect(summary).toMatchObject({ stopped_by: 'unreachable', points_added: 0 })
  expect(summary.words).toMatch(/\w/)
  expect(own.seen()).toBeGreaterThan(0)
  expect(own.seen()).toBeLessThanOrEqual(20)
  expect(clock.elapsed()).toBeLessThanOrEqual(150_000)
  // Of one that has given itself a name by an answer, each window has its state.
  const { failed, not_requested } = summary.windows
  if (summary.version > 0) expect([failed > 0, failed + not_requested]).toEqual([true, 25])
  const naming = ['answers with a page', 'answers with nothing in it', 'answers 504', 'leads elsewhere']
  expect(summary.version > 0).toBe(naming.includes(name))
})

test('a long window that is answered with 500 costs seven requests, and the other series are stored', async () =>
  withProvider(now, async (own) => {
    own.answer((path, query) => {
      if (path === 'assets') return { status: 404 }
      if (query.get('a') === 'A7') return { status: 500 }
      return [{ t: Number(query.get('s')), v: 1 }]
    })
    const summary = await own.fetch(selection)
    expect(summary).toMatchObject({ stopped_by: null, windows: { failed: 1 } })
    expect(own.seen.filter((url) => url.includes('a=A7'))).toHaveLength(7)
    expect(summary.requests).toBe(24 + 7)
  }))
