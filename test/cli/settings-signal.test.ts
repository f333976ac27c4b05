// @module-tag full
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { need } from '../helpers/needs.ts'
import { readBytesOf, until } from '../helpers/processes.ts'
import { scratch } from '../helpers/scratch.ts'

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const folder = scratch('settings-signal')
// Within the limit for settings, and minutes for the parser.
const large = join(folder, 'large.yaml')
beforeAll(() => {
  const rows = Array.from({ length: 500_000 }, (_, n) => `  - { assets: [A${n}] }\n`)
  writeFileSync(large, `select:\n${rows.join('')}`)
  writeFileSync(join(folder, 'names-it.yaml'), 'catalogs: [large.yaml]\n')
})

beforeEach((context) => void need(context, 'linux'))

test.each([
  ['a configuration', 'SIGTERM', 'large.yaml'],
  ['a configuration', 'SIGINT', 'large.yaml'],
  ['a catalogue', 'SIGTERM', 'names-it.yaml'],
] as const)('while %s is parsed, %s ends the process', async (_, signal, config) => {
  const child = spawn(process.execPath, [main, 'plan', '--config', config], { cwd: folder, stdio: 'ignore' })
  const ended = new Promise((done) => child.once('exit', (code, by) => done({ code, by })))
  try {
    // It has read the whole file, and parses it.
    await until(() => readBytesOf(child.pid ?? 0) > 14_000_000, 'a configuration that was read')
    child.kill(signal)
    const late = setTimeout(20_000, 'still at work', { ref: false })
    expect(await Promise.race([ended, late])).toEqual({ code: null, by: signal })
  } finally {
    child.kill('SIGKILL')
    await ended
  }
})
