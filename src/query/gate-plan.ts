import type { Engine } from '../store/engine.ts'
import type { LakeError } from '../errors.ts'
import { boundSteps, computingFunctions, hiddenColumns, refusedScalars } from './gate-lists.ts'
import { boundPlan, describedIn } from './tree.ts'

type Node = { readonly [name: string]: unknown }

/**
 * The second wall: of the bound plan of a SELECT every scan of a file bears the mark that only the session's own views and
 * macros were given, and one of points stands under the cut. Nothing of its words is relied upon. No function tells of
 * a file what lies behind the cut.
 */
export async function judgeScans(
  engine: Engine,
  select: string,
  mark: string,
  refused: (what: string) => LakeError,
): Promise<void> {
  const told = await boundPlan(engine, select)
  if ('why' in told) {
    // The engine says in its own words, with the place, what cannot be bound.
    await engine.prepared(select)
    throw refused(`a statement without a plan (${told.why})`)
  }
  let answered = false
  const waiting: (readonly [node: unknown, cut: boolean])[] = [[told.plan, false]]
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
  for (const one of described) await judgeScans(engine, one, mark, refused)
}

/** What a scan reads that it may not; undefined where it may. */
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
