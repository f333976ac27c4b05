import { expect, test } from 'vitest'
import { parseCommand } from '../../src/interfaces/cli/parse.ts'
import { unnamedOptions } from '../../src/interfaces/cli/spec.ts'
import { commandTable } from '../../src/interfaces/commands/table.ts'
import { kindOf, kinds } from '../../src/base/option-kinds.ts'

const read = async (name: string, ...words: string[]) => {
  const entry = commandTable.find((one) => one.name === name)
  if (entry === undefined) throw new RangeError(name)
  return parseCommand(await entry.load(), words).options
}

test('an option holds what its kind reads, its default too', async () => {
  expect(await read('vacuum', '--keep', '2d')).toMatchObject({ keep: 172_800, keepRequests: 34_560_000 })
  expect(await read('verify', '--since', '2024-06-01', '--budget', '7', '--assets', 'BTC, ETH,')).toMatchObject({
    since: 1_717_200_000,
    budget: 7,
    assets: ['BTC', 'ETH'],
  })
  expect(await read('stress', 'q.sql', '--lag', 'p95,2h', '--latency', '90s,0', '--within', '0.25')).toMatchObject({
    lag: ['p95', 7200],
    latency: [90, 0],
    within: 0.25,
    vintages: 3,
  })
  expect(await read('sandbox', '--fault', 'a,b', '--fault', 'c')).toMatchObject({ fault: ['a,b', 'c'], port: 0 })
})

test.each(commandTable)(
  'options of $name that are not given have the values of a bare command line',
  async ({ load }) => {
    const command = await load()
    const args = Object.keys(command.args ?? {}).filter((name) => name.startsWith('<'))
    expect(unnamedOptions(command)).toEqual(parseCommand(command, args).options)
  },
)

test.each([
  ['vacuum', '--keep', 'soon', '--keep: expected a time such as 7d or 12h, got "soon"'],
  ['verify', '--max-requests', '0', '--max-requests: expected a whole number above 0, got 0'],
  ['status', '--max-gaps', '-1', '--max-gaps: expected a whole number, got -1'],
  ['verify', '--until', '20240601', '--until: expected a date such as 2024-06-01 or an instant with Z, got 20240601'],
  ['sandbox', '--port', '65536', '--port: expected a port, 0 to 65535, got "65536"'],
  ['sandbox', '--registry-scale', 'demos', '--registry-scale: expected demo, full, got "demos"; did you mean `demo`?'],
  ['stress', '--lag', 'p95,p96', '--lag: expected times such as 30m or 1d, or p50, p95, p99, max, got "p96"'],
])('%s %s %s is refused in one line', async (name, flag, text, words) => {
  await expect(read(name, `${flag}=${text}`)).rejects.toThrow(words)
})

test('a count accepts its least number, and neither a lower nor an oddly written one', () => {
  expect([kinds.count(0).read('--n', '0'), kinds.count().read('--n', '1')]).toEqual([0, 1])
  expect(kinds.count().read('--n', '999999999999')).toBe(999_999_999_999)
  for (const text of ['0', '-1', '01', '1.0', '1e3', ' 1', '', '1000000000000'])
    expect(() => kinds.count().read('--n', text)).toThrow('--n: expected a whole number above 0, got')
})

test('an unknown option that is a choice of an option is refused with that option', async () => {
  await expect(read('sql', '--json')).rejects.toThrow('got --json; did you mean `--format json`?')
  await expect(read('sql', '--fromat', 'csv')).rejects.toThrow('did you mean `--format`?')
})

test('flags name their kind by themselves', () => {
  expect(kindOf('-o, --out FILE')).toBe(kinds.file)
  expect(kindOf('--why TEXT')).toBe(kinds.text)
})
