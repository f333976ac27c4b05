import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { inFolder } from '../helpers/folders.ts'
import { withRig } from '../helpers/fetching.ts'
import { makeViews } from '../helpers/views.ts'

const root = new URL('../../', import.meta.url)
const text = (name: string): string => readFileSync(new URL(name, root), 'utf8')

/** The words of a command line, as a shell takes them apart. */
const words = (line: string): string[] =>
  [...line.matchAll(/"((?:\\"|[^"])*)"|(\S+)/g)].map(([, quoted, bare]) => quoted?.replaceAll('\\"', '"') ?? bare ?? '')

test('every command of SKILL.md ends with 0 on a lake, and its query is clean', async () =>
  withRig(Date.UTC(2024, 2, 1, 12) / 1000, async (rig) => {
    await rig.fetch({ assets: ['BTC'], paths: ['supply/current_pit'], since: Date.UTC(2024, 0, 1) / 1000 })
    await makeViews(rig.root)
    await inFolder(async (folder) => {
      const lines: string[] = []
      let verdict = ''
      for (const [, kind, file = '', block = ''] of text('SKILL.md').matchAll(/```(\w+) ?(\S*)\n([\s\S]*?)```/g)) {
        if (kind === 'sql') writeFileSync(join(folder, file), block)
        else lines.push(...block.trim().split('\n'))
      }
      for (const line of lines) {
        const argv = words(line).slice(1)
        const table = /^(?:sql|panel)$/.test(argv[0] ?? '') ? ['--format', 'csv', '--out', 'rows.csv'] : []
        const ended = await pitlake(folder, [...argv, ...table, '--data', rig.root])
        expect([ended.code, ended.message], line).toEqual([0, ''])
        if (line.includes('lookahead')) verdict = ended.out
      }
      expect(lines).toHaveLength(9)
      expect(verdict).toContain('clean')
    })
  }))

test('server.json and package.json name one server of one version, which pitlake mcp is', () => {
  const server = JSON.parse(text('server.json')) as {
    readonly name: string
    readonly version: string
    readonly packages: readonly {
      readonly identifier: string
      readonly version: string
      readonly packageArguments: unknown
    }[]
  }
  const { name, version, mcpName } = JSON.parse(text('package.json')) as Readonly<Record<string, string>>
  expect([server.name, server.version]).toEqual([mcpName, version])
  expect(server.packages.map((one) => [one.identifier, one.version])).toEqual([[name, version]])
  expect(server.packages[0]?.packageArguments).toMatchObject([{ value: 'mcp' }, { name: '--data' }])
  expect(text('python/pyproject.toml')).toContain(`version = "${version}"`)
})

test('the licence of the wheel is that of the project', () => {
  expect(text('python/LICENSE')).toBe(text('LICENSE'))
})
