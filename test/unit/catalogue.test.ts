import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { exportCatalogue } from '../../src/catalog/export.ts'
import { loadCatalogue, parseCatalogue } from '../../src/catalog/load.ts'
import { describeRule } from '../../src/catalog/rule-kinds.ts'
import { LakeError } from '../../src/base/errors.ts'

const numbered = (stem: string, n: number) => Array.from({ length: n }, (_, i) => `${stem}_${i + 1}`)

/** The value sets of the API description, spelled out here by hand and not from the YAML. */
const frequencies: Readonly<Record<string, readonly string[]>> = {
  D: ['24h'],
  HD: ['1h', '24h'],
  MHD: ['10m', '1h', '24h'],
  FULL: ['10m', '1h', '24h', '1w', '1month'],
  '-': [],
}
const exchanges: Readonly<Record<string, readonly string[]>> = {
  EXO: numbered('options_exchange', 4),
  EXF: ['aggregated', ...numbered('exchange', 14)],
}
const networks: Readonly<Record<string, readonly string[]>> = {
  NET1: ['aggregated', 'arb', 'base', 'bnb', 'eth', 'opt', 'sol', 'ton', 'trx', 'xrp'],
  NET2: ['aggregated', 'arb', 'eth'],
  NET3: ['aggregated', 'arb', 'base', 'eth', 'opt'],
  NET4: ['aggregated', 'arb', 'base', 'eth', 'opt', 'sol', 'ton', 'trx'],
}

const described = readFileSync(new URL('../golden/catalogue/description.tsv', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t'))

const find = (sets: Readonly<Record<string, readonly string[]>>, extras: readonly string[]) =>
  extras.flatMap((extra) => sets[extra] ?? [])

test('the catalogue has the endpoints of the API description, in every set', () => {
  const exported = exportCatalogue(loadCatalogue())
  expect(exported.map(({ path }) => path).toSorted()).toEqual(described.map(([path = '']) => path).toSorted())
  const byPath = new Map(exported.map((row) => [row.path, row]))
  for (const [path = '', frequency = '', extra = '', missing = ''] of described) {
    const row = byPath.get(path)
    const extras = extra.split(' ')
    expect(row, path).toBeDefined()
    expect.soft(row?.intervals, path).toEqual(frequencies[frequency])
    expect.soft(row?.currencies, path).toEqual(extras.includes('CUR') ? ['native', 'usd'] : [])
    expect.soft(row?.exchanges, path).toEqual(find(exchanges, extras))
    expect.soft(row?.networks, path).toEqual(find(networks, extras))
    expect.soft(row?.since, path).toBe(!missing.includes('since'))
    expect.soft(row?.until, path).toBe(!missing.includes('until'))
    expect.soft(row?.format, path).toBe(!missing.includes('format'))
    expect.soft(row?.timestamp_format, path).toBe(true)
  }
})

test('rules from the published description have basis stated, all others assumed with a reason', () => {
  const rows = exportCatalogue(loadCatalogue())
  const stated = rows.filter((row) => row.availability.basis === 'stated')
  expect(stated.map((row) => [row.path, row.availability.rule])).toEqual([
    ['signals/altcoin_index_pit', 'daily at 10:15 UTC, 1 day after t'],
    ['signals/btc_sharpe_signal_pit', 'daily at 04:00 UTC, 1 day after t'],
    ['market/btc_dominance_pit', 'daily at 10:15 UTC, 1 day after t'],
  ])
  for (const row of stated) expect(row.availability.quote).toMatch(/10:15 UTC|04:00 UTC/)
  for (const row of rows) {
    for (const rule of Object.values(row.availability_by_interval).flat()) {
      expect(rule.basis === 'stated' ? rule.quote : rule.reason, row.path).toBeTruthy()
    }
  }
  const tenMinutes = rows.filter((row) => row.intervals.includes('10m'))
  for (const row of tenMinutes)
    expect(row.availability_by_interval['10m']?.[0]?.lag_seconds, row.path).toBeGreaterThan(600)
  const entity = rows.find((row) => row.path === 'entities/active_count_pit')
  expect(entity?.availability.lag_seconds).toBe(7200)
})

const wire = readFileSync(new URL('../../catalog/wire.yaml', import.meta.url), 'utf8')
const anywhere = 'availability:\n  - { paths: ["*"], lag: 30m, basis: assumed, reason: test }\n'

const parsed = (text: string) =>
  parseCatalogue([
    { name: 'wire.yaml', text: wire },
    { name: 'x.yaml', text },
  ])

function problems(text: string): string[] {
  try {
    parsed(text)
  } catch (error) {
    expect(error).toBeInstanceOf(LakeError)
    return (error as LakeError).message.split('\n')
  }
  return []
}

test("a user's `wire` is laid over the built-in one, key by key", () => {
  const own =
    'wire: { assets_path: coins, query_keys: { since: start }, metadata: { min: from }, probes: { asset: ETH } }'
  expect(parsed(own).wire).toMatchObject({
    metricsPrefix: '/v1/metrics/',
    assetsPath: 'coins',
    queryKeys: { asset: 'a', since: 'start', until: 'u' },
    metadata: { parameters: 'parameters', min: 'from' },
    probes: { asset: 'ETH', plain: 'supply/current_pit' },
  })
  expect(problems('wire: { asset_path: coins }')).toEqual([
    expect.stringMatching(/x\.yaml:1: wire\.asset_path.*assets_path/),
  ])
  expect(() => parseCatalogue([{ name: 'own.yaml', text: own }])).toThrow(/the key `wire`, whole/)
})

test('a row is enough to add an endpoint: no program file names one', () => {
  const text = `${anywhere}endpoints:\n  - { path: new/one_pit, intervals: [24h], params: { quote: eur } }\n`
  expect(parsed(text).endpoints.get('new/one_pit')).toMatchObject({
    intervals: ['24h'],
    since: true,
    params: { quote: 'eur' },
  })
})

test('every problem is reported at once, as file:line', () => {
  const text = [
    'frequencies: { D: [24h], UNUSED: [1h] }',
    'availability:',
    '  - { paths: ["*"], lag: 30m, basis: assumed, reason: test }',
    '  - { paths: ["a/*"], lag: soon, basis: assumed, reason: test }',
    '  - { paths: ["b/*"], lag: 1h, basis: stated }',
    'endpoints:',
    '  - { path: a/x_pit, intervals: D, colour: red }',
    '  - { path: a/y_pit, intervals: DD }',
    '  - { path: a/z_pit, intervals: [24h, 5m] }',
    '  - { path: a/y_pit, intervals: D }',
  ].join('\n')
  const found = problems(text)
  expect(found).toEqual([
    expect.stringMatching(/^x\.yaml:4: availability\[1\]\.lag: expected a duration .*got text$/),
    expect.stringMatching(/^x\.yaml:5: availability\[2\]: expected a `quote`/),
    expect.stringMatching(/^x\.yaml:7: endpoints\[0\]\.colour: expected one of .*unknown key `colour`/),
    expect.stringMatching(/^x\.yaml:8: endpoints\[1\]\.intervals: expected a value set .*got DD; did you mean `D`/),
    expect.stringMatching(/^x\.yaml:9: endpoints\[2\]\.intervals: expected intervals among/),
    expect.stringMatching(/^x\.yaml:10: endpoints\[3\]\.path: expected each path once.*x\.yaml:8/),
  ])
})

test('overlapping rules, unread sets and patterns that match nothing are problems', () => {
  const row = 'endpoints:\n  - { path: a/x_pit, intervals: [24h] }\n'
  const rule = (paths: string, rest = '') => `  - { paths: [${paths}], lag: 1h, basis: assumed, reason: test${rest} }\n`
  const rules = (...lines: string[]) => `availability:\n${rule('"*"')}${lines.join('')}`
  expect(problems(rules(rule('"a/*"'), rule('"*_pit"')) + row)).toEqual([
    expect.stringMatching(/x\.yaml:4.*no second rule.*x\.yaml:3/),
  ])
  expect(problems(rules(rule('"a/*"', ', until: 2024-01-01'), rule('"*_pit"')) + row)).toEqual([])
  expect(problems(rules(rule('"a/*"'), rule('a/x_pit')) + row)).toEqual([])
  expect(problems(rules(rule('"b/*"')) + row)).toEqual([expect.stringMatching(/matches an endpoint, got b\/\*/)])
  expect(problems(`${anywhere}currencies: { CUR: [usd] }\n${row}`)).toEqual([
    expect.stringMatching(/x\.yaml:3: currencies\.CUR.*no endpoint uses/),
  ])
  expect(problems(`availability:\n${rule('"*"', ', until: 2024-01-01')}${row}`)).toEqual([
    expect.stringMatching(/without `until` for every interval/),
  ])
})

test('a rule with a date gives way to the next weaker one', () => {
  const text = `availability:\n  - { paths: ["*"], lag: 30m, basis: assumed, reason: later }\n  - { paths: [a/x_pit], lag: 5h, basis: assumed, reason: early, until: 2024-01-01 }\nendpoints:\n  - { path: a/x_pit, intervals: [24h] }\n`
  const catalogue = parsed(text)
  expect(catalogue.endpoints.get('a/x_pit')?.rules['24h'].map((rule) => [rule.reason, rule.until])).toEqual([
    ['early', 1704067200],
    ['later', null],
  ])
  const rules = exportCatalogue(catalogue)[0]?.availability_by_interval['24h']
  expect(rules?.map(({ reason, until }) => [reason, until])).toEqual([
    ['early', 1704067200],
    ['later', undefined],
  ])
  expect(exportCatalogue(catalogue)[0]?.availability.reason).toBe('later')
})

const endpoint = (rest: string) => `${anywhere}endpoints:\n  - { path: a/x_pit${rest} }\n`

test.each<[string, readonly string[]]>([
  [endpoint(', intervals: [24h, 24h]'), ['x.yaml:4: endpoints[0].intervals: expected each value once, got 24h, 24h']],
  [
    `frequencies: { D: [24h, 24h] }\n${endpoint(', intervals: D')}`,
    ['x.yaml:1: frequencies.D: expected each value once, got 24h, 24h'],
  ],
  [`frequencies: { D: [] }\n${anywhere}`, ['x.yaml:1: frequencies.D: expected at least 1 values, got []']],
  [
    endpoint(', currencies: [native, usd], default: { currency: eur }'),
    ['x.yaml:4: endpoints[0].default.currency: expected one of native, usd, got eur'],
  ],
  [
    endpoint(', default: { network: eth }'),
    ['x.yaml:4: endpoints[0].default.network: expected one of none, the endpoint takes none, got eth'],
  ],
  [`${anywhere}endpoints:\n  - { intervals: [24h] }\n`, ['x.yaml:4: endpoints[0].path: expected text, got nothing']],
  [
    'availability:\n  - { paths: ["*"], lag: 30m, basis: guess, reason: test }\n',
    ['x.yaml:2: availability[0].basis: expected one of stated, assumed, got "guess"'],
  ],
  [
    `${anywhere}endpoints:\n  - path: a/x_pit\n    takes:\n      7\n`,
    ['x.yaml:5: endpoints[0].takes: expected a list, got a number'],
  ],
  [`links: []\nlinks: []\nlinks: []\n`, ['x.yaml:2: expected valid YAML', 'x.yaml:3: expected valid YAML']],
  [endpoint(`, default: { currency: ${'y'.repeat(40)} }`), [`got ${'y'.repeat(40)}`]],
  [endpoint(`, about: [${'y'.repeat(76)}]`), ['got a list of 1']],
  [endpoint(`, takes: ${'y'.repeat(41)}`), ['expected a list, got text']],
  ['some words', ['x.yaml:1: the file: expected a mapping, got text']],
  ['registry_sets:\n  a: { open: true, values: [b] }\n', ['x.yaml:2: registry_sets.a']],
])('%j is refused where it stands', (text, expected) => {
  const found = problems(text)
  expect(found).toHaveLength(expected.length)
  for (const [i, words] of expected.entries()) expect(found[i]).toContain(words)
})

const resource = (name: string, path: string, more = '') =>
  `  ${name}:\n    entity: ${name}_one\n    path: ${path}\n    detail: true\n    embeds: {}\n    filters: []\n    fields:\n      name: { kind: text${more} }\n`

test.each([
  [resource('a', '/as', ', values: none'), 'x.yaml:9: resources.a.fields.name: expected a value set of registry_sets'],
  [resource('a', '/as', ', to: b'), 'x.yaml:9: resources.a.fields.name: expected `to` with kind reference'],
  [
    resource('a', '/as').replace('kind: text', 'kind: reference'),
    'x.yaml:9: resources.a.fields.name: expected `to` with kind reference',
  ],
  [
    resource('a', '/as').replace('kind: text', 'kind: reference, to: b'),
    'x.yaml:9: resources.a.fields.name: expected a resource (a), got b',
  ],
  [
    resource('a', '/as').replace('embeds: {}', 'embeds: { parts: b }') + resource('b', '/bs'),
    'x.yaml:6: resources.a.embeds.parts: expected a table of its own, got the resource b',
  ],
  [resource('a', '/As') + resource('b', '/as'), 'x.yaml:10: resources.b: expected each name and path once'],
  [resource('a', '/snapshot'), 'x.yaml:2: resources.a: expected each name and path once'],
  [resource('_a', '/as'), 'x.yaml:2: resources._a: expected a name of small letters'],
  [resource('a', 'as'), 'x.yaml:4: resources.a.path: expected a path such as /issuers'],
  [resource('a', '/a s'), 'x.yaml:4: resources.a.path: expected a path such as /issuers'],
])('a resource that cannot be is refused where it stands: %j', (rows, words) => {
  expect(problems(`resources:\n${rows}`)[0]).toContain(words)
})

const exchange = (closed: string, more = '') =>
  `sessions:\n  XTSE:\n    name: a\n    zone: UTC\n    closed: ${closed}\n    hours: [{ since: 2024-01-01, open: "09:30", close: "16:00" }]\n${more}`

test.each([
  [
    exchange('{ 2024: 01-01, 2026: 01-01 }'),
    'x.yaml:5: sessions.XTSE.closed.2025: expected the holidays of 2025, or "" if it has none, got nothing',
  ],
  [exchange('{}'), 'x.yaml:5: sessions.XTSE.closed: expected at least one year'],
  [exchange('{ 2031: 01-01 }'), 'x.yaml:5: sessions.XTSE.closed.2031: expected a year from 2000 to 2030, got text'],
  [
    exchange('{ 2024: 01-01 }', '    ealry: { 2024: 12-24@13:00 }\n'),
    'x.yaml:7: sessions.XTSE.ealry: expected one of name, zone, hours, closed, early, unscheduled, same_as, got the unknown key `ealry`',
  ],
  [exchange('{ 2023: 01-02 }'), 'x.yaml:6: sessions.XTSE.hours: expected hours from 2023-01-01 on'],
  [
    exchange('{ 2024: 01-01 }', '    early: { 2025: 12-24@13:00 }\n'),
    'x.yaml:7: sessions.XTSE.early.2025: expected a year that `closed` lists',
  ],
  [
    exchange('{ 2024: 01-01 }', '    unscheduled: { 2025-03-10: 2025-03-09T18:00Z }\n'),
    'x.yaml:7: sessions.XTSE.unscheduled.2025-03-10: expected a day of a year that `closed` lists',
  ],
])('an exchange with years that it does not list is refused where it stands: %j', (text, words) => {
  expect(problems(text)[0]).toContain(words)
})

test('a year of an exchange may have no holiday', () => {
  const { sessions } = parsed(exchange('{ 2024: 01-01 12-25, 2025: "" }'))
  expect(sessions.get('XTSE')).toMatchObject({
    years: { first: 2024, last: 2025 },
    closed: new Set(['2024-01-01', '2024-12-25']),
  })
})

test('a value set that two files name is refused, with both places', () => {
  const files = ['x', 'y'].map((name) => ({ name: `${name}.yaml`, text: 'currencies: { CUR: [usd] }' }))
  expect(() => parseCatalogue([{ name: 'wire.yaml', text: wire }, ...files])).toThrow(
    'y.yaml:1: currencies.CUR: expected a new name, got a value set already written at x.yaml:1',
  )
})

test('an endpoint takes what is listed, and its default is the one that it names', () => {
  const found = parsed(endpoint(', takes: [until], currencies: [native, usd, eur], default: { currency: eur }'))
  expect(found.endpoints.get('a/x_pit')).toMatchObject({
    since: false,
    until: true,
    format: false,
    timestampFormat: false,
    defaults: { interval: null, currency: 'eur', exchange: null, network: null },
  })
  expect(found.digest).toMatch(/^[0-9a-f]{64}$/)
})

test.each([
  [0, '0s'],
  [90, '90s'],
  [1800, '30m'],
  [5400, '90m'],
  [7200, '2h'],
])('a lag of %s seconds is shown as %s', (seconds, words) => {
  expect(describeRule({ kind: 'lag', seconds })).toBe(`end of interval + ${words}`)
})

test('a YAML syntax error says its line', () => {
  expect(problems('endpoints:\n  - { path: a\n')).toEqual([expect.stringMatching(/^x\.yaml:\d+: expected valid YAML/)])
})
