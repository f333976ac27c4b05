import { quote } from '../store/engine.ts'
import { clockWords } from './compile.ts'
import { readObjects } from './objects.ts'
import { fillIn } from './template.ts'

/** Where the real relation of stored points stands in the SQL that takes its place. */
export const realPoints = '{{real}}'

/**
 * The text of a `lake.sql` with other points: wherever its views and macros read stored points, `points` is read instead, a
 * SELECT of the same columns with `{{real}}` once for the relation over the files. The cuts by `as_of` and `observed_as_of`
 * come behind it, and comments are left out. Undefined where the text is of a program that told points otherwise.
 */
export function alteredScript(script: string, points: string): string | undefined {
  const { head, tail } = frameOfPoints()
  const [before = '', after, ...more] = points.split(realPoints)
  if (after === undefined || more.length > 0) throw new RangeError(`one ${realPoints} was to be in ${points}`)
  let altered = script
  let found = 0
  // As it stands in views, and inside the texts from which the joins make theirs.
  for (const spelt of [(text: string): string => text, (text: string): string => quote(text).slice(1, -1)]) {
    const parts = altered.split(spelt(head))
    if (altered.split(spelt(tail)).length !== parts.length) return undefined
    found += parts.length - 1
    altered = parts.join(spelt(`${head}(${before}`)).replaceAll(spelt(tail), () => spelt(`${after})${tail}`))
  }
  return found === 0 ? undefined : altered.replaceAll(/^COMMENT ON [^\n]*;$\n?/gm, '')
}

/** The relation over the files of points that a `lake.sql` reads, for FROM; undefined where its program told points otherwise. */
export function relationOfPoints(script: string): string | undefined {
  const { head, tail } = frameOfPoints()
  const [relation, rest] = script.split(head)[1]?.split(tail) ?? []
  return rest === undefined ? undefined : relation
}

/** What stands around the relation of stored points in each text that reads them; nothing in it depends on a lake. */
function frameOfPoints(): { readonly head: string; readonly tail: string } {
  const object = readObjects([]).find(({ kind, name }) => kind === 'view' && name === 'points')
  if (!object) throw new RangeError('src/views/sql/ has no view points')
  const mark = '\u0002'
  const text = fillIn('points', object.body, (word, argument) =>
    word === 'files' ? mark : clockWords[word]?.(argument),
  )
  const [head = '', tail = ''] = text.split(mark)
  return { head, tail }
}
