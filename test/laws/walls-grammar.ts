import { metrics } from '../helpers/lakes/every-view.ts'

/*
 * Statements as somebody asks them who may name views and macros alone: every one of these in every spelling, their
 * arguments in any order, and among them what reads past the views.
 */

/** A view of the lake: how it is named, its columns and their types. */
export interface Shown {
  readonly name: string
  readonly columns: readonly (readonly [name: string, type: string])[]
}

/** What the statements are about. */
export interface Ground {
  readonly views: readonly Shown[]
  /** The folder of the lake, and files of it below that folder. */
  readonly folder: string
  readonly files: readonly string[]
  /** The instant up to which the asker may see, as SQL. */
  readonly asOf: string
}

/** A statement, and which view or macro it is about. */
export interface Asked {
  readonly sql: string
  readonly about: string
}

const { everyInterval, supply, nested, plain, exchanges } = metrics
/** What is asked of the joins: a metric, an interval, further options. */
const topics: readonly (readonly [metric: string, interval: string, options: Readonly<Record<string, string>>])[] = [
  ...['10m', '1h', '24h', '1w', '1month'].map((interval) => [everyInterval, interval, {}] as const),
  [everyInterval, '24h', { network: `'sol'` }],
  [supply, '24h', { currency: `'usd'` }],
  [exchanges, '24h', { exchange: `'exchange_1'`, currency: `'usd'` }],
  [nested, '24h', { component: `'/a'` }],
  [plain, '24h', { skip_nulls: 'true' }],
  [plain, '24h', { unresolved: `'null'` }],
  [plain, '24h', { latency: `INTERVAL '15 minutes'` }],
  [plain, '24h', { max_age: `INTERVAL '2 days'` }],
  [plain, '24h', { back: `'3 days'` }],
  ['price_usd', '24h', {}],
]
const aggregates = ['sum', 'mean', 'min', 'max', 'median', 'first', 'last']
/** Options whose value is any text. */
const optionsOfText = ['currency', 'exchange', 'network', 'component', 'unresolved', 'vintage']
/** Placeholders, quotes, comments, ends of statements, signs that some take for quotes or blanks. */
const pieces = [
  '?decisions',
  '?metrics',
  '?interval',
  '?options',
  '?paths',
  '{decisions}',
  '{{points}}',
  '$1',
  '$decisions',
  '?',

  "'",
  "''",
  '"',
  '$$',
  '$q$',
  '\\',
  "\\'",
  '--',
  '-- \n',
  '/*',
  '*/',
  ';',
  ')',
  '(',
  '[1:0]',
  '\u0001relation\u0001',
  '\u0002',
  '\u2019',
  '\uFF07',
  '\u00A0',
  '\u200B',
  '\u202E',
  'é',
  'e\u0301',
  '😀',
  'native',
  'usd',
  ') UNION ALL SELECT max(v) FROM points',
  "' || (SELECT max(t) FROM points) || '",
  '; RESET VARIABLE as_of; ',
]
const options = ['currency', 'exchange', 'network', 'component', 'max_age', 'latency', 'skip_nulls', 'unresolved']

/** The macros that tell of data, by name. */
export const macroNames = [
  'pit_join',
  'pit_long',
  'pit_window',
  'pit_universe',
  'pit_registry',
  'resample',
  'bars',
  'unresolved',
  'calendar',
  'sessions',
] as const
/** Macros of single values and tables that read nothing dated. */
export const timelessNames = ['nearest', 'nearest_paths', 'lake_version', 'lake_digest', 'question_notes'] as const

type MacroName = (typeof macroNames)[number]

/** Draws statements about whatever they are to be about. */
export class Grammar {
  readonly #random: () => number
  readonly #ground: Ground
  /** Statements of names and files as they are, so that something is answered, or of whatever may come. */
  #hostility = 0
  #ctes = new Map<string, string>()

  constructor(random: () => number, ground: Ground) {
    this.#random = random
    this.#ground = ground
  }

  /**
   * A statement about a view or macro; the more hostile, the more of it reads past them. Without any it asks for all of
   * it.
   */
  about(name: string, hostility: number): Asked {
    this.#hostility = hostility
    this.#ctes = new Map()
    const body = this.#query(name, hostility === 0 ? 2 : 0)
    const ctes = [...this.#ctes].map(
      ([cte, text]) => `${quoted(cte)} AS ${this.#one('', '', 'MATERIALIZED ', 'NOT MATERIALIZED ')}(${text})`,
    )
    // Nothing reads this join: what its options hold changes no answer.
    if (this.#chance(hostility)) {
      const options = this.#shuffled(optionsOfText).slice(0, 1 + Math.floor(this.#random() * 3))
      const given = options.map((option) => `${option} := ${text(this.#pasted())}`)
      const name = this.#one('d', 'D')
      if (!this.#ctes.has(name)) ctes.push(`${quoted(name)} AS (${this.#late()})`)
      ctes.push(`unread_join AS (FROM pit_join(${text(name)}, ${text(supply)}, '24h', ${given.join(', ')}))`)
    }
    return { sql: ctes.length === 0 ? body : `WITH ${ctes.join(', ')} ${body}`, about: name }
  }

  #one<T>(...choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)] as T
  }

  #chance(share: number): boolean {
    return this.#random() < share
  }

  #shuffled<T>(all: readonly T[]): T[] {
    return all
      .map((one) => ({ one, at: this.#random() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ one }) => one)
  }

  /** A query over one relation, as people write them: whole, counted, filtered, grouped, behind others. */
  #query(name: string, depth: number): string {
    const shown = this.#ground.views.find((view) => view.name === name)
    const from = shown ? this.#named(name) : this.#call(name)
    const where = shown && this.#hostility > 0 && this.#chance(0.6) ? ` WHERE ${this.#condition(shown)}` : ''
    const all = `SELECT * FROM ${from}${where}`
    if (depth > 1) return all
    if (this.#chance(this.#hostility / 2)) return `SELECT * FROM ${this.#past()}`
    return this.#one<() => string>(
      () => all,
      () => all,
      () => `FROM ${from}${where}`,
      () => `SELECT count(*) AS n FROM ${from}${where}`,
      () => `SELECT * FROM (${all}) AS x ORDER BY ALL LIMIT ${this.#one(1, 5, 20)}`,
      () => `SELECT DISTINCT * FROM ${from} AS "${this.#one('x', 'points', 'd')}"${where}`,
      () => `${all} UNION ALL ${all}`,
      () => `SELECT 1 AS a, (SELECT count(*) FROM ${from}${where}) AS n`,
      () => `SELECT 1 AS a WHERE EXISTS (${all})`,
      () => `SELECT x.*, y.n FROM (${all}) AS x, LATERAL (SELECT count(*) AS n FROM ${this.#relation(depth + 1)}) AS y`,
      () => `SELECT x.*, (SELECT count(*) FROM ${this.#relation(depth + 1)}) AS n FROM (${all}) AS x`,
      () => `SELECT y.* FROM (SELECT count(*) AS n FROM ${from}${where}) AS x, ${this.#relation(depth + 1)} AS y`,
      () => `WITH ${quoted(this.#one('x', 'points', 'series', 'interval'))} AS (${all}) FROM ${from}${where}`,
      () => (shown ? `SELECT ${this.#cells(shown)} FROM ${from}${where}` : all),
      () => (shown ? `SELECT ${this.#measures(shown)} FROM ${from}${where}` : all),
      () =>
        shown
          ? `SELECT * FROM (SELECT *, row_number() OVER (ORDER BY ALL) AS n FROM ${from}${where}) WHERE n < 9`
          : all,
      () => (shown ? `SELECT * FROM (DESCRIBE ${from})` : all),
    )()
  }

  /** Whatever stands in FROM. */
  #relation(depth: number): string {
    if (this.#chance(this.#hostility)) return this.#past()
    const { views } = this.#ground
    return this.#one<() => string>(
      () => this.#named(this.#one(...views).name),
      () => `(${this.#query(this.#one(...views).name, depth + 1)})`,
      () => this.#call(this.#one(...macroNames)),
    )()
  }

  /** A view by its name, in one of its spellings. */
  #named(name: string): string {
    const part = (word: string): string =>
      this.#one(word, word, quoted(word), word.toUpperCase(), quoted(word.toUpperCase()))
    const parts = name.split('.')
    const spelt = parts.map(part).join('.')
    if (parts.length > 1) return spelt
    // The last one is refused: in a macro it would stand for what its caller gives.
    const tables = [text(name), `[${text(name)}]`, ...(this.#hostility === 0 ? [] : [quoted(name)])]
    return this.#one(spelt, spelt, spelt, ...tables.map((table) => `query_table(${table})`))
  }

  /** What reads past the views. */
  #past(): string {
    const { folder, files } = this.#ground
    const file = `${folder}/${this.#one(...files)}`
    const stem = file.replace(/\.[a-z]+$/, '')
    return this.#one(
      text(file),
      quoted(file),
      `${quoted(stem)}.${this.#one('parquet', 'PARQUET')}`,
      `read_parquet(${text(file)})`,
      `read_parquet([${text(file)}], filename = 'mark_0')`,
      `(FROM parquet_scan(${text(file)}) WHERE 'mark_0' <> '')`,
      `query_table(${text(file)})`,
      `query_table(['points', ${text(file)}])`,
      `${this.#one('read_json', 'read_text')}(${text(`${folder}/${this.#one('lake.json', 'journal/*.json.gz', 'runs/*')}`)})`,
      `glob(${text(`${folder}/**`)})`,
      `parquet_metadata(${text(file)})`,
      this.#one('duckdb_views()', 'duckdb_databases()', 'information_schema.views'),
      `(SUMMARIZE ${text(file)})`,
      `(DESCRIBE ${text(file)})`,
    )
  }

  /** A condition on a view; some fail on whatever is not to be seen. */
  #condition({ columns }: Shown): string {
    const [name, type] = this.#one(...columns)
    const column = quoted(name)
    const { asOf } = this.#ground
    const later = `${column} > ${asOf}`
    if (type.startsWith('TIMESTAMP'))
      return this.#one(
        `${column} IS NOT NULL`,
        `${column} <= ${asOf}`,
        `${column} > ${asOf} - INTERVAL '5 days'`,
        `CASE WHEN ${later} THEN error('later ' || ${column}) ELSE true END`,
        `CAST(CASE WHEN ${later} THEN 'x' ELSE '1' END AS INTEGER) = 1`,
        `NOT ${later} IS NOT DISTINCT FROM true`,
      )
    if (type === 'VARCHAR')
      return this.#one(
        `${column} IS NOT NULL`,
        `${column} <> 'ETH'`,
        `length(${column}) > 2`,
        `lower(${column}) IN ('btc', 'active', 'covered', '24h', 'p1', 'p2')`,
        `CAST(${column} AS INTEGER) > 0`,
        `(SELECT count(*) FROM points) > length(${column})`,
        `EXISTS (FROM ${this.#chance(this.#hostility) ? this.#past() : 'points'})`,
      )
    if (/INT|DOUBLE/.test(type))
      return this.#one(
        `${column} IS NOT NULL`,
        `${column} > 100`,
        `CAST(${column} AS UTINYINT) >= 0`,
        `${column} IN (1, 2, 3)`,
      )
    return this.#one(`${column} IS NOT NULL`, 'true', `CAST(${column} AS VARCHAR) <> ''`)
  }

  #cells({ columns }: Shown): string {
    const cell = ([name]: Shown['columns'][number]): string =>
      this.#chance(this.#hostility) ? `stats(${quoted(name)})` : quoted(name)
    return this.#shuffled(columns)
      .slice(0, 1 + Math.floor(this.#random() * 4))
      .map(cell)
      .join(', ')
  }

  #measures({ columns }: Shown): string {
    const measured = this.#shuffled(columns)
      .slice(0, 3)
      .flatMap(([name]) => [`count(DISTINCT ${quoted(name)})`, `max(${quoted(name)})`])
    return ['count(*)', ...measured].map((one, n) => `${one} AS m${n}`).join(', ')
  }

  /** A macro with its arguments by place and by name, in any order and spelling. */
  #call(name: string): string {
    if (name === 'lake_version' || name === 'lake_digest') return `(SELECT ${name}() AS x)`
    if (name === 'nearest') return `(SELECT nearest('pionts', ['points', 'series']) AS x)`
    if (name === 'nearest_paths') return `(SELECT nearest_paths('supply/curent', ['supply/current_pit']) AS x)`
    if (name === 'question_notes') return `question_notes(${text(JSON.stringify(this.#wondered()))})`
    const { needed, free } = this.#arguments(name as MacroName)
    const spoilt = this.#chance(this.#hostility)
    const every = [...Object.entries(needed), ...this.#shuffled(Object.entries(free))]
    const bad = spoilt ? Math.floor(this.#random() * every.length) : -1
    const given = every.map(([key, value], n) => [key, n === bad ? this.#spoilt() : value] as const)
    if (spoilt && this.#chance(0.3)) given.push([this.#one(...options), this.#spoilt()])
    const placed = this.#chance(0.5)
      ? Object.keys(needed).length
      : Math.floor(this.#random() * Object.keys(needed).length)
    const byPlace = given.slice(0, placed).map(([, value]) => value)
    const byName = this.#shuffled(given.slice(placed)).map(
      ([key, value]) => `${this.#key(key)} ${this.#one(':=', ':=', '=>')} ${value}`,
    )
    return `${this.#one(name, name, name.toUpperCase(), quoted(name))}(${[...byPlace, ...byName].join(', ')})`
  }

  #key(key: string): string {
    return key === 'interval'
      ? this.#one('"interval"', '"INTERVAL"')
      : this.#one(key, key, key.toUpperCase(), quoted(key))
  }

  #arguments(name: MacroName): {
    readonly needed: Readonly<Record<string, string>>
    readonly free: Readonly<Record<string, string>>
  } {
    const [metric, interval, free] = this.#one(...topics)
    const one = { metric: text(metric), interval: text(interval) }
    const beside = this.#one(...topics.filter(([, other]) => other === interval))[0]
    const metricNames = free['component'] === undefined ? `[${text(metric)}, ${text(beside)}]` : `[${text(metric)}]`
    switch (name) {
      case 'pit_join':
        return { needed: { decisions: this.#decisions(), ...one }, free }
      case 'pit_long':
        return { needed: { decisions: this.#decisions(), metrics: metricNames, interval: text(interval) }, free }
      case 'pit_window':
        return { needed: { decisions: this.#decisions(), ...one, n: String(this.#one(1, 3, 5)) }, free }
      case 'pit_universe':
        return {
          needed: {
            decisions: this.#decisions(),
            ...(this.#hostility > 0 && this.#chance(0.6) && { members: this.#members(0) }),
          },
          free: {},
        }
      case 'pit_registry':
        return { needed: { decisions: this.#decisions() }, free: {} }
      case 'bars':
      case 'resample': {
        const [from, to] = this.#one(['10m', '1h'], ['1h', '24h'], ['24h', '1w'], ['24h', '1month'])
        const parts = this.#chance(0.5) ? { min_parts: '1' } : {}
        return {
          needed: { metric: text(everyInterval), from_interval: text(from), to_interval: text(to) },
          free: { ...(name === 'resample' && { agg: text(this.#one(...aggregates)) }), ...parts },
        }
      }
      case 'unresolved':
        // Of these some are pending whatever the seed.
        return this.#hostility === 0
          ? { needed: { metrics: `[${text(plain)}, ${text(supply)}]`, interval: `'24h'` }, free: {} }
          : { needed: { metrics: metricNames, interval: text(interval) }, free: {} }
      case 'calendar':
        return {
          needed: { since: `'2026-02-01'`, until: this.#one(`'2026-03-01'`, `TIMESTAMPTZ '2026-03-01'`) },
          free: { step: `'1 day'` },
        }
      case 'sessions':
        return { needed: { since: `'2026-02-01'`, until: `'2026-03-01'`, exchange: `'XNYS'` }, free: {} }
    }
  }

  /**
   * The name of a relation of decisions, as a text, a name or in a list; a CTE of that name is made, whatever it
   * shadows.
   */
  #decisions(): string {
    const name = this.#one(
      'd',
      'd',
      'D',
      'dec isions',
      'points',
      'series',
      '24h',
      'metric',
      'component',
      'coverage',
      'max_age',
    )
    if (!this.#ctes.has(name)) this.#ctes.set(name, this.#decided())
    return this.#one(text(name), text(name), quoted(name), `[${text(name)}]`, `[${text(name)}, ${text(name)}]`)
  }

  /** Decisions before and after the instant. */
  #decided(): string {
    const { asOf } = this.#ground
    const assets = ['BTC', 'ETH', 'TOK', 'ONDO', 'unknown']
    const rows = Array.from(
      { length: 3 + Math.floor(this.#random() * 12) },
      () => `(${text(this.#one(...assets))}, ${Math.floor(this.#random() * 60 - 45)})`,
    )
    return this.#one(
      `SELECT asset, ${asOf} + to_hours(6 * step) AS ts FROM (VALUES ${rows.join(', ')}) AS steps (asset, step)`,
      `SELECT ts, 'BTC' AS asset FROM calendar('2026-02-01', '2026-04-01', '${this.#one(1, 3)} days')`,
    )
  }

  /** Decisions later than whatever is settled, among whose texts are pieces of statements. */
  #late(): string {
    return `SELECT asset, TIMESTAMPTZ '2099-01-01' AS ts FROM (VALUES (${text(this.#pasted())}), ('BTC')) AS late (asset)`
  }

  /** A text that becomes a piece of SQL if anything fills it in, or ends its quote. */
  #pasted(): string {
    return Array.from({ length: 1 + Math.floor(this.#random() * 3) }, () => this.#one(...pieces)).join('')
  }

  /** A condition on the columns of a universe. */
  #members(depth: number): string {
    const inner = (): string => this.#members(depth + 1)
    if (depth < 2 && this.#chance(0.4))
      return this.#one(`(${inner()} OR ${inner()})`, `${inner()} AND ${inner()}`, `NOT (${inner()})`)
    if (this.#chance(this.#hostility)) return `EXISTS (FROM ${this.#past()})`
    const past = this.#one(
      "status = 'active'",
      "issuer_status <> 'inactive'",
      'len(deployments) < 3',
      'symbol IS NOT NULL',
      'true',
    )
    return this.#one(
      past,
      past,
      `valid_from <= ${this.#ground.asOf}`,
      `first_seen > ${this.#ground.asOf} - INTERVAL '9 days'`,
      `asset_class IN ('stocks', 'credit')`,
    )
  }

  /** What may become a relation or a piece of SQL where a value is expected. */
  #spoilt(): string {
    const { folder, files } = this.#ground
    const file = text(`${folder}/${this.#one(...files)}`)
    return this.#one(
      file,
      `['d', ${file}]`,
      `[${file}, 'points']`,
      `['points', 'price_usd']`,
      `'points'`,
      'points',
      '[]',
      'NULL',
      quoted(`${folder}/${this.#one(...files)}`),
      `(SELECT max(v) FROM points)`,
      `(SELECT count(*) FROM ${file})`,
      `getvariable('some')`,
      `'d' || ''`,
      `lower(${file})`,
      `error('x')`,
    )
  }

  #wondered(): object {
    const sides = { interval: ['24h'], currency: [], exchange: [], network: [] }
    const everything = { ...sides, defaults: true, everywhere: true }
    const names = this.#shuffled([everyInterval, supply, nested, plain, 'price_usd', 'supply/curent_pit']).slice(0, 3)
    return this.#one<object>(
      {
        metrics: names.map((name) => ({ name, ...everything, asset: ['btc'], component: '/a/x' })),
        texts: ['btc', 'no/path'],
      },
      { tables: ['products'], empty: true },
    )
  }
}

const text = (sql: string): string => `'${sql.replaceAll("'", "''")}'`

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
