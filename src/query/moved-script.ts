import { isWritable } from '../lake/store/disk.ts'
import { isThere, textOf } from '../lake/store/files.ts'
import { literalPath } from '../lake/store/engine.ts'
import { inLake, places } from '../lake/store/layout.ts'
import { readManifest } from './views/manifest.ts'

/**
 * Reads the views of a lake that was moved or copied to where nothing can be written, as a text that names the files
 * where they are now; undefined for any other lake, whose views are in the folder, or can be.
 */
export async function movedScript(folder: string): Promise<string | undefined> {
  const text = isWritable(folder) ? undefined : await textOf(inLake(folder, places.script))
  if (text === undefined) return undefined
  const manifest = await readManifest(folder, ['script'])
  // The manifest cannot be rebuilt here; the first line of a script names its folder, too.
  const built = manifest?.folder ?? folderOfScript(text)
  if (built === undefined || (built === folder && isThere(inLake(folder, places.database)))) return undefined
  return moveScript(text, built, folder)
}

/** Reads the folder for which a script of views was made from its first line; undefined if it does not name one. */
export function folderOfScript(script: string): string | undefined {
  return /^-- The lake in (.*) as of version \d+:/.exec(script)?.[1]
}

/** Quotes of a text, of a text within a text, and so on: at each level every quote stands twice. */
const quotesByLevel = [1, 2, 4, 8].map((count) => "'".repeat(count))

/**
 * Moves a script of views to another folder: its first line and the paths in it. The path of a file is a pattern, that
 * of the folder is none. Python has the same rule (`folder.py`).
 */
export function moveScript(script: string, built: string, folder: string): string {
  const spelled = (path: string, quotes: string): string => path.replaceAll("'", quotes.repeat(2))
  const escapePattern = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
  const starts = quotesByLevel.map((quotes) => {
    const paths = [built, literalPath(built)].map((path) => escapePattern(spelled(path, quotes)))
    return `${quotes}(?:${paths.join('|')})(?=/|${quotes}(?!${quotes}))`
  })
  const head = `^-- The lake in ${escapePattern(built)}(?= as of version )`
  return script.replaceAll(new RegExp(`${head}|(?<!')(?:${starts.join('|')})`, 'g'), (found, offset: number) => {
    const [quotes] = /^'+/.exec(found) ?? []
    if (quotes === undefined) return `-- The lake in ${folder}`
    const isFile = script[offset + found.length] === '/'
    return quotes + spelled(isFile ? literalPath(folder) : folder, quotes)
  })
}
