import { setTimeout } from 'node:timers/promises'
import { type Complaint, exitCode, LakeError, usage } from '../errors.ts'
import { NotWhereNamed } from '../query/refusal.ts'
import { hint } from '../suggestion.ts'
import { visible, visibleLines } from '../visible.ts'
import { leave } from './leave.ts'
import { programVersion } from './program.ts'
import { type CommandSpec, type Deps, type Input, documentText, type Tell } from './spec.ts'
import { commandTable, type CommandEntry } from './table.ts'

/** Runs one command line with the real world behind it; returns the exit code. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  const stop = new AbortController()
  const onStop = stopCounter(stop)
  const onSignal = () => onStop(1)
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  heedLauncher(onStop)
  process.stdout.on('error', quietPipe)
  // Nobody reads the log any more: no reason to give up the work.
  process.stderr.on('error', () => undefined)
  let printed = false
  const deps: Deps = {
    now: Date.now,
    elapsed: () => performance.now(),
    sleep: async (ms, signal) => setTimeout(ms, undefined, signal ? { signal } : {}).catch(() => undefined),
    random: Math.random,
    env: process.env,
    stdout: (text) => {
      printed ||= text !== ''
      process.stdout.write(visibleLines(text))
    },
    stderr: (text) => void process.stderr.write(visibleLines(text)),
    live: (text) => void process.stderr.write(`\r\u001b[K${visible(text)}`),
    isTerminal: process.stderr.isTTY && !process.env['NO_COLOR'],
    signal: stop.signal,
    cwd: process.cwd(),
  }
  try {
    return (await dispatch(argv, deps)) ?? 0
  } catch (error) {
    const clean = await cleaner(deps)
    report(error, deps, clean)
    if (argv.includes('--json') && !printed) deps.stdout(clean(failure(error)))
    return exitCode(error)
  } finally {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
}

/** The first stop ends the work in good order, the second at once. */
function stopCounter(stop: AbortController): (own: number, told?: number) => void {
  const seen = { own: 0, told: 0 }
  return (own, told = 0) => {
    seen.own += own
    seen.told = Math.max(seen.told, told)
    // A terminal stops the launcher and this process, a kill often the launcher alone: that is one stop, not two.
    const stops = Math.max(seen.own, seen.told)
    if (stops > 1) leave(5)
    if (stops > 0) stop.abort()
  }
}

/** A launcher tells how often it was stopped; one that is gone counts as a stop. */
function heedLauncher(onStop: (own: number, told: number) => void): void {
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
    if (topic === '') return deps.stdout(overview())
    return dispatch([...argv.slice(1), '--help'], deps)
  }
  if (second === '--help' || second === '-h') {
    const group = commandTable.filter((entry) => entry.name.startsWith(`${first} `))
    if (group.length > 0) return deps.stdout(listing(`Usage: pitlake ${first} <command> [options]`, group))
  }
  const entry = findEntry(first, second)
  const rest = argv.slice(entry.name.split(' ').length)
  const { parseCommand, helpText } = await import('./parse.ts')
  const command = await entry.load()
  const flags = rest.slice(0, rest.includes('--') ? rest.indexOf('--') : rest.length)
  if (flags.includes('--help') || flags.includes('-h')) return deps.stdout(helpText(command))
  const input = parseCommand(command, rest)
  if (command.asks !== true) return perform(command, input, deps)
  const { withProvider } = await import('./on-demand.ts')
  return withProvider(input, deps, async (own) => perform(command, input, own))
}

/** Has a command do its work and says what it answers. */
async function perform(command: CommandSpec, input: Input, deps: Deps): Promise<number | void> {
  try {
    if (command.recorded !== true) return await answered(command, input, deps, () => undefined)
    const { withHooks } = await import('./recorded.ts')
    return await withHooks(command.name, input, deps, async (tell) => await answered(command, input, deps, tell))
  } catch (error) {
    if (exitCode(error) !== 1 && !(error instanceof NotWhereNamed)) throw error
    const [{ explained }, { settingsOf }] = await Promise.all([import('./explained.ts'), import('./context.ts')])
    throw await explained(error, command.name, settingsOf(input, deps).data)
  }
}

async function answered(command: CommandSpec, input: Input, deps: Deps, tell: Tell): Promise<number | void> {
  if ('run' in command) return command.run(input, deps, tell)
  const { readContext } = await import('./context.ts')
  const { document, words, error = null, code } = await command.answer(input, await readContext(input, deps), deps)
  tell(document)
  deps.stdout('json' in input.options && input.options.json === true ? documentText(document) : words())
  if (error !== null) throw error
  return code
}

function findEntry(first: string, second: string | undefined): CommandEntry {
  const exact =
    commandTable.find((entry) => entry.name === `${first} ${second ?? ''}`) ??
    commandTable.find((entry) => entry.name === first)
  if (exact) return exact
  const group = commandTable
    .filter((entry) => entry.name.startsWith(`${first} `))
    .map((entry) => entry.name.slice(first.length + 1))
  if (group.length > 0) {
    const got = second === undefined || second.startsWith('-') ? 'nothing' : second
    throw usage(`pitlake ${first}`, { expected: `one of ${group.join(', ')}`, got, next: hint(second ?? '', group) })
  }
  const names = [...new Set(commandTable.map((entry) => entry.name.split(' ')[0] ?? ''))]
  throw usage(`pitlake ${first}`, {
    expected: `a command (${names.join(', ')})`,
    got: first,
    next: hint(first, names) ?? 'see `pitlake --help`',
  })
}

function listing(usageLine: string, entries: readonly CommandEntry[]): string {
  const width = Math.max(...entries.map((entry) => entry.name.length))
  const line = ({ name, summary }: CommandEntry): string => {
    const whole = summary.replace(/\.$/, '')
    return `  ${name.padEnd(width)}  ${whole.length + width <= 76 ? whole : whole.replace(/[:;].*$/, '')}\n`
  }
  const groups = Map.groupBy(entries, ({ task }) => task)
  return [`${usageLine}\n`, ...[...groups].map(([task, own]) => `${task}:\n${own.map(line).join('')}`)].join('\n')
}

function overview(): string {
  return [
    'pitlake: a research data lake that cannot lie about time',
    '',
    listing('Usage: pitlake <command> [options]', commandTable),
    'Every command has --help, --config FILE and --data DIR.',
    'Exit codes: 0 done, 1 unexpected, 2 usage or configuration, 3 not authorised,',
    '            4 integrity, 5 stopped early and resumable, 6 finished but some',
    '            windows failed, or the disk is full or read-only, 7 another job is',
    '            at work.',
    '',
  ].join('\n')
}

/** The document of a run that ended before it had one of its own. */
function failure(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error)
  const { kind, complaints } =
    error instanceof LakeError ? error : { kind: 'unexpected', complaints: [{ subject: said }] }
  const told = complaints.map(({ subject, expected, got, next }: Complaint) => ({ subject, expected, got, next }))
  return documentText({ error: { kind, exit_code: exitCode(error), complaints: told } })
}

/** Takes every key out of a text; loaded only where there is something to tell. */
async function cleaner(deps: Deps): Promise<(text: string) => string> {
  const [{ redact }, { givenKeys }] = await Promise.all([
    import('../secrets/secrets.ts'),
    import('../config/settings.ts'),
  ])
  const keys = givenKeys(deps.env)
  return (text) => redact(text, keys)
}

function report(error: unknown, deps: Deps, clean: (text: string) => string): void {
  const verbose = deps.env['PITLAKE_LOG'] === 'debug'
  const text =
    error instanceof LakeError && !verbose
      ? error.message
      : error instanceof Error
        ? (error.stack ?? error.message)
        : String(error)
  for (const line of clean(text).split('\n')) deps.stderr(`pitlake: ${line}\n`)
}

/** A reader that closed the pipe (`| head`) is no error. */
function quietPipe(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
}
