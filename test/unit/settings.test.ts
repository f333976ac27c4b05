import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { availableAt } from '../../src/catalog/availability.ts'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { configJsonSchema, parseConfig } from '../../src/catalog/config.ts'
import { LakeError } from '../../src/base/errors.ts'
import { applySettings, givenKeys, isLoopback, resolveSettings, type Settings } from '../../src/catalog/settings.ts'
import { golden } from '../helpers/golden-rows.ts'
import { freshFolder } from '../helpers/scratch.ts'

let folder = ''
freshFolder('settings', (path) => (folder = path))

type Env = Readonly<Record<string, string>>

function settings(
  yaml: string | null = null,
  env: Env = {},
  flags: { config?: string; data?: string; memory?: number } = {},
): Settings {
  if (yaml !== null) writeFileSync(join(folder, 'pitlake.yaml'), yaml)
  return resolveSettings({ flags, env, cwd: folder })
}

const catalogue = loadCatalogue()
const applied = (yaml: string) => applySettings(catalogue, settings(yaml))

/** The message, which must be one line of kind usage. */
function refusal(attempt: () => unknown): string {
  try {
    attempt()
  } catch (error) {
    expect(error).toBeInstanceOf(LakeError)
    expect((error as LakeError).kind).toBe('usage')
    expect((error as LakeError).message).not.toContain('\n')
    return (error as LakeError).message
  }
  throw new Error('was accepted')
}

test('a flag beats the environment, the environment the file, the file the default; origins are shown', () => {
  const yaml = 'data: from-file\nmetrics: { url: "https://file.example", concurrency: 3 }'
  const env = { PITLAKE_DATA: 'from-env', PITLAKE_METRICS_URL: 'https://env.example/' }
  const origin = (found: Settings, name: string) => found.effective.find((s) => s.name === name)
  const flag = settings(yaml, env, { data: 'from-flag' })
  expect(flag.data).toBe(join(folder, 'from-flag'))
  expect(flag.metrics).toMatchObject({ url: 'https://env.example', concurrency: 3, requestsPerMinute: 600 })
  expect(origin(flag, 'data')).toMatchObject({ value: 'from-flag', origin: 'flag' })
  expect(origin(flag, 'metrics.url')).toMatchObject({ origin: 'environment' })
  expect(origin(flag, 'metrics.concurrency')).toMatchObject({ value: '3', origin: 'file' })
  expect(origin(flag, 'metrics.requests_per_minute')).toMatchObject({ value: '600', origin: 'default' })
  expect(settings(yaml, env).data).toBe(join(folder, 'from-env'))
  const file = settings(yaml)
  expect([file.data, file.metrics.url]).toEqual([join(folder, 'from-file'), 'https://file.example'])
  expect(origin(file, 'data')).toMatchObject({ origin: 'file' })
  const bare = settings('')
  expect([bare.data, bare.metrics.url]).toEqual([join(folder, 'data'), null])
  expect(origin(bare, 'data')).toMatchObject({ origin: 'default' })
})

test('paths of a config file are relative to it; empty variables count as not set', () => {
  mkdirSync(join(folder, 'sub'))
  writeFileSync(join(folder, 'sub', 'other.yaml'), 'data: lake\ncatalogs: [mine.yaml]')
  const found = settings(null, { PITLAKE_DATA: '', PITLAKE_METRICS_KEY: '' }, { config: 'sub/other.yaml' })
  expect(found.data).toBe(join(folder, 'sub', 'lake'))
  expect(found.catalogs).toEqual([join(folder, 'sub', 'mine.yaml')])
  expect(found.metrics.key).toBeNull()
})

test('memory is shown with its unit, and a flag beats the file', () => {
  expect(settings('memory: 1.5GB').memoryBytes).toBe(1.5 * 2 ** 30)
  expect(settings('memory: 512MB', {}, { memory: 2 ** 30 }).memoryBytes).toBe(2 ** 30)
  expect(settings('data: x').memoryBytes).toBeNull()
  const told = (yaml: string) => settings(yaml).effective.find(({ name }) => name === 'memory')
  expect(told('memory: 1.5GB')).toEqual({ name: 'memory', value: '1536MB', origin: 'file' })
  expect(told('data: x')).toEqual({ name: 'memory', value: 'not set', origin: 'default' })
})

test('empty sections are allowed; the template of `init` is a valid config', () => {
  expect(settings('metrics:\nregistry:\n').metrics.concurrency).toBe(8)
  const template = readFileSync(new URL('../../catalog/templates/pitlake.yaml', import.meta.url), 'utf8')
  expect(parseConfig('pitlake.yaml', template).config.select?.[0]?.assets).toEqual(['BTC', 'ETH'])
  const uncommented = template.replaceAll(/^( *)# /gm, '$1').replaceAll(/^(What|Keys).*\n/gm, '')
  const whole = uncommented.replaceAll('https://…', 'https://a.example')
  const found = applied(whole.replaceAll('exchange_1: REAL_ID', 'exchange_1: real'))
  expect(found.endpoints.get('market/btc_dominance_pit')?.rules['24h'][0]).toMatchObject({
    basis: 'override',
    trust: 'rule',
  })
})

test('asset ids stay as they are written', () => {
  const assets = settings('select:\n  - assets: [BTC, 00, 1, "007", 1e5, 0x10, 1.50, $x]').select[0]?.assets
  expect(assets).toEqual(['BTC', '00', '1', '007', '1e5', '0x10', '1.50', '$x'])
})

/** What it may not say, and words of the refusal; some is found against the catalogue. */
const refused = golden('settings/refused') as Readonly<
  Record<'alone' | 'catalogue', readonly (readonly [string, string, string])[]>
>

test.each(refused.alone)('refused in one line: %s', (_, yaml, text) => {
  expect(refusal(() => settings(yaml))).toContain(text)
  expect(readdirSync(folder)).toEqual(['pitlake.yaml'])
})

test.each(refused.catalogue)('refused against the catalogue: %s', (_, yaml, text) =>
  expect(refusal(() => applied(yaml))).toContain(text),
)

test('one exchange may have a name in two lists, and a placeholder may be mapped to itself', () => {
  const yaml = 'metrics: { exchanges: { options_exchange_1: real, exchange_4: real, exchange_5: exchange_5 } }'
  expect(applied(yaml).endpoints.size).toBe(catalogue.endpoints.size)
})

test('an override re-dates what it matches: the most exact one first, then until its date, then the catalogue’s', () => {
  const found = applied(
    [
      'metrics:',
      '  availability:',
      '    "*": { lag: 3h }',
      '    "indicators/*": { lag: 20m, intervals: [24h] }',
      '    indicators/asol_pit: { lag: 1h, until: 2024-03-02, trust: rule }',
    ].join('\n'),
  )
  const lag = (path: string, interval: '1h' | '24h', t: string) => {
    const at = Date.parse(t) / 1000
    const rules = found.endpoints.get(path)?.rules[interval] ?? []
    return availableAt(rules, at, interval) - at - (interval === '1h' ? 3600 : 86_400)
  }
  expect(lag('supply/current_pit', '24h', '2024-03-01')).toBe(3 * 3600)
  expect(lag('indicators/aviv_pit', '24h', '2024-03-01')).toBe(20 * 60)
  expect(lag('indicators/asol_pit', '1h', '2024-03-05')).toBe(3 * 3600)
  expect(lag('indicators/asol_pit', '24h', '2024-03-01')).toBe(3600)
  expect(lag('indicators/asol_pit', '24h', '2024-03-02')).toBe(20 * 60)
  expect(found.endpoints.get('indicators/asol_pit')?.rules['24h'][0]).toMatchObject({
    basis: 'override',
    trust: 'rule',
  })
  const dated = applied('metrics: { availability: { supply/current_pit: { lag: 5h, until: 2020-01-01 } } }')
  const before = catalogue.endpoints.get('supply/current_pit')?.rules['24h'] ?? []
  expect(dated.endpoints.get('supply/current_pit')?.rules['24h'].slice(1)).toEqual(before)
  expect(dated.endpoints.get('indicators/asol_pit')?.rules).toEqual(
    catalogue.endpoints.get('indicators/asol_pit')?.rules,
  )
})

test('a rule may be written for single intervals next to one for all others', () => {
  const rules = (yaml: string, path: string, interval: '1h' | '24h' | '1w' | '1month') =>
    applied(yaml).endpoints.get(path)?.rules[interval] ?? []
  const path = 'addresses/active_count_pit'
  const of = catalogue.endpoints.get(path)?.rules
  const each = `metrics: { availability: { ${path}: { 24h: { lag: 3h, trust: rule }, 1month: { daily_at: "10:15", days: 3 } } } }`
  expect(rules(each, path, '24h')[0]).toMatchObject({ kind: 'lag', seconds: 10_800, trust: 'rule', basis: 'override' })
  expect(rules(each, path, '1month')[0]).toMatchObject({ kind: 'clock', minuteOfDay: 615, days: 3 })
  expect(rules(each, path, '1w')).toEqual(of?.['1w'])
  expect(rules(each, path, '1h')).toEqual(of?.['1h'])
  expect(rules(each, 'supply/current_pit', '24h')).toEqual(catalogue.endpoints.get('supply/current_pit')?.rules['24h'])
  const both = `metrics: { availability: { ${path}: { lag: 1h, 1w: { lag: 2h } }, "addresses/*": { 24h: { lag: 9h } } } }`
  expect(rules(both, path, '24h')[0]).toMatchObject({ seconds: 3600 })
  expect(rules(both, path, '1w')[0]).toMatchObject({ seconds: 7200 })
})

test('query keys of the config replace those of the catalogue one by one', () => {
  const { fields } = applied('registry: { fields: { products: { issuer_id: maker } } }').resources.get('products') ?? {}
  expect(fields?.['issuer_id']?.keys).toEqual(['maker', 'issuer_id', 'issuer'])
  expect(fields?.['asset_id']?.keys).toEqual(['asset_id', 'asset'])
  const { queryKeys } = applied('metrics: { query_keys: { since: from } }').wire
  expect(queryKeys).toEqual({ ...catalogue.wire.queryKeys, since: 'from' })
})

test('http only to loopback, addresses without credentials, query or fragment', () => {
  const url = (text: string) => settings(null, { PITLAKE_REGISTRY_URL: text }).registry.url
  for (const good of ['http://127.0.0.1:8080/v1', 'http://localhost/v1', 'http://[::1]:1/v1', 'https://h.example/v1'])
    expect(url(good)).toBe(good)
  for (const bad of [
    'http://10.0.0.1',
    'http://localhost.example',
    'http://127.0.0.1.example',
    'ftp://h.example',
    'h.example',
    'https://u:p@h.example',
    'https://h.example/?key=abc',
    'https://h.example/#abc',
  ]) {
    const message = refusal(() => url(bad))
    expect(message).toContain('PITLAKE_REGISTRY_URL: expected ')
    expect(message).not.toMatch(/abc|u:p/)
  }
  expect(isLoopback('http://127.8.9.1')).toBe(true)
})

test('unreadable files and folders that are files are refused by name', () => {
  writeFileSync(join(folder, 'file'), 'x')
  expect(refusal(() => settings(null, {}, { config: 'none.yaml' }))).toContain('none.yaml: expected a readable config')
  expect(refusal(() => settings(null, {}, { config: '.' }))).toContain('expected a regular file, got a folder')
  expect(refusal(() => settings(null, { PITLAKE_DATA: 'file' }))).toMatch(
    /^PITLAKE_DATA: expected a folder, got the file/,
  )
  expect(refusal(() => settings(null, {}, { data: 'file/below' }))).toMatch(/^--data: expected a folder, got the file/)
  expect(refusal(() => settings(null, {}, { data: 'a?/lake' }))).toMatch(
    /^--data: expected a folder without \? in its path/,
  )
  expect(refusal(() => loadCatalogue(settings('catalogs: [none.yaml]').catalogs))).toContain('readable catalogue file')
})

test('the JSON schema for editors names every key', () => {
  const schema = configJsonSchema() as { properties: Readonly<Record<string, unknown>> }
  expect(Object.keys(schema.properties)).toEqual([
    'data',
    'memory',
    'metrics',
    'registry',
    'schedule',
    'daily',
    'check',
    'hooks',
    'catalogs',
    'select',
  ])
})

test('valid YAML without a sensible meaning gives one line with file and line', () => {
  const bomb = ['a: &a [x, x, x, x, x, x, x, x, x, x]']
  for (const [name, before] of [...'bcdef'].map((name, k) => [name, 'abcde'[k]] as const))
    bomb.push(`${name}: &${name} [${Array.from({ length: 10 }, () => `*${before}`).join(', ')}]`)
  const cases: readonly (readonly [string, string])[] = [
    [bomb.join('\n'), 'pitlake.yaml:6: expected aliases that can be followed'],
    [
      'data: d\nmetrics: &m\n  paths:\n    real: *m',
      'pitlake.yaml:4: expected a value, got the anchor `m` inside itself',
    ],
    ['data: d\nselect: &s [*s]', 'pitlake.yaml:2: expected a value, got the anchor `s` inside itself'],
    ['data: *nowhere', 'pitlake.yaml:1: expected'],
    ['data: d\nhooks:\n  on_done: "say \\e[2J"', 'pitlake.yaml:3: expected text, got the control sign \\u001b in it'],
    ['data: d\u007f', 'pitlake.yaml:1: expected text, got the control sign \\u007f in it'],
    ['data: d\nmetrics: { paths: { "a\\0": b } }', 'pitlake.yaml:2: expected text, got the control sign \\u0000 in it'],
  ]
  for (const [yaml, words] of cases)
    expect(
      refusal(() => settings(yaml)),
      yaml,
    ).toContain(words)
  expect(
    settings('data: &d here\nregistry: { url: "https://a.example" }\nhooks:\n  on_done: |\n    one\n    two').data,
  ).toBe(join(folder, 'here'))
})

test('bytes that are no UTF-8 are refused with their line, in the config and in a catalogue', () => {
  const bytes = Buffer.concat([
    Buffer.from('data: d \u{fffd} é\r\n# more\nselect: [{ assets: [B'),
    Buffer.from([0xc3, 0x28]),
  ])
  writeFileSync(join(folder, 'pitlake.yaml'), bytes)
  expect(refusal(() => settings())).toContain('pitlake.yaml:3: expected UTF-8, got bytes that are none')
  const file = join(folder, 'own.yaml')
  writeFileSync(file, Buffer.from([0xff, 0xfe, 0x61]))
  expect(refusal(() => loadCatalogue([file]))).toContain('own.yaml:1: expected UTF-8')
})

test('every key that the environment holds, or names the file of, is known to whatever must not show one', () => {
  const file = join(folder, 'key')
  writeFileSync(file, ' in-a-file-123\n')
  const names = ['PITLAKE_METRICS_KEY', 'PITLAKE_REGISTRY_KEY', 'PITLAKE_TOKEN']
  const all = [...names, 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN']
  for (const name of all) expect(givenKeys({ [name]: ` of-${name} ` })).toEqual([`of-${name}`])
  for (const name of names) {
    expect(givenKeys({ [`${name}_FILE`]: file, [name]: 'as-it-is' })).toEqual(['as-it-is', 'in-a-file-123'])
    expect(givenKeys({ [`${name}_FILE`]: join(folder, 'none') })).toEqual([])
  }
  expect(givenKeys({ PITLAKE_TOKEN: 'same', AWS_SESSION_TOKEN: 'same', HOME: 'home' })).toEqual(['same'])
})
