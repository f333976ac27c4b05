import { importsOf } from './source.ts'

/** Text of files by path from the project's root, with `/`. */
export type Files = ReadonlyMap<string, string>

/**
 * The order of the rooms: a file imports from lower numbers only, and from its own folder. A file alone in `src/` is
 * a room of its own. The longest matching prefix counts; what matches none has no place in the house.
 */
export const ranks: Readonly<Record<string, number>> = {
  'src/errors.ts': 0,
  'src/time.ts': 0.1,
  'src/suggestion.ts': 0.1,
  'src/visible.ts': 0.1,
  'src/spellings.ts': 0.05,
  'src/secrets.ts': 0.1,
  'src/windows.ts': 0.2,
  'src/intervals-sql.ts': 0.2,
  'src/catalog/': 1,
  'src/refusals.ts': 2,
  'src/config.ts': 2,
  'src/settings.ts': 2.1,
  'src/plan.ts': 2.2,
  'src/merge-plan.ts': 2.2,
  'src/fetch/': 2.3,
  'src/lake/layout.ts': 2.3,
  'src/registry/': 2.3,
  'src/page/': 2.3,
  'src/sandbox/world/': 2.3,
  'src/fetch/body.ts': 2.4,
  'src/fetch/http.ts': 3,
  'src/fetch/ask.ts': 3,
  'src/lake/': 3,
  'src/sandbox/': 3,
  'src/lake/convert': 4,
  'src/lake/views': 4,
  'src/lake/merge': 4,
  'src/sandbox/server.ts': 4,
  'src/query/': 4.5,
  'src/jobs/': 5,
  'src/index.ts': 6,
  'src/commands/': 6,
  'src/main.ts': 7,
}

/** The rank of a file; undefined for one that the table does not know. */
export function rankOf(path: string): number | undefined {
  const prefixes = Object.keys(ranks).filter((prefix) => path.startsWith(prefix))
  const longest = prefixes.toSorted((a, b) => b.length - a.length)[0]
  return longest === undefined ? undefined : ranks[longest]
}

interface Step {
  readonly from: string
  readonly to: string
  readonly typeOnly: boolean
}

function roomOf(path: string): string {
  const [, first = ''] = path.split('/')
  return first
}

/** Every import between files of the project. */
function steps(files: Files): readonly Step[] {
  return [...files].flatMap(([from, text]) => {
    if (!/^src\/.*\.ts$/.test(from)) return []
    return importsOf(text)
      .filter(({ target }) => target.startsWith('.'))
      .map(({ target, typeOnly }) => ({ from, to: resolve(from, target), typeOnly }))
  })
}

function resolve(from: string, target: string): string {
  return new URL(target, `file:///${from}`).pathname.slice(1)
}

/** Imports upwards, sideways between rooms, through a wall, out of the house, and files without a rank. */
export function orderBreaches(files: Files): readonly string[] {
  const homeless = [...files.keys()].filter((path) => /^src\/.*\.ts$/.test(path) && rankOf(path) === undefined)
  const breaches = steps(files).flatMap((step) => {
    const why = breach(step, files)
    return why === undefined ? [] : [`${step.from} imports ${step.to}: ${why}`]
  })
  return [...homeless.map((path) => `${path}: no rank in test/house/order.ts`), ...breaches]
}

function breach({ from, to, typeOnly }: Step, files: Files): string | undefined {
  const [own, other] = [rankOf(from), rankOf(to)]
  if (!files.has(to)) return 'no such file'
  if (own === undefined || other === undefined) return 'a file without a rank'
  const [home, guest] = [roomOf(from), roomOf(to)]
  if (other > own) return 'a step up'
  if (home === guest) return undefined
  if (guest === 'sandbox' && home !== 'commands') return 'only commands know the sandbox'
  if (home === 'sandbox' && other > 1) return 'the sandbox shares only time and the catalogue with the program'
  // The next stage imports the type of the stage before, never its functions.
  if (typeOnly) return undefined
  if (other === own) return 'a step sideways'
  if ((home === 'fetch' && guest === 'lake') || (home === 'lake' && guest === 'fetch')) {
    return 'fetch and lake meet in jobs only'
  }
  return undefined
}

/** Each ring of imports once, as `a -> b -> a`; imports of types count too. */
export function cycles(files: Files): readonly string[] {
  const targets = new Map<string, Set<string>>()
  for (const { from, to } of steps(files)) targets.set(from, (targets.get(from) ?? new Set()).add(to))
  const done = new Set<string>()
  const found: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) found.push([...trail.slice(start), path].join(' -> '))
    if (start >= 0 || done.has(path)) return
    for (const next of targets.get(path) ?? []) visit(next, [...trail, path])
    done.add(path)
  }
  for (const path of targets.keys()) visit(path, [])
  return found
}
