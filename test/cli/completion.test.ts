import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { commandTable } from '../../src/interfaces/commands/table.ts'
import { pitlake } from '../helpers/command.ts'
import { need } from '../helpers/needs.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { scratch } from '../helpers/scratch.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const home = scratch('completion')
const { root: folder } = lakeOfFile(hundredFetchedDays)
beforeAll(async () => {
  writeFileSync(join(home, 'pitlake'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
  chmodSync(join(home, 'pitlake'), 0o755)
  writeFileSync(join(home, 'query.sql'), 'SELECT 1')
  mkdirSync(join(home, 'empty'))
})
/** What the program says that a command line, its last word open, may become. */
async function words(...typed: readonly string[]): Promise<readonly string[]> {
  const { code, out } = await pitlake(home, ['completion', 'bash', '--', ...typed])
  expect(code).toBe(0)
  return out
    .split('\n')
    .slice(0, -1)
    .map((line) => line.replace(/ .*/, ''))
}

describe('what may follow', () => {
  test('every command, then every option of the table, but for those that were said', async () => {
    for (const { name, load } of commandTable) {
      const parts = name.split(' ')
      for (let n = 0; n < parts.length; n++) expect(await words(...parts.slice(0, n), '')).toContain(parts[n])
      const { options } = await load()
      const told = await words(...parts, '--')
      for (const flags of Object.keys(options ?? {})) expect(told, name).toContain(/--[a-z-]+/.exec(flags)?.[0])
      expect(told).toEqual(expect.arrayContaining(['--config', '--data', '--verbose', '--help']))
    }
    expect(await words('panel', '--explain', '--latency', '1h', '--la')).toEqual([])
  })

  test.each([
    [['re'], ['registry', 'replay', 'redate', 'restore']],
    [['registry', 'sn'], ['snapshot']],
    [['help', 'regi'], ['registry']],
    [['fetch', '--help'], ['--help']],
    [['nothing', ''], []],
    [
      ['fetch', '--intervals', '1'],
      ['10m', '1h', '1w', '1month'],
    ],
    [
      ['fetch', '--intervals', '1h,1'],
      ['1h,10m', '1h,1w', '1h,1month'],
    ],
    [['fetch', '--intervals=2'], ['--intervals=24h']],
    [['fetch', '--intervals', '=', '2'], ['24h']],
    [['fetch', '--paths', 'supply/current_p'], ['supply/current_pit']],
    [['fetch', '--paths', 'price'], []],
    [['panel', '--metrics', 'price'], ['price_usd']],
    [['catalog', 'show', 'supply/current_p'], ['supply/current_pit']],
    [['panel', '--assets', ''], []],
    [
      ['panel', '--data', 'LAKE', '--assets', ''],
      ['BTC', 'ETH'],
    ],
    [['panel', '--data=la'], []],
    [['panel', '--data=LAKE', '--assets', 'BTC,'], ['BTC,ETH']],
    [['registry', 'diff', 'pro'], ['products']],
    [['completion', 'f'], ['fish']],
    [['sql', '-f', ''], [':file']],
    [['sql', '--out', 'x'], [':file']],
    [['lookahead', ''], [':file']],
    [['status', '--data', ''], [':folder']],
    [['vacuum', '--keep', ''], []],
  ])('%j', async (typed, meant) => {
    const found = await words(...typed.map((word) => word.replace('LAKE', folder)))
    expect(found.toSorted()).toEqual(meant.toSorted())
  })

  test('a broken configuration is ignored in silence, an unknown shell is refused', async () => {
    writeFileSync(join(home, 'broken.yaml'), 'metrics: [')
    expect(await words('fetch', '--config', 'broken.yaml', '--paths', 'sup')).toEqual([])
    expect(await pitlake(home, ['completion', 'fsh'])).toMatchObject({
      code: 2,
      message: expect.stringMatching(/expected bash, zsh, fish, got "fsh"/),
    })
  })
})

/** What a shell makes of its script and a line of its own. */
function shell(program: string, ...argv: readonly string[]): string {
  const env = { ...process.env, PATH: `${home}:${process.env['PATH']}`, HOME: home, PITLAKE_DATA: folder }
  const { stdout, stderr } = spawnSync(program, argv, { cwd: home, env, encoding: 'utf8' })
  expect(stderr).toBe('')
  return stdout
}

test.each([
  ['pitlake fet', 'fetch'],
  ['pitlake fetch --pat', '--paths'],
  ['pitlake fetch --intervals = 2', '24h'],
  ['pitlake fetch --assets E', 'ETH'],
  ['pitlake sql -f quer', 'query.sql'],
  ['pitlake sql --data empt', 'empty'],
])('bash completes the words of %s', (line, meant) => {
  const typed = line.split(' ')
  const script = `eval "$(pitlake completion bash)"; COMP_WORDS=(${line}); COMP_CWORD=${typed.length - 1}
    _pitlake pitlake; printf '%s\\n' "\${COMPREPLY[@]}"; complete -p pitlake`
  expect(shell('bash', '-c', script)).toBe(`${meant}\ncomplete -F _pitlake pitlake\n`)
})

test('fish completes it, with what each is', (context) => {
  const fish = need(context, 'fish')
  const ask = (line: string): string => shell(fish, '-c', `pitlake completion fish | source; complete -C '${line}'`)
  expect(ask('pitlake fetch --pat')).toBe('--paths\tendpoints, by comma, `*` as a glob\n')
  expect(ask('pitlake fetch --assets E')).toBe('ETH\n')
  expect(ask('pitlake registry sn')).toMatch(/^snapshot\tTake a dated snapshot/)
  expect(ask('pitlake sql -f quer')).toMatch(/^query\.sql/)
})

test('zsh takes the script, and what it adds is what was said', (context) => {
  const zsh = need(context, 'zsh')
  const line = (...typed: readonly string[]): string =>
    shell(
      zsh,
      '-fc',
      `compdef() { :; }; compadd() { printf '%s\\n' $found; }; _files() { print files $*; }
       eval "$(pitlake completion zsh)"; words=(pitlake ${typed.map((word) => `'${word}'`).join(' ')}); CURRENT=$#words; _pitlake`,
    )
  expect(line('fetch', '--pat')).toBe('--paths\n')
  expect(line('fetch', '--assets', '')).toBe('BTC\nETH\n')
  expect(line('sql', '-f', '')).toBe('files\n')
  expect(line('sql', '--data', '')).toBe('files -/\n')
  expect(line('nothing', '')).toBe('')
})
