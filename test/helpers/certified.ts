import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hash } from 'node:crypto'
import { beforeAll } from 'vitest'
import { readKey, signedNote, signedText } from '../../src/base/merkle/note.ts'
import { pitlake } from './command.ts'
import { copyPreset } from './lakes/written-by-jobs.ts'
import { scratch } from './scratch.ts'

const proofs = new URL('../../docs/proof/', import.meta.url).pathname

/** Both checkers, as a stranger runs them. */
export const checkers = [
  [process.execPath, join(proofs, 'verify-certificate.mjs')],
  ['python3', join(proofs, 'verify_certificate.py')],
] as const

/** Those that find DuckDB here, which both need for published tables. */
export const digesting = checkers.filter(
  ([program]) => program !== 'python3' || spawnSync(program, ['-c', 'import duckdb']).status === 0,
)

/** What a checker says of some certificates: `valid`, or why not, and how it ends. */
export function checked(checker: readonly [string, string], cwd: string, argv: readonly string[]) {
  const [program, file] = checker
  const { stdout, stderr, status } = spawnSync(program, [file, ...argv], { cwd, encoding: 'utf8', maxBuffer: 1 << 26 })
  return { lines: stdout.split('\n').filter((line) => line !== ''), status, stderr }
}

/** A folder with a lake, a key, heads, a stamped result and its certificate. */
export interface Certified {
  readonly home: string
  readonly root: string
  readonly run: (...argv: readonly string[]) => ReturnType<typeof pitlake>
  readonly certificate: string
  /** Signs a body anew, whatever it says, as its owner could. */
  readonly sealed: (body: string) => string
}

/**
 * Takes a stamped lake through heads, a try, a stamp and a certificate, once for a file; each work finds it as it was
 * then.
 */
export function certifiedOfFile(): (work: (made: Certified) => Promise<void>) => Promise<void> {
  const place = scratch('certified')
  const home = join(place, 'home')
  const kept = join(place, 'kept')
  const env = { PITLAKE_HEAD_KEY_FILE: join(home, 'k.key') }
  const root = join(home, 'lake')
  const run: Certified['run'] = async (...argv) => await pitlake(home, [...argv, '--data', root], env)
  beforeAll(async () => {
    mkdirSync(home, { recursive: true })
    await copyPreset('stamped', home)
    await run('keygen')
    await run('compact')
    writeFileSync(join(home, 'old.txt'), (await run('head')).out)
    const sql = "SELECT available_at AS ts, asset, v FROM points WHERE metric = 'supply/current_pit' ORDER BY ALL"
    writeFileSync(join(home, 'q.sql'), sql)
    await run('preregister', 'q.sql')
    await run('stamp', 'q.sql', '--out', 'q.parquet')
    const statistic = 'SELECT sum(v) AS s, count(*) AS n FROM result'
    await run('certify', 'q.parquet', '--out', 'c.json', '--statistic', statistic)
    cpSync(home, kept, { recursive: true, preserveTimestamps: true })
  })
  const sealed = (body: string): string => {
    const key = readKey(readFileSync(env.PITLAKE_HEAD_KEY_FILE, 'utf8').trim())
    if (key === undefined) throw new Error('no key')
    const text = `pitlake certificate\nsha256 ${hash('sha256', body)}\n`
    return `${body},\n"signature": ${JSON.stringify(signedText(signedNote(key, text)))}\n}\n`
  }
  return async (work) => {
    rmSync(home, { recursive: true })
    cpSync(kept, home, { recursive: true, preserveTimestamps: true })
    await work({ home, root, run, certificate: readFileSync(join(home, 'c.json'), 'utf8'), sealed })
  }
}
