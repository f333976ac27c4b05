import { join } from 'node:path'
import { usage } from '../errors.ts'
import type { AskOne } from '../ledger/connection.ts'
import { requestRow } from '../ledger/requests.ts'
import { createAsker } from '../net/ask.ts'
import { createHttp, type ProxySettings } from '../net/http.ts'
import { temporaryFolder } from '../store/files.ts'
import { type RetryPolicy, usualRetries } from '../net/retry.ts'
import type { Settings } from '../config/settings.ts'

/** What asking beside a lake needs of the world. */
export interface BesideDeps {
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  readonly random: () => number
  readonly signal: AbortSignal
  readonly proxy: ProxySettings
  readonly program: string
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

const maxBytes = 50_000_000

/** Asks the metrics API for something that no lake has to hold; leaves nothing on the disk. */
export async function askBeside<T>(
  settings: Settings,
  deps: BesideDeps,
  pace: { readonly perMinute: number; readonly retry?: RetryPolicy; readonly next?: string; readonly run?: string },
  use: (beside: Beside) => Promise<T>,
): Promise<T> {
  const { url, key, concurrency } = settings.metrics
  const unset = (what: string) => ({ expected: what, got: 'nothing', next: pace.next })
  if (url === null) throw usage('PITLAKE_METRICS_URL', unset('the base address of the metrics API'))
  if (key === null) throw usage('PITLAKE_METRICS_KEY', unset('the key of the metrics API'))
  await using folder = await temporaryFolder(deps.temporary)
  await using http = createHttp({
    base: url,
    key: { name: 'X-Api-Key', key },
    secrets: settings.secrets,
    userAgent: deps.program.replace(' ', '/'),
    connections: concurrency,
    maxBytes,
    proxy: deps.proxy,
    now: deps.now,
  })
  const asker = createAsker({
    http,
    governor: { perMinute: pace.perMinute },
    retry: pace.retry ?? usualRetries,
    maxRequests: null,
    now: deps.now,
    sleep: deps.wait,
    random: deps.random,
    signal: deps.signal,
  })
  const ask: AskOne = async (request, about = {}) => {
    const outcome = await asker.ask(request)
    const at = 'at' in outcome ? outcome.at : deps.now()
    const asked = { id: request.id, url: request.url, at, run: pace.run ?? '', api: 'metrics', attempts: 1 } as const
    return { outcome, at, row: requestRow(asked, outcome, about) }
  }
  return await use({ ask, base: url, file: (name) => join(folder.path, name) })
}
