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
