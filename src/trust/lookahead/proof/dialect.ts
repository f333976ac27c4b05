import { isObject } from '../../../base/json.ts'
import { words } from '../../../query/gate-lists.ts'
import { nodesOf } from '../../../query/parse-tree.ts'
import { type Node, part, parts, says, word } from './nodes.ts'

/**
 * Converts a plan of DuckDB 2 to the form of DuckDB 1.5, in whose words the rules are written: a comparison and a cast
 * are functions there, names are ends of paths, how far `lag` goes is an argument of it, and further filters are next
 * to those of a scan. A plan of 1.5 stays as it is.
 */
export function inOneDialect(plan: Node): Node {
  const fields = Object.fromEntries(Object.entries(plan).map(([name, member]) => [name, inside(member)]))
  const path = pathIn(fields, 'qname')
  const table = pathIn(fields, 'qualified_name')
  return {
    ...fields,
    ...(path.length > 0 && { name: path.at(-1) }),
    ...(table.length > 1 && { schema: table.at(-2), table: table.at(-1) }),
    ...(says(fields, 'multi_column_filters') && { filters: fields['multi_column_filters'] }),
    ...(word(fields, 'expression_class') === 'BOUND_FUNCTION' && asOperator(fields)),
    ...(/^WINDOW_(?:LAG|LEAD)$/.test(word(fields, 'type')) && asDistance(fields)),
  }
}

function inside(member: unknown): unknown {
  if (Array.isArray(member)) return member.map(inside)
  return isObject(member) ? inOneDialect(member) : member
}

function pathIn(node: Node, name: string): readonly string[] {
  const { path } = part(node, name)
  return Array.isArray(path) ? path.map(String) : []
}

function asOperator(call: Node): Node {
  const [left, right] = parts(call, 'children')
  if (word(call, 'type').startsWith('COMPARE_')) return { expression_class: 'BOUND_COMPARISON', left, right }
  if (word(call, 'type') !== 'OPERATOR_CAST') return {}
  return { expression_class: 'BOUND_CAST', child: left, try_cast: part(call, 'function_data')['try_cast'] }
}

function asDistance(call: Node): Node {
  const [value, offset, standard] = parts(call, 'children')
  return offset === undefined ? {} : { children: [value], offset_expr: offset, default_expr: standard }
}

/** Fields that plans of DuckDB 2 may have: those that the rules read, and those that change nothing of it. */
const understood: ReadonlySet<string> = words(`
  aggregate_index aggregate_type alias allow_out_of_order arguments binding bindings bound_columns boundary case_checks
  catalog catalog_name child child_type child_types children chunk_types column_count column_index column_indexes
  comparison condition conditions constant_integer constant_percentage cte_index ctename days default_expr delim_flipped
  depth direction distinct_targets distinct_type distinct_validity duplicate_eliminated_columns else_expr end end_expr
  exclude_clause expr_types expression expression_class expressions extra_info filter filtered_files filters first
  function_data function_name group_index grouping_functions grouping_sets groupings_index groups has_index
    has_serialize
  id index index_type input input_table_names input_table_types internal_types is_default_cast is_null is_operator
  is_percentage is_recurring join_type lambda_expr left left_projection_map limit_val lower lower_inclusive mark_index
  mark_types materialize method micros months multi_column_filters name names null_order offset_expr offset_type
  offset_val order_by order_bys order_type orders ordinality_idx parameter_count parameter_names partitions path
  predicate projected_input projection_ids projection_map qname qualified_name query_location query_location_length
  return_type return_types returned_types right right_projection_map sample_options sample_rate sample_size scale schema
  schema_name second seed setop_all source_ordinality sql_range_end_boundary sql_range_order_type
  sql_range_start_boundary start start_expr state_export table table_filters table_filters_by_projection table_index
  then_expr total_files try_cast type type_info union_all unnest_index unpruned_offset upper upper_inclusive value
  when_expr width window_index
`)

/** Fields of which the plan may contain one value only. */
const fixed: Readonly<Record<string, unknown>> = {
  source_ordinality: 'WITHOUT_ORDINALITY',
  state_export: 'NONE',
  sample_rate: -1,
}

/** Finds a word in a plan of DuckDB 2 that this code does not understand: it may undo what a rule concludes. */
export function strangeWord(plan: Node): string | undefined {
  const nodes = [...nodesOf(plan)]
  if (!nodes.some((node) => says(node, 'qname') || says(node, 'qualified_name'))) return undefined
  for (const node of nodes)
    for (const [name, member] of Object.entries(node)) {
      if (!says(node, name) || member === '') continue
      if (!understood.has(name) || (Object.hasOwn(fixed, name) && member !== fixed[name])) return name
    }
  return undefined
}
