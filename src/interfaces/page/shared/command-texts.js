/** Questions in Python, on a command line and over HTTP: each text runs as it stands. They need no document. */

/** A text as a shell takes it. */
export const shell = (text) => (/^[\w.,:/=#+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** A value as Python writes it. */
export function python(value) {
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  return `{${Object.entries(value).map((entry) => entry.map(python).join(': ')).join(', ')}}`
}

/** The Python text that opens a lake with settings of knowledge. */
export function opened(settings) {
  const keywords = Object.entries(settings).map(([name, at]) => `${name}=${python(at)}`)
  return `import pitlake\n\nlake = pitlake.open(${['"data"', ...keywords].join(', ')})`
}

/** The parts of a list that was typed with commas. */
export const listParts = (text) => text.split(',').map((part) => part.trim())

/** The flag of an option. */
export const flagOf = (name) => `--${name.replaceAll('_', '-')}`

/** Options that have no value on a command line; each is off by default. */
const switches = ['skip_nulls', 'follow_renames']
const isSwitch = (name) => switches.includes(name)
/** The options of a question, without switches that are off. */
const givenOptions = (options) => Object.entries(options).filter(([name, value]) => !isSwitch(name) || value === 'true')

/** Options as the flags of a command line. */
export const flagTexts = (options) => givenOptions(options).map(([name, value]) =>
  isSwitch(name) ? flagOf(name) : `${flagOf(name)} ${shell(value)}`)

/** Options as keywords of a call in Python. */
export const keywordTexts = (options) => givenOptions(options).map(([name, value]) =>
  `${name}=${isSwitch(name) ? 'True' : python(value)}`)

/** A panel in Python, on a command line and over HTTP. `origin` is the address of the server. */
export function panelTexts(options, asOf, origin) {
  const listNames = ['metrics', 'calendar', 'assets', 'with', 'fields']
  const trimmed = Object.fromEntries(Object.entries(options).map(([name, value]) =>
    [name, listNames.includes(name) ? listParts(value).join(',') : value]))
  const allOptions = { ...trimmed, ...asOf }
  return {
    Python: pythonPanel(trimmed, asOf),
    'Command line': `pitlake panel ${flagTexts(allOptions).join(' ')}`,
    HTTP: `curl ${shell(`${origin}/panel?${new URLSearchParams(allOptions)}`)}`,
  }
}

function pythonPanel(options, asOf) {
  const { metrics, calendar, assets = '', universe, interval = '24h', fields, with: universeColumns, ...others } = options
  // A name before the sign is that of a column; a pointer may contain such a sign, too.
  const pairs = metrics.split(',').map((text) => /^([A-Za-z_]\w*)=(.+)$/.exec(text)?.slice(1) ?? [text, text])
  const isNamed = pairs.some(([name, path]) => name !== path)
  const columns = isNamed ? Object.fromEntries(pairs) : pairs.map(([, path]) => path)
  const keywords = { ...(fields && { fields: fields.split(',') }), ...(universe && { universe }),
    ...(universeColumns && { universe_columns: universeColumns.split(',') }), ...others }
  const grid = [...calendar.split(',').map(python), ...(universe ? [] : [python(assets.split(','))])].join(', ')
  const parts = [python(columns), python(interval), ...keywordTexts(keywords)].join(', ')
  return `${opened(asOf)}
days = lake.calendar(${grid})
frame = lake.panel(days, ${parts}).df()`
}
