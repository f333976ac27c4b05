import { resolve } from 'node:path'
import { Document } from 'yaml'
import { type Catalogue, dimensions, type Endpoint, type Resource, standardRule } from '../catalog/catalogue.ts'
import { exampleRequest, exampleSeries, exportCatalogue } from '../catalog/export.ts'
import { describeRule } from '../catalog/rule-kinds.ts'
import type { Link } from '../catalog/schema.ts'
import { expand, knownValues, matchPaths, refuseUnknown } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import { heldSelections } from '../metrics/prepare.ts'
import { putOut } from '../store/output.ts'
import { didYouMean, nearPaths, suggestion } from '../suggestion.ts'
import { formatDuration, formatInstant, type Interval, intervals, unshownInterval } from '../time.ts'
import { dbtSources } from '../views/dbt.ts'
import { kinds } from '../kinds.ts'
import { checkedCatalogue, readContext } from './context.ts'
import { labelled, type LabelledRow, table } from '../words/table.ts'
import { answering, type CommandContext, type Input, documentText, talking } from './spec.ts'

const listOptions = {
  '--group LIST': 'first part of the path, by comma',
  '--intervals LIST': { kind: kinds.list(intervals), about: 'those that take one of these intervals' },
  '--currencies LIST': { kind: kinds.list(['native', 'usd']), about: 'those that take one of these currencies' },
  '--exchanges LIST': 'those that take one of these exchanges',
  '--networks LIST': 'those that take one of these networks',
} as const

/** `catalog list`: one line per endpoint. */
export const listEndpointsCommand = answering({
  name: 'catalog list',
  ends: [],
  args: [{ name: 'glob', kind: kinds.list('metrics'), about: 'paths, `*` as a glob: `indicators/*`', many: true }],
  options: listOptions,
  answer: async (input, { catalogue }, deps) => {
    const found = filtered(catalogue, input)
    const words = (): string => {
      deps.stderr(`${found.length} of ${catalogue.endpoints.size} endpoints\n`)
      const rows = found.map((one) => [one.path, one.intervals.join(' '), extras(one), describeStandard(one)])
      return table(['path', 'intervals', 'takes', 'available'], rows)
    }
    const paths = new Set(found.map((endpoint) => endpoint.path))
    return { document: exportCatalogue(catalogue).filter((row) => paths.has(row.path)), words }
  },
})

/** `catalog show PATH`: everything, with an example request. */
export const showEndpointCommand = answering({
  name: 'catalog show',
  ends: [],
  args: [
    {
      name: 'path',
      kind: kinds.list('metrics'),
      about: 'as in `catalog list`, or a resource: issuers, assets, products, …',
      required: true,
    },
  ],
  options: {},
  answer: async (input, { catalogue }) => {
    const resource = catalogue.resources.get(input.args[0] ?? '')
    if (resource) return { document: resource, words: () => describeResource(resource) }
    const endpoint = pick(catalogue, input.args[0] ?? '')
    const exported = exportCatalogue(catalogue).find((row) => row.path === endpoint.path)
    const document = { ...exported, source: endpoint.source, example: exampleRequest(catalogue, endpoint) }
    return { document, words: () => description(catalogue, endpoint) }
  },
})

/** `catalog export`: every endpoint in full. */
export const exportCatalogueCommand = talking({
  name: 'catalog export',
  ends: [6],
  options: {
    '--json': 'the form without --dbt; accepted for symmetry',
    '--dbt': 'a sources.yml for dbt 1.10 and later instead',
    '-o, --out FILE': 'write it to a file, which appears whole',
  },
  details: `--dbt lists every view of the lake with its columns, their types and what is true of them, and a table for each
endpoint and interval that is selected in the config, else held, with the freshness that its availability rule foresees.
The profile attaches lake.duckdb as lake: docs/orchestration.md.`,
  run: async (input, deps) => {
    const { settings, catalogue } = await readContext(input, deps)
    const { dbt, out: file } = input.options
    if (dbt && input.options.json)
      throw usage('--dbt', { expected: 'no --json beside it', got: 'both', next: 'leave one out' })
    const text = dbt ? await dbtText({ settings, catalogue }) : documentText(exportCatalogue(catalogue))
    if (file === undefined) deps.stdout(text)
    else await putOut(resolve(deps.cwd, file), text, settings.data, '--out')
  },
})

async function dbtText({ settings, catalogue }: CommandContext): Promise<string> {
  const selections = settings.select.length > 0 ? settings.select : await heldSelections(settings, catalogue)
  const sources = await dbtSources(catalogue, expand(catalogue, selections))
  const head = ' Made by `pitlake catalog export --dbt`; make it anew rather than change it.'
  const document = new Document(sources, { aliasDuplicateObjects: false, schema: 'yaml-1.1' })
  document.commentBefore = head
  return document.toString({ lineWidth: 0 })
}

/** `catalog check`: the whole catalogue and config, all problems at once. */
export const checkCatalogueCommand = answering({
  name: 'catalog check',
  ends: [],
  args: [{ name: 'file', about: 'further catalogue files to check', many: true }],
  options: {},
  answer: async (input, { settings }, deps) => {
    const files = input.args.map((file) => resolve(deps.cwd, file))
    const catalogue = await checkedCatalogue([...new Set([...settings.catalogs, ...files])])
    expand(catalogue, settings.select)
    const stated = [...catalogue.endpoints.values()].filter((e) => standardRule(e).basis === 'stated').length
    const facts = {
      endpoints: catalogue.endpoints.size,
      stated_rules: stated,
      resources: catalogue.resources.size,
      links: catalogue.links.map(describeLink),
      digest: catalogue.digest,
    }
    const links = facts.links.map((link) => `link ${link}\n`).join('')
    const words = (): string =>
      `${links}${facts.endpoints} endpoints (${stated} with a stated availability rule), ${facts.resources} registry resources, no problems\n`
    return { document: facts, words }
  },
})

function describeLink(link: Link): string {
  const target = link.productId ?? `${link.chainId} ${link.address}`
  const from = link.from === null ? '' : ` from ${formatInstant(link.from)}`
  return `${link.metricAsset} = ${target}${from}${link.until === null ? '' : ` until ${formatInstant(link.until)}`}`
}

function filtered(catalogue: Catalogue, { args, options }: Input<typeof listOptions>): Endpoint[] {
  const { group: groups } = options
  const given = dimensions.map(({ many }) => ({ many, values: options[many] }))
  const found = matchPaths(catalogue, args.length > 0 ? args : ['*'])
  for (const { many, values = [] } of given) refuseUnknown(`--${many}`, values, knownValues(catalogue, many))
  refuseUnknown('--group', groups ?? [], [...new Set([...catalogue.endpoints.values()].map(groupOf))])
  return found.filter(
    (endpoint) =>
      (groups === undefined || groups.includes(groupOf(endpoint))) &&
      given.every(({ many, values }) => {
        const own: readonly string[] = endpoint[many]
        return values === undefined || values.some((value) => own.includes(value))
      }),
  )
}

function groupOf(endpoint: Endpoint): string {
  return endpoint.path.split('/')[0] ?? ''
}

function pick(catalogue: Catalogue, path: string): Endpoint {
  const endpoint = catalogue.endpoints.get(path)
  if (endpoint) return endpoint
  const resource = suggestion(path, [...catalogue.resources.keys()])
  const near = resource === undefined ? nearPaths(path, [...catalogue.endpoints.keys()]) : [resource]
  const next = didYouMean(near, 'see `pitlake catalog list`')
  throw usage(`catalog show ${path}`, { expected: 'a path of the catalogue', got: path, next })
}

function describeStandard(endpoint: Endpoint): string {
  const rule = standardRule(endpoint)
  return `${describeRule(rule)} (${rule.basis})`
}

function extras(endpoint: Endpoint): string {
  const parts = dimensions.flatMap(({ one, many }) => (one !== 'interval' && endpoint[many].length > 0 ? [one] : []))
  return [...parts, ...(endpoint.since && endpoint.until ? [] : ['whole series'])].join(' ')
}

function description(catalogue: Catalogue, endpoint: Endpoint): string {
  const { defaults, intervals: own, placeholders, exchanges, tolerance } = endpoint
  const takes = [
    endpoint.since && 'since',
    endpoint.until && 'until',
    endpoint.format && 'format',
    endpoint.timestampFormat && 'timestamp format',
  ]
  const unnamed = 'map the path in pitlake.yaml (metrics.paths) before a real provider is asked'
  const rows: readonly LabelledRow[] = [
    ['about', endpoint.about],
    own.length === 0 && ['intervals', 'none; the whole series comes each time'],
    ...dimensions
      .filter(({ many }) => endpoint[many].length > 0)
      .map(({ one, many }) => [many, `${endpoint[many].join(', ')}  (default ${defaults[one]})`] as const),
    ['takes', takes.filter((name) => name !== false).join(', ')],
    ...Object.entries(endpoint.params).map(([key, value]) => ['param', `${key}=${value}`] as const),
    ...ruleLines(endpoint),
    placeholders.length > 0 && ['placeholder', `${placeholders.join(', ')}: ${unnamed}`],
    exchanges.some((id) => catalogue.placeholderExchanges.has(id)) && [
      'placeholder',
      'exchange ids: map them in pitlake.yaml (metrics.exchanges)',
    ],
    ['overlap', endpoint.overlap],
    ['tolerance', tolerance === null ? 'the larger of 2 days and 3 intervals' : formatDuration(tolerance)],
    ...Object.entries(endpoint.extra).map(([key, value]) => [key, JSON.stringify(value)] as const),
    ['series', exampleSeries(endpoint)],
    ['request', exampleRequest(catalogue, endpoint)],
    ['from', endpoint.source],
  ]
  return `${endpoint.path}\n${indented(rows)}`
}

function indented(rows: readonly LabelledRow[]): string {
  return labelled(
    rows.map((row) => row && [`  ${row[0]}`, row[1]]),
    15,
  )
}

/** A registry resource as people read it. */
function describeResource(resource: Resource): string {
  const fields = Object.entries(resource.fields).map(([name, field]) => {
    const keys = field.keys.length === 1 && field.keys[0] === name ? '' : `, found under ${field.keys.join(' or ')}`
    const values = field.values.length === 0 ? '' : `: ${field.values.join(', ')}${field.open ? ' (can grow)' : ''}`
    return `    ${name.padEnd(20)} ${field.to === null ? field.kind : `reference to ${field.to}`}${values}${keys}`
  })
  const embeds = Object.entries({ ...resource.holds, ...resource.embeds }).map(([key, table]) => `${key} -> ${table}`)
  const detail = resource.detail ? `, detail ${resource.path}/{id}` : ', no detail'
  const rows = [
    ['entity', resource.entity],
    ['list', `${resource.path}${detail}`],
    ['filters', resource.filters.join(', ')],
    ['embeds', embeds.join(', ') || 'nothing'],
    ['from', resource.source],
  ] as const
  return `${resource.name}\n${indented(rows)}  fields\n${fields.map((line) => `${line}\n`).join('')}`
}

/** One line per distinct rule, with the intervals that it holds for. */
function ruleLines(endpoint: Endpoint): (readonly [string, string])[] {
  const own: readonly Interval[] = endpoint.intervals.length === 0 ? [unshownInterval] : endpoint.intervals
  const lines = new Map<string, Interval[]>()
  for (const interval of own) {
    for (const rule of endpoint.rules[interval]) {
      const until = rule.until === null ? '' : `, for t before ${formatInstant(rule.until)}`
      const why = rule.quote === null ? rule.reason : `"${rule.quote}"`
      const text = `${describeRule(rule)}${until} [${rule.basis}: ${why}]`
      lines.set(text, [...(lines.get(text) ?? []), interval])
    }
  }
  return [...lines].map(([text, held]) => ['available', lines.size === 1 ? text : `${held.join(', ')}: ${text}`])
}
