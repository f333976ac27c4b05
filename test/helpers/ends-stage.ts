import { spawn } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { decodeEntry, seal } from '../../src/lake/ledger/entry.ts'
import { parseFault } from '../../src/sandbox/faults.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { serve } from '../../src/sandbox/server.ts'
import { type Lock, lockJob, tryLock } from '../../src/lake/store/lock.ts'
import { environmentOf, ownBucket } from './buckets.ts'
import { pitlake } from './command.ts'
import type { Asked } from './ends-host.ts'
import type { Prepared } from './ends-words.ts'
import { type Ended, program } from './program.ts'
import { catalogue } from './sandbox-client.ts'
import { entryText, writeEntryText } from './entries.ts'
import { makeFolder } from './folders.ts'

const keys = { metrics: 'ends-metrics-key', registry: 'ends-registry-key' }
const rewritten = 'rewrite@supply/*:point=0,v=101'

/** The faults of the providers that one port plays, by the first part of the address. */
const providers: Readonly<Record<string, readonly string[]>> = {
  sound: [],
  refused: ['status-401'],
  forbidden: ['forbidden-403'],
  odd: [],
  html: ['html'],
  half: ['html@addresses/*'],
  rewritten: [rewritten],
  both: [rewritten, 'html@addresses/*'],
  lying: ['silent-change:record=venues/cobalt-haven-perps,field=name'],
  spent: ['status-429:retry=12h'],
}

/** What goes wrong with the lake that a command finds. */
const lakes: Readonly<Record<string, (root: string) => void>> = {
  sound: () => undefined,
  none: (root) => rmSync(root, { recursive: true }),
  torn: (root) => writeFileSync(newestEntry(root), '{}'),
  newer: (root) => {
    const file = newestEntry(root)
    const { entry, digest } = decodeEntry(entryText(file), file)
    const version = entry.version + 1
    const { text } = seal(JSON.stringify({ ...entry, version, previous: digest, schema_version: 99 }))
    writeEntryText(join(root, 'journal', `${String(version).padStart(10, '0')}.json.gz`), text)
  },
  damaged: (root) => dataFiles(root).forEach(change),
  touched: (root) => change(join(root, '..', 'r.parquet')),
  gone: (root) => dataFiles(root).forEach((file) => rmSync(file)),
  lost: (root) => {
    for (const name of readdirSync(root)) if (name.startsWith('ledger.sqlite')) rmSync(join(root, name))
    writeFileSync(join(root, 'ledger.sqlite'), 'x'.repeat(5000))
  },
}

/** Turns a byte in the middle of a file. */
function change(file: string): void {
  const bytes = readFileSync(file)
  const at = Math.floor(bytes.length / 3)
  writeFileSync(file, bytes.with(at, (bytes[at] ?? 0) ^ 255))
}

function newestEntry(root: string): string {
  const names = readdirSync(join(root, 'journal')).filter((name) => /^\d+\.json\.gz$/.test(name))
  return join(root, 'journal', names.toSorted().at(-1) ?? '')
}

function dataFiles(root: string): string[] {
  const names = readdirSync(join(root, 'points'), { recursive: true }).map(String)
  return names.filter((name) => name.endsWith('.parquet')).map((name) => join(root, 'points', name))
}

/** What is loaded before a command. */
const preloads = {
  'broken-clock': import.meta.resolve('./broken-clock.ts'),
  'full-disk': import.meta.resolve('./full-disk.ts'),
  impatient: import.meta.resolve('./impatient.ts'),
  interrupted: import.meta.resolve('./interrupted.ts'),
} as const

/** Where a command runs: its lake, its provider, who holds which lock, and what is loaded before it. */
export interface Scene {
  readonly lake?: string
  readonly from?: string
  readonly held?: 'metrics' | 'registry' | 'pull' | 'watch' | 'commit'
  /** The folder whose lock is held. */
  readonly at?: string
  readonly with?: keyof typeof preloads
  /** A bucket is there whose key is another one. */
  readonly bucket?: true
}

/** How a command ended, and what of it was left that would keep its process, where it had none of its own. */
export type Played = Ended & { readonly left?: readonly string[] }

/** A folder with a lake and files beside it, and providers; each command finds them anew. */
export interface Stage extends AsyncDisposable {
  /**
   * As a process of its own, or in one that runs command after command, where it is not to be loaded with another clock
   * or disk.
   */
  play(argv: readonly string[], scene: Scene, alone: boolean): Promise<Played>
}

/** Makes the lake once; what a command finds is a copy of it in its place, with what the scene says. */
export async function openStage(files: Readonly<Record<string, string>>, prepared: readonly Prepared[]) {
  const home = makeFolder('ends')
  const kept = makeFolder('ends-kept')
  const served = await serve({ ...world('sound'), handle: playing() }, { port: 0 })
  const bucket = await ownBucket()
  const host = openHost()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text)
  for (const [from, code, ...argv] of prepared) {
    const done = await pitlake(home, argv, environment(served.url, from))
    if (done.code !== code) throw new Error(`${argv.join(' ')}: ${done.code} ${done.message}`)
  }
  cpSync(home, kept, { recursive: true, preserveTimestamps: true })
  const play = async (argv: readonly string[], scene: Scene, alone: boolean): Promise<Played> => {
    for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true })
    cpSync(kept, home, { recursive: true, preserveTimestamps: true })
    lakes[scene.lake ?? 'sound']?.(join(home, 'data'))
    const lock = scene.held && (await hold(join(home, scene.at ?? 'data'), scene.held))
    const preload = scene.with && preloads[scene.with]
    const env = {
      ...(scene.from !== undefined && environment(served.url, scene.from)),
      ...(scene.bucket && { ...environmentOf(bucket), AWS_SECRET_ACCESS_KEY: 'another-one' }),
    }
    const interrupted = scene.with === 'interrupted'
    try {
      if (!alone && (preload === undefined || interrupted)) return await host.run({ argv, cwd: home, env, interrupted })
      return await program(argv, { cwd: home, env, ...(preload !== undefined && { preload }) })
    } finally {
      await lock?.release()
    }
  }
  const close = async (): Promise<void> => {
    await host.close()
    await served.close()
    await bucket[Symbol.asyncDispose]()
    for (const folder of [home, kept]) rmSync(folder, { recursive: true, force: true })
  }
  return { play, [Symbol.asyncDispose]: close }
}

/** A process that runs one command after the other. */
function openHost() {
  const child = spawn(process.execPath, [fileURLToPath(new URL('ends-host.ts', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const { PATH = '', HOME = '', TMPDIR = '/tmp' } = process.env
  const run = async (asked: Asked): Promise<Played> => {
    child.stdin.write(`${JSON.stringify({ ...asked, env: { PATH, HOME, TMPDIR, ...asked.env } })}\n`)
    const { value, done } = await lines.next()
    if (done === true) throw new Error(`the process ended in ${asked.argv.join(' ')}`)
    return JSON.parse(value) as Played
  }
  const close = async (): Promise<void> => {
    child.stdin.end()
    await lines.next()
  }
  return { run, close }
}

async function hold(root: string, name: string): Promise<Lock> {
  const holder = { pid: process.pid, host: hostname(), command: 'pitlake test', since: Date.now() * 1000 }
  const lock = name === 'commit' ? await tryLock(root, name, holder) : await lockJob(root, name, holder)
  if (!lock) throw new Error(`${name} is held`)
  return lock
}

function world(name: string): Sandbox {
  return createSandbox({
    catalogue,
    seed: 7,
    now: () => Date.now() / 1000,
    sleep: (ms) => setTimeout(ms),
    scale: 'demo',
    metricsKey: keys.metrics,
    registryKey: keys.registry,
    faults: (providers[name] ?? []).map(parseFault),
  })
}

/** Answers as the provider that the first part of the path names; an odd one knows no `s`. */
function playing(): Sandbox['handle'] {
  const worlds = new Map(Object.keys(providers).map((name) => [name, world(name)]))
  return async (request) => {
    const url = new URL(request.url)
    const [, name = '', ...path] = url.pathname.split('/')
    url.pathname = `/${path.join('/')}`
    if (name === 'odd' && url.searchParams.has('s'))
      return Response.json({ error: "unknown parameter 's'" }, { status: 400, headers: { 'x-pitlake-sandbox': '7' } })
    return (await worlds.get(name)?.handle(new Request(url, request))) ?? new Response(null, { status: 500 })
  }
}

function environment(url: string, name: string): Readonly<Record<string, string>> {
  const base = name === 'nobody' ? 'http://127.0.0.1:9' : `${url}/${name}`
  return {
    PITLAKE_METRICS_URL: base,
    PITLAKE_METRICS_KEY: keys.metrics,
    PITLAKE_REGISTRY_URL: `${base}/registry/v1`,
    PITLAKE_REGISTRY_KEY: keys.registry,
  }
}
