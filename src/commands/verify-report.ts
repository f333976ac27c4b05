import type { Difference } from '../metrics/verify-findings.ts'
import type { RegistryVerified } from '../registry/verified.ts'
import type { VerifySummary } from '../upkeep/verify.ts'
import { againLines } from './doctor.ts'
import { bytes, whole } from '../words/figures.ts'
import { wrapped } from '../words/table.ts'

const shown = 10

/** What a person sees on the terminal, at most 80 columns. */
export function toldOf(summary: VerifySummary): string {
  const { checked, damage, windows, differences, failures, requests, credits, gaps } = summary
  const lines = [
    `files      ${whole(checked.files)} read in full, ${bytes(checked.bytes)}, ${damage.length === 0 ? 'all sound' : `${damage.length} findings`}`,
    `contents   ${whole(checked.points)} points of ${whole(checked.series)} series, ${whole(gaps)} known gaps`,
    `windows    ${whole(windows.verified)} of ${whole(windows.chosen)} compared, ${whole(windows.held)} held`,
    ...resultsOf(summary),
    `asked      ${whole(requests)} requests, ${whole(credits)} credits`,
  ]
  if (summary.incidents > 0)
    lines.push(`incidents  ${whole(summary.incidents)}, of very many points at once: see pitlake violations list`)
  if (summary.accepted > 0) lines.push(`accepted   ${whole(summary.accepted)} differences, not told again`)
  if (windows.failed > 0) lines.push(`failed     ${whole(windows.failed)} windows without a usable answer`)
  if (windows.left > 0) lines.push(`left       ${whole(windows.left)} windows for the next run`)
  for (const { path, found, remedy } of damage.slice(0, shown))
    lines.push('', ...wrapped(`damage     ${path}: ${found}`), ...wrapped(`           remedy: ${remedy}`))
  for (const difference of differences.slice(0, shown)) lines.push('', ...differenceLines(difference))
  for (const { series, reason } of failures.slice(0, shown))
    lines.push('', ...wrapped(`failed     ${series}: ${reason}`))
  lines.push(...againLines(summary.observed_again).flatMap((line) => ['', ...wrapped(line)]))
  const { registry } = summary
  if (registry !== null) lines.push('', ...registryLines(registry))
  const more = [damage, differences, failures, registry?.findings ?? [], registry?.failures ?? []].reduce(
    (sum, list) => sum + Math.max(0, list.length - shown),
    0,
  )
  if (more > 0) lines.push('', `and ${whole(more)} more: see --json or --report FILE`)
  return `${lines.join('\n')}\n`
}

/** What the registry said, and the first findings with both records cut short. */
function registryLines({ checks, results, ignored, ...rest }: RegistryVerified): string[] {
  const { findings, accepted, failures, requests } = rest
  const some = Object.entries(results).filter(([, count]) => count > 0)
  const lines = [
    `registry   ${whole(checks.verified)} of ${whole(checks.chosen)} addresses compared, ${whole(checks.held)} held`,
    ...wrapped(`results    ${some.map(([name, count]) => `${whole(count)} ${name.replaceAll('_', ' ')}`).join(', ')}`),
    `asked      ${whole(requests)} requests`,
  ]
  if (ignored.length > 0) lines.push(...wrapped(`filters    not heeded by the provider: ${ignored.join(', ')}`))
  if (accepted > 0) lines.push(`accepted   ${whole(accepted)} contradictions, not told again`)
  if (checks.left > 0) lines.push(`left       ${whole(checks.left)} addresses for the next run`)
  for (const { kind, resource, id, detail, held, offered } of findings.slice(0, shown))
    lines.push(
      '',
      ...wrapped(`${kind.replaceAll('_', ' ')}: ${resource} ${id}`),
      ...wrapped(`           ${detail}`),
      `           held ${start(held)}`,
      `           offered ${start(offered)}`,
    )
  for (const { address, reason } of failures.slice(0, shown))
    lines.push('', ...wrapped(`failed     ${address}: ${reason}`))
  return lines
}

const beginning = 58

function start(record: string | null): string {
  if (record === null) return 'nothing'
  return record.length <= beginning ? record : `${record.slice(0, beginning)}…`
}

function resultsOf({ results, points_added }: VerifySummary): string[] {
  const some = Object.entries(results).filter(([, count]) => count > 0)
  if (some.length === 0) return []
  const lines = wrapped(`results    ${some.map(([name, count]) => `${whole(count)} ${name}`).join(', ')}`)
  if (points_added > 0) lines.push(`appended   ${whole(points_added)} points`)
  return lines
}

function differenceLines(difference: Difference): string[] {
  const { result, t, stored, offered, stored_at, offered_at, offered_request } = difference
  return [
    ...wrapped(`${result.padEnd(10)} ${seriesName(difference)}, t ${t}`),
    ...wrapped(`           stored ${stored ?? 'nothing'} at ${stored_at ?? 'an unknown time'}`),
    ...wrapped(`           offered ${offered ?? 'nothing'} at ${offered_at}`),
    ...wrapped(`           request ${offered_request ?? 'unknown'}`),
  ]
}

function seriesName({ metric, asset, interval, currency, exchange, network }: Difference): string {
  return [metric, asset, interval, currency, exchange, network].filter((part) => part !== null).join(' ')
}

/** The report that a person can send to the provider: Markdown, no key in it. */
export function reportOf(summary: VerifySummary): string {
  const { run, version, provider, differences, damage, failures, windows } = summary
  const lines = [
    '# Verification of stored history',
    '',
    `- provider: ${provider ?? 'unknown'}`,
    `- run: ${run ?? 'none'}, lake version ${version}`,
    `- windows compared: ${windows.verified} of ${windows.chosen}`,
    ...Object.entries(summary.results).map(([name, count]) => `- ${name}: ${count}`),
    '',
    'All times are UTC. Values are compared bit for bit. `stored` is what an earlier answer said, `offered` what the',
    'same address says now; nothing stored was changed.',
    '',
    ...differenceSections(differences),
  ]
  if (summary.registry !== null) lines.push(...registrySections(summary.registry))
  if (failures.length > 0) lines.push('## Windows without a usable answer', '')
  for (const { series, since, until, reason } of failures)
    lines.push(`- \`${series}\`, ${since} to ${until}: ${reason}`)
  if (failures.length > 0) lines.push('')
  if (damage.length > 0) lines.push('## Damage in this lake (not for the provider)', '')
  for (const { path, found, remedy } of damage) lines.push(`- \`${path}\`: ${found}; ${remedy}`)
  const found = differences.length + failures.length + damage.length + (summary.registry?.findings.length ?? 0)
  if (found === 0) lines.push('Nothing differs.')
  return `${lines.join('\n').trimEnd()}\n`
}

/** The registry's part: one row a finding. */
function registrySections({ checks, findings }: RegistryVerified): string[] {
  const rows = findings.map(
    ({ kind, resource, id, address, detail, held, offered }) =>
      `| ${resource} ${id} | ${kind} | ${address} | ${detail} | ${cell(held)} | ${cell(offered)} |`,
  )
  const lines = ['## Registry', '', `Addresses compared: ${checks.verified} of ${checks.chosen}.`, '']
  if (rows.length === 0) return lines
  const head = ['| record | what | address | detail | held | offered |', '| --- | --- | --- | --- | --- | --- |']
  return [...lines, ...head, ...rows, '']
}

/** One section a request, its differences as a table. */
function differenceSections(differences: readonly Difference[]): string[] {
  const sections: string[] = []
  for (const [request, rows] of Map.groupBy(differences, ({ offered_request }) => offered_request)) {
    const [first] = rows
    if (!first) continue
    sections.push(
      `## ${seriesName(first)}`,
      '',
      `- address: \`${first.address ?? 'unknown'}\``,
      `- asked at ${first.offered_at}, request \`${request ?? 'unknown'}\`${first.provider_request === null ? '' : `, the provider's id \`${first.provider_request}\``}`,
      '',
      '| t | what | stored | offered | stored at | stored by request |',
      '| --- | --- | --- | --- | --- | --- |',
      ...rows.map(
        ({ t, result, stored, offered, stored_at, stored_request }) =>
          `| ${t} | ${result} | ${cell(stored)} | ${cell(offered)} | ${stored_at ?? ''} | ${stored_request ?? ''} |`,
      ),
      '',
    )
  }
  return sections
}

function cell(value: string | null): string {
  return value === null ? 'nothing' : `\`${value.replaceAll('|', '\\|').replaceAll(/[`\r\n]/g, ' ')}\``
}
