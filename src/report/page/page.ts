import { createHash } from 'node:crypto'
import { textsIn } from '../../store/sql.ts'
import { endpointSection } from './endpoints.ts'
import type { StatusPage } from '../status-page.ts'
import { masthead } from './header.ts'
import { type Html, html, trusted } from './html.ts'
import { lagSection } from './lag.ts'
import { notesSection, runSection, stampSection, versionSection, violationSection } from './tables.ts'
import { universeSection } from './universe.ts'

/** The style sheet, or the only script: a cursor over the map of months, without which the page says everything, too. */
function own(ending: '.css' | '.js'): string {
  return textsIn(new URL('browser/', import.meta.url), ending)
    .map(([, text]) => text)
    .join('')
}

/**
 * The status of a lake as one file that needs nothing else: its policy forbids every connection, and of scripts it
 * lets only its own run.
 */
export function statusPage(page: StatusPage): string {
  const { standing } = page
  const script = own('.js')
  const title = `${standing.trust === 'yes' ? '' : '! '}pitlake ${standing.provider ?? ''} version ${standing.version}`
  const digest = createHash('sha256').update(script).digest('base64')
  const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${digest}'; img-src data:; base-uri 'none'; form-action 'none'`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${trusted(own('.css'))}</style>
</head>
<body>
<main>
${masthead(page)}
${section('endpoints', 'Endpoints by month', endpointSection(page))}
${section('arrival', 'Arrival against the rule', lagSection(page))}
${section('registry', 'Registry universe', universeSection(page))}
${section('violations', 'Violations', violationSection(page))}
${section('runs', 'Runs, done of planned', runSection(page))}
${section('versions', 'Versions', versionSection(page))}
${section('stamps', 'Stamped results', stampSection(page))}
${section('notes', 'How to read this page', notesSection(page))}
</main>
<script>${trusted(script)}</script>
</body>
</html>
`.markup
}

function section(id: string, title: string, content: Html): Html {
  return html`<section aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>
${content}
</section>`
}
