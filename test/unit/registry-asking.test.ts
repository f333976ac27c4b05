import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { RequestRow } from '../../src/lake/ledger/entry.ts'
import type { Outcome } from '../../src/sources/http/outcome.ts'
import { readFeed, readPages, readWhole, type RegistryAsking } from '../../src/sources/registry/reading.ts'
import { ownNames } from '../../src/sources/registry/columns.ts'
import { verdictOf } from '../../src/sources/registry/run.ts'
import { inFolder } from '../helpers/folders.ts'
import { resources } from '../helpers/registry-world.ts'
import type { AnsweredRequest, AskOne } from '../../src/sources/http/request-rows.ts'
import { partOf } from '../helpers/part-of.ts'

const hour = 3_600_000

/** An answer: what a body says, or how else a request ended. */
type Answer = object | { readonly outcome: Partial<Outcome> }

/** Asks a provider that answers each address by this function; `asked` are the addresses, in their order. */
async function asking(
  answer: (address: string, n: number) => Answer,
  work: (asking: RegistryAsking, asked: readonly string[]) => Promise<void>,
  clock: { now: number } = { now: 0 },
): Promise<void> {
  await inFolder(async (root) => {
    const asked: string[] = []
    const file = (name: string): string => join(root, name)
    let id = 0
    const ask: AskOne = async (request) => {
      const { pathname, search } = new URL(request.url)
      const address = `${pathname}${search}`
      const told = answer(address, asked.length)
      asked.push(address)
      const row = partOf<RequestRow>({ id: request.id })
      if ('outcome' in told) return await Promise.resolve(partOf<AnsweredRequest>({ outcome: told.outcome, row }))
      writeFileSync(request.file, JSON.stringify(told))
      return partOf<AnsweredRequest>({ outcome: { kind: 'body', etag: null }, row })
    }
    const own: RegistryAsking = {
      connection: { ask, base: 'http://r', spool: { file } },
      requests: [],
      nextId: () => `${++id}`,
      storedAnswer: () => undefined,
      onOutcome: () => undefined,
      quarantine: async () => await Promise.resolve(),
      now: () => clock.now,
    }
    await work(own, asked)
  })
}

const event = (id: string) => ({ entity_type: 'issuer', entity_id: id, op: 'updated', record: { id } })
const page = (cursor: string, events: readonly object[] = [], more = true) => ({
  data: events,
  next_cursor: cursor,
  has_more: more,
  as_of: `as of ${cursor}`,
})
const refused = (code: string | null, words = '', parameter: string | null = null): Answer => ({
  outcome: { kind: 'refused', status: 400, code, words, parameter } as Partial<Outcome>,
})

describe('the feed', () => {
  test('the feed is read page after page, and pages count up to the last, whatever ends it', () =>
    asking(
      (_, n) => page(`c${n + 1}`, [event(`i${n}`)], n < 2),
      async (own, asked) => {
        const read = await readFeed(own, resources, 'c0', 50, () => true)
        expect(asked).toEqual(['c0', 'c1', 'c2'].map((cursor) => `/changes?since=${cursor}&limit=50`))
        expect(read).toMatchObject({
          cursor: 'c3',
          pages: 3,
          events: 3,
          as_of: 'as of c3',
          stopped: null,
          invalid: false,
        })
        expect(read.raws.map(({ address }) => address)).toEqual(asked)
      },
    ))

  test('belongs to another epoch where its cursor is refused, by a code or by the words alone', async () => {
    for (const answer of [refused('invalid_cursor'), refused(null, 'that Cursor is too old')])
      await asking(
        () => answer,
        async (own) =>
          expect(await readFeed(own, resources, 'c0', 50, () => true)).toMatchObject({
            cursor: 'c0',
            invalid: true,
            stopped: null,
          }),
      )
    // Another refusal is an end of its own; without the limit it is asked once more.
    await asking(
      (_, n) => (n === 0 ? refused('bad_request', 'no', 'limit') : page('c1', [], false)),
      async (own, asked) => {
        expect(await readFeed(own, resources, 'c0', 50, () => true)).toMatchObject({
          cursor: 'c1',
          invalid: false,
          stopped: null,
        })
        expect(asked).toEqual(['/changes?since=c0&limit=50', '/changes?since=c0'])
      },
    )
    await asking(
      () => refused('bad_request', 'the parameter of the cursor is not known', 'since'),
      async (own) =>
        expect(await readFeed(own, resources, 'c0', 50, () => true)).toMatchObject({
          invalid: false,
          stopped: { by: 'failed' },
        }),
    )
  })

  test('the feed is left after six hours to the millisecond, and its pages until then count', async () => {
    const clock = { now: 0 }
    await asking(
      (_, n) => {
        clock.now = n === 0 ? 6 * hour : 6 * hour + 1
        return page(`c${n + 1}`, [event(`i${n}`)])
      },
      async (own, asked) => {
        const read = await readFeed(own, resources, 'c0', 50, () => true)
        expect(asked).toHaveLength(2)
        expect(read).toMatchObject({ cursor: 'c2', events: 2, stopped: { by: 'budget' } })
      },
      clock,
    )
  })

  test('a feed without news for a thousand pages is an error of going round in circles', () =>
    asking(
      () => page('again', [event('i')]),
      async (own, asked) => {
        const read = await readFeed(own, resources, 'c0', 50, () => false)
        expect([asked.length, read.stopped?.by]).toEqual([1000, 'failed'])
        expect(read.stopped?.words).toContain('has_more without an end')
      },
    ))
})

describe('a list', () => {
  const issuers = resources.get('issuers')
  const listed = (ids: readonly string[], cursor: string | null) => ({
    data: ids.map((id) => ({ id })),
    next_cursor: cursor,
    has_more: cursor !== null,
  })
  const read = async (answer: (n: number) => Answer, room = { bytes: 1e6, until: 1e9 }, clock = { now: 0 }) => {
    if (!issuers) throw new Error('no issuers')
    let told: Awaited<ReturnType<typeof readPages>> | undefined
    await asking(
      (_, n) => answer(n),
      async (own) => void (told = await readPages(own, { resource: issuers, filters: {}, pageLimit: 2 }, room)),
      clock,
    )
    return told?.kind === 'pages' ? told.records.map((one) => (one as { id: string }).id) : told?.words
  }

  test('ends with its last page, and where a page comes again', async () => {
    expect(await read((n) => listed([`i${n}`], n < 2 ? `c${n}` : null))).toEqual(['i0', 'i1', 'i2'])
    expect(await read((n) => listed(n < 1 ? ['i0'] : ['i1'], 'c'))).toEqual(['i0', 'i1', 'i1'])
    // Pages without records are none that come again.
    expect(await read((n) => (n < 3 ? listed([], `c${n}`) : listed(['i3'], null)))).toEqual(['i3'])
    expect(await read((n) => listed([`i${n % 2}`], `c${n}`))).toMatch(/pages without an end/)
    expect(await read(() => listed([], 'c'))).toMatch(/pages without an end/)
  })

  test('a missing list of the registry is reported as missing', async () => {
    const gone = { outcome: { kind: 'gone', status: 404, code: null, words: 'no such list' } as Partial<Outcome> }
    expect(await read(() => gone)).toBe('/issuers: 404: no such list')
  })

  test('has room for so many bytes and until an instant', async () => {
    const clock = { now: 5 }
    expect(await read((n) => listed([`i${n}`], n < 1 ? 'c' : null), { bytes: 1e6, until: 5 }, clock)).toEqual([
      'i0',
      'i1',
    ])
    expect(await read((n) => listed([`i${n}`], `c${n}`), { bytes: 1e6, until: 4 }, clock)).toMatch(
      /too much for one run/,
    )
    expect(await read((n) => listed([`i${n}`], `c${n}`), { bytes: 10, until: 5 }, clock)).toMatch(
      /too much for one run/,
    )
  })
})

test('a whole state is put together from the lists if the snapshot is limited', () =>
  asking(
    (address) => {
      if (address === '/snapshot')
        return {
          outcome: {
            kind: 'limited',
            status: 429,
            code: 'snapshot_limit',
            waitMs: 1,
            words: 'later',
          } as Partial<Outcome>,
        }
      if (address === '/changes/head') return { cursor: 'head' }
      return {
        data: address.startsWith('/issuers') ? [{ id: 'i' }] : [],
        next_cursor: null,
        has_more: false,
        as_of: address,
      }
    },
    async (own, asked) => {
      const whole = await readWhole(own, resources, 100)
      expect(whole).toMatchObject({ source: 'lists', cursor: 'head', limited: 'later' })
      expect(whole.kind !== 'stopped' && [...(whole.records.get('issuers')?.keys() ?? [])]).toEqual(['i'])
      // The head comes first: what changes meanwhile is in the feed behind it.
      expect(asked.slice(0, 2)).toEqual(['/snapshot', '/changes/head'])
      expect(asked).toHaveLength(2 + resources.size)
    },
  ))

test.each([
  [null, null],
  ['unauthorised', 'unauthorised'],
  ['signal', 'stopped'],
  ['max_requests', 'stopped'],
  ['budget', 'stopped'],
  ['quota', 'stopped'],
  ['unreachable', 'incomplete'],
  ['failed', 'incomplete'],
  ['undecodable', 'incomplete'],
])('a run that was stopped by %s ends as %s', (stopped_by, kind) => {
  expect(verdictOf({ stopped_by, words: null, resume_at: null })?.kind ?? null).toBe(kind)
})

test('a catalogue may not name a resource like a table of pitlake, nor a field like a column', () => {
  const tables = ['absorbed', 'schema_changes', 'registry_findings', 'snapshots', 'events', 'raw', 'history']
  expect(ownNames.tables).toEqual(expect.arrayContaining(tables))
  const columns = ['id', 'at', 'op', 'layer', 'entity', 'removed', 'record', 'superseded_at', 'hash']
  expect(ownNames.columns).toEqual(expect.arrayContaining(columns))
})
