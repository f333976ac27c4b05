import { appendFile } from 'node:fs/promises'
import { redact } from '../secrets.ts'
import { realDisk } from '../lake/disk.ts'
import { inLake, places, runLog } from '../lake/layout.ts'
import { makeLakeFolder } from '../lake/private.ts'
import type { IngestEvent } from './events.ts'

/** The log of one run: a JSON object a line, `at` and `event` first. */
export interface RunLog {
  /** Writes down one event. */
  note(event: string, facts: object): void
  /** Waits until everything is written. */
  close(): Promise<void>
}

/** What a log is opened with. */
interface Logging {
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly secrets: readonly string[]
}

/**
 * Opens `runs/<run>.log`. The log is for people: what cannot be written is dropped, because the commit that meets the
 * same disk says so with an error. No secret reaches it.
 */
export function openRunLog(root: string, run: string, { now, secrets }: Logging): RunLog {
  const path = inLake(root, runLog(run))
  let pending = ''
  let writing: Promise<void> | null = null
  const drain = async (): Promise<void> => {
    while (pending !== '') {
      const text = pending
      pending = ''
      await makeLakeFolder(realDisk, root, places.runs)
        .then(async () => await appendFile(path, text, { mode: 0o600 }))
        .catch(() => undefined)
    }
    writing = null
  }
  return {
    note: (event, facts) => {
      const line = JSON.stringify({ at: new Date(now()).toISOString(), event, ...facts })
      pending += `${redact(line, secrets, 'data')}\n`
      writing ??= Promise.resolve().then(drain)
    },
    close: async () => {
      while (writing !== null) await writing
    },
  }
}

/** How an event of a run stands in its log; null where only a detailed log holds it. */
export function logged(event: IngestEvent, detailed: boolean): readonly [name: string, facts: object] | null {
  switch (event.kind) {
    case 'planned':
      return ['planned', { ...event.plan.totals, blocked: event.plan.blocked.length, notes: event.plan.notes }]
    case 'request': {
      const { id, url, ask } = event
      const { pathname, search } = new URL(url)
      return ['request', { id, series: ask.series.id, path: pathname, query: search.slice(1), credits: ask.credits }]
    }
    case 'asking':
      return loggedAsking(event.event, detailed)
    case 'answered':
      return detailed ? ['outcome', { series: event.ask.series.id, outcome: event.outcome.kind }] : null
    case 'settled':
      return detailed ? ['settled', { series: event.ask.series.id }] : null
    case 'committed': {
      const { version, points, files } = event
      return ['commit', { version, points, files, windows: event.windows, violations: event.violations }]
    }
    case 'skew':
      return ['skew', { ...event.skew }]
    case 'listing':
      return ['listing', { assets: event.assets, fresh: event.fresh, outcome: event.outcome }]
    default:
      return event satisfies never
  }
}

function loggedAsking(
  event: Extract<IngestEvent, { kind: 'asking' }>['event'],
  detailed: boolean,
): readonly [string, object] | null {
  const { id } = event
  if (event.kind === 'answered') {
    const { outcome, attempt, perMinute } = event
    const { kind, file: _file, at: _at, ...facts } = { file: null, at: null, ...outcome }
    return ['answer', { id, attempt, outcome: kind, ...facts, ...(detailed && { perMinute: Math.round(perMinute) }) }]
  }
  if (!detailed) return null
  return event.kind === 'sent'
    ? ['sent', { id, attempt: event.attempt, sent: event.sent }]
    : ['waiting', { id, ms: Math.round(event.waitMs), why: event.why }]
}
