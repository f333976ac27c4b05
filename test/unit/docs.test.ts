import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { commandPages, commandPagesFile } from '../../scripts/command-pages.ts'
import { readmeNow } from '../../scripts/readme.ts'
import { configSchema } from '../../src/catalog/config.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const pages = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n')

test('the command reference is what the option tables say', async () => {
  expect(readFileSync(commandPagesFile, 'utf8')).toBe(await commandPages())
})

test('no page links to a file that is not there', () => {
  const dead = pages.flatMap((page) => {
    const text = readFileSync(resolve(root, page), 'utf8')
    const links = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map((match) => match[1] ?? '')
    return links
      .filter((link) => !/^[a-z]+:/.test(link) && !existsSync(resolve(root, dirname(page), link)))
      .map((link) => `${page}: ${link}`)
  })
  expect(pages.length).toBeGreaterThan(5)
  expect(dead).toEqual([])
})

test('the configuration page names every key', () => {
  const text = readFileSync(resolve(root, 'docs/configuration.md'), 'utf8')
  for (const key of Object.keys(configSchema.shape)) expect.soft(text, key).toContain(`\`${key}\``)
})

test('the session of the README is what its commands say', async () => {
  const { held, now } = await readmeNow()
  expect(held).toBe(now)
})
