import { importsOf } from './source.ts'

/** Text of files by path from the project's root, with `/`. */
export type Files = ReadonlyMap<string, string>

/**
 * The rooms from the ground up: a file imports from its own room and from lower ranks, never from a room of its own
 * rank. A file alone in `src/` is a room; what no line names has no place in the house.
 */
export const ranks: Readonly<Record<string, number>> = {
  'src/base/errors.ts': 0,
  'src/base/json.ts': 0,
  'src/base/shape.ts': 1,
  'src/base/stopwatch.ts': 0,
  'src/base/suggestion.ts': 0,
  'src/base/time.ts': 0,
  'src/base/visible.ts': 0,
  'src/base/merkle/': 1,
  'src/base/': 1,
  'src/base/': 1,
  'src/base/windows.ts': 1,
  'src/base/intervals-sql.ts': 1,
  'src/base/kinds.ts': 1,
  'src/catalog/': 2,
  'src/catalog/': 3,
  'src/lake/store/': 4,
  'src/sources/http/': 4,
  'src/lake/ledger/': 5,
  'src/sources/points/': 6,
  'src/sources/metrics/': 7,
  'src/sources/registry/': 7,
  'src/trust/heads/': 8,
  'src/query/views/': 8,
  'src/maintenance/upkeep/': 9,
  'src/sources/provider-check/': 8,
  'src/sources/user-files/': 8,
  'src/query/': 10,
  'src/trust/lookahead/': 11,
  'src/trust/results/': 12,
  'src/maintenance/publish/': 10,
  'src/trust/certificate/': 13,
  'src/interfaces/report/': 13,
  'src/trust/features/': 14,
  'src/maintenance/watch/': 14,
  'src/interfaces/server/': 15,
  'src/interfaces/page/': 15,
  'src/index.ts': 18,
  'src/sandbox/': 3,
  'src/interfaces/commands/': 17,
  'src/interfaces/cli/': 16,
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
  if (guest === 'src/sandbox/' && home !== 'src/interfaces/commands/') return 'only commands know the sandbox'
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
