import { stringify } from 'yaml'
import { expect, test } from 'vitest'
import { readListing } from '../../src/catalog/listing.ts'
import { loadCatalogue } from '../../src/catalog/load.ts'

const read = (value: unknown) => readListing('listing.json', JSON.stringify(value))

test('a list of paths, with and without address, each once', () => {
  expect(read(['a/b_pit', '/v1/metrics/a/b_pit', 'https://host.example/v1/metrics/c/d_pit/'])).toEqual([
    { path: 'a/b_pit' },
    { path: 'c/d_pit' },
  ])
})

test('a listing under data, endpoints or metrics is read, known parameters renamed and unknown fields kept', () => {
  const row = {
    path: 'a/b_pit',
    resolutions: ['1h', '24h', '24h', '3d'],
    currencies: ['native', 'usd'],
    description: 'text',
    since: true,
    until: false,
    params: { window: 30, deep: true },
    tier: 3,
  }
  const expected = {
    path: 'a/b_pit',
    intervals: ['1h', '24h'],
    currencies: ['native', 'usd'],
    about: 'text',
    takes: ['since', 'format', 'timestamp_format'],
    params: { window: '30', deep: 'true' },
    extra: { resolutions: ['1h', '24h', '24h', '3d'], tier: 3 },
  }
  for (const value of [[row], { data: [row] }, { endpoints: [row], more: 1 }, { metrics: [row] }])
    expect(read(value)).toEqual([expected])
})

test('a path is read from three keys, and values of an unknown kind are stored next to it', () => {
  expect(read([{ endpoint: 'a/b' }, { url: 'https://host.example/v1/metrics/c/d' }])).toEqual([
    { path: 'a/b' },
    { path: 'c/d' },
  ])
  for (const odd of [
    { currencies: ['usd', 1] },
    { currencies: ['usd', ''] },
    { currencies: 'usd' },
    { params: ['usd'] },
    { params: null },
    { params: { a: { b: 1 } } },
    { params: 'usd' },
  ])
    expect(read([{ path: 'a/b', ...odd }])).toEqual([{ path: 'a/b', extra: odd }])
})

test('a listing becomes rows that the catalogue loads, unknown fields included', () => {
  const listed = read([
    { path: 'new/thing_pit', intervals: ['24h'], networks: ['eth'], score: { a: [1] } },
    'new/bare_pit',
  ])
  const text = stringify({ endpoints: listed })
  const catalogue = loadCatalogue([], undefined, [{ name: 'mine.yaml', text }])
  expect(catalogue.endpoints.size).toBe(loadCatalogue().endpoints.size + 2)
  expect(catalogue.endpoints.get('new/thing_pit')).toMatchObject({
    intervals: ['24h'],
    networks: ['eth'],
    extra: { score: { a: [1] } },
    defaults: { interval: '24h', network: 'eth' },
  })
})

test.each<[string, string]>([
  ['{', 'listing.json: expected JSON'],
  ['{"rows": []}', 'expected a list of paths'],
  ['"a"', 'expected a list of paths'],
  ['null', 'expected a list of paths'],
  ['7', 'expected a list of paths'],
  ['[1]', 'listing.json: [0]: expected a path'],
  ['[{"name": "x"}]', 'expected an object with `path`, got name'],
  ['["a b"]', 'expected a path such as'],
  ['["a?x=1"]', 'expected a path such as'],
  ['[""]', 'expected a path such as'],
])('refused in one line: %s', (text, message) => {
  const attempt = () => readListing('listing.json', text)
  expect(attempt).toThrow(message)
  expect(attempt).toThrow(/^[^\n]+$/)
})

test('a path that a URL would resolve, or that hides signs, is refused; so are rows of a catalogue', () => {
  const bad = [
    '../keys',
    'a/../../keys_pit',
    'a/./b',
    '..',
    'a/%2e%2e/b',
    'a\\..\\b',
    'a/b\u001b[2J',
    'a/\u202eb',
    'a b',
    'a//b',
  ]
  for (const path of bad) {
    expect(() => read([path])).toThrow(/expected a path such as supply\/current_pit/)
    expect(() => read([{ path }])).toThrow(/expected a path/)
    // The catalogue refuses control signs in whichever value.
    const refusal = path.includes('\u001b') ? /the control sign/ : /a path such as/
    const text = stringify({ endpoints: [{ path }] })
    expect(() => loadCatalogue([], undefined, [{ name: 'x.yaml', text }])).toThrow(refusal)
    const ask = stringify({ endpoints: [{ path: 'a/b_pit', ask: path }] })
    expect(() => loadCatalogue([], undefined, [{ name: 'x.yaml', text: ask }])).toThrow(refusal)
  }
  expect(() => read(['a\u001b[31m'])).toThrow(String.raw`got a\u001b[31m`)
  expect(read(['a.b/c..d/...e'])).toEqual([{ path: 'a.b/c..d/...e' }])
})

test('names that every object has are names like others', () => {
  const rows = '[{"path": "constructor/__proto__", "constructor": ["x"], "__proto__": {"a": 1}, "toString": "y"}]'
  const [row] = readListing('listing.json', rows)
  expect(row?.path).toBe('constructor/__proto__')
  expect(Object.entries(row?.extra ?? {})).toEqual([
    ['constructor', ['x']],
    ['__proto__', { a: 1 }],
    ['toString', 'y'],
  ])
})
