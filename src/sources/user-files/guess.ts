import { mappingRow } from '../../catalog/sources.ts'
import { Engine, quote, quoteName } from '../../lake/store/engine.ts'
import { exportDay, type OwnFiles, givenBy } from './files.ts'
import type { ImportInput } from './import.ts'

/** Usual names of columns by meaning, the likeliest first. */
const meanings: Readonly<Record<string, string>> = {
  asset: 'asset symbol ticker coin instrument pair name id',
  t: 't time timestamp date datetime ts day open_time period month quarter observation_date',
  value: 'value v close price signal score label factor rate',
  available_at: 'available_at known_at published_at released_at release_date computed_at as_of',
  vintage: 'vintage vintage_date realtime_start revision_date',
  currency: 'currency quote',
  exchange: 'exchange venue market',
  network: 'network chain',
}

/** The parts of a bar, with their usual names in files; only the first is known at its beginning. */
const bars = [
  'open o open_price price_open first',
  'high h high_price price_high max',
  'low l low_price price_low min',
  'close c close_price price_close last',
  'volume v vol base_volume',
]

/** Text for a key for which no column was found. */
const open: Readonly<Record<string, string>> = {
  asset: '=ASSET        # no column tells it: which asset is it?',
  t: 'COLUMN           # which column is the instant that a row is about?',
  value: 'COLUMN       # which column is the value?',
}

/** Guesses a mapping of some files for pasting, with questions for what the files do not show. */
export async function guessMapping(input: Omit<ImportInput, 'root' | 'catalogue'>): Promise<string> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const columns = await givenBy(engine, input.files, input, {})
  const names = columns.columns.map(({ name }) => name)
  const guesses: Partial<Record<string, string>> = {}
  const called = (words: string): string | undefined => {
    const rest = names.filter((name) => !Object.values(guesses).includes(name))
    return words.split(' ').flatMap((word) => rest.filter((name) => name.toLowerCase() === word))[0]
  }
  const parts = bars.map(called).filter((name, n) => name !== undefined || n < 4)
  const components = parts.every((name) => name !== undefined) ? parts : []
  for (const [key, words] of Object.entries(meanings)) guesses[key] = called(words)
  const also = { unit: await unitOf(engine, columns, guesses['t']), components: `[${components.join(', ')}]` }
  const isBar = components.length > 0
  const lines = Object.keys(mappingRow.shape).flatMap((key) => {
    const text = guesses[key] ?? (key === 'unit' || (key === 'components' && isBar) ? also[key] : open[key])
    return text === undefined || (key === 'value' && isBar) ? [] : [`    ${key}: ${text}`]
  })
  const files = JSON.stringify(input.files.length === 1 ? input.files[0] : input.files)
  const head = ['sources:', `  ${input.options.as ?? 'name'}:`, `    files: ${files}`]
  return `${[...head, ...lines, ...questions(columns, guesses, components)].join('\n')}\n`
}

/**
 * Builds questions for the user about the two dates of each row: the meaning of its timestamp, and the time from which
 * it was known.
 */
function questions(
  { files, row }: OwnFiles,
  guesses: Partial<Record<string, string>>,
  parts: readonly string[],
): string[] {
  const knownColumn = guesses['available_at'] ?? guesses['vintage']
  const each = parts.map((name, n) => `${name}=${n === 0 ? 'start' : 'end'}`).join(',')
  const dated = files.length > 0 && files.every(({ path }) => exportDay(path) !== null)
  const unknown = [
    ...(parts.length === 0
      ? ['# when was a value known?   available: end | end+15m | start']
      : [
          `# when was each part of a bar known?   available: ${each}`,
          '# … or, if all of it was known at its end:   available: end',
          `# (as flags: --components ${parts.join(',')} --available ${each})`,
        ]),
    ...(dated ? ['# is the date in the name of the file the day of an export?   available: export'] : []),
  ]
  const explanation =
    row === undefined
      ? `# is \`${knownColumn}\` the instant at which somebody could first know the value?`
      : '# are columns that are days its vintages, each cell a value known from the end of that day on?'
  return [
    `# is \`${guesses['t'] ?? 't'}\` the start or the end of the interval?        timestamp: interval_start | ` +
      'interval_end',
    '# how long is the interval? (left out: the distance of the rows)   interval: 24h',
    '# in which zone are times that name none, and days?     zone: UTC',
    ...(knownColumn === undefined ? unknown : [explanation]),
    '# are values revised later?                             revisable: true',
  ]
}

/** Determines the unit in which numbers count timestamps, by their size. */
async function unitOf(engine: Engine, { relation, format, load }: OwnFiles, t: string | undefined) {
  if (t === undefined) return undefined
  await load?.([t])
  const raw =
    format === 'json'
      ? `json_extract_string(json, ${quote(`$.${JSON.stringify(t)}`)})`
      : `CAST(${quoteName(t)} AS VARCHAR)`
  const [row] = await engine.rows<{ digits: bigint | null }>(
    `SELECT CAST(length(split_part(x, '.', 1)) AS BIGINT) AS digits FROM (SELECT ${raw} AS x FROM ${relation} ` +
      `LIMIT 1) WHERE regexp_full_match(x, '[0-9]+(\\.0*)?')`,
  )
  // Nine or ten digits are recent times in seconds; three more digits each are the next smaller unit.
  const digits = Number(row?.digits ?? 0)
  return digits % 3 === 2 ? undefined : ['s', 'ms', 'us', 'ns'][Math.floor(digits / 3) - 3]
}
