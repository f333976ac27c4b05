// @module-tag full
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadCoverage } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { pitlake as command } from '../helpers/command.ts'
import { storedPoints } from '../helpers/fetching.ts'
import { until } from '../helpers/processes.ts'
import { makeFolder } from '../helpers/folders.ts'

const day = 86_400
const start = Date.UTC(2024, 0, 5) / 1000
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const key = 'a-key-that-must-not-be-written'

let root = ''
let url = ''
/** The assets whose bodies come byte by byte, for ever, and those that were asked for. */
let dripping = new Set<string>()
let seen: string[] = []
let close: () => Promise<void>
const children: ChildProcess[] = []

function drip(response: ServerResponse): void {
  response.write('[')
  const timer = setInterval(() => response.write(' '), 200)
  response.on('close', () => clearInterval(timer))
}

beforeEach(async () => {
  root = makeFolder('stopped')
  // Nothing but the signal ends a body that drips.
  writeFileSync(join(root, 'pitlake.yaml'), 'metrics:\n  smallest_rate: 0\n  metadata: false\n')
  const server = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://x')
    if (pathname.endsWith('/assets')) return void response.writeHead(404).end()
    const asset = query.get('a') ?? ''
    seen.push(asset)
    response.writeHead(200, { 'content-type': 'application/json' })
    if (dripping.has(asset)) return drip(response)
    const ts = Array.from({ length: 115 }, (_, n) => start + n * day)
    const own = ts.filter((t) => t >= Number(query.get('s')) && t < Number(query.get('u')))
    return void response.end(JSON.stringify(own.map((t) => ({ t, v: t / day }))))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await close()
  rmSync(root, { recursive: true, force: true })
  seen = []
  dripping = new Set()
})

const env = () => ({ PITLAKE_METRICS_URL: url, PITLAKE_METRICS_KEY: key })
const fetchOf = (assets: string, data = 'lake') =>
  `fetch --data ${data} --assets ${assets} --paths blockchain/block_count_pit --since 2024-01-05 --until 2024-04-29`.split(
    ' ',
  )

/** A fetch under way, and how it ends. */
function begun(argv: readonly string[]): { readonly child: ChildProcess; readonly ended: Promise<number | null> } {
  const child = spawn(process.execPath, [main, ...argv], {
    cwd: root,
    env: { PATH: process.env['PATH'] ?? '', ...env() },
    stdio: 'ignore',
  })
  children.push(child)
  return { child, ended: new Promise((done) => child.on('close', done)) }
}

async function states(data = 'lake'): Promise<string[]> {
  using ledger = await Ledger.openToRead(join(root, data))
  const rows = [...loadCoverage(ledger).values()].flat()
  return rows.map(
    ({ series, since, until: end, state }) =>
      `${/[A-Z]{3}/.exec(series)?.[0]} ${(since - start) / day}..${(end - start) / day} ${state}`,
  )
}

const pitlake = async (line: string) => await command(root, line.split(' '), env())

test('a run that is stopped while bodies drip commits the complete ones and lists windows not requested', async () => {
  dripping = new Set(['LTC', 'XRP'])
  const { child, ended } = begun(fetchOf('BTC,ETH,LTC,XRP,ADA'))
  await until(() => ['ETH', 'LTC', 'XRP', 'ADA'].every((asset) => seen.includes(asset)), 'all were asked')
  child.kill('SIGTERM')
  expect(await ended).toBe(5)
  expect((await states()).toSorted()).toEqual([
    'ADA 0..115 covered',
    'BTC 0..115 covered',
    'ETH 0..115 covered',
    'LTC 0..115 not requested',
    'XRP 0..115 not requested',
  ])
  const check = await pitlake('status --data lake --check')
  expect(check.code).toBe(6)
  expect(check.out).toMatch(/2 series have windows that a run planned and did not request/)
  dripping = new Set()
  // A bare fetch: nothing is named.
  expect((await pitlake('fetch --data lake --until 2024-04-29')).code).toBe(0)
  expect((await states()).filter((row) => row.endsWith('not requested'))).toEqual([])
  const after = await pitlake('status --data lake --check')
  expect(after.out).not.toMatch(/did not request/)
})

test('the plan of a killed run is shown, a bare fetch requests it, and the same command ends like an undisturbed one', async () => {
  expect((await pitlake(fetchOf('BTC').join(' '))).code).toBe(0)
  dripping = new Set(['LTC'])
  const { child, ended } = begun(fetchOf('ETH,LTC'))
  await until(() => seen.includes('LTC'), 'the second one was asked')
  // While it is at work nobody knows what it leaves over.
  expect((await pitlake('status --data lake --check')).out).not.toMatch(/did not request/)
  child.kill('SIGKILL')
  await ended
  dripping = new Set()
  const told = await pitlake('status --data lake --check')
  expect(told.out).toMatch(/2 series have windows that a run planned and did not request/)
  // A bare fetch asks what it was to bring.
  cpSync(join(root, 'lake'), join(root, 'bare'), { recursive: true })
  expect((await pitlake('fetch --data bare --until 2024-04-29')).code).toBe(0)
  const covered = ['BTC 0..115 covered', 'ETH 0..115 covered', 'LTC 0..115 covered']
  expect((await states('bare')).toSorted()).toEqual(covered)
  // Another selection asks for none of them, and puts them on record.
  expect((await pitlake(fetchOf('ADA').join(' '))).code).toBe(0)
  expect((await states()).toSorted()).toEqual([
    'ADA 0..115 covered',
    'BTC 0..115 covered',
    'ETH 0..115 not requested',
    'LTC 0..115 not requested',
  ])
  expect((await pitlake(fetchOf('ETH,LTC').join(' '))).code).toBe(0)
  expect((await pitlake('status --data lake --check')).out).not.toMatch(/did not request/)
  expect((await pitlake(fetchOf('BTC,ETH,LTC,ADA', 'other').join(' '))).code).toBe(0)
  expect(await storedPoints(join(root, 'lake'))).toEqual(await storedPoints(join(root, 'other')))
  expect((await states()).every((row) => row.endsWith(' 0..115 covered'))).toBe(true)
})
