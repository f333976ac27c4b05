import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { scratch } from '../helpers/scratch.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = scratch('start')

/** What a script prints that runs as the program does, or as Node alone would run it. */
function printed(script: string, as: 'program' | 'plain'): string {
  const file = join(folder, 'script.mts')
  writeFileSync(file, script)
  const preload = as === 'program' ? ['-r', join(root, 'scripts/fixed-node.cjs')] : []
  const { stdout, stderr, status } = spawnSync(process.execPath, [...preload, file], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    env: { NODE_COMPILE_CACHE: join(folder, 'cache') },
  })
  if (status !== 0) throw new Error(stderr)
  return stdout
}

test('every module of the program is the file, and of the kind, that Node itself finds', () => {
  const script = `
    import { readdirSync } from 'node:fs'
    import { registerHooks } from 'node:module'
    const seen = []
    registerHooks({ load(url, context, next) { seen.push(url + ' ' + context.format); return next(url, context) } })
    const commands = ${JSON.stringify(join(root, 'src/interfaces/commands/'))}
    // A process without a starter ends when it loads answering.ts.
    const modules = readdirSync(commands).filter((name) => name.endsWith('.ts') && name !== 'answering.ts')
    for (const name of modules) await import(commands + name)
    console.log(JSON.stringify(seen.toSorted()))`
  const [quick, plain] = (['program', 'plain'] as const).map((as) => JSON.parse(printed(script, as)) as string[])
  expect(plain?.length).toBeGreaterThan(400)
  // The program leaves out the words of zod in other languages than English.
  const isOtherLanguage = (line: string): boolean => /\/zod\/v4\/locales\/(?!en\.js)/.test(line)
  expect(plain?.some(isOtherLanguage)).toBe(true)
  expect(quick).toEqual(plain?.filter((line) => !isOtherLanguage(line)))
})

test('the HTTP client is loaded with the first connection, not with a command', () => {
  const script = `
    import { createRequire } from 'node:module'
    const require = createRequire(${JSON.stringify(join(root, 'package.json'))})
    const loaded = () => Object.keys(require.cache).filter((file) => /[\\/]undici[\\/]/.test(file)).length
    await import(${JSON.stringify(join(root, 'src/interfaces/commands/fetch.ts'))})
    const before = loaded()
    const { exchangesWith } = await import(${JSON.stringify(join(root, 'src/sources/http/http.ts'))})
    exchangesWith({ base: 'http://127.0.0.1:9', connections: 1, proxy: {} })
    console.log(JSON.stringify([before, loaded() > 0]))`
  expect(JSON.parse(printed(script, 'program'))).toEqual([0, true])
})

describe('what comes with the program is read once', () => {
  const script = `
    import { loadCatalogue } from ${JSON.stringify(join(root, 'src/catalog/load.ts'))}
    const plain = (_, value) => (value instanceof Map || value instanceof Set ? [...value] : value)
    console.log(JSON.stringify(loadCatalogue(), plain))`
  const plain = (_: string, value: unknown): unknown =>
    value instanceof Map || value instanceof Set ? [...value] : value
  const read = JSON.stringify(loadCatalogue(), plain)
  const kept = (): string[] =>
    readdirSync(join(folder, 'cache'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.json'))
      .map((name) => join(folder, 'cache', name))

  test('the cached catalogue equals the one read from its text, lines included', () => {
    for (const name of kept()) rmSync(name)
    expect(printed(script, 'program').trimEnd()).toBe(read)
    expect(kept()).toHaveLength(readdirSync(join(root, 'catalog')).filter((name) => name.endsWith('.yaml')).length)
    expect(printed(script, 'program').trimEnd()).toBe(read)
  })

  test('the next run reads the cached catalogue', () => {
    const [file = ''] = kept().filter((name) => readFileSync(name, 'utf8').includes('25-delta put IV'))
    const text = readFileSync(file, 'utf8').split('\n')[1]?.replaceAll('25-delta put IV', '25-delta PUT IV') ?? ''
    writeFileSync(file, `${createHash('sha256').update(text).digest('hex')}\n${text}`)
    expect(printed(script, 'program')).toContain('25-delta PUT IV')
  })

  test('a torn or altered cache is ignored, and the text is read again', () => {
    for (const name of kept()) writeFileSync(name, readFileSync(name, 'utf8').slice(0, -1))
    expect(printed(script, 'program').trimEnd()).toBe(read)
    for (const name of kept()) rmSync(name)
    printed(script, 'program')
    for (const name of kept()) writeFileSync(name, readFileSync(name, 'utf8').replaceAll('put', 'PUT'))
    expect(printed(script, 'program').trimEnd()).toBe(read)
  })

  test('a text that was changed is read again', () => {
    const own = join(folder, 'catalog')
    cpSync(join(root, 'catalog'), own, { recursive: true })
    const there = script.replace('loadCatalogue()', `loadCatalogue([], ${JSON.stringify(own)})`)
    expect(printed(there, 'program').trimEnd()).toBe(read)
    const metrics = join(own, 'metrics.yaml')
    writeFileSync(metrics, readFileSync(metrics, 'utf8').replace('25-delta put IV', '25-delta call IV'))
    expect(printed(there, 'program')).toContain('25-delta call IV minus call IV')
  })
})
