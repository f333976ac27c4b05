import { relative } from 'node:path'
import { type Catalogue, imported as importedSource, isOwn } from '../../catalog/catalogue.ts'
import type { Weekday } from '../../base/time.ts'
import { quote, quoteName, quotePath } from '../../lake/store/engine.ts'
import type { StoredFile } from '../../lake/ledger/index-queries.ts'
import { inLake } from '../../lake/store/layout.ts'
import type { Head } from '../../lake/ledger/ledger.ts'
import { seriesColumns } from '../../lake/ledger/columns.ts'
import { computedSql, ruledSql, sharesOf } from '../../sources/points/files.ts'
import type { EarlierDating } from '../../sources/points/datings.ts'
import { type RegistryColumn, recordTables } from '../../sources/registry/columns.ts'
import { askedWords } from './question-words.ts'
import { clockedPoints, type EarlyPart, earlyParts } from './part-clocks.ts'
import { tableOf, datedPoints, emptySql, filesSql, ledgerSql, readPoints } from './relations.ts'
import { vintageNotes, lastVintagesIn } from './points-vintages.ts'
import { identityWords } from './joins-identity.ts'
import { sessionsSql, yearStartSql } from './sessions-sql.ts'
import { joinPlaceholders } from './joins.ts'
import { exportedTables, type ExportTable } from './ledger-tables.ts'
import {
  backfillSql,
  betweenEdges,
  fillIn,
  instantSql,
  type ObjectText,
  partOf,
  type PlaceholderFill,
  readObjects,
  unsetSql,
} from './template.ts'

/** Everything that the texts of the objects depend on. */
interface Sources {
  /** The lake's folder, absolute. */
  readonly root: string
  readonly head: Head
  readonly catalogue: Catalogue
  readonly files: readonly StoredFile[]
  /** Points as they were dated before a rule changed. */
  readonly earlier: readonly EarlierDating[]
  /** Parquet file of each exported table; null if there is no lake, and each is empty. */
  readonly exports: ReadonlyMap<string, string> | null
  readonly weekStart: Weekday
  /** Metrics whose points may have several vintages. */
  readonly revisable?: readonly string[]
}

/** One object, ready to be run. */
export interface Compiled {
  readonly name: string
  readonly kind: 'schema' | 'view' | 'macro'
  readonly file: string
  readonly sql: string
  /** The tables whose files it names. */
  readonly reads: readonly string[]
}

/** The views of a lake at one version: every statement that makes them, and the files that they read. */
export interface CompiledViews {
  /** Folder of the lake, absolute. */
  readonly root: string
  /** Version of the lake. */
  readonly version: number
  /** Id of the lake; null for a catalogue without a lake. */
  readonly lake: string | null
  /** Objects in the order in which they are created. */
  readonly objects: readonly Compiled[]
  /** Table to the paths of its files, relative to the lake. */
  readonly tables: Readonly<Record<string, readonly string[]>>
}

/** Returns the views over these sources; pure. */
export function compile(sources: Sources): CompiledViews {
  const texts = readObjects([...recordTables(sources.catalogue.resources).keys()]).map((text) =>
    lastVintagesIn(text, sources.revisable ?? []),
  )
  const reads = new Set<string>()
  const fill = fillFor(sources, texts, (table) => reads.add(table))
  const objects: readonly Compiled[] = texts.map(({ name, kind, file, text }) => {
    reads.clear()
    const sql = fillIn(file, text, fill)
    return { name, kind, file, sql, reads: [...reads].toSorted() }
  })
  const { root, head, exports } = sources
  const files = [
    ...[...(exports ?? [])].map(([table, path]) => ({ table, path: relative(root, path) })),
    ...sources.files,
  ]
  const tables = Object.groupBy(files, ({ table }) => table)
  const named = Object.entries(tables).map(([table, files = []]) => [
    table,
    [...new Set(files.map(({ path }) => path))],
  ])
  const { version, lake } = head
  return {
    root,
    version,
    lake,
    objects,
    tables: Object.fromEntries(named) as Readonly<Record<string, readonly string[]>>,
  }
}

/** Comments of the columns that tell series apart. */
const seriesComments = Object.entries(seriesColumns).map(([name, { shown, about }]) => [name, shown, about] as const)

/** Clocks of views about the lake's own work: `observed_as_of`, and `as_of` if an interface sets it. */
const ledger = {
  unset: `(${unsetSql('ledger_as_of')} AND ${unsetSql('observed_as_of')})`,
  asOf: `least(${instantSql('ledger_as_of')}, ${instantSql('observed_as_of')})`,
}

/** The session's instants and switches, the clocks of a stored point, names that are near: what depends on no lake. */
export const clockWords: Readonly<Record<string, (argument: string) => string>> = {
  as_of: () => instantSql('as_of'),
  observed_as_of: () => instantSql('observed_as_of'),
  by_then: (at) => `${ledger.unset} OR ${at} <= ${ledger.asOf}`,
  stored_by_then: (at) => `CASE WHEN ${byLedgerSql(at)} THEN ${at} END`,
  existing_by_then: () =>
    `CASE WHEN ${ledger.unset} THEN removed_at IS NULL\n  ELSE added_at <= ${ledger.asOf} AND (removed_at IS ` +
    `NULL OR removed_at > ${ledger.asOf}) END`,
  unset: (variable) => unsetSql(variable),
  backfill: () => backfillSql,
  registry_backfill: () => `coalesce(CAST(getvariable('registry_backfill') AS BOOLEAN), false)`,
  series_comments: (view) => commentsOn(view, seriesComments),
  shown_in_proof: (at) => shownInProofSql(at),
  computed_at: (stored) => computedSql(stored),
  available_by_rule: (stored) => ruledSql(stored),
  /** Values of a column in a group, each once, sorted; empty if there are none. */
  distinct_list: (id) => `coalesce(list(DISTINCT ${id} ORDER BY ${id}) FILTER (${id} IS NOT NULL), [])`,
  /** The text of a group: what all its rows have, else each different one. */
  distinct_text: (text) => `string_agg(DISTINCT ${text}, ', ' ORDER BY ${text})`,
  chain_of: (id) => `regexp_replace(lower(${id}), '^eip155:', '')`,
  contract_of: (address) =>
    `CASE WHEN regexp_full_match(${address}, '0[xX][0-9a-fA-F]+') THEN lower(${address}) ELSE ${address} END`,
  ...askedWords,
}

/**
 * Builds the condition that something that the lake did at an instant had been done by `ledger_as_of`; true if that is
 * not set.
 */
function byLedgerSql(at: string): string {
  return `(${unsetSql('ledger_as_of')} OR ${at} <= ${instantSql('ledger_as_of')})`
}

/** Whether a row that arrived at an instant is visible in a look-ahead proof. */
function shownInProofSql(at: string): string {
  return `(${unsetSql('proof_hidden')} OR NOT ${betweenEdges('proof_hidden', at)})`
}

/** Facts of a lake about itself. */
function factWords({ root, head }: Sources): Readonly<Record<string, (argument: string) => string>> {
  return {
    version: () => String(head.version),
    committed_at: () => `make_timestamptz(${head.committed_at})`,
    newest_by_then: () => byLedgerSql(`make_timestamptz(${head.committed_at})`),
    digest: () => literal(head.digest),
    lake: () => literal(head.lake),
    folder: () => quote(root),
    pattern: (name) => quotePath(inLake(root, name)),
    provider: () => literal(head.provider?.metrics ?? head.provider?.registry),
    synthetic: () => String(head.provider?.synthetic ?? false),
  }
}

/** Builds the text of each placeholder; `onRead` gets the tables whose files a text names. */
function fillFor(sources: Sources, texts: readonly ObjectText[], onRead: (table: string) => void): PlaceholderFill {
  const { root, catalogue, files, earlier, revisable = [] } = sources
  const tables = Map.groupBy(files, (file) => file.table)
  const points = tables.get('points') ?? []
  const fill: PlaceholderFill = (word, argument) => (Object.hasOwn(words, word) ? words[word]?.(argument) : undefined)
  const body = (name: string, bodyFill = fill, all = false): string => {
    const object = texts.find((text) => text.kind === 'view' && text.name === name)
    return fillIn(object?.file ?? name, requireNamed(all ? object?.stored : object?.body, name), bodyFill)
  }
  /**
   * Builds the view `points` over a relation of files, or (`all`) every vintage; `ordered` keeps `observed_at` to sort
   * by.
   */
  const pointsIn = (relation: string, all = false, ordered = false): string => {
    const nestedFill: PlaceholderFill = (word, argument) => {
      if (ordered && word === 'stored_by_then') return argument
      if (word !== 'files' || argument !== 'points') return fill(word, argument)
      onRead('points')
      onRead('redated')
      return relation
    }
    return body('points', nestedFill, all)
  }
  const pointTexts = pointWords(sources, points, pointsIn)
  const words: Readonly<Record<string, (argument: string) => string>> = {
    ...joinPlaceholders({
      ...sources,
      ...pointTexts.early,
      revisable,
      files: points,
      points: (newest) => pointsIn(datedPoints(root, newest ?? readPoints(root, []), earlier), true, true),
      price: () => body('price_usd'),
      coverage: () => body('coverage'),
      uncovered: () => fill('ledger', 'uncovered') ?? '',
      last: () => `\n${fillIn('last_vintage', partOf('last_vintage'), fill)}`,
      stitched: () => (hasRegistry(tables) ? fillIn('stitched', partOf('stitched'), fill) : undefined),
    }),
    ...clockWords,
    ...pointTexts.words,
    every_point: () => pointsIn(datedPoints(root, readPoints(root, points), earlier), true),
    ...identityWords(revisable),
    ...vintageNotes(revisable, () => body('vintages')),
    files: (table) => {
      onRead(table)
      if (table !== 'points') return filesSql(root, tableOf(table, catalogue.resources), tables.get(table) ?? [])
      onRead('redated')
      return datedPoints(root, readPoints(root, points), earlier)
    },
    sessions: (asked) => sessionsSql(catalogue.sessions.values(), asked),
    session_codes: () => quote([...catalogue.sessions.keys()].toSorted().join(', ')),
    session_first: () => yearStartSql(catalogue.sessions.values(), ({ first }) => first),
    session_end: () => yearStartSql(catalogue.sessions.values(), ({ last }) => last + 1),
    ledger: (name) => {
      onRead(name)
      return exportedSql(sources, name, tables.get(name) ?? [])
    },
    ledger_comments: (name) => commentsOn(name, viewedColumns(requireNamed(exportedTables(catalogue)[name], name))),
    columns: (name) => selectList(name, requireNamed(exportedTables(catalogue)[name], name), fill),
    view: (name) => body(name),
    part: (name) => fillIn(name, partOf(name), fill),
    ...clockedPoints(pointTexts.early.parts, () => pointTexts.words.points(''), pointTexts.early.part),
    components_of: (relation) => {
      const alone = clockedPoints([], () => relation, pointTexts.early.part)
      return body('components', (word, argument) => alone[word]?.() ?? fill(word, argument))
    },
    ...nameWords(texts, catalogue),
    ...factWords(sources),
  }
  return fill
}

/** Whether there is a registry: without a product or a deployment no asset follows another. */
function hasRegistry(tables: ReadonlyMap<string, readonly StoredFile[]>): boolean {
  return ['history.products', 'history.deployments'].some((table) => (tables.get(table) ?? []).length > 0)
}

/** Names of objects and their fields. */
function nameWords(texts: readonly ObjectText[], catalogue: Catalogue) {
  return {
    registry_names: () => `[${registryNames(texts).map(quote).join(', ')}]`,
    ledger_names: () => `[${ledgerNames(texts).map(quote).join(', ')}]`,
    fields: (table: string) => columnList(fieldsOf(catalogue, table)),
    field_comments: (object: string) => commentsOn(object, fieldsOf(catalogue, object)),
  }
}

/**
 * Builds the view `points` of one metric, which names only that metric's files, and every vintage of revisable series.
 */
function pointWords(
  { root, catalogue, earlier, revisable = [] }: Sources,
  points: readonly StoredFile[],
  pointsIn: (relation: string, all?: boolean, ordered?: boolean) => string,
) {
  const over = (
    belongs: (of: { readonly metric: string }) => boolean,
    all: boolean,
    dated = (all: string) => all,
    ordered = false,
  ): string => {
    const files = points.filter((file) => sharesOf(file).some(belongs))
    return pointsIn(dated(datedPoints(root, readPoints(root, files), earlier.filter(belongs))), all, ordered)
  }
  const words = {
    points: (metric: string) =>
      metric === ''
        ? pointsIn(datedPoints(root, readPoints(root, points), earlier))
        : over((part) => part.metric === metric, !revisable.includes(metric)),
    revisable_points: () => {
      const those = revisable.length === 0 ? 'false' : `stored.metric IN (${revisable.map(quote).join(', ')})`
      return `${over(({ metric }) => revisable.includes(metric), true, undefined, true)}\n  AND ${those}`
    },
  }
  const imported = new Set([...catalogue.endpoints.values()].filter(isOwn).map(({ path }) => path))
  const importedWords = {
    // Without `as_of` nothing is scanned: the condition folds to false.
    imports_known: () =>
      imported.size === 0
        ? 'true'
        : `(${unsetSql('as_of')} OR source <> ${quote(importedSource)} OR path IN (
  SELECT metric FROM (${over(({ metric }) => imported.has(metric), true)}) AS known WHERE NOT ${unsetSql('as_of')}))`,
  }
  const part = ({ metric, dated }: EarlyPart): string =>
    over((part) => part.metric === metric, !revisable.includes(metric), dated)
  return { words: { ...words, ...importedWords }, early: { parts: earlyParts(catalogue), part } }
}

/**
 * Lists the objects that know nothing before the first snapshot of the registry; the listing of assets begins with
 * itself.
 */
function registryNames(texts: readonly ObjectText[]): readonly string[] {
  const registryObjects = texts.filter(({ text }) =>
    /\{\{(?:registry_backfill|part universe_decisions|view products)\}\}/.test(text),
  )
  return registryObjects.map(({ name }) => name).filter((name) => name !== 'metric_assets' && name !== 'question_notes')
}

/** Lists the views about the lake's own work. */
function ledgerNames(texts: readonly ObjectText[]): readonly string[] {
  const ledgerViews = texts.filter(
    ({ kind, text }) => kind === 'view' && /\{\{(?:by_then \w+|existing_by_then|view coverage)\}\}/.test(text),
  )
  return ledgerViews.map(({ name }) => name)
}

/** Builds the relation over an exported table; without a lake it is empty. */
function exportedSql({ root, catalogue, exports }: Sources, name: string, files: readonly StoredFile[]): string {
  if (exports === null) return emptySql(requireNamed(exportedTables(catalogue)[name], name).columns)
  return ledgerSql(root, requireNamed(exports.get(name), name), files)
}

function requireNamed<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new RangeError(`nothing of the views is named ${name}`)
  return value
}

function literal(text: string | null | undefined): string {
  return text === null || text === undefined ? 'CAST(NULL AS VARCHAR)' : quote(text)
}

/** Lists the fields of `issuers` or `history.issuers`: the part behind the last dot names the table. */
function fieldsOf(catalogue: Catalogue, object: string): readonly RegistryColumn[] {
  const name = object.slice(object.lastIndexOf('.') + 1).replaceAll('"', '')
  return requireNamed(recordTables(catalogue.resources).get(name), object)
}

/** Lists the columns of the view over an exported table. */
function viewedColumns({ columns, viewed }: ExportTable): readonly RegistryColumn[] {
  return viewed?.map(({ name, about }) => [name, '', about] as const) ?? columns
}

/** Formats the columns of the view over an exported table, for SELECT. */
function selectList(table: string, { columns, viewed }: ExportTable, fill: PlaceholderFill): string {
  const list = (viewed ?? columns.map(([name]) => ({ name, sql: undefined }))).map(({ name, sql }) =>
    sql === undefined ? quoteName(name) : `${fillIn(table, sql, fill)} AS ${quoteName(name)}`,
  )
  return list.join(', ')
}

/** Formats columns, each followed by a comma: there may be none. */
function columnList(columns: readonly RegistryColumn[]): string {
  return columns.map(([name]) => `${quoteName(name)},`).join(' ')
}

function commentsOn(object: string, columns: readonly RegistryColumn[]): string {
  const lines = columns.map(
    ([name, , about = '']) => `COMMENT ON COLUMN ${object}.${quoteName(name)} IS ${quote(about)};`,
  )
  return lines.join('\n')
}
