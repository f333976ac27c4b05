import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { anchorOf } from '../../scripts/anchors.ts'
import { commandPages, commandPagesFile } from '../../scripts/command-pages.ts'
import { pageNow, pagesWithSessions } from '../../scripts/readme.ts'
import { configSchema } from '../../src/catalog/config.ts'
import { commandTable } from '../../src/interfaces/commands/table.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const pages = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n')

const read = (page: string): string => readFileSync(resolve(root, page), 'utf8')

/** A page without its fenced blocks: `#` begins a comment there, and brackets mean no link. */
const proseOf = (text: string): string => text.replaceAll(/^```[\s\S]*?^```/gm, '')

/** The anchors of the headings of a page, as GitHub and the site make them. */
const anchorsOf = (text: string): string[] =>
  [...proseOf(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))

/** Links of a page that lead to no file, or to no heading of it. */
const brokenLinks = (page: string): string[] => brokenLinksIn(page, read(page))

function brokenLinksIn(page: string, text: string): string[] {
  const links = [...proseOf(text).matchAll(/\]\(([^)\s]+)[^)]*\)/g)].map(([, link = '']) => link)
  return links
    .filter((link) => {
      if (/^[a-z]+:/.test(link)) return false
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? page : join(dirname(page), file)
      if (!existsSync(resolve(root, target))) return true
      return anchor !== undefined && target.endsWith('.md') && !anchorsOf(read(target)).includes(anchor)
    })
    .map((link) => `${page}: ${link}`)
}

test('the command reference is what the option tables say', async () => {
  expect(readFileSync(commandPagesFile, 'utf8')).toBe(await commandPages())
})

test('every link of a page leads to a file, and every anchor to a heading', () => {
  expect(pages.length).toBeGreaterThan(30)
  expect(pages.flatMap(brokenLinks)).toEqual([])
})

test('a link of a page of docs leads to a page or a picture of docs, because the site has nothing else', () => {
  const leaving = pages
    .filter((page) => page.startsWith('docs/'))
    .flatMap((page) =>
      [...proseOf(read(page)).matchAll(/\]\(([^)\s#]+)[^)]*\)/g)]
        .map(([, link = '']) => link)
        .filter((link) => !/^[a-z]+:/.test(link))
        .filter((link) => !/^docs\/.*\.(?:md|svg|png)$/.test(join(dirname(page), link)))
        .map((link) => `${page}: ${link}`),
    )
  expect(leaving).toEqual([])
})

test('a link to a missing file and one to a missing heading are both found', () => {
  const page = 'docs/reference/glossary.md'
  const links = ['../how-to/none.md', '#none', '../explanation/concepts.md#none', '../explanation/concepts.md#the-laws']
  expect(brokenLinksIn(page, links.map((link) => `[x](${link})`).join('\n'))).toEqual(
    links.slice(0, 3).map((link) => `${page}: ${link}`),
  )
})

test('two headings of a page never share an anchor', () => {
  const repeated = pages
    .filter((page) => page.startsWith('docs/') && page !== 'docs/reference/commands.md')
    .flatMap((page) => {
      const anchors = anchorsOf(read(page))
      return anchors.filter((anchor, n) => anchors.indexOf(anchor) !== n).map((anchor) => `${page}: ${anchor}`)
    })
  expect(repeated).toEqual([])
})

test('the index of the pages leads to each of them', () => {
  const index = read('docs/README.md')
  const missing = pages
    .filter((page) => /^docs\/(?!decisions\/|README)/.test(page))
    .filter((page) => !index.includes(`](${page.slice('docs/'.length)})`))
  expect(missing).toEqual([])
})

test('the configuration page names every key', () => {
  const text = readFileSync(resolve(root, 'docs/reference/configuration.md'), 'utf8')
  for (const key of Object.keys(configSchema.shape)) expect.soft(text, key).toContain(`\`${key}\``)
})

test('the table of exit codes by command is what the commands declare', async () => {
  const [, table = ''] = read('docs/reference/exit-codes.md').split('## Codes by command')
  const rows = [...table.matchAll(/^\| (`.*`) \|(.*)\|$/gm)].flatMap(([, names = '', cells = '']) => {
    const codes = cells.split('|').flatMap((cell, n) => (cell.trim() === 'x' ? [n + 3] : []))
    return [...names.matchAll(/`(.+?)`/g)].map(([, name]) => [name, codes])
  })
  const declared = commandTable.map(async ({ name, load }) => [name, (await load()).exits])
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(await Promise.all(declared)))
})

test('each line of a crontab names the path of the program, because cron does not search for it', () => {
  const lines = pages
    .flatMap((page) => [...read(page).matchAll(/^(?:Example: )?[\d*/]+ [\d*]+ \* \* \* .*$/gm)])
    .map(([line]) => line)
  expect(lines.length).toBeGreaterThan(4)
  expect(lines.filter((line) => !line.includes('&& node_modules/.bin/pitlake '))).toEqual([])
})

test.each(pagesWithSessions)('the session of %s is what its commands say', async (name) => {
  const { held, now } = await pageNow(name)
  expect(held).toBe(now)
})
