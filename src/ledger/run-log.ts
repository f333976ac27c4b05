import { appendPrivate } from '../store/files.ts'
import { redact } from '../secrets/secrets.ts'
import { realDisk } from '../store/disk.ts'
import { inLake, places, runLog } from '../store/layout.ts'
import { makeLakeFolder } from '../store/private.ts'

/** The log of one run: a JSON object a line, `at` and `event` first. */
export interface RunLog extends AsyncDisposable {
  /** Writes down one event. */
  note(event: string, facts: object): void
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
        .then(async () => await appendPrivate(path, text))
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
    [Symbol.asyncDispose]: async () => {
      while (writing !== null) await writing
    },
  }
}
