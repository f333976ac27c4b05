import { exitCode, exitMeanings, LakeError, usage } from '../../base/errors.ts'
import { refusalIn } from '../server/refusal.ts'
import { NotWhereNamed } from '../../query/refusal.ts'
import { fitLive } from '../../base/progress.ts'
import { hint } from '../../base/suggestion.ts'
import { visible, visibleLines } from '../../base/visible-text.ts'
import { wrapLine } from '../../base/figures.ts'
import { cleanUp, exitAtOnce, ownWorld, programVersion, stopSignals } from '../cli/process.ts'
import { type CommandEntry, type Deps, documentText, type ListedCommand, type Typed } from '../cli/spec.ts'
import { commandTable } from './table.ts'

/** Runs one command line with the real world behind it; returns the exit code. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  const stop = new AbortController()
  const onStop = stopCounter(stop)
  const onSignal = () => onStop(1)
  for (const signal of stopSignals) process.on(signal, onSignal)
  heedLauncher(onStop)
  // A closed output, or an uncaught error, ends the process in the middle of its work.
  process.once('exit', cleanUp)
  process.stdout.on('error', quietPipe)
  // A log without a reader is no reason to give up the work.
  process.stderr.on('error', () => undefined)
  let printed = false
  const deps: Deps = {
    ...ownWorld(),
    stdout: (text) => {
      printed ||= text !== ''
      process.stdout.write(visibleLines(text))
    },
    stderr: (text) => void process.stderr.write(visibleLines(text)),
    live: (text) => void process.stderr.write(`\r\u001b[K${fitLive(visible(text), process.stderr.columns)}`),
    isTerminal: process.stderr.isTTY && !process.env['NO_COLOR'],
    signal: stop.signal,
  }
  try {
    return (await dispatch(argv, deps)) ?? 0
  } catch (error) {
    const { redact } = await import('../../base/secrets.ts')
    const { givenKeys } = await import('../../catalog/settings.ts')
    const clean = (text: string): string => redact(text, givenKeys(deps.env))
    for (const line of clean(wordsOf(error, deps)).split('\n')) deps.stderr(`pitlake: ${line}\n`)
    const { kind, complaints } = refusalIn(error)
    const document = { error: { kind, exit_code: exitCode(error), complaints } }
    if (argv.includes('--json') && !printed) deps.stdout(clean(documentText(document)))
    return exitCode(error)
  } finally {
    for (const signal of stopSignals) process.off(signal, onSignal)
  }
}

/** Counts stop signals: the first ends the work in good order, the second at once. */
function stopCounter(stop: AbortController): (signals: number, launched?: number) => void {
  const seen = { own: 0, told: 0 }
  return (signals, launched = 0) => {
    seen.own += signals
    seen.told = Math.max(seen.told, launched)
    // A terminal stops the launcher and this process, a kill often the launcher alone: that is one stop, not two.
    const stops = Math.max(seen.own, seen.told)
    if (stops > 1) exitAtOnce(5)
    if (stops > 0) stop.abort()
  }
}

/** Listens to the launcher, which reports how often it was stopped; one that is gone counts as a stop. */
function heedLauncher(onStop: (signals: number, launched: number) => void): void {
  if (process.channel === undefined) return
  process.on('message', (message: { stops?: unknown } | null) => {
    if (typeof message?.stops === 'number') onStop(0, message.stops)
  })
  process.on('disconnect', () => onStop(0, 1))
  process.channel?.unref()
}

/** Finds the command, parses its options by its own table, runs it. */
export async function dispatch(argv: readonly string[], deps: Deps): Promise<number | void> {
  const [first = '--help', second] = argv
  if (first === '--version' || first === '-V') return deps.stdout(`${programVersion()}\n`)
  if (first === '--help' || first === '-h' || first === 'help') {
    const topic = first === 'help' ? argv.slice(1).join(' ') : ''
    if (topic === '') return deps.stdout(overview(false))
    if (topic === 'all') return deps.stdout(overview(true))
    return dispatch([...argv.slice(1), '--help'], deps)
  }
  if (second === '--help' || second === '-h') {
    const group = commandTable.filter((entry) => entry.name.startsWith(`${first} `))
    if (group.length > 0) return deps.stdout(listing(`Usage: pitlake ${first} <command> [options]`, group))
  }
  const entry = findEntry(first, second)
  const rest = argv.slice(entry.name.split(' ').length)
  const command = await entry.load()
  const { helpText, parseCommand } = await import('../cli/parse.ts')
  const flags = rest.slice(0, rest.includes('--') ? rest.indexOf('--') : rest.length)
  if (flags.includes('--help') || flags.includes('-h')) return deps.stdout(helpText(command))
  const typed = { ...parseCommand(command, rest), ...deps }
  if (command.asks !== true) return perform(command, typed)
  const { withProvider } = await import('./frame.ts')
  return withProvider(typed, async (typedArguments) => perform(command, typedArguments))
}

async function perform(command: ListedCommand, typed: Typed): Promise<number | void> {
  try {
    if (command.recorded !== true) return await answered(command, typed, () => undefined)
    const { withHooks } = await import('./frame.ts')
    return await withHooks(command.name, typed, async (tell) => await answered(command, typed, tell))
  } catch (error) {
    if (exitCode(error) !== 1 && !(error instanceof NotWhereNamed)) throw error
    const [{ explainThrown: explained }, { settingsOf }] = await Promise.all([
      import('./frame.ts'),
      import('../cli/context.ts'),
    ])
    throw await explained(error, command.name, settingsOf(typed).data)
  }
}

async function answered(command: ListedCommand, typed: Typed, tell: (document: unknown) => void) {
  if (command.viewsBefore === true) {
    const { openWithViews } = await import('./views.ts')
    await openWithViews(typed)
  }
  if (command.viewsAfter !== true) return await runCommand(command, typed, tell)
  const { leaveWithViews } = await import('./views.ts')
  return await leaveWithViews(command.name, typed, async () => await runCommand(command, typed, tell))
}

/** Runs a command, writes its answer, and ends with its error or exit code. */
async function runCommand(
  command: ListedCommand,
  typed: Typed,
  tell: (document: unknown) => void,
): Promise<number | void> {
  if ('run' in command) return command.run(typed, tell)
  const { readContext } = await import('../cli/context.ts')
  const { document, words, error = null, code } = await command.answer(await readContext(typed))
  tell(document)
  typed.stdout('json' in typed.options && typed.options.json === true ? documentText(document) : words())
  if (error !== null) throw error
  return code
}

function findEntry(first: string, second: string | undefined): CommandEntry {
  const named = (name: string): CommandEntry | undefined => commandTable.find((entry) => entry.name === name)
  const exact = named(`${first} ${second ?? ''}`) ?? named(first)
  if (exact) return exact
  const words = commandTable.map((entry) => entry.name.split(' '))
  const group = words.flatMap(([firstWord, two]) => (firstWord === first && two !== undefined ? [two] : []))
  if (group.length > 0) {
    const got = second === undefined || second.startsWith('-') ? 'nothing' : second
    throw usage(`pitlake ${first}`, { expected: `one of ${group.join(', ')}`, got, next: hint(second ?? '', group) })
  }
  const names = [...new Set(words.map(([firstWord = '']) => firstWord))]
  const next = hint(first, names) ?? 'pitlake help all lists the commands'
  throw usage(`pitlake ${first}`, { expected: 'a command', got: first, next })
}

function listing(usageLine: string, entries: readonly CommandEntry[]): string {
  const width = Math.max(...entries.map((entry) => entry.name.length))
  const line = ({ name, summary }: CommandEntry): string => `  ${name.padEnd(width)}  ${summary}\n`
  const groups = Map.groupBy(entries, ({ task }) => task)
  return [
    `${usageLine}\n`,
    ...[...groups].map(([task, linesOfTask]) => `${task}:\n${linesOfTask.map(line).join('')}`),
  ].join('\n')
}

/** Formats the text of `pitlake --help`: the common commands, or with `pitlake help all` every one. */
function overview(all: boolean): string {
  const shownCommands = all ? commandTable : commandTable.filter((entry) => entry.isCommon)
  const codes = `Exit codes: ${Object.entries(exitMeanings)
    .map(([code, means]) => `${code} ${means}`)
    .join('; ')}.`
  return [
    'pitlake: a research data lake that cannot lie about time',
    '',
    listing('Usage: pitlake <command> [options]', shownCommands),
    ...(all ? [] : [`All ${commandTable.length} commands: pitlake help all`]),
    'Every command has --help, --config FILE and --data DIR.',
    ...wrapLine(codes, 12),
    '',
  ].join('\n')
}

function wordsOf(error: unknown, { env }: Deps): string {
  if (!(error instanceof Error)) return String(error)
  return error instanceof LakeError && env['PITLAKE_LOG'] !== 'debug' ? error.message : (error.stack ?? error.message)
}

/** Ignores a reader that closed the pipe (`| head`), which is no error. */
function quietPipe(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
}
