import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { clientOf, listen, type HttpResponse, type Routes } from '../../src/interfaces/server/listen.ts'
import { need } from '../helpers/needs.ts'
import { until } from '../helpers/processes.ts'

const secrets = ['a-key-of-the-provider', 'another-key-0987654321']

test('answers and errors on every path show no key', async () => {
  const said = `https://x.example/?a=1 refused ${secrets.join(' and ')}`
  await using door = await listen(
    { host: '127.0.0.1', port: 0 },
    { token: null, secrets },
    {
      '/well': async () => ({ status: 200, type: 'text/plain', body: said }),
      '/ill': async () => {
        throw new Error(said)
      },
      '/odd': async () => {
        // oxlint-disable-next-line typescript/only-throw-error, typescript/prefer-promise-reject-errors
        throw said
      },
    },
  )
  for (const [path, status] of [
    ['/well', 200],
    ['/ill', 503],
    ['/odd', 503],
  ] as const) {
    const answer = await fetch(door.url + path)
    expect([answer.status, (await answer.text()).trimEnd()]).toEqual([
      status,
      'https://x.example/?a=1 refused [key] and [key]',
    ])
  }
})

test('an answer that cannot be sent ends its connection, not the server', async () => {
  const file = {
    path: import.meta.filename,
    bytes: 1,
    [Symbol.asyncDispose]: async () => await Promise.reject(new Error('it stays')),
  }
  const well: HttpResponse = { status: 200, type: 'text/plain', body: 'well' }
  const shows = {
    '/well': async () => well,
    '/header': async () => ({ ...well, headers: { 'pitlake-sql': `a${secrets[0]}\u2028` } }),
    '/file': async () => ({ ...well, body: file }),
  }
  const noted: string[] = []
  const manner = { readers: 8, posts: [], note: (words: string) => void noted.push(words) }
  await using door = await listen({ host: '127.0.0.1', port: 0 }, { token: null, secrets }, shows, manner)
  await expect(fetch(`${door.url}/header`)).rejects.toThrow()
  await fetch(`${door.url}/file`)
    .then(async (answer) => await answer.text())
    .catch(() => '')
  await until(() => noted.length === 2, 'both answers are noted', 500)
  expect(noted).toEqual([
    expect.stringMatching(/^an answer was not sent: Invalid character/),
    expect.stringMatching(/it stays$/),
  ])
  expect(await (await fetch(`${door.url}/well`)).text()).toBe('well')
})

test('a path accepts POST if declared so, and refuses other methods with the list of its methods', async () => {
  const show = async ({ method, body }: Parameters<Routes[string]>[0]): Promise<HttpResponse> => ({
    status: 200,
    type: 'text/plain',
    body: `${method} ${await body()}`,
  })
  const manner = { readers: 2, posts: ['/both'] }
  const shows = { '/both': show, '/one': show }
  await using door = await listen({ host: '127.0.0.1', port: 0 }, { token: null, secrets: [] }, shows, manner)
  const asked = async (method: string, path: string): Promise<unknown> => {
    const answer = await fetch(door.url + path, { method, ...(method === 'POST' && { body: 'told' }) })
    return [answer.status, answer.headers.get('allow'), (await answer.text()).trimEnd()]
  }
  expect(await asked('POST', '/both')).toEqual([200, null, 'POST told'])
  expect(await asked('GET', '/one')).toEqual([200, null, expect.stringContaining('GET')])
  expect(await asked('POST', '/one')).toEqual([405, 'GET, HEAD', 'GET and HEAD only'])
  expect(await asked('PUT', '/both')).toEqual([405, 'GET, POST', 'GET and POST only'])
})

test('a client that sends a body of 10 MB before it reads hears that it is too long', async () => {
  const show = async ({ body }: Parameters<Routes[string]>[0]): Promise<HttpResponse> => ({
    status: 200,
    type: 'text/plain',
    body: await body(),
  })
  const manner = { readers: 2, posts: ['/both'] }
  const at = { host: '127.0.0.1', port: 0 }
  await using door = await listen(at, { token: null, secrets: [] }, { '/both': show }, manner)
  const { hostname, port } = new URL(door.url)
  const socket = connect(Number(port), hostname)
  const sent = new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.write(`POST /both HTTP/1.1\r\nhost: ${hostname}\r\ncontent-length: 10000000\r\n\r\n`)
    socket.write('x'.repeat(10_000_000), (error) => (error ? reject(error) : resolve()))
  })
  await sent
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toMatch(/\r\n\r\nthe body: expected at most 1048576 bytes, got more\n$/)
  socket.destroy()
})

/** A listener that takes little time and has few places: eight, six of them for one address. */
async function crowded() {
  const show = async ({ method, body }: Parameters<Routes[string]>[0]): Promise<HttpResponse> => ({
    status: 200,
    type: 'text/plain',
    body: method === 'POST' ? await body() : 'well',
  })
  const manner = { readers: 8, posts: ['/both'] }
  const patience = { head: 400, body: 800, answer: 5000 }
  const at = { host: '127.0.0.1', port: 0 }
  return await listen(at, { token: null, secrets: [] }, { '/both': show }, manner, patience)
}

/** The beginnings of requests that never go on. */
const halves = {
  nothing: '',
  'half a head': 'GET /both HTTP/1.1\r\nhost: 127',
  'half a body': 'POST /both HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\nSELECT',
}

/** Opens connections one after the other, each of which sends this and waits. */
async function openHalves(url: string, count: number, text: string, localAddress = '127.0.0.1'): Promise<Socket[]> {
  const sockets: Socket[] = []
  for (let n = 0; n < count; n++) {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress })
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(text)
    sockets.push(socket)
  }
  return sockets
}

test.each(Object.entries(halves))('forty connections that send %s leave room for a request', async (_, text) => {
  await using door = await crowded()
  const sockets = await openHalves(door.url, 40, text)
  const answers = await Promise.all([1, 2, 3].map(async () => await (await fetch(`${door.url}/both`)).text()))
  expect(answers).toEqual(['well', 'well', 'well'])
  for (const socket of sockets) socket.destroy()
})

test.each([
  ['half a head', 408],
  ['half a body', 408],
] as const)('a client that sends %s is answered with %i when its time is over', async (half, status) => {
  await using door = await crowded()
  const [socket] = await openHalves(door.url, 1, halves[half])
  const [answer] = (await once(socket as Socket, 'data')) as [Buffer]
  expect(answer.toString()).toContain(`HTTP/1.1 ${status} `)
})

test('a single address gets at most its share of the connections', async (context) => {
  need(context, 'linux')
  await using door = await crowded()
  const own = await openHalves(door.url, 8, halves['half a head'])
  await until(() => own.filter(({ closed }) => closed).length === 2, 'the end of two of eight connections', 500)
  const others = await openHalves(door.url, 1, halves['half a head'], '127.0.0.2')
  expect(await (await fetch(`${door.url}/both`)).text()).toBe('well')
  expect(others.map(({ closed }) => closed)).toEqual([false])
  for (const socket of [...own, ...others]) socket.destroy()
})

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::6', '2001:db8:1:2'],
  ['2001:db8::6', '2001:db8:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['::1', '0:0:0:0'],
])('the client at %s is %s', (remoteAddress, client) => {
  expect(clientOf({ remoteAddress })).toBe(client)
})
