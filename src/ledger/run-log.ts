import { basename } from 'node:path'
import { appendPrivate, readInto, textOf } from '../store/files.ts'
import { redact } from '../secrets/secrets.ts'
import { type Disk, namesIn, realDisk } from '../store/disk.ts'
import { inLake, places, runLog } from '../store/layout.ts'
import { type Micros, parseMicros } from '../time.ts'
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

/** The logs of an open folder of runs, relative to the lake, with the instant that each begins with, the oldest first. */
export async function readLogs(root: string): Promise<{ readonly path: string; readonly began: Micros }[]> {
  const logs: { path: string; began: Micros }[] = []
  for (const name of await namesIn(inLake(root, places.runs))) {
    if (!name.endsWith('.log')) continue
    const path = `${places.runs}/${name}`
    const start = await readInto(inLake(root, path), Buffer.alloc(64))
    const text = /^\{"at":"([^"]+)"/.exec(start.toString())?.[1]
    const began = text === undefined ? undefined : parseMicros(text)
    if (began !== undefined) logs.push({ path, began })
  }
  return logs.toSorted((a, b) => a.began - b.began || (a.path < b.path ? -1 : 1))
}

const ofDay = /^\d{4}-\d\d-\d\d\.log$/

/** Puts the logs that began before an instant into one file a day: a folder of many names takes long to look through. */
export async function gatherLogs(root: string, disk: Disk, before: Micros): Promise<void> {
  const old = (await readLogs(root)).filter(({ path, began }) => began < before && !ofDay.test(basename(path)))
  for (const [day, logs] of Map.groupBy(old, ({ began }) => new Date(began / 1000).toISOString().slice(0, 10))) {
    const path = inLake(root, `${places.runs}/${day}.log`)
    // Whoever was killed here has gathered some of them.
    const there = (await textOf(path)) ?? ''
    const texts = await Promise.all(logs.map(async (log) => (await textOf(inLake(root, log.path))) ?? ''))
    const fresh = texts.filter((text) => !there.includes(text)).join('')
    if (fresh !== '') await disk.append(path, fresh)
    for (const log of logs) await disk.remove(inLake(root, log.path))
  }
}
