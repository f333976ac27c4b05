import { join } from 'node:path'
import { jsonOf } from '../../base/json.ts'
import { type Access, type BesideDeps, httpTo } from '../http/connection.ts'
import { describeOutcome, type Outcome, type QueryParameter } from '../http/outcome.ts'
import { readBytes, temporaryFolder } from '../../lake/store/files.ts'
import type { Instant } from '../../base/time.ts'

/** One answer with all that judges look at; no key is in it. */
export interface HeardAnswer {
  readonly outcome: Outcome
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The body of a 200 as received; null if there is none. `body` is its JSON; undefined if there is none. */
  readonly bytes: Uint8Array | null
  readonly body: unknown
  /** Time of the answer, by the provider's clock if it shows one. */
  readonly at: Instant
}

/** The answer to a request without which pitlake cannot follow this provider. */
export interface NeededAnswer {
  /** Path that was requested, as the catalogue or the registry names it. */
  readonly path: string
  readonly outcome: Outcome
}

/** The number of requests left, over both APIs; `requestsReserved` of them are for the other one. */
export interface Budget {
  requestsLeft: number
  requestsReserved: number
}

/** One API while it is listened to. */
export interface Listener {
  readonly base: string
  /** Sends a request once, without repeats; null if no request is left, or if an answer has ended the listening. */
  readonly hear: (
    url: string,
    about?: {
      readonly etag?: string
      readonly parameters?: readonly QueryParameter[]
      /** Path of a request that every provider has to answer. */
      readonly needed?: string
    },
  ) => Promise<HeardAnswer | null>
  readonly requestsLeft: () => number
  /** Returns the answer that ended the listening (a refused key, a spent limit, no answer); null if none did. */
  readonly ended: () => Outcome | null
  /** Returns the answers to needed requests so far. */
  readonly needed: () => readonly NeededAnswer[]
}

/** Listens to an API within the budget; leaves nothing on the disk. */
export async function listening<T>(
  access: Access,
  deps: BesideDeps,
  budget: Budget,
  use: (listener: Listener) => Promise<T>,
): Promise<T> {
  await using folder = await temporaryFolder(deps.temporary)
  await using http = httpTo(access, deps)
  let ended: Outcome | null = null
  const outcomes: Outcome[] = []
  const needed: NeededAnswer[] = []
  const requestsLeft = (): number => Math.max(0, budget.requestsLeft - budget.requestsReserved)
  const hear: Listener['hear'] = async (url, { needed: path, ...about } = {}) => {
    if (ended !== null || requestsLeft() === 0) return null
    const file = join(folder.path, `${access.name}-${budget.requestsLeft}.body`)
    budget.requestsLeft--
    const { outcome, headers } = await http.get({ url, file, ...about, signal: deps.signal })
    outcomes.push(outcome)
    if (path !== undefined) needed.push({ path, outcome })
    if (endsAll(outcome)) ended = outcome
    const bytes = outcome.kind === 'body' ? await readBytes(outcome.file) : null
    const shown = Object.entries(headers).map(([name, value]): [string, string] => [
      name,
      [value ?? ''].flat().join(', '),
    ])
    const at = 'date' in outcome && outcome.date !== null ? outcome.date : Math.floor(deps.now() / 1000)
    const body = bytes === null ? undefined : jsonOf(new TextDecoder().decode(bytes))
    return { outcome, headers: Object.fromEntries<string>(shown), bytes, body, at }
  }
  const base = (access.settings[access.name].url ?? '').replace(/\/+$/, '')
  return await use({ base, hear, requestsLeft, ended: () => ended ?? forbidden(outcomes), needed: () => needed })
}

/** Returns the outcome that shows a refused key: every request was forbidden; null otherwise. */
function forbidden(outcomes: readonly Outcome[]): Outcome | null {
  const [first] = outcomes
  return first !== undefined && outcomes.length > 1 && outcomes.every(({ kind }) => kind === 'forbidden') ? first : null
}

function endsAll(outcome: Outcome): boolean {
  if (outcome.kind === 'limited') return outcome.code !== 'snapshot_limit'
  return (
    outcome.kind === 'unauthorised' ||
    outcome.kind === 'stopped' ||
    (outcome.kind === 'again' && outcome.status === null)
  )
}

/** Describes why an answer shows nothing. */
export function whyNot(heard: HeardAnswer | null): string {
  if (heard === null) return 'not requested: the requests had ended before'
  return heard.outcome.kind === 'body' ? 'the body is no JSON' : describeOutcome(heard.outcome)
}
