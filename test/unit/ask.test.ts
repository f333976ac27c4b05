import { describe, expect, test } from 'vitest'
import { type Asker, type AskEvent, createAsker } from '../../src/sources/http/ask.ts'
import type { Http, Reply } from '../../src/sources/http/http.ts'
import type { Headers } from '../../src/sources/http/governor.ts'
import { classify, type Outcome } from '../../src/sources/http/outcome.ts'
import { usualRetries } from '../../src/sources/http/retry.ts'

const start = 1_700_000_000_000

/** A virtual clock: time passes only while everybody sleeps. */
function clock() {
  let now = start
  let sleepers: { at: number; wake: () => void }[] = []
  const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted) return
    await new Promise<void>((resolve) => {
      sleepers.push({ at: now + ms, wake: resolve })
      signal?.addEventListener('abort', () => resolve(), { once: true })
    })
  }
  const run = async (work: Promise<unknown>): Promise<void> => {
    const state = { done: false }
    const ended = work.finally(() => (state.done = true)).catch(() => undefined)
    for (let i = 0; i < 200_000 && !state.done; i++) {
      await new Promise((resolve) => setImmediate(resolve))
      sleepers.sort((a, b) => a.at - b.at)
      const first = sleepers.shift()
      if (first === undefined) continue
      now = Math.max(now, first.at)
      first.wake()
    }
    sleepers = []
    await ended
    expect(state.done).toBe(true)
  }
  return { now: () => now, sleep, run }
}

type Answer = { status: number; headers?: Headers; body?: string } | 'lost' | Error

interface Trial {
  asker: Asker
  requests: { url: string; at: number }[]
  events: AskEvent[]
  run: (asks: number, workers?: number) => Promise<Outcome[]>
  /** Lets virtual time pass until the work is done. */
  drive: (work: Promise<unknown>) => Promise<void>
}

function trial(
  answers: (n: number, url: string) => Answer,
  changes: Partial<Parameters<typeof createAsker>[0]> = {},
  latency = 100,
): Trial {
  const { now, sleep, run } = clock()
  const requests: Trial['requests'] = []
  const events: AskEvent[] = []
  const get = async (request: Parameters<Http['get']>[0]): Promise<Reply> => {
    const answer = answers(requests.push({ url: request.url, at: now() - start }), request.url)
    await sleep(latency, request.signal)
    if (request.signal?.aborted) return { outcome: { kind: 'stopped', by: 'signal' }, status: null, headers: {} }
    if (answer instanceof Error) throw answer
    if (answer === 'lost') {
      const lost: Outcome = {
        kind: 'again',
        reason: 'reset',
        status: null,
        waitMs: null,
        words: 'ECONNRESET',
        requestMs: latency,
      }
      return { outcome: lost, status: null, headers: {} }
    }
    const { status, headers = {}, body = '' } = answer
    const verdict = classify(status, headers, body, { at: now(), requestMs: latency, secrets: [], parameters: [] })
    const outcome: Outcome = verdict.kind === 'body' ? { ...verdict, file: request.file, bytes: 2 } : verdict
    return { outcome, status, headers }
  }
  const asker = createAsker({
    http: { get },
    governor: { perMinute: 600 },
    retry: usualRetries,
    maxRequests: null,
    now,
    sleep,
    random: () => 0.5,
    onEvent: (event) => void events.push(event),
    ...changes,
  })
  const all = async (asks: number, workers = 8): Promise<Outcome[]> => {
    const outcomes: Outcome[] = []
    let next = 0
    const work = async (): Promise<void> => {
      while (next < asks) {
        const i = next++
        outcomes[i] = await asker.ask({ id: String(i), url: `https://api.example/${i}`, file: `f${i}` })
      }
    }
    await run(Promise.all(Array.from({ length: workers }, work)))
    return outcomes
  }
  return { asker, requests, events, run: all, drive: run }
}

const ok: Answer = { status: 200 }
const kinds = (outcomes: readonly Outcome[]): string[] => outcomes.map((outcome) => outcome.kind)

test('requests go out one after the other at the pace of the governor, in the order of their calls', async () => {
  const { run, requests } = trial(() => ok)
  expect(new Set(kinds(await run(60)))).toEqual(new Set(['body']))
  expect(requests.map(({ url }) => url.split('/').at(-1))).toEqual(Array.from({ length: 60 }, (_, i) => String(i)))
  expect(requests.filter(({ at }) => at === requests[0]?.at)).toHaveLength(3)
  expect(requests.at(-1)?.at).toBeCloseTo((59 * 60_000) / 594 - 300, -2)
})

test('faulty requests are repeated, then given up, and every one is reported', async () => {
  const { run, requests, events } = trial((n) => (n === 1 ? 'lost' : n < 4 ? { status: 503 } : ok))
  expect(kinds(await run(1))).toEqual(['body'])
  expect(requests).toHaveLength(4)
  expect(events.filter((e) => e.kind === 'sent').map((e) => e.attempt)).toEqual([1, 2, 3, 4])
  expect(events.filter((e) => e.kind === 'answered').map((e) => e.outcome.kind)).toEqual([
    'again',
    'again',
    'again',
    'body',
  ])

  const hopeless = trial(() => ({ status: 500 }))
  expect(kinds(await hopeless.run(1))).toEqual(['again'])
  expect(hopeless.requests).toHaveLength(usualRetries.attempts)
})

test.each([400, 401, 403, 404, 413, 414, 504, 204, 302])('status %i is requested once', async (status) => {
  const { run, requests } = trial(() => ({ status }))
  await run(1)
  expect(requests).toHaveLength(1)
})

test('Retry-After holds all workers for its whole length, then none of them bursts', async () => {
  const { run, requests } = trial((n) => (n === 3 ? { status: 429, headers: { 'retry-after': '700' } } : ok))
  expect(new Set(kinds(await run(40)))).toEqual(new Set(['body']))
  const refusedAt = (requests[2]?.at ?? 0) + 100
  const later = requests.filter(({ at }) => at > refusedAt)
  expect(later[0]?.at).toBeGreaterThanOrEqual(refusedAt + 700_000)
  const gaps = later.slice(1).map(({ at }, i) => at - (later[i]?.at ?? 0))
  expect(Math.min(...gaps)).toBeGreaterThan(90)
})

test('a spent quota ends all requests, waiting ones too, with the time to come back', async () => {
  const quota: Answer = { status: 429, headers: { 'retry-after': '30000' }, body: '{"code":"quota_exceeded"}' }
  const { run, requests } = trial((n) => (n < 5 ? ok : quota))
  const outcomes = await run(30)
  expect(kinds(outcomes).filter((kind) => kind === 'body')).toHaveLength(4)
  const rest = outcomes.filter((outcome) => outcome.kind === 'parked')
  expect(rest).toHaveLength(26)
  for (const outcome of rest) expect(outcome.until).toBeGreaterThanOrEqual(start + 30_000_000)
  expect(requests.length).toBeLessThan(5 + 8)
})

test('a refused snapshot is reported at once and stops no other request', async () => {
  const snapshot: Answer = { status: 429, headers: { 'retry-after': '86400' }, body: '{"code":"snapshot_limit"}' }
  const { run, requests } = trial((n) => (n === 1 ? snapshot : ok))
  const outcomes = await run(5)
  expect(outcomes[0]).toMatchObject({ kind: 'limited', code: 'snapshot_limit', waitMs: 86_400_000 })
  expect(kinds(outcomes.slice(1))).toEqual(['body', 'body', 'body', 'body'])
  expect(requests).toHaveLength(5)
})

describe('401', () => {
  test('401 stops all workers after at most one more request each, and no later request is sent', async () => {
    const { run, requests, asker } = trial((n) => (n >= 10 ? { status: 401 } : ok), {}, 900)
    const outcomes = await run(500)
    expect(kinds(outcomes).filter((kind) => kind === 'unauthorised')).toHaveLength(491)
    const at = (requests[9]?.at ?? 0) + 900
    expect(requests.filter((request) => request.at > at)).toHaveLength(0)
    expect(requests.length).toBeLessThanOrEqual(10 + 8)
    const before = requests.length
    expect(await asker.ask({ id: 'x', url: 'https://api.example/x', file: 'x' })).toMatchObject({
      kind: 'unauthorised',
    })
    expect(requests).toHaveLength(before)
  })

  test('wakes those who wait for a retry', async () => {
    const { run, requests, events } = trial(
      (n) => (n === 1 ? { status: 503, headers: { 'retry-after': '600' } } : { status: 401 }),
      {},
      300,
    )
    expect(kinds(await run(2))).toEqual(['unauthorised', 'unauthorised'])
    expect(requests).toHaveLength(2)
    expect(events.at(-1)?.at).toBeLessThan(start + 2_000)
  })
})

test('requests with repeats never exceed the limit', async () => {
  const { run, requests, asker } = trial((n) => (n % 2 === 0 ? ok : { status: 502 }), { maxRequests: 7 })
  const outcomes = await run(20)
  expect(requests).toHaveLength(7)
  expect(asker.sent()).toBe(7)
  expect(
    outcomes.filter((outcome) => outcome.kind === 'stopped' && outcome.by === 'max_requests').length,
  ).toBeGreaterThan(10)
})

test('draining lets what is under way end and sends nothing new', async () => {
  const made: { asker?: Asker } = {}
  const { run, requests, asker } = trial((n) => {
    if (n === 5) made.asker?.drain()
    return ok
  })
  made.asker = asker
  const outcomes = await run(30)
  expect(requests).toHaveLength(5)
  expect(kinds(outcomes).filter((kind) => kind === 'body')).toHaveLength(5)
  expect(kinds(outcomes).filter((kind) => kind === 'stopped')).toHaveLength(25)
})

test('a stop by signal ends waits and requests under way', async () => {
  const stop = new AbortController()
  const { run, requests } = trial(
    (n) => {
      if (n === 4) stop.abort()
      return ok
    },
    { signal: stop.signal },
    500,
  )
  expect(kinds(await run(30)).filter((kind) => kind === 'stopped').length).toBeGreaterThanOrEqual(26)
  expect(requests).toHaveLength(4)
})

test('a failing disk ends all requests with its error: none waits, none is sent', async () => {
  const { asker, requests, run, drive } = trial((n) => (n === 2 ? new Error('cannot write') : { status: 503 }))
  const repeated = asker.ask({ id: 'again', url: 'https://api.example/x', file: 'again' })
  const failing = asker.ask({ id: 'x', url: 'https://api.example/x', file: 'x' })
  const thrown: Promise<unknown> = failing.catch((error: unknown) => error)
  await drive(failing)
  expect(await thrown).toMatchObject({ message: 'cannot write' })
  expect(asker.state().inFlight).toBe(0)
  expect(await repeated).toMatchObject({ kind: 'stopped' })
  expect(kinds(await run(1))).toEqual(['stopped'])
  expect(requests).toHaveLength(2)
})

test.each([
  ['a success', 200, {}],
  ['a refusal for a second', 429, { 'retry-after': '1' }],
  ['a fault of the server', 503, {}],
  ['a refusal for good', 400, {}],
])('a slot five hours ahead, announced by %s, is not waited for', async (_, status, more) => {
  const reset = { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '18000' }
  const { run, events } = trial(() => ({ status, headers: { ...reset, ...more } }))
  const outcomes = await run(6, 2)
  expect(kinds(outcomes)).toContain('parked')
  expect(events.filter((event) => event.kind === 'waiting' && event.waitMs > 900_000)).toEqual([])
})

test('each bucket has its limit', async () => {
  const { asker, drive } = trial(() => ({ status: 200, headers: { 'x-ratelimit-limit': '1200' } }))
  await drive(asker.ask({ id: 'm', url: 'https://api.example/m', file: 'm', bucket: 'metadata' }))
  expect(asker.state('metadata')).toMatchObject({ limit: 1200, sent: 1 })
  expect(asker.state()).toMatchObject({ limit: null, sent: 0 })
  expect(asker.sent()).toBe(1)
})

test('a long wait is reported, the ordinary pace is not', async () => {
  const { run, events } = trial((n) => (n === 2 ? { status: 429, headers: { 'retry-after': '60' } } : ok))
  await run(10)
  const waits = events.filter((event) => event.kind === 'waiting')
  expect(waits.length).toBeGreaterThan(0)
  for (const event of waits) expect(event.waitMs).toBeGreaterThan(2_000)
})
