import { importsOf } from './source.ts'
import type { Files } from './order.ts'

const declaration =
  /^export (?:declare )?(?:async )?(?:function\*?|const|let|class|abstract class|interface|type|enum) ([A-Za-z_$][\w$]*)/gm

/** The names that each file of `src` exports where it declares them. */
function declared(files: Files): readonly (readonly [string, readonly string[]])[] {
  return [...files]
    .filter(([path]) => /^src\/.*\.ts$/.test(path))
    .map(([path, text]) => [path, [...text.matchAll(declaration)].flatMap(([, name]) => name ?? [])] as const)
}

/** Names that two files of `src` or more export: each means two things. */
export function sharedNames(files: Files): readonly string[] {
  const places = new Map<string, string[]>()
  for (const [path, names] of declared(files))
    for (const name of names) places.set(name, [...(places.get(name) ?? []), path])
  return [...places].filter(([, paths]) => paths.length > 1).map(([name, paths]) => `${name}: ${paths.join(', ')}`)
}

/** Exports of `src` that no other file names which imports theirs; a module that is loaded late may give all of its own. */
export function idleExports(files: Files): readonly string[] {
  const users = new Map<string, string[]>()
  const late = new Set<string>()
  for (const [from, text] of files)
    for (const { target, late: isLate } of /\.[mc]?ts$/.test(from) ? importsOf(text) : []) {
      if (!target.startsWith('.')) continue
      const path = new URL(target, `file:///${from}`).pathname.slice(1)
      users.set(path, [...(users.get(path) ?? []), text])
      if (isLate) late.add(path)
    }
  return declared(files).flatMap(([path, names]) =>
    late.has(path)
      ? []
      : names
          .filter((name) => !users.get(path)?.some((text) => new RegExp(`\\b${name}\\b`).test(text)))
          .map((name) => `${path}: ${name}`),
  )
}

/** Lines of the TypeScript in a folder, and how many files have them. */
export function sizeOf(files: Files, folder: string): { readonly lines: number; readonly files: number } {
  const texts = [...files].filter(([path]) => path.startsWith(folder) && /\.m?ts$/.test(path)).map(([, text]) => text)
  return { lines: texts.reduce((sum, text) => sum + text.split('\n').length - 1, 0), files: texts.length }
}

/** How many names `src` exports. */
export function exportedNames(files: Files): number {
  return declared(files).reduce((sum, [, names]) => sum + names.length, 0)
}
