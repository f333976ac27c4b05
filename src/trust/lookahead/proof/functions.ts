import { words } from '../../../query/gate-lists.ts'

/**
 * Functions whose answer follows from their arguments alone, of a single row; a function that is missing here proves
 * nothing.
 */
export const pureFunctions: ReadonlySet<string> = words(`
  !__postfix !~~ !~~* % & && * ** + - ->> -> / // <-> << <=> <@ >> @ @> ^ ^@ | || ~ ~~ ~~* ~~~
  abs acos acosh add age array_concat array_contains array_cat array_distinct array_extract array_filter array_has
  array_has_all array_has_any array_indexof array_intersect array_length array_position array_reverse_sort array_select
  array_slice array_sort array_to_json array_transform array_unique array_value array_where array_zip apply ascii asin
  asinh atan atan2 atanh bar base64 bin bit_count bit_length bit_position bitstring cardinality cbrt ceil ceiling
  century char_length character_length chr concat concat_ws contains cos cosh cot damerau_levenshtein date_diff
  date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear decade
  decode degrees divide element_at encode ends_with epoch epoch_ms epoch_ns epoch_us equi_width_bins era error even exp
  factorial filter flatten floor format format_bytes from_base64 from_binary from_hex from_json from_json_strict gamma
  gcd generate_series greatest greatest_common_divisor hamming hash hex hour ilike_escape instr isfinite isinf isnan
  isodow isoyear jaccard jaro_similarity jaro_winkler_similarity json_array json_array_length json_contains json_exists
  json_extract json_extract_path json_extract_path_text json_extract_string json_keys json_merge_patch json_object
  json_pretty json_quote json_structure json_transform json_transform_strict json_type json_valid json_value julian
  last_day lcase lcm least least_common_multiple left left_grapheme len length length_grapheme levenshtein lgamma
  like_escape list_apply list_cat list_concat list_contains list_cosine_distance list_cosine_similarity list_distance
  list_distinct list_dot_product list_element list_extract list_filter list_has list_has_all list_has_any list_indexof
  list_inner_product list_intersect list_pack list_position list_resize list_reverse_sort list_select
  list_slice list_sort list_transform list_unique list_value list_where list_zip ln log log10 log2 lower lpad ltrim
  make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz map map_concat map_contains
  map_entries map_extract map_extract_value map_from_entries map_keys map_values md5 md5_number microsecond millennium
  millisecond minute mismatches mod month monthname multiply nanosecond nextafter nfc_normalize not_ilike_escape
  not_like_escape octet_length ord pi position pow power prefix printf quarter radians range regexp_escape
  regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array repeat replace
  reverse right right_grapheme round row row_to_json rpad rtrim second sha1 sha256 sign signbit sin sinh split sqrt
  starts_with str_split str_split_regex strftime string_split string_split_regex string_to_array strip_accents strlen
  strpos strptime struct_concat struct_contains struct_extract struct_extract_at struct_has struct_indexof
  struct_insert struct_pack struct_position struct_update struct_values substr substring substring_grapheme subtract
  suffix tan tanh time_bucket timezone timezone_hour timezone_minute to_base to_base64 to_binary to_centuries to_days
  to_decades to_hex to_hours to_json to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters
  to_seconds to_timestamp to_weeks to_years translate trim trunc try_strptime typeof ucase unbin unhex unicode
  unpivot_list upper url_decode url_encode week weekday weekofyear xor year yearweek
`)

/** The engine's macros that are made of such functions. */
const pureMacros: ReadonlySet<string> = words(`
  array_append array_pop_back array_pop_front array_prepend array_push_back array_push_front array_reverse
  array_to_string array_to_string_comma_default date_add days_in_month fdiv fmod list_append list_prepend list_reverse
  map_contains_entry map_contains_value md5_number_lower md5_number_upper nullif round_even roundbankers split_part
`)

/** Aggregates whose answer follows from the rows of a group alone, up to the order in which they are met. */
export const pureAggregates: ReadonlySet<string> = words(`
  any_value arbitrary arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin
  array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count count_if count_star countif covar_pop covar_samp
  entropy favg first fsum group_concat histogram kahan_sum kurtosis kurtosis_pop last list listagg mad max max_by mean
  median min min_by mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept
  regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop stddev_samp string_agg sum
  sum_no_overflow sumkahan var_pop var_samp variance
`)

const windowFunctions: ReadonlySet<string> = words(`
  row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value last_value nth_value fill
`)

/** Table functions that follow from their arguments alone. */
const tableFunctions: ReadonlySet<string> = words('unnest range generate_series')

/** Macros of the lake in the shadow catalogue. */
const lakeMacros: ReadonlySet<string> = words(
  'calendar sessions resample bars pit_join pit_long pit_window pit_universe lake_version lake_digest',
)

const knownLists = [pureFunctions, pureMacros, pureAggregates, windowFunctions, tableFunctions, lakeMacros]

/**
 * Whether a text may call this function. The plan is not enough to know: the binder puts the value of a variable or a
 * setting in the place of its call, and the plan shows a constant.
 */
export function isPure(name: string): boolean {
  return knownLists.some((names) => names.has(name))
}
