import { readSigned } from '../merkle/note.ts'
import { formatMicros } from '../time.ts'
import type { Certificate } from './certify.ts'

const escaped = (text: unknown): string => String(text).replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)

const row = (name: string, told: unknown): string =>
  `<tr><th scope="row">${escaped(name)}</th><td>${escaped(told)}</td></tr>`

const style = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}body{max-width:60rem;margin:2rem auto;padding:0 1rem}
pre{overflow:auto;padding:.75rem;border:1px solid #8884;border-radius:.4rem}td,pre{overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}th{text-align:left;vertical-align:top;width:14rem;font-weight:600;padding:.3rem .6rem .3rem 0}
td{padding:.3rem 0}.verdict{font-size:1.25rem}@media(max-width:40rem){th,td{display:block;width:auto;padding:.1rem 0}}`

const verdicts: Readonly<Record<string, string>> = {
  proved: 'Its plan proves that no row looks ahead.',
  tested: 'It was run again without a part of the future, and no row changed.',
  leak: 'It looks ahead.',
}

/** A page without anything from elsewhere that tells a certificate: what was asked, when what was known, who vouches. */
export function certificatePage(told: Certificate): string {
  const { query, knowledge, result, verdict, entry, state, figure, tries, made_by } = told
  const groups = state.members.map(({ name, members }) => `${name} (${members.length})`)
  const signatures = readSigned(told.head)?.signatures.map(({ name }) => name) ?? []
  const variables = Object.entries(query.variables).map(([name, value]) => `${name} = ${value}`)
  const rows = [
    row('Asked at version', `${knowledge.version}, as of ${knowledge.as_of ?? 'whenever each row is dated'}`),
    row('State proved at', `version ${entry.version}, committed ${formatMicros(entry.committed_at)}`),
    ...(variables.length > 0 ? [row('Variables', variables.join(', '))] : []),
    row('Result', `${result.rows} rows, ${result.columns.length} columns, SHA-256 ${result.file_sha256}`),
    ...(figure === null
      ? []
      : [
          row(
            'Figure',
            Object.entries(figure.values)
              .map(([name, value]) => `${name} = ${value}`)
              .join(', '),
          ),
        ]),
    row('Rests on', groups.join(', ')),
    row(
      'Queries named beforehand',
      `${tries.count}${tries.named_in === null ? ', this one is not among them' : `, this one in version ${tries.named_in}`}`,
    ),
    row('Signed by', signatures.join(', ') || 'nobody'),
    row('Made by', `${made_by.program}, DuckDB ${made_by.engine}`),
  ]
  const reasons = verdict.reasons.map((reason) => `<li>${escaped(reason)}</li>`).join('')
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Certificate of a result</title><style>${style}</style></head>
<body><main><h1>Certificate of a result</h1>
<p class="verdict">${escaped(verdicts[verdict.verdict] ?? `Look-ahead: ${verdict.verdict}.`)}</p>
<h2>What was asked</h2><pre>${escaped(query.text)}</pre>
<h2>What it rests on</h2><table>${rows.join('')}</table>
${reasons === '' ? '' : `<h2>Why</h2><ul>${reasons}</ul>`}
<h2>Who vouches</h2><pre>${escaped(told.head)}</pre>
<p>This page proves nothing by itself: check the certificate with verify-certificate.mjs or verify_certificate.py and the
public key that its owner gave you. That the provider told the truth, and that nothing else was tried and thrown away, no
certificate can prove.</p></main></body></html>
`
}
