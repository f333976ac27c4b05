import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/*
 * Records `pitlake demo` in a terminal as an asciinema cast (version 2), and draws the cast as docs/images/demo.svg. The
 * picture shows each line when it came. Its last frame is what it shows without animation.
 */

const root = fileURLToPath(new URL('..', import.meta.url))
const program = join(root, 'scripts/launch.cjs')
const command = 'pitlake demo'
/** The cast, and the picture of it. */
const castFile = join(root, '.cache/demo.cast')
export const pictureFile = join(root, 'docs/images/demo.svg')

/** Characters on a line of the terminal. */
const columns = 104

/** What a terminal was sent, and when, in seconds. */
type CastEvent = readonly [at: number, kind: 'o', text: string]

/** A line of the terminal as it stands for a while. */
interface Line {
  readonly row: number
  readonly text: string
  /** Seconds from which on it stands, and until when; undefined if it stays. */
  readonly from: number
  until?: number
  /** Whether it goes on with the line above, which was too long for the terminal. */
  readonly continues: boolean
}

/** Runs the demo in a terminal; what it sends with its times, in the form of asciinema. */
async function recordCast(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-demo-'))
  try {
    // A terminal, not a pipe: only there the program says what it is doing.
    const inside = `stty cols ${columns} rows 40 && exec '${process.execPath}' '${program}' demo`
    const child = spawn('script', ['-qfec', inside, '/dev/null'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    const begin = performance.now()
    const events: CastEvent[] = [[0, 'o', `$ ${command}\r\n`]]
    child.stdout.on('data', (bytes: Buffer) =>
      events.push([Number(((performance.now() - begin) / 1000).toFixed(3)), 'o', bytes.toString()]),
    )
    const code = await new Promise((resolve, reject) => child.once('close', resolve).once('error', reject))
    if (code !== 0) throw new Error(`${command} ended with ${String(code)}`)
    const header = {
      version: 2,
      width: columns,
      height: 40,
      idle_time_limit: 2.5,
      command,
      env: { TERM: 'xterm-256color' },
    }
    return [header, ...events].map((one) => `${JSON.stringify(one)}\n`).join('')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Plays a cast: every line that stood on the terminal. It knows returns, ends of lines, and lines that are erased. */
function playCast(cast: string): readonly Line[] {
  const [header = '{}', ...sentLines] = cast.trimEnd().split('\n')
  const { idle_time_limit: longest = Infinity } = JSON.parse(header) as { idle_time_limit?: number }
  let recorded = 0
  let played = 0
  const events = sentLines.map((line): CastEvent => {
    const [at, kind, sent] = JSON.parse(line) as CastEvent
    played += Math.min(longest, at - recorded)
    recorded = at
    return [played, kind, sent]
  })
  let lines: Line[] = []
  /** Row at which the line begins that is being written, and the row of the cursor. */
  let begin = 0
  let row = 0
  let text = ''
  for (const [at, , sent] of events)
    for (const [token] of sent.matchAll(/\r?\n|\r|\u001b\[K|[^\r\n\u001b]+/g))
      if (token.endsWith('\n')) {
        row += 1
        begin = row
        text = ''
      } else if (token === '\r') text = ''
      else if (token === '\u001b[K') {
        for (const line of lines) if (line.row >= begin) line.until ??= at
      } else {
        // A line may come in two parts: it stands from its end on.
        lines = lines.filter((line) => line.row < begin || line.until !== undefined)
        text += token
        const parts = wrapped(text).map((part, n) => ({ row: begin + n, text: part, from: at, continues: n > 0 }))
        lines.push(...parts)
        row = begin + parts.length - 1
      }
  return lines
}

/** A text in pieces as wide as the terminal. */
function wrapped(text: string): string[] {
  const count = Math.max(1, Math.ceil(text.length / columns))
  return Array.from({ length: count }, (_, n) => text.slice(n * columns, (n + 1) * columns))
}

const letter = 8
const leading = 20
const margin = 16
const signs: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const escaped = (text: string): string => text.replaceAll(/[&<>]/g, (sign) => signs[sign] ?? sign)

/** Draws a cast. A line that stays is hidden until it comes; one that goes is shown while it stands. */
export function drawCast(cast: string): string {
  const lines = playCast(cast)
  const height = (Math.max(...lines.map(({ row }) => row)) + 1) * leading + 2 * margin
  const width = columns * letter + 2 * margin
  const seconds = (value: number): string => `${Number(value.toFixed(2))}s`
  const drawn = lines.map(({ row, text, from, until, continues }) => {
    const words = text.trimStart()
    const indent = text.length - words.length
    const place = `x="${margin + indent * letter}" y="${margin + row * leading + 14}" textLength="${words.length * letter}"`
    const when = until === undefined ? `hide ${seconds(from)}` : `show ${seconds(until - from)} ${seconds(from)}`
    const facts = `data-indent="${indent}"${continues ? ' data-continues=""' : ''}`
    const kind = until === undefined ? 'stays' : 'goes'
    return `<text class="${kind}" style="animation:${when}" ${place} ${facts}>${escaped(words)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title" xml:space="preserve">
<title id="title">A terminal: ${command}</title>
<style>
svg { color-scheme: light dark; }
rect { fill: #f6f8fa; stroke: #d0d7de; }
text { fill: #1b1f24; font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; }
.goes { opacity: 0; fill: #5b6470; }
@keyframes show { from, to { opacity: 1; } }
@keyframes hide { from, to { opacity: 0; } }
@media (prefers-color-scheme: dark) {
  rect { fill: #14171a; stroke: #363c43; }
  text { fill: #e6e9ec; }
  .goes { fill: #9ba5b0; }
}
@media (prefers-reduced-motion: reduce) { text { animation: none !important; } }
</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
${drawn.join('\n')}
</svg>
`
}

if (import.meta.main) {
  const cast = await recordCast()
  mkdirSync(dirname(castFile), { recursive: true })
  writeFileSync(castFile, cast)
  writeFileSync(pictureFile, drawCast(cast))
  process.stdout.write(`${pictureFile}: ${readFileSync(pictureFile).length} bytes, from ${castFile}\n`)
}
