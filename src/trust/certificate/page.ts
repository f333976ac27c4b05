import { formatMicros } from '../../base/time.ts'
import type { Certificate } from './certify.ts'

const safe = (text: unknown): string => String(text).replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)

const style = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}body{max-width:60rem;margin:2rem auto;padding:0 1rem}
pre{overflow:auto;padding:.75rem;border:1px solid #8884;border-radius:.4rem}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0}
td,pre,li{overflow-wrap:anywhere}.verdict{font-size:1.25rem}@media(max-width:40rem){th,td{display:block;padding:.1rem 0}}`

/**
 * Builds a page, with nothing from elsewhere, that shows a certificate: the query, when what was known, and who
 * vouches.
 */
export function certificatePage(certificate: Certificate): string {
  const { query, knowledge, views, result, verdict, leaf, live, statistic, preregistered, made_by, head } = certificate
  const rows = {
    'Asked at version': `${knowledge.version}, as of ${knowledge.as_of ?? 'the instant of each row'}`,
    'Version committed': formatMicros(leaf.committed_at),
    Stamped: formatMicros(knowledge.stamped_at),
    Variables: JSON.stringify(query.variables),
    Result: JSON.stringify(result),
    Statistic: JSON.stringify(statistic),
    'Views used': Object.keys(views.text).join(', '),
    'Files read': Object.entries(live.lists)
      .map(([name, files]) => `${name} (${files.length})`)
      .join(', '),
    'Points by basis': JSON.stringify(verdict.basis),
    'Preregistered queries': `${preregistered.queries.length}, this one in version ${preregistered.named_in ?? 'none'}`,
    'Made by': JSON.stringify(made_by),
  }
  const table = Object.entries(rows).map(
    ([name, content]) => `<tr><th>${safe(name)}</th><td>${safe(content)}</td></tr>`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Certificate of a result</title><style>${style}</style></head>
<body><main><h1>Certificate of a result</h1>
<p class="verdict">Look-ahead: ${safe(verdict.verdict)}${verdict.tested > 0 ? ` at ${verdict.tested} instants` : ''}.</p>
<h2>What was asked</h2><pre>${safe(query.text)}</pre>
<h2>What it rests on</h2><table>${table.join('')}</table>
<h2>Why</h2><ul>${verdict.reasons.map((reason) => `<li>${safe(reason)}</li>`).join('')}</ul>
<h2>Who vouches</h2><pre>${safe(head)}</pre>
<p>This page proves nothing by itself: check the certificate with verify-certificate.mjs or verify_certificate.py and the
public key that its owner gave you. That the provider told the truth, that nothing else was tried and thrown away, and that
merges of files left values as they were, no certificate can prove.</p></main></body></html>
`
}
