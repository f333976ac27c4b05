import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Deps } from '../../src/interfaces/cli/spec.ts'
import { pitlake } from '../helpers/command.ts'
import { type Rig, fetchKey, withRig } from '../helpers/fetching.ts'
import { listening, statusWith } from '../helpers/listening.ts'
import { until } from '../helpers/processes.ts'

const day = 86_400
const now = Date.UTC(2026, 2, 10, 12) / 1000
const supply = { assets: ['BTC', 'ETH'], paths: ['supply/current_pit'], intervals: ['24h'], since: now - 60 * day }
const token = 'a-token-of-the-listener'

/** A command that listens by the clock of the rig. */
async function open(rig: Rig, argv: readonly string[], env: Deps['env'] = {}) {
  const clock = (): number => rig.clock.now * 1000
  const provider = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey }
  return await listening(rig.root, argv, { ...provider, ...env }, { now: clock, elapsed: clock })
}

async function get(url: string, init: RequestInit = {}): Promise<{ status: number; body: string; headers: Headers }> {
  const answer = await fetch(url, init)
  return { status: answer.status, body: await answer.text(), headers: answer.headers }
}

/** The numbers without those that the file's own making moves. */
const numbers = (text: string): string[] => text.split('\n').filter((line) => !line.includes('feed_age'))

test('shows the numbers of --metrics, the judgement of --check and the page, while the lake goes on', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch({ ...supply, until: now - 3 * day })
    const door = await open(rig, ['status'])
    const file = join(rig.root, 'lake.prom')
    const written = async (): Promise<string[]> => {
      await pitlake(
        rig.root,
        ['status', '--data', rig.root, '--metrics', file],
        {},
        { now: () => rig.clock.now * 1000 },
      )
      return numbers(readFileSync(file, 'utf8'))
    }
    const first = await get(`${door.url}/metrics`)
    expect([first.status, first.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
    expect(numbers(first.body)).toEqual(await written())
    const ill = await get(`${door.url}/healthz`)
    expect([ill.status, JSON.parse(ill.body)]).toEqual([
      503,
      expect.objectContaining({ ok: false, word: 'stale', synthetic: true }),
    ])

    rig.clock.now += 300
    await rig.fetch(supply)
    const well = await get(`${door.url}/healthz`)
    expect([well.status, JSON.parse(well.body)]).toEqual([
      200,
      expect.objectContaining({ ok: true, word: 'trusted', trust: 'yes' }),
    ])
    expect(numbers((await get(`${door.url}/metrics`)).body)).toEqual(await written())
    const page = await get(`${door.url}/`)
    expect([page.status, page.headers.get('refresh')]).toEqual([200, '60'])
    expect(page.body).toContain('supply/current_pit')
    expect(page.body).toMatch(/^<!doctype html>/i)

    expect((await get(`${door.url}/else`)).status).toBe(404)
    expect((await get(`${door.url}/__proto__`)).status).toBe(404)
    expect((await get(`${door.url}/healthz`, { method: 'POST', body: 'x' })).status).toBe(405)
    expect(await get(`${door.url}/metrics`, { method: 'HEAD' })).toMatchObject({ status: 200, body: '' })
    const { code, out } = await door.stop()
    expect([code, out]).toEqual([0, ''])
    await expect(fetch(`${door.url}/healthz`)).rejects.toThrow()
  }))

test('a server with a token refuses requests without it and never shows it; without one it answers to its host name only', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch(supply)
    const guarded = await open(rig, ['status'], { PITLAKE_TOKEN: token })
    for (const path of ['/', '/metrics', '/healthz', '/else']) {
      for (const wrong of ['', '?token=', `?token=${token}x`, `?token=${token.slice(1)}`, '?token=%00'])
        expect((await get(`${guarded.url}${path}${wrong}`)).status, path + wrong).toBe(401)
      const status = path === '/else' ? 404 : 200
      const answers = [
        await get(`${guarded.url}${path}?token=${token}`),
        await get(`${guarded.url}${path}`, { headers: { authorization: `Bearer ${token}` } }),
      ]
      expect(answers.map((answer) => answer.status)).toEqual([status, status])
      for (const { body, headers } of answers) expect(JSON.stringify([body, [...headers]])).not.toContain(token)
    }
    expect((await get(guarded.url, { headers: { authorization: `Basic ${token}` } })).status).toBe(401)
    expect(guarded.said()).not.toContain(token)
    await guarded.stop()

    const own = await open(rig, ['status'])
    const { port } = new URL(own.url)
    expect(await statusWith(`${own.url}/healthz`, { host: `localhost:${port}` })).toBe(200)
    expect(await statusWith(`${own.url}/healthz`, { host: `rebound.example:${port}` })).toBe(401)
    await own.stop()
  }))

test('readers that hang, shout or pile up take nothing from the others', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch(supply)
    const door = await open(rig, ['status'])
    const port = Number(new URL(door.url).port)
    const crowd = Array.from({ length: 100 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
    await Promise.all(crowd.map(async (socket) => await once(socket, 'connect')))
    // At most so many are let in; the others are hung up on at once.
    await until(() => crowd.filter(({ readyState }) => readyState === 'open').length <= 32, 'the end of the crowd')
    await Promise.all(
      crowd.map(async (socket) => {
        if (socket.closed) return
        socket.destroy()
        await once(socket, 'close')
      }),
    )
    let status = 0
    for (let tries = 0; status !== 200 && tries < 100; tries++)
      status = await get(`${door.url}/healthz`).then(
        (answer) => answer.status,
        async () => await setTimeout(50, 0),
      )
    expect(status).toBe(200)
    const loud = connect(port, '127.0.0.1').on('error', () => undefined)
    loud.write(`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)
    const [answer] = (await once(loud, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 431 /)
    loud.destroy()
    const many = await Promise.all(Array.from({ length: 20 }, async () => await get(`${door.url}/metrics`)))
    expect(new Set(many.map(({ status, body }) => `${status} ${body}`)).size).toBe(1)
    await door.stop()
  }))

test('sixty half-sent heads do not keep a request from its answer', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch(supply)
    const door = await open(rig, ['status'])
    const port = Number(new URL(door.url).port)
    const crowd: Socket[] = []
    for (let n = 0; n < 60; n++) {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined)
      await once(socket, 'connect')
      socket.write('GET /metrics HTTP/1.1\r\nhost: 127')
      crowd.push(socket)
    }
    const answers = Array.from({ length: 5 }, async () => (await get(`${door.url}/metrics`)).status)
    expect(await Promise.all(answers)).toEqual([200, 200, 200, 200, 200])
    for (const socket of crowd) socket.destroy()
    await door.stop()
  }))

test('a server whose lake cannot be read says so in its answer and keeps running', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch(supply)
    const door = await open(rig, ['status'])
    for (const name of readdirSync(rig.root)) if (name.startsWith('ledger.sqlite')) rmSync(join(rig.root, name))
    writeFileSync(join(rig.root, 'ledger.sqlite'), 'x'.repeat(5000))
    const ill = await get(`${door.url}/healthz`)
    expect([ill.status, ill.body]).toEqual([503, expect.stringMatching(/ledger\.sqlite.*doctor/)])
    expect((await door.stop()).code).toBe(0)
  }))

test('a watch shows what it may still spend', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch(supply)
    const door = await open(rig, ['watch', '--credits-per-day', '500', '--reserve', '20'])
    const { body } = await get(`${door.url}/metrics`)
    const value = (name: string): number => Number(new RegExp(`^pitlake_${name} (\\S+)$`, 'm').exec(body)?.[1])
    expect(value('credits_today')).toBeGreaterThan(0)
    expect(value('credits_left')).toBe(480 - value('credits_today'))
    expect(body).toContain('pitlake_job_running{job="watch"} 1\n')
    expect(body).toContain('pitlake_job_running{job="verify"} 0\n')
    expect(body).toMatch(/^pitlake_requests_by_outcome\{api="metrics",outcome="body"\} \d+$/m)
    expect((await get(`${door.url}/healthz`)).status).toBe(200)
    expect((await door.stop()).code).toBe(0)
  }))

test('an address that cannot be had is one line', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch(supply)
    const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey }
    const wrong = async (address: string, command = 'status'): Promise<string> => {
      const { code, message } = await pitlake(rig.root, [command, '--data', rig.root, '--listen', address], env)
      expect(message.split('\n')).toHaveLength(1)
      return `${code} ${message}`
    }
    for (const address of ['0.0.0.0:9464', '[::]:9464', '192.0.2.7:0', 'lake.example:80'])
      expect(await wrong(address)).toMatch(
        /^2 --listen: expected an address of this machine alone, such as 127.0.0.1, got/,
      )
    for (const address of ['9464', '127.0.0.1', '127.0.0.1:', '127.0.0.1:65536', '::1:80', 'a b:1', '127.0.0.1:-1'])
      expect(await wrong(address)).toMatch(/^2 --listen: expected an address and a port, such as 127.0.0.1:9464, got/)
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    for (const command of ['status', 'watch'])
      expect(await wrong(`127.0.0.1:${port}`, command)).toMatch(
        /^2 --listen 127.0.0.1:\d+: expected a free port .*, got a port in use/,
      )
    taken.close()
    expect(rig.sandbox.requests().filter(({ at }) => at > now + 60)).toEqual([])
  }))
