import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { openLake, rows } from '../../src/index.ts'
import { Agent } from '../helpers/agent.ts'
import { pitlake } from '../helpers/command.ts'
import { listening } from '../helpers/listening.ts'
import { need } from '../helpers/needs.ts'
import { pastedDeeds, pastedOptions, pastedQuestion, pastedWords } from '../helpers/pasted.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { python } from '../doors/programs.ts'

/* A caller's text never becomes SQL of ours: no value of an option is filled in by another text of the caller. */

const proof = 'pasted-proof'
const asOf = '2024-03-01'
const { root: folder } = lakeOfFile(hundredFetchedDays)
let file = ''
beforeAll(async () => {
  file = join(folder, 'points', 'pasted.csv')
})

interface Attack {
  readonly deed: (typeof pastedDeeds)[number]
  readonly option: (typeof pastedOptions)[number]
  readonly word: string
}

/** Each deed once; then each option, and each word. */
const few: readonly Attack[] = pastedDeeds.map((deed) => ({ deed, option: 'currency', word: '?decisions' }))
const attacks: readonly Attack[] = [
  ...few,
  ...pastedOptions.map((option): Attack => ({ deed: 'tells', option, word: '?decisions' })),
  ...pastedWords.map((word): Attack => ({ deed: 'writes', option: 'currency', word })),
]

/** An interface at which a statement is asked: everything that it answers, notes among it, as one text. */
interface Interface extends AsyncDisposable {
  readonly ask: (sql: string) => Promise<string>
}

async function serve(): Promise<Interface> {
  const { url, stop } = await listening(folder, ['serve'])
  const ask = async (sql: string): Promise<string> => {
    const answer = await fetch(`${url}/query?as_of=${asOf}`, { method: 'POST', body: sql })
    return `${decodeURIComponent(answer.headers.get('pitlake-noted') ?? '')}${await answer.text()}`
  }
  return { ask, [Symbol.asyncDispose]: async () => void (await stop()) }
}

async function mcp(tool: 'query' | 'lookahead'): Promise<Interface> {
  const agent = await Agent.at(folder)
  const ask = async (sql: string): Promise<string> =>
    (await agent.ask(tool, tool === 'query' ? { sql, as_of: asOf } : { sql, cutoffs: 1 })).text
  return { ask, [Symbol.asyncDispose]: async () => await agent[Symbol.asyncDispose]() }
}

async function commandLine(): Promise<Interface> {
  const script = join(folder, '..', 'pasted.sql')
  const ask = async (sql: string): Promise<string> => {
    writeFileSync(script, sql)
    const out = join(folder, '..', 'pasted.json')
    rmSync(out, { force: true })
    const { message, notes } = await pitlake(folder, [
      'sql',
      '-f',
      script,
      '--as-of',
      asOf,
      '--data',
      folder,
      '--out',
      out,
    ])
    return `${message}${notes}${existsSync(out) ? readFileSync(out, 'utf8') : ''}`
  }
  return { ask, [Symbol.asyncDispose]: async () => undefined }
}

async function library(): Promise<Interface> {
  const lake = await openLake(folder, { asOf })
  const ask = async (sql: string): Promise<string> => JSON.stringify([rows(await lake.sql(sql)), lake.notes])
  return { ask, [Symbol.asyncDispose]: async () => await lake.close() }
}

async function packageOfPython(interpreter: string): Promise<Interface> {
  const door = await python({ home: join(folder, '..'), root: folder }, interpreter)
  const ask = async (sql: string): Promise<string> =>
    JSON.stringify(await door.ask({ ask: { sql }, knowledge: { as_of: asOf } }))
  return { ask, [Symbol.asyncDispose]: async () => await door[Symbol.asyncDispose]() }
}

const honest = 'SELECT CAST(count(*) AS INTEGER) AS n FROM series'

/** Asks attacks, and an honest question after each: what tells that one ran. */
async function succeeded(asked: Interface, tried = attacks): Promise<readonly string[]> {
  const before = await asked.ask(honest)
  const found: string[] = []
  for (const { deed, option, word } of tried) {
    const answer = await asked.ask(pastedQuestion(option, word, deed, { file, proof }))
    const what = `${deed} by ${option} := '${word}'`
    if (answer.includes(proof)) found.push(`${what}: ${answer}`)
    if (existsSync(file)) found.push(`${what}: a file of the lake`)
    if ((await asked.ask(honest)) !== before) found.push(`${what}: the next answer`)
    rmSync(file, { force: true })
  }
  return found
}

describe('an option whose value names a placeholder, over decisions that hold a statement, runs nothing', () => {
  test.each<readonly [string, () => Promise<Interface>, readonly Attack[]]>([
    ['sql -f', commandLine, few],
    ['serve', serve, attacks],
    ['the MCP tool query', async () => mcp('query'), few],
    ['the MCP tool lookahead', async () => mcp('lookahead'), few],
    ['the TypeScript library', library, attacks],
  ])('no placeholder runs at %s', async (_, open, tried) => {
    await using asked = await open()
    expect(await succeeded(asked, tried)).toEqual([])
  })

  test('no placeholder runs in Python', async (context) => {
    await using asked = await packageOfPython(need(context, 'peers'))
    expect(await succeeded(asked)).toEqual([])
  })
})
