import { resolve } from 'node:path'
import { Document, parseDocument, stringify } from 'yaml'
import {
  type Catalogue,
  dimensions,
  type Endpoint,
  isOwn,
  type Resource,
  standardRule,
} from '../../catalog/catalogue.ts'
import { exampleRequest, exampleSeries, exportCatalogue } from '../../catalog/export.ts'
import { isOpenExchange } from '../../catalog/names.ts'
import { describeRule } from '../../catalog/rule-kinds.ts'
import type { Rule } from '../../catalog/availability.ts'
import type { Link } from '../../catalog/schema.ts'
import { expand, knownValues, matchPaths, refuseUnknown } from '../../catalog/series.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { applySettings, type Settings } from '../../catalog/settings.ts'
import { storedMetadata } from '../../sources/metrics/metadata.ts'
import { storedSelections } from '../../sources/metrics/prepare.ts'
import { putOut } from '../../lake/store/output.ts'
import { didYouMean, nearPaths, suggestion } from '../../base/suggestion.ts'
import { formatDuration, formatInstant, type Interval, intervals, unshownInterval } from '../../base/time.ts'
import { dbtSources } from '../../query/views/dbt.ts'
import { kinds } from '../../base/option-kinds.ts'
import { checkedCatalogue, readContext, readGiven, settingsOf } from '../cli/context.ts'
import { formatLabelled, type LabelledRow, several, table } from '../../base/figures.ts'
import { answering, type Call, type CommandContext, documentText, talking, type Typed } from '../cli/spec.ts'
import { existsSync } from 'node:fs'
import { importedRow, type ListedEndpoint, readListing } from '../../catalog/listing.ts'
import { loadCatalogue } from '../../catalog/load.ts'
import { findDrift, type ProviderDrift } from '../../sources/metrics/drift.ts'
import { listNewEndpoints, type ListedEndpoints } from '../../sources/metrics/listed-endpoints.ts'
import { endingAtOnce } from '../cli/process.ts'
import { besideWorld } from '../cli/world.ts'

/** Differences between the catalogue and the listing of a provider. */

const listOptions = {
  '--group LIST': 'first parts of paths, by comma',
  '--intervals LIST': { kind: kinds.list(intervals), about: 'endpoints with one of these intervals' },
  '--currencies LIST': { kind: kinds.list(['native', 'usd']), about: 'endpoints with one of these currencies' },
  '--exchanges LIST': 'endpoints with one of these exchanges',
  '--networks LIST': 'endpoints with one of these networks',
} as const

export const catalogListCommand = answering({
  args: { '[glob...]': { kind: kinds.list('metrics'), about: 'paths, `*` as a glob: `indicators/*`' } },
  options: listOptions,
  answer: async (call) => {
    const { catalogue, stderr } = call
    const endpoints = filtered(call)
    const words = (): string => {
      stderr(`${endpoints.length} of ${catalogue.endpoints.size} endpoints\n`)
      const rows = endpoints.map((endpoint) => {
        const rule = standardRule(endpoint)
        return [endpoint.path, endpoint.intervals.join(' '), extras(endpoint), `${describeRule(rule)} (${rule.basis})`]
      })
      return table(['path', 'intervals', 'takes', 'available'], rows)
    }
    const paths = new Set(endpoints.map((endpoint) => endpoint.path))
    return { document: exportCatalogue(catalogue).filter((row) => paths.has(row.path)), words }
  },
})

export const catalogShowCommand = answering({
  args: { '<path>': ['as in `catalog list`, or a resource: issuers, assets, products, …', kinds.list('metrics')] },
  details:
    `Plan tier and bulk support come from the provider's metadata in the lake. \`plan\` and \`fetch\` ` +
    'request these.',
  answer: async ({ args: [path = ''], catalogue, settings }) => {
    const resource = catalogue.resources.get(path)
    if (resource) return { document: resource, words: () => describeResource(resource) }
    const endpoint = pick(catalogue, path)
    const exported = exportCatalogue(catalogue).find((row) => row.path === endpoint.path)
    const { tier = null, bulk = null, at = null } = storedMetadata(settings.data).get(endpoint.ask) ?? {}
    const offer: Offer = { tier, bulk, metadata_at: at === null ? null : formatInstant(at) }
    const document = { ...exported, ...offer, source: endpoint.source, example: exampleRequest(catalogue, endpoint) }
    return { document, words: () => description(catalogue, endpoint, offer) }
  },
})

export const catalogExportCommand = talking({
  options: {
    '--json': 'JSON, as without --dbt',
    '--dbt': 'write a sources.yml for dbt 1.10 or later instead',
    '-o, --out FILE': 'write to a file, all or nothing',
  },
  details: `--dbt lists every view of the lake with its columns, types and tests. It also has a table for each endpoint and interval that the
configuration selects, or that the lake has if nothing is selected. The freshness of such a table follows its availability rule. User
data has no freshness. The dbt profile attaches lake.duckdb as lake: docs/how-to/orchestration.md.`,
  run: async (call) => {
    const { options, cwd, settings, catalogue, stdout } = await readContext(call)
    const { dbt, out: file, json } = options
    if (dbt && json) throw usage('--dbt', { expected: 'no --json with it', got: 'both', next: 'leave one out' })
    const text = dbt ? await dbtText({ settings, catalogue }) : documentText(exportCatalogue(catalogue))
    if (file === undefined) stdout(text)
    else await putOut(resolve(cwd, file), text, settings.data, '--out')
  },
})

async function dbtText({ settings, catalogue }: CommandContext): Promise<string> {
  const selections = settings.select.length > 0 ? settings.select : await storedSelections(settings, catalogue)
  const sources = await dbtSources(catalogue, expand(catalogue, selections))
  const document = new Document(sources, { aliasDuplicateObjects: false, schema: 'yaml-1.1' })
  document.commentBefore = ' Made by `pitlake catalog export --dbt`: make it again with that command, do not edit it.'
  return document.toString({ lineWidth: 0 })
}

export const catalogCheckCommand = answering({
  args: { '[file...]': 'further catalogue files to check' },
  answer: async ({ args, settings, cwd }) => {
    const files = args.map((file) => resolve(cwd, file))
    const catalogue = await checkedCatalogue([...new Set([...settings.catalogs, ...files])])
    expand(catalogue, settings.select)
    const stated_rules = [...catalogue.endpoints.values()].filter((e) => standardRule(e).basis === 'stated').length
    const endpoints = catalogue.endpoints.size
    const resources = catalogue.resources.size
    const links = catalogue.links.map(describeLink)
    const found =
      `${several(endpoints, 'endpoint')} (${stated_rules} with a stated availability rule), ${resources} ` +
      'registry resources'
    return {
      document: { endpoints, stated_rules, resources, links, digest: catalogue.digest },
      words: () => `${links.map((link) => `link ${link}\n`).join('')}${found}, no problems\n`,
    }
  },
})

function describeLink(link: Link): string {
  const target = link.productId ?? `${link.chainId} ${link.address}`
  const from = link.from === null ? '' : ` from ${formatInstant(link.from)}`
  return `${link.metricAsset} = ${target}${from}${link.until === null ? '' : ` until ${formatInstant(link.until)}`}`
}

function filtered({ catalogue, args, options }: Call<typeof listOptions>): Endpoint[] {
  const { endpoints } = catalogue
  const groupOf = ({ path }: Endpoint): string => path.split('/')[0] ?? ''
  const tests = [
    {
      name: 'group',
      known: [...new Set([...endpoints.values()].map(groupOf))],
      of: (endpoint: Endpoint) => [groupOf(endpoint)],
    },
    ...dimensions.map(({ plural }) => {
      return {
        name: plural,
        known: knownValues(catalogue, plural),
        of: (endpoint: Endpoint): readonly string[] => endpoint[plural],
      }
    }),
  ] as const
  for (const { name, known } of tests) refuseUnknown(`--${name}`, options[name] ?? [], known)
  return matchPaths(catalogue, args.length > 0 ? args : ['*']).filter((endpoint) =>
    tests.every(({ name, of }) => options[name]?.some((value) => of(endpoint).includes(value)) ?? true),
  )
}

function pick({ endpoints, resources }: Catalogue, path: string): Endpoint {
  const endpoint = endpoints.get(path)
  if (endpoint) return endpoint
  const resource = suggestion(path, [...resources.keys()])
  const near = resource === undefined ? nearPaths(path, [...endpoints.keys()]) : [resource]
  const next = didYouMean(near, 'see `pitlake catalog list`')
  throw usage(`catalog show ${path}`, { expected: 'a path of the catalogue', got: path, next })
}

function extras(endpoint: Endpoint): string {
  const parts = dimensions.flatMap(({ singular, plural }) =>
    singular !== 'interval' && endpoint[plural].length > 0 ? [singular] : [],
  )
  return [...parts, ...(endpoint.since && endpoint.until ? [] : ['whole series'])].join(' ')
}

/** Facts about an endpoint from the provider's metadata in the lake, in addition to those of the catalogue. */
interface Offer {
  /** The lowest tier of a plan that includes it; null if it is not known. */
  readonly tier: number | null
  /** Whether it is offered for all assets at once; null if it is not known. */
  readonly bulk: boolean | null
  /** Time when the metadata were first read in their present form; null if the lake has none. */
  readonly metadata_at: string | null
}

function offerLines(endpoint: Endpoint, { tier, bulk, metadata_at }: Offer): LabelledRow[] {
  if (isOwn(endpoint)) return []
  const unknown = metadata_at === null ? 'not known: the lake has no metadata of it yet' : 'not in the metadata'
  const dated = metadata_at === null ? '' : `  (metadata of ${metadata_at.slice(0, 10)})`
  return [
    ['plan tier', tier === null ? unknown : `${tier}${dated}`],
    ['bulk', bulk === null ? unknown : `${bulk ? 'yes' : 'no'}${dated}`],
  ]
}

function description(catalogue: Catalogue, endpoint: Endpoint, offer: Offer): string {
  const { defaults, placeholders, tolerance, since, until, format } = endpoint
  const takes = Object.entries({ since, until, format, 'timestamp format': endpoint.timestampFormat })
  const takenNames = takes.flatMap(([name, is]) => (is ? [name] : []))
  const unnamed = 'map the path in pitlake.yaml (metrics.paths) before you request a real provider'
  const mapped = endpoint.exchanges.some((id) => isOpenExchange(catalogue, id))
  return `${endpoint.path}\n${indented([
    ['about', endpoint.about],
    endpoint.intervals.length === 0 && ['intervals', 'none; the whole series comes each time'],
    ...dimensions
      .filter(({ plural }) => endpoint[plural].length > 0)
      .map(
        ({ singular, plural }) => [plural, `${endpoint[plural].join(', ')}  (default ${defaults[singular]})`] as const,
      ),
    ['takes', takenNames.join(', ')],
    ...offerLines(endpoint, offer),
    ...Object.entries(endpoint.params).map(([key, value]) => ['param', `${key}=${value}`] as const),
    ...ruleLines(endpoint),
    placeholders.length > 0 && ['placeholder', `${placeholders.join(', ')}: ${unnamed}`],
    mapped && ['placeholder', 'exchange ids: map them in pitlake.yaml (metrics.exchanges)'],
    ['overlap', `${endpoint.overlap}${endpoint.revisable ? '; another value is a further vintage (revisable)' : ''}`],
    ['tolerance', tolerance === null ? 'the larger of 2 days and 3 intervals' : formatDuration(tolerance)],
    ...Object.entries(endpoint.extra).map(([key, value]) => [key, JSON.stringify(value)] as const),
    ['series', exampleSeries(endpoint)],
    ['request', exampleRequest(catalogue, endpoint)],
    ['from', endpoint.source],
  ])}`
}

function indented(rows: readonly LabelledRow[]): string {
  const inside = rows.map((row): LabelledRow => row && [`  ${row[0]}`, row[1]])
  return formatLabelled(inside, 15)
}

function describeResource(resource: Resource): string {
  const fields = Object.entries(resource.fields).map(([name, { keys, values, open, to, kind }]) => {
    const under = keys.length === 1 && keys[0] === name ? '' : `, found under ${keys.join(' or ')}`
    const of = values.length === 0 ? '' : `: ${values.join(', ')}${open ? ' (can grow)' : ''}`
    return `    ${name.padEnd(20)} ${to === null ? kind : `reference to ${to}`}${of}${under}\n`
  })
  const embeds = Object.entries({ ...resource.holds, ...resource.embeds }).map(([key, table]) => `${key} -> ${table}`)
  return `${resource.name}\n${indented([
    ['entity', resource.entity],
    ['list', `${resource.path}${resource.detail ? `, detail ${resource.path}/{id}` : ', no detail'}`],
    ['filters', resource.filters.join(', ')],
    ['embeds', embeds.join(', ') || 'nothing'],
    ['from', resource.source],
  ])}  fields\n${fields.join('')}`
}

/** Formats one line for each distinct rule, with the intervals that it applies to. */
function ruleLines(endpoint: Endpoint): (readonly [string, string])[] {
  const ownIntervals: readonly Interval[] = endpoint.intervals.length === 0 ? [unshownInterval] : endpoint.intervals
  const all = ownIntervals.flatMap((interval) =>
    endpoint.rules[interval].map((rule) => ({ interval, text: ruleText(rule) })),
  )
  const lines = Map.groupBy(all, ({ text }) => text)
  return [...lines].map(([text, of]) => {
    return ['available', lines.size === 1 ? text : `${of.map(({ interval }) => interval).join(', ')}: ${text}`]
  })
}

function ruleText(rule: Rule): string {
  const until = rule.until === null ? '' : `, for t before ${formatInstant(rule.until)}`
  return `${describeRule(rule)}${until} [${rule.basis}: ${rule.quote === null ? rule.reason : `"${rule.quote}"`}]`
}

const importOptions = {
  '--out FILE': ['the user catalogue file to write', 'my-endpoints.yaml'],
  '--all': 'also import paths that do not end in _pit',
  '--add': 'add to the existing file',
  '--force': 'overwrite the file',
  '--path PATH': 'where below /v1/metrics/ the provider lists its endpoints; default: its metadata, then `endpoints`',
  '--max-requests N': ['most paths whose metadata are requested', '1000'],
  // Not an answer: the file that it overwrites may be one that the config names, and broken.
  '--json': 'one JSON document on stdout',
} as const

export const catalogImportCommand = talking({
  args: { '[file]': 'a saved listing; default: the list that the provider returns' },
  options: importOptions,
  details: `Without a file, import requests the provider's list of paths, and the metadata of each path that the catalogue does not have. These
requests are free. It prints each path that it adds or leaves out, with the reason. After a limit or an interrupt, continue with
--add. Unknown keys go to \`extra\`.

Name the written file in pitlake.yaml: \`catalogs: [my-endpoints.yaml]\`.`,
  run: async (call) => {
    const { options, cwd } = call
    const { out, add, force } = options
    const target = resolve(cwd, out)
    if (add && force) throw usage('--add', { expected: 'no --force with it', got: 'both', next: 'leave one out' })
    const isKept = add && existsSync(target)
    if (existsSync(target) && !force && !add)
      throw usage(out, { expected: 'no such file yet', got: 'one', next: 'use --force to overwrite, or --add' })
    const settings = settingsOf(call)
    const others = settings.catalogs.filter((path) => path !== target)
    const file: EndpointsFile = {
      name: out,
      target,
      others,
      before: isKept ? readGiven(call, out, 'a catalogue') : null,
    }
    const [listing] = call.args
    if (listing === undefined) return await importAsked(call, settings, file)
    await importSaved(call, settings, { ...file, listing })
  },
})

/** The catalogue file that an import writes. */
interface EndpointsFile {
  /** Name as the user wrote it. */
  readonly name: string
  /** Path of the file. */
  readonly target: string
  /** The other catalogue files of the configuration. */
  readonly others: readonly string[]
  /** Content to add to; null to begin anew. */
  readonly before: string | null
}

/** Lists the catalogue files that are read before the import: their paths are known. */
function knownFiles({ others, before, target }: EndpointsFile): string[] {
  return before === null ? [...others] : [...others, target]
}

/** Writes rows into the file, which appears whole, if all catalogues are valid with it. */
async function writeEndpoints(
  { name, target, others, before }: EndpointsFile,
  { rows, from, data }: { readonly rows: readonly ListedEndpoint[]; readonly from: string; readonly data: string },
): Promise<void> {
  const header = `# Endpoints imported from ${from}; name this file under \`catalogs:\` in pitlake.yaml.\n`
  const options = { lineWidth: 0, aliasDuplicateObjects: false } as const
  const document = before === null ? null : parseDocument(before)
  for (const row of document === null ? [] : rows) document?.addIn(['endpoints'], document.createNode(row, options))
  const text = document?.toString({ lineWidth: 0 }) ?? header + stringify({ endpoints: rows }, options)
  endingAtOnce(() => loadCatalogue(others, undefined, [{ name, text }]))
  await putOut(target, text, data, '--out')
}

/** Imports a listing that the user has saved. */
async function importSaved(
  call: Typed<typeof importOptions>,
  settings: Settings,
  { listing, ...file }: EndpointsFile & { readonly listing: string },
): Promise<void> {
  const { options, stdout } = call
  const { out, all, json } = options
  const { endpoints } = endingAtOnce(() => loadCatalogue(knownFiles(file)))
  const listed = readListing(listing, readGiven(call, listing, 'a readable listing'))
  const wanted = listed.filter((row) => all || row.path.endsWith('_pit'))
  const fresh = wanted.filter((row) => !endpoints.has(row.path))
  const added = fresh.length
  const existing = wanted.length - added
  const skipped = listed.length - wanted.length
  const from = listing.split('/').at(-1) ?? listing
  if (added > 0) await writeEndpoints(file, { rows: fresh.map(importedRow), from, data: settings.data })
  const words = `${listed.length} listed, ${existing} known already, ${skipped} not point-in-time, ${added} added`
  const document = { listed: listed.length, known: existing, added, skipped, file: added > 0 ? out : null }
  stdout(json ? documentText(document) : `${words}${added > 0 ? ` to ${out}` : ''}\n`)
}

/** Imports what the provider itself lists. */
async function importAsked(call: Typed<typeof importOptions>, settings: Settings, file: EndpointsFile): Promise<void> {
  const { options, stdout } = call
  const { all, path = null, maxRequests, json } = options
  const before = await checkedCatalogue(knownFiles(file), settings)
  const catalogue = endingAtOnce(() => applySettings(before, settings))
  const newEndpoints = await listNewEndpoints(
    { settings, catalogue, all, path, mostPaths: maxRequests },
    besideWorld(call),
  )
  const rows = newEndpoints.taken.map(({ row }) => importedRow(row))
  const from = "the provider's metadata"
  if (rows.length > 0) await writeEndpoints(file, { rows, from, data: settings.data })
  const isNamed = settings.catalogs.includes(file.target)
  const written = rows.length > 0 ? file.name : null
  const { listed, known, skipped, requests, left, stopped } = newEndpoints
  const takenPaths = newEndpoints.taken.map(({ row, tier }) => ({ path: row.path, tier }))
  const document = { listed, known, added: rows.length, skipped, file: written, requests, taken: takenPaths, left }
  stdout(json ? documentText(document) : importInWords(newEndpoints, { written, isNamed }))
  if (stopped === null) return
  const next = `${stopped.next}, with --add`
  throw new LakeError('stopped', { subject: 'the provider was not read to the end', got: stopped.reason, next })
}

function importInWords(
  { listed, known, skipped, requests, taken, left }: ListedEndpoints,
  { written, isNamed }: { readonly written: string | null; readonly isNamed: boolean },
): string {
  const rows: LabelledRow[] = [
    ...taken.map(({ row, tier }) => ['taken', tier === null ? row.path : `${row.path}  tier ${tier}`] as const),
    ...left.map(({ path, reason }) => ['left', `${path}: ${reason}`] as const),
    ['requests', `${requests}, free`],
    written !== null && ['wrote', written],
    written !== null && !isNamed && ['next', `name it in pitlake.yaml: catalogs: [${written}]`],
  ]
  const counts = `${listed} listed, ${known} known already, ${skipped} not point-in-time, ${taken.length} added`
  return `${counts}${written === null ? '' : ` to ${written}`}\n${formatLabelled(rows, 10)}`
}

export const catalogDriftCommand = answering({
  options: {
    '--file FILE': 'use a saved listing instead of a request',
    '--path PATH': 'where below /v1/metrics/ the provider lists its endpoints; default: its metadata, then `endpoints`',
    '--all': 'also compare paths that do not end in _pit',
    '--strict': 'exit with 4 if anything differs',
  },
  details: `Sends one or two requests. If the listing has only paths, drift compares their parameters with the metadata in the lake. A
parameter that neither of them has counts as unchanged. Placeholders without a real name are listed separately. \`catalog import\`
adds new paths to your catalogue.`,
  answer: async (call) => {
    const { settings, catalogue, options } = call
    const { file, path = null, all, strict } = options
    const text = file === undefined ? '' : readGiven(call, file, 'a readable listing', `--file ${file}`)
    const listing = file === undefined ? null : { name: file, text }
    const metadata = storedMetadata(settings.data)
    const drift = await findDrift({ settings, catalogue, file: listing, path, all, metadata }, besideWorld(call))
    return { document: drift, words: () => driftInWords(drift), error: strict ? driftVerdict(drift) : null }
  },
})

const countDrift = ({ gone, changed, ...rest }: ProviderDrift): number => rest.new.length + gone.length + changed.length

function driftVerdict(drift: ProviderDrift): LakeError | null {
  const count = countDrift(drift)
  if (count === 0) return null
  const subject = `the provider's listing differs in ${several(count, 'endpoint')}`
  return new LakeError('integrity', { subject, next: 'see the report; `pitlake catalog import` adds new ones' })
}

function driftInWords(drift: ProviderDrift): string {
  const { listed, described, catalogued, gone, changed, unmapped } = drift
  const differing = changed.flatMap(({ path, changes }) =>
    changes.map(({ parameter, added, removed }) => {
      const parts = [...added.map((value) => `+${value}`), ...removed.map((value) => `-${value}`)]
      return `${path}: ${parameter} ${parts.join(' ')}`
    }),
  )
  const unnamed = `${unmapped.length} placeholders have no real name yet (metrics.paths)`
  const rows = { new: drift.new, gone, changed: differing, unmapped: unmapped.length > 0 ? [unnamed] : [] }
  const lines = Object.entries(rows).flatMap(([label, texts]) => texts.map((text) => [label, text] as const))
  const none = countDrift(drift) === 0 ? 'no drift\n' : ''
  const fromMetadata = described === 0 ? '' : `, ${described} described by stored metadata`
  return `${listed} listed, ${catalogued} in the catalogue${fromMetadata}\n${formatLabelled(lines, 10)}${none}`
}
