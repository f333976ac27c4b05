import { setTimeout } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { type Fault, faultTable, parseFault } from '../../src/sandbox/faults.ts'
import { mounts } from '../helpers/mounts.ts'
import { ask, type Client, noon, withSandbox } from '../helpers/sandbox-client.ts'

const path = 'supply/current_pit'
const week = { a: 'BTC', i: '24h', c: 'native', s: noon - 7 * 86_400, u: noon }
const tried = new Set<Fault['kind']>()

describe.each(mounts)('faults over $name', (mount) => {
  const under = (texts: string | readonly string[], check: (client: Client) => Promise<void>) => {
    const faults = [texts].flat().map(parseFault)
    for (const { kind } of faults) tried.add(kind)
    return withSandbox(mount, { faults }, check)
  }
  const times = (answer: { json: any }): number[] => answer.json.map(({ t }: { t: number }) => t)

  test.each([
    ['status-400', 400],
    ['status-401', 401],
    ['forbidden-403', 403],
    ['gone-404', 404],
    ['status-429', 429],
    ['status-500', 500],
    ['status-503', 503],
    ['status-504', 504],
  ] as const)('%s once, then the next request is answered well', (kind, status) =>
    under([`${kind}@metrics:first=1`, `${kind}@registry:first=1,code=odd`], async ({ metrics, registry }) => {
      const answer = await metrics(path, week)
      expect(answer.status).toBe(status)
      expect(answer.json.error).toEqual(expect.any(String))
      expect(answer.headers['x-pitlake-sandbox']).toBe('11')
      expect(answer.headers['retry-after']).toBe(kind === 'status-429' ? '1' : undefined)
      expect((await metrics(path, week)).status).toBe(200)
      const other = await registry('/issuers')
      expect([other.status, other.json.error.code]).toEqual([status, 'odd'])
      expect((await registry('/issuers')).status).toBe(200)
    }),
  )

  test('a Retry-After in seconds is what the fault names', () =>
    under(['status-503:retry=2m,nth=1', 'status-429:retry=1h,date,nth=1'], async ({ metrics }) => {
      expect((await metrics(path, week)).headers['retry-after']).toBe('120')
      expect((await metrics(path, week)).status).toBe(200)
    }))

  test('a Retry-After as a date lies as many seconds ahead as the fault names', () =>
    under('status-429:retry=1h,date', async ({ metrics }) => {
      expect((await metrics(path, week)).headers['retry-after']).toBe('Wed, 05 Jun 2024 13:00:00 GMT')
    }))

  test('a reset breaks the connection once; the next request is served', () =>
    under('reset:first=1', async ({ metrics, sandbox }) => {
      await expect(metrics(path, week)).rejects.toThrow()
      expect((await metrics(path, week)).status).toBe(200)
      expect(sandbox.requests().map(({ status }) => status)).toEqual([0, 200])
    }))

  test.each(['cut-body', 'cut-body:announce', 'cut-body:bytes=0', 'cut-body:bytes=3,announce'])(
    '%s breaks the connection inside the body',
    (text) =>
      under([`${text}${text.includes(':') ? ',' : ':'}first=1`], async ({ metrics }) => {
        await expect(metrics(path, week)).rejects.toThrow()
        expect((await metrics(path, week)).status).toBe(200)
      }),
  )

  test('a clean cut looks like an end', () =>
    under('cut-body:bytes=50,clean', async ({ metrics }) => {
      const answer = await metrics(path, week, { 'accept-encoding': 'gzip' })
      expect([answer.status, answer.bytes.length]).toEqual([200, 50])
      expect(() => answer.json).toThrow(SyntaxError)
    }))

  test('a cut gzip stream can not be unpacked', () =>
    under('cut-gzip', async ({ metrics }) => {
      const answer = await metrics(path, week, { 'accept-encoding': 'gzip' })
      expect(answer.headers['content-encoding']).toBe('gzip')
      expect(() => gunzipSync(answer.bytes)).toThrow(/unexpected end/)
    }))

  test('bodies of nothing, a page, an empty list and no content arrive as they were ordered', async () => {
    await under('empty-200', async ({ metrics }) => {
      expect(await metrics(path, week)).toMatchObject({ status: 200, text: '' })
    })
    await under('html:status=502', async ({ metrics }) => {
      const answer = await metrics(path, week)
      expect([answer.status, answer.headers['content-type']]).toEqual([502, 'text/html'])
      expect(answer.text).toContain('<html')
    })
    await under('empty-list', async ({ metrics }) => expect((await metrics(path, week)).json).toEqual([]))
    await under('no-content-204', async ({ metrics }) => {
      expect(await metrics(path, week)).toMatchObject({ status: 204, text: '' })
    })
  })

  test('slow answers wait as long as they say', async () => {
    const waited: number[] = []
    const sleep = async (ms: number) => {
      waited.push(ms)
      await setTimeout(1)
    }
    const faults = ['slow-first-byte:ms=700'].map(parseFault)
    for (const { kind } of faults) tried.add(kind)
    await withSandbox(mount, { faults, sleep }, async ({ metrics }) => {
      const answer = await metrics(path, week)
      expect(answer.json.length).toBeGreaterThan(4)
      expect(waited).toEqual([700])
    })
  })

  test('points: rewritten, late, vanished, twice, disordered, moved, filled', async () => {
    const t = Math.floor((noon - 4 * 86_400) / 86_400) * 86_400
    await under(
      [
        `rewrite:t=${t},v=101,nth=2`,
        `late:t=${t},shown=2024-06-06,nth=3`,
        `vanished:t=${t},nth=4`,
        `duplicate:t=${t},nth=5`,
        `duplicate-conflict:t=${t},nth=6`,
        'disorder:nth=7',
        `computed-at-changed:t=${t},nth=8`,
        `null-filled:t=${t},nth=9`,
      ],
      async ({ metrics }) => {
        const next = () => metrics(path, week)
        const plain = await next()
        const of = (answer: { json: any }) => answer.json.filter((point: { t: number }) => point.t === t)
        expect(of(await next())).toEqual([{ ...of(plain)[0], v: 101 }])
        expect(of(await next())).toEqual([])
        expect(of(await next())).toEqual([])
        expect(of(await next())).toEqual([of(plain)[0], of(plain)[0]])
        expect(of(await next())).toEqual([of(plain)[0], { ...of(plain)[0], v: of(plain)[0].v * 1.01 }])
        const disordered = times(await next())
        expect(disordered).not.toEqual(times(plain))
        expect(disordered.toSorted((a, b) => a - b)).toEqual(times(plain))
        expect(of(await next())[0].computed_at).toBe(of(plain)[0].computed_at + 3600)
        expect(of(await next())[0].v).toBeNull()
        expect((await next()).json).toEqual(plain.json)
      },
    )
  })

  const poisons = (Object.keys(faultTable) as Fault['kind'][]).filter((kind) => kind.startsWith('poison-'))
  test.each(poisons)('a body with %s arrives', (kind) =>
    under(`${kind}:first=1`, async ({ metrics }) => {
      const bad = await metrics(path, week)
      const good = await metrics(path, week)
      expect([bad.status, good.status]).toEqual([200, 200])
      expect(bad.bytes.equals(good.bytes)).toBe(false)
    }),
  )

  test('values of another shape from an instant on', () =>
    under(['new-component:t=2024-06-03', 'becomes-object:t=2024-06-03'], async ({ metrics }) => {
      const plain = (await metrics(path, week)).json as { t: number; v: unknown }[]
      const from = Date.UTC(2024, 5, 3) / 1000
      expect(plain.map(({ t, v }) => [t >= from, typeof v])).toEqual(
        plain.map(({ t }) => [t >= from, t >= from ? 'object' : 'number']),
      )
      expect(new Set(plain.map(({ v }) => typeof v)).size).toBe(2)
      const nested = await metrics('addresses/supply_distribution_relative_pit', {
        a: 'BTC',
        i: '24h',
        s: week.s,
        u: noon,
      })
      const newcomers = nested.json.map((point: { t: number }) => [
        point.t >= from,
        JSON.stringify(point).includes('"newcomer":1'),
      ])
      expect(new Set(newcomers.map(String))).toEqual(new Set(['false,false', 'true,true']))
    }))

  const walk = async ({ registry }: Client, cursor: string) => {
    const pages: any[] = []
    let since = cursor
    for (let page = 0; page < 400; page++) {
      const { json } = await registry(`/changes?limit=50&since=${encodeURIComponent(since)}`)
      pages.push(json)
      if (!json.has_more) break
      since = json.next_cursor
    }
    return pages
  }

  test('registry: repeated events, empty pages, null cursor, other layouts', async () => {
    let early = ''
    const monthBefore = { now: () => noon - 30 * 86_400 }
    await withSandbox(
      mount,
      monthBefore,
      async ({ registry }) => (early = (await registry('/changes/head')).json.cursor),
    )
    await under([], async (client) => {
      const pages = await walk(client, early)
      expect(pages.flatMap(({ data }) => data).length).toBeGreaterThan(5)
      expect(pages.at(-1).next_cursor).toEqual(expect.any(String))
    })
    await under(['repeated-events', 'empty-pages', 'null-cursor', 'registry-shape:events=changes'], async (client) => {
      const pages = await walk(client, early)
      expect(pages.some(({ changes, has_more }) => changes.length === 0 && has_more)).toBe(true)
      expect(pages.at(-1).next_cursor).toBeNull()
      const seen = pages
        .flatMap(({ changes }) => changes)
        .map(({ entity_type, entity_id }) => `${entity_type} ${entity_id}`)
      expect(new Set(seen).size).toBeLessThan(seen.length)
    })
    await under('registry-shape:layout=data', async ({ registry }) => {
      expect((await registry('/snapshot')).json.data.products.length).toBeGreaterThan(100)
    })
  })

  test('registry: its ways of asking contradict each other about one record', async () => {
    const rows = async (ask: Client['registry'], query: string): Promise<any[]> => {
      const { json } = await ask(`/products${query}`)
      return json.data ?? json.products ?? json
    }
    let id = ''
    let lost = ''
    let cursor = ''
    await withSandbox(mount, { now: () => noon - 30 * 86_400 }, async ({ registry }) => {
      cursor = (await registry('/changes/head')).json.cursor
    })
    await withSandbox(mount, {}, async (client) => {
      id = (await rows(client.registry, '?status=active'))[0].id
      const told = (await walk(client, cursor)).flatMap(({ data }) => data)
      const event = told.find(({ entity_type }) => entity_type === 'product')
      lost = `products/${event.entity_id}`
    })
    const lies = [
      `wrong-retirement:record=products/${id}`,
      `silent-change:record=products/${id},field=name,value=Other`,
    ]
    await under([...lies, `filter-omits:record=products/${id}`, `lost-event:record=${lost}`], async (client) => {
      const { registry } = client
      const own = (list: readonly any[]): any => list.find((one) => one.id === id)
      expect(own((await registry('/snapshot')).json.products)).toMatchObject({ status: 'inactive', name: 'Other' })
      const address = (await registry(`/products/${id}`)).json
      expect(address.data ?? address).toMatchObject({ status: 'active', name: 'Other' })
      expect(own(await rows(registry, '?status=active'))).toBeUndefined()
      const told = (await walk(client, cursor)).flatMap(({ data }) => data)
      expect(told.length).toBeGreaterThan(0)
      expect(told.filter(({ entity_id }) => `products/${entity_id}` === lost)).toEqual([])
    })
  })

  test('metadata say other values, and another beginning', () =>
    under('metadata-says@metadata/supply/*:parameter=a,values=X+Y,t=2030-01-01', async ({ metricsUrl }) => {
      const url = `${metricsUrl}/v1/metadata/metric?path=/supply/current_pit`
      const { json } = await ask(url, { 'x-api-key': 'metrics-key' })
      expect([json.parameters.a, json.timerange.min]).toEqual([['X', 'Y'], Date.UTC(2030, 0) / 1000])
    }))

  test('a new epoch makes old cursors invalid', () =>
    under('new-epoch:at=2024-06-05T12:00Z', async ({ registry }) => {
      let old = ''
      await withSandbox(mounts[1] as (typeof mounts)[1], {}, async (before) => {
        old = (await before.registry('/changes/head')).json.cursor
      })
      const answer = await registry(`/changes?since=${encodeURIComponent(old)}`)
      expect([answer.status, answer.json.error.code]).toEqual([400, 'invalid_cursor'])
      expect((await registry('/snapshot')).status).toBe(200)
    }))

  test('the same script and requests give the same answers', async () => {
    const run = async () => {
      const statuses: number[] = []
      await under('status-500:share=0.5', async ({ metrics }) => {
        for (let i = 0; i < 20; i++) statuses.push((await metrics(path, { ...week, s: noon - i * 86_400 })).status)
      })
      return statuses
    }
    const first = await run()
    expect(first).toEqual(await run())
    expect(new Set(first)).toEqual(new Set([200, 500]))
  })
})

test('every fault was tried', () => {
  expect(Object.keys(faultTable).filter((kind) => !tried.has(kind as Fault['kind']))).toEqual([])
})
