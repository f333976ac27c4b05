import { several, table } from '../../base/figures.ts'
import type { ItemVerdict, JudgedItem, ResearchReport } from '../../trust/research/judged-item.ts'

/** Words of `--format`. */
export const reportFormats = ['text', 'github'] as const
/** Form of the report on several files. */
export type ReportFormat = (typeof reportFormats)[number]

/** Verdicts from the gravest on. */
const byWeight: readonly ItemVerdict[] = ['leak', 'undecided', 'not checked', 'clean', 'skipped']

/** Characters of a reason that a row of the table shows. */
const shownReason = 96

/** Formats the report for people: a table, the leaks as sentences, and the counts. */
export function reportText(report: ResearchReport): string {
  const sorted = report.items.toSorted((a, b) => byWeight.indexOf(a.verdict) - byWeight.indexOf(b.verdict))
  const rows = sorted.map((item) => [item.verdict, placeText(item), shorten(remark(item))])
  const leaks = sorted.filter(({ leak }) => leak !== null).map((item) => `${placeText(item)}: ${item.leak ?? ''}\n`)
  return [
    ...(rows.length === 0 ? [] : [table(['verdict', 'where', 'why'], rows), '\n']),
    ...(leaks.length === 0 ? [] : [...leaks, '\n']),
    `${countsText(report)}\n`,
  ].join('')
}

function placeText({ file, line, name }: JudgedItem): string {
  return `${file}:${line}${name === null ? '' : ` ${name}`}`
}

function remark({ verdict, reason, proved, cached }: JudgedItem): string {
  const parts = [reason ?? (verdict === 'clean' ? (proved ? 'proved' : 'tested, not proved') : '')]
  return [...parts, ...(cached ? ['from the cache'] : [])].filter((part) => part !== '').join('; ')
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length <= shownReason ? line : `${line.slice(0, shownReason - 1)}…`
}

/** Formats the counts: `12 items: 1 leak, 9 clean, 2 skipped; 8 verdicts from the cache`. */
function countsText({ items, counts, cached }: ResearchReport): string {
  const counted = byWeight
    .filter((verdict) => counts[verdict] > 0)
    .map((verdict) => countText(verdict, counts[verdict]))
  const from = cached === 0 ? '' : `; ${several(cached, 'verdict')} from the cache`
  return `${several(items.length, 'item')}${counted.length === 0 ? '' : `: ${counted.join(', ')}`}${from}`
}

function countText(verdict: ItemVerdict, count: number): string {
  return verdict === 'leak' ? several(count, 'leak') : `${count} ${verdict}`
}

/**
 * Formats the findings as annotations of a GitHub workflow: a leak is an error, an item without a verdict a warning.
 */
export function annotationText({ items }: ResearchReport): string {
  return items
    .flatMap((item) => {
      const level = item.verdict === 'leak' ? 'error' : isOpen(item) ? 'warning' : undefined
      if (level === undefined) return []
      const title = item.verdict === 'leak' ? 'Look-ahead' : `Look-ahead ${item.verdict}`
      const place = `file=${property(slashed(item.file))},line=${item.line},title=${property(title)}`
      return [`::${level} ${place}::${message(findingText(item))}\n`]
    })
    .join('')
}

const isOpen = ({ verdict }: JudgedItem): boolean => verdict === 'undecided' || verdict === 'not checked'

/** Describes a finding in one or two sentences. */
function findingText({ name, reason, leak }: JudgedItem): string {
  const text = [leak, reason].filter((part) => part !== null).join('\n')
  return `${name === null ? '' : `${name}: `}${text}`
}

/** Converts a path to GitHub's form, relative to the repository. */
const slashed = (file: string): string => file.replaceAll('\\', '/').replace(/^\.\//, '')

/** Escapes the message of a workflow command. */
function message(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

/** Escapes a property of a workflow command. */
function property(text: string): string {
  return message(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

/** Formats the report as a JUnit file: a leak is a failure, an item without a verdict an error. */
export function junitText({ items, counts }: ResearchReport): string {
  const open = counts.undecided + counts['not checked']
  const totals = `tests="${items.length}" failures="${counts.leak}" errors="${open}" skipped="${counts.skipped}"`
  const cases = items.map((item) => {
    const name = item.name ?? `${item.kind} at line ${item.line}`
    const head =
      `    <testcase classname="${xml(slashed(item.file))}" name="${xml(name)}" ` +
      `file="${xml(slashed(item.file))}" line="${item.line}"`
    const inner = outcomeXml(item)
    return inner === '' ? `${head}/>` : `${head}>${inner}</testcase>`
  })
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="pitlake lookahead" ${totals}>`,
    `  <testsuite name="pitlake lookahead" ${totals}>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function outcomeXml(item: JudgedItem): string {
  const { verdict, reason, leak } = item
  if (verdict === 'clean') return ''
  if (verdict === 'skipped') return `<skipped message="${xml(reason ?? '')}"/>`
  const element = verdict === 'leak' ? 'failure' : 'error'
  const text = verdict === 'leak' ? (leak ?? reason) : reason
  return `<${element} type="${verdict}" message="${xml(text ?? '')}">${xml(findingText(item))}</${element}>`
}

/** Escapes a text for XML 1.0. */
function xml(text: string): string {
  const signs: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&apos;',
  }
  return text
    .replaceAll(/[\p{Cc}\p{Cs}\uFFFE\uFFFF]/gu, (sign) => (/[\t\n]/.test(sign) ? sign : '\uFFFD'))
    .replaceAll(/[&<>"']/g, (sign) => signs[sign] ?? sign)
    .replaceAll('\n', '&#10;')
}
