import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { ask } from '../helpers/sandbox-client.ts'
import { scratch } from '../helpers/scratch.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const folder = scratch('sandbox')
const children: ChildProcess[] = []

afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

function start(...args: string[]) {
  const child = spawn(process.execPath, [main, 'sandbox', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  return child
}

/** The JSON line that a sandbox prints once it listens. */
async function firstLine(child: ReturnType<typeof start>): Promise<Record<string, string>> {
  let said = ''
  for await (const chunk of child.stdout) {
    said += String(chunk)
    if (said.includes('\n')) break
  }
  return JSON.parse(said) as Record<string, string>
}

test('prints one JSON line, serves both APIs, ends with 0 on SIGTERM', async () => {
  const file = join(folder, 'faults.yaml')
  writeFileSync(file, '- { kind: status-503, path: supply/*, times: 1 }\n')
  const child = start('--seed', '5', '--now', '2024-06-01', '--speed', '0', '--no-metadata', '--faults', file)
  const line = await firstLine(child)
  expect(line).toMatchObject({ seed: 5, now: '2024-06-01T00:00:00Z' })
  const usual = ['metrics_url', 'metrics_key', 'registry_url', 'registry_key', 'seed', 'now', 'port']
  expect(Object.keys(line)).toEqual(usual)
  expect(line['registry_url']).toBe(`${line['metrics_url']}/registry/v1`)
  const url = `${line['metrics_url']}/v1/metrics/supply/current_pit?a=BTC&i=24h&s=1716768000`
  const key = { 'x-api-key': String(line['metrics_key']) }
  expect((await ask(url, key)).status).toBe(503)
  const points = (await ask(url, key)).json as object[]
  expect(points.length).toBeGreaterThan(2)
  const described = `${line['metrics_url']}/v1/metadata/metric?path=/supply/current_pit`
  expect((await ask(described, key)).status).toBe(404)
  const registry = await ask(`${line['registry_url']}/changes/head`, {
    authorization: `Bearer ${line['registry_key']}`,
  })
  expect(registry.json.as_of).toBe('2024-06-01T00:00:00Z')
  const taken = start('--port', String(line['port']))
  expect(await text(taken.stderr)).toMatch(/^[^\n]*port \d+: expected a free port, got a port in use[^\n]*\n$/)
  expect(taken.exitCode ?? (await once(taken, 'exit'))[0]).toBe(2)
  child.kill('SIGTERM')
  expect((await once(child, 'exit'))[0]).toBe(0)
})

test('a sandbox with real names reports so when it starts, and in no answer', async () => {
  const child = start('--names', 'real', '--tier', '1', '--now', '2026-03-04', '--speed', '0')
  let notes = ''
  child.stderr.on('data', (chunk) => (notes += String(chunk)))
  const line = await firstLine(child)
  expect(line).toMatchObject({ names: 'real', tier: 1 })
  const headers = { 'x-api-key': String(line['metrics_key']) }
  const listed = await ask(`${line['metrics_url']}/v1/metadata/metrics`, headers)
  expect(listed.json).toContain('/market/coinbase_premium_pit')
  expect(listed.headers['x-pitlake-sandbox']).toBeUndefined()
  const refused = await ask(`${line['metrics_url']}/v1/metrics/market/coinbase_premium_pit?a=BTC`, headers)
  expect(refused.status).toBe(403)
  child.kill('SIGTERM')
  expect((await once(child, 'close'))[0]).toBe(0)
  expect(notes).toContain('not marked as synthetic')
})

test.each([
  [['--fault', 'rset'], /unknown fault "rset"; did you mean reset\?/],
  [['--now', 'soon'], /--now: expected a date .*got soon/],
  [['--port', '99999'], /--port: expected a port/],
  [['--limit', 'metrics=odd'], /--limit metrics=odd: expected API=PART/],
  [['--names', 'reel'], /--names: expected placeholder, real, got "reel"; did you mean `real`/],
  [['--names', 'real', '--tier', '4'], /--tier: expected a tier, 1 to 3/],
  [['--tier', '3'], /--tier: expected --names real alongside it, got --names placeholder/],
  [['--registry-scale', 'huge'], /--registry-scale: expected demo, full, got/],
  [['--faults', '/no/such/file'], /\/no\/such\/file: expected a JSON or YAML list of faults/],
] as const)('%j is refused in one line with exit code 2', async (args, message) => {
  const refused = await pitlake(folder, ['sandbox', ...args])
  expect(refused).toMatchObject({ code: 2, out: '', notes: '', message: expect.stringMatching(message) as string })
  expect(refused.message).not.toContain('\n')
})
