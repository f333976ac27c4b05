import { endSql, micros, type Sql, startSql, stepSql } from '../../base/intervals-sql.ts'
import { quote } from '../../lake/store/engine.ts'
import { type Interval, intervals, shortestSeconds, type Weekday } from '../../base/time.ts'
import { beyondAsked } from './joins-beyond.ts'
import { spanPlaces } from './joins-earlier.ts'
import { filled, linesOf, literal, lookUp, slot } from './joins-sql.ts'
import { vintageWords } from './joins-vintages.ts'
import { asStored, backfillSql, instantSql, unsetSql } from './template.ts'

/** Inputs of the text of a join, as SQL expressions over the macro's parameters. */
interface TextSources {
  /** Lines of plain series and of bounds, see the facts of joins-points; the key of the second is a path. */
  readonly plain: Sql
  readonly bounds: Sql
  readonly path: Sql
  /** The text of the relation over the files of the macro's metric. */
  readonly files: Sql
  /** The points under the macro's options, for FROM. */
  readonly series: Sql
  readonly revisable: readonly string[]
  readonly weekStart: Weekday
}

/**
 * Builds the body of a join over one metric as a text that is put together while its macro is bound, since binding
 * costs the engine for every node of a macro, needed or not: that is why `texts` is one flat list, and casts are left to
 * `concat`. The points come before the body: in short if only a series that `plain` knows is queried, else in full. The
 * full text is bound only if it is needed.
 */
export function joinText(sources: TextSources, body: string): Sql {
  const { plain, bounds, path, files, revisable, weekStart } = sources
  const grids = intervals.map((name): [string, string] => [name, gridOf(name, weekStart).join('\t')])
  const split = (lines: Sql, key: Sql): Sql => `string_split(${lookUp(lines, key)}, '\t')`
  const lambdaValues = `list_concat(coalesce(${split(linesOf(grids), '"interval"')}, ['NULL', 'NULL', 'NULL', 'NULL']),
    list_slice(coalesce(${split(bounds, `${path}, '|', "interval"`)}, ['0', 'NULL', 'NULL']), 1, CASE WHEN ${beyondAsked} THEN 1 ELSE 3 END),
    CASE WHEN ${beyondAsked} THEN ['NULL', 'NULL'] END,
    CASE WHEN ${nothingAsked} THEN ${split(plain, `metric, '|', "interval"`)} END)`
  const until = revisable.length > 0 ? ', CAST(NULL AS TIMESTAMPTZ) AS until' : ''
  const knownColumns = `known.asset, known.t, known.available_at, known.v, known.o${until}`
  // Even if nothing is cut the condition is there: by it an interface recognises a scan that obeys `as_of`.
  const [open, cut] = ['', ` OR known.available_at <= ${instantSql('as_of')}`].map((more) =>
    quote(` AND (${unsetSql('as_of')}${more}))`),
  )
  const short = `concat('_pit_all_points AS ', texts[8], ' (SELECT ${knownColumns} FROM ', ${files}, ' AS known WHERE ', texts[9],
      CASE WHEN ${unsetSql('as_of')} THEN ${open} ELSE ${cut} END)`
  const points = `CASE WHEN texts[8] IS NOT NULL THEN ${short} ELSE ${fullSql(sources)} END`
  const lapses = vintageWords(revisable).mayLapse({
    skips: 'CAST(skip_nulls AS BOOLEAN)',
    revised: vintageWords(revisable).isRevised(path) ?? 'false',
    last: `CAST(vintage AS VARCHAR) = 'last'`,
  })
  const places =
    lapses === null ? textPlaces : { ...textPlaces, lapses: `CASE WHEN ${lapses} THEN 'true' ELSE 'false' END` }
  return (
    `query(list_transform([${lambdaValues}], lambda texts: concat('WITH ', ${points}, ', ', ` +
    `${filled(body, places)}))[1])`
  )
}

const givenColumns = [
  'metric',
  '"interval"',
  'currency',
  'exchange',
  'network',
  'component',
  'unresolved',
  'vintage',
  'follow_renames',
]

/**
 * SQL condition: no option is set, no clock of the session is set except `as_of`, and points are those of the files.
 */
const nothingAsked = `${asStored} AND coalesce(currency, exchange, network, component) IS NULL
    AND concat(unresolved, ',', vintage, ',', follow_renames, ',', skip_nulls) = 'value,last,false,false'
    AND ${unsetSql('observed_as_of')} AND ${unsetSql('backfill')} AND ${unsetSql('proof_hidden')}`

/** Builds the text of the points under any option: in it the macro's parameters are texts of a list. */
function fullSql({ series, path, revisable }: TextSources): Sql {
  const vintageTexts = vintageWords(revisable)
  const pieces = series.split(/('(?:[^']|'')*')/)
  const numbered = pieces.map((piece, n) =>
    n % 2 === 0 ? piece.replaceAll(parameters, (name) => `asked[${givenColumns.indexOf(name) + 1}]`) : piece,
  )
  const vintages = vintageTexts
    .vintages('w.asset', slot('revised'), slot('skips'))
    .replaceAll('CAST(vintage AS VARCHAR)', slot('vintage'))
  const counted = vintageTexts.counted('p', {
    skips: 'true',
    revised: slot('revised'),
    last: `${slot('vintage')} = 'last'`,
  })
  const skips = `CASE WHEN CAST(skip_nulls AS BOOLEAN) THEN 'true' ELSE 'false' END`
  const vintage = `coalesce(${literal('CAST(vintage AS VARCHAR)')}, 'NULL')`
  const revised = `CASE WHEN ${vintageTexts.isRevised(path) ?? 'false'} THEN 'true' ELSE 'false' END`
  const text = `${vintageTexts.known(false)} (
  SELECT p.* FROM query(list_transform([from_json(${slot('given')}, '["VARCHAR"]')], lambda asked: ${slot('series')})[1]) AS p${slot('counted')}
)${vintages === '' ? '' : `,${vintages.slice(0, -1)}`}`
  return filled(text, {
    series: quote(numbered.join('').slice('query('.length, -1)),
    given: literal(`CAST(json_array(${givenColumns.join(', ')}) AS VARCHAR)`),
    counted: `CASE WHEN CAST(skip_nulls AS BOOLEAN) THEN ${filled(` WHERE ${counted}`, { vintage, revised })} END`,
    skips,
    vintage,
    revised,
  })
}

const parameters = new RegExp(`(?<![.\\w"])(?:${givenColumns.join('|')})(?![\\w"])`, 'g')

/** Returns a place in the text of a body. */
export function inText(name: string): string {
  if (!Object.hasOwn(textPlaces, name)) throw new RangeError(`nothing of a join is named ${name}`)
  return slot(name)
}

/**
 * Lag bound under clocks other than those of the files in view: the end of the interval is the only safe one. The same
 * is true of gaps.
 */
const otherClocks = `CASE WHEN ${backfillSql} OR NOT ${unsetSql('observed_as_of')} THEN 0 END`

/**
 * Places of a body; the facts of a metric are those of the points in view:
 *
 *   start     the start of the newest interval that ends by `_pit_latest_end`, an instant in microseconds
 *   back      the start of the interval `past.n` before `n._pit_expected_t`
 *   end       the end of the interval that starts at `t`, microseconds
 *   block     the number of the block of 64 intervals in which `p.t` lies
 *   lapses    whether a point may be known and then be none, see joins-vintages
 *   interval span          literals of the macro's parameters, see joins-earlier
 *   lag first_end newest   no point is known earlier than `lag` after its end; none ends earlier, or starts later
 */
const textPlaces: Readonly<Record<string, Sql>> = {
  start: 'texts[1]',
  back: 'texts[2]',
  end: 'texts[3]',
  block: 'texts[4]',
  lag:
    `CASE WHEN texts[8] IS NOT NULL THEN texts[5] ELSE concat('least(', texts[5], CASE WHEN ${beyondAsked} THEN ', 0)' ` +
    `ELSE ${quote(`, ${otherClocks})`)} END) END`,
  lapses: `'false'`,
  first_end: 'texts[6]',
  newest: 'texts[7]',
  ...spanPlaces,
}

function gridOf(name: Interval, weekStart: Weekday): readonly Sql[] {
  return [
    `make_timestamptz(${startSql('_pit_latest_end', name, { weekStart, back: '1', ticks: micros })})`,
    `make_timestamptz(${stepSql('epoch_us(n._pit_expected_t)', name, '-past.n', micros)})`,
    endSql('epoch_us(t)', name, micros),
    `epoch_us(p.t) // ${64 * shortestSeconds(name) * micros}`,
  ]
}
