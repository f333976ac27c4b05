import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { moveScript } from '../../src/query/moved-script.ts'

/** A script of views, and what it is in another folder; the tests of Python read the same file. */
interface MovedScript {
  readonly about: string
  readonly built: string
  readonly folder: string
  readonly script: string
  readonly moved: string
}
const table = new URL('../golden/moved-scripts.json', import.meta.url)
const cases = JSON.parse(readFileSync(table, 'utf8')) as readonly MovedScript[]

test.each(cases)('the paths of a moved script: $about', ({ built, folder, script, moved }) =>
  expect(moveScript(script, built, folder)).toBe(moved),
)
