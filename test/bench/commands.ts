import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { judged, type Measured, median, scaled, share } from './measured.ts'
import { runScript, type Took } from './programs.ts'
import { root } from './provider.ts'

/*
 * Commands as they are typed every day, each a process of its own, on a lake like that of `make lake`: every endpoint
 * for three assets and the registry, from the sandbox. Processor seconds with the start of Node, so that other work on
 * the machine counts little.
 */

const rounds = Math.max(1, scaled(7))
const day = 86_400_000
/** The lake begins here, or with a share of the benchmark half a year before today. */
const since = new Date(share === 1 ? Date.UTC(2019, 0, 1) : Date.now() - 182 * day).toISOString().slice(0, 10)

/** A command, what its output must contain, and the processor seconds that it may take. */
interface DailyCommand {
  readonly argv: readonly string[]
  readonly says: RegExp
  readonly seconds: number
  /** The exit code that stands for success. */
  readonly code?: number
}

const commands: readonly DailyCommand[] = [
  { argv: ['--help'], says: /Usage: pitlake/, seconds: 0.2 },
  { argv: ['sql', 'SELECT 1 AS one'], says: /one/, seconds: 0.35 },
  { argv: ['status'], says: /^trust/m, seconds: 0.6 },
  { argv: ['lookahead', 'leak.sql'], says: /leak/, seconds: 1.2, code: 4 },
  { argv: ['daily'], says: /fetch/, seconds: 2 },
]

/** A strategy of 488 decisions that joins a day's value on the day that it describes. */
const leak = `SELECT c.ts, p.asset, p.v
FROM calendar(current_date - INTERVAL 520 DAY, current_date - INTERVAL 32 DAY, '1 day') AS c
JOIN points AS p ON p.t = c.ts
WHERE p.metric = 'addresses/active_count_pit' AND p."interval" = '24h' AND p.asset = 'BTC'
`

/** Processor seconds of each command. */
export async function benchCommands(): Promise<Measured[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-commands-'))
  const sandbox = spawn(process.execPath, ['src/main.ts', 'sandbox'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const provider = JSON.parse(String((await once(sandbox.stdout, 'data'))[0])) as Readonly<Record<string, string>>
    const env = {
      PITLAKE_DATA: join(folder, 'lake'),
      PITLAKE_METRICS_URL: provider['metrics_url'],
      PITLAKE_METRICS_KEY: provider['metrics_key'],
      PITLAKE_REGISTRY_URL: provider['registry_url'],
      PITLAKE_REGISTRY_KEY: provider['registry_key'],
    }
    writeFileSync(join(folder, 'leak.sql'), leak)
    const config = join(folder, 'pitlake.yaml')
    writeFileSync(config, `select:\n  - { assets: [BTC, ETH, SOL], paths: ['*'], since: ${since} }\n`)
    const run = ({ argv, code = 0 }: Pick<DailyCommand, 'argv' | 'code'>): Took => {
      const words = argv.map((word) => (word.endsWith('.sql') ? join(folder, word) : word))
      const flags = argv[0] === '--help' ? [] : ['--config', config]
      return runScript(root, ['src/main.ts', ...words, ...flags], env, { code })
    }
    // The second time nothing is new.
    for (let n = 0; n < 2; n++) run({ argv: ['daily'] })
    return commands.map((command) => {
      const times = Array.from({ length: rounds }, () => {
        const { cpu, stdout } = run(command)
        if (!command.says.test(stdout)) throw new Error(`pitlake ${command.argv.join(' ')} says: ${stdout}`)
        return cpu
      })
      const seconds = median(times)
      const line = `pitlake ${command.argv.join(' ')}: ${seconds.toFixed(2)} s of processor`
      return judged(line, seconds, command.seconds, ' s')
    })
  } finally {
    sandbox.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}
