import { expect, test } from 'vitest'
import { listen } from '../../src/door/listen.ts'

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
