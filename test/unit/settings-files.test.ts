import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { scratch } from '../helpers/scratch.ts'

const folder = scratch('settings-files')
const pipe = join(folder, 'pipe')
beforeAll(() => void spawnSync('mkfifo', [pipe]))

/** A file of settings with this text. */
function written(name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

/** What each reader of settings says of a file. */
const readers: readonly (readonly [string, (file: string) => unknown])[] = [
  ['a configuration', (file) => resolveSettings({ flags: { config: file }, env: {}, cwd: folder })],
  ['a catalogue', (file) => loadCatalogue([file])],
]

const unfit: readonly (readonly [string, () => string, string])[] = [
  ['an endless device', () => '/dev/zero', 'expected a regular file, got a device'],
  ['a pipe without a writer', () => pipe, 'expected a regular file, got a pipe'],
  ['a folder', () => folder, 'expected a regular file, got a folder'],
  ['17 MB', () => written('large.yaml', `a: ${'x'.repeat(17_000_000)}`), 'expected at most 16 MB, got more'],
  ['200,000 brackets', () => written('deep.yaml', '['.repeat(200_000)), 'values nested too deeply'],
]
const secret = 'S3cretWord'
const pin = 48151623
const strange: readonly (readonly [string, string])[] = [
  ['lines of users', `root:${secret}:19000:0:99999:7:::\nbin:${secret}:1:1::/bin:\n`],
  ['plain lines', `TOKEN=${secret}\nOTHER=${secret}\n`],
  ['a list of texts', `- ${secret} one\n- ${secret} two\n`],
  [
    'a long text at a known key',
    `metrics: ${secret} ${'word '.repeat(20)}\ndefault: ${secret} ${'word '.repeat(20)}\n`,
  ],
  ['a text of several lines at a known key', `metrics: "${secret}\n\n  b"\ndefault: "${secret}\n\n  b"\n`],
  ['a broken escape', `a: "\\q${secret}"\n`],
  ['an unknown alias', `a: *${secret}\n`],
  ['an unknown directive', `%${secret}\n---\na: 1\n`],
  ['a word after a value', `a: "b" ${secret}\n`],
  ['a value of an unknown key', `nothing: ${secret}\n`],
  ['a word at a known key', `metrics: ${secret}\nregistry: ${secret}\nendpoints: ${secret}\n`],
  ['a number at a known key', `metrics: ${pin}\nendpoints: ${pin}\n`],
]

for (const [reader, read] of readers) {
  test.each(unfit)(`${reader} that is %s is refused in one line`, (_, file, words) => {
    const path = file()
    expect(() => read(path)).toThrow(words)
    expect(() => read(path)).toThrow(/^[^\n]{1,300}$/)
  })

  test.each(strange)(`a refusal of ${reader} with %s quotes nothing of them`, (name, text) => {
    const file = written(`${name}.yaml`, text)
    expect(() => read(file)).toThrow(/expected /)
    expect(() => read(file)).not.toThrow(new RegExp(`${secret}|${pin}`))
  })
}
