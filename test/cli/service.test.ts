// @module-tag full
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { fetchKey, otherKey, type Rig, withRig } from '../helpers/fetching.ts'
import { inFolder } from '../helpers/folders.ts'
import { need } from '../helpers/needs.ts'
import { until } from '../helpers/processes.ts'

const here = fileURLToPath(new URL('../..', import.meta.url))
const deploy = join(here, 'deploy')
const day = 86_400
const now = Math.floor(Date.now() / 1000)

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

/** A folder as the recipes know it: this program where npm puts it, a config, the keys in files. */
async function withPlace(work: (rig: Rig, folder: string) => Promise<void>): Promise<void> {
  await withRig(now, async (rig) => {
    await inFolder(async (folder) => {
      const bin = join(folder, 'node_modules/.bin')
      mkdirSync(bin, { recursive: true })
      symlinkSync(join(here, 'scripts/pitlake.sh'), join(bin, 'pitlake'))
      symlinkSync(process.execPath, join(bin, 'node'))
      const select = `[{ assets: [BTC], paths: [supply/current_pit], since: ${new Date((now - 9 * day) * 1000).toISOString()} }]`
      writeFileSync(join(folder, 'pitlake.yaml'), `select: ${select}\n`)
      writeFileSync(join(folder, 'metrics.key'), fetchKey)
      writeFileSync(join(folder, 'registry.key'), otherKey)
      await work(rig, folder)
    })
  })
}

/** Six steps, each of which went well; notes may stand between them. */
const aDay: unknown = expect.stringMatching(/^(?:(?:note: .*\n)*[a-z ]+ 0 {2}.*\n){6}$/)

const urls = ({ url }: Rig): Readonly<Record<string, string>> => ({
  PITLAKE_METRICS_URL: url,
  PITLAKE_REGISTRY_URL: `${url}/registry/v1`,
})

/** A line through /bin/sh, with this environment and nothing else. */
async function shell(line: string, env: Readonly<Record<string, string>>, cwd = '/') {
  const child = spawn('/bin/sh', ['-c', line], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  started.push(child)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += part.toString()))
  const code = await new Promise<number | null>((done) => child.on('close', done))
  return { code, said: said.replaceAll(/^note: .*\n/gm, '') }
}

/** What logrotate does by the recipe to the logs in a folder: the real one where it is installed. */
function rotate(folder: string): void {
  const program = ['/usr/sbin/logrotate', '/usr/bin/logrotate'].find((path) => existsSync(path))
  const text = readFileSync(join(deploy, 'logrotate/pitlake'), 'utf8').replaceAll('/srv/research', folder)
  if (program === undefined) {
    expect(text).toContain('\n  copytruncate\n')
    for (const name of readdirSync(folder).filter((one) => one.endsWith('.log'))) {
      copyFileSync(join(folder, name), join(folder, `${name}.1`))
      truncateSync(join(folder, name))
    }
    return
  }
  const config = join(folder, 'rotate.conf')
  writeFileSync(config, text, { mode: 0o644 })
  const { status, stderr } = spawnSync(program, ['-f', '-s', join(folder, 'rotate.state'), config], {
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([0, ''])
}

describe('cron', () => {
  const text = readFileSync(join(deploy, 'cron/pitlake'), 'utf8')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const variables = lines
    .flatMap((line) => [/^([A-Z_]+)=(.*)$/.exec(line)?.slice(1) ?? []])
    .filter(({ length }) => length)
  const [command = ''] = lines.flatMap((line) => /^15 6 \* \* \* +\S+ +(.*)$/.exec(line)?.slice(1) ?? [])

  test('the line does a day with the little that cron gives it, each time after a rotation, too', async () => {
    // For cron a percent sign is the end of the line.
    expect(command).toMatch(/^cd [^%]+$/)
    await withPlace(async (rig, folder) => {
      const placed = (value: string): string => value.replaceAll('/srv/research', folder)
      const own = Object.fromEntries(variables.map(([name = '', value = '']) => [name, placed(value)]))
      const bare = { HOME: folder, LOGNAME: 'pitlake', SHELL: '/bin/sh', PATH: '/usr/bin:/bin' }
      const log = join(folder, 'daily.log')
      expect((await shell(placed(command), { ...bare, ...own, ...urls(rig), PATH: bare.PATH })).code).toBe(127)
      rotate(folder)
      const first = await shell(placed(command), { ...bare, ...own, ...urls(rig) })
      expect([first, readFileSync(log, 'utf8')]).toEqual([{ code: 0, said: '' }, aDay])
      const said = readFileSync(log, 'utf8')
      rotate(folder)
      expect([readFileSync(`${log}.1`, 'utf8'), readFileSync(log, 'utf8')]).toEqual([said, ''])
      expect((await shell(placed(command), { ...bare, ...own, ...urls(rig) })).code).toBe(0)
      expect(readFileSync(log, 'utf8')).toEqual(aDay)
    })
  })
})

test('a watch goes on in its log after a rotation, without a hole; with > instead of >> there would be one', () =>
  withPlace(async (rig, folder) => {
    const env = {
      PATH: `${folder}/node_modules/.bin:/usr/bin:/bin`,
      PITLAKE_METRICS_KEY_FILE: join(folder, 'metrics.key'),
      PITLAKE_METRICS_URL: rig.url,
    }
    const since = new Date((now - 9 * day) * 1000).toISOString()
    expect((await shell('pitlake fetch', env, folder)).code).toBe(0)
    for (const [how, path, holed] of [
      ['>>', 'addresses/active_count_pit', false],
      ['>', 'addresses/accumulation_count_pit', true],
    ] as const) {
      const flags = `--assets BTC --paths ${path} --since ${since}`
      const log = join(folder, 'watch.log')
      writeFileSync(log, '')
      const child = spawn('/bin/sh', ['-c', `exec pitlake watch ${flags} ${how} watch.log 2>&1`], {
        cwd: folder,
        env,
        stdio: 'ignore',
      })
      started.push(child)
      const ended = new Promise<number | null>((done) => child.on('exit', done))
      let over = false
      void ended.then(() => (over = true))
      await until(() => over || readFileSync(log, 'utf8').includes('  metrics  '), 'a first line')
      expect(readFileSync(log, 'utf8')).toContain('  metrics  ')
      const before = readFileSync(log, 'utf8')
      rotate(folder)
      child.kill('SIGTERM')
      expect(await ended).toBe(0)
      const kept = readFileSync(`${log}.1`, 'utf8')
      const after = readFileSync(log, 'utf8')
      expect(kept.startsWith(before)).toBe(true)
      expect(after).toMatch(/ended {5}everything received is committed\n$/)
      expect(after.includes('\0')).toBe(holed)
    }
  }))

describe('systemd', () => {
  const units = readdirSync(join(deploy, 'systemd'))
  const read = (unit: string): string => readFileSync(join(deploy, 'systemd', unit), 'utf8')
  const verify = (program: string, folder: string) => {
    const paths = readdirSync(folder).map((unit) => join(folder, unit))
    const { status, stdout, stderr } = spawnSync(program, ['verify', ...paths], { encoding: 'utf8' })
    return { code: status, said: stdout + stderr }
  }

  test('takes the units, and says of a slip what it is', async (context) => {
    const program = need(context, 'systemd')
    expect(units.toSorted()).toEqual(['pitlake-daily.service', 'pitlake-daily.timer', 'pitlake-watch.service'])
    await inFolder(async (folder) => {
      for (const unit of units) writeFileSync(join(folder, unit), read(unit))
      expect(verify(program, folder)).toEqual({ code: 0, said: '' })
      const slip = read('pitlake-watch.service').replace('ProtectSystem=strict', 'ProtectSytem=strict')
      writeFileSync(join(folder, 'pitlake-watch.service'), slip)
      expect(verify(program, folder).said).toContain('ProtectSytem')
    })
  })

  test('starts what is there, and again after no ending that waits for a person', () => {
    const value = (unit: string, key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(read(unit))?.[1] ?? ''
    expect(value('pitlake-watch.service', 'ExecStart')).toBe('/usr/bin/env pitlake watch')
    expect(value('pitlake-daily.service', 'ExecStart')).toBe('/usr/bin/env pitlake daily')
    for (const unit of ['pitlake-watch.service', 'pitlake-daily.service']) {
      const never = value(unit, 'RestartPreventExitStatus').split(' ')
      expect(never).toEqual(expect.arrayContaining(['2', '3', '4']))
      for (const code of ['5', '7']) expect(never).not.toContain(code)
    }
  })

  test('a daily service needs no folder but the lake to be writable', async (context) => {
    need(context, 'mount')
    const command = /^ExecStart=(.*)$/m.exec(read('pitlake-daily.service'))?.[1] ?? ''
    await withPlace(async (rig, folder) => {
      mkdirSync(join(folder, 'tmp'))
      const lines = [
        `mount --bind '${folder}' '${folder}'`,
        // As ProtectSystem=strict with ReadWritePaths: every mount but that one and those of the kernel is read-only.
        `awk '{ print $5 }' /proc/self/mountinfo | grep -v -e '^${folder}$' -e '^/proc' -e '^/sys' -e '^/dev$' | while read -r at; do mount -o remount,bind,ro "$at" || exit 9; done`,
        `! touch '${here}/none' '${folder}/../none' 2>/dev/null`,
        `cd '${folder}'`,
        `exec ${command}`,
      ]
      const env = {
        PATH: `${folder}/node_modules/.bin:/usr/sbin:/usr/bin:/sbin:/bin`,
        TMPDIR: join(folder, 'tmp'),
        PITLAKE_METRICS_KEY_FILE: join(folder, 'metrics.key'),
        PITLAKE_REGISTRY_KEY_FILE: join(folder, 'registry.key'),
        ...urls(rig),
      }
      writeFileSync(join(folder, 'day.sh'), `set -e\n${lines.join('\n')}\n`)
      const ended = await shell(`unshare --mount sh '${folder}/day.sh'`, env)
      expect([ended.code, ended.said]).toEqual([0, aDay])
      expect(existsSync(join(folder, 'data/status.html'))).toBe(true)
    })
  })
})
