import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { inFolder } from '../helpers/folders.ts'
import { providerKeys } from '../helpers/preflight.ts'
import { everyForm, leaks } from '../helpers/spellings.ts'

const keys = Object.values(providerKeys)
const forms = keys.flatMap((key) => Object.values(everyForm(key)))
const echo = forms.join(' | ')
const midnight = Math.floor(Date.now() / 86_400_000) * 86_400
const points = [2, 1].map((n) => `{"t":${midnight - n * 86_400},"v":1,"${forms[n]}":"${echo}","computed_at":"${echo}"}`)

/** What is answered by path, each with every form of both keys in it: names, values, words and headers. */
const answers: Readonly<Record<string, readonly [status: number, text: string]>> = {
  '/v1/metadata/metric': [200, `{"${forms[0]}":{"${forms[3]}":["BTC","${echo}"]},"${forms[4]}":{"${forms[5]}":1}}`],
  '/v1/metrics/supply/current_pit': [200, `[${points.join(',')}]`],
  '/v1/metrics/breakdowns/addresses_loss_count_by_age_pit': [400, `{"error":"no ${echo}"}`],
  '/v1/metrics/assets': [200, `["x${forms[0]}"]`],
  '/registry/v1/issuers': [200, `{"data":[{"id":"i","${forms[1]}":"${echo}"}],"next_cursor":null,"has_more":false}`],
  '/registry/v1/snapshot': [200, `{"${forms[0]}":[],"${forms[7]}":"${echo}"}`],
  '/registry/v1/changes/head': [200, `{"cursor":"c"}`],
  '/registry/v1/changes': [200, `{"${forms[2]}":{},"next_cursor":null,"more ${echo}":1}`],
}

test('a key of digits alone, which is a number wherever it comes in, is not said either', async () => {
  const digits = '8473625190'
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'x-cost': digits, 'x-calls-allowed': digits })
    response.end(`[{"t":${digits},"v":1}]`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    await inFolder(async (cwd) => {
      const { out } = await pitlake(cwd, ['doctor', '--provider'], {
        PITLAKE_METRICS_URL: url,
        PITLAKE_METRICS_KEY: digits,
      })
      expect(out).toContain('headers say x-cost: [key]')
      expect(out).not.toContain(digits)
    })
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

test('a preflight shows no key of a provider that repeats it wherever it can', async () => {
  const seen: string[] = []
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://x')
    seen.push(request.url ?? '')
    const [status, text] = answers[pathname] ?? [404, echo]
    const header = {
      etag: `"${keys[1]}"`,
      'x-calls-allowed': keys[0],
      'x-ratelimit-reset': `${keys[1]}`,
      'x-cost': keys[0],
    }
    response.writeHead(status, { 'content-type': 'application/json', ...header }).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = {
    PITLAKE_METRICS_URL: url,
    PITLAKE_METRICS_KEY: providerKeys.metrics,
    PITLAKE_REGISTRY_URL: `${url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: providerKeys.registry,
  }
  try {
    await inFolder(async (cwd) => {
      for (const mode of [[], ['--json']]) {
        const { code, out, notes, message } = await pitlake(cwd, ['doctor', '--provider', ...mode], env)
        expect(code).toBe(4)
        expect([out, notes, message].filter((text) => keys.some((key) => leaks(text, key)))).toEqual([])
        // It is told all the same, with the keys replaced.
        expect(out).toContain('[key]')
        expect(out).toContain('x-calls-allowed')
      }
      expect(readdirSync(cwd)).toEqual([])
    })
    expect(seen.filter((address) => keys.some((key) => leaks(address, key)))).toEqual([])
    expect(new Set(seen.map((address) => address.replace(/\?.*/, '')))).toEqual(new Set(Object.keys(answers)))
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})
