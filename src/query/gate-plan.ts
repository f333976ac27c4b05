import { type Engine, type Prepared, quoteName } from '../lake/store/engine.ts'
import type { LakeError } from '../base/errors.ts'
import { boundSteps, computingFunctions, hiddenColumns, refusedScalars } from './gate-lists.ts'
import { boundPlan, describedIn } from './parse-tree.ts'

type Node = { readonly [name: string]: unknown }

/**
 * Judges the bound plan of a SELECT, as the second check: every scan of a file must bear the mark that only the
 * session's own views and macros have, and every scan of points must stand under the cut. It does not rely on the words
 * of the SELECT. No function may reveal the part of a file behind the cut. Returns the plan, with a projection around
 * it that shows the columns.
 */
export async function judgeScans(engine: Engine, select: string, mark: string, refused: (what: string) => LakeError) {
  const plan = await boundPlan(engine, `SELECT * FROM (${select}\n) AS answer`)
  if ('why' in plan) {
    // The engine reports in its own words, with the place, what cannot be bound.
    await engine.prepared(select)
    throw refused(`a statement without a plan (${plan.why})`)
  }
  let answered = false
  const waiting: (readonly [node: unknown, cut: boolean])[] = [[plan.plan, false]]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [node, cut] = next
    if (typeof node !== 'object' || node === null) continue
    const { type, expressions, expression_class: kind, name } = node as Node
    if (kind === 'BOUND_FUNCTION' && refusedScalars.has(String(name))) throw refused(String(name))
    const step = typeof type === 'string' && type.startsWith('LOGICAL_') ? type : undefined
    if (step === 'LOGICAL_CHUNK_GET') answered = true
    if (step !== undefined && !boundSteps.has(step)) throw refused(step.slice(8).toLowerCase())
    const what = step === 'LOGICAL_GET' ? strangeScan(node as Node, cut, mark) : undefined
    if (what !== undefined) throw refused(what)
    const below = cut || (step === 'LOGICAL_FILTER' && JSON.stringify(expressions).includes(mark))
    for (const part of Object.values(node)) waiting.push([part, below])
  }
  // A DESCRIBE is answered while it is bound, and the plan shows nothing of what it describes: that is judged alone.
  const described = answered ? await describedIn(engine, select) : []
  if (answered && described.length === 0) throw refused('a statement without a plan')
  for (const plan of described) await judgeScans(engine, plan, mark, refused)
  return plan.plan
}

/**
 * Derives the columns of a judged SELECT from its plan, because the engine would bind it once more. Undefined if that
 * is necessary.
 */
export async function preparedBy(engine: Engine, { expressions }: Node): Promise<Prepared | undefined> {
  const columns = (expressions as readonly Node[]).map(({ alias, return_type: type }) => {
    const text = typeSql(type as Node)
    return text === undefined || alias === '' ? undefined : `CAST(NULL AS ${text}) AS ${quoteName(String(alias))}`
  })
  return columns.includes(undefined) ? undefined : await engine.prepared(`SELECT ${columns.join(', ')}`)
}

/** Formats a type as SQL; undefined for the rarer ones. */
function typeSql({ id, type_info: typeInfo }: Node): string | undefined {
  if (typeInfo === null) return /^[A-Z][A-Z_ ]*$/.test(String(id)) ? String(id) : undefined
  const { alias, width, scale, child_type: child, child_types: children } = typeInfo as Node
  if (alias !== '') return alias === 'JSON' ? alias : undefined
  if (id === 'DECIMAL') return `DECIMAL(${Number(width)}, ${Number(scale)})`
  const inner = id === 'LIST' ? typeSql(child as Node) : undefined
  if (inner !== undefined) return `${inner}[]`
  const entries = id === 'STRUCT' ? (children as readonly Node[]) : []
  const parts = entries.map(({ first, second }) => [quoteName(String(first)), typeSql(second as Node)])
  return parts.length === 0 || parts.flat().includes(undefined)
    ? undefined
    : `STRUCT(${parts.map((part) => part.join(' ')).join(', ')})`
}

/** Names the forbidden source of a scan; undefined if the scan is allowed. */
function strangeScan(node: Node, cut: boolean, mark: string): string | undefined {
  const name = String(node['name'])
  if (computingFunctions.has(name)) return undefined
  const names = node['names'] as readonly string[]
  const hidden = hiddenColumns[name]
  if (hidden !== undefined) {
    const read = (node['column_indexes'] as readonly Node[]).map(({ index }) => names[Number(index)] ?? '')
    return read.some((column) => hidden.includes(column)) ? name : undefined
  }
  const options = (node['function_data'] as Node | undefined)?.['parquet_options'] as Node | undefined
  const marked = (options?.['file_options'] as Node | undefined)?.['filename_column'] === mark
  if (name !== 'read_parquet' || !marked) return name
  return cut || !(names.includes('available_at') && names.includes('v')) ? undefined : 'points that are not cut'
}
