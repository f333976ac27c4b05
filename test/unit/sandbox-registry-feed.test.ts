import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseFault, pick } from '../../src/sandbox/faults.ts'
import type { answerRegistry } from '../../src/sandbox/registry/handler.ts'
import { tables } from '../../src/sandbox/registry/state.ts'
import { day, parseInstant } from '../../src/base/time.ts'
import { type Json, ask, autumn, body, env, refused } from './sandbox-registry-ask.ts'
import { addedFields, registryStateAt } from '../helpers/registry-truth.ts'

type RegistryEnv = Parameters<typeof answerRegistry>[1]

type Held = Map<string, Map<string, Json>>

/** Reads a snapshot of any layout as a client would: type → id → record. */
async function readSnapshot(from: RegistryEnv): Promise<{ held: Held; cursor: string }> {
  const whole = await body('/snapshot', from)
  const arrays: Json = whole['data'] ?? whole
  const held: Held = new Map()
  for (const [table, type] of Object.entries(tables)) {
    held.set(type, new Map((arrays[table] ?? []).map((record: Json) => [record['id'], record])))
  }
  for (const product of arrays['products'] as Json[]) {
    for (const deployment of product['deployments'] ?? []) held.get('deployment')?.set(deployment.id, deployment)
  }
  return { held, cursor: whole['cursor'] ?? whole['next_cursor'] }
}

interface Tally {
  events: number
  emptyPages: number
  sharedCursors: number
  deleted: number
  nullRecords: number
  foreignRecords: number
  tail: string | null
}

/** Applies the feed to what is held, as the document tells a client to. */
async function follow(held: Held, since: string, from: RegistryEnv, limit: number): Promise<Tally> {
  const tally: Tally = {
    events: 0,
    emptyPages: 0,
    sharedCursors: 0,
    deleted: 0,
    nullRecords: 0,
    foreignRecords: 0,
    tail: since,
  }
  let cursor: string | null = since
  for (let more = true, pages = 0; more && pages < 20_000; pages++) {
    const page = await body(`/changes?since=${cursor}&limit=${limit}`, from)
    const events = page[pick(from.faults ?? [], 'registry-shape')?.events ?? 'data'] as Json[]
    if (events.length === 0) tally.emptyPages++
    if (new Set(events.map((event) => event['cursor'])).size < events.length) tally.sharedCursors++
    for (const event of events) {
      tally.events++
      const table = held.get(event['entity_type']) ?? new Map<string, Json>()
      held.set(event['entity_type'], table)
      if (event['op'] === 'deleted') {
        tally.deleted++
        if (event['record'] === null) tally.nullRecords++
        table.delete(event['entity_id'])
      } else {
        if (event['record'].id !== event['entity_id']) tally.foreignRecords++
        table.set(event['entity_id'], event['record'])
      }
    }
    more = page['has_more']
    cursor = page['next_cursor']
  }
  tally.tail = cursor
  return tally
}

/** What is held without the fields that were added to all records of a type on a date. */
function bare(held: Held, at: number): Json {
  const strip = (type: 'product' | 'deployment' | 'issuer' | 'venue', record: Json): Json => {
    const rest = { ...record }
    for (const field of addedFields(type, at)) delete rest[field]
    if (rest['deployments']) rest['deployments'] = rest['deployments'].map((d: Json) => strip('deployment', d))
    return rest
  }
  const types = Object.values(tables).map((type) => {
    const records = [...(held.get(type)?.values() ?? [])].map((record) => strip(type as 'product', record))
    return [type, records.toSorted((a, b) => (a['id'] < b['id'] ? -1 : 1))]
  })
  return Object.fromEntries(types) as Json
}

const faults = fc
  .tuple(
    fc.subarray(['empty-pages', 'null-cursor', 'repeated-events']),
    fc.constantFrom('plain', 'data', 'next_cursor'),
    fc.constantFrom('data', 'changes', 'events'),
    fc.constantFrom('both', 'array', 'products'),
  )
  .map(([kinds, layout, events, embedded]) =>
    [...kinds, `registry-shape:layout=${layout},events=${events},embedded=${embedded}`].map(parseFault),
  )

describe('snapshot and feed', () => {
  test('a snapshot is the truth of its instant', async () => {
    const from = env(autumn)
    const { held } = await readSnapshot(from)
    const truth = registryStateAt(from, autumn)
    for (const [table, type] of Object.entries(tables)) expect(held.get(type)).toEqual(truth.get(table))
  })

  test('a snapshot and the changes since make the later snapshot, whatever the form', async () => {
    const days = fc.tuple(
      fc.integer({ min: 0, max: 1020 }),
      fc.integer({ min: 0, max: 60 }),
      fc.integer({ min: 0, max: day }),
    )
    await fc.assert(
      fc.asyncProperty(
        days,
        faults,
        fc.integer({ min: 20, max: 500 }),
        async ([start, length, seconds], form, limit) => {
          const earlier = autumn - 1024 * day + start * day + seconds
          const later = earlier + length * day
          const { held, cursor } = await readSnapshot(env(earlier, { faults: form }))
          const tally = await follow(held, cursor, env(later, { faults: form }), limit)
          expect(tally.foreignRecords).toBe(0)
          expect(tally.tail === null).toBe(pick(form, 'null-cursor') !== undefined)
          const wanted = await readSnapshot(env(later, { faults: form }))
          expect(bare(held, later)).toEqual(bare(wanted.held, later))
        },
      ),
      { numRuns: 60, seed: 4 },
    )
  }, 300_000)

  test('over years the feed has pages without events, shared cursors, removals with and without a record', async () => {
    const { held, cursor } = await readSnapshot(env(autumn - 900 * day))
    const tally = await follow(held, cursor, env(autumn), 5)
    expect(tally.emptyPages).toBeGreaterThan(0)
    expect(tally.sharedCursors).toBeGreaterThan(0)
    expect(tally.nullRecords).toBeGreaterThan(0)
    expect(tally.deleted).toBeGreaterThan(tally.nullRecords)
    expect(held.get('committee')?.size).toBeGreaterThan(0)
  })

  test('an entity reads created on one page and updated on the next, and a removed product removes its deployments', async () => {
    const earlier = env(autumn - 900 * day)
    const { cursor } = await readSnapshot(earlier)
    const ops = new Map<string, Set<string>>()
    const removed: Json[] = []
    for (let since = cursor, more = true; more; ) {
      const page = await body(`/changes?since=${since}&limit=2`, env(autumn))
      for (const event of page['data']) {
        const key = `${event['entity_type']}/${event['entity_id']}`
        ops.set(key, (ops.get(key) ?? new Set()).add(event['op']))
        if (event['op'] === 'deleted') removed.push(event)
      }
      since = page['next_cursor']
      more = page['has_more']
    }
    expect([...ops.values()].some((seen) => seen.has('created') && seen.has('updated'))).toBe(true)
    const products = registryStateAt(earlier, autumn - 900 * day).get('products')
    const gone = removed.filter((event) => event['entity_type'] === 'product' && products?.has(event['entity_id']))
    expect(gone.length).toBeGreaterThan(0)
    const lost = products?.get(gone[0]?.['entity_id'])?.['deployments'] as Json[]
    const deployments = lost.map(({ id }) => id as string)
    const removedIds = new Set(removed.map((event) => event['entity_id'] as string))
    for (const id of deployments) expect(removedIds).toContain(id)
  })

  test('limit counts entries of the log, not events', async () => {
    const { cursor } = await readSnapshot(env(autumn - 90 * day))
    const sizes: number[] = []
    for (let since = cursor, n = 0; n < 60; n++) {
      const page = await body(`/changes?since=${since}&limit=1`, env(autumn))
      sizes.push(page['data'].length)
      since = page['next_cursor']
    }
    expect(Math.min(...sizes)).toBe(0)
    expect(Math.max(...sizes)).toBeGreaterThan(1)
  })

  test('the head is the end of the feed; a silent weekend has no events', async () => {
    const { cursor } = await body('/changes/head', env(autumn))
    const page = await body(`/changes?since=${cursor}`, env(autumn))
    expect(page).toEqual({ data: [], next_cursor: cursor, has_more: false, as_of: '2026-10-20T12:00:00Z' })
    const saturday = parseInstant('2026-10-24T00:00:00Z') as number
    const friday = await body('/changes/head', env(saturday))
    expect((await body(`/changes?since=${friday['cursor']}`, env(saturday + 2 * day)))['data']).toEqual([])
    expect((await body(`/changes?since=${friday['cursor']}`, env(saturday + 3 * day)))['data']).not.toEqual([])
  })

  test('a new epoch and a cursor beyond the head are refused; the new snapshot goes on', async () => {
    const restore = autumn - day
    const epochStarts = [restore]
    const before = await readSnapshot(env(restore - 1, { epochStarts }))
    await body(`/changes?since=${before.cursor}`, env(restore - 1, { epochStarts }))
    expect(await refused(`/changes?since=${before.cursor}`, env(restore, { epochStarts }))).toEqual([
      400,
      'invalid_cursor',
    ])
    const after = await readSnapshot(env(restore, { epochStarts }))
    await follow(after.held, after.cursor, env(autumn, { epochStarts }), 100)
    const ahead = await body('/changes/head', env(autumn))
    expect(await refused(`/changes?since=${ahead['cursor']}`, env(autumn - 7 * day))).toEqual([400, 'invalid_cursor'])
    const foreign = (await body('/changes/head', env(autumn, { seed: 6 })))['cursor'] as string
    expect(await refused(`/changes?since=${foreign}`, env(autumn))).toEqual([400, 'invalid_cursor'])
  })

  test('a full snapshot is more than ten megabytes, the same ones each time', async () => {
    const from = env(autumn, { scale: 'full' })
    const body = Buffer.from(await ask('/snapshot', from).arrayBuffer())
    expect(body.byteLength).toBeGreaterThan(10_000_000)
    expect(body.equals(Buffer.from(await ask('/snapshot', from).arrayBuffer()))).toBe(true)
  }, 300_000)
})
