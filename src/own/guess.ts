import { Engine, quote, quoteName } from '../store/engine.ts'
import { exportDay, fileColumn, type OwnFiles, givenBy } from './files.ts'
import type { Asked } from './command.ts'
import { unfolded } from './triangle.ts'

/** What names of columns mean, the likeliest first. */
const meanings = {
  asset: ['asset', 'symbol', 'ticker', 'coin', 'instrument', 'pair', 'name', 'id'],
  t: [
    't',
    'time',
    'timestamp',
    'date',
    'datetime',
    'ts',
    'day',
    'open_time',
    'period',
    'month',
    'quarter',
    'observation_date',
  ],
  value: ['value', 'v', 'close', 'price', 'signal', 'score', 'label', 'factor', 'rate'],
  available_at: ['available_at', 'known_at', 'published_at', 'released_at', 'release_date', 'computed_at', 'as_of'],
  vintage: ['vintage', 'vintage_date', 'realtime_start', 'revision_date'],
  currency: ['currency', 'quote'],
  exchange: ['exchange', 'venue', 'market'],
  network: ['network', 'chain'],
} as const

/** The parts of a bar, and how files call them; only the first is known at its beginning. */
const bars = [
  ['open', 'o', 'open_price', 'price_open', 'first'],
  ['high', 'h', 'high_price', 'price_high', 'max'],
  ['low', 'l', 'low_price', 'price_low', 'min'],
  ['close', 'c', 'close_price', 'price_close', 'last'],
  ['volume', 'v', 'vol', 'base_volume'],
]

type Guess = Partial<Record<keyof typeof meanings, string>>

/** A mapping of some files to paste, and what cannot be known from them as questions. */
export async function guessed({ files, cwd, maxBytes, options }: Asked): Promise<string> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const { given } = unfolded(await givenBy(engine, files, { cwd, maxBytes }), {})
  const names = given.columns.map(({ name }) => name).filter((name) => name !== fileColumn)
  const found: Guess = {}
  for (const [key, words] of Object.entries(meanings)) {
    const rest = names.filter((name) => !Object.values(found).includes(name))
    const hit = words.flatMap((word) => rest.filter((name) => name.toLowerCase() === word))[0]
    if (hit !== undefined) found[key as keyof Guess] = hit
  }
  const parts = bars.map((bar) => names.find((name) => bar.includes(name.toLowerCase())))
  const isBar = parts.slice(0, 4).every((name) => name !== undefined)
  const components = isBar ? parts.filter((name) => name !== undefined) : []
  const unit = await unitOf(engine, given, found.t)
  const name = options.as ?? 'name'
  const lines = [
    'sources:',
    `  ${name}:`,
    `    files: ${JSON.stringify(files.length === 1 ? files[0] : files)}`,
    `    asset: ${found.asset ?? '=ASSET        # no column tells it: which asset is it?'}`,
    `    t: ${found.t ?? 'COLUMN           # which column is the instant that a row is about?'}`,
    ...(isBar
      ? [`    components: [${components.join(', ')}]`]
      : [`    value: ${found.value ?? 'COLUMN       # which column is the value?'}`]),
    ...(unit === null ? [] : [`    unit: ${unit}`]),
    ...(['available_at', 'vintage', 'currency', 'exchange', 'network'] as const).flatMap((key) =>
      found[key] === undefined ? [] : [`    ${key}: ${found[key]}`],
    ),
  ]
  return `${[...lines, ...questions(given, found, components)].join('\n')}\n`
}

/** The two dates of each row, what an instant is and when it was known, are asked of whoever has the files. */
function questions({ files, row }: OwnFiles, found: Guess, [open, ...rest]: readonly string[]): string[] {
  const t = found.t ?? 't'
  const known = found.available_at ?? found.vintage
  const each = [`${open}=start`, ...rest.map((name) => `${name}=end`)].join(',')
  return [
    `# is \`${t}\` the start or the end of the interval?        timestamp: interval_start | interval_end`,
    '# how long is the interval? (left out: the distance of the rows)   interval: 24h',
    `# in which zone are times that name none, and days?     zone: UTC`,
    ...(known === undefined
      ? [
          ...(open === undefined
            ? ['# when was a value known?   available: end | end+15m | start']
            : [
                `# when was each part of a bar known?   available: ${each}`,
                `# … or, if all of it was known at its end:   available: end`,
                `# (as flags: --components ${[open, ...rest].join(',')} --available ${each})`,
              ]),
          ...(files.length > 0 && files.every(({ path }) => exportDay(path) !== null)
            ? ['# is the date in the name of the file the day of an export?   available: export']
            : []),
        ]
      : [
          row === undefined
            ? `# is \`${known}\` the instant at which somebody could first know the value?`
            : '# are columns that are days its vintages, each cell a value known from the end of that day on?',
        ]),
    '# are values revised later?                             revisable: true',
  ]
}

/** The unit in which numbers count instants, by their size. */
async function unitOf(engine: Engine, { relation, format }: OwnFiles, t: string | undefined): Promise<string | null> {
  if (t === undefined) return null
  const raw =
    format === 'json'
      ? `json_extract_string(json, ${quote(`$.${JSON.stringify(t)}`)})`
      : `CAST(${quoteName(t)} AS VARCHAR)`
  const [row] = await engine.rows<{ digits: bigint | null }>(
    `SELECT CAST(length(split_part(x, '.', 1)) AS BIGINT) AS digits FROM (SELECT ${raw} AS x FROM ${relation} LIMIT 1) WHERE regexp_full_match(x, '[0-9]+(\\.0*)?')`,
  )
  // Nine or ten digits are seconds of our time, three more each are those of the next unit.
  const digits = Number(row?.digits ?? 0)
  return digits % 3 === 2 ? null : (['s', 'ms', 'us', 'ns'][Math.floor(digits / 3) - 3] ?? null)
}
