/**
 * Table functions of the engine that a query may call: they only read, and none runs SQL from a text, or shows or
 * changes settings. Any function not listed is refused, also one that a later engine adds.
 */
export const readingFunctions: ReadonlySet<string> = words(`
  range generate_series unnest repeat repeat_row summary seq_scan query_table json_each json_tree histogram
  histogram_values read_parquet parquet_scan parquet_metadata parquet_file_metadata parquet_kv_metadata
  parquet_schema parquet_full_metadata parquet_bloom_probe read_csv read_csv_auto sniff_csv read_json
  read_json_auto read_json_objects read_json_objects_auto read_ndjson read_ndjson_auto read_ndjson_objects
  read_text read_blob glob duckdb_columns duckdb_constraints duckdb_databases duckdb_dependencies
  duckdb_functions duckdb_indexes duckdb_keywords duckdb_memory duckdb_optimizers duckdb_schemas
  duckdb_extensions duckdb_tables duckdb_types duckdb_variables duckdb_views pragma_collations
  pragma_database_size pragma_platform pragma_show pragma_storage_info pragma_table_info pragma_user_agent
  pragma_version icu_calendar_names pg_timezone_names
`)

/** Table functions of the engine that are refused, as of the version in use; a test proves that each is judged. */
export const refusedFunctions: ReadonlySet<string> = words(`
  query json_execute_serialized_sql sql_auto_complete read_duckdb arrow_scan arrow_scan_dumb enable_logging
  disable_logging truncate_duckdb_logs duckdb_logs duckdb_logs_parsed duckdb_log_contexts enable_profiling
  disable_profiling duckdb_profiling_settings checkpoint force_checkpoint check_peg_parser enable_peg_parser
  disable_peg_parser duckdb_settings duckdb_temporary_files duckdb_external_file_cache duckdb_secrets
  duckdb_secret_types which_secret duckdb_prepared_statements duckdb_sequences duckdb_table_sample
  duckdb_connection_count duckdb_approx_database_count pragma_metadata_info duckdb_coordinate_systems
  test_all_types test_vector_types
`)

/**
 * Scalar functions that write to a log, bind SQL from a text, reveal facts of whole files that no cut hides, or sleep.
 */
export const refusedScalars: ReadonlySet<string> = new Set([
  'write_log',
  'json_serialize_plan',
  'stats',
  'pg_sleep',
  'sleep_ms',
])

/** The settings that a query may ask for; the others tell paths. */
export const reportedSettings: ReadonlySet<string> = new Set(['timezone', 'threads', 'memory_limit', 'max_memory'])

/** The steps of a plan that only compute, read tables, or fill temporary ones. */
export const computingSteps: ReadonlySet<string> = words(`
  seq_scan table_scan index_scan dummy_scan column_data_scan chunk_scan expression_scan cte_scan rec_cte_scan
  recursive_cte_scan recursive_recurring_cte_scan delim_scan positional_scan empty_result projection filter
  unnest pivot inout_function union ungrouped_aggregate simple_aggregate hash_group_by perfect_hash_group_by
  partitioned_aggregate window streaming_window order_by top_n limit streaming_limit limit_percent
  reservoir_sample streaming_sample hash_join nested_loop_join blockwise_nl_join cross_product
  piecewise_merge_join ie_join left_delim_join right_delim_join delim_join positional_join asof_join cte
  recursive_cte rec_cte recursive_key_cte rec_key_cte result_collector insert batch_insert update delete
  create_table_as batch_create_table_as set_variable
`)

/** The table functions that read neither files nor the engine's catalogue, and tables of the session. */
export const computingFunctions: ReadonlySet<string> = words(`
  range generate_series unnest repeat repeat_row summary seq_scan json_each json_tree histogram histogram_values
  icu_calendar_names pg_timezone_names
`)

/**
 * Catalogue functions for clients who see views and macros only, each with the columns that stay hidden: those with the
 * texts.
 */
export const hiddenColumns: Readonly<Record<string, readonly string[]>> = {
  duckdb_tables: ['sql'],
  duckdb_views: ['sql'],
  duckdb_columns: ['column_default'],
  duckdb_functions: ['macro_definition'],
}

/** The steps of a bound plan that compute. */
export const boundSteps: ReadonlySet<string> = words(
  `
  projection filter aggregate_and_group_by window unnest limit order_by top_n distinct sample pivot get chunk_get
  delim_get expression_get dummy_scan empty_result cte_ref join delim_join comparison_join any_join cross_product
  positional_join asof_join dependent_join union except intersect recursive_cte materialized_cte
`.replaceAll(/\w+/g, (name) => `LOGICAL_${name.toUpperCase()}`),
)

/** Splits the words of a list that is written as one text. */
export function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}
