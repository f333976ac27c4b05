import { importsOf } from './source.ts'

/** Text of files by path from the project's root, with `/`. */
export type Files = ReadonlyMap<string, string>

/**
 * The rooms from the ground up: a file imports from its own room and from lower ranks, never from a room of its own
 * rank. A file alone in `src/` is a room; what no line names has no place in the house.
 */
export const ranks: Readonly<Record<string, number>> = {
  'src/errors.ts': 0,
  'src/json.ts': 0,
  'src/shape.ts': 1,
  'src/stopwatch.ts': 0,
  'src/suggestion.ts': 0,
  'src/time.ts': 0,
  'src/visible.ts': 0,
  'src/merkle/': 1,
  'src/words/': 1,
  'src/secrets/': 1,
  'src/windows.ts': 1,
  'src/intervals-sql.ts': 1,
  'src/kinds.ts': 1,
  'src/catalog/': 2,
  'src/config/': 3,
  'src/store/': 4,
  'src/net/': 4,
  'src/ledger/': 5,
  'src/points/': 6,
  'src/metrics/': 7,
  'src/registry/': 7,
  'src/heads/': 8,
  'src/views/': 8,
  'src/upkeep/': 9,
  'src/preflight/': 8,
  'src/own/': 8,
  'src/query/': 10,
  'src/lookahead/': 11,
  'src/results/': 12,
  'src/publish/': 10,
  'src/certificate/': 13,
  'src/report/': 13,
  'src/features/': 14,
  'src/watch/': 14,
  'src/door/': 15,
  'src/page/': 15,
  'src/index.ts': 18,
  'src/sandbox/': 3,
  'src/commands/': 17,
  'src/call/': 16,
  'src/main.ts': 19,
}

/** The room of a file: its folder in `src/`, or the file itself where it stands alone. */
export function roomOf(path: string): string | undefined {
  const room = /^src\/(?:[^/]+\/|[^/]+$)/.exec(path)?.[0]
  return room !== undefined && room in ranks ? room : undefined
}

/** The rank of a file; undefined for one that no room holds. */
export function rankOf(path: string): number | undefined {
  const room = roomOf(path)
  return room === undefined ? undefined : ranks[room]
}

interface Step {
  readonly from: string
  readonly to: string
}

/** Every import between files of the project. */
function steps(files: Files): readonly Step[] {
  return [...files].flatMap(([from, text]) => {
    if (!/^src\/.*\.ts$/.test(from)) return []
    return importsOf(text)
      .filter(({ target }) => target.startsWith('.'))
      .map(({ target }) => ({ from, to: resolve(from, target) }))
  })
}

function resolve(from: string, target: string): string {
  return new URL(target, `file:///${from}`).pathname.slice(1)
}

/** Imports upwards, sideways between rooms, out of the house, and files without a room. */
export function orderBreaches(files: Files): readonly string[] {
  const homeless = [...files.keys()].filter((path) => /^src\/.*\.ts$/.test(path) && rankOf(path) === undefined)
  const breaches = steps(files).flatMap((step) => {
    const why = breach(step, files)
    return why === undefined ? [] : [`${step.from} imports ${step.to}: ${why}`]
  })
  return [...homeless.map((path) => `${path}: no room in test/house/order.ts`), ...breaches]
}

function breach({ from, to }: Step, files: Files): string | undefined {
  const [own, other] = [rankOf(from), rankOf(to)]
  if (!files.has(to)) return 'no such file'
  if (own === undefined || other === undefined) return 'a file without a room'
  const [home, guest] = [roomOf(from), roomOf(to)]
  if (home === guest) return undefined
  if (home === 'src/sandbox/' && other > 2) return 'the sandbox shares only time and the catalogue with the program'
  if (other > own) return 'a step up'
  if (guest === 'src/sandbox/' && home !== 'src/commands/') return 'only commands know the sandbox'
  return other === own ? 'a step sideways' : undefined
}

/** The files of `src` that are loaded before the first line of a file runs, itself among them. */
export function loadedBy(files: Files, entry: string): ReadonlySet<string> {
  const loaded = new Set<string>()
  const visit = (path: string): void => {
    const text = files.get(path)
    if (text === undefined || loaded.has(path)) return
    loaded.add(path)
    for (const { target, typeOnly, late } of importsOf(text))
      if (target.startsWith('.') && !typeOnly && !late) visit(resolve(path, target))
  }
  visit(entry)
  return loaded
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
