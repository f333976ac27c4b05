import { expect, test } from 'vitest'
import { listen, type Shown, type Shows } from '../../src/interfaces/server/listen.ts'

const secrets = ['a-key-of-the-provider', 'another-key-0987654321']

test('what an answer or a failure says is told without the keys, on every path', async () => {
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

test('what takes a POST is told by its path, and each other method which ones it may be', async () => {
  const show = async ({ method, body }: Parameters<Shows[string]>[0]): Promise<Shown> => ({
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
