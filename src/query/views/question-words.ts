import type { Sql } from '../../base/intervals-sql.ts'
import { quote } from '../../lake/store/engine.ts'
import { units } from '../../base/suggestion.ts'

/** Words of `question_notes` and `question_asked`; none is made from values of a caller. */
export const askedWords = {
  note_words: noteWordsSql,
  nearest: (parts: string) => nearestSql(...(parts.split(' ') as [string, string])),
  nearest_path: (parts: string) => nearestPathSql(...(parts.split(' ') as [string, string])),
  /** Lists the values that a column is compared with. */
  compared_values: (column: string) =>
    `coalesce(list(DISTINCT text ORDER BY text) FILTER (column_name = ${quote(column)}), [])`,
} as const

/**
 * Builds the SQL of the known word nearest to a misspelt one, as a list of at most one: the same but for its case, else
 * `suggestion`.
 */
function nearestSql(word: Sql, candidates: Sql): Sql {
  const same = `list_filter(${candidates}, lambda near_name: lower(near_name) = lower(${word}))`
  const long = `list_filter(${candidates}, lambda near_name: ${lengthSql('near_name')} = ${lengthSql(word)})`
  return (
    `CASE WHEN len(${same}) > 0 THEN ${same}[:1] WHEN len(${long}) > 0 THEN ${long}[:1] ELSE ` +
    `${suggestedSql(word, candidates)} END`
  )
}

/** Builds the SQL of the seconds of a length of time, however its unit is spelt; NULL for other words. */
function lengthSql(word: Sql): Sql {
  const unit = `regexp_extract(${word}, '[A-Za-z]+$')`
  const spelt = units.map(
    ([{ source, flags }, seconds]) =>
      `WHEN regexp_matches(${unit}, ${quote(source)}, ${quote(flags || 'c')}) THEN ${seconds}`,
  )
  return `CASE WHEN regexp_matches(${word}, '^\\d*\\s*[A-Za-z]+$') THEN
    coalesce(TRY_CAST(regexp_extract(${word}, '^\\d*') AS BIGINT), 1) * CASE ${spelt.join(' ')} END END`
}

function suggestedSql(word: Sql, candidates: Sql): Sql {
  const scored = `list_transform(${candidates}, lambda near_name, near_place:
    {'edits': damerau_levenshtein(lower(${word}), lower(near_name)), 'place': near_place, 'name': near_name})`
  return `list_transform(list_filter(list_sort(${scored})[:1], lambda near_one: near_one.edits <= greatest(1, length(${word}) // 3)),
    lambda near_one: near_one.name)`
}

/** Finds up to three paths that may have been meant, as `nearPaths` does: by their words, else by the whole name. */
function nearestPathSql(typed: Sql, paths: Sql): Sql {
  const words = (text: Sql): Sql =>
    `list_filter(regexp_split_to_array(lower(${text}), '[^a-z0-9]+'), lambda near_word: length(near_word) > 1 ` +
    `AND near_word <> 'pit')`
  const slip =
    'length(near_word) >= 4 AND abs(length(near_word) - length(near_part)) <= 1 AND ' +
    'damerau_levenshtein(near_word, near_part) <= 1'
  const fits = (how: Sql): Sql =>
    `len(list_filter(near_typed, lambda near_word: len(list_filter(near_parts, lambda near_part: ${how})) > 0))`
  const scored = `list_transform(${paths}, lambda near_path: list_transform([${words('near_path')}], lambda near_parts: {
    'misses': len(near_typed) - ${fits('starts_with(near_part, near_word)')},
    'lost': len(near_typed) - ${fits(`starts_with(near_part, near_word) OR (${slip})`)},
    'length': length(near_path), 'name': near_path})[1])`
  const best = `list_transform([${words(typed)}], lambda near_typed: CASE WHEN len(near_typed) = 0 THEN NULL
    ELSE list_sort(list_filter(${scored}, lambda near_one: near_one.lost = 0))[:3] END)[1]`
  return `list_transform([${best}], lambda near_best: CASE WHEN near_best IS NULL THEN CAST([] AS VARCHAR[])
    WHEN len(near_best) > 0 THEN list_transform(near_best, lambda near_one: near_one.name) ELSE ${suggestedSql(typed, paths)} END)[1]`
}

/** Builds the words of every note, for FROM: code, words. */
function noteWordsSql(): Sql {
  const rows = Object.entries(noteWords).map(([code, words]) => `(${quote(code)}, ${quote(words)})`)
  return `(VALUES ${rows.join(', ')}) AS words (code, words)`
}

/**
 * Words of every note, the same for people, agents and programs. `{name}` is one of its statistics or its `subject`;
 * `{near}` what may have been meant, else what exists, `{such}` two of what exists; `{option a=b}` is spelt as the
 * caller would type it.
 */
export const noteWords = {
  'unknown-metric': "unknown metric '{subject}'{near}",
  'nothing-held': "the lake has no points of '{subject}': fetch it first",
  'no-interval': "'{subject}' is not stored at {interval}{near}",
  'no-asset': "nothing is stored of '{subject}' for asset '{asset}'{near}",
  'no-dimension': "nothing is stored of '{subject}' with {dimension} '{value}'{near}",
  'no-series': "nothing is stored of '{subject}' for asset '{asset}' with {dimension} '{value}'{near}",
  'no-price':
    "'{subject}' is made of 'supply/current_pit' in native and in usd: for asset '{asset}' nothing is stored " +
    'in {value}',
  'no-asset-component': "'{subject}' has no part '{component}' for asset '{asset}'{near}",
  'plain-numbers': "'{subject}' has plain numbers: query it without #{component}",
  'whole-object': "'{subject}' has objects or lists: query a part of them{such}",
  'no-component': "'{subject}' has no part '{component}'{near}",
  'price-view': '{subject} is a view of its own, not a metric of points: FROM {subject}',
  'unknown-asset': "'{subject}' is no asset{near}",
  'no-member': 'no product met {option universe} at any of these times: {subject}',
  'no-link': 'no asset of these decisions was linked to a product of the registry at its ts ({subject}){near}',
  'no-registry-column': 'no product of these decisions had {subject} at its ts{near}',
  'no-registry-value': "nothing in the registry has {subject} '{value}'{near}",
  'no-instant': 'decisions without a ts: {decisions}; they get NULL',
  'before-registry': 'the registry knows nothing before its first snapshot, {start}',
  'no-registry': 'the registry knows nothing before its first snapshot: there is none',
  'registry-unknown':
    'the registry is not known at this as_of: it is known since {start}; {option registry_backfill=true} uses ' +
    'its earliest state instead',
  'registry-empty':
    'the registry is not known at this as_of: no snapshot was known by then; {option registry_backfill=true} ' +
    'uses its earliest state instead',
  'registry-assumed': 'the registry is known since {start}: at this as_of its earliest state is assumed',
  'unknown-then': "nothing of '{subject}' was known at this as_of",
  'ledger-then':
    "'{subject}' shows the work of this lake, and as_of applies to it here: by then it had no rows; the server " +
    'option `--ledger now` shows the rest',
  'before-first': "nothing of '{subject}' was known before {start}",
  'never-observed':
    "nothing of '{subject}' was known before {start}: its values may be revised, and this lake did not observe " +
    'earlier values; {option backfill=rule} dates the first values by their rule',
  'held-between': "'{subject}' is stored from {first} to {last}",
  'reversed-calendar': 'calendar from {since} until {until} has no times: the two are reversed',
  'views-behind': 'the views of this lake are of version {made}, the lake is at {newest}: run pitlake views',
  'mirror-behind': 'the data of this mirror are of version {made}, the lake is at {newest}: run pitlake pull {subject}',
  unnoted: 'notes could not be worked out: {subject}',
  'unresolved-decisions':
    "unresolved decisions of '{subject}' get its newest value: {decisions}, from {since} on; {option " +
    "unresolved=null}, in SQL `unresolved := 'null'`, gives NULL",
} as const satisfies Readonly<Record<string, string>>

/** Kind of a note. */
export type NoteCode = keyof typeof noteWords
