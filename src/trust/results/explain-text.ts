import type { Engine } from '../../lake/store/engine.ts'
import { opening, statementsOf } from '../../query/statements.ts'
import { constantTexts, namesIn, treesOf } from '../../query/parse-tree.ts'

const created = /^CREATE (?:OR REPLACE )?(?:VIEW|MACRO)(?: IF NOT EXISTS)? ([\w."]+)/i

/** A field in which two records differ. */
export interface FieldChange {
  readonly field: string
  /** Value before and after; null if the record has no such field. */
  readonly from: unknown
  readonly to: unknown
}

/** A field of a metric's entry in the catalogue that changed. */
export interface CatalogueChange extends FieldChange {
  /** Path of the metric. */
  readonly path: string
}

/** Differences between two texts of the views that concern a query. */
export interface ViewsChange {
  /** Views and macros that the query names and whose SQL differs. */
  readonly objects: readonly string[]
  /** Differences in the catalogue for the metrics that the query names. */
  readonly catalogue: readonly CatalogueChange[]
}

/** Compares two texts of the views, as far as a query depends on them; `own` and `later` are sessions on both. */
export async function changedText(
  [earlier, later]: readonly [Engine, Engine],
  [from, to]: readonly [string, string],
  query: string,
): Promise<ViewsChange> {
  const before = objectsOf(from)
  const after = objectsOf(to)
  const named = namesIn(await treesOf(later, query))
  const objects = [...before].flatMap(([name, sql]) => {
    const last = name.slice(name.lastIndexOf('.') + 1).replaceAll('"', '')
    return named.has(last.toLowerCase()) && after.has(name) && after.get(name) !== sql ? [name] : []
  })
  return {
    objects,
    catalogue: await changedFacts(earlier, later, query),
  }
}

/** Splits a text into its views and macros by name, each with its statement. */
function objectsOf(script: string): Map<string, string> {
  return new Map(
    statementsOf(script).flatMap(({ text }): [string, string][] => {
      const sql = text.slice(opening(text) ?? 0)
      const name = created.exec(sql)?.[1]
      return name === undefined ? [] : [[name, sql]]
    }),
  )
}

/** Lists the texts in a query, such as the paths of metrics. */
export async function textsOf(engine: Engine, query: string): Promise<ReadonlySet<string>> {
  return new Set(constantTexts(await treesOf(engine, query)).map((text) => text.split('#')[0] ?? text))
}

async function changedFacts(earlier: Engine, later: Engine, query: string): Promise<CatalogueChange[]> {
  const texts = await textsOf(later, query)
  const from = await endpointsOf(earlier)
  const to = await endpointsOf(later)
  return [...texts].toSorted().flatMap((path) => {
    const changes = changedFields(from.get(path) ?? {}, to.get(path) ?? {})
    return changes.map((change) => ({ path, ...change }))
  })
}

/** Lists the fields in which two records differ. */
export function changedFields(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): FieldChange[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((field) => {
    const from = before[field] ?? null
    const to = after[field] ?? null
    return JSON.stringify(from) === JSON.stringify(to) ? [] : [{ field, from, to }]
  })
}

async function endpointsOf(engine: Engine): Promise<Map<string, Record<string, unknown>>> {
  const rows = await engine.rows<{ path: string; told: string }>(
    'SELECT metric AS path, CAST(to_json(e) AS VARCHAR) AS told FROM endpoints AS e',
  )
  return new Map(rows.map(({ path, told: factText }) => [path, JSON.parse(factText) as Record<string, unknown>]))
}

/** Part of a list that was found in a limited number of tries. */
interface SmallestPart<T> {
  readonly part: readonly T[]
  /** Whether nothing can be left out of it. */
  readonly minimal: boolean
}

/**
 * Finds a part of a list for which `does` is true, as for the whole, and of which nothing can be left out: halves are
 * tried, then smaller shares and the rest without them. So few of many are found in a number of tries that grows with
 * the logarithm of the many. After `most` tries the smallest part so far is returned, of which more could perhaps be
 * left out: it is not `minimal`.
 */
export async function smallestPart<T>(
  all: readonly T[],
  does: (part: readonly T[]) => Promise<boolean>,
  most: number,
): Promise<SmallestPart<T>> {
  let part = all
  let tries = 0
  for (let shares = 2; part.length > 1; ) {
    // In their order, of sizes that differ by one at most.
    const ends = Array.from({ length: shares + 1 }, (_, n) => Math.floor((n * part.length) / shares))
    const cut: (readonly T[])[] = ends.slice(1).map((end, n) => part.slice(ends[n], end))
    const rests = shares > 2 ? cut.map((share) => without(part, new Set(share))) : []
    let found: readonly T[] | undefined
    for (const candidate of [...cut, ...rests]) {
      if (tries++ >= most) return { part, minimal: false }
      if (!(await does(candidate))) continue
      found = candidate
      break
    }
    if (found === undefined && shares >= part.length) break
    shares = found === undefined ? Math.min(part.length, 2 * shares) : cut.includes(found) ? 2 : Math.max(2, shares - 1)
    part = found ?? part
  }
  return { part, minimal: true }
}

function without<T>(list: readonly T[], removed: ReadonlySet<T>): readonly T[] {
  return list.filter((element) => !removed.has(element))
}
