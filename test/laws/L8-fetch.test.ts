import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { umask } from 'node:process'
import { expect, test } from 'vitest'
import { fetchKey, otherKey, storedPoints, withRig } from '../helpers/fetching.ts'
import { filesIn, keyTraces } from '../helpers/key-search.ts'
import { type Answers, withProvider } from '../helpers/provider.ts'
import { everyForm, leaks } from '../helpers/spellings.ts'

const now = Date.UTC(2026, 2, 4, 12) / 1000
const since = now - 30 * 86_400

/** What stands at a place of a path and query, for the answers of this file. */
const forms = [...Object.entries(everyForm(fetchKey)), ...Object.entries(everyForm(otherKey))]
/** A text of JSON with every form of both keys, words between them. */
const echo = forms.map(([name, form]) => `${name} ${form}`).join(' | ')
const keys = [fetchKey, otherKey]

/** A list of daily points; each of them tells the keys wherever a text may stand. */
function echoing(query: URLSearchParams): string {
  const from = Number(query.get('s') ?? since)
  const points = Array.from({ length: 5 }, (_, n) => {
    const t = from + n * 86_400
    const texts = `"note":"${echo}","tags":["${echo}"],"${forms[n]?.[1]}":1`
    return n === 3 ? `{"t":${t},"o":{"text":"${echo}","n":1},${texts}}` : `{"t":${t},"v":${n}.25,${texts}}`
  })
  return `[${points.join(',')}]`
}

const headers = { etag: `"${fetchKey}"`, 'x-request-id': `id-${otherKey}`, 'x-ratelimit-limit': `60000;${fetchKey}` }

/** A provider that repeats the keys in every way that it can, in small pieces. */
const echoes: Answers = (path, query) => {
  const size = 61
  if (path === 'assets')
    return { status: 200, text: `[{"id":"BTC","note":"${echo}"},{"id":"x${fetchKey}"}]`, headers, size }
  if (path.includes('height'))
    return { status: 400, text: `{"error": "bad request with x-api-key: ${echo}"}`, headers, size }
  if (path.includes('utxo_created'))
    return { status: 400, text: `{"code":"${otherKey}","error":"${otherKey}"}`, headers }
  if (path.includes('count'))
    return { status: 200, text: `<html>key ${echo} ?api_key=${fetchKey}</html>`, headers, size }
  if (path.includes('supply')) return { status: 403, text: `not for ${otherKey}`, headers, size: 3 }
  if (path.includes('block_interval'))
    return { status: 500, text: `crash with ${encodeURIComponent(fetchKey)} ${echo}`, headers }
  return { status: 200, text: echoing(query), headers, size: 997 }
}

test('a fetch writes no byte of a key, whatever the provider echoes', async () =>
  withProvider(now, async (own) => {
    own.answer(echoes)
    const told: string[] = []
    const deps = { detailedLog: true, onEvent: (event: object) => void told.push(JSON.stringify(event)) }
    const done = await own.fetch(
      { assets: ['BTC'], paths: ['blockchain/*', 'supply/*', 'addresses/*'], since },
      { deps },
    )
    expect(done.points_added).toBeGreaterThanOrEqual(20)
    expect(await keyTraces(own.root, keys)).toEqual([])
    for (const place of [
      /^quarantine\/.*body$/,
      /^quarantine\/.*json$/,
      /^runs\/.*log$/,
      /^runs\/.*jsonl$/,
      /^journal\//,
      /^points\//,
      /^assets\//,
    ])
      expect(filesIn(own.root)).toContainEqual(expect.stringMatching(place))
    expect(told.filter((event) => keys.some((key) => leaks(event, key)))).toEqual([])
    expect(own.seen.filter((url) => url.includes(fetchKey))).toEqual([])
  }))

test('values, times and other texts are stored as sent, next to the replaced ones', async () =>
  withProvider(now, async (own) => {
    own.answer((path, query) => (path === 'assets' ? ['BTC'] : { status: 200, text: echoing(query), size: 5 }))
    await own.fetch({ assets: ['BTC'], paths: ['addresses/active_count_pit'], since })
    const words = forms.map(([name]) => `${name} [key]`).join(' | ')
    const values = [0, 1, 2, 3, 4].map((n) => (n === 3 ? `{"n":1,"text":"${words}"}` : `${n}.25`))
    const midnight = Math.ceil(since / 86_400) * 86_400
    // Beside a key in base64 stand letters that belong to its neighbours, too.
    const stored = (await storedPoints(own.root)).map((line) => line.replaceAll(/\w*\[key\]\w*/g, '[key]').split(' '))
    expect(stored.map((line) => [line[6], line.slice(8).join(' ')])).toEqual(
      values.map((value, n) => [String(midnight + n * 86_400), value]),
    )
  }))

test('private folders are closed, files in them too; what an earlier program left open is mended', async () =>
  withProvider(now, async (own) => {
    const before = umask(0o022)
    try {
      own.answer(echoes)
      await own.fetch({ assets: ['BTC'], paths: ['addresses/loss_count_pit'], since })
      for (const place of ['spool', 'quarantine', 'runs', 'registry/raw/snapshot']) {
        mkdirSync(join(own.root, place), { recursive: true })
        if (place !== 'spool') writeFileSync(join(own.root, place, 'old'), 'x')
      }
      for (const place of ['spool', 'quarantine', 'runs', 'registry/raw']) chmodSync(join(own.root, place), 0o755)
      const outside = join(own.root, 'outside')
      mkdirSync(outside)
      symlinkSync(outside, join(own.root, 'registry/raw/link'))
      await own.fetch({ assets: ['BTC'], paths: ['blockchain/*'], since })
      const mode = (path: string): string => (statSync(join(own.root, path)).mode & 0o777).toString(8)
      for (const place of ['spool', 'quarantine', 'runs', 'registry/raw', 'registry/raw/snapshot'])
        expect([place, mode(place)]).toEqual([place, '700'])
      const files = filesIn(own.root)
      const inside = files.filter((path) => /^(?:spool|quarantine|runs|registry\/raw)\//.test(path))
      expect(inside.length).toBeGreaterThan(5)
      expect(inside.filter((path) => mode(path) !== '600')).toEqual([])
      expect(files.filter((path) => !inside.includes(path) && mode(path) !== '644')).toEqual([])
      for (const place of ['registry', 'journal', 'points', 'outside'])
        expect([place, mode(place)]).toEqual([place, '755'])
    } finally {
      umask(before)
    }
  }))

test('the log of a run has every request, answer and commit as a line of JSON', async () =>
  withRig(now, async (rig) => {
    rig.faults('status-503:each,first=1,share=0.3', 'poison-nan@blockchain/block_height_pit')
    const done = await rig.fetch({ assets: ['BTC'], paths: ['blockchain/*', 'supply/*'], since })
    const [name = ''] = readdirSync(join(rig.root, 'runs')).filter((file) => file.endsWith('.log'))
    const lines = readFileSync(join(rig.root, 'runs', name), 'utf8')
      .trimEnd()
      .split('\n')
    const events = lines.map((line) => JSON.parse(line) as { at: string; event: string; attempt?: number })
    const count = (event: string): number => events.filter((line) => line.event === event).length
    expect(events[0]).toMatchObject({ event: 'planned', requests: expect.any(Number) as number })
    expect(count('answer')).toBe(done.requests)
    expect(events.some(({ attempt }) => attempt === 2)).toBe(true)
    expect(count('request')).toBeLessThan(count('answer'))
    expect(count('commit')).toBeGreaterThanOrEqual(1)
    expect(count('sent') + count('waiting')).toBe(0)
    expect(events.map(({ at }) => at)).toEqual(events.map(({ at }) => at).toSorted())
  }))
