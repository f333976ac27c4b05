import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { RegistryDeps } from '../../src/sources/registry/run.ts'
import { registryStatus } from '../../src/sources/registry/status.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { contentOf, everyByte, registryKey, standing, withRegistryRig } from '../helpers/registry-rig.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { passingFacts } from '../../src/sources/registry/staging.ts'
import { refused, SmallRegistry } from '../helpers/small-registry.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { reading } from '../helpers/ledgers.ts'

const now = Date.UTC(2026, 5, 1, 12) / 1000

/** A lake that has followed a small registry to its tail, and the provider to be broken. */
async function withSmall(
  work: (small: SmallRegistry, rig: Parameters<Parameters<typeof withRegistryRig>[1]>[0]) => Promise<void>,
): Promise<void> {
  const small = new SmallRegistry()
  await withRegistryRig(now, async (rig) => await work(small, rig), { instead: (request) => small.answer(request) })
}

const text = (body: string | Uint8Array<ArrayBuffer>) => () => new Response(body)
const whole = (change: string): string =>
  `{"issuers":[${change}],"assets":[],"products":[],"deployments":[],"venues":[],"derivatives":[],"cursor":"c"}`

describe('bad bodies are put aside with a reason, the held state is untouched', () => {
  const bodies: readonly (readonly [name: string, body: string | Uint8Array<ArrayBuffer>, reason: RegExp])[] = [
    ['a cut body', whole('{"id":"a"}').slice(0, 40), /cut or damaged/],
    ['HTML', '<html><body>Bad Gateway</body></html>', /HTML/],
    ['nothing', '', /empty/],
    ['null', 'null', /null/],
    ['bytes that are no text', new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), /UTF-8/],
    ['a record without id', whole('{"name":"x"}'), /without id/],
    ['an id of another type', whole('{"id":7}'), /id that is a number/],
    ['10 MB in one field', whole(`{"id":"i1","name":"${'x'.repeat(10_000_000)}"}`), /a record of \d+ characters/],
    ['two records of one id', whole('{"id":"i1","v":1},{"id":"i1","v":2}'), /two records of one id/],
    ['half a character', whole('{"id":"i1","name":"\\ud83d"}'), /half a character/],
    ['deep nesting', whole(`{"id":"i1","v":${'['.repeat(90)}${']'.repeat(90)}}`), /nested deeper/],
    ['no cursor', whole('{"id":"i1"}').replace('"cursor":"c"', '"x":1'), /without a cursor/],
    ['nothing that is known', '{"data":{"things":[]},"cursor":"c"}', /without any known resource/],
  ]

  test('bad bodies one after the other on one lake are put aside and change no state', () =>
    withSmall(async (small, rig) => {
      await rig.sync()
      const before = [await standing(rig.root), await contentOf(rig.root)]
      for (const [n, [name, body, reason]] of bodies.entries()) {
        small.asked.length = 0
        small.broken.set('/snapshot', text(body))
        const summary = await rig.snapshot()
        expect(summary.stopped_by, name).toBe('undecodable')
        expect(summary.words, name).toMatch(reason)
        expect(small.asked, name).toEqual(['/snapshot', '/snapshot'])
        expect(readdirSync(join(rig.root, 'quarantine')), name).toHaveLength(2 * (n + 1))
        rig.clock.now++
      }
      expect([await standing(rig.root), await contentOf(rig.root)]).toEqual(before)
    }))

  test('a page of the feed: what was read before it counts, the cursor stops there', () =>
    withSmall(async (small, rig) => {
      await rig.sync()
      small.world.put('issuers', 'i1', { name: 'other' })
      small.broken.set(
        '/changes',
        text('{"data":[{"entity_type":"issuer","entity_id":"i1","op":"updated"}],"has_more":false}'),
      )
      const bad = await rig.sync()
      expect([bad.stopped_by, bad.updated]).toEqual(['undecodable', 0])
      expect(bad.words).toMatch(/updated without a record/)
      small.broken.clear()
      expect((await rig.sync()).updated).toBe(1)
    }))
})

test('TIME 45: a page without events says where to go on', () =>
  withSmall(async (small, rig) => {
    await rig.sync()
    small.world.put('issuers', 'i1', { name: 'other' })
    const tail = `e0.${small.world.log.length - 1}`
    small.asked.length = 0
    small.broken.set('/changes', () => {
      small.broken.clear()
      return Response.json({ data: [], next_cursor: tail, has_more: true, as_of: '2026-06-01T12:00:00Z' })
    })
    expect(await rig.sync()).toMatchObject({ updated: 1, stopped_by: null })
    expect(small.asked.filter((path) => path === '/changes').length).toBeGreaterThanOrEqual(2)
  }))

test('a snapshot that loses much is held back until a person accepts it', () =>
  withSmall(async (small, rig) => {
    await rig.sync()
    const before = await standing(rig.root)
    for (let n = 0; n < 12; n++) small.world.put('products', `p${n}`, null)
    await expect(rig.snapshot()).rejects.toThrow(
      /held back.*products 20 -> 8, deployments 40 -> 16 \(36 of 90 records gone\).*--accept-shrink/,
    )
    expect(await standing(rig.root)).toEqual(before)
    small.broken.set('/snapshot', text('{"issuers":[],"cursor":"c"}'))
    await expect(rig.snapshot()).rejects.toThrow(/issuers 30 -> 0, products 20 -> missing/)
    small.broken.clear()
    const { closed, records } = await rig.snapshot({ acceptShrink: true })
    expect([closed, records['products'], records['deployments']]).toEqual([36, 8, 16])
  }))

test('a refused snapshot: head first, then the lists, then the feed; later 304s', () =>
  withSmall(async (small, rig) => {
    small.broken.set('/snapshot', refused(429, 'snapshot_limit', { 'retry-after': '3600' }))
    const first = await rig.sync()
    expect([first.source, first.records['deployments'], first.records['provenance']]).toEqual(['lists', 40, 40])
    const lists = ['/issuers', '/assets', '/products', '/deployments', '/venues', '/derivatives']
    expect(small.asked).toEqual(['/snapshot', '/changes/head', ...lists, '/changes', '/changes'])
    small.world.put('deployments', 'd0', null)
    small.world.put('deployments', 'd1', null)
    rig.clock.now += 86_400
    const second = await rig.snapshot()
    // d0 was never verified: no list would show it, only the feed says that it is gone.
    expect([second.closed, second.updated, second.records['deployments']]).toEqual([1, 2, 39])
    expect((await rig.sync()).closed).toBe(1)
    const status = await reading(
      rig.root,
      async (ledger) => await registryStatus(ledger, catalogue, rig.clock.now * 1000, null),
    )
    expect(status).toMatchObject({ last_snapshot: '2026-06-02', last_snapshot_source: 'lists', epoch: 1, behind: null })
    expect(status.not_modified).toBe(4)
    expect(status.limits.snapshots_from).toMatch(/^2026-06-\d\dT/)
  }))

test('TIME 46: after a new epoch a snapshot gives the missed changes as inferred, and the feed goes on', () =>
  withSmall(async (small, rig) => {
    await rig.sync()
    small.world.put('issuers', 'i3', null)
    small.world.put('issuers', 'i4', { name: 'renamed' })
    small.epoch++
    rig.clock.now += 3600
    const summary = await rig.sync()
    expect([summary.new_epoch, summary.epoch, summary.closed, summary.updated, summary.stopped_by]).toEqual([
      true,
      2,
      1,
      1,
      null,
    ])
    small.world.put('issuers', 'i4', { name: 'again' })
    expect((await rig.sync()).updated).toBe(1)
    await makeViews(rig.root)
    await withViews(rig.root, async (engine) => {
      const rows = await engine.rows(
        `SELECT op, closed_by, inferred FROM history.issuers WHERE id = 'i4' ORDER BY valid_from`,
      )
      expect(rows).toEqual([
        { op: 'snapshot', closed_by: 'updated', inferred: false },
        { op: 'updated', closed_by: 'updated', inferred: true },
        { op: 'updated', closed_by: null, inferred: false },
      ])
    })
  }))

test('the refusals apart: key, quota, server; nothing is applied', () =>
  withSmall(async (small, rig) => {
    const stoppedBy = async (response: () => Response): Promise<unknown> => {
      small.broken.set('/snapshot', response)
      return (await rig.sync()).stopped_by
    }
    expect(await stoppedBy(refused(401, 'unauthorized'))).toBe('unauthorised')
    expect(await stoppedBy(refused(403, 'forbidden'))).toBe('unauthorised')
    expect(await stoppedBy(refused(429, 'quota_exceeded', { 'retry-after': '40000' }))).toBe('quota')
    expect(await stoppedBy(refused(500, 'internal_error'))).toBe('failed')
    expect((await standing(rig.root)).version).toBe(0)
    expect(everyByte(rig.root)).not.toContain(registryKey)
  }))

describe('cursors are opaque: none is compared, whatever a provider writes', () => {
  let answers = 0
  const letters = ['零', '一', '二', '三', '四', '五', '六', '七', '八', '九', '·', 'ё']
  const plain = '0123456789.e'
  const spellings: readonly (readonly [string, Pick<SmallRegistry, 'spell' | 'read'>])[] = [
    ['the same for the same place', { spell: (cursor) => cursor, read: (told) => told }],
    [
      'anew in each answer',
      { spell: (cursor) => `${(answers++).toString(36)}~${cursor}`, read: (told) => told.split('~')[1] ?? '' },
    ],
    [
      'in an alphabet that sorts otherwise',
      {
        spell: (cursor) =>
          [...cursor]
            .map((sign) => letters[plain.indexOf(sign)])
            .toReversed()
            .join(''),
        read: (told) =>
          [...told]
            .map((sign) => plain[letters.indexOf(sign)])
            .toReversed()
            .join(''),
      },
    ],
  ]

  test.for(spellings)('%s', ([, spelling]) =>
    withSmall(async (small, rig) => {
      Object.assign(small, spelling)
      await rig.sync()
      const version = async (): Promise<unknown> => (await standing(rig.root)).version
      const before = await version()
      for (let n = 0; n < 2; n++) expect(await rig.sync()).toMatchObject({ events: 0, files_added: 0 })
      expect(await rig.snapshot()).toMatchObject({ updated: 0, opened: 0, closed: 0, files_added: 0 })
      expect(await version()).toBe(before)
      small.world.put('issuers', 'i5', { name: 'told by the feed', custodian: null })
      expect(await rig.sync()).toMatchObject({ updated: 1, events: 1 })
      expect(await rig.sync()).toMatchObject({ updated: 0, events: 0 })
      small.world.rows.set('issuers i5', { id: 'i5', name: 'behind the back of the feed' })
      expect(await rig.snapshot()).toMatchObject({ updated: 1, findings: 0, new_epoch: false })
      expect(await version()).toBe(Number(before) + 2)
    }),
  )

  test('events that bring nothing new move the place in the feed, and make no version', () =>
    withSmall(async (small, rig) => {
      await rig.sync()
      const data = [{ entity_type: 'issuer', entity_id: 'i5', op: 'updated', record: small.world.record('issuers i5') }]
      const asked: (string | null)[] = []
      small.answer = (request) => {
        rig.clock.now++
        asked.push(new URL(request.url).searchParams.get('since'))
        return Response.json({ data, next_cursor: `e0.${90 + asked.length}`, has_more: false })
      }
      await rig.sync()
      const { version } = await standing(rig.root)
      for (let n = 0; n < 2; n++) expect(await rig.sync()).toMatchObject({ events: 1, updated: 0 })
      expect(asked.slice(1)).toEqual(['e0.91', 'e0.92'])
      expect((await standing(rig.root)).version).toBe(version)
    }))
})

test('TIME 50, TIME 51: three answers, an unknown type and an additive key', () =>
  withSmall(async (small, rig) => {
    await rig.sync()
    const answers = ['not disclosed', 'None (self-custodied)', 'Alpine Custody AG', 'not disclosed at all']
    for (const [n, custodian] of answers.entries())
      small.world.put('issuers', `i${n}`, { name: `Issuer ${n}`, custodian })
    await rig.sync()
    const page = {
      data: [{ entity_type: 'committee', entity_id: 'c1', op: 'created', record: { id: 'c1' } }],
      next_cursor: 'e0.999',
      has_more: false,
    }
    small.broken.set('/changes', () => Response.json(page))
    expect((await rig.sync()).unknown).toEqual({ committee: 1 })
    expect((await rig.sync()).unknown).toEqual({})
    for (const [key, row] of small.world.rows)
      if (key.startsWith('issuers')) small.world.rows.set(key, { ...row, lei: 'x' })
    const { updated, schema_changes, opened } = await rig.snapshot()
    expect([updated, opened, schema_changes]).toEqual([0, 0, 1])
    await makeViews(rig.root)
    await withViews(rig.root, async (engine) => {
      const rows = await engine.rows(
        `SELECT custodian_answer AS a, custodian_reason AS r FROM issuers WHERE id IN ('i0', 'i1', 'i2', 'i3', 'i9') ORDER BY id`,
      )
      expect(rows).toEqual([
        { a: 'not_disclosed', r: null },
        { a: 'none', r: 'self-custodied' },
        { a: 'named', r: null },
        { a: 'named', r: null },
        { a: 'not_established', r: null },
      ])
      expect(await engine.rows('SELECT resource, path FROM schema_changes')).toEqual([
        { resource: 'issuers', path: 'lei' },
      ])
      const dated = await engine.rows(`SELECT count(*)::INTEGER AS n FROM snapshots.issuers WHERE record->>'lei' = 'x'`)
      expect(dated[0]?.['n']).toBe(30)
      expect(await engine.rows(`SELECT entity_type, resource FROM registry_events WHERE resource IS NULL`)).toEqual([
        { entity_type: 'committee', resource: null },
      ])
    })
  }))

test('clocks more than an hour apart end a poll after its first answer, except for a sandbox', async () => {
  const small = new SmallRegistry()
  await withRegistryRig(
    Date.UTC(2026, 5, 1, 12) / 1000,
    async (rig) => {
      await rig.snapshot()
      const { version } = await standing(rig.root)
      small.world.put('issuers', 'i1', { name: 'Another', custodian: null })
      small.asked.splice(0)
      const ahead = rig.clock.now + 50 * 365 * 86_400
      const deps = { now: () => ahead * 1000, nowMicros: () => ahead * 1_000_000 }
      await expect(rig.sync({ deps })).rejects.toMatchObject({ kind: 'incomplete', message: /clock/ })
      expect(small.asked).toEqual(['/changes'])
      expect(await standing(rig.root)).toMatchObject({ version })
      expect(await rig.sync()).toMatchObject({ updated: 1 })
    },
    { instead: small.answer },
  )
  await withRegistryRig(Date.UTC(2026, 5, 1, 12) / 1000, async (rig) => {
    await rig.snapshot()
    const notes: string[] = []
    const ahead = rig.clock.now + 7200
    const onEvent = (event: Parameters<RegistryDeps['onEvent']>[0]): void =>
      void (event.kind === 'note' && notes.push(event.text))
    await rig.sync({ deps: { now: () => ahead * 1000, nowMicros: () => ahead * 1_000_000, onEvent } })
    expect(notes.filter((text) => text.includes('clock'))).toHaveLength(1)
  })
})

test('limits from an answer are kept for the next job, and each 304 is counted', () =>
  withSmall(async (small, rig) => {
    const limits = {
      'x-ratelimit-limit': '120;w=60',
      'x-quota-daily-remaining': '7',
      'x-ratelimit-reset': 'x'.repeat(100),
    }
    small.broken.set('/changes/head', () => Response.json({ cursor: 'e0.0' }, { headers: limits }))
    small.broken.set('/snapshot', refused(429, 'snapshot_limit', { 'retry-after': '3600' }))
    const facts = async () => {
      using ledger = await Ledger.openToRead(rig.root)
      return passingFacts(ledger)
    }
    await rig.snapshot()
    const { 'x-ratelimit-reset': _, ...short } = limits
    expect(await facts()).toMatchObject({ limits: short, notModified: 0 })
    rig.clock.now += 7200
    await rig.snapshot()
    // One list of each resource.
    expect((await facts()).notModified).toBe(6)
  }))

test('an interrupt waits for no answer of the registry: what is in flight is let go', async () => {
  const stop = new AbortController()
  const small = new SmallRegistry()
  let answer: () => void = () => undefined
  const held = new Promise<void>((done) => (answer = done))
  const instead = async (request: Request): Promise<Response> => {
    if (request.url.includes('/issuers')) {
      stop.abort()
      await held
    }
    return small.answer(request)
  }
  await withRegistryRig(
    now,
    async (rig) => {
      await rig.sync()
      const asked = small.asked.length
      const done = rig.verify({ budget: null, names: ['issuers'] }, { deps: { signal: stop.signal } })
      try {
        expect(await done).toMatchObject({ stopped_by: 'signal' })
        expect(small.asked.length).toBe(asked)
      } finally {
        answer()
      }
    },
    { instead },
  )
}, 60_000)
