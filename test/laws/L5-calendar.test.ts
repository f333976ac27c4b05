// @module-tag full
// @module-tag slow
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { loadCoverage, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { acceptViolations, isOpenViolation, listViolations } from '../../src/lake/ledger/violations.ts'
import { check, readStanding } from '../../src/interfaces/report/status.ts'
import type { Disk } from '../../src/lake/store/disk.ts'
import { inWindow } from '../helpers/days.ts'
import { depsAt, settingsAt, trying } from '../helpers/fetching.ts'
import { heldPoints } from '../helpers/ledgers.ts'
import { examined } from '../helpers/looking.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { type RegistryRig, withRegistryRig } from '../helpers/registry-rig.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { stepping } from '../helpers/stepping.ts'
import { makeViews, withViews } from '../helpers/views.ts'

/*
 * Sixty days of a lake, with a calendar of what goes wrong. Each evening the lake is held against the provider's truth:
 * nothing is missing without a word, nothing is said that is not so, and two days after its cause no alarm is left.
 */

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const days = 60
const paths = ['addresses/active_count_pit', 'blockchain/block_count_pit']
const assets = Array.from({ length: 20 }, (_, n) => `A${n}`)
const selection = { assets, paths, since: start }

type Mishap = (typeof mishaps)[number]
const mishaps = [
  'key refused', 'all forbidden', 'limit', 'closed', 'nobody', 'halves', 'nothing', 'page', 'fault', 'full disk', 'killed', 'clock ahead',
  'clock back', 'asleep', 'files lost',
] as const // biome-ignore format: a list

/** What goes wrong, by day; on a day without a line nothing does. */
const calendar: Readonly<Record<number, Mishap>> = {
  5: 'key refused',
  8: 'all forbidden',
  9: 'all forbidden',
  10: 'all forbidden',
  12: 'limit',
  14: 'closed',
  15: 'nobody',
  16: 'halves',
  19: 'nothing',
  22: 'page',
  24: 'fault',
  26: 'full disk',
  27: 'killed',
  29: 'clock ahead',
  30: 'clock back',
  ...Object.fromEntries([32, 33, 34, 35, 36, 37, 38, 39, 40].map((n) => [n, 'asleep'] as const)),
  43: 'files lost',
  47: 'nothing',
  51: 'halves',
}

/** Points that are shown later than they should be: from that day on. */
const late = new Map([['blockchain/block_count_pit A3 17', 20]])
/** Points that get another value on a day, or go. */
const rewritten = new Map([
  ['blockchain/block_count_pit A1 19', 21],
  ...assets.slice(0, 9).map((asset): [string, number] => [`addresses/active_count_pit ${asset} 45`, 47]),
])
const removed = new Map([['addresses/active_count_pit A2 41', 43]])
/** Of one series the provider wants to know nothing any more. */
const delisted = { series: 'blockchain/block_count_pit A7', from: 53 }
/** On these days a person takes note of what differs. */
const person = new Set([23, 45, 49, 55])

const original = (path: string, asset: string, n: number): number =>
  n * 100 + assets.indexOf(asset) + paths.indexOf(path) / 2

/** What the provider holds on a day, by point. */
function truth(today: number): Map<string, number> {
  const points = new Map<string, number>()
  for (const path of paths)
    for (const asset of assets)
      for (let n = 0; n < today; n++) {
        const key = `${path} ${asset} ${n}`
        if ((late.get(key) ?? 0) > today || (removed.get(key) ?? Infinity) <= today) continue
        if (`${path} ${asset}` === delisted.series && n >= delisted.from - 1) continue
        points.set(key, original(path, asset, n) + ((rewritten.get(key) ?? Infinity) <= today ? 0.25 : 0))
      }
  return points
}

function answerOn(today: number, path: string, query: URLSearchParams): unknown {
  const asset = query.get('a') ?? ''
  if (path === 'assets') return { status: 404 }
  if (`${path} ${asset}` === delisted.series && today >= delisted.from) return { status: 403, text: 'no longer listed' }
  const all = [...truth(today)].flatMap(([key, v]) => {
    const [own = '', of = '', n = ''] = key.split(' ')
    return own === path && of === asset ? [{ t: start + Number(n) * day, v }] : []
  })
  const points = inWindow(query, all)
  switch (calendar[today]) {
    case 'key refused':
      return { status: 401, text: 'who are you' }
    case 'all forbidden':
      return { status: 403, text: 'not in your plan' }
    case 'limit':
      return { status: 429, headers: { 'retry-after': '10800' }, text: 'later' }
    case 'closed':
      return { closed: true }
    case 'halves':
      return points.slice(Math.ceil(points.length / 2))
    case 'nothing':
      return []
    case 'page':
      return { status: 200, text: '<html>Sign in</html>', headers: { 'content-type': 'text/html' } }
    case 'fault':
      return { status: 500, text: 'oops' }
    default:
      return points
  }
}

/** A disk on which nothing works from its n-th step on: it is full, or the process is gone. */
const failing = (code: string | undefined, from: number): Disk =>
  stepping((step) => {
    if (step > from) throw Object.assign(new Error('the disk fails'), { code })
  })

/** One run of the day; gives how it ended. */
async function runOn(own: OwnProvider, today: number): Promise<string> {
  const mishap = calendar[today]
  const off = mishap === 'clock ahead' ? 40 * day : mishap === 'clock back' ? -3 * day : 0
  const asking = depsAt({ root: own.root, url: own.url, now: () => own.clock.now + off })
  const disk = mishap === 'full disk' ? failing('ENOSPC', 3) : mishap === 'killed' ? failing(undefined, 6) : undefined
  const changes = { deps: { ...asking, ...(disk && { disk }) }, input: { now: own.clock.now + off } }
  try {
    const fetching = async () => await own.fetch(selection, changes)
    const done = mishap === 'nobody' ? await own.away(fetching) : await fetching()
    return done.stopped_by ?? 'done'
  } catch (error) {
    return error instanceof LakeError ? error.kind : error instanceof Error ? error.message : String(error)
  }
}

async function look(own: OwnProvider) {
  const place = { root: own.root, url: own.url, now: () => own.clock.now }
  using ledger = await Ledger.openToRead(own.root)
  const { standing } = await readStanding(ledger, {
    settings: { ...settingsAt(place), select: [selection] },
    catalogue: trying,
    now: own.clock.now,
  })
  const open = listViolations(ledger, { paths: null, assets: null }).filter(isOpenViolation)
  return { stored: await storedIn(own.root), open, ...check(standing) }
}

async function storedIn(root: string): Promise<Map<string, number>> {
  const key = `concat_ws(' ', metric, asset, (epoch(t)::BIGINT - ${start}) // ${day}) AS key`
  const rows = await heldPoints<{ key: string; v: number }>(root, `${key}, v`)
  expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length)
  return new Map(rows.map(({ key, v }) => [key, v]))
}

/** Whether the coverage says of a point that it is there, or final as it is. */
function settledAt(ledger: Ledger, key: string): boolean {
  const [path = '', asset = '', n = ''] = key.split(' ')
  const t = start + Number(n) * day
  const rows = [...loadCoverage(ledger)].flatMap(([id, own]) => (id.startsWith(`${path}|${asset}|`) ? own : []))
  return rows.some(
    ({ since, until, state, reason }) => since <= t && t < until && state === 'covered' && reason === null,
  )
}

async function accept(own: OwnProvider): Promise<void> {
  using ledger = await Ledger.open(own.root)
  const open = listViolations(ledger, { paths: null, assets: null }).filter(isOpenViolation)
  const deps = depsAt({ root: own.root, url: own.url, now: () => own.clock.now })
  await acceptViolations(ledger, { ids: open.map(({ id }) => id), why: 'it is so' }, deps)
}

/** A file of points goes, and doctor's advice is followed. */
async function lose(own: OwnProvider): Promise<void> {
  using ledger = await Ledger.openToRead(own.root)
  const largest = liveFiles(ledger, { table: 'points' }).toSorted((a, b) => b.rows - a.rows)[0]
  rmSync(join(own.root, largest?.path ?? ''))
  ledger.close()
  const { forgotten } = await examined(own.root, own.clock.now, { repair: true, forgetLost: true })
  expect(forgotten?.points).toBeGreaterThan(100)
}

/** Keys of points that differ upstream, and of which no person took note. */
const differing = (today: number): Set<string> => {
  const noted = Math.max(0, ...[...person].filter((n) => n <= today))
  return new Set([...rewritten, ...removed].flatMap(([key, from]) => (from <= today && from > noted ? [key] : [])))
}

/** The registry beside: a product of another name each day, and once another epoch, in whose blind window one went. */
async function registryOn(rig: RegistryRig, own: OwnProvider, world: SmallRegistry, today: number): Promise<void> {
  world.world.put('products', `p${today % 19}`, { name: `Product of day ${today}`, issuer_id: 'i1' })
  if (today === newEpoch) {
    world.epoch = 1
    world.world.put('products', 'p19', null)
  }
  rig.clock.now = own.clock.now
  await rig.sync({ root: own.root })
  if (today % 20 !== 0 && today !== newEpoch) return
  await makeViews(own.root)
  const names = [...world.world.rows].flatMap(([key, { name }]) =>
    key.startsWith('products ') ? [JSON.stringify(name)] : [],
  )
  await withViews(own.root, async (engine) => {
    const held = await engine.rows<{ name: string }>('SELECT name FROM products')
    expect(held.map(({ name }) => JSON.stringify(name)).toSorted()).toEqual(names.toSorted())
  })
}

const newEpoch = 44

test('sixty days with a calendar of mishaps', { timeout: 600_000 }, async () =>
  withProvider(start, async (own) => {
    const registry = new SmallRegistry()
    await withRegistryRig(
      start,
      async (rig) => {
        expect(await liveThrough(own, rig, registry)).toEqual([
          '5 unauthorised',
          '12 quota',
          '14 unreachable',
          '15 unreachable',
          '22 unreachable',
          '24 unreachable',
          '26 incomplete',
          '27 the disk fails',
          '29 incomplete',
        ])
      },
      { instead: registry.answer },
    )
  }),
)

/** The sixty days; gives how runs ended that did not do all. */
async function liveThrough(own: OwnProvider, rig: RegistryRig, registry: SmallRegistry): Promise<readonly string[]> {
  /** The value that came first, which is the one that holds. */
  const first = new Map<string, number>()
  let today = 0
  own.answer((path, query) => {
    const answer = answerOn(today, path, query)
    if (Array.isArray(answer))
      for (const { t, v } of answer as readonly { t: number; v: number }[]) {
        const key = `${path} ${query.get('a')} ${(t - start) / day}`
        if (!first.has(key)) first.set(key, v)
      }
    return answer
  })
  const ends: string[] = []
  for (today = 1; today <= days; today++) {
    own.clock.now = start + today * day + day / 2
    const mishap = calendar[today]
    if (mishap === 'asleep') continue
    if (mishap === 'files lost') await lose(own)
    const ended = await runOn(own, today)
    if (ended !== 'done') ends.push(`${today} ${ended}`)
    await registryOn(rig, own, registry, today)
    if (person.has(today)) await accept(own)
    const { stored, open, lines, code } = await look(own)
    const where = `day ${today} (${mishap ?? 'well'}): ${lines.join(' / ')}`

    // What is stored came from the provider, and is what came first.
    const invented = [...stored].filter(([key, v]) => v !== first.get(key))
    expect([where, invented]).toEqual([where, []])

    // What is missing is said to be: no window with it is settled, and if it is due, something is to be looked at.
    using ledger = await Ledger.openToRead(own.root)
    const missing = [...truth(today).keys()].filter((key) => !stored.has(key))
    const silent = missing.filter((key) => settledAt(ledger, key))
    expect([where, silent]).toEqual([where, []])
    const behind = missing.filter((key) => Number(key.split(' ')[2]) < today - 3)
    if (code === 0) expect([where, behind]).toEqual([where, []])

    // What is said to differ does: one by one what was rewritten or went, at once what a bad day left out.
    const real = differing(today)
    const bad = mishap === 'nothing' || mishap === 'halves'
    for (const { series, t, kind, incident } of open) {
      if (kind === 'refused') continue
      const [path = '', asset = ''] = series.split('|')
      const one = `${path} ${asset} ${(t - start) / day}`
      expect([where, bad || (incident === null && real.has(one))]).toEqual([where, true])
    }

    // Two days after the last cause nothing is left to look at.
    const since = Math.max(
      0,
      ...Object.keys(calendar)
        .map(Number)
        .filter((n) => n <= today),
    )
    const refused = today >= delisted.from && today < 55
    if (today - since >= 2 && real.size === 0 && !refused && missing.length === 0)
      expect([where, code]).toEqual([where, 0])
  }

  // In the end all is there but for what is delisted, and what differs is on record, with both values.
  const { stored } = await look(own)
  expect([...truth(days).keys()].filter((key) => !stored.has(key))).toEqual([])
  using ledger = await Ledger.openToRead(own.root)
  const told = listViolations(ledger, { paths: null, assets: null }).filter(
    ({ acknowledged_at, incident }) => acknowledged_at !== null && incident === null,
  )
  expect(told.filter(({ kind }) => kind !== 'refused').length).toBe(rewritten.size + removed.size)
  return ends
}
