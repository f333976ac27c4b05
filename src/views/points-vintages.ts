import { quote } from '../store/engine.ts'
import type { ObjectText } from './template.ts'

/**
 * The text of the view `points` in a lake in which points of these metrics may have several vintages: of those the last
 * that is known, of all others what is there. Any other object stays as it is, and so does the view where there are none.
 */
export function withVintages(object: ObjectText, revisable: readonly string[]): ObjectText {
  if (revisable.length === 0 || object.kind !== 'view' || object.name !== 'points') return object
  const { body, text } = object
  const names = `(${revisable.map(quote).join(', ')})`
  const both = `${body}
  AND stored.metric NOT IN ${names}
UNION ALL
${body}
  AND stored.metric IN ${names}
{{part last_vintage}}`
  return { ...object, body: both, text: text.replace(body, () => both) }
}
