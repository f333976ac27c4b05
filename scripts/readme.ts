import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The pages whose sessions this script makes. */
export const pagesWithSessions = ['README.md', 'docs/tutorials/quick-start.md'] as const
const program = [join(root, 'scripts/launch.cjs')]
const session = /(<!-- session: made by scripts\/readme\.ts -->\n```console\n)([\s\S]*?)(```\n<!-- end -->)/

/** A page as it stands, and with the output that the commands of its session give now, on a lake of their own. */
export async function pageNow(name: string): Promise<{ held: string; now: string }> {
  const held = readFileSync(join(root, name), 'utf8')
  const block = session.exec(held)?.[2]
  if (block === undefined) throw new Error(`${name} has no session`)
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-readme-'))
  const sandbox = spawn(process.execPath, [...program, 'sandbox'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const line = await new Promise<string>((resolve, reject) => {
      sandbox.stdout.once('data', (bytes: Buffer) => resolve(bytes.toString()))
      sandbox.once('exit', () => reject(new Error('the sandbox did not start')))
    })
    const { metrics_url, metrics_key } = JSON.parse(line) as { metrics_url: string; metrics_key: string }
    const env = {
      ...process.env,
      PITLAKE_METRICS_URL: metrics_url,
      PITLAKE_METRICS_KEY: metrics_key,
      PITLAKE_DATA: join(folder, 'lake'),
    }
    const told = commandsOf(block).map((command) => `$ ${command}\n${outputOf(command, env)}`)
    return {
      held,
      now: held.replace(session, (_, head: string, __, tail: string) => `${head}${told.join('\n')}${tail}`),
    }
  } finally {
    sandbox.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The lines after `$ `, each with the indented ones below it. */
function commandsOf(block: string): string[] {
  return [...block.matchAll(/^\$ (.*(?:\n {4}.*)*)$/gm)].map((match) => match[1] ?? '')
}

/** What a reader of a terminal sees, without progress. */
function outputOf(command: string, env: NodeJS.ProcessEnv): string {
  const call = `pitlake() { ${[process.execPath, ...program].map((part) => JSON.stringify(part)).join(' ')} "$@"; }; ${command}`
  const run = spawnSync('bash', ['-c', call], { cwd: root, env, encoding: 'utf8' })
  const last = run.status === 0 ? '' : run.stderr.trimEnd().split('\n').at(-1)
  return `${run.stdout}${last === '' ? '' : `${last}\n`}`.replaceAll(/[ \t]+$/gm, '')
}

if (import.meta.main) {
  for (const name of pagesWithSessions) {
    const { held, now } = await pageNow(name)
    if (held !== now) writeFileSync(join(root, name), now)
    process.stdout.write(held === now ? `${name}: as it is\n` : `${name}: session made anew\n`)
  }
}
