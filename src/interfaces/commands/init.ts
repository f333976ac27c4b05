import { existsSync, readFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { configJsonSchema } from '../../catalog/config.ts'
import { loadCatalogue } from '../../catalog/load.ts'
import { applySettings, resolveSettings, type Settings } from '../../catalog/settings.ts'
import { usage } from '../../base/errors.ts'
import { several, span, formatCount } from '../../base/figures.ts'
import { redact } from '../../base/secrets.ts'
import { formatDate } from '../../base/time.ts'
import { putOut } from '../../lake/store/output.ts'
import { missingAccess } from '../../sources/http/connection.ts'
import { exploreProvider, type ProviderSetup } from '../../sources/provider-check/setup.ts'
import { instantNow } from '../cli/context.ts'
import { documentText, talking, type Typed } from '../cli/spec.ts'
import { besideWorld, lakeWorld } from '../cli/world.ts'

const initOptions = {
  '--schema': 'print the JSON schema of pitlake.yaml instead, for editors',
  '--force': 'overwrite existing files',
  '--max-credits N': ['most credits that the written selection may cost', '300'],
} as const

export const initCommand = talking({
  options: initOptions,
  details: `If you set PITLAKE_METRICS_URL and PITLAKE_METRICS_KEY, init requests the provider's metadata, which is free. It also sends at
most ten requests that cost credits, and shows the cost first. The configuration then has the real names of paths and exchanges, a
list of what your plan does not include, and a selection that costs at most --max-credits.

Without a key, init writes a template and contacts no provider.`,
  run: async (call) => {
    const { schema, force } = call.options
    const { cwd, stdout, stderr } = call
    if (schema) return stdout(documentText(configJsonSchema()))
    if (cwd.includes('?'))
      throw usage('init', { expected: 'a folder without ? in its path', got: cwd, next: 'rename it' })
    if (existsSync(resolve(cwd, 'pitlake.yaml')) && !force)
      throw usage('pitlake.yaml', { expected: 'no such file yet', got: 'one', next: 'use --force to overwrite' })
    // The file that is overwritten does not count.
    const settings = resolveSettings({ flags: call.options, env: call.env, cwd, ignoreFile: true })
    const config = await askedConfig(call, settings)
    const folder = namedFolder(settings, cwd)
    const configFile = withFolder(config ?? template('pitlake.yaml'), folder)
    for (const [name, text] of [
      ['pitlake.yaml', configFile],
      ['.env.example', template('.env.example')],
    ] as const) {
      const path = resolve(cwd, name)
      // A checkout of the project has an .env.example already.
      if (existsSync(path) && !force) {
        stderr(`kept ${name}\n`)
        continue
      }
      await putOut(path, text, null, 'init')
      stderr(`wrote ${name}\n`)
    }
    if (folder !== null) stderr(`data      ${folder}, also without --data and PITLAKE_DATA: it is in pitlake.yaml\n`)
    if (config === null) stderr(afterTemplate(settings))
  },
})

/** Line of a configuration without a folder, as in the template. */
const folderLine = '# data: data                        # folder of the lake'

/**
 * Returns the folder of the lake if a flag or a variable names it, relative to the configuration if it is inside that
 * folder; null otherwise.
 */
function namedFolder({ data, effective }: Settings, cwd: string): string | null {
  const origin = effective.find(({ name }) => name === 'data')?.origin
  if (origin !== 'flag' && origin !== 'environment') return null
  const inside = relative(cwd, data)
  return inside === '' ? '.' : inside.startsWith('..') ? data : inside
}

/**
 * Writes the folder of the lake into a configuration: its selection and names are those of one provider, and so is the
 * lake. A shell without the variable would otherwise begin a second lake.
 */
function withFolder(config: string, folder: string | null): string {
  return folder === null ? config : config.replace(folderLine, () => `data: ${yamlText(folder)}`)
}

/** Formats the step after a template: the reason for which no metrics API was contacted, unless only a registry is set. */
function afterTemplate(settings: Settings): string {
  const { metrics, registry } = settings
  const isRegistryAlone = metrics.url === null && metrics.key === null && registry.url !== null && registry.key !== null
  if (isRegistryAlone && settings.misnamedVariables.length === 0) return 'next      pitlake registry sync\n'
  const missing = missingAccess('metrics', settings)
  const next = 'pitlake.yaml is a template: set the variable, then run pitlake init --force'
  return missing === null ? '' : `note: ${usage(missing.subject, { ...missing, next }).message}\n`
}

/** Reads a template: templates are in the catalogue's folder, so that they are data, too. */
function template(name: string): string {
  return readFileSync(new URL(`../../../catalog/templates/${name.replace(/^\./, 'dot')}`, import.meta.url), 'utf8')
}

/** Builds the configuration from the provider's answers; null if none is in the environment. */
async function askedConfig(call: Typed<typeof initOptions>, settings: Settings): Promise<string | null> {
  const { stderr, options } = call
  if (settings.metrics.url === null || settings.metrics.key === null) return null
  const catalogue = applySettings(loadCatalogue(), settings)
  const now = instantNow(call)
  stderr(`asking the provider for its metadata: up to ${catalogue.endpoints.size + 1} requests, free\n`)
  const setup = await exploreProvider(
    { settings, catalogue, now, maxCredits: options.maxCredits },
    { ...besideWorld(call), ...lakeWorld(call, 'init') },
    (requests, credits) =>
      stderr(`asking for a few points: ${several(requests, 'request')}, ${several(credits, 'credit')}\n`),
  )
  const text = configText(setup, formatDate(now))
  const { refused, missing, ambiguous, totals } = setup
  const open = ambiguous.filter(({ candidates }) => candidates.length > 1).length
  const counts = [
    refused.length > 0 && `${refused.length} paths are beyond your plan`,
    missing.length > 0 && `${missing.length} are unknown to the provider`,
    open > 0 && `${open} has several names to choose from`,
  ].filter((part) => part !== false)
  if (counts.length > 0) stderr(`${counts.join(', ')}: see the comments in pitlake.yaml\n`)
  stderr(`selected  ${planInWords(totals)}\nnext      pitlake fetch\n`)
  return redact(text, settings.secrets)
}

/** Quotes a name as YAML, in comments as well: a provider's text ends no line. */
function yamlText(text: string): string {
  return /^[A-Za-z$][\w$./-]*$/.test(text) ? text : JSON.stringify(text)
}

const yamlList = (names: readonly string[]): string => `[${names.map(yamlText).join(', ')}]`

function planInWords({ series, requests, credits, points, seconds }: ProviderSetup['totals']): string {
  const parts = [several(series, 'series', 'series'), several(requests, 'request'), several(credits, 'credit')]
  return `${parts.join(', ')}, about ${formatCount(points)} points, about ${span(seconds)}`
}

/** Formats the configuration of a provider as text, with what a person may change as comments. */
function configText(setup: ProviderSetup, today: string): string {
  const { catalogue, selection, ambiguous, refused, missing } = setup
  const { assets, paths } = selection
  const named = Object.entries(catalogue.names.paths).filter(([path, real]) => path !== real)
  const isMetricsEmpty = named.length === 0
  const exchanges = Map.groupBy(
    [...catalogue.endpoints.values()].filter((endpoint) => endpoint.exchanges.length > 0),
    (endpoint) => endpoint.exchanges.join(', '),
  )
  const lines = [
    `# Written by pitlake init on ${today}, from the provider's metadata.`,
    '# Keys to the APIs come from the environment, never from this file. All settings: ' +
      'docs/reference/configuration.md.',
    '',
    folderLine,
    '',
    isMetricsEmpty ? '# metrics:' : 'metrics:',
    isMetricsEmpty ? '#   paths:' : '  # Real names of paths that the catalogue names by placeholder.\n  paths:',
    ...named.map(([path, real]) => `    ${yamlText(path)}: ${yamlText(real)}`),
    ...ambiguous.flatMap(({ path, candidates }) =>
      candidates.length === 0
        ? [`    # ${path}: the provider lists no such path`]
        : [
            `    # ${candidates.length} paths fit: choose one, and add ${path.slice(0, path.indexOf('/'))}/* ` +
              'to the paths below.',
            ...candidates.map((real) => `    # ${yamlText(path)}: ${yamlText(real)}`),
          ],
    ),
    '',
    ...(exchanges.size === 0 ? [] : ['# Exchanges of the provider, by the names under which you select them:']),
    ...[...exchanges].flatMap(([, endpoints]) => {
      const [first] = endpoints
      if (first === undefined) return []
      const by = endpoints.length === 1 ? first.path : `${endpoints.length} paths such as ${first.path}`
      return [`#   ${by}, by default ${yamlText(first.defaults.exchange ?? '')}:`, `#     ${yamlList(first.exchanges)}`]
    }),
    ...(refused.length === 0
      ? []
      : ['', '# Your plan does not include:', ...refused.map((path) => `#   ${yamlText(path)}`)]),
    ...(missing.length === 0
      ? []
      : ['', '# The provider does not know:', ...missing.map((path) => `#   ${yamlText(path)}`)]),
    '',
    'select:',
    `  # ${planInWords(setup.totals)}`,
    `  - assets: ${yamlList(assets)}    # of ${setup.assets} assets`,
    '    paths:',
    ...paths.map((path) => `      - ${path.includes('*') ? JSON.stringify(path) : yamlText(path)}`),
    '    intervals: [24h]',
    '    since: 2019-01-01',
    '  # Hourly values, dollars, one exchange by its name, all assets:',
    `  # - { assets: [BTC], paths: ["market/*"], intervals: [1h], since: 2023-01-01 }`,
    `  # - { assets: [BTC], paths: ["supply/*"], currencies: [native, usd], since: 2019-01-01 }`,
    `  # - { assets: [BTC], paths: ["options/*"], exchanges: ${yamlList(exampleExchange(catalogue))}, since: ` +
      '2023-01-01 }',
    `  # - { assets: ["*"], paths: ["market/*"], since: 2024-01-01 }`,
  ]
  return `${lines.join('\n')}\n`
}

/** Finds an exchange of an options path, for an example. */
function exampleExchange({ endpoints }: ProviderSetup['catalogue']): readonly string[] {
  const options = [...endpoints.values()].find(
    ({ path, exchanges }) => path.startsWith('options/') && exchanges.length > 0,
  )
  return [options?.defaults.exchange ?? 'aggregated']
}
