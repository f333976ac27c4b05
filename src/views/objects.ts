import { textsIn } from '../store/sql.ts'

const folder = new URL('sql/', import.meta.url)

/** One object of the lake as its file tells it, placeholders not yet replaced. */
export interface ObjectText {
  /** `points`, `history.issuers`, `pit_join`. */
  readonly name: string
  readonly kind: 'schema' | 'view' | 'macro'
  /** The name of its file. */
  readonly file: string
  /** The comments at the top of its file. */
  readonly header: string
  /** Everything after the header: the CREATE statement and the comments. */
  readonly text: string
  /** Of a view: what stands between AS and the first `;` at the end of a line. */
  readonly body: string
}

/** The objects in the order of their files' numbers; a text with `{{resource}}` gives one for each of these tables of the registry. */
export function readObjects(tables: readonly string[]): ObjectText[] {
  return textsIn(folder).flatMap(([file, whole]) => {
    const [header = ''] = /^(?:--[^\n]*\n|\s*\n)+/.exec(whole) ?? []
    const text = whole.slice(header.length)
    const texts = text.includes('{{resource}}') ? tables.map((table) => text.replaceAll('{{resource}}', table)) : [text]
    return texts.map((one) => objectOf(file, header, one))
  })
}

/** A piece of SQL that statements share, without the comments at its top. */
export function partOf(name: string): string {
  const found = textsIn(new URL('parts/', folder)).find(([file]) => file === `${name}.sql`)
  if (found === undefined) throw new RangeError(`src/views/sql/parts/ has no ${name}.sql`)
  return found[1].replace(/^(?:--[^\n]*\n)+/, '').trimEnd()
}

const create = /^CREATE (?:OR REPLACE )?(SCHEMA|VIEW|MACRO)(?: IF NOT EXISTS)? ([\w."]+)/i

function objectOf(file: string, header: string, text: string): ObjectText {
  const [, kind = '', name] = create.exec(text) ?? []
  if (name === undefined) throw new RangeError(`src/views/sql/${file} does not begin with a CREATE statement`)
  const [, body] = /\sAS\s+([\s\S]*?);[^\S\n]*(?:\n|$)/i.exec(text) ?? []
  if (body === undefined && kind.toUpperCase() !== 'SCHEMA') throw new RangeError(`src/views/sql/${file} says no AS`)
  return {
    name: name.replaceAll('"', ''),
    kind: kind.toLowerCase() as ObjectText['kind'],
    file,
    header,
    text: text.trimEnd(),
    body: body ?? '',
  }
}
