import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { changes, Copy, costInWords } from '../house/costs.ts'

const guide = readFileSync(new URL('../../CONTRIBUTING.md', import.meta.url), 'utf8')

/** What the table says that a change costs in the TypeScript of `src`. */
function saidOf(change: string): string | undefined {
  const row = guide.split('\n').find((line) => line.startsWith(`| ${change} |`))
  return row?.split(' | ').at(-1)?.replace(/ \|$/, '')
}

test.each(changes)('$name costs $cost', ({ name, cost, make, proof, shows }) => {
  using copy = new Copy()
  make(copy)
  expect(costInWords(copy.cost())).toBe(cost)
  expect(saidOf(name)).toBe(cost)
  copy.add('proof.mts', `const show = (value) => console.log(JSON.stringify(value))\n${proof}\n`)
  expect(JSON.parse(copy.run('proof.mts'))).toEqual(shows)
})

test('all of them together are sound to the compiler', () => {
  using copy = new Copy()
  for (const { make } of changes) make(copy)
  expect(copy.run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--noEmit')).toBe('')
})

test('what a change costs is counted', () => {
  using copy = new Copy()
  expect(costInWords(copy.cost())).toBe('nothing')
  copy.behind('src/time.ts', 'export const minute = 60\n', '// one\n// two\n')
  copy.add('src/more.ts', '')
  expect(copy.cost()).toEqual({ files: 1, changed: 1, lines: 2 })
  expect(costInWords(copy.cost())).toBe('a new file and 2 lines of one file')
  expect(() => copy.behind('src/time.ts', 'not there', '')).toThrow('src/time.ts has no not there')
})
