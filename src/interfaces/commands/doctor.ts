import { parseSeriesId } from '../../catalog/series.ts'
import { bringAgain, damageVerdict } from '../../maintenance/upkeep/findings.ts'
import { type BuildViews, type Diagnosis, examine } from '../../maintenance/upkeep/doctor.ts'
import { describeObservedAgain, type ObservedAgain } from '../../lake/ledger/lost-points.ts'
import { isLoopback, type Settings } from '../../catalog/settings.ts'
import { gravestOf, LakeError, usage } from '../../base/errors.ts'
import { checkProvider, type ProviderCheck } from '../../sources/provider-check/check.ts'
import { spaceAt } from '../../lake/store/disk.ts'
import { buildViews } from '../../query/views/build.ts'
import { bytes, several, formatCount } from '../../base/figures.ts'
import { answering, type Call, type CommandAnswer } from '../cli/spec.ts'
import { besideWorld, lakeWorld } from '../cli/world.ts'

/** Document of `doctor`. Scripts rely on the names. */
export interface DoctorDocument extends Diagnosis {
  /** Whether nothing is damaged; notices do not count. */
  readonly ok: boolean
}

export const doctorCommand = answering({
  options: {
    '--rebuild-ledger': 'rebuild the ledger from the journal',
    '--repair': 'repair everything that can be repaired without loss',
    '--adopt': 'rebuild a lost journal from the data files; files that do not fit are moved',
    '--forget-lost': 'continue without damaged files and record the loss; fetch or import can restore the data',
    '--quick': 'compare only names and sizes, not checksums',
    '--provider': 'check the provider instead, with at most 10 requests; print YAML for what differs',
  },
  details: `Without an option, doctor only reads. Exit 4: something is lost or unreadable. Notices alone (orphans, old locks, little disk space)
end with 0. Only --forget-lost gives up data.

--provider needs no lake and stores nothing. It checks every row of docs/how-to/another-provider.md: the default holds, is
contradicted (exit 4), or could not be checked. Exit 3: a key is refused. Exit 5: a limit is spent. Exit 6: the provider does not answer, or
answers 404 to a request for points or for the registry.`,
  answer: async (call) => {
    const { settings, catalogue, options } = call
    const { quick, rebuildLedger, repair, forgetLost, adopt, provider } = options
    if (provider) {
      if (quick || rebuildLedger || repair || forgetLost || adopt)
        throw usage('--provider', { expected: 'no other flag of doctor', got: 'one that is about a lake' })
      return await askProvider(call)
    }
    const means = adopt ? { catalogue, synthetic: madeUp(settings) } : null
    const how = { data: settings.data, thorough: !quick, rebuildLedger, repair, forgetLost, adopt: means }
    const deps = lakeWorld(call, 'doctor')
    const views: BuildViews = async (ledger) => await buildViews(ledger, { catalogue, deps, force: true })
    const diagnosis = await examine(how, { ...deps, resources: catalogue.resources, views, space: spaceAt })
    const damages = diagnosis.findings.filter(({ severity }) => severity === 'damage')
    const document: DoctorDocument = { ok: damages.length === 0, ...diagnosis }
    return { document, words: () => inWords(diagnosis), error: damageVerdict(damages) }
  },
})

/** Checks a provider instead of a lake. */
async function askProvider(call: Call): Promise<CommandAnswer> {
  const { error, ...found } = await checkProvider(call, besideWorld(call))
  const against = found.rows.filter(({ verdict }) => verdict === 'contradicted')
  const document = { ok: against.length === 0 && error === null, ...found }
  return { document, words: () => providerInWords(found), error: gravestOf([contradiction(against), error]) }
}

function contradiction(against: ProviderCheck['rows']): LakeError | null {
  if (against.length === 0) return null
  const subject = `${several(against.length, 'assumption')} contradicted: ${against.map((row) => row.assumption).join(', ')}`
  const helps = against.some(({ yaml }) => yaml !== null)
  const next = helps
    ? 'put the YAML above into pitlake.yaml and run it again'
    : 'no setting mends it: see docs/how-to/another-provider.md'
  return new LakeError('integrity', { subject, next })
}

function providerInWords({ requests, rows, yaml }: Omit<ProviderCheck, 'error'>): string {
  const verdicts = { holds: 'holds', contradicted: 'CONTRADICTED', unknown: 'not checked' } as const
  const lines = (['metrics', 'registry'] as const).flatMap((api) => [
    `${api} API`,
    ...rows
      .filter((row) => row.api === api)
      .map(({ verdict, assumption, evidence }) => `  ${verdicts[verdict].padEnd(14)}  ${assumption}: ${evidence}`),
  ])
  const count = (verdict: string): number => rows.filter((row) => row.verdict === verdict).length
  const counts = Object.entries(verdicts).map(([verdict, word]) => `${count(verdict)} ${word.toLowerCase()}`)
  lines.push(`${several(requests, 'request')}: ${counts.join(', ')}`)
  if (yaml !== null) lines.push('', '# for pitlake.yaml', yaml.trimEnd())
  return `${lines.join('\n')}\n`
}

/** Whether the configured provider makes its data up: a sandbox listens on this machine. Null if none is configured. */
function madeUp({ metrics, registry }: Settings): boolean | null {
  const loopbacks = [metrics.url, registry.url].flatMap((url) => (url === null ? [] : [isLoopback(url)]))
  const [first = null] = loopbacks
  return loopbacks.every((loopback) => loopback === first) ? first : null
}

const mostShown = 10

/** Formats the data that were lost and observed again, for people. */
export function observedAgainLines(again: readonly ObservedAgain[]): string[] {
  const more = again.length - mostShown
  const lines = again.slice(0, mostShown).map((observed) => `again     ${describeObservedAgain(observed)}`)
  return more > 0 ? [...lines, `          and ${formatCount(more)} more months: see --json`] : lines
}

function inWords({ version, checked, findings, mended, forgotten, observed_again: again }: Diagnosis): string {
  const { files = [], points = 0, series = [] } = forgotten ?? {}
  const lostText =
    `lost      ${several(points, 'point')} of ${series.length} series in ${files.length} files; ` +
    bringAgain(series.flatMap((seriesId) => parseSeriesId(seriesId.series)?.metric ?? []))
  const how = checked.thorough ? 'every byte read' : 'sizes only'
  return [
    ...mended.map((text) => `mended    ${text}`),
    ...(files.length > 0 ? [lostText, ...files.map((path) => `          ${path}`)] : []),
    ...findings.map(
      (finding) =>
        `${finding.severity.padEnd(9)} ${finding.path}: ${finding.found}\n          remedy: ${finding.remedy}`,
    ),
    ...observedAgainLines(again),
    `checked   version ${version}, ${several(checked.files, 'file')}, ${bytes(checked.bytes)}, ${how}`,
    ...(findings.length === 0 ? ['healthy   nothing is wrong'] : []),
    '',
  ].join('\n')
}
