import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { helpText } from '../../src/interfaces/cli/parse.ts'
import { commandTable } from '../../src/interfaces/commands/table.ts'
import { redact } from '../../src/base/secrets.ts'
import { pitlake as inProcess } from '../helpers/command.ts'
import { type Ended, program } from '../helpers/program.ts'
import { freshFolder } from '../helpers/scratch.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
let folder = ''
freshFolder('cli', (path) => (folder = path))

type Env = Readonly<Record<string, string>>

/** A command as a process of its own: what is printed at its end, colours and pipes are matters of the process. */
const spawned = async (argv: readonly string[], env: Env = {}): Promise<Ended> =>
  await program(argv, { cwd: folder, env })

/** A command in this process. */
async function pitlake(argv: readonly string[], env: Env = {}): Promise<Ended> {
  const { code, out, notes, message } = await inProcess(folder, argv, env)
  return { code, out, err: message === '' ? notes : `${notes}pitlake: ${message}\n` }
}

const write = (name: string, text: string) => writeFileSync(join(folder, name), text)

/** The one line of a refusal: exit 2, nothing on stdout, nothing written. */
async function refused(argv: readonly string[], env: Env = {}, run = pitlake): Promise<string> {
  const before = readdirSync(folder)
  const { code, out, err } = await run(argv, env)
  expect([code, out]).toEqual([2, ''])
  expect(err).toMatch(/^pitlake: [^\n]+\n$/)
  expect(readdirSync(folder)).toEqual(before)
  return err
}

test('--help lists exactly the command table, and every command has a page', async () => {
  const short = await spawned(['--help'])
  const overview = await pitlake(['help', 'all'])
  expect([short.code, overview.code]).toEqual([0, 0])
  const [, ...groups] = overview.out.split(/\n\n(?=To [a-z ]+:\n {2})/)
  const told = groups.flatMap((group) => group.split('\n\n')[0]?.split('\n').slice(1) ?? [])
  expect(told.map((line) => line.trim().split(/ {2,}/)[0])).toEqual(commandTable.map(({ name }) => name))
  for (const [i, { summary }] of commandTable.entries()) {
    expect(told[i]?.trim().split(/ {2,}/)[1]).toBe(summary)
    expect(summary).toMatch(/^[A-Z][^:;]{9,59}$/)
  }
  expect(groups.length).toBeGreaterThan(4)
  // The first screen is a part of it.
  const commandLines = (text: string): string[] => text.split('\n').filter((line) => /^ {2}\S/.test(line))
  const common = commandLines(short.out).map((line) => line.trim().split(/ {2,}/))
  expect(common.length).toBeLessThanOrEqual(17)
  expect(common).toEqual(commandTable.filter(({ isCommon }) => isCommon).map(({ name, summary }) => [name, summary]))
  expect(short.out).toContain('pitlake help all')
  expect((await pitlake([])).out).toBe(short.out)
  const tooWide = (text: string): string[] => text.split('\n').filter((line) => line.length > 80)
  expect(tooWide(overview.out)).toEqual([])
  for (const entry of commandTable) {
    const command = await entry.load()
    expect(command.name).toBe(entry.name)
    const text = helpText(command)
    expect(tooWide(text), entry.name).toEqual([])
    expect(text.split(/\s+/).join(' ')).toContain((command.details ?? '').split(/\s+/).join(' ').trim())
    for (const option of [...Object.keys(command.options ?? {}), '--config', '--data', '--help'])
      expect(text).toContain(/--[a-z-]+/.exec(option)?.[0])
  }
  const [page, same, group] = await Promise.all([
    pitlake(['plan', '--help']),
    pitlake(['help', 'plan']),
    pitlake(['catalog', '--help']),
  ])
  expect(page.code).toBe(0)
  expect(page.out).toContain('--max-requests')
  expect(same.out).toBe(page.out)
  expect(group.code).toBe(0)
  expect(group.out).toContain('catalog import')
  expect(group.out).not.toContain('init')
})

test('typos are suggested in one line with exit 2', async () => {
  const [command, sub, none, option, excess] = await Promise.all([
    refused(['pln'], {}, spawned),
    refused(['catalog', 'shwo']),
    refused(['catalog']),
    refused(['plan', '--asets=secret-value'], {}, spawned),
    refused(['init', 'here']),
  ])
  expect(command).toContain('did you mean `plan`?')
  expect(sub).toContain('did you mean `show`?')
  expect(none).toContain('expected one of list, show')
  expect(option).toContain('did you mean `--assets`?')
  expect(option).not.toContain('secret-value')
  expect(excess).toContain('too many arguments')
})

test('a name that is only part of a path is found, a resource too', async () => {
  const [part, resource, selected, none] = await Promise.all([
    refused(['catalog', 'show', 'sopr']),
    refused(['catalog', 'show', 'isuers']),
    refused(['plan', '--assets', 'BTC', '--paths', 'sopr']),
    refused(['catalog', 'show', 'zzzz']),
  ])
  expect(part).toContain('did you mean `indicators/sopr_adjusted_pit`?')
  expect(resource).toContain('did you mean `issuers`?')
  expect(selected).toContain('did you mean `indicators/sopr_adjusted_pit`?')
  expect(none).toContain('see `pitlake catalog list`')
})

test('bad input: one line, exit 2, nothing written', async () => {
  write('pitlake.yaml', 'select:\n  - { assets: [BTC], paths: [supply/current_pit] }\n')
  write('broken.yaml', 'metrics: { a: [ }\n')
  write('key.yaml', 'metrics:\n  api_key: sk-123456\n')
  write('file', 'x')
  const attempts: readonly (readonly [string[], string, Env?])[] = [
    [['plan', '--assets', 'BTC', '--intervals', '2h'], 'intervals: 2h'],
    [['plan', '--since', '2024-02-01', '--until', '2024-02-01'], '--since'],
    [['plan', '--since', '2024-02-30'], '--since'],
    [['plan', '--paths', 'indicator/*'], 'indicator/*'],
    [['plan', '--config', 'none.yaml'], 'ENOENT'],
    [['catalog', 'check', '--config', 'broken.yaml'], 'broken.yaml:1: expected valid YAML'],
    [['plan', '--config', 'key.yaml'], 'key.yaml:2: metrics.api_key'],
    [['plan'], 'PITLAKE_DATA', { PITLAKE_DATA: 'file' }],
    [['plan'], 'PITLAKE_METRICS_URL', { PITLAKE_METRICS_URL: 'http://api.example' }],
    [['plan', '--max-requests', '0'], '--max-requests'],
    [['plan', '--assets', '*'], '--assets BTC,ETH'],
  ]
  const messages = await Promise.all(attempts.map(([argv, , env]) => refused(argv, env)))
  for (const [index, [, text]] of attempts.entries()) expect(messages[index]).toContain(text)
  expect(messages.join('')).not.toContain('sk-123456')
})

test('plan for every endpoint × BTC, ETH × 24h prints what it costs; --json is one document', async () => {
  const argv = ['plan', '--paths', '*', '--assets', 'BTC,ETH', '--intervals', '24h']
  const secret = 'sk-77aa88bb99'
  const real = { PITLAKE_METRICS_KEY: secret, PITLAKE_METRICS_URL: 'https://a.example' }
  const [text, document] = await Promise.all([
    spawned([...argv, '-v', '--offline', '--data', 'lake'], real),
    pitlake([...argv, '--json']),
  ])
  const endpoints = [...loadCatalogue().endpoints.values()]
  const series = 2 * endpoints.filter((e) => e.intervals.length === 0 || e.intervals.includes('24h')).length
  expect(text.code).toBe(0)
  const names = ['series', 'windows', 'requests', 'credits', 'points', 'bytes', 'duration']
  for (const name of names) expect(text.out).toMatch(new RegExp(`^${name} +\\S`, 'm'))
  expect(text.out).toMatch(new RegExp(`^series +${series}$`, 'm'))
  expect(text.err).toMatch(/^data +lake +flag$/m)
  expect(text.err).toMatch(/^metrics\.key +set +environment$/m)
  expect(text.err).toMatch(/^metrics\.concurrency +8 +default$/m)
  expect(text.err + text.out).not.toContain(secret)
  expect(text.out).toContain('not requested')
  expect(document.code).toBe(0)
  const totals = JSON.parse(document.out) as Record<string, number>
  const counted = ['series', 'windows', 'requests', 'credits', 'points', 'bytes', 'seconds']
  expect(Object.keys(totals)).toEqual([...counted, 'not_requested', 'unmapped', 'metadata'])
  expect(totals).toMatchObject({ series, requests: series, credits: (series / 2) * 3 })
  expect(readdirSync(folder)).toEqual([])
})

test('output carries no colours where there is no terminal, nor with NO_COLOR', async () => {
  const runs = await Promise.all(
    [{}, { NO_COLOR: '1' }, { FORCE_COLOR: '1', NO_COLOR: '1' }].map((env: Env) =>
      spawned(['plan', '-v', '--assets', 'BTC'], env),
    ),
  )
  for (const { out, err } of runs) {
    expect(out).toContain('requests')
    expect(out + err).not.toContain(String.fromCharCode(27))
  }
})

test('catalog list, show, export and check', async () => {
  const [list, filtered, show, exported, check, wrong, unknown] = await Promise.all([
    pitlake(['catalog', 'list']),
    pitlake(['catalog', 'list', 'supply/*', '--currencies', 'usd', '--json']),
    pitlake(['catalog', 'show', 'market/btc_dominance_pit'], { PITLAKE_METRICS_KEY: 'sk-555555' }),
    pitlake(['catalog', 'export', '--json']),
    pitlake(['catalog', 'check', '--json']),
    refused(['catalog', 'show', 'suply/current_pit']),
    refused(['catalog', 'list', '--group', 'suply']),
  ])
  const endpoints = loadCatalogue().endpoints.size
  // Two lines of a heading.
  expect(list.out.trim().split('\n')).toHaveLength(endpoints + 2)
  expect(list.err).toBe(`${endpoints} of ${endpoints} endpoints\n`)
  const rows = JSON.parse(filtered.out) as { path: string; currencies: string[] }[]
  expect(rows.length).toBeGreaterThan(0)
  for (const row of rows) expect([row.path.split('/')[0], row.currencies.includes('usd')]).toEqual(['supply', true])
  expect(show.out).toContain('daily at 10:15 UTC, 1 day after t')
  expect(show.out).toContain('GET {base}/v1/metrics/market/btc_dominance_pit?a=BTC')
  expect(show.out).not.toContain('sk-555555')
  expect(redact(show.out)).toBe(show.out)
  expect(JSON.parse(exported.out)).toHaveLength(endpoints)
  expect(JSON.parse(check.out)).toMatchObject({ endpoints })
  expect(wrong).toContain('did you mean `supply/current_pit`')
  expect(unknown).toContain('did you mean `supply`?')
})

test('catalog check reports every problem of the catalogues, and a selection that names nothing', async () => {
  write('mine.yaml', 'endpoints:\n  - { path: a/b_pit, intervalls: D }\n  - { path: supply/current_pit }\n')
  const { code, err } = await pitlake(['catalog', 'check', 'mine.yaml'])
  expect(code).toBe(2)
  expect(err).toContain('mine.yaml:2: endpoints[0].intervalls')
  expect(err).toContain('mine.yaml:3: endpoints[1].path')
  write('pitlake.yaml', 'select:\n  - { assets: [BTC], networks: [ethh] }\n')
  expect(await refused(['catalog', 'check'])).toContain('did you mean `eth`?')
})

test('init writes two files and overwrites existing ones only if told so', async () => {
  const first = await pitlake(['init'])
  expect([first.code, first.out]).toEqual([0, ''])
  expect(readdirSync(folder).toSorted()).toEqual(['.env.example', 'pitlake.yaml'])
  expect((await pitlake(['plan', '--json'])).code).toBe(0)
  write('pitlake.yaml', 'data: mine\n')
  expect(await refused(['init'])).toContain('--force')
  expect(readFileSync(join(folder, 'pitlake.yaml'), 'utf8')).toBe('data: mine\n')
  expect((await pitlake(['init', '--force'])).code).toBe(0)
  expect(readFileSync(join(folder, 'pitlake.yaml'), 'utf8')).toContain('select:')
  rmSync(join(folder, 'pitlake.yaml'))
  write('.env.example', 'of a checkout\n')
  const { code, err } = await pitlake(['init'])
  expect([code, err]).toEqual([0, expect.stringContaining('wrote pitlake.yaml\nkept .env.example\n')])
  expect(readFileSync(join(folder, '.env.example'), 'utf8')).toBe('of a checkout\n')
  const schema = await pitlake(['init', '--schema'])
  expect(JSON.parse(schema.out)).toHaveProperty('properties.metrics')
})

test.each([
  [{}, 'PITLAKE_METRICS_URL: expected the base address of the metrics API, got nothing'],
  [
    { PITLAKE_METRICS_URL: 'https://a.example' },
    'PITLAKE_METRICS_KEY: expected the key of the metrics API, got nothing',
  ],
  [
    { PITLAKE_METRICS_URL: 'https://a.example', PITLAKE_METRIC_KEY: 'of-a-user' },
    'PITLAKE_METRICS_KEY: expected the key of the metrics API, got only PITLAKE_METRIC_KEY',
  ],
])('init with only %o writes a template and names the variable that is missing', async (env, words) => {
  const { code, err } = await pitlake(['init'], env)
  expect([code, err]).toEqual([0, expect.stringContaining(words)])
  expect(err).toContain('set the variable, then run pitlake init --force')
  expect(err).not.toContain('of-a-user')
})

test('init with a registry alone names the command that reads it', async () => {
  const env = { PITLAKE_REGISTRY_URL: 'https://a.example/v1', PITLAKE_REGISTRY_KEY: 'of-a-user' }
  expect((await pitlake(['init'], env)).err).toContain('next      pitlake registry sync')
})

test('an imported listing can be planned, and imported again without losing rows', async () => {
  const listing = ['supply/current_pit', { path: 'new/one_pit', intervals: ['24h'], tier: 2 }, 'new/plain']
  write('listing.json', JSON.stringify(listing))
  const imported = await pitlake(['catalog', 'import', 'listing.json', '--json'])
  expect(JSON.parse(imported.out)).toEqual({ listed: 3, known: 1, added: 1, skipped: 1, file: 'my-endpoints.yaml' })
  write('pitlake.yaml', 'catalogs: [my-endpoints.yaml]\nselect:\n  - { assets: [BTC], paths: ["new/*"] }\n')
  const plan = await pitlake(['plan', '--json', '--requests'])
  expect(JSON.parse(plan.out)).toMatchObject({ series: 1, asks: [{ series: 'new/one_pit|BTC|24h||||' }] })
  expect((await pitlake(['catalog', 'show', 'new/one_pit'])).out).toMatch(/tier +2/)
  expect(await refused(['catalog', 'import', 'listing.json'])).toContain('--force')
  write('listing.json', JSON.stringify([...listing, 'new/two_pit']))
  const again = await pitlake(['catalog', 'import', 'listing.json', '--force'])
  expect(again.out).toContain('2 added to my-endpoints.yaml')
  const list = await pitlake(['catalog', 'list', 'new/*', '--json'])
  expect((JSON.parse(list.out) as { path: string }[]).map((row) => row.path)).toEqual(['new/one_pit', 'new/two_pit'])
})

test('a listing that makes no catalogue leaves nothing behind', async () => {
  write('listing.json', '[{"path": "a/b_pit"}, "a b"]')
  write('params.json', '[{"path": "a/b_pit", "params": {"": "x"}}]')
  expect(await refused(['catalog', 'import', 'listing.json'])).toContain('listing.json: [1]')
  expect(await refused(['catalog', 'import', 'params.json'])).toContain('my-endpoints.yaml:')
  expect(await refused(['catalog', 'import', 'none.json'])).toContain('a readable listing')
  expect(existsSync(join(folder, 'my-endpoints.yaml'))).toBe(false)
})

test('a reader that closes the pipe is no error', async () => {
  const child = spawn(process.execPath, [main, 'catalog', 'export'], { cwd: folder })
  let err = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (err += text))
  child.stdout?.once('data', () => child.stdout?.destroy())
  const code = await new Promise<number | null>((done) => child.on('close', done))
  expect([code, err]).toEqual([0, ''])
})

test('an error that repeats a key shows a placeholder for it', async () => {
  write('key.txt', 'sk-from-the-file\n')
  const env = { PITLAKE_METRICS_KEY_FILE: 'key.txt', PITLAKE_REGISTRY_KEY: 'sk-direct' }
  const message = await refused(['catalog', 'show', 'sk-from-the-file/sk-direct'], env, spawned)
  expect(message).toContain('[key]/[key]')
  expect(message).not.toMatch(/sk-/)
})

test('control characters from outside never reach the terminal', async () => {
  const bad = '\u001b]0;owned\u0007'
  const { err, out } = await spawned(['plan', '--assets', 'BTC', '--paths', `${bad}x`, '--json'])
  expect(err).toContain(String.raw`\u001b]0;owned\u0007x`)
  // oxlint-disable-next-line no-control-regex
  expect(err + out).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/)
})
