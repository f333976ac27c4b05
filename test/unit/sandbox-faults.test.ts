import { describe, expect, test } from 'vitest'
import { createScript, describeFaults, faultTable, parseFault, readFault, strike } from '../../src/sandbox/faults.ts'
import type { WirePoint } from '../../src/sandbox/metrics-body.ts'
import { editPoints, poison } from '../../src/sandbox/body-faults.ts'

type FaultTarget = Parameters<typeof strike>[1]

describe('the text form', () => {
  test('a fault in text form has kind, path and parameters', () => {
    expect(parseFault('reset')).toEqual({ kind: 'reset' })
    expect(parseFault('status-500@indicators/*:first=2,asset=BTC')).toEqual({
      kind: 'status-500',
      match: { path: 'indicators/*', first: 2, asset: 'BTC' },
    })
    expect(parseFault('rewrite:t=2024-03-01,v=101,from=2024-03-10')).toEqual({
      kind: 'rewrite',
      t: 1_709_251_200,
      v: 101,
      match: { from: 1_710_028_800 },
    })
    expect(parseFault('late:delay=6h')).toEqual({ kind: 'late', delay: 21_600 })
    expect(parseFault('cut-body:announce')).toEqual({ kind: 'cut-body', announce: true })
  })

  test('a fault in JSON has its selectors next to the kind, under match or as text', () => {
    const wanted = { kind: 'reset', match: { path: 'x', nth: 3 } }
    expect(readFault({ kind: 'reset', path: 'x', nth: 3 })).toEqual(wanted)
    expect(readFault({ kind: 'reset', match: { path: 'x' }, nth: '3' })).toEqual(wanted)
    expect(readFault('reset@x:nth=3')).toEqual(wanted)
  })

  test.each([
    ['rset', /unknown fault "rset"; did you mean reset\? known: .*poison-nan/],
    ['zzzzzzzzz', /unknown fault "zzzzzzzzz"; known: /],
    ['reset:ms=3', /fault reset: expected one of path, .*got "ms"/],
    ['reset:nth=x', /fault parameter nth: expected a number, got "x"/],
    ['rewrite:t=someday', /fault parameter t: expected a date, got "someday"/],
    ['late', /fault late: expected shown=TIME or delay=DURATION/],
    ['registry-shape:layout=odd', /layout: expected plain, data, next_cursor, got "odd"/],
    ['', /--fault: expected KIND/],
  ])('%s is refused in one line', (text, message) => {
    expect(() => parseFault(text)).toThrow(message)
    expect(() => parseFault(text)).toThrow(/^[^\n]+$/)
  })

  test('the help names every fault', () => {
    for (const kind of Object.keys(faultTable)) expect(describeFaults()).toContain(`  ${kind} `)
  })
})

describe('which requests are struck', () => {
  const asked = (over: Partial<FaultTarget> = {}): FaultTarget => ({
    side: 'metrics',
    path: '/v1/metrics/indicators/a_pit',
    shortPath: 'indicators/a_pit',
    address: '/v1/metrics/indicators/a_pit?a=BTC',
    asset: 'BTC',
    now: 1000,
    ...over,
  })
  const strikes = (text: string, requests: readonly FaultTarget[], seed = 1): boolean[] => {
    const script = createScript([parseFault(text)], seed, 0)
    return requests.map((request) => strike(script, request).length > 0)
  }
  const six = Array.from({ length: 6 }, () => asked())

  test.each([
    ['reset:nth=2', 'fTffff'],
    ['reset:first=2', 'TTffff'],
    ['reset:times=2', 'TTffff'],
    ['reset', 'TTTTTT'],
  ])('%s', (text, wanted) => {
    expect(
      strikes(text, six)
        .map((hit) => (hit ? 'T' : 'f'))
        .join(''),
    ).toBe(wanted)
  })

  test('a fault hits requests by path, API, asset and clock', () => {
    const registry = asked({
      side: 'registry',
      path: '/registry/v1/changes',
      shortPath: 'registry/changes',
      asset: null,
    })
    expect(strikes('reset@indicators/*', [asked(), registry])).toEqual([true, false])
    expect(strikes('reset@registry/changes', [asked(), registry])).toEqual([false, true])
    expect(strikes('reset@metrics', [asked(), registry])).toEqual([true, false])
    expect(strikes('reset@/v1/metrics/*', [asked(), registry])).toEqual([true, false])
    expect(strikes('empty-list', [asked(), registry])).toEqual([true, false])
    expect(strikes('null-cursor', [asked(), registry])).toEqual([false, true])
    expect(strikes('reset:asset=ETH', [asked(), asked({ asset: 'ETH' })])).toEqual([false, true])
    const clock = [9_999, 10_000, 19_999, 20_000].map((now) => asked({ now }))
    expect(strikes('reset:from=10000,until=20000', clock)).toEqual([false, true, true, false])
  })

  test('a fault with a count hits each address apart', () => {
    const other = asked({ address: '/other' })
    expect(strikes('reset:first=1,each', [asked(), other, asked(), other])).toEqual([true, true, false, false])
  })

  test('a share is chosen by hash: the same again, another seed otherwise, about as many as said', () => {
    const many = Array.from({ length: 1000 }, (_, i) => asked({ address: `/x?${i}` }))
    const hits = strikes('reset:share=0.3', many)
    expect(hits).toEqual(strikes('reset:share=0.3', many))
    expect(hits).not.toEqual(strikes('reset:share=0.3', many, 2))
    const count = hits.filter(Boolean).length
    expect(count).toBeGreaterThan(250)
    expect(count).toBeLessThan(350)
  })
})

describe('points', () => {
  const points: WirePoint[] = [1, 2, 3, 4].map((n) => ({ t: n * 86_400, v: n * 10, computed_at: n * 86_400 + 87_000 }))
  const edited = (text: string, now = 1e9, from: readonly WirePoint[] = points) => [
    ...editPoints([parseFault(text)], from, now),
  ]
  const times = (list: readonly WirePoint[]) => list.map(({ t }) => t / 86_400)

  test('rewrite: the first by default, one by t, one from the end, nested ones too', () => {
    expect(edited('rewrite:by=2').map(({ v }) => v)).toEqual([20, 20, 30, 40])
    expect(edited('rewrite:t=172800,v=7').map(({ v }) => v)).toEqual([10, 7, 30, 40])
    expect(edited('rewrite:point=-2,v=7').map(({ v }) => v)).toEqual([10, 20, 7, 40])
    expect(edited('rewrite:point=-9,v=7').map(({ v }) => v)).toEqual([10, 20, 30, 40])
    expect(edited('rewrite:point=1,n=2,v=7').map(({ v }) => v)).toEqual([10, 7, 7, 40])
    const nested: WirePoint[] = [{ t: 0, o: { a: null, b: [4, 5] } }]
    expect(edited('rewrite:by=2', 0, nested)).toEqual([{ t: 0, o: { a: null, b: [8, 5] } }])
    expect(nested).toEqual([{ t: 0, o: { a: null, b: [4, 5] } }])
  })

  test('late: hidden until its instant, then computed late', () => {
    expect(times(edited('late:t=172800,shown=1970-02-01', 2_678_399))).toEqual([1, 3, 4])
    const after = edited('late:t=172800,shown=1970-02-01', 2_678_400)
    expect(after.map((point) => point.computed_at)).toEqual([173_400, 2_678_400, 346_200, 432_600])
    expect(times(edited('late:delay=1d', 400_000))).toEqual([1, 2])
  })

  test('vanished, duplicates, disorder, moved clocks and nulls', () => {
    expect(times(edited('vanished:point=1'))).toEqual([1, 3, 4])
    expect(times(edited('duplicate:point=1'))).toEqual([1, 2, 2, 3, 4])
    const [first, second] = edited('duplicate-conflict')
    expect([first?.t, first?.v, second?.t]).toEqual([86_400, 10, 86_400])
    expect(second?.v).not.toBe(10)
    expect(times(edited('disorder:block=3'))).toEqual([3, 2, 1, 4])
    expect(edited('computed-at-changed:delay=60')[0]?.computed_at).toBe(173_460)
    expect(edited('null-filled').map(({ v }) => v)).toEqual([null, 20, 30, 40])
  })

  test('reads no further than it is read', () => {
    function* endless(): Iterable<WirePoint> {
      for (let t = 0; ; t++) yield { t, v: 1 }
    }
    const faults = ['rewrite:point=3', 'disorder', 'late:t=2,shown=99999', 'duplicate'].map(parseFault)
    expect([...Iterator.from(editPoints(faults, endless(), 0)).take(10)]).toHaveLength(10)
  })
})

describe('poison', () => {
  const body = '[{"t":86400,"v":1,"computed_at":90000},{"t":172800,"v":2}]'
  const poisoned = async (text: string, from = body) => (await poison(new Response(from), parseFault(text))).text()

  test.each([
    ['poison-object', `{"data":${body}}`],
    ['poison-millisecond-t', '[{"t":86400000,"v":1,"computed_at":90000},{"t":172800,"v":2}]'],
    ['poison-text-v:point=-1', '[{"t":86400,"v":1,"computed_at":90000},{"t":172800,"v":"12.5"}]'],
    ['poison-nan', '[{"t":86400,"v":NaN,"computed_at":90000},{"t":172800,"v":2}]'],
    ['poison-overflow', '[{"t":86400,"v":1e400,"computed_at":90000},{"t":172800,"v":2}]'],
  ])('%s', async (text, wanted) => expect(await poisoned(text)).toBe(wanted))
})
