import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RegistrySummary } from '../../src/sources/registry/run.ts'
import { registryKey } from '../helpers/registry-rig.ts'

/** What a job did and cost, alone in its process. */
export interface Alone {
  readonly summary: RegistrySummary
  readonly seconds: number
  /** Seconds of CPU, of user and system together. */
  readonly cpu: number
  /** The largest memory that the process ever held. */
  readonly megabytes: number
}

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** Serves the bodies from a process of their own; `run` runs a job upon a folder in another one. */
export async function withProvider<T>(
  bodies: Readonly<Record<string, string>>,
  work: (run: (job: 'snapshot' | 'sync', root: string) => Promise<Alone>) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-bodies-'))
  for (const [name, body] of Object.entries(bodies)) writeFileSync(join(folder, `${name}.json`), body)
  const provider = spawn(process.execPath, [script('registry-provider.ts'), folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  try {
    const url = await new Promise<string>((done, failed) => {
      provider.stdout.once('data', (chunk: Buffer) => done(chunk.toString().trim()))
      provider.once('close', () => failed(new Error('the provider did not start')))
    })
    return await work(async (job, root) => await runAlone(job, root, url))
  } finally {
    provider.stdin.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runAlone(job: string, root: string, url: string): Promise<Alone> {
  const child = spawn(process.execPath, [script('registry-client.ts'), job, root, url, registryKey])
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const code = await new Promise((done) => child.on('close', done))
  if (code !== 0) throw new Error(err)
  return JSON.parse(out) as Alone
}

/** Lends a folder and removes it. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-bench-registry-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
