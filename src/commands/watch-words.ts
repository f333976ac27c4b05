import { givenKeys } from '../config/settings.ts'
import { redact } from '../secrets/secrets.ts'
import { formatInstant, type Instant } from '../time.ts'
import type { WatchEvent } from '../watch/watch.ts'
import { whole } from '../words/figures.ts'
import type { Deps } from './spec.ts'

/** What a watch says: what happens, and hooks that failed. */
export type WatchNews = WatchEvent | { readonly kind: 'hook'; readonly at: Instant; readonly words: string }

/** Each event as a line of JSON. */
export function jsonLines(deps: Deps): (event: WatchNews) => void {
  return (event) => deps.stdout(`${redact(JSON.stringify(plainly(event)), givenKeys(deps.env))}\n`)
}

/** An event under the names that scripts rely on, its instants as text. */
export function plainly(event: WatchNews): object {
  const plain = Object.entries(event).map(([key, value]): [string, unknown] => [
    key,
    instants.has(key) && typeof value === 'number' ? formatInstant(value) : value,
  ])
  return Object.fromEntries(plain)
}

const instants: ReadonlySet<string> = new Set(['at', 'until', 'next'])

/** Each event as a line for people. */
export function lines(deps: Deps): (event: WatchNews) => void {
  return (event) => {
    const [part, words] = wordsOf(event)
    deps.stdout(redact(`${formatInstant(event.at)}  ${part.padEnd(8)}  ${words}\n`, givenKeys(deps.env)))
  }
}

function wordsOf(event: WatchNews): readonly [part: string, words: string] {
  switch (event.kind) {
    case 'metrics': {
      const { series, brought, requests, version, next, error } = event
      const then = next === null ? '' : `; next ${formatInstant(next).slice(11, 16)}`
      const came = `${whole(brought)} new points, ${whole(series)} series due, ${whole(requests)} requests`
      return ['metrics', `${came}, version ${version}${then}${error === null ? '' : `; ${error}`}`]
    }
    case 'registry': {
      const { brought, requests, version, error } = event
      const came = `${whole(brought)} events, ${whole(requests)} requests`
      return ['registry', `${came}, version ${version}${error === null ? '' : `; ${error}`}`]
    }
    case 'views':
      return ['views', `of version ${event.version}`]
    case 'trouble':
      return [event.of === 'tidy' ? 'views' : event.of, `rests until ${formatInstant(event.until)}: ${event.words}`]
    case 'clock':
      return ['clock', `went back ${whole(event.back)} s: everything is planned anew`]
    case 'hook':
      return ['hook', event.words]
    case 'ended':
      return ['ended', event.code === 0 ? 'all that was brought is committed' : `with exit code ${event.code}`]
    default:
      return event satisfies never
  }
}
