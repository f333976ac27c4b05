import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { limitedGroup } from './cgroup.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Why a test was left out; scripts/counts.ts tells it. */
    lacks?: string
  }
}

const python = (name: string): string | undefined =>
  [join(import.meta.dirname, `../../.cache/${name}-venv`)]
    .find((venv) => existsSync(`${venv}.made`))
    ?.concat('/bin/python')

/** Whether this process may mount a file system. */
function mounts(): string | undefined {
  const line = 'd=$(mktemp -d) && mount -t tmpfs -o size=1m tmpfs $d && umount $d; rmdir $d'
  const { status, stderr } = spawnSync('sh', ['-c', line], { encoding: 'utf8' })
  return process.platform === 'linux' && status === 0 && stderr === '' ? 'mount' : undefined
}

/** Whether this process may be somebody without rights who can run the program. */
function nobody(): string | undefined {
  const { status } = spawnSync(process.execPath, ['--version'], { uid: 65_534, cwd: '/' })
  return process.getuid?.() === 0 && status === 0 ? 'nobody' : undefined
}

/** The Python of a recipe, where its turn has come. */
const recipe = (name: string): string | undefined =>
  (process.env['PITLAKE_RECIPES'] ?? '').split(' ').includes(name) ? python(name) : undefined

/** The first of these programs that is installed. */
const program = (...paths: readonly string[]): string | undefined => paths.find((path) => existsSync(path))

/** What tests need of the machine that is no part of this project: where it is, and what is said where it is not. */
const needs = {
  peers: [() => python('peers'), 'no Python with DuckDB (scripts/peers.sh)'],
  'python-newest': [() => python('python-newest'), 'no Python with DuckDB 2.0 (scripts/peers.sh python-newest)'],
  calendars: [() => python('calendars'), 'no Python with exchange_calendars (scripts/peers.sh calendars)'],
  readers: [() => python('readers'), 'no Python with deltalake and chdb (scripts/peers.sh readers)'],
  s3: [() => python('s3'), 'no Python with moto (scripts/peers.sh s3)'],
  spark: [() => process.env['PITLAKE_SPARK'] || undefined, 'Spark is asked by make test-spark alone'],
  dbt: [() => recipe('dbt'), 'dbt is asked by make test-recipes alone'],
  dagster: [() => recipe('dagster'), 'Dagster is asked by make test-recipes alone'],
  airflow: [() => recipe('airflow'), 'Airflow is asked by make test-recipes alone'],
  btrfs: [
    () => mounts() && program('/usr/sbin/mkfs.btrfs', '/sbin/mkfs.btrfs'),
    'no btrfs (apt-get install btrfs-progs) or no right to mount it',
  ],
  systemd: [() => program('/usr/bin/systemd-analyze'), 'no systemd-analyze (apt-get install systemd)'],
  chromium: [
    () => program(process.env['PITLAKE_CHROMIUM'] ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser'),
    'no chromium (apt-get install chromium)',
  ],
  zsh: [() => program('/usr/bin/zsh', '/bin/zsh'), 'no zsh (apt-get install zsh)'],
  fish: [() => program('/usr/bin/fish'), 'no fish (apt-get install fish)'],
  mount: [mounts, 'no right to mount a file system'],
  nobody: [nobody, 'no right to be another user'],
  cgroup: [
    () => {
      using group = limitedGroup(2 ** 30)
      return group?.prefix[0]
    },
    'no right to make a group of processes (cgroup)',
  ],
  python3: [() => (spawnSync('python3', ['--version']).status === 0 ? 'python3' : undefined), 'no python3'],
  linux: [() => (process.platform === 'linux' ? 'linux' : undefined), 'no Linux'],
} as const satisfies Record<string, readonly [find: () => string | undefined, lacking: string]>

/**
 * What comes from a network: .ci/run writes into the file of `PITLAKE_HAD` what can be had, while the first tests run.
 */
const coming: readonly string[] = ['peers', 'readers', 's3', 'calendars', 'python-newest', 'chromium']

/** What must be here, as `PITLAKE_REQUIRED` says, or that file; whoever needs what is still coming waits for it. */
function required(name: string): boolean {
  const { PITLAKE_HAD: file, PITLAKE_REQUIRED = '' } = process.env
  if (file === undefined || !coming.includes(name)) return PITLAKE_REQUIRED.split(' ').includes(name)
  const still = new Int32Array(new SharedArrayBuffer(4))
  for (let tries = 0; !existsSync(file) && tries < 3000; tries++) Atomics.wait(still, 0, 0, 100)
  return readFileSync(file, 'utf8').trim().split(' ').includes(name)
}

/**
 * Where that is; a test without it is left out and counted with the reason. It fails instead where it must be here, as
 * .ci/run says of what can be had on its machine.
 */
export function need({ task, skip }: Pick<TestContext, 'task' | 'skip'>, name: keyof typeof needs): string {
  const [find, lacking] = needs[name]
  const must = required(name)
  const found = find()
  if (found !== undefined) return found
  if (must) throw new Error(`${lacking}, though it can be had here`)
  task.meta.lacks = lacking
  return skip(lacking)
}
