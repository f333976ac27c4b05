import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseConfig } from '../../src/catalog/config.ts'
import { LakeError } from '../../src/base/errors.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { freshFolder } from '../helpers/scratch.ts'

// L8 at the door: a key comes from the environment or a file named there, and is never shown.

const secret = 'sk-3f9c1d77e0aa'
let folder = ''
freshFolder('keys', (path) => (folder = path))

const resolve = (env: Readonly<Record<string, string>>) => resolveSettings({ flags: {}, env, cwd: folder })

function messageOf(attempt: () => unknown): string {
  try {
    attempt()
  } catch (error) {
    expect(error).toBeInstanceOf(LakeError)
    return String((error as LakeError).stack) + (error as LakeError).message
  }
  throw new Error('was accepted')
}

test.each([
  `key: ${secret}`,
  `api_key: ${secret}`,
  `token: ${secret}`,
  `metrics: { key: ${secret} }`,
  `metrics:\n  apiKey: "${secret}"`,
  `registry: { X-Api-Key: ${secret} }`,
  `metrics: { headers: { authorization: ${secret} } }`,
  `select:\n  - { assets: [BTC], key: ${secret} }`,
])('a key in the config file is refused and not repeated: %s', (yaml) => {
  const message = messageOf(() => parseConfig('pitlake.yaml', yaml))
  expect(message).toContain('pitlake.yaml:')
  expect(message).not.toContain(secret)
})

test('the refusal names the variable of that API', () => {
  expect(messageOf(() => parseConfig('c.yaml', `registry: { key: ${secret} }`))).toContain('PITLAKE_REGISTRY_KEY')
  expect(messageOf(() => parseConfig('c.yaml', `metrics: { key: ${secret} }`))).toContain('PITLAKE_METRICS_KEY')
})

test('a key from the environment or a file is used and never among the effective settings', () => {
  const file = join(folder, 'key.txt')
  writeFileSync(file, `${secret}\n`)
  for (const env of [{ PITLAKE_METRICS_KEY: ` ${secret} ` }, { PITLAKE_METRICS_KEY_FILE: file }]) {
    const found = resolve(env)
    expect(found.metrics.key).toBe(secret)
    expect(found.registry.key).toBeNull()
    expect(JSON.stringify(found.effective)).not.toContain(secret)
    expect(found.effective).toContainEqual({ name: 'metrics.key', value: 'set', origin: 'environment' })
  }
  expect(resolve({ PITLAKE_METRICS_KEY: 'another-one', PITLAKE_METRICS_KEY_FILE: file }).metrics.key).toBe(
    'another-one',
  )
})

test('a key that cannot be a header value is refused without being shown', () => {
  for (const bad of [`${secret} two`, `${secret}\nX-Other: 1`, `${secret}é`]) {
    const message = messageOf(() => resolve({ PITLAKE_REGISTRY_KEY: bad }))
    expect(message).toContain('PITLAKE_REGISTRY_KEY: expected a key of visible ASCII')
    expect(message).not.toContain(secret)
  }
  const file = join(folder, 'empty')
  writeFileSync(file, '\n')
  expect(messageOf(() => resolve({ PITLAKE_METRICS_KEY_FILE: file }))).toContain('got nothing')
  expect(messageOf(() => resolve({ PITLAKE_METRICS_KEY_FILE: join(folder, 'none') }))).toContain('a readable file')
})

test('a key of fewer than eight characters is refused at start: it could be a part of the data', () => {
  const short = 'k-12345'
  const file = join(folder, 'short')
  writeFileSync(file, short)
  for (const env of [
    { PITLAKE_METRICS_KEY: short },
    { PITLAKE_REGISTRY_KEY: short },
    { PITLAKE_REGISTRY_KEY_FILE: file },
  ]) {
    const message = messageOf(() => resolve(env))
    expect(message).toMatch(/PITLAKE_\w+_KEY\w*: expected a key of at least 8 characters, got 7/)
    expect(message).not.toContain(short)
  }
  expect(resolve({ PITLAKE_METRICS_KEY: `${short}6` }).metrics.key).toBe(`${short}6`)
})

test.each([
  ['a line break', `${secret}\n-rest`, 'got one with a line break in it; write the key alone'],
  ['a word before it', `Bearer ${secret}`, 'got one with a space in it; write the key alone'],
  ['double quotes', `"${secret}"`, 'got a key in quotation marks; write the key alone'],
  ['single quotes', `'${secret}'`, 'got a key in quotation marks; write the key alone'],
  ['the name of a header', `X-Api-Key:${secret}`, 'got a name in front of it; write the key alone'],
  ['the name of its variable', `PITLAKE_METRICS_KEY=${secret}`, 'got a name in front of it; write the key alone'],
  ['an address', `https://${secret}.example`, 'got an address; addresses go into the variable that ends in _URL'],
])('a key that was copied with %s is refused with the step to take', (_, text, words) => {
  const file = join(folder, 'copied')
  writeFileSync(file, `${text}\n`)
  for (const env of [{ PITLAKE_METRICS_KEY: text }, { PITLAKE_METRICS_KEY_FILE: file }]) {
    const message = messageOf(() => resolve(env))
    expect(message).toContain(words)
    expect(message).not.toContain(secret)
  }
})

test('a key in the variable for its file is refused with the variable for the key', () => {
  const message = messageOf(() => resolve({ PITLAKE_METRICS_KEY_FILE: secret }))
  expect(message).toContain('the key itself goes into PITLAKE_METRICS_KEY')
  expect(message).not.toContain(secret)
})

test.each([
  ['metrics.example.com', 'write https:// in front'],
  ['localhost:8080', 'write https:// in front'],
  ['"https://metrics.example.com"', 'remove the quotation marks'],
  [secret, 'write https:// in front'],
  [`https://${secret}.example.com`, 'keys go into the variable that ends in _KEY'],
  [`https://metrics.example.com/${encodeURIComponent(`${secret}/+`)}`, 'keys go into the variable that ends in _KEY'],
])('the address %s is refused with the step to take', (text, words) => {
  const key = text.includes('%') ? `${secret}/+` : secret
  const message = messageOf(() => resolve({ PITLAKE_METRICS_URL: text, PITLAKE_METRICS_KEY: key }))
  expect(message).toMatch(/PITLAKE_METRICS_URL: expected an? /)
  expect(message).toContain(words)
  expect(message).not.toContain(secret)
})

test('spaces around an address and slashes at its end do not count', () => {
  const url = ' https://metrics.example.com/api// '
  expect(resolve({ PITLAKE_METRICS_URL: url }).metrics.url).toBe('https://metrics.example.com/api')
})

test('variables that look like those of a provider, but are not, are listed', () => {
  const env = { PITLAKE_METRIC_KEY: secret, PITLAKE_URL: 'x', PITLAKE_HEAD_KEY_FILE: 'x', PITLAKE_METRICS_KEY: secret }
  expect(resolve(env).misnamedVariables).toEqual(['PITLAKE_METRIC_KEY', 'PITLAKE_URL'])
})
