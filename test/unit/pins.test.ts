import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { newerRelease, noticesOf, readPins } from '../../scripts/pins.ts'

const { canRunProgram, isFixed } = createRequire(import.meta.url)('../../scripts/pinned.cjs') as {
  canRunProgram(version: string): boolean
  isFixed(version: string): boolean
}

test.each([
  // release, has the fixes, runs the program
  ['20.20.2', false, false],
  ['22.19.0', false, false],
  ['22.23.3', false, false],
  ['22.23.4', true, false],
  ['22.24.0', true, false],
  ['23.11.1', false, false],
  ['24.21.0', false, false],
  ['24.22.0', false, false],
  ['24.22.1', true, true],
  ['24.23.0', true, true],
  ['25.9.0', false, false],
  ['26.12.0', false, false],
  ['26.12.1', true, true],
  ['27.0.0', true, true],
])('Node %s: has the security fixes %s, runs the program %s', (version, fixed, runs) => {
  expect([isFixed(version), canRunProgram(version)]).toEqual([fixed, runs])
})

test.each([
  ['24.22.1', ['24.21.0', '24.22.1', '24.22.3', '26.12.1'], '24.22.3'],
  ['24.9.0', ['24.9.0', '24.10.0'], '24.10.0'],
  ['24.22.3', ['24.22.3', '26.12.1'], null],
  ['8.12.4', ['8.13.1', '8.14.0-beta.1', '9.0.0'], '8.13.1'],
  ['0.8.7', ['0.8.9', '0.9.0'], '0.8.9'],
  ['1.5.6-r.1', ['1.5.6-r.1', '1.5.6-r.2', '1.5.6'], '1.5.6-r.2'],
  ['latest', ['1.0.0'], null],
])('pin %s beside releases %j has the newer release %s', (pinned, released, newer) => {
  expect(newerRelease(pinned, released)).toBe(newer)
})

test('a pin whose releases cannot be listed is a notice, not a failure', async () => {
  const pins = readPins('{"dependencies":{"a":"1.0.0","b":"1.0.0"},"optionalDependencies":{"c":"1.0.0"}}')
  const listed = async (name: string): Promise<readonly string[]> => {
    if (name === 'b') throw new Error('no network')
    return name === 'a' ? ['1.0.0', '1.0.1'] : ['1.0.0']
  }
  expect(await noticesOf(pins, listed)).toEqual([
    'notice: a is pinned to 1.0.0, 1.0.1 is there',
    'notice: the releases of b could not be listed, pinned to 1.0.0',
  ])
})
