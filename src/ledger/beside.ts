import { join } from 'node:path'
import { type RetryPolicy, usualRetries } from '../net/retry.ts'
import { temporaryFolder } from '../store/files.ts'
import { type Access, accessTo, type AskingDeps, httpTo } from './connection.ts'
import { type AskOne, createRowAsker } from './requests.ts'

/** What asking beside a lake needs of the world. */
export interface BesideDeps extends Pick<AskingDeps, 'now' | 'wait' | 'random' | 'signal' | 'proxy' | 'program'> {
  /** A folder for temporary files. */
  readonly temporary: string
}

/** A way to ask whose bodies are no part of a lake. */
export interface Beside {
  readonly ask: AskOne
  readonly base: string
  /** The path of a temporary file. */
  readonly file: (name: string) => string
}

/** At what pace to ask, under the name of which run, and what is told to do where no address or key is set. */
interface Manner {
  readonly perMinute: number
  readonly retry?: RetryPolicy
  readonly run?: string
  readonly next?: string
}

/** Asks an API for something that no lake has to hold; leaves nothing on the disk. */
export async function askBeside<T>(
  access: Access,
  deps: BesideDeps,
  { perMinute, retry = usualRetries, run = '', next }: Manner,
  use: (beside: Beside) => Promise<T>,
): Promise<T> {
  const { url: base } = accessTo(access.name, access.settings, next)
  await using folder = await temporaryFolder(deps.temporary)
  await using http = httpTo(access, deps)
  const { now, wait: sleep, random, signal } = deps
  const { ask } = createRowAsker(
    { http, governor: { perMinute }, retry, maxRequests: null, now, sleep, random, signal },
    { run, api: access.name },
  )
  return await use({ ask, base, file: (name) => join(folder.path, name) })
}
