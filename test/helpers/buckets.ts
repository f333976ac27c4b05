import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { TestContext } from 'vitest'
import type { Destination } from '../../src/maintenance/publish/destination.ts'
import { need } from './needs.ts'
import { s3Key, standIn } from './s3.ts'

/** A server of buckets on this machine, with an empty bucket. */
export interface Bucket extends AsyncDisposable {
  readonly url: string
  readonly bucket: string
  readonly key: { readonly id: string; readonly secret: string }
}

/** The stand-in of these tests. */
export async function ownBucket(): Promise<Bucket> {
  const there = await standIn()
  there.page = 1000
  return { url: there.url, bucket: 'lake', key: s3Key, [Symbol.asyncDispose]: there[Symbol.asyncDispose] }
}

/** A server that somebody else wrote. */
export async function motoBucket(context: Pick<TestContext, 'task' | 'skip'>): Promise<Bucket> {
  const child = spawn(need(context, 's3'), ['-m', 'moto.server', '-H', '127.0.0.1', '-p', '0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const url = await saidUrl(child)
  await fetch(`${url}/lake`, { method: 'PUT' })
  const close = async (): Promise<void> => {
    const ended = new Promise((done) => child.once('close', done))
    child.kill('SIGKILL')
    await ended
  }
  return { url, bucket: 'lake', key: { id: 'testing-id', secret: 'testing-secret' }, [Symbol.asyncDispose]: close }
}

async function saidUrl(child: ChildProcess): Promise<string> {
  let said = ''
  for await (const chunk of child.stderr ?? []) {
    said += String(chunk)
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(said) ?? []
    if (url !== undefined) {
      child.stderr?.resume()
      return url
    }
  }
  throw new Error(`moto did not start: ${said}`)
}

/** Brings everything that a destination holds to a folder. */
export async function download(from: Destination, folder: string): Promise<void> {
  for (const { path } of await from.list('')) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await from.get(path, join(folder, path))
  }
}

/** What the environment of a command says of a bucket. */
export function environmentOf({ url, key }: Bucket): Readonly<Record<string, string>> {
  return {
    AWS_ENDPOINT_URL: url,
    AWS_ACCESS_KEY_ID: key.id,
    AWS_SECRET_ACCESS_KEY: key.secret,
    AWS_CONFIG_FILE: '/nowhere',
    AWS_SHARED_CREDENTIALS_FILE: '/nowhere',
  }
}
