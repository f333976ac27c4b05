import { textOf, writePrivate } from '../../lake/store/files.ts'
import { createInterface, type Interface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { usage } from '../../base/errors.ts'
import type { Cell, Engine } from '../../lake/store/engine.ts'
import { outFile } from '../../lake/store/output.ts'
import {
  type SessionState,
  type Vocabulary,
  complete,
  dotNames,
  sessionMoment,
  readVocabulary,
  runDot,
} from './session-commands.ts'
import type { Ready } from '../../query/gate.ts'
import { visibleLines } from '../../base/visible-text.ts'
import { type Note, noteTexts } from '../../query/note-texts.ts'
import type { Extent } from '../../query/answer-notes.ts'
import { setMoment, versionOf } from '../../query/lake.ts'
import { judgeQuestion } from '../../query/question.ts'
import { engineLossIn } from '../../query/refusal.ts'
import { runCancellable, type RunDeps } from '../../query/run.ts'
import { cutScript, isOpen } from '../../query/statements.ts'
import {
  type Sink,
  formatOf,
  isReadable,
  givesRows,
  layResult,
  watchColumns,
  writeFile,
  writeTo,
} from '../../query/write.ts'
import { several } from '../../base/figures.ts'

/** Dependencies of an interactive session. */
interface SessionDeps {
  readonly input: Readable
  readonly output: Writable
  /** Whether output is a terminal: line editing, completion, history, paging. */
  readonly terminal: boolean
  /** Places and lines of the screen. */
  readonly size: () => { readonly width: number; readonly height: number }
  /** Milliseconds, for timing. */
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<unknown>
  /** File with the typed lines; undefined keeps none. */
  readonly historyFile?: string | undefined
  /** Opens the lake once more, after a fatal error of DuckDB; without it the session cannot go on after one. */
  readonly reopen?: () => Promise<Engine>
}

/** Runs a session at a prompt until `.quit` or the end of input; an error never ends it. */
export async function runSession(engine: Engine, folder: string, deps: SessionDeps): Promise<void> {
  const words = await readVocabulary(engine)
  const usual = { format: 'table', rows: 0, timer: true, out: undefined, quit: false } as const
  const state: SessionState = { engine, held: noMoments, isLost: false, folder, words, ...usual }
  const history = deps.historyFile === undefined ? undefined : await textOf(deps.historyFile)
  const lines = (history ?? '').split('\n').filter((line) => line !== '')
  await using desk = new Desk(deps, words, lines.toReversed().slice(0, historySize))
  desk.say('SQL ends with `;`. .help lists commands, Tab completes, Ctrl-C cancels.\n')
  try {
    await converse(state, desk, deps)
  } finally {
    // The caller closes the first one, which it opened.
    if (state.engine !== engine) state.engine.close()
  }
}

async function converse(state: SessionState, desk: Desk, deps: SessionDeps): Promise<void> {
  let pending = ''
  while (!state.quit) {
    if (pending === '') await readMoments(state)
    const sessionAsOf = pending === '' ? state.held.asOf : null
    // The prompt shows the `as_of` in force, however it was set.
    const line = await desk.ask(
      pending !== '' ? '   ...> ' : sessionAsOf === null ? 'lake> ' : `lake @ ${sessionAsOf}> `,
    )
    if (line === undefined) break
    if (line === cancelledLine) {
      pending = ''
      continue
    }
    if (isDot(line, pending)) {
      desk.remember(line)
      await shielded(state, desk, deps, async () => desk.say(await runDot(state, line.trim())))
      continue
    }
    pending += `${line}\n`
    const script = cutScript(pending)
    if (isOpen(pending) || script.statements.length === 0) {
      if (script.rest.text === '' && !isOpen(pending)) pending = ''
      continue
    }
    desk.remember(pending.trim())
    pending = script.rest.text
    for (const { text } of script.statements) {
      const good = await shielded(state, desk, deps, async () => answer(state, desk, deps, text))
      if (!good) break
    }
  }
  if (pending.trim() !== '' && !state.quit)
    await shielded(state, desk, deps, async () => answer(state, desk, deps, pending))
}

/** Notes the timestamps that are set, to set them again in an engine that takes the place of a lost one. */
async function readMoments(state: SessionState): Promise<void> {
  if (state.isLost) return
  try {
    const { engine } = state
    state.held = {
      asOf: await sessionMoment(engine, 'as_of'),
      observedAsOf: await sessionMoment(engine, 'observed_as_of'),
    }
  } catch (error) {
    if (engineLossIn(error) === undefined) throw error
    state.isLost = true
  }
}

/** Opens the lake once more where DuckDB answers nothing more: temporary tables and other variables went with it. */
async function revive(state: SessionState, desk: Desk, { reopen }: SessionDeps): Promise<void> {
  const subject = 'DuckDB gave up after a fatal error'
  const next = 'leave with .quit and run pitlake sql again'
  if (reopen === undefined) throw usage(subject, { next })
  state.engine.close()
  const { asOf, observedAsOf } = state.held
  try {
    const engine = await reopen()
    state.engine = engine
    await setMoment(engine, 'as_of', asOf ?? undefined)
    await setMoment(engine, 'observed_as_of', observedAsOf ?? undefined)
    state.isLost = false
    const version = await versionOf(engine)
    desk.say(
      `note: ${subject}; the session goes on with version ${version}, without its temporary tables and variables\n`,
    )
  } catch (cause) {
    const got = cause instanceof Error ? cause.message : String(cause)
    throw usage(subject, { expected: 'a lake that can be opened again', got, next, cause })
  }
}

/** Whether a line is a command of the session; amid a statement only one that is spelt in full. */
function isDot(line: string, pending: string): boolean {
  const [word = ''] = line.trim().split(/[\s;]/, 1)
  return word.startsWith('.') && (pending.trim() === '' || dotNames.includes(word))
}

/** Runs work whose errors do not end the session; after a fatal one the next work has a new engine. */
async function shielded(
  state: SessionState,
  desk: Desk,
  deps: SessionDeps,
  work: () => Promise<void>,
): Promise<boolean> {
  try {
    if (state.isLost) await revive(state, desk, deps)
    await work()
    return true
  } catch (error) {
    state.isLost ||= engineLossIn(error) !== undefined
    desk.say(`error: ${error instanceof Error ? error.message : String(error)}\n`)
    return false
  }
}

/** Runs one statement and shows or writes its answer. */
async function answer(state: SessionState, desk: Desk, deps: SessionDeps, sql: string): Promise<void> {
  const beganAt = deps.now()
  const run: RunDeps = { folder: state.folder, signal: desk.working(), sleep: deps.sleep }
  try {
    const { ready, notes, doubts } = await judgeQuestion({ sql }, state.engine, run)
    tell(desk, notes)
    const { told, extent } =
      state.out !== undefined && givesRows(ready)
        ? await toFile(state, ready, run)
        : state.format === 'table' || !givesRows(ready)
          ? await toScreen(state, desk, deps, ready, run)
          : await asText(state, desk, ready, run)
    const took = state.timer ? `${told === '' ? '' : ', '}${elapsed(deps.now() - beganAt)}` : ''
    if (told + took !== '') desk.say(`(${told}${took})\n`)
    if (extent !== undefined) tell(desk, await doubts(extent))
  } finally {
    desk.idle()
  }
}

function tell(desk: Desk, notes: readonly Note[]): void {
  for (const text of noteTexts(notes, 'terminal')) desk.say(`note: ${text}\n`)
}

/** Writes an answer to a file; returns the result in words, and the size of the answer. */
async function toFile(state: SessionState, ready: Ready, run: RunDeps) {
  const name = state.out ?? ''
  state.out = undefined
  const target = outFile(name, state.folder)
  const options = { format: formatOf(name) ?? state.format, width: 1000, rows: Infinity }
  const extent = await writeFile({ engine: state.engine, ready, options, deps: run }, target, name)
  return { told: `${several(extent.rows, 'row')} to ${name}`, extent }
}

async function asText(state: SessionState, desk: Desk, ready: Ready, run: RunDeps) {
  if (!isReadable(state.format)) {
    throw usage('.format', { expected: '`.out FILE` before the query', got: `${state.format} on a screen` })
  }
  const sink: Sink = async (data) => desk.write(data)
  const options = { format: state.format, width: 80, rows: Infinity }
  const extent = await writeTo({ engine: state.engine, ready, options, deps: run }, sink)
  return { told: several(extent.rows, 'row'), extent }
}

/** Shows a table page by page; a reader who has seen enough stops it, and the rest is not computed. */
async function toScreen(state: SessionState, desk: Desk, deps: SessionDeps, ready: Ready, run: RunDeps) {
  let rows = 0
  let extent: Extent | undefined
  let room = deps.size().height - 1
  for await (const page of pages(state.engine, ready, deps.size().width, run)) {
    for (const line of page.lines) {
      if (deps.terminal && room <= 0) {
        if (!(await desk.wantsMore()))
          return { told: `stopped, ${several(rows + page.rows, 'row')} fetched`, extent: undefined }
        room = deps.size().height - 1
      }
      await desk.write(`${line}\n`)
      room--
    }
    rows += page.rows
    extent = { rows, empty: page.filled.empty() }
    if (state.rows > 0 && rows >= state.rows) return { told: `first ${several(rows, 'row')}`, extent }
  }
  return { told: givesRows(ready) ? several(rows, 'row') : 'done', extent }
}

const noMoments = { asOf: null, observedAsOf: null } as const

const elapsed = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`)

/** Line that `ask` returns when Ctrl-C cancelled the input. */
const cancelledLine = '\u0003'
const historySize = 1000

/** Prompt of a person: lines come one by one, Ctrl-C cancels the running statement. */
class Desk {
  readonly #deps: SessionDeps
  readonly #readline: Interface & { history?: string[] }
  readonly #lines: string[] = []
  #waiting: ((line: string | undefined) => void) | undefined
  #running: AbortController | undefined
  #closed = false
  #saved: Promise<void> = Promise.resolve()

  constructor(deps: SessionDeps, words: Vocabulary, history: string[]) {
    this.#deps = deps
    this.#readline = createInterface({
      input: deps.input,
      output: deps.output,
      terminal: deps.terminal,
      historySize,
      removeHistoryDuplicates: true,
      history,
      completer: (line: string) => complete(line, words),
    })
    this.#readline.on('line', (line) => this.#take(line))
    this.#readline.on('close', () => {
      this.#closed = true
      this.#waiting?.(undefined)
    })
    this.#readline.on('SIGINT', () => this.#cancel())
  }

  /** Reads the next line; undefined at the end of input. */
  async ask(prompt: string): Promise<string | undefined> {
    const line = this.#lines.shift()
    if (line !== undefined) return line
    if (this.#closed) return undefined
    if (this.#deps.terminal) {
      this.#readline.setPrompt(prompt)
      this.#readline.prompt()
    }
    return new Promise((done) => {
      this.#waiting = done
    })
  }

  /** Asks for a key at the end of a page. */
  async wantsMore(): Promise<boolean> {
    const line = await this.ask('-- Enter for more, q to stop --')
    this.#forget()
    return line !== undefined && line !== cancelledLine && !/^\s*q/i.test(line)
  }

  /** Keeps the typed text, a statement of several lines as one entry. */
  remember(entry: string): void {
    const { history } = this.#readline
    if (!this.#deps.terminal || history === undefined) return
    const lines = entry.split('\n').filter((line) => line.trim() !== '')
    // A comment would swallow what follows it on one line.
    if (lines.length > 1 && !entry.includes('--')) {
      for (const line of lines) if (history.includes(line)) history.splice(history.indexOf(line), 1)
      history.unshift(lines.join(' '))
    }
    const { historyFile } = this.#deps
    const text = `${history.slice(0, historySize).toReversed().join('\n')}\n`
    // A history that cannot be written is no reason to disturb the session.
    if (historyFile !== undefined)
      this.#saved = this.#saved.then(() => writePrivate(historyFile, text)).catch(() => undefined)
  }

  /** Begins a statement: Ctrl-C aborts the signal. */
  working(): AbortSignal {
    this.#running = new AbortController()
    return this.#running.signal
  }

  /** Ends the statement. */
  idle(): void {
    this.#running = undefined
  }

  /** Writes words for the person at the prompt; nothing in them acts on the terminal. */
  say(text: string): void {
    this.#deps.output.write(visibleLines(text))
  }

  /** Writes, and waits while the reader is slower. */
  async write(data: string | Uint8Array): Promise<void> {
    const { output } = this.#deps
    const shown = typeof data === 'string' && this.#deps.terminal ? visibleLines(data) : data
    if (!output.write(shown)) await new Promise<void>((done) => output.once('drain', () => done()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#readline.close()
    await this.#saved
  }

  #take(line: string): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting) waiting(line)
    else this.#lines.push(line)
  }

  #cancel(): void {
    this.say('^C\n')
    this.#lines.length = 0
    this.#running?.abort()
    if (this.#waiting === undefined) return
    // Throws away the line that was begun.
    this.#readline.write(null, { ctrl: true, name: 'e' })
    this.#readline.write(null, { ctrl: true, name: 'u' })
    this.#take(cancelledLine)
  }

  #forget(): void {
    const { history } = this.#readline
    if (history !== undefined && /^\s*q?\s*$/i.test(history[0] ?? 'x')) history.shift()
  }
}

/** Number of rows that are laid out together: their widths agree, and more are fetched only on demand. */
const pageRows = 500

/**
 * Runs a statement and lays its result out for a screen part by part; the next part is computed on demand. `filled`
 * watches all parts until this one.
 */
async function* pages(engine: Engine, ready: Ready, width: number, deps: RunDeps) {
  const stream = await runCancellable(engine, ready.text, deps, async () => engine.stream(ready.text))
  const { names, types, chunks, filled } = watchColumns(stream, undefined)
  const source = chunks[Symbol.asyncIterator]()
  const more = async () => await runCancellable(engine, ready.text, deps, async () => source.next())
  let columns: Cell[][] = names.map(() => [])
  let isFirst = true
  const page = () => {
    const text = layResult(ready, names, types, columns, width)
    const answered = { lines: text.split('\n').slice(0, -1), rows: columns[0]?.length ?? 0, filled }
    columns = names.map(() => [])
    isFirst = false
    return answered
  }
  try {
    for (let next = await more(); next.done !== true; next = await more())
      for (let from = 0; from < next.value.rows; from += pageRows) {
        for (const [k, column] of columns.entries())
          column.push(...(next.value.columns[k] ?? []).slice(from, from + pageRows))
        if ((columns[0]?.length ?? 0) >= pageRows) yield page()
      }
    if (isFirst || columns.some(({ length }) => length > 0)) yield page()
  } finally {
    // Whoever has seen enough leaves a statement behind that still runs.
    await source.return?.(undefined)
  }
}
