// @module-tag full
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { withDesk } from '../helpers/importing.ts'

/** The words of a command line, as a shell takes them apart. */
const words = (line: string): string[] =>
  [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare ?? '')

/** Runs what a page tells to type, over the files that it shows; gives what each command says. */
async function saidBy(name: string): Promise<string[]> {
  const page = readFileSync(new URL(`../../docs/how-to/${name}.md`, import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/```(\w+) ?(\S*)\n([\s\S]*?)```/g)]
  const said: string[] = []
  await withDesk(async (desk) => {
    for (const [, kind = '', name = '', text = ''] of blocks) {
      if (name !== '') desk.put(name, text)
      for (const line of kind === 'sh' ? text.trim().split('\n') : []) {
        // The engine looks for files where the process stands.
        const argv = words(line.replace(/FROM '/, `FROM '${desk.folder}/`)).slice(1)
        const table = /^(?:sql|panel)$/.test(argv[0] ?? '') ? ['--format', 'csv', '--out', 'said.csv'] : []
        const ended = await pitlake(desk.folder, [...argv, ...table, '--data', 'lake'])
        expect([ended.code, ended.message], line).toEqual([0, ''])
        said.push(table.length > 0 ? readFileSync(join(desk.folder, 'said.csv'), 'utf8') : ended.out)
      }
    }
  })
  return said
}

test('the recipes of the page on user data do what they say', async () => {
  const said = await saidBy('user-data')
  expect(said).toHaveLength(9)
  expect(said[1]).toMatch(/BTC,2024-03-01T00:00:00.*,100(?:\.0)?,\n/)
  expect(said[1]).toMatch(/BTC,2024-03-02T00:00:00.*,110(?:\.0)?,110(?:\.0)?\n/)
  for (const metric of ['bars', 'label', 'momentum', 'ohlcv', 'signal']) expect(said[7]).toContain(`own/${metric},2`)
  expect(said[8]).toContain('clean')
})

test('the recipe of the page on features does what it says', async () => {
  const [, computed, panel, checked] = await saidBy('features')
  expect(computed).toMatch(/^feature\/step v1: proved, [\d,]+ rows added, until 20.*\n$/)
  for (const row of [
    '2024-03-03T00:20:00.000000Z,104.0,4.0',
    '2024-03-04T00:20:00.000000Z,102.0,-2.0',
    '2024-03-05T00:20:00.000000Z,110.0,8.0',
  ])
    expect(panel).toContain(`BTC,${row}`)
  expect(checked).toMatch(/^feature\/step v1: [\d,]+ rows, the same bit for bit\n$/)
})
