import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import type { Deps } from '../../src/interfaces/cli/spec.ts'
import { type Ended, pitlake } from './command.ts'
import { until } from './processes.ts'

/** Time that really passes. */
export const sleep: Deps['sleep'] = async (ms, signal) =>
  await setTimeout(ms, undefined, signal ? { signal } : {}).catch(() => undefined)

/** A command over a lake that listens, in this process; it has said where. */
export async function listening(
  data: string,
  argv: readonly string[],
  env: Deps['env'] = {},
  world: Partial<Deps> = {},
) {
  const halt = new AbortController()
  let said = ''
  const ended = pitlake(
    data,
    [...argv, '--data', data, '--listen', '127.0.0.1:0'],
    { ...env },
    { sleep, signal: halt.signal, stderr: (text) => void (said += text), ...world },
  )
  await until(() => said.includes('http://'), 'where it listens')
  const stop = async (): Promise<Ended> => {
    halt.abort()
    return await ended
  }
  return { url: /http:\/\/[\d.:]+/.exec(said)?.[0] ?? '', said: () => said, stop }
}

/** The status of an answer to a request that bears this head. */
export async function statusWith(url: string, headers: Readonly<Record<string, string>>): Promise<number | undefined> {
  const sent = request(url, { headers })
  sent.end()
  const [response] = (await once(sent, 'response')) as [{ statusCode?: number; resume: () => void }]
  response.resume()
  return response.statusCode
}
