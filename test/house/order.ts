import { importsOf } from './source.ts'

/** Text of files by path from the project's root, with `/`. */
export type Files = ReadonlyMap<string, string>

/**
 * The floors of `src` from the ground up: a file imports from its own floor and from those before it in this list. The
 * two entries, `src/main.ts` and `src/index.ts`, stand above all of them. The sandbox stands apart: it takes from
 * `base` and `catalog` alone, and only commands know it.
 */
export const floors = ['base', 'catalog', 'lake', 'sources', 'query', 'trust', 'maintenance', 'interfaces'] as const

const entries: readonly string[] = ['src/main.ts', 'src/index.ts']
const sandboxFolder = 'src/sandbox/'
const commandFolder = 'src/interfaces/commands/'
const catalogRank = floors.indexOf('catalog')

/** Position of a file in the order of floors; undefined for a file outside the plan, and for the sandbox. */
export function rankOf(path: string): number | undefined {
  if (entries.includes(path)) return floors.length
  const folder = /^src\/([^/]+)\//.exec(path)?.[1]
  const rank = floors.findIndex((floor) => floor === folder)
  return rank === -1 ? undefined : rank
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

/**
 * Imports from a higher floor, to or from the sandbox where they may not be, of missing files, and files outside the
 * plan.
 */
export function orderBreaches(files: Files): readonly string[] {
  const homeless = [...files.keys()].filter((path) => /^src\/.*\.ts$/.test(path) && !isPlaced(path))
  const breaches = steps(files).flatMap((step) => {
    const reason = reasonAgainst(step, files)
    return reason === undefined ? [] : [`${step.from} imports ${step.to}: ${reason}`]
  })
  return [...homeless.map((path) => `${path}: outside the floors of test/house/order.ts`), ...breaches]
}

function isPlaced(path: string): boolean {
  return path.startsWith(sandboxFolder) || rankOf(path) !== undefined
}

function reasonAgainst({ from, to }: Step, files: Files): string | undefined {
  if (!files.has(to)) return 'no such file'
  if (!isPlaced(from) || !isPlaced(to)) return 'a file outside the floors'
  if (from.startsWith(sandboxFolder)) {
    const isShared = to.startsWith(sandboxFolder) || (rankOf(to) ?? Number.POSITIVE_INFINITY) <= catalogRank
    return isShared ? undefined : 'the sandbox takes from base and catalog only'
  }
  if (to.startsWith(sandboxFolder)) return from.startsWith(commandFolder) ? undefined : 'only commands know the sandbox'
  return (rankOf(to) ?? 0) > (rankOf(from) ?? 0) ? 'a higher floor' : undefined
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
