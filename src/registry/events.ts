import type { Lines } from './lines.ts'
import type { FeedEvent } from './bodies.ts'
import { observeEvent, type Poll } from './history.ts'
import { textHash } from './record.ts'

/** What takes events into a poll: those that repeat the last one of their entity (`last`) leave no line and are no news. */
export function eventTaker(poll: Poll, lines: Lines, last: Map<string, string>): (event: FeedEvent) => boolean {
  let position = 0
  return (event) => {
    const { type, resource, id, op, incoming, text } = event
    const name = `${type} ${id}`
    const hash = textHash(incoming ? incoming.hash : 'deleted')
    observeEvent(poll, event)
    if (last.get(name) === hash) return false
    last.set(name, hash)
    lines.add('events', { position: position++, entity_type: type, resource, entity_id: id, op, hash, event: text })
    return true
  }
}
