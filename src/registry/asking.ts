import { readBytes } from '../store/files.ts'
import { describeOutcome, type Outcome, requestIdWords } from '../net/outcome.ts'
import { type RegistryAsk, registryParameters, registryUrl } from './api.ts'
import type { Connection } from '../ledger/connection.ts'
import type { RequestRow } from '../ledger/entry.ts'
import type { Read } from './bodies.ts'

/** Why asking ended before everything was there. */
type RegistryStop =
  | 'signal'
  | 'max_requests'
  | 'budget'
  | 'quota'
  | 'unauthorised'
  | 'unreachable'
  | 'failed'
  | 'undecodable'

/** The end of asking: nothing that was not read by then is committed. */
export interface Stopped {
  readonly kind: 'stopped'
  readonly by: RegistryStop
  /** When a spent quota comes back, Unix milliseconds. */
  readonly until: number | null
  readonly words: string
}

/** Says so; `failed` where an answer is of no use. */
export function stop(by: RegistryStop, words: string, until: number | null = null): Stopped {
  return { kind: 'stopped', by, until, words }
}

/** A body as received, in the spool. */
export interface RawBody {
  readonly file: string
  readonly request: string
  readonly etag: string | null
  /** Path and query. */
  readonly address: string
  /** A 304: the body is the one that the lake has already. */
  readonly known: boolean
}

/** What came of one request of the registry. */
export type Got<T> =
  | { readonly kind: 'read'; readonly value: T; readonly raw: RawBody; readonly bytes: number }
  | { readonly kind: 'invalid_cursor'; readonly words: string }
  /** Nothing is at that address. */
  | { readonly kind: 'gone'; readonly words: string }
  /** A 304 where the body of before is not at hand. */
  | { readonly kind: 'unchanged'; readonly etag: string | null; readonly words: string }
  | { readonly kind: 'refused'; readonly parameter: string | null; readonly words: string }
  | { readonly kind: 'snapshot_limit'; readonly waitMs: number | null; readonly words: string }
  | Stopped

/** The asking of one run. */
export interface RegistryAsking {
  readonly connection: Pick<Connection, 'ask' | 'base'> & { readonly spool: Pick<Connection['spool'], 'file'> }
  /** Requests that no commit has named yet. */
  readonly requests: RequestRow[]
  /** A name that no other request of the run has. */
  readonly nextId: () => string
  /** The entity tag and, where it is at hand, the held body (as received) of an address that answered before. */
  readonly held: (address: string) => { readonly etag: string; readonly read?: () => Promise<Uint8Array> } | undefined
  readonly onOutcome: (ask: RegistryAsk, outcome: Outcome) => void
  /** Puts a body that nobody can read aside. */
  readonly quarantine: (raw: RawBody, request: RequestRow, reason: string) => Promise<void>
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** Asks, reads, and asks once more where the body cannot be read; the second such body is put aside. */
export async function askRegistry<T>(
  asking: RegistryAsking,
  ask: RegistryAsk,
  read: (bytes: Uint8Array) => Read<T>,
): Promise<Got<T>> {
  for (let again = false; ; again = true) {
    const { outcome, row, address, held } = await askOnce(asking, ask, again)
    const known = outcome.kind === 'not_modified' && held !== undefined
    if (known && !held.read) return { kind: 'unchanged', etag: outcome.etag, words: describeOutcome(outcome) }
    if (outcome.kind !== 'body' && !known) return verdict(outcome)
    const file = asking.connection.spool.file(`${row.id}.json`)
    const raw: RawBody = { file, request: row.id, etag: outcome.etag, address, known }
    const bytes = known && held.read ? await held.read() : await readBytes(file)
    const decoded = read(bytes)
    if (decoded.ok) return { kind: 'read', value: decoded.value, raw, bytes: bytes.length }
    asking.requests[asking.requests.length - 1] = {
      ...row,
      outcome: 'poison',
      detail: `${decoded.reason}${requestIdWords(outcome)}`,
    }
    if (!again) continue
    await asking.quarantine(raw, row, decoded.reason)
    return stop('undecodable', `${ask.path}: ${decoded.reason} (the body is in quarantine/${row.id}.body)`)
  }
}

async function askOnce(
  asking: RegistryAsking,
  ask: RegistryAsk,
  again: boolean,
): Promise<{ outcome: Outcome; row: RequestRow; address: string; held: ReturnType<RegistryAsking['held']> }> {
  const { connection } = asking
  const id = asking.nextId()
  const url = registryUrl(connection.base, ask)
  const address = `${ask.path}?${new URLSearchParams(ask.query).toString()}`
  // A body that could not be read is wanted anew, not by its tag.
  const held = again ? undefined : asking.held(address)
  const file = connection.spool.file(`${id}.json`)
  const { outcome, row } = await connection.ask({ id, url, file, etag: held?.etag, parameters: registryParameters })
  asking.onOutcome(ask, outcome)
  asking.requests.push(row)
  return { outcome, row, address, held }
}

function verdict(outcome: Exclude<Outcome, { kind: 'body' }>): Got<never> {
  const end = (by: RegistryStop, until?: number): Stopped => stop(by, describeOutcome(outcome), until)
  switch (outcome.kind) {
    case 'refused': {
      const aboutCursor = outcome.code === 'invalid_cursor' || (outcome.code === null && /cursor/i.test(outcome.words))
      if (aboutCursor) return { kind: 'invalid_cursor', words: outcome.words }
      return { kind: 'refused', parameter: outcome.parameter, words: outcome.words }
    }
    case 'limited':
      if (outcome.code !== 'snapshot_limit') return end('failed')
      return { kind: 'snapshot_limit', waitMs: outcome.waitMs, words: outcome.words }
    case 'unauthorised':
    case 'forbidden':
      return end('unauthorised')
    case 'parked':
      return end('quota', outcome.until)
    case 'stopped':
      return end(outcome.by)
    case 'again':
      return end(outcome.status === null ? 'unreachable' : 'failed')
    case 'gone':
      return { kind: 'gone', words: describeOutcome(outcome) }
    case 'no_content':
    case 'not_modified':
    case 'too_large':
    case 'unexpected':
      return end('failed')
    default:
      return outcome satisfies never
  }
}
